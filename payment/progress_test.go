package payment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// What is final is received, what is not is pending, what does not count is neither; and
// the head is read for networks on which something came.
func TestProgress(t *testing.T) {
	t.Parallel()
	asked := map[chain.Network]int{}
	h := newShop(t, func(h *shop) {
		h.cfg.Head = func(_ context.Context, n chain.Network) (incoming.Cursor, error) {
			asked[n]++
			return incoming.Cursor{TipRead: h.now, Head: 104}, nil
		}
	})
	nothing, btc := h.create("100", usdt), h.create("100", "BTC")
	part, full := h.create("100", usdt), h.create("100", usdt)
	h.transfer(part, "40").final()
	h.transfer(part, "30").included()
	h.transfer(part, "5").seen()
	h.transfer(part, "20").seen().gone()
	h.transferOf(part, "USDCERC20", "7").included()
	h.transfer(full, "100").included()
	usd, err := h.cfg.Registry.Currency(usdt)
	require.NoError(t, err)
	clear(asked)
	got, err := h.s.Progress(ctx, tenant, []Payment{*h.get(nothing), *h.get(btc), *h.get(part), *h.get(full)})
	require.NoError(t, err)
	coins := func(n int64) ledger.Amount { return ledger.Amount(n) * 1e6 }
	bitcoin, err := h.cfg.Registry.Currency("BTC")
	require.NoError(t, err)
	require.Equal(t, []Progress{
		{Missing: nothing.Due, Required: usd.Confirmations},
		{Missing: btc.Due, Required: bitcoin.Confirmations},
		{Received: coins(40), Pending: coins(35), Missing: coins(25), Required: usd.Confirmations},
		{Pending: coins(100), Confirmations: 5, Required: usd.Confirmations},
	}, got)
	require.Equal(t, map[chain.Network]int{"ETH": 1}, asked)
	none, err := h.s.Progress(ctx, tenant, []Payment{*h.get(nothing)})
	require.NoError(t, err)
	require.Equal(t, got[:1], none)
	require.Equal(t, map[chain.Network]int{"ETH": 1}, asked, "nothing came, so nobody is asked")
}

// What came to the address and does not count is listed until somebody has dealt with it.
func TestUncounted(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p, other := h.create("100", usdt), h.create("100", usdt)
	h.transfer(p, "100").final()
	token := h.transferOf(p, "USDCERC20", "7").final()
	h.transferOf(p, "USDCERC20", "8").seen().gone()
	unbooked := h.transferOf(p, "USDCERC20", "9").seen()
	h.transferOf(other, "USDCERC20", "6").final()
	list := func() (ids []string) {
		t.Helper()
		uncounted, err := h.s.Uncounted(ctx, tenant, &p)
		require.NoError(t, err)
		for _, d := range uncounted {
			require.Equal(t, "wrong_asset", d.SuspenseReason())
			ids = append(ids, d.ID)
		}
		return ids
	}
	require.Equal(t, []string{token.deposit().ID, unbooked.deposit().ID}, list())
	h.after(24 * time.Hour)
	late := h.transfer(p, "5").final()
	uncounted, err := h.s.Uncounted(ctx, tenant, &p)
	require.NoError(t, err)
	require.Len(t, uncounted, 3)
	require.Equal(t, []string{late.deposit().ID, "late"}, []string{uncounted[2].ID, uncounted[2].SuspenseReason()})
}

// Deposits are listed by first sighting, whatever their ids.
func TestDepositsByFirstSighting(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	var made, want []*transfer
	for range 4 {
		made = append(made, h.transfer(p, "1"))
	}
	for _, i := range []int{2, 0, 3, 1} {
		h.now = h.now.Add(time.Second)
		want = append(want, made[i].seen())
	}
	got, err := h.s.Deposits(ctx, tenant, p.ID)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for i := range want {
		require.Equal(t, want[i].deposit().ID, got[i].ID)
	}
}

// The line of the unified history and the last event have the address, the transaction
// that paid, and how the amount is split.
func TestHistoryAndEventOfAPayment(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	line := func() storage.Activity {
		t.Helper()
		a, _, ok, err := storage.Activities.One(ctx, h.store, storage.Tenant(tenant), p.ID)
		require.NoError(t, err)
		require.True(t, ok)
		return a
	}
	due := ledger.Amount(100e6)
	a := line()
	require.Equal(t, []any{p.Address, "", due, due / 100, due - due/100}, []any{a.Address, a.TxHash, a.Amount, a.Fee, a.Net})
	x := h.transfer(p, "100").final()
	a = line()
	require.Equal(t, []any{p.Address, x.s.Tx, due, due / 100, due - due/100}, []any{a.Address, a.TxHash, a.Amount, a.Fee, a.Net})
	u := h.lastUpdate(p)
	require.NotNil(t, u.TransactionHash)
	require.Equal(t, x.s.Tx, *u.TransactionHash)
	require.NotNil(t, u.PaymentType)
	require.Equal(t, h.get(p).Type, *u.PaymentType)

	unpaid := h.create("100", usdt)
	h.after(24 * time.Hour)
	require.Equal(t, Expired, h.get(unpaid).Status)
	u = h.lastUpdate(unpaid)
	require.Nil(t, u.TransactionHash)
	require.Nil(t, u.PaymentType)
}

// What is told again later, and the end of the watch, are no updates.
func TestNothingNewIsNoUpdate(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").final()
	before := h.dump()
	h.now = h.now.Add(time.Minute)
	require.NoError(t, h.s.handle(ctx, x.last))
	require.Equal(t, before, h.dump())
	x.forward(incoming.Forwarded, "sweep")
	h.step()
	updated := h.get(p).UpdatedAt
	require.Equal(t, Completed, h.get(p).Status)
	for range 40 {
		h.after(24 * time.Hour)
	}
	require.Equal(t, updated, h.get(p).UpdatedAt)
	require.False(t, h.get(p).WatchedUntil.IsZero(), "it was written all the same")
}

// A payment at whose address something waits to be decided does not expire, and none does
// while nobody can say. Each network's head is read once a step.
func TestUndecidedDoesNotExpire(t *testing.T) {
	t.Parallel()
	undecided, failure := map[string]bool{}, error(nil)
	heads := map[chain.Network]int{}
	h := newShop(t, func(h *shop) {
		h.cfg.Undecided = func(_ context.Context, n chain.Network, addresses ...string) (map[string]bool, error) {
			require.Equal(h.t, chain.Network("ETH"), n)
			require.Len(h.t, addresses, 2)
			return undecided, failure
		}
		h.cfg.Head = func(_ context.Context, n chain.Network) (incoming.Cursor, error) {
			heads[n]++
			return incoming.Cursor{TipRead: h.now}, nil
		}
	})
	a, b := h.create("100", usdt), h.create("100", "ETH")
	undecided[a.Address] = true
	h.now = h.now.Add(24 * time.Hour)
	failure = failing.ErrGone
	clear(heads)
	n, err := h.s.Step(ctx)
	require.ErrorIs(t, err, failing.ErrGone)
	require.Equal(t, 2, n)
	for network, times := range heads {
		require.Equal(t, 1, times, network)
	}
	require.Equal(t, []Status{Waiting, Waiting}, []Status{h.get(a).Status, h.get(b).Status})
	failure = nil
	h.now = h.now.Add(time.Hour)
	n, err = h.s.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []Status{Waiting, Expired}, []Status{h.get(a).Status, h.get(b).Status})
}

// Whichever read of an operation fails, its error is the answer, and nothing has happened.
func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(h *shop, p Payment) error{
		"create": func(h *shop, _ Payment) error {
			_, err := h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}, Key: "k"})
			return err
		},
		"get": func(h *shop, p Payment) error { _, err := h.s.Get(ctx, tenant, p.ID); return err },
		"list": func(h *shop, _ Payment) error {
			_, _, _, err := h.s.List(ctx, tenant, Filter{Currency: usdt})
			return err
		},
		"deposits": func(h *shop, p Payment) error { _, err := h.s.Deposits(ctx, tenant, p.ID); return err },
		"progress": func(h *shop, p Payment) error {
			_, err := h.s.Progress(ctx, tenant, []Payment{{ID: p.ID, Network: p.Network, Currency: p.Currency, Live: 1}})
			return err
		},
		"uncounted": func(h *shop, p Payment) error { _, err := h.s.Uncounted(ctx, tenant, &p); return err },
		"open":      func(h *shop, _ Payment) error { _, err := h.s.Open(ctx, "ETH"); return err },
		"update": func(h *shop, p Payment) error {
			order := "order-2"
			_, err := h.s.Update(ctx, tenant, p.ID, Patch{OrderID: &order})
			return err
		},
		"cancel": func(h *shop, p Payment) error {
			_, err := h.s.Cancel(ctx, tenant, p.ID)
			return err
		},
		"a new deposit": func(h *shop, p Payment) error { return h.transfer(p, "40").tell(incoming.Seen, false) },
		"a final deposit": func(h *shop, p Payment) error {
			x := h.transfer(p, "100")
			x.s.Height, x.s.BlockTime = 100, h.now
			return x.tell(incoming.Final, true)
		},
	} {
		for n := 1; ; n++ {
			h := newShop(t)
			p := h.create("100", usdt)
			before := h.dump()
			h.store.Calls, h.store.FailAt = 0, n
			err := do(h, p)
			failed := h.store.Calls >= n
			h.store.FailAt = 0
			if !failed {
				require.NoError(t, err, name)
				require.Greater(t, n, 1, name)
				break
			}
			require.ErrorIs(t, err, failing.ErrGone, "%s, read %d", name, n)
			if before != h.dump() {
				require.Fail(t, "something has happened", "%s, read %d: %s", name, n, fmt.Sprint(h.store.posts))
			}
		}
	}
}

// A sum beyond counting stays at the end of the range.
func TestAddUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, ledger.Amount(3), addUp(1, 2))
	require.Equal(t, ledger.MaxAmount, addUp(ledger.MaxAmount, 0))
	require.Equal(t, ledger.MaxAmount, addUp(ledger.MaxAmount-1, 2))
	require.Equal(t, ledger.MaxAmount, addUp(ledger.MaxCredit, ledger.MaxAmount))
}

// The largest credit is one; what is above it is nobody's.
func TestD19_LargestCredit(t *testing.T) {
	t.Parallel()
	for more, quarantined := range map[ledger.Amount]bool{0: false, 1: true} {
		h := newShop(t)
		x := h.transfer(h.create("100", usdt), "1")
		x.s.Amount = ledger.MaxCredit + more
		x.seen()
		require.Equal(t, quarantined, x.deposit().Role == RoleQuarantined, "%d more", more)
	}
}

// A second deposit without a price is not passed over: it is told again.
func TestPaidAndAPartWithoutAPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	h.transfer(p, "0.05").final()
	require.Equal(t, Confirmed, h.get(p).Status)
	h.posted()
	price := h.price["ETH"]
	delete(h.price, "ETH")
	x := h.transfer(p, "0.01").included()
	require.Error(t, x.tell(incoming.Final, true))
	require.Empty(t, h.posted())
	h.price["ETH"] = price
	x.final()
	require.NotEmpty(t, h.posted())
}

// D17: a deposit that was seen late, and turns out to be in a block of before the expiry, is in
// time. One whose block is of later is not.
func TestD17_SeenLateAndMinedInTime(t *testing.T) {
	t.Parallel()
	for before, want := range map[time.Duration]Role{time.Minute: RoleInTime, -time.Minute: RoleUnmatched} {
		h := newShop(t)
		p := h.create("100", usdt)
		h.now = p.ExpiresAt.Add(2 * time.Minute)
		x := h.transfer(p, "100").seen()
		require.Equal(t, RoleUnmatched, x.deposit().Role)
		x.s.Height, x.s.BlockTime = 100, p.ExpiresAt.Add(-before)
		x.must(incoming.Included, false)
		require.Equal(t, want, x.deposit().Role, before)
	}
}

// Late money counts by the price of when it came: none is no price of 0, and a price beyond
// counting is enough for all.
func TestLateDepositAtItsPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t, creditLate)
	p := h.create("100", usdt)
	h.after(12 * time.Hour)
	require.Equal(t, Expired, h.get(p).Status)
	price := h.price["USDT"]
	delete(h.price, "USDT")
	x := h.transfer(p, "100")
	x.s.Height, x.s.BlockTime = 100, h.now
	require.Error(t, x.tell(incoming.Final, true))
	require.Empty(t, h.posted())
	h.price["USDT"] = price
	x.final()
	require.NotEmpty(t, h.posted())
	require.Equal(t, Confirmed, h.get(p).Status)

	h = newShop(t, creditLate)
	p = h.create("100", usdt)
	h.after(12 * time.Hour)
	h.price["USDT"] = "10000000000000000000000000"
	x = h.transfer(p, "1").seen()
	require.Equal(t, ledger.MaxCredit, x.deposit().Weight)
	require.Equal(t, Confirming, h.get(p).Status)
}

// TestUncountedBehindATokenOfNobodys: a stranger sends a payment's address many transfers of
// tokens that nobody lists, which cost him next to nothing. What a customer sends then is shown.
func TestUncountedBehindATokenOfNobodys(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	for range storage.DefaultLimit + 1 {
		spam := h.transfer(p, "1")
		spam.s.Currency, spam.s.Contract = "", "0xspam"
		spam.final()
	}
	h.now = h.now.Add(time.Second)
	token := h.transferOf(p, "USDCERC20", "7").final()
	uncounted, err := h.s.Uncounted(ctx, tenant, &p)
	require.NoError(t, err)
	require.Len(t, uncounted, 1)
	require.Equal(t, token.deposit().ID, uncounted[0].ID)
}
