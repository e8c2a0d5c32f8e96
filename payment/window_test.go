package payment

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// TestD17_ExpiryBoundary: [created, expiry). A deposit dated at the very
// instant is late; one a microsecond before is in time.
func TestD17_ExpiryBoundary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before time.Duration
		role   Role
	}{{time.Microsecond, RoleInTime}, {0, RoleUnmatched}} {
		h := newShop(t)
		p := h.create("100", usdt)
		h.now = p.ExpiresAt.Add(-c.before)
		x := h.transfer(p, "100").seen()
		require.Equal(t, c.role, x.deposit().Role)

		h = newShop(t) // the same by its block's time, first seen long after
		p = h.create("100", usdt)
		h.tipRead = p.CreatedAt
		h.now = p.ExpiresAt.Add(time.Hour)
		y := h.transfer(p, "100")
		y.s.Height, y.s.BlockTime = 100, p.ExpiresAt.Add(-c.before)
		y.included()
		require.Equal(t, c.role, y.deposit().Role)
	}
}

// TestT02_ExpiryNeedsATipReadAfterIt: at the exact instant nothing is decided,
// nor while the node is down; the shortest and the longest window alike.
func TestT02_ExpiryNeedsATipReadAfterIt(t *testing.T) {
	t.Parallel()
	for _, minutes := range []int{1, 1440} {
		h := newShop(t)
		p := h.create("100", usdt, func(in *CreateInput) { in.ExpiryMinutes = &minutes })
		require.Equal(t, p.CreatedAt.Add(time.Duration(minutes)*time.Minute), p.ExpiresAt)
		h.now = p.ExpiresAt
		h.step()
		require.Equal(t, Waiting, h.get(p).Status, "the instant of expiry itself")
		h.now, h.tipRead = p.ExpiresAt.Add(time.Hour), p.ExpiresAt
		h.step()
		require.Equal(t, Waiting, h.get(p).Status, "the chain was not read past it")
		h.tipRead = p.ExpiresAt.Add(time.Microsecond)
		h.step()
		require.Equal(t, Expired, h.get(p).Status)
	}
}

// TestD17_SeenInTimeAndHandledADayLate: a transfer was seen before the window's end, and the
// network was not read for more than a day after that. It is in time, because the payment
// still waits.
func TestD17_SeenInTimeAndHandledADayLate(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.tipRead = p.CreatedAt
	x := h.transfer(p, "100")
	x.s.FirstSeen = h.now.Add(time.Minute)
	h.now = p.ExpiresAt.Add(2 * holdFor)
	h.step()
	x.seen()
	require.Equal(t, RoleInTime, x.deposit().Role)
	require.Equal(t, Confirming, h.get(p).Status)
}

// TestD05_LessIsExecutedThanWasPromised: a transfer that does less in its block than it said
// in the mempool counts as what it did.
func TestD05_LessIsExecutedThanWasPromised(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").seen()
	require.Equal(t, Confirming, h.get(p).Status)
	less := h.transfer(p, "60")
	x.s.Exact, x.s.Amount = less.s.Exact, less.s.Amount
	x.included()
	require.Equal(t, RoleInTime, x.deposit().Role)
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	require.Empty(t, h.alerts)
	update := h.lastUpdate(p)
	require.Equal(t, []string{p.Currency, p.Address, "100.00000000"}, []string{update.PayCurrency, update.BlockchainAddress, update.PayAmount})
	nothing := h.transfer(p, "0.000001")
	x.s.Exact, x.s.Amount = nothing.s.Exact, nothing.s.Amount
	x.included()
	require.Equal(t, RoleDust, x.deposit().Role)
	require.Equal(t, Waiting, h.get(p).Status)
}

// TestD05_MoreIsExecutedThanAPersonMayLetPass: a transfer that does so much more in its block
// than it said that a person has to look at it is not counted.
func TestD05_MoreIsExecutedThanAPersonMayLetPass(t *testing.T) {
	t.Parallel()
	most := decimal.New(1000, 0)
	h := newShop(t, func(h *shop) { h.cfg.MaxCreditUSD = &most })
	p := h.create("100", usdt)
	x := h.transfer(p, "100").seen()
	more := h.transfer(p, "1000.01")
	x.s.Exact, x.s.Amount = more.s.Exact, more.s.Amount
	x.included()
	require.Equal(t, RoleExcess, x.deposit().Role)
	require.Equal(t, Waiting, h.get(p).Status)
}

// TestPriceOfAKnownDepositIsNotAskedAgain: a floating deposit has the price of when it was
// first seen. Nobody asks for another one, so that it does not matter whether there is one.
func TestPriceOfAKnownDepositIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	x := h.transfer(p, "0.05").seen()
	delete(h.price, "ETH")
	x.final()
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), h.posted())
	require.NotContains(t, h.log.String(), "price_unavailable")
}

// TestD17_FloatingDepositThatTurnsOutInTime: it was seen after the window's end, without a
// price. Its block is dated in time, so that it is valued, and credited at once where that
// block is final.
func TestD17_FloatingDepositThatTurnsOutInTime(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	h.tipRead = p.CreatedAt
	h.now = p.ExpiresAt.Add(time.Hour)
	x := h.transfer(p, "0.05").seen()
	require.Equal(t, RoleUnmatched, x.deposit().Role)
	x.s.Height, x.s.BlockTime = 100, p.ExpiresAt.Add(-time.Second)
	require.NoError(t, x.tell(incoming.Final, true))
	require.Equal(t, RoleInTime, x.deposit().Role)
	require.Equal(t, "2000", x.deposit().Rate.String())
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), h.posted())
}

// TestD17_DepositThatWentAndCameBackTurnsOutInTime: it was seen in time, and for days the nodes
// had no new block: it went from their mempools and came back. Its block is dated in time, so
// that it is credited, and not set aside.
func TestD17_DepositThatWentAndCameBackTurnsOutInTime(t *testing.T) {
	t.Parallel()
	for _, dated := range []time.Duration{-time.Minute, 2 * holdFor} {
		h := newShop(t)
		p := h.create("100", usdt)
		x := h.transfer(p, "100").seen()
		h.after(2 * time.Hour)
		x.gone()
		require.Equal(t, Failed, h.get(p).Status)
		h.after(26 * time.Hour)
		x.seen()
		require.Equal(t, RoleUnmatched, x.deposit().Role)
		x.s.Height, x.s.BlockTime = 100, p.ExpiresAt.Add(dated)
		require.NoError(t, x.tell(incoming.Final, true))
		if dated > 0 {
			require.Equal(t, RoleUnmatched, x.deposit().Role, "mined later: suspense")
			require.Equal(t, Failed, h.get(p).Status)
			continue
		}
		require.Equal(t, RoleInTime, x.deposit().Role)
		require.Equal(t, Confirmed, h.get(p).Status)
		require.Equal(t, InWallet, x.deposit().Booking)
	}
}

// TestFM01_DepositIsJudgedAgainOnceItsTokenIsListed: it came as a token that no process
// listed, and counts as what it is when one lists it.
func TestFM01_DepositIsJudgedAgainOnceItsTokenIsListed(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100")
	exact, units := x.s.Exact, x.s.Amount
	x.s.Currency, x.s.Contract, x.s.Exact, x.s.Amount = "", "0xusdt", exact.Shift(6), 0
	x.included()
	require.Equal(t, RoleUnlisted, x.deposit().Role)
	require.Equal(t, Waiting, h.get(p).Status)
	x.s.Currency, x.s.Exact, x.s.Amount = usdt, exact, units
	x.final()
	require.Equal(t, RoleInTime, x.deposit().Role)
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
}

// TestT02_HeadThatCannotBeRead: nothing is decided on a head that came with an error.
func TestT02_HeadThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var failure error
	h := newShop(t, func(h *shop) {
		h.cfg.Head = func(context.Context, chain.Network) (incoming.Cursor, error) {
			return incoming.Cursor{TipRead: h.now}, failure
		}
	})
	p := h.create("100", usdt)
	h.now = p.ExpiresAt.Add(time.Hour)
	failure = failing.ErrGone
	_, err := h.s.Step(ctx)
	require.ErrorIs(t, err, failing.ErrGone)
	require.Equal(t, Waiting, h.get(p).Status)
	failure = nil
	h.step()
	require.Equal(t, Expired, h.get(p).Status)
}

// TestL13_WalletClosedBeforeItsCreditIsCommitted: the wallet is closed after the decision read
// it. The money goes to the master account, as if it had been closed before.
func TestL13_WalletClosedBeforeItsCreditIsCommitted(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt, func(in *CreateInput) { in.WalletID = "branch" })
	h.store.fail = func(c storage.Change) error {
		if len(c.Post) > 0 && !h.closed["branch"] {
			h.closed["branch"] = true
			row := Payments.Row("closed/branch", 0, time.Time{}, Payment{})
			return h.store.Store.Commit(ctx, storage.Change{ID: "close", Partition: storage.Tenant(tenant), Put: []storage.Row{row}})[0]
		}
		return nil
	}
	x := h.transfer(p, "100").included()
	require.NoError(t, x.tell(incoming.Final, true))
	require.True(t, h.closed["branch"])
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
	require.Equal(t, "0", h.balance(ledger.Wallet("branch"), usdt))
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
}

// TestD17_EndOfTheWindowIsKept: nothing happens at the end of the window of a payment that
// waits for a part to be final, but that it has ended. Where that part is then dropped, the
// payment has failed, and does not wait again.
func TestD17_EndOfTheWindowIsKept(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "40").included()
	h.after(p.ExpiresAt.Sub(h.now) + time.Minute)
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	require.Equal(t, []string{"deposit_received", "waiting>partially_paid"}, h.events(p))
	require.True(t, h.get(p).UpdatedAt.Equal(h.now))
	x.gone()
	require.Equal(t, Failed, h.get(p).Status)
}

// TestD15_UnconfirmedIsPendingOnly: a mempool transfer that is replaced moves
// no money, and the replacement inherits its first sighting and its rate.
func TestD15_UnconfirmedIsPendingOnly(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	x := h.transfer(p, "0.05").seen()
	h.after(59 * time.Minute)
	h.price["ETH"] = "1000"
	h.now = h.now.Add(2 * time.Minute) // past the end, undecided yet
	y := h.transfer(p, "0.05")
	y.s.InheritedFrom = x.s.Tx
	y.seen()
	x.gone()
	require.Empty(t, h.posted())
	require.Equal(t, "0", h.balance("wallet/w", "ETH"))
	require.Equal(t, Confirming, h.get(p).Status)
	require.Equal(t, y.s.Tx, h.get(p).Tx)
	require.Equal(t, RoleInTime, y.deposit().Role)
	require.True(t, x.s.FirstSeen.Equal(y.deposit().FirstSeen))
	y.final()
	require.Equal(t, "99.00", h.get(p).MerchantReceived())
	h.posted()
	z := h.transfer(p, "0.01")
	z.s.FirstSeen = p.CreatedAt
	z.seen()
	require.Empty(t, h.posted(), "not even for a payment that is confirmed already")
}

// TestD16_FinalWithoutProofIsNotFinal: what calls itself final moves nothing
// unless incoming proves it, through the one public door as well.
func TestD16_FinalWithoutProofIsNotFinal(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").included()
	require.NoError(t, x.tell(incoming.Final, false))
	require.NoError(t, h.s.Handle(ctx, incoming.Fact{Sighting: x.s, Version: 99, Head: 1000}))
	h.after(2 * time.Hour)
	require.Empty(t, h.posted())
	require.False(t, x.deposit().Proven)
	require.Equal(t, Confirming, h.get(p).Status)

	y := h.transferOf(p, "USDCERC20", "50").included()
	require.NoError(t, h.s.Handle(ctx, incoming.Fact{Sighting: y.s, Version: 99, Head: 1000}))
	require.Empty(t, h.posted())
}

// TestStaleFactsAreIgnored: an older version of a sighting that arrives late
// changes nothing.
func TestStaleFactsAreIgnored(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").included()
	old := x.last
	x.final()
	before := h.dump()
	require.NoError(t, h.s.handle(ctx, old))
	require.Equal(t, before, h.dump())
}

// TestC01_OlderFactAfterOneThatSaidNothingNew: a transfer is gone, waits again, and is gone
// again. The worker that tells that it waits is slow, and the one that is faster tells
// nothing new; the slow one is late all the same.
func TestC01_OlderFactAfterOneThatSaidNothingNew(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.transfer(p, "100").final()
	x := h.transfer(p, "100").seen()
	require.Equal(t, TypeOver, h.get(p).Type)
	x.gone()
	require.Equal(t, TypeFull, h.get(p).Type)
	x.seq++
	slow := x.last
	slow.sighting.State, slow.version = incoming.Seen, x.seq
	x.gone()
	require.NoError(t, h.s.handle(ctx, slow))
	require.Equal(t, incoming.Gone, x.deposit().State)
	require.Equal(t, TypeFull, h.get(p).Type)
}
