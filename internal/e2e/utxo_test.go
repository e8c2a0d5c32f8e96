package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// shop is a program that embeds the library on such a node.
type shop struct {
	t      testing.TB
	mint   *utxotest.Mint
	client func() chain.Client // of a new process
	store  storage.Store
	clock  *cryptopay.ManualClock
	inbox  *inbox
	app    *cryptopay.App
	tenant string

	configure []func(*outgoing.Config)
}

func openShop(t testing.TB, m *utxotest.Mint) *shop {
	t.Helper()
	return openShopWith(t, m, 1, "0.1")
}

// openShopWith opens a shop whose operator's own coins, which bear the fees, are so many
// of an amount.
func openShopWith(t testing.TB, m *utxotest.Mint, coins int, amount string, configure ...func(*outgoing.Config)) *shop {
	t.Helper()
	s := &shop{t: t, mint: m, configure: configure, client: func() chain.Client { return m.Connect() }, store: memory.New(), inbox: &inbox{}, clock: cryptopay.NewManualClock(time.Now())}
	s.compose()
	name := "shop"
	tenant, err := s.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	s.tenant = tenant.ID
	s.step()
	hot, err := s.app.Hot(t.Context(), m.Network, s.tenant)
	require.NoError(t, err)
	m.Spread(string(hot), dec(amount), coins)
	s.mine(8)
	return s
}

// compose makes an App over the store, as a program does at its start.
func (s *shop) compose() {
	s.t.Helper()
	n, registry := s.mint.Network, chain.MainnetRegistry().Only(s.mint.Network)
	client := s.client()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(s.t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(s.t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{n: client.AddressOf})
	require.NoError(s.t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{n: client}, Registry: keys.StoreRegistry{Store: s.store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(s.t, err)
	o := outgoing.Config{StuckAfter: stuckAfter}
	for _, f := range s.configure {
		f(&o)
	}
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: []chain.Client{client}, HeadAge: -1, GoneAfter: -1, Registry: registry, Addresses: source, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{string(n): "100"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock,
		Notifier: s.inbox, Callbacks: webhook.Guard{AllowHTTP: true}, Outgoing: o,
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.app.Open(s.t.Context(), keys.Tables()...))
}

func (s *shop) step() {
	s.t.Helper()
	require.NoError(s.t, s.app.Step(s.t.Context()))
}

func (s *shop) mine(blocks int) {
	s.t.Helper()
	for range blocks {
		s.mint.Mine(1)
		s.clock.Advance(time.Minute)
		s.step()
	}
}

func (s *shop) until(what string, done func() bool) {
	s.t.Helper()
	for range 40 {
		if done() {
			return
		}
		s.mine(1)
	}
	intents, err := s.store.Find(s.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network(string(s.mint.Network)), Limit: 10})
	s.t.Fatalf("40 blocks later: not %s: %+v %v", what, intents, err)
}

func (s *shop) order(usd string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Create(s.t.Context(), s.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: string(s.mint.Network)}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(s.t, err)
	return p
}

func (s *shop) payment(id string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Get(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	return p
}

func (s *shop) earn(usd string) {
	s.t.Helper()
	p := s.order(usd)
	s.mint.Pay(p.Address, decimal.New(int64(p.Due), -8))
	s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
}

func (s *shop) sound() {
	s.t.Helper()
	reports, err := s.app.Verify(s.t.Context())
	require.NoError(s.t, err)
	require.Len(s.t, reports, 1)
	require.Empty(s.t, reports[0].Ledger.Findings)
	require.Empty(s.t, reports[0].Holds)
	require.Empty(s.t, reports[0].Unexplained)
	require.Empty(s.t, reports[0].Gas)
}

func onMints(t *testing.T, f func(t *testing.T, m *utxotest.Mint)) {
	t.Parallel()
	for _, on := range testenv.Drawn(t, 1, []string{"btcd", "litecoin_core"}) {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			if on == "btcd" {
				f(t, utxotest.Open(t, "BTC", "simnet", 330))
			} else {
				f(t, utxotest.Open(t, "LTC", "regtest", 130))
			}
		})
	}
}

// TestCoinsPaymentAndWithdrawal: two payments come in, a withdrawal spends both
// coins, and the books prove themselves.
func TestCoinsPaymentAndWithdrawal(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s := openShop(t, m)
		s.earn("30")
		s.earn("25")
		to, err := m.Client.AddressOf(testPub("somebody"))
		require.NoError(t, err)
		amount := dec("40")
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: string(m.Network), Address: string(to)},
			CallbackURL: "https://shop.example/hook",
		})
		require.NoError(t, err)
		s.until("withdrawn", func() bool {
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			return w.Status == withdrawal.Completed
		})
		s.mine(8)
		require.Equal(t, decimal.New(int64(w.Amount), -8).String(), m.Received(string(to)).String(), "paid once")
		s.sound()
	})
}

// TestCoinsPaidTogether: withdrawals that are due at the same moment are one
// transaction, which a fork takes out of its block.
func TestCoinsPaidTogether(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s := openShop(t, m)
		s.earn("50")
		s.earn("25")
		ids := make([]string, 3)
		to := make([]chain.Address, 3)
		for i := range ids {
			var err error
			to[i], err = m.Client.AddressOf(testPub(fmt.Sprint("one of them ", i)))
			require.NoError(t, err)
			amount := decimal.New(int64(5+i), 0)
			w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
				Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: string(m.Network), Address: string(to[i])},
				CallbackURL: "https://shop.example/hook",
			})
			require.NoError(t, err)
			ids[i] = w.ID
		}
		s.step()
		s.mine(1)
		m.Reorg(1)
		s.compose()
		txs, due := map[string]bool{}, map[chain.Address]decimal.Decimal{}
		for i, id := range ids {
			var w withdrawal.Withdrawal
			s.until("withdrawn", func() bool {
				var err error
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, id)
				require.NoError(t, err)
				return w.Status == withdrawal.Completed
			})
			txs[w.Tx], due[to[i]] = true, decimal.New(int64(w.Amount), -8)
		}
		require.Len(t, txs, 1, "by one transaction")
		s.mine(8)
		m.Client = m.Connect()
		for a, amount := range due {
			require.Equal(t, amount.String(), m.Received(string(a)).String(), "paid once")
		}
		s.sound()
	})
}

// TestCoinsW03_ChildPays: nodes keep a withdrawal that is too cheap and take nothing
// dearer in its place, as Litecoin Core does unless it is told otherwise. A miner takes
// it with a child that pays for both. btcd's miner takes it alone, too.
func TestCoinsW03_ChildPays(t *testing.T) {
	t.Parallel()
	for _, c := range testenv.Drawn(t, 1, []struct {
		name, network, kind string
		blocks              int
		args                []string
	}{
		{"btcd", "BTC", "simnet", 330, []string{"--rejectreplacement"}},
		{"litecoin_core", "LTC", "regtest", 130, []string{"-blockmintxfee=0.0002"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := utxotest.Open(t, chain.Network(c.network), c.kind, c.blocks, c.args...)
			s := openShop(t, m)
			s.earn("50")
			to, err := m.Client.AddressOf(testPub("somebody in no hurry"))
			require.NoError(t, err)
			amount := dec("20")
			w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{PriceAmount: &amount, Currency: c.network, Address: string(to)},
			})
			require.NoError(t, err)
			s.step()
			waiting := func() (txs []string) { m.Ask(&txs, "getrawmempool"); return txs }
			first := waiting()
			require.Len(t, first, 1)
			if c.name == "litecoin_core" {
				s.mine(3)
				require.Equal(t, first, waiting(), "no miner takes it")
			}
			s.client = func() chain.Client { return m.Connect(func(o *utxo.Options) { o.FallbackRate = 25_000 }) }
			s.compose() // prices have risen
			for range 20 {
				s.clock.Advance(stuckAfter / 4)
				s.step()
			}
			require.Len(t, waiting(), 2)
			require.Contains(t, waiting(), first[0], "it was not replaced")
			m.Mine(1)
			require.Empty(t, waiting(), "both are mined")
			s.until("withdrawn", func() bool {
				w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
				require.NoError(t, err)
				return w.Status == withdrawal.Completed
			})
			require.Equal(t, first[0], w.Tx)
			s.mine(12)
			require.Equal(t, decimal.New(int64(w.Amount), -8).String(), m.Received(string(to)).String(), "paid once")
			s.sound()
			intents, err := s.store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network(c.network), Limit: 10})
			require.NoError(t, err)
			require.Len(t, intents, 2)
			for _, r := range intents {
				require.Equal(t, outgoing.Final, outgoing.Intents.Value(r).State, r.ID)
			}
		})
	}
}

// TestCoinsR05_DepositAndWithdrawalAreUnmined: a fork takes a payment away, and
// then our own transaction out of its block.
func TestCoinsR05_DepositAndWithdrawalAreUnmined(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s := openShop(t, m)
		s.earn("50")
		p := s.order("20")
		m.Pay(p.Address, decimal.New(int64(p.Due), -8))
		s.mine(1)
		require.Equal(t, payment.Confirming, s.payment(p.ID).Status)
		m.Reorg(1)
		s.compose() // the node is at another port now
		s.mine(1)
		require.NotEqual(t, payment.Completed, s.payment(p.ID).Status)
		m.Pay(p.Address, decimal.New(int64(p.Due), -8))
		s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })

		to, err := m.Client.AddressOf(testPub("somebody else"))
		require.NoError(t, err)
		amount := dec("10")
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: string(m.Network), Address: string(to)},
			CallbackURL: "https://shop.example/hook",
		})
		require.NoError(t, err)
		s.step()
		s.mine(1)
		m.Reorg(1)
		s.compose()
		s.until("withdrawn", func() bool {
			w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
			require.NoError(t, err)
			return w.Status == withdrawal.Completed
		})
		s.mine(8)
		m.Client = m.Connect()
		require.Equal(t, decimal.New(int64(w.Amount), -8).String(), m.Received(string(to)).String(), "paid once")
		s.sound()
	})
}

func testPub(seed string) chain.PublicKey {
	sum := sha256.Sum256([]byte(seed))
	_, pub := btcec.PrivKeyFromBytes(sum[:])
	return pub.SerializeCompressed()
}
