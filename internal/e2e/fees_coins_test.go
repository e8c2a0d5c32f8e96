package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
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

// TestFN03_CoinsFeesThatRiseAndStay: payouts wait in the mempool when fees rise tenfold, and
// they stay. Nodes that take replacements are sent dearer ones, those that take none a child
// for each, and everybody is paid once. One payout is called off meanwhile. btcd's miner takes
// whatever waits, so that there is no block while they are replaced; Litecoin Core's takes
// nothing that is cheap alone.
func TestFN03_CoinsFeesThatRiseAndStay(t *testing.T) {
	t.Parallel()
	for _, c := range testenv.Drawn(t, 1, []struct {
		name, network, kind string
		blocks              int
		keeps               bool // the node takes no replacements
		args                []string
	}{
		{"btcd", "BTC", "simnet", 330, false, nil},
		{"litecoin_core", "LTC", "regtest", 130, false, []string{"-mempoolreplacement=1", "-blockmintxfee=0.0002"}},
		{"litecoin_core_keeps", "LTC", "regtest", 130, true, []string{"-blockmintxfee=0.0002"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := utxotest.Open(t, chain.Network(c.network), c.kind, c.blocks, c.args...)
			s := openShop(t, m)
			orders := make([]payment.Payment, 8)
			for i := range orders {
				orders[i] = s.order("30")
				m.Pay(orders[i].Address, decimal.New(int64(orders[i].Due), -8))
			}
			s.until("paid", func() bool { return s.payment(orders[7].ID).Status == payment.Completed })
			s.mine(1)

			var ids []string
			made, to := 0, map[string]string{}
			pay := func() {
				t.Helper()
				who, err := m.Client.AddressOf(testPub(fmt.Sprint("payee ", made)))
				require.NoError(t, err)
				amount := decimal.New(int64(5+made), 0)
				made++
				w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
					Terms: withdrawal.Terms{PriceAmount: &amount, Currency: c.network, Address: string(who)},
				})
				require.NoError(t, err)
				ids, to[w.ID] = append(ids, w.ID), string(who)
			}
			get := func(id string) withdrawal.Withdrawal {
				w, err := s.app.Withdrawals.Get(t.Context(), s.tenant, id)
				require.NoError(t, err)
				return w
			}
			waiting := func() (txs []string) { m.Ask(&txs, "getrawmempool"); return txs }
			for range 4 { // a transaction each
				pay()
				s.step()
			}
			pay() // two in one
			pay()
			s.step()
			first, early := waiting(), map[string]bool{}
			for _, id := range ids {
				early[id] = true
			}
			require.Len(t, first, 5)

			if c.network == "LTC" {
				s.mine(2)
				require.ElementsMatch(t, first, waiting(), "no miner takes them")
			}
			s.client = func() chain.Client { return m.Connect(func(o *utxo.Options) { o.FallbackRate = 100_000 }) }
			s.compose()
			for range 40 {
				s.clock.Advance(stuckAfter / 4)
				s.step()
			}
			second := waiting()
			if c.keeps {
				require.Len(t, second, 10, "each has a child")
				require.Subset(t, second, first)
			} else {
				require.Len(t, second, 5, "each was replaced")
				for _, tx := range second {
					require.NotContains(t, first, tx)
				}
			}
			given := ""
			if !c.keeps {
				given, ids = ids[3], slices.Delete(slices.Clone(ids), 3, 4)
				_, err := s.app.Operate.CancelTransaction(t.Context(), m.Network, given, cryptopay.Call{By: "somebody", Reason: "called off"})
				require.NoError(t, err)
				for range 8 {
					s.clock.Advance(stuckAfter / 4)
					s.step()
				}
			}
			pay()
			s.step()
			pay()
			for range 40 {
				s.clock.Advance(4 * time.Minute)
				s.mine(1)
			}

			for _, id := range ids {
				w := get(id)
				require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
				require.Equal(t, fmt.Sprint([]decimal.Decimal{decimal.New(int64(w.Amount), -8)}), fmt.Sprint(m.Paid(to[id])), "once")
				if early[id] {
					require.Equal(t, c.keeps, slices.Contains(first, w.Tx))
				}
			}
			if given != "" {
				require.Equal(t, withdrawal.Failed, get(given).Status)
				require.Empty(t, m.Paid(to[given]))
			}

			p := storage.Network(c.network)
			rows, err := s.store.Find(t.Context(), storage.Query{Table: outgoing.Coins.Table, Partition: p, Limit: 500})
			require.NoError(t, err)
			var free ledger.Amount
			for _, r := range rows {
				coin := outgoing.Coins.Value(r)
				require.Contains(t, []outgoing.CoinState{outgoing.CoinFree, outgoing.CoinSpent}, coin.State, r.ID)
				require.Equal(t, coin.State == outgoing.CoinFree, m.Unspent(r.ID), r.ID)
				if coin.State == outgoing.CoinFree {
					free += coin.Amount
				}
			}
			books, err := s.store.Balances(t.Context(), storage.Tenant(s.tenant), ledger.Chain(c.network))
			require.NoError(t, err)
			require.Len(t, books, 1)
			require.Equal(t, free, -books[0].Posted, "what is there is in the books")
			open, err := s.store.Count(t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: p, Where: []storage.Cond{
				{Column: "fate", Op: storage.Eq, Value: outgoing.Open},
			}})
			require.NoError(t, err)
			require.Zero(t, open)
			bound, err := s.store.Count(t.Context(), storage.Query{Table: outgoing.InputReservations.Table, Partition: p})
			require.NoError(t, err)
			require.Zero(t, bound)
			s.sound()
		})
	}
}
