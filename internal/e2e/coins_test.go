package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop takes many small payments and pays out once. Each payout needs all coins that
// came since the one before. It is paid, and quoted for what it
// costs: neither less nor half as much again.
func TestCoinsFN02_PayoutOfManySmallCoins(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s := openShopWith(t, m, 40, "0.0025")
		for _, coins := range []int{3, 6, 20, 60, 200} {
			all := decimal.New(int64(coins), 0)
			require.Zero(t, s.payOut(coins, "0.04", all.Sub(dec("0.25"))))
		}
		s.mine(8)
		s.sound()
	})
}

// merged is of how many coins the payout is that needs merges.
var merged = flag.Int("coins", 60, "of so many coins is the payout that TestCoinsFT04 merges them for; above 200 with transactions as large as they are by default")

// A payout needs more coins than one transaction holds: they are merged first, and what
// that costs is in the quote.
func TestCoinsFT04_PayoutOfMoreCoinsThanOneTransactionHolds(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		most := 20
		if *merged > 200 {
			most = 0
		}
		s := openShopWith(t, m, 40, "0.003", func(o *outgoing.Config) { o.MaxInputs = most })
		require.Positive(t, s.payOut(*merged, "0.01", decimal.New(int64(*merged)*19, 0).Div(dec("20"))))
		s.mine(8)
		s.sound()
		held, err := s.store.Count(t.Context(), storage.Query{Table: outgoing.InputReservations.Table, Partition: storage.Network(string(m.Network))})
		require.NoError(t, err)
		require.Zero(t, held)
	})
}

// partsPerPayment is in how many coins a payment comes: it takes no more than 100.
const partsPerPayment = 100

// payOut has payments come in as so many coins of an amount, and pays out what so many of them
// are worth. It returns how many merges that took.
func (s *shop) payOut(coins int, each string, worth decimal.Decimal) (merges int) {
	s.t.Helper()
	coin := dec(each)
	var ids []string
	for left := coins; left > 0; left -= min(left, partsPerPayment) {
		parts := min(left, partsPerPayment)
		p := s.order(coin.Mul(decimal.New(int64(100*parts), 0)).String())
		s.mint.Spread(p.Address, coin, parts)
		ids = append(ids, p.ID)
	}
	for _, id := range ids {
		s.until("completed", func() bool { return s.payment(id).Status == payment.Completed })
	}
	to, err := s.mint.Client.AddressOf(testPub(fmt.Sprint("payee of ", coins)))
	require.NoError(s.t, err)
	amount := coin.Mul(worth)
	w, err := s.app.Withdrawals.Create(s.t.Context(), s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, Currency: string(s.mint.Network), Address: string(to)},
	})
	require.NoError(s.t, err)
	quoted := w.NetworkFee
	s.until("withdrawn", func() bool {
		w, err = s.app.Withdrawals.Get(s.t.Context(), s.tenant, w.ID)
		require.NoError(s.t, err)
		return w.Status == withdrawal.Completed
	})
	s.mine(8)
	require.Equal(s.t, decimal.New(int64(w.Amount), -8).String(), s.mint.Received(string(to)).String(), "paid once")
	spends, merges, paid := s.spent(w.ID)
	s.t.Logf("%s of %d coins: %d inputs, %d merges, quoted %d, paid %d", worth, coins, spends, merges, quoted, paid)
	require.GreaterOrEqual(s.t, spends, int(worth.Ceil().IntPart()), "it needed them")
	require.GreaterOrEqual(s.t, quoted, paid)
	require.LessOrEqual(s.t, quoted, paid*3/2)
	return merges
}

// spent is how many coins a payout and its merges spent, how many merges there were, and
// what the network took for all.
func (s *shop) spent(id string) (coins, merges int, cost ledger.Amount) {
	s.t.Helper()
	rows, err := s.store.Find(s.t.Context(), storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network(string(s.mint.Network)), Limit: 1000,
		Where: []storage.Cond{{Column: "fate", Op: storage.Eq, Value: outgoing.AttemptFinal}},
	})
	require.NoError(s.t, err)
	for _, r := range rows {
		a := outgoing.Attempts.Value(r)
		if outgoing.ParseID(a.Intent).For == id {
			merges++
		} else if a.Intent != id {
			continue
		}
		coins, cost = coins+len(a.Spends), cost+a.MaxCost
	}
	return coins, merges, cost
}

// Merges wait in a real node's pool when fees rise, and stay: dearer ones take their place, and
// the payout that they are for goes as soon as they are in a block.
func TestFT04_MergesAreReplacedWhenFeesRise(t *testing.T) {
	t.Parallel()
	for _, c := range testenv.Drawn(t, 1, []struct {
		name, network, kind string
		blocks              int
		args                []string
	}{
		{"btcd", "BTC", "simnet", 330, nil},
		{"litecoin_core", "LTC", "regtest", 130, []string{"-mempoolreplacement=1", "-blockmintxfee=0.0002"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := utxotest.Open(t, chain.Network(c.network), c.kind, c.blocks, c.args...)
			s := openShopWith(t, m, 20, "0.02", func(o *outgoing.Config) { o.MaxInputs = 4 })
			p := s.order("100")
			m.Spread(p.Address, dec("0.1"), 10)
			s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
			to, err := m.Client.AddressOf(testPub("payee"))
			require.NoError(t, err)
			amount := dec("0.9")
			w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: &amount, Currency: c.network, Address: string(to)},
			})
			require.NoError(t, err)
			waiting := func() (txs []string) { m.Ask(&txs, "getrawmempool"); return txs }
			for range 3 {
				s.step()
				s.clock.Advance(10 * time.Second)
			}
			first := waiting()
			require.Len(t, first, 2)
			s.client = func() chain.Client { return m.Connect(func(o *utxo.Options) { o.FallbackRate = 100_000 }) }
			s.compose()
			for range 40 {
				s.clock.Advance(stuckAfter / 4)
				s.step()
			}
			second := waiting()
			require.Len(t, second, 2)
			for _, tx := range second {
				require.NotContains(t, first, tx)
			}
			s.mine(1)
			s.step()
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Processing, w.Status, "the merges have a confirmation, and are not final")
			s.until("withdrawn", func() bool {
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
				require.NoError(t, err)
				return w.Status == withdrawal.Completed
			})
			s.mine(8)
			require.Equal(t, fmt.Sprint([]decimal.Decimal{decimal.New(int64(w.Amount), -8)}), fmt.Sprint(m.Paid(string(to))), "once")
			s.sound()
		})
	}
}

// Coins are merged while a real node's fees are low. What a payout of all of them costs when fees are
// high again is then a part of what it costs without, with what the merges cost.
func TestFT04_EarlyMergesMakePayoutsCheaper(t *testing.T) {
	t.Parallel()
	for _, c := range testenv.Drawn(t, 1, []struct {
		name, network, kind string
		blocks              int
		of                  smallShop
	}{
		{"btcd", "BTC", "simnet", 330, cheapCoins},
		{"litecoin_core", "LTC", "regtest", 130, cheapCoins},
		// There is no node of Dogecoin's own in the tests: btcd judges transactions that are built by
		// Dogecoin's fees, dust and kind of address, and whether it is stricter or not than Dogecoin Core
		// stays open.
		{"dogecoins_rules_on_btcd", "DOGE", "simnet", 330, smallShop{own: "1", coin: "0.4", usd: "2400", amount: "22.5", high: 10_000_000, low: 1_000_000, deep: 60}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			earlyMergesMakePayoutsCheaper(t, func() *utxotest.Mint { return utxotest.Open(t, chain.Network(c.network), c.kind, c.blocks) }, c.of)
		})
	}
}

// smallShop is a shop of 60 coins: what each of them and of the operator's is worth, what is paid out,
// and the network's fees in units for 1,000 bytes.
type smallShop struct {
	own, coin, usd, amount string
	high, low              int64
	deep                   int // blocks that make a transaction final
}

var cheapCoins = smallShop{own: "0.02", coin: "0.02", usd: "120", amount: "1.17", high: 200_000, low: 10_000, deep: 8}

// dyingStore loses its process at a commit, after it or in place of it.
type dyingStore struct {
	storage.Store
	left    int // commits until then; 0 = it lives
	written bool
	dead    bool
}

func (s *dyingStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		last := s.left == 1
		if !s.dead && (!last || s.written) {
			errs[i] = s.Store.Commit(ctx, changes[i])[0]
		}
		if s.dead = s.dead || last; s.dead {
			errs[i] = storage.ErrUnknown
		}
		s.left--
	}
	return errs
}

// Two processes on a store and a real node take turns: one merges early, the other has that off or has other
// figures. Either dies at one commit after the other. No coin is spent twice, no more is merged than is
// decided on, and a payout of all goes through.
func TestFT04_EarlyMergesOfProcessesThatAreConfiguredInDifferentWays(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]outgoing.Merging{"off": {Off: true}, "figures": {Least: 40, Portion: 6}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := utxotest.Open(t, "BTC", "simnet", 330)
			merging := outgoing.Merging{Least: 20, Portion: 3}
			s := openShopWith(t, m, 10, "0.02", func(o *outgoing.Config) {
				o.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: merging}
			})
			rate := int64(200_000)
			s.client = func() chain.Client {
				return m.Connect(func(o *utxo.Options) { o.MinRate, o.FallbackRate = rate, rate })
			}
			p := s.order("120")
			m.Spread(p.Address, dec("0.02"), 60)
			s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
			turn := func(round int) {
				if merging = (outgoing.Merging{Least: 20, Portion: 3}); round%2 == 1 {
					merging = other
				}
				kept, d := s.store, &dyingStore{Store: s.store, written: round%4 < 2}
				s.store = d
				s.compose()
				d.left = 1 + (round/4)%9
				_ = s.app.Step(t.Context())
				s.store = kept
			}
			s.compose()
			for range 30 {
				s.clock.Advance(time.Hour)
				s.step()
				m.Mine(1)
			}
			rate = 10_000
			for round := range 120 {
				turn(round)
				s.clock.Advance(7 * time.Minute)
				if round%5 == 0 {
					m.Mine(1)
				}
			}
			merging, rate = other, 200_000
			s.compose()
			amount := dec("1.17")
			to, err := m.Client.AddressOf(testPub("payee"))
			require.NoError(t, err)
			w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: &amount, Currency: "BTC", Address: string(to)},
			})
			require.NoError(t, err)
			s.until("withdrawn", func() bool {
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
				require.NoError(t, err)
				return w.Status == withdrawal.Completed
			})
			s.mine(8)
			require.Equal(t, fmt.Sprint([]decimal.Decimal{decimal.New(int64(w.Amount), -8)}), fmt.Sprint(m.Paid(string(to))), "once")
			rows, err := s.store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("BTC"), Limit: 1000})
			require.NoError(t, err)
			ended := map[outgoing.State]int{}
			for _, r := range rows {
				if outgoing.ParseID(r.ID).Early() {
					ended[outgoing.Intents.Value(r).State]++
				}
			}
			t.Logf("early merges: %v", ended)
			require.Positive(t, ended[outgoing.Final])
			require.LessOrEqual(t, ended[outgoing.Cancelled], 14, "one an hour")
			s.sound()
		})
	}
}

func earlyMergesMakePayoutsCheaper(t *testing.T, open func() *utxotest.Mint, of smallShop) {
	t.Helper()
	const coins = 60
	cost := map[bool]ledger.Amount{}
	for _, off := range []bool{true, false} {
		m := open()
		s := openShopWith(t, m, 10, of.own, func(o *outgoing.Config) {
			o.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: {Off: off, Least: 20, Portion: 3}}
		})
		at := func(rate int64) {
			s.client = func() chain.Client {
				return m.Connect(func(o *utxo.Options) { o.MinRate, o.FallbackRate = rate, rate })
			}
			s.compose()
		}
		at(of.high)
		p := s.order(of.usd)
		m.Spread(p.Address, dec(of.coin), coins)
		s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
		hours := func(n int) {
			for range n {
				s.clock.Advance(time.Hour)
				s.step()
				s.mine(1)
			}
		}
		hours(30)
		at(of.low)
		hours(20)
		s.mine(of.deep)
		next, err := s.app.EarlyMerge(t.Context(), s.tenant, m.Network)
		require.NoError(t, err)
		at(of.high)
		amount := dec(of.amount)
		to, err := m.Client.AddressOf(testPub("payee"))
		require.NoError(t, err)
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &amount, Currency: string(m.Network), Address: string(to)},
		})
		require.NoError(t, err)
		s.until("withdrawn", func() bool {
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			return w.Status == withdrawal.Completed
		})
		s.mine(of.deep)
		spends, _, paid := s.spent(w.ID)
		rows, err := s.store.Find(t.Context(), storage.Query{
			Table: outgoing.Attempts.Table, Partition: storage.Network(string(m.Network)), Limit: 1000,
			Where: []storage.Cond{{Column: "fate", Op: storage.Eq, Value: outgoing.AttemptFinal}},
		})
		require.NoError(t, err)
		early, before := 0, ledger.Amount(0)
		for _, r := range rows {
			if a := outgoing.Attempts.Value(r); outgoing.ParseID(a.Intent).Early() {
				early++
				before += a.MaxCost
			}
		}
		t.Logf("off %t: %d early merges for %d, then %d inputs for %d; no more as %s", off, early, before, spends, paid, next.Why)
		require.Equal(t, off, early == 0)
		cost[off] = before + paid
		s.sound()
	}
	require.Less(t, cost[false], cost[true]*2/3)
}
