package payment

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.price["BTC"] = "30000"
	p := h.create("100.00", "BTC", func(in *CreateInput) { in.WalletID, in.CustomerEmail = "branch", "a@b.example" })
	require.Equal(t, Waiting, p.Status)
	require.Equal(t, "0.00333334", h.units(p.Due, "BTC"), "rounded up")
	require.Equal(t, h.now.Add(time.Hour), p.ExpiresAt)
	require.Equal(t, "branch", p.Wallet)
	require.True(t, p.FixedRate)
	require.False(t, p.FeeByUser)
	stored := *h.get(p)
	stored.ReceivedValue = p.ReceivedValue
	require.Equal(t, p, stored)
	require.Empty(t, h.events(p), "creation emits no event")
	a, _, ok, err := storage.Activities.One(ctx, h.store, storage.Tenant(tenant), p.ID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, p.Due, a.Amount)
	require.Equal(t, a.Amount, a.Fee+a.Net)
	require.JSONEq(t, `{"order_id":"order-1","confirmations":0}`, string(a.Metadata))
	_, err = h.s.Get(ctx, "another", p.ID)
	require.ErrorIs(t, err, ErrNotFound)

	// Both forms, an alias, and a fee by the customer.
	q := h.create("100", "USDTTRC20", byUser, func(in *CreateInput) { in.Blockchain, in.Token = "TRON", "USDT" })
	require.Equal(t, "TRX", q.Network)
	require.Equal(t, "101", h.units(q.Due, "USDTTRC20"))
	h.price["USDT"] = "0.9"
	e := h.create("100", "", func(in *CreateInput) { in.Blockchain, in.Token, in.PriceCurrency = "ETH", "USDT", "EUR" })
	require.Equal(t, usdt, e.Currency)
	require.Equal(t, "111.111112", h.units(e.Due, usdt))
}

// TestI01_CreateRefusesAllWrongFieldsAtOnce: digits are read plainly, never
// rounded, and every field that is wrong is named.
func TestI01_CreateRefusesAllWrongFieldsAtOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	minutes := 1441
	_, err := h.s.Create(ctx, tenant, CreateInput{
		Pricing: Pricing{Amount: "1e3", PriceCurrency: "XXX", Blockchain: "ETH"},
		OrderID: strings.Repeat("o", 101), CustomID: strings.Repeat("c", 65), WalletID: strings.Repeat("w", 65),
		CallbackURL: "ftp://x", CustomerEmail: "nobody", ExpiryMinutes: &minutes, Description: "\x00",
	})
	fields := invalid(t, err)
	for _, f := range []string{"amount", "price_currency", "token", "order_id", "custom_id", "wallet_id", "callback_url", "customer_email", "expiry_minutes", "order_description"} {
		require.NotEmpty(t, fields[f], f)
	}
	for _, amount := range []string{"", "0", "-1", "1.001", "1e3", "NaN", "Infinity", "−1", "1,5", " 1", strings.Repeat("9", 41), "0.00"} {
		_, err := h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: amount, Currency: usdt}})
		require.NotEmpty(t, invalid(t, err)["amount"], amount)
	}
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100.500", Currency: usdt}})
	require.NoError(t, err, "trailing zeros do not count")

	var currency *CurrencyError
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "1", Currency: "usdterc20"}})
	require.ErrorAs(t, err, &currency)
	require.Contains(t, currency.Supported, usdt)
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "x", Currency: "NOPE"}})
	require.Len(t, invalid(t, err), 2)
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "1", Currency: usdt, Blockchain: "TRX", Token: "USDT"}})
	require.NotEmpty(t, invalid(t, err)["currency"])
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}, WalletID: "no such wallet"})
	require.ErrorIs(t, err, ErrNotFound)
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "0.01", Currency: usdt}})
	require.NotEmpty(t, invalid(t, err)["amount"], "below the minimum")
	_, err = h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: strings.Repeat("9", 38), Currency: usdt}})
	require.NotEmpty(t, invalid(t, err)["amount"], "more than an amount can be")
}

// What is wrong is told at its field, also where the currency is not the only thing.
func TestFieldsNamed(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	good := CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}}
	require.NoError(t, h.s.Check(good))
	for name, c := range map[string]struct {
		edit func(*CreateInput)
		want []string
	}{
		"no currency":     {func(in *CreateInput) { in.Currency = "" }, []string{"currency"}},
		"a long mailbox":  {func(in *CreateInput) { in.CustomerEmail = strings.Repeat("x", 250) + "@x.de" }, []string{"customer_email"}},
		"two things":      {func(in *CreateInput) { in.Currency, in.CustomerEmail = "NOPE", "x" }, []string{"currency", "customer_email"}},
		"three things":    {func(in *CreateInput) { in.Currency, in.CustomerEmail, in.Amount = "NOPE", "x", "0" }, []string{"currency", "customer_email", "amount"}},
		"half of a pair":  {func(in *CreateInput) { in.Token = "USDT" }, []string{"blockchain"}},
		"a window of 0":   {func(in *CreateInput) { in.ExpiryMinutes = new(int) }, []string{"expiry_minutes"}},
		"a long order id": {func(in *CreateInput) { in.OrderID = strings.Repeat("o", 101) }, []string{"order_id"}},
	} {
		in := good
		c.edit(&in)
		fields := invalid(t, h.s.Check(in))
		require.Len(t, fields, len(c.want), name)
		for _, f := range c.want {
			require.Contains(t, fields, f, name)
		}
		_, err := h.s.Create(ctx, tenant, in)
		require.Equal(t, fields, invalid(t, err), name)
	}
	var currency *CurrencyError
	_, err := h.s.Estimate(ctx, tenant, Pricing{Amount: "1", Currency: "NOPE"})
	require.ErrorAs(t, err, &currency)
	_, _, _, err = h.s.List(ctx, tenant, Filter{Token: "NOPE"})
	require.Contains(t, invalid(t, err), "token")
	_, err = h.s.Deposits(ctx, tenant, "nope")
	require.ErrorIs(t, err, ErrNotFound)
}

// nowhere has no wallets: as those of a tenant that does not exist.
type nowhere struct{}

func (nowhere) OpenWallet(context.Context, string, string) (string, storage.Guard, bool, error) {
	return "", storage.Guard{}, false, nil
}

// TestFE13_APaymentOfAnUnknownTenantNamesTheTenant: not the wallet that it has not, either.
func TestFE13_APaymentOfAnUnknownTenantNamesTheTenant(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Wallets = nowhere{} })
	for _, ref := range []string{"", "till"} {
		in := CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}, WalletID: ref}
		var missing *NotFoundError
		_, err := h.s.Create(ctx, "nobody", in)
		require.ErrorAs(t, err, &missing)
		require.Equal(t, NotFoundError{Field: "tenant", ID: "nobody"}, *missing)
		require.EqualError(t, err, `payment: no tenant "nobody"`)
		_, _, err = h.s.PermanentAddress(ctx, "nobody", AddressInput{ExternalID: "ann", Currency: usdt, WalletID: ref})
		require.ErrorAs(t, err, &missing)
		require.Equal(t, NotFoundError{Field: "tenant", ID: "nobody"}, *missing)
		_, err = h.s.Create(ctx, tenant, in)
		require.ErrorAs(t, err, &missing)
		require.Equal(t, NotFoundError{Field: "wallet_id", ID: ref}, *missing)
	}
}

// dry has no more addresses.
type dry struct{}

func (dry) Take(context.Context, chain.Network, string) (chain.Derived, error) {
	return chain.Derived{}, failing.ErrGone
}

// Without an address there is no payment; with one it keeps what was asked for.
func TestPaymentHasAnAddressAndItsWallet(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	require.Equal(t, []string{"w", ""}, []string{p.Wallet, p.WalletRef})
	p = h.create("100", usdt, func(in *CreateInput) { in.WalletID = "other" })
	require.Equal(t, []string{"other", "other"}, []string{p.Wallet, p.WalletRef})
	none := newShop(t, func(h *shop) { h.cfg.Addresses = dry{} })
	_, err := none.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}})
	require.ErrorIs(t, err, failing.ErrGone)
	_, _, total, err := none.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, total)
}

// editedWallets are wallets that somebody edits just after a payment looked at its own.
type editedWallets struct {
	*shop
	edits  int
	taken  int  // addresses
	closes bool // the last edit closes it
}

func (w *editedWallets) Take(c context.Context, n chain.Network, tenant string) (chain.Derived, error) {
	w.taken++
	return w.shop.Take(c, n, tenant)
}

func (w *editedWallets) OpenWallet(c context.Context, tenant, ref string) (string, storage.Guard, bool, error) {
	p, n := storage.Tenant(tenant), int64(w.edits)
	_, row, _, err := Payments.One(c, w.store, p, "wallet")
	require.NoError(w.t, err)
	if n < 3 {
		w.edits++
		require.NoError(w.t, storage.CommitOne(c, w.store, storage.Change{
			ID: fmt.Sprint("edit ", n), Partition: p, Put: []storage.Row{Payments.Row("wallet", n, time.Time{}, Payment{ID: "wallet"})},
		}))
	}
	return "w", Payments.Guard("wallet", row.Version), !w.closes || row.Version < 3, nil
}

// A wallet that is edited while a payment into it is being made holds nothing up,
// and takes no further address; one that is closed meanwhile is not found.
func TestWalletEditedWhileAPaymentIsMade(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		h := newShop(t)
		w := &editedWallets{shop: h, closes: closes}
		h.cfg.Wallets, h.cfg.Addresses = w, w
		s, err := New(h.cfg)
		require.NoError(t, err)
		p, err := s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}})
		require.Equal(t, 1, w.taken)
		if closes {
			var missing *NotFoundError
			require.ErrorAs(t, err, &missing)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "w", p.Wallet)
	}
}

// As much for money in suspense, which is given to a wallet.
func TestWalletEditedWhileSuspenseIsResolved(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		h := newShop(t)
		h.transferOf(h.create("100", usdt), "USDCERC20", "50").final()
		list, err := h.s.Suspense(ctx, tenant, 10, 0)
		require.NoError(t, err)
		require.Len(t, list, 1)
		h.cfg.Wallets = &editedWallets{shop: h, closes: closes}
		s, err := New(h.cfg)
		require.NoError(t, err)
		d, err := s.Resolve(ctx, tenant, list[0].ID, "w")
		if closes {
			var missing *NotFoundError
			require.ErrorAs(t, err, &missing)
			require.Equal(t, "0", h.balance(ledger.Wallet("w"), "USDCERC20"))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, Resolved, d.Booking)
		require.Equal(t, "50", h.balance(ledger.Wallet("w"), "USDCERC20"))
	}
}

// TestCreateOnceWhileTheFirstIsUnderWay: the same request comes again before the first is
// answered. It is told so, and makes no payment.
func TestCreateOnceWhileTheFirstIsUnderWay(t *testing.T) {
	t.Parallel()
	in := CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}, Key: "k"}
	asked := 0
	h := newShop(t, func(h *shop) {
		h.cfg.NetworkFee = func(context.Context, *chain.Currency) (ledger.Amount, error) {
			if asked++; asked == 1 {
				_, err := h.s.Create(ctx, tenant, in)
				require.ErrorIs(t, err, storage.ErrInProgress)
			}
			return 0, nil
		}
	})
	_, err := h.s.Create(ctx, tenant, in)
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	_, _, total, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.EqualValues(t, 1, total)
}

// TestCreateOnAPairThatIsNot names it, and what there is.
func TestCreateOnAPairThatIsNot(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for _, currency := range []string{"", usdt} {
		_, err := h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: currency, Blockchain: "ETH", Token: "NOPE"}})
		var unknown *CurrencyError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, "ETH NOPE", unknown.Currency)
		require.Contains(t, unknown.Supported, usdt)
	}
}

// TestCreateWithoutAQuoteOfTheNetworkFee: a payment whose fee nobody can tell is not made.
func TestCreateWithoutAQuoteOfTheNetworkFee(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) {
		h.cfg.NetworkFee = func(context.Context, *chain.Currency) (ledger.Amount, error) { return 0, failing.ErrGone }
	})
	_, err := h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}})
	require.ErrorIs(t, err, failing.ErrGone)
	_, _, total, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, total)
}

func TestCreateOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	yes, no := true, false
	in := CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt, FixedRate: &no}, Key: "k"}
	p, err := h.s.Create(ctx, tenant, in)
	require.NoError(t, err)
	require.False(t, p.Replayed)
	h.now = h.now.Add(time.Minute)
	_, err = h.s.Cancel(ctx, tenant, p.ID)
	require.NoError(t, err)
	fixed := false
	in.FixedRate = &fixed // another pointer to the same
	again, err := h.s.Create(ctx, tenant, in)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	p.Replayed, p.ReceivedValue, again.ReceivedValue = true, decimal.Zero, decimal.Zero
	require.Equal(t, p, again, "the first answer, whatever has happened since")
	for name, other := range map[string]CreateInput{
		"nothing":  {Key: "k"}, // judged before validation
		"amount":   {Pricing: Pricing{Amount: "101", Currency: usdt, FixedRate: &no}, Key: "k"},
		"rate":     {Pricing: Pricing{Amount: "100", Currency: usdt, FixedRate: &yes}, Key: "k"},
		"its rate": {Pricing: Pricing{Amount: "100", Currency: usdt}, Key: "k"},
		"order":    {Pricing: in.Pricing, OrderID: "1", Key: "k"},
	} {
		_, err = h.s.Create(ctx, tenant, other)
		require.ErrorIs(t, err, storage.ErrIdempotencyMismatch, name)
		require.ErrorContains(t, err, `"k"`)
	}
	_, count, total, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
	require.EqualValues(t, 1, total)
}
