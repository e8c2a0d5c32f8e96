package payment

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// host is a host's Screen: it says the same of every deposit until a test changes it.
type host struct {
	mu      sync.Mutex
	verdict Verdict
	reason  string
	err     error
	asked   []Subject
}

func (s *host) screen(_ context.Context, sub Subject) (Verdict, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, sub)
	return s.verdict, s.reason, s.err
}

func (s *host) says(v Verdict, reason string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdict, s.reason, s.err = v, reason, err
}

func screening(t *testing.T, set ...func(*shop)) (*shop, *host) {
	t.Helper()
	s := &host{verdict: Allow}
	return newShop(t, append(set, func(h *shop) { h.cfg.Screen = s.screen })...), s
}

func TestScreen_AllowedMoneyCountsAsEver(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100")
	x.s.Memo, x.s.Contract = "7", "0xdac1"
	x.included()
	require.Empty(t, s.asked, "it is not final yet")
	x.final()
	require.Equal(t, Confirmed, h.get(p).Status)
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
	require.Equal(t, []Subject{{
		Tenant: tenant, PaymentID: p.ID, DepositID: x.deposit().ID, Generation: 1, Network: "ETH", Currency: usdt, Contract: "0xdac1",
		Amount: decimal.New(100, 0), From: "customer", To: p.Address, Tx: x.s.Tx, Memo: "7",
	}}, s.asked, "once, and with what is known")
	require.Equal(t, []any{Allow, "", h.now}, []any{x.deposit().Screen, x.deposit().ScreenReason, x.deposit().ScreenedAt})
	x.forward(incoming.Forwarding, "")
	require.Len(t, s.asked, 1)
}

// Held money counts for nothing. Its payment goes on without it, and gets it when a person
// releases it, whatever has become of it.
func TestScreen_HeldMoneyIsReleased(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pays      string
		before    func(h *shop, p Payment)
		held      Status
		status    Status
		then      string
		available string
	}{
		"in the window": {pays: "100", held: Waiting, status: Confirmed, available: "99"},
		"a part, in the window": {
			pays: "40", held: Waiting, status: PartiallyPaid, available: "0",
			then: "a top-up",
		},
		"after the window":         {pays: "100", before: func(h *shop, _ Payment) { h.after(2 * time.Hour) }, held: Expired, status: Confirmed, available: "99"},
		"a month later":            {pays: "100", before: func(h *shop, _ Payment) { h.after(29 * 24 * time.Hour) }, held: Expired, status: Confirmed, available: "99"},
		"a part, after the window": {pays: "40", before: func(h *shop, _ Payment) { h.after(2 * time.Hour) }, held: Expired, status: Expired, available: "39.6"},
		"cancelled by the merchant": {pays: "100", before: func(h *shop, p Payment) {
			_, err := h.s.Cancel(ctx, tenant, p.ID)
			require.NoError(h.t, err)
		}, held: Expired, status: Confirmed, available: "99"},
		"the wallet was closed": {pays: "100", before: func(h *shop, _ Payment) { h.closed["wallet"] = true }, held: Waiting, status: Confirmed, available: "99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := screening(t)
			s.says(AskReview, "on a list", nil)
			p := h.create("100", usdt)
			x := h.transfer(p, c.pays).final()
			require.Equal(t, RoleHeld, x.deposit().Role)
			require.Equal(t, []any{AskReview, "on a list", RoleInTime}, []any{x.deposit().Screen, x.deposit().ScreenReason, x.deposit().HeldAs})
			require.Equal(t, Waiting, h.get(p).Status)
			require.Equal(t, scenario("c −"+c.pays+", S +"+c.pays), h.posted())
			require.Len(t, h.alerts, 1)
			require.Equal(t, AlertSuspense, h.alerts[0].Kind)
			require.Contains(t, h.alerts[0].Text, "held: on a list")
			if c.before != nil {
				c.before(h, p)
			}
			require.Equal(t, c.held, h.get(p).Status)

			out, err := h.s.Release(ctx, tenant, x.deposit().ID)
			require.NoError(t, err)
			require.Equal(t, RoleInTime, out.Role)
			require.Equal(t, c.status, h.get(p).Status)
			require.Equal(t, c.available, h.balance(ledger.Wallet("w"), usdt))
			require.Equal(t, 1, count(h.events(p), "deposit_received"), "once")
			_, err = h.s.Release(ctx, tenant, x.deposit().ID)
			require.ErrorAs(t, err, new(*StateError), "it is released")
			if c.then != "" {
				s.says(Allow, "", nil)
				h.transfer(p, "60").final()
				require.Equal(t, Confirmed, h.get(p).Status)
				require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
				require.Equal(t, "0", h.sum(ledger.Suspense))
			}
		})
	}
}

func count(list []string, what string) (n int) {
	for _, v := range list {
		if v == what {
			n++
		}
	}
	return n
}

// Money that was refused is a person's business, and no payment's.
func TestScreen_RefusedMoneyNeverCounts(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	s.says(Refuse, "sanctioned", nil)
	p := h.create("100", usdt)
	x, y := h.transfer(p, "100").final(), h.transfer(p, "50").final()
	require.Equal(t, RoleRefused, x.deposit().Role)
	require.Equal(t, "150", h.sum(ledger.Suspense))
	_, err := h.s.Release(ctx, tenant, x.deposit().ID)
	require.ErrorAs(t, err, new(*StateError))
	require.ErrorContains(t, err, "refused")
	list, n, err := h.s.SuspenseList(ctx, tenant, SuspenseFilter{Status: SuspenseOpen, Reason: ReasonUnmatched})
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	require.Equal(t, p.ID, list[0].PaymentID)
	s.says(Allow, "", nil)
	h.transfer(p, "100").final()
	require.Equal(t, Confirmed, h.get(p).Status, "other money pays it")
	_, err = h.s.Refund(ctx, tenant, x.deposit().ID)
	require.NoError(t, err)
	_, err = h.s.Resolve(ctx, tenant, y.deposit().ID, "w")
	require.NoError(t, err)
	require.Equal(t, "0", h.sum(ledger.Suspense))
	require.Equal(t, "149", h.balance(ledger.Wallet("w"), usdt))
	// What was refunded, is taken away and comes back stays refunded.
	x.gone()
	require.Equal(t, Written, x.deposit().Booking)
	x.again().final()
	require.Equal(t, []any{RoleRefused, Refunded}, []any{x.deposit().Role, x.deposit().Booking})
	require.Equal(t, "149", h.balance(ledger.Wallet("w"), usdt))
}

// Whatever is booked is asked about: late money, another asset, and money that no payment
// waits for. What is released waits in suspense for its own reason.
func TestScreen_MoneyThatMatchesNothing(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	s.says("who knows", "", nil)
	p := h.create("100", usdt)
	wrong := h.transferOf(p, "USDCERC20", "20").final()
	stray := h.transferOf(Payment{Network: "ETH", Address: "0xstray"}, usdt, "7").final()
	h.after(2 * time.Hour)
	late := h.transfer(p, "100").final()
	dust := h.transfer(p, "0.000001").final()
	require.Len(t, s.asked, 3, "not about dust")
	require.Equal(t, RoleDust, dust.deposit().Role)
	require.Equal(t, []string{p.ID, "", p.ID}, []string{s.asked[0].PaymentID, s.asked[1].PaymentID, s.asked[2].PaymentID})
	for x, role := range map[*transfer]Role{wrong: RoleWrongToken, stray: RoleStray, late: RoleUnmatched} {
		require.Equal(t, []any{RoleHeld, InSuspense, AskReview}, []any{x.deposit().Role, x.deposit().Booking, x.deposit().Screen})
		_, err := h.s.Release(ctx, tenant, x.deposit().ID)
		require.NoError(t, err)
		require.Equal(t, []any{role, InSuspense}, []any{x.deposit().Role, x.deposit().Booking})
		_, err = h.s.Release(ctx, tenant, x.deposit().ID)
		require.ErrorAs(t, err, new(*StateError))
	}
	require.Equal(t, Expired, h.get(p).Status)
	require.Equal(t, "127", h.sum(ledger.Suspense))
	_, err := h.s.Release(ctx, tenant, "ETH/none:0")
	require.ErrorIs(t, err, ErrNotFound)
}

// A host that cannot tell keeps nothing back but that deposit, is asked again, later and later,
// and a person hears of it once.
func TestScreen_NoAnswer(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	s.says("", "", errors.New("the service is \x00down"))
	p := h.create("100", usdt)
	x := h.transfer(p, "60").included()
	other := h.transfer(p, "40").included()
	tell := func() error { return x.tell(incoming.Final, true) }
	require.ErrorIs(t, tell(), errUnscreened)
	require.Equal(t, []any{Confirming, Unbooked, false}, []any{h.get(p).Status, x.deposit().Booking, x.deposit().Proven})
	require.Contains(t, x.deposit().ScreenReason, "the service is")
	require.Equal(t, []any{h.now, h.now.Add(30 * time.Second)}, []any{x.deposit().ScreenedAt, x.deposit().ScreenNext})
	since := h.now
	require.ErrorIs(t, tell(), errUnscreened)
	require.Len(t, s.asked, 1, "not before it is due again")

	s.says(Allow, "", nil)
	other.final()
	require.True(t, other.deposit().Proven, "others go on")
	s.says("", "", errors.New("still down"))
	for range 20 {
		h.now = x.deposit().ScreenNext
		require.ErrorIs(t, tell(), errUnscreened)
	}
	require.Equal(t, since, x.deposit().ScreenedAt)
	require.Equal(t, h.now.Add(10*time.Minute), x.deposit().ScreenNext)
	require.Len(t, h.alerts, 1, "once")
	require.Equal(t, []any{AlertUnscreened, x.deposit().ID, p.ID}, []any{h.alerts[0].Kind, h.alerts[0].Deposit, h.alerts[0].Payment})
	require.Contains(t, h.alerts[0].Text, "still down")
	require.Empty(t, h.posted())

	s.says(Allow, "", nil)
	require.ErrorIs(t, tell(), errUnscreened)
	h.now = x.deposit().ScreenNext
	require.NoError(t, tell())
	require.Equal(t, Confirmed, h.get(p).Status)
	require.Equal(t, []any{Allow, "", h.now, time.Time{}, false}, []any{x.deposit().Screen, x.deposit().ScreenReason, x.deposit().ScreenedAt, x.deposit().ScreenNext, x.deposit().ScreenTold})
}

// A hook that panics, or does not come back, costs the deposit that it was asked about.
func TestScreen_PanicsAndHangs(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	hangs := make(chan struct{})
	defer close(hangs)
	answer := make(chan struct{})
	h.s.c.Screen = func(ctx context.Context, sub Subject) (Verdict, string, error) {
		_, _, _ = s.screen(ctx, sub)
		switch sub.Amount.String() {
		case "1":
			panic("a bug")
		case "2":
			<-hangs
		case "3":
			<-answer
		}
		return Allow, "", nil
	}
	ps := map[string]Payment{}
	var xs []*transfer
	for _, amount := range []string{"1", "2", "3", "4"} {
		p := h.create(amount, usdt)
		ps[amount] = p
		xs = append(xs, h.transfer(p, amount).included())
	}
	errs := storage.Work(ctx, h.store, xs, func(x *transfer) string { return x.s.Address }, func(ctx context.Context, x *transfer) error {
		f := fact{sighting: x.s, version: x.seq + 1, head: 119, final: true}
		f.sighting.State = incoming.Final
		return h.s.handle(ctx, f)
	})
	require.ErrorContains(t, errs[0], "panicked: a bug")
	require.ErrorIs(t, errs[1], errSilent)
	require.ErrorIs(t, errs[2], errSilent)
	require.NoError(t, errs[3])
	for amount, status := range map[string]Status{"1": Confirming, "2": Confirming, "3": Confirming, "4": Confirmed} {
		p := ps[amount]
		require.Equal(t, status, h.get(p).Status, amount)
	}
	close(answer) // it comes late, and is taken as soon as the deposit is due
	third := xs[2].deposit()
	<-h.s.questions.of[third.generated("screen")].done
	xs[2].seq++
	require.NoError(t, xs[2].tell(incoming.Final, true))
	require.Equal(t, Confirmed, h.get(ps["3"]).Status)
	require.Len(t, s.asked, 4, "nobody was asked twice")
	h.now = h.now.Add(time.Hour)
	xs[1].seq++
	require.ErrorIs(t, xs[1].tell(incoming.Final, true), errUnscreened)
	require.Len(t, s.asked, 4, "what hangs is not called again beside that")
}

// A decision that is lost, to a race or to a store that fails, is made again with the answer
// that is there.
func TestScreen_IsNotAskedAgainForALostCommit(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	s.says(AskReview, "look", nil)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").included()
	down := errors.New("the store is down")
	h.store.fail = func(storage.Change) error { return down }
	require.ErrorIs(t, x.tell(incoming.Final, true), down)
	require.Equal(t, Unbooked, x.deposit().Booking)
	n := 0
	h.store.fail = func(storage.Change) error {
		if n++; n < 3 {
			return storage.ErrConflict
		}
		return nil
	}
	require.NoError(t, x.tell(incoming.Final, true))
	require.Equal(t, RoleHeld, x.deposit().Role)
	require.Len(t, s.asked, 1)
	require.Empty(t, h.s.questions.of, "nothing is kept for ever")

	// A process that dies between the answer and the commit asks again: nothing was booked.
	y := h.transfer(p, "30").included()
	h.store.fail = func(storage.Change) error { return down }
	require.ErrorIs(t, y.tell(incoming.Final, true), down)
	h.store.fail = nil
	another, err := New(h.cfg)
	require.NoError(t, err)
	require.NoError(t, another.handle(ctx, y.last))
	require.Len(t, s.asked, 3)
	require.Equal(t, RoleHeld, y.deposit().Role)
	require.NoError(t, h.s.handle(ctx, y.last))
	require.Len(t, s.asked, 3)
	require.Equal(t, "130", h.sum(ledger.Suspense))
}

// Two processes that decide about one deposit book it once.
func TestScreen_TwoWorkers(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	another, err := New(h.cfg)
	require.NoError(t, err)
	var ids sync.Mutex
	h.s.c.NewID = func() string { ids.Lock(); defer ids.Unlock(); h.n++; return "race-" + itoa(h.n) }
	another.c.NewID = h.s.c.NewID
	for _, v := range []Verdict{Allow, AskReview, Refuse} {
		s.says(v, "", nil)
		p := h.create("100", usdt)
		x := h.transfer(p, "100").included()
		f := x.last
		f.version, f.final, f.sighting.State = f.version+1, true, incoming.Final
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = []*Service{h.s, another}[i%2].handle(ctx, f) })
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, storage.ErrConflict)
			}
		}
		require.NoError(t, h.s.handle(ctx, f))
		require.Equal(t, v, x.deposit().Screen)
	}
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
	require.Equal(t, "200", h.sum(ledger.Suspense))
}

// What a reorg takes away and brings back is asked about again.
func TestScreen_Reorg(t *testing.T) {
	t.Parallel()
	for _, first := range []Verdict{Allow, AskReview, Refuse} {
		for _, second := range []Verdict{Allow, AskReview, Refuse} {
			for _, person := range []string{"", "release", "credit", "ignore"} {
				h, s := screening(t)
				s.says(first, "", nil)
				p := h.create("100", usdt)
				x := h.transfer(p, "100").final()
				switch person {
				case "release":
					_, _ = h.s.Release(ctx, tenant, x.deposit().ID)
				case "credit":
					_, _ = h.s.Resolve(ctx, tenant, x.deposit().ID, "w")
				case "ignore":
					_, _ = h.s.Ignore(ctx, tenant, x.deposit().ID)
				}
				x.gone()
				require.Equal(t, []any{"0", "0", Reversed, Verdict("")}, []any{h.sum(ledger.Suspense), h.sum(ledger.Wallet("w")), x.deposit().Booking, x.deposit().Screen})
				s.says(second, "", nil)
				x.again().final()
				require.Len(t, s.asked, 2)
				require.Equal(t, 2, s.asked[1].Generation)
				at := string(first) + ", " + person + ", " + string(second)
				if second == Allow {
					require.Equal(t, []any{Confirmed, "99", "0"}, []any{h.get(p).Status, h.balance(ledger.Wallet("w"), usdt), h.sum(ledger.Suspense)}, at)
				} else {
					require.Equal(t, []any{"0", "100"}, []any{h.balance(ledger.Wallet("w"), usdt), h.sum(ledger.Suspense)}, at)
				}
			}
		}
	}
}

// At a permanent address a payment that is held fails, and completes when it is released.
func TestScreen_PermanentAddress(t *testing.T) {
	t.Parallel()
	h, s := screening(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	s.says(AskReview, "", nil)
	a := h.permanent("ann", usdt)
	x := h.pay(a, usdt, "100").final()
	require.Equal(t, RoleHeld, x.deposit().Role)
	list, _, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, Failed, list[0].Status)
	require.Equal(t, list[0].ID, s.asked[0].PaymentID)
	s.says(Allow, "", nil)
	require.Equal(t, Confirmed, h.pay(a, usdt, "50").final().payment().Status, "others go on")
	_, err = h.s.Release(ctx, tenant, x.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, Confirmed, x.payment().Status)
	require.Equal(t, list[0].ID, x.payment().ID)
	require.Equal(t, "148.5", h.balance(ledger.Wallet("w"), usdt))

	// Small money that is held does not add up, until it is released.
	s.says(AskReview, "", nil)
	small := h.pay(a, usdt, "6").final()
	require.Equal(t, RoleHeld, small.deposit().Role)
	s.says(Allow, "", nil)
	other := h.pay(a, usdt, "4").final()
	require.Equal(t, InSuspense, other.deposit().Booking)
	_, err = h.s.Release(ctx, tenant, small.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, InWallet, small.deposit().Booking)
	require.Equal(t, other.payment().ID, small.payment().ID)
	require.Equal(t, "158.4", h.balance(ledger.Wallet("w"), usdt))
	require.Equal(t, "0", h.sum(ledger.Suspense))
	s.says(AskReview, "", nil)
	alone := h.pay(a, usdt, "3").final()
	_, err = h.s.Release(ctx, tenant, alone.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, []any{RoleSmall, InSuspense}, []any{alone.deposit().Role, alone.deposit().Booking})
	s.says(Allow, "", nil)
	require.Equal(t, InWallet, h.pay(a, usdt, "7").final().deposit().Booking)
	require.Equal(t, InWallet, alone.deposit().Booking)
}

// What was final before there was a Screen is not asked about, and without a price nobody is.
func TestScreen_WhoIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	h, s := screening(t)
	h.s.c.Screen = nil
	p := h.create("100", usdt)
	part := h.transfer(p, "40").final()
	h.s.c.Screen = s.screen
	s.says(Refuse, "", nil)
	part.must(incoming.Final, true)
	require.Empty(t, s.asked)
	s.says(Allow, "", nil)
	h.transfer(p, "60").final()
	require.Len(t, s.asked, 1)
	require.Equal(t, Confirmed, h.get(p).Status)

	price := h.price["BTC"]
	floating := false
	b := h.create("100", "BTC", func(in *CreateInput) { in.FixedRate = &floating })
	delete(h.price, "BTC")
	x := h.transfer(b, "1").included()
	require.ErrorIs(t, x.tell(incoming.Final, true), rates.ErrUnavailable)
	require.Len(t, s.asked, 1)
	h.price["BTC"] = price
	require.NoError(t, x.tell(incoming.Final, true))
	require.Len(t, s.asked, 2)
}

// Without a Screen a deposit costs what it costs with none known.
func TestScreen_NoneCostsNothing(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	done := h.store.done
	h.transfer(p, "100").seen().final()
	require.Equal(t, done+3, h.store.done, "one Change for each state")
	h2, _ := screening(t)
	q := h2.create("100", usdt)
	done = h2.store.done
	h2.transfer(q, "100").seen().final()
	require.Equal(t, done+3, h2.store.done, "and none more for an answer")
}
