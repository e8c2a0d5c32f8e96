package e2e_test

import (
	"math/big"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/tron"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// kiosk is a program that embeds the library on a modelled Tron node: no real one
// can be had here.
type kiosk struct {
	setup
	t      testing.TB
	node   *trontest.Node
	app    *cryptopay.App
	tenant string
}

func openKiosk(t testing.TB) *kiosk {
	t.Helper()
	k := &kiosk{t: t, node: trontest.New(t.Name())}
	server := httptest.NewServer(k.node)
	t.Cleanup(server.Close)
	// The shipped currencies, with the node's token in the place of Tether's.
	var listed []chain.Currency
	for _, c := range chain.Mainnet() {
		if c.Network == "TRX" {
			if !c.Native() {
				c.Contract = base58.CheckEncode(k.node.Token[:], 0x41)
			}
			listed = append(listed, c)
		}
	}
	info, err := chain.MainnetRegistry().Network("TRX")
	require.NoError(t, err)
	registry, err := chain.NewRegistry([]chain.NetworkInfo{info}, listed)
	require.NoError(t, err)
	client, err := tron.New(tron.Options{Registry: registry, Genesis: k.node.Genesis(), URL: server.URL})
	require.NoError(t, err)
	tip, err := client.Tip(t.Context())
	require.NoError(t, err)
	k.setup = setup{store: memory.New(), client: client, registry: registry, notifier: &inbox{}, clock: cryptopay.NewManualClock(tip.Head.Time)}
	k.app = compose(t, k.setup)
	name := "kiosk"
	tenant, err := k.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	k.tenant = tenant.ID
	k.step()
	hot, err := k.app.Hot(t.Context(), "TRX", k.tenant)
	require.NoError(t, err)
	k.pay(string(hot), "TRX", dec("2000"))
	k.mine(40)
	return k
}

func (k *kiosk) step() {
	k.t.Helper()
	require.NoError(k.t, k.app.Step(k.t.Context()))
}

// mine adds blocks of three seconds; the library looks every fifth.
func (k *kiosk) mine(blocks int) {
	k.t.Helper()
	for blocks > 0 {
		n := min(blocks, 5)
		k.node.Mine(n)
		k.clock.Advance(time.Duration(3*n) * time.Second)
		k.step()
		blocks -= n
	}
}

func (k *kiosk) until(what string, done func() bool) {
	k.t.Helper()
	for range 60 {
		if done() {
			return
		}
		k.mine(5)
	}
	k.t.Fatalf("300 blocks later: not %s", what)
}

func (k *kiosk) pay(to, currency string, amount decimal.Decimal) string {
	k.t.Helper()
	raw, _, err := base58.CheckDecode(to)
	require.NoError(k.t, err)
	p := trontest.Pay{To: trontest.Account(raw), Amount: new(big.Int).Set(amount.Shift(6).BigInt())}
	if currency != "TRX" {
		p.Contract = k.node.Token
	}
	return k.node.Send(trontest.Plain, p)
}

func (k *kiosk) order(usd, currency string) payment.Payment {
	k.t.Helper()
	p, err := k.app.Payments.Create(k.t.Context(), k.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: currency}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(k.t, err)
	return p
}

func (k *kiosk) is(p payment.Payment, want payment.Status) func() bool {
	return func() bool {
		got, err := k.app.Payments.Get(k.t.Context(), k.tenant, p.ID)
		require.NoError(k.t, err)
		return got.Status == want
	}
}

func (k *kiosk) due(p payment.Payment) decimal.Decimal {
	k.t.Helper()
	c, err := k.registry.Currency(p.Currency)
	require.NoError(k.t, err)
	return c.Decimal(p.Due)
}

func (k *kiosk) withdraw(usd, currency, to string) withdrawal.Withdrawal {
	k.t.Helper()
	amount := dec(usd)
	w, err := k.app.Withdrawals.Create(k.t.Context(), k.tenant, withdrawal.CreateInput{
		Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: to},
		CallbackURL: "https://shop.example/hook",
	})
	require.NoError(k.t, err)
	return w
}

// paid waits for a withdrawal to be completed and wants the recipient to have it
// once.
func (k *kiosk) paid(w withdrawal.Withdrawal) {
	k.t.Helper()
	k.until("withdrawn", func() bool {
		got, err := k.app.Withdrawals.Get(k.t.Context(), k.tenant, w.ID)
		require.NoError(k.t, err)
		require.NotEqual(k.t, withdrawal.Failed, got.Status)
		return got.Status == withdrawal.Completed
	})
	k.mine(60)
	c, err := k.registry.Currency(w.Currency)
	require.NoError(k.t, err)
	held, err := k.client.(chain.Balancer).Balance(k.t.Context(), w.Currency, chain.Address(w.Address))
	require.NoError(k.t, err)
	require.Equal(k.t, c.Decimal(w.Amount).String(), held.String(), "paid once")
}

func (k *kiosk) sound() {
	k.t.Helper()
	reports, err := k.app.Verify(k.t.Context())
	require.NoError(k.t, err)
	require.Len(k.t, reports, 1)
	require.Empty(k.t, reports[0].Ledger.Findings)
	require.Empty(k.t, reports[0].Holds)
	require.Empty(k.t, reports[0].Unexplained)
	require.Empty(k.t, reports[0].Gas)
}

func (k *kiosk) somebody(name string) string {
	k.t.Helper()
	a, err := k.client.AddressOf(testPub(name))
	require.NoError(k.t, err)
	return string(a)
}

// TestTronPaymentAndWithdrawal: coins and tokens come in, are forwarded, and go
// out, and the books prove themselves.
func TestTronPaymentAndWithdrawal(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"TRX", "USDTTRC20"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			k := openKiosk(t)
			p := k.order("50", currency)
			k.pay(p.Address, currency, k.due(p))
			k.mine(1)
			require.True(t, k.is(p, payment.Confirming)())
			k.mine(15)
			require.True(t, k.is(p, payment.Confirming)(), "not solid yet")
			k.until("completed", k.is(p, payment.Completed))
			k.mine(60)
			k.paid(k.withdraw("20", currency, k.somebody("customer of "+currency)))
			k.sound()
		})
	}
}

// TestTronR05_DepositAndWithdrawalAreUnmined: a fork takes a payment away, and
// then our own transaction out of its block; it comes back by itself.
func TestTronR05_DepositAndWithdrawalAreUnmined(t *testing.T) {
	t.Parallel()
	k := openKiosk(t)
	earned := k.order("100", "USDTTRC20")
	k.pay(earned.Address, "USDTTRC20", k.due(earned))
	k.until("completed", k.is(earned, payment.Completed))
	k.mine(60)

	p := k.order("30", "USDTTRC20")
	tx := k.pay(p.Address, "USDTTRC20", k.due(p))
	k.mine(2)
	require.True(t, k.is(p, payment.Confirming)())
	k.node.Reorg(2, tx)
	k.mine(4)
	require.False(t, k.is(p, payment.Confirming)(), "what was dropped is not counted")
	k.pay(p.Address, "USDTTRC20", k.due(p))
	k.until("completed", k.is(p, payment.Completed))

	w := k.withdraw("40", "USDTTRC20", k.somebody("somebody"))
	k.step()
	k.mine(2)
	k.node.Reorg(2)
	k.paid(w)
	k.sound()
}

// TestTronW08_ExpiredWithdrawalIsSentAnewAndPaidOnce: a transaction that no block took is sent anew
// only when its time is over, by a signer that asks for the proof that it is.
func TestTronW08_ExpiredWithdrawalIsSentAnewAndPaidOnce(t *testing.T) {
	t.Parallel()
	k := openKiosk(t)
	p := k.order("100", "USDTTRC20")
	k.pay(p.Address, "USDTTRC20", k.due(p))
	k.until("completed", k.is(p, payment.Completed))
	k.mine(60)
	payouts := func() int {
		rows, err := k.store.Find(t.Context(), storage.Query{
			Table: outgoing.Attempts.Table, Partition: storage.Network("TRX"), Limit: 100,
			Where: []storage.Cond{{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal}},
		})
		require.NoError(t, err)
		return len(rows)
	}
	k.node.Set(func(f *trontest.Fault) { f.Swallow = true })
	w := k.withdraw("40", "USDTTRC20", k.somebody("somebody"))
	k.until("signed a second time", func() bool { return payouts() == 2 })
	k.node.Set(func(f *trontest.Fault) { f.Swallow = false })
	k.paid(w)
	k.sound()
}

// TestFN35_ANodeThatKeepsNoInnerCallsCreditsNothingInSilence: java-tron keeps none by default.
// The App says so as soon as a block shows it, and goes on where a node keeps them.
func TestFN35_ANodeThatKeepsNoInnerCallsCreditsNothingInSilence(t *testing.T) {
	t.Parallel()
	k := openKiosk(t)
	p := k.order("20", "TRX")
	k.node.Set(func(f *trontest.Fault) { f.NoInternal = true })
	raw, _, err := base58.CheckDecode(p.Address)
	require.NoError(t, err)
	payer := trontest.Pay{To: k.node.Payer, Amount: big.NewInt(1), Contract: k.node.Token}
	k.node.Send(trontest.Plain, payer, payer) // a contract that calls a token
	k.node.Send(trontest.Internal, trontest.Pay{To: trontest.Account(raw), Amount: k.due(p).Shift(6).BigInt()})
	k.node.Mine(30)
	k.clock.Advance(90 * time.Second)
	require.ErrorContains(t, k.app.Step(t.Context()), "vm.saveInternalTx")
	require.False(t, k.is(p, payment.Completed)())

	k.node.Set(func(f *trontest.Fault) { f.NoInternal = false })
	k.clock.Advance(5 * time.Minute)
	k.until("credited", k.is(p, payment.Completed))
}
