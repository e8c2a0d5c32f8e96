package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/cardano"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stall is a program that embeds the library on a modelled node of Cardano.
type stall struct {
	*cardanotest.Node
	t      testing.TB
	client *cardano.Client
	store  storage.Store
	clock  *cryptopay.ManualClock
	app    *cryptopay.App
	inbox  *inbox
	tenant string
}

// openStall opens one, whose operator's own coins are of these amounts of ada.
func openStall(t testing.TB, backend string, own ...int64) *stall {
	t.Helper()
	return openStallWith(t, backend, outgoing.Merging{}, own...)
}

func openStallWith(t testing.TB, backend string, merging outgoing.Merging, own ...int64) *stall {
	t.Helper()
	s := &stall{Node: cardanotest.New(t.Name()), t: t, store: memory.New(), clock: cryptopay.NewManualClock(time.Now()), inbox: &inbox{}}
	server := httptest.NewServer(s.Node)
	t.Cleanup(server.Close)
	registry := chain.MainnetRegistry().Only("ADA")
	var source *keys.Source
	o := cardano.Options{
		Registry:  registry,
		PublicKey: func(_ chain.Address, k chain.KeyRef) (chain.PublicKey, error) { return source.PublicKey("ADA", k) },
	}
	if backend == "Blockfrost" {
		o.Blockfrost = server.URL + cardanotest.Blockfrost
	} else {
		o.Ogmios, o.Kupo = server.URL, server.URL+cardanotest.Kupo
	}
	var err error
	s.client, err = cardano.New(o)
	require.NoError(t, err)
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	source, err = keys.NewSource(accounts, map[chain.Network]keys.Encode{"ADA": s.client.AddressOf})
	require.NoError(t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"ADA": s.client}, Registry: keys.StoreRegistry{Store: s.store},
		Mandates: cryptopay.MandateKeys(bytes.Repeat([]byte{7}, 32)),
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(t, err)
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: []chain.Client{s.client}, HeadAge: -1, GoneAfter: -1, Registry: registry, Addresses: source, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{"ADA": "1"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock, Notifier: s.inbox, Callbacks: webhook.Guard{AllowHTTP: true},
		Reconcile: reconcile.Config{Halt: true},
		Outgoing:  outgoing.Config{StuckAfter: stuckAfter, Merging: map[outgoing.MergingOf]outgoing.Merging{{Currency: "ADA"}: merging}},
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	require.NoError(t, s.app.Open(t.Context(), keys.Tables()...))
	name := "stall"
	tenant, err := s.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	s.tenant = tenant.ID
	s.step()
	hot, err := s.app.Hot(t.Context(), "ADA", s.tenant)
	require.NoError(t, err)
	for _, ada := range own {
		s.send(hot, ada*1_000_000)
	}
	s.mine(20)
	return s
}

func (s *stall) send(to chain.Address, lovelace int64) string {
	return s.Send(nil, cardanotest.Pay{To: string(to), Lovelace: lovelace})
}

func (s *stall) step() {
	s.t.Helper()
	require.NoError(s.t, s.app.Step(s.t.Context()))
}

func (s *stall) mine(blocks int) {
	s.t.Helper()
	for range blocks {
		s.Mine(1)
		s.clock.Advance(20 * time.Second)
		s.step()
	}
}

func (s *stall) until(what string, done func() bool) {
	s.t.Helper()
	for range 60 {
		if done() {
			return
		}
		s.mine(1)
	}
	intents, err := s.store.Find(s.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("ADA"), Limit: 10})
	s.t.Fatalf("60 blocks later: not %s: %+v %v", what, intents, err)
}

func (s *stall) order(usd string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Create(s.t.Context(), s.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: "ADA"}, CallbackURL: "https://shop.example/hook"})
	require.NoError(s.t, err)
	return p
}

func (s *stall) payment(id string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Get(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	return p
}

func (s *stall) earn(usd string) {
	s.t.Helper()
	p := s.order(usd)
	s.send(chain.Address(p.Address), int64(p.Due))
	s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })
}

func (s *stall) somebody(name string) chain.Address {
	s.t.Helper()
	a, err := s.client.AddressOf(bytes.Repeat([]byte(name[:1]), 32))
	require.NoError(s.t, err)
	return a
}

func (s *stall) withdraw(usd string, to chain.Address) (withdrawal.Withdrawal, error) {
	s.t.Helper()
	amount := dec(usd)
	return s.app.Withdrawals.Create(s.t.Context(), s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "ADA", Address: string(to)}, CallbackURL: "https://shop.example/hook",
	})
}

func (s *stall) withdrawn(id string) (w withdrawal.Withdrawal) {
	s.t.Helper()
	s.until("withdrawn", func() bool {
		var err error
		w, err = s.app.Withdrawals.Get(s.t.Context(), s.tenant, id)
		require.NoError(s.t, err)
		require.NotContains(s.t, []withdrawal.Status{withdrawal.Failed, withdrawal.Cancelled}, w.Status)
		return w.Status == withdrawal.Completed
	})
	return w
}

func (s *stall) shelf() shelf { return shelf{s.t, s.store, "ADA", s.clock, s.mine} }

func (s *stall) sound() {
	s.t.Helper()
	reports, err := s.app.Verify(s.t.Context())
	require.NoError(s.t, err)
	require.Len(s.t, reports, 1)
	require.Empty(s.t, reports[0].Ledger.Findings)
	require.Empty(s.t, reports[0].Holds)
	require.Empty(s.t, reports[0].Unexplained)
	require.Empty(s.t, reports[0].Gas)
	s.shelf().agrees()
}

// TestCardanoR05_DepositAndWithdrawalAreRolledBack: a rollback takes a payment away for good,
// and then our own transaction out of its block, which lands again. Both are paid once.
func TestCardanoR05_DepositAndWithdrawalAreRolledBack(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"Ogmios", "Blockfrost"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			s := openStall(t, backend, 20)
			s.earn("50")
			p := s.order("20")
			lost := s.send(chain.Address(p.Address), int64(p.Due))
			s.mine(2)
			require.Equal(t, payment.Confirming, s.payment(p.ID).Status)
			s.Reorg(2, lost)
			s.mine(3)
			require.NotContains(t, []payment.Status{payment.Confirming, payment.Completed}, s.payment(p.ID).Status)
			s.send(chain.Address(p.Address), int64(p.Due))
			s.until("completed", func() bool { return s.payment(p.ID).Status == payment.Completed })

			to := s.somebody("a")
			w, err := s.withdraw("60", to)
			require.NoError(t, err)
			s.until("in a block", func() bool { return s.Received(string(to)) > 0 })
			s.Reorg(1)
			require.Zero(t, s.Received(string(to)))
			s.mine(1)
			w = s.withdrawn(w.ID)
			s.mine(20)
			require.EqualValues(t, w.Amount, s.Received(string(to)), "paid once")
			s.sound()
		})
	}
}

// TestCardanoW03_PayoutThatExpiredIsReplaced: a rollback takes a payout, and no node has it any
// more until its time is over. The second spends an input of the first: only one can land.
func TestCardanoW03_PayoutThatExpiredIsReplaced(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Ogmios", 20)
	s.earn("50")
	to := s.somebody("b")
	s.Set(func(f *cardanotest.Fault) { f.Forget = true })
	w, err := s.withdraw("30", to)
	require.NoError(t, err)
	for range 60 { // twenty minutes of blocks, in which nobody has it
		s.mine(1)
	}
	require.Zero(t, s.Received(string(to)))
	s.Set(func(f *cardanotest.Fault) { f.Forget = false })
	w = s.withdrawn(w.ID)
	s.mine(20)
	require.EqualValues(t, w.Amount, s.Received(string(to)), "paid once")
	rows, err := s.store.Find(t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network("ADA"), Limit: 100})
	require.NoError(t, err)
	require.Greater(t, len(rows), 1, "it was replaced")
	s.sound()
}

// TestCardanoPaidTogether: withdrawals of the same moment are one transaction, of coins that are
// small; what is too little for an output of Cardano's is refused before anything is held.
func TestCardanoPaidTogether(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Ogmios", 10, 10)
	for range 5 {
		s.earn("12")
	}
	_, err := s.withdraw("0.5", s.somebody("c"))
	require.Error(t, err)
	txs, ids := map[string]bool{}, []string{}
	for i := range 3 {
		w, err := s.withdraw("15", s.somebody(fmt.Sprint(i)))
		require.NoError(t, err)
		ids = append(ids, w.ID)
	}
	for i, id := range ids {
		w := s.withdrawn(id)
		txs[w.Tx] = true
		require.Equal(t, decimal.New(int64(w.Amount), -6).String(), decimal.New(s.Received(string(s.somebody(fmt.Sprint(i)))), -6).String())
	}
	require.Len(t, txs, 1, "by one transaction")
	s.sound()
}

// TestCardanoD03_TokensAreKeptAndNoPayment: what comes with native tokens is no payment, and
// the tokens are shown as not listed.
func TestCardanoD03_TokensAreKeptAndNoPayment(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Blockfrost", 20)
	p := s.order("20")
	s.Send(nil, cardanotest.Pay{To: p.Address, Lovelace: int64(p.Due), Tokens: map[string]uint64{cardanotest.Coin("Fake"): 1000}})
	s.mine(20)
	require.NotEqual(t, payment.Completed, s.payment(p.ID).Status)
	suspense, err := s.app.Payments.Suspense(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, suspense, 1, "an operator decides about the ada")
	require.Equal(t, payment.RoleUnproven, suspense[0].Role)
	rows, err := s.store.Find(t.Context(), storage.Query{Table: incoming.Unlisted.Table, Partition: storage.Network("ADA"), Limit: 10})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, cardanotest.Coin("Fake"), incoming.Unlisted.Value(rows[0]).Contract)
	s.sound()
}
