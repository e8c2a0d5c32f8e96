package e2e_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// post is a modelled node of a network where one account takes all payments.
type post interface {
	network() chain.Network
	// connect makes a client that finds its public keys in source.
	connect(t testing.TB, source func() *keys.Source) chain.Client
	// pay sends coins of a customer's to an account, with a memo or "".
	pay(account chain.Address, memo string, coins decimal.Decimal)
	mine()
	// existing is an account of somebody's that is there.
	existing() chain.Address
	// swallow makes the node forget what it takes.
	swallow(on bool)
}

// counter is a shop on such a network.
type counter struct {
	post
	t      testing.TB
	client chain.Client
	store  storage.Store
	clock  *cryptopay.ManualClock
	app    *cryptopay.App
	tenant string
}

func openCounter(t testing.TB, p post) *counter {
	t.Helper()
	s := &counter{post: p, t: t, store: memory.New(), clock: cryptopay.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	registry := chain.MainnetRegistry().Only(p.network())
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	var source *keys.Source
	s.client = p.connect(t, func() *keys.Source { return source })
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	encode := map[chain.Network]keys.Encode{p.network(): s.client.AddressOf}
	source, err = keys.NewSource(accounts, encode)
	require.NoError(t, err)
	var addresses chain.AddressSource = source
	if len(accounts) == 0 { // another curve
		addresses = seed.Hardened(encode)
	}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{p.network(): s.client}, Registry: keys.StoreRegistry{Store: s.store},
		Mandates: cryptopay.MandateKeys(bytes.Repeat([]byte{7}, 32)),
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(t, err)
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: []chain.Client{s.client}, HeadAge: -1, GoneAfter: -1, Registry: registry, Addresses: addresses, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{string(p.network()): "2"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock, Notifier: &inbox{}, Callbacks: webhook.Guard{AllowHTTP: true},
		Reconcile: reconcile.Config{Halt: true},
		Outgoing:  outgoing.Config{StuckAfter: stuckAfter}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	require.NoError(t, s.app.Open(t.Context(), keys.Tables()...))
	name := "shop"
	tenant, err := s.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	s.tenant = tenant.ID
	s.step()
	account, memo := s.apart(s.hot())
	s.pay(account, memo, dec("20")) // the operator's own: the reserve, and fees
	s.blocks(2)
	return s
}

func (s *counter) hot() chain.Address {
	s.t.Helper()
	hot, err := s.app.Hot(s.t.Context(), s.network(), s.tenant)
	require.NoError(s.t, err)
	return hot
}

// apart takes an address of ours apart, as a customer's wallet does.
func (s *counter) apart(a chain.Address) (account chain.Address, memo string) {
	s.t.Helper()
	account, memo, ok := s.client.(chain.Tagger).Untag(a)
	require.True(s.t, ok, a)
	return account, memo
}

func (s *counter) step() {
	s.t.Helper()
	require.NoError(s.t, s.app.Step(s.t.Context()))
}

func (s *counter) blocks(count int) {
	s.t.Helper()
	for range count {
		s.mine()
		s.clock.Advance(10 * time.Second)
		s.step()
	}
}

func (s *counter) order(usd string) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Create(s.t.Context(), s.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: string(s.network())}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(s.t, err)
	return p
}

func (s *counter) status(p payment.Payment) payment.Status {
	s.t.Helper()
	p, err := s.app.Payments.Get(s.t.Context(), s.tenant, p.ID)
	require.NoError(s.t, err)
	return p.Status
}

// withdraw pays out and waits until it is done.
func (s *counter) withdraw(to chain.Address, memo, usd string) withdrawal.Withdrawal {
	s.t.Helper()
	amount := dec(usd)
	w, err := s.app.Withdrawals.Create(s.t.Context(), s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: string(s.network()), Address: string(to)}, Memo: memo,
	})
	require.NoError(s.t, err)
	for range 60 {
		w, err = s.app.Withdrawals.Get(s.t.Context(), s.tenant, w.ID)
		require.NoError(s.t, err)
		if w.Status == withdrawal.Completed {
			return w
		}
		s.blocks(1)
	}
	intents, err := s.store.Find(s.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network(string(s.network())), Limit: 10})
	s.t.Fatalf("not withdrawn: %+v %+v %v", w, intents, err)
	return w
}

func (s *counter) shelf() shelf { return shelf{s.t, s.store, s.network(), s.clock, s.blocks} }

func (s *counter) sound() {
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

func (s *counter) balance(a chain.Address) decimal.Decimal {
	s.t.Helper()
	has, err := s.client.(chain.Balancer).Balance(s.t.Context(), string(s.network()), a)
	require.NoError(s.t, err)
	return has
}

func onPosts(t *testing.T, f func(t *testing.T, s *counter)) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB) post{"xrp": openXRP, "stellar": openStellar} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, openCounter(t, open(t)))
		})
	}
}

// TestAccountsPaymentAndWithdrawal: payments share one account, each told by its
// memo alone; a withdrawal is paid from it, and the books prove themselves.
func TestAccountsPaymentAndWithdrawal(t *testing.T) {
	onPosts(t, func(t *testing.T, s *counter) {
		one, two := s.order("30"), s.order("50")
		require.NotEqual(t, one.Address, two.Address)
		account, memo := s.apart(chain.Address(two.Address))
		same, _ := s.apart(chain.Address(one.Address))
		require.Equal(t, account, same, "no account per payment")
		s.pay(account, memo, decimal.New(int64(two.Due), -int32(two.Scale)))
		s.blocks(2)
		require.Equal(t, payment.Completed, s.status(two), "final as it is seen, and nothing to forward")
		require.Equal(t, payment.Waiting, s.status(one))

		to := s.existing()
		before := s.balance(to)
		w := s.withdraw(to, "77", "16")
		s.blocks(2)
		require.True(t, s.balance(to).Sub(before).Equal(decimal.New(int64(w.Amount), -int32(two.Scale))), "paid once")
		s.sound()
	})
}

// TestD10_WhatHasNoMemoOfOursIsInSuspense: neither a payment of somebody's nor the
// operator's own coins.
func TestD10_WhatHasNoMemoOfOursIsInSuspense(t *testing.T) {
	onPosts(t, func(t *testing.T, s *counter) {
		p := s.order("30")
		account, _ := s.apart(chain.Address(p.Address))
		s.pay(account, "", dec("15"))
		s.pay(account, "4000000", dec("15"))
		s.blocks(2)
		require.Equal(t, payment.Waiting, s.status(p))
		lost, err := s.app.Payments.Suspense(t.Context(), s.tenant, 10, 0)
		require.NoError(t, err)
		require.Len(t, lost, 2)
		var memos []string
		for _, d := range lost {
			memos = append(memos, d.Memo)
			require.Equal(t, payment.RoleStray, d.Role)
		}
		require.ElementsMatch(t, []string{"", "4000000"}, memos)
		s.sound()
	})
}

// TestW16_OurOwnAccountIsNoRecipient, under any memo.
func TestW16_OurOwnAccountIsNoRecipient(t *testing.T) {
	onPosts(t, func(t *testing.T, s *counter) {
		p := s.order("30")
		account, memo := s.apart(chain.Address(p.Address))
		s.pay(account, memo, decimal.New(int64(p.Due), -int32(p.Scale)))
		s.blocks(2)
		amount := dec("10")
		for _, to := range []chain.Address{account, chain.Address(p.Address), s.hot()} {
			_, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{PriceAmount: &amount, Currency: string(s.network()), Address: string(to)}, Memo: s.memoFor(to),
			})
			var bad *chain.AddressError
			require.ErrorAs(t, err, &bad, to)
		}
	})
}

func (s *counter) memoFor(to chain.Address) string {
	if _, memo, ok := s.client.(chain.Tagger).Untag(to); ok {
		return memo
	}
	return "1"
}

// TestW03_StuckIsReplacedAndPaidOnce: the node takes and forgets; what it is given
// in its place excludes what it may still remember.
func TestW03_StuckIsReplacedAndPaidOnce(t *testing.T) {
	onPosts(t, func(t *testing.T, s *counter) {
		p := s.order("60")
		account, memo := s.apart(chain.Address(p.Address))
		s.pay(account, memo, decimal.New(int64(p.Due), -int32(p.Scale)))
		s.blocks(2)
		s.swallow(true)
		to := s.existing()
		before := s.balance(to)
		amount := dec("10")
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: &amount, Currency: string(s.network()), Address: string(to)}, Memo: "5",
		})
		require.NoError(t, err)
		s.blocks(30) // stuck by far
		require.True(t, s.balance(to).Equal(before))
		s.swallow(false)
		s.blocks(60)
		w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, w.Status)
		require.True(t, s.balance(to).Sub(before).Equal(decimal.New(int64(w.Amount), -int32(p.Scale))), "paid once")
		s.sound()
	})
}
