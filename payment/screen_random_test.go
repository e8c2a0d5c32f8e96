package payment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// screenedWorld is a random world of a host who screens deposits: what happened in it, and what
// is wrong at the end, "" = nothing.
func screenedWorld(t *testing.T, seed uint64) (log []string, broken string) {
	r := rand.New(rand.NewPCG(seed, 7))
	h, _ := screening(t, func(h *shop) {
		h.cfg.Minimums = least(h, usdt, "10")
		if r.IntN(2) == 0 {
			h.cfg.Late = LateCredit
		}
	})
	say := func(f string, a ...any) { log = append(log, fmt.Sprintf(f, a...)) }
	h.s.c.Screen = func(context.Context, Subject) (Verdict, string, error) {
		switch r.IntN(6) {
		case 0, 1:
			return AskReview, "", nil
		case 2:
			return Refuse, "", nil
		case 3:
			return "", "", errors.New("down")
		}
		return Allow, "", nil
	}
	addr := h.permanent("ann", usdt)
	ps := []Payment{h.create("100", usdt), h.create("40", usdt)}
	var xs []*transfer
	state := map[*transfer]string{}
	pending := map[*transfer]bool{}
	tell := func(x *transfer, st incoming.State, final bool) {
		err := x.tell(st, final)
		say("%s %s: %v", x.s.Tx, st, err)
		pending[x] = err != nil
		if err != nil && !errors.Is(err, errUnscreened) {
			broken = fmt.Sprintf("%s %s: %v", x.s.Tx, st, err)
		}
	}
	amounts := []string{"3", "4", "7", "40", "60", "100", "150"}
	for step := 0; step < 60 && broken == ""; step++ {
		switch n := r.IntN(20); {
		case n < 4 && len(xs) < 7:
			cur := usdt
			if r.IntN(8) == 0 {
				cur = "USDCERC20"
			}
			var x *transfer
			if r.IntN(2) == 0 {
				x = h.pay(addr, cur, amounts[r.IntN(len(amounts))])
			} else {
				x = h.transferOf(ps[r.IntN(2)], cur, amounts[r.IntN(len(amounts))])
			}
			xs = append(xs, x)
			say("new %s %s %s at %s", x.s.Tx, x.s.Exact, cur, x.s.Address)
			x.s.Height, x.s.BlockTime = 100, h.now
			state[x] = "included"
			if r.IntN(3) > 0 {
				tell(x, incoming.Included, false)
			}
		case n < 13 && len(xs) > 0:
			x := xs[r.IntN(len(xs))]
			switch state[x] {
			case "included":
				if r.IntN(6) == 0 {
					x.s.Height, x.s.BlockTime, state[x] = 0, time.Time{}, "gone"
					tell(x, incoming.Gone, false)
				} else {
					state[x] = "final"
					tell(x, incoming.Final, true)
				}
			case "final":
				if pending[x] {
					h.now = h.now.Add(10 * time.Minute)
					tell(x, incoming.Final, true)
				} else if r.IntN(3) == 0 {
					x.s.Height, x.s.BlockTime, state[x] = 0, time.Time{}, "gone-final"
					tell(x, incoming.Gone, false)
				}
			case "gone", "gone-final":
				if state[x] == "gone-final" {
					x.s.Generation++
				}
				x.s.Height, x.s.BlockTime, state[x] = 100, h.now, "included"
				tell(x, incoming.Included, false)
			}
		case n < 18 && len(xs) > 0:
			x := xs[r.IntN(len(xs))]
			d, _, ok, _ := Deposits.One(ctx, h.store, storage.Tenant(tenant), DepositID(&x.s))
			if !ok {
				continue
			}
			did := ""
			var err error
			if r.IntN(2) == 0 {
				did = "release"
				_, err = h.s.Release(ctx, tenant, d.ID)
			} else if d.Booking != InSuspense {
				continue
			} else {
				switch r.IntN(3) {
				case 0:
					did = "resolve"
					_, err = h.s.Resolve(ctx, tenant, d.ID, "w")
				case 1:
					did = "refund"
					_, err = h.s.Refund(ctx, tenant, d.ID)
				case 2:
					did = "ignore"
					_, err = h.s.Ignore(ctx, tenant, d.ID)
				}
			}
			say("%s %s (%s %s): %v", did, d.ID, d.Role, d.Booking, err)
			if err != nil && !errors.As(err, new(*StateError)) {
				broken = fmt.Sprintf("%s %s: %v", did, d.ID, err)
			}
		case n == 18:
			h.now = h.now.Add(time.Duration(r.IntN(90)) * time.Minute)
			say("time, and step")
			if _, err := h.s.Step(ctx); err != nil {
				broken = "step: " + err.Error()
			}
		case n == 19 && r.IntN(3) == 0:
			p := ps[r.IntN(2)]
			_, err := h.s.Cancel(ctx, tenant, p.ID)
			say("cancel %s: %v", p.ID, err)
		}
		if broken != "" {
			break
		}
		if strings.Contains(h.log.String(), "payment_step_failed") {
			broken = "a step failed"
			break
		}
		// What is booked is what stands on the chain.
		booked, suspense, written := decimal.Zero, decimal.Zero, decimal.Zero
		received := map[string]ledger.Amount{}
		for _, x := range xs {
			d, _, ok, err := Deposits.One(ctx, h.store, storage.Tenant(tenant), DepositID(&x.s))
			require.NoError(t, err)
			if !ok {
				continue
			}
			switch d.Booking {
			case InSuspense, Ignored:
				booked, suspense = booked.Add(d.Exact), suspense.Add(d.Exact)
			case InWallet:
				booked = booked.Add(d.Exact)
				received[d.Payment] += d.Amount
			case Resolved:
				booked = booked.Add(d.Exact)
			case Written:
				written = written.Add(d.Exact)
			}
			stands := d.Booking == InSuspense || d.Booking == Ignored || d.Booking == InWallet || d.Booking == Resolved || d.Booking == Refunded
			if stands && !strings.HasPrefix(state[x], "final") {
				broken = fmt.Sprintf("%s is %s and booked %s", d.ID, state[x], d.Booking)
			}
			if state[x] == "final" && !pending[x] && !stands && (!d.Role.counted() || !d.Proven) && d.Role != RoleDust {
				broken = fmt.Sprintf("%s is final and stands nowhere: %s %s proven %v", d.ID, d.Role, d.Booking, d.Proven)
			}
			if stands && d.Payment == "" && d.Role.counted() {
				broken = d.ID + " counts for nothing"
			}
		}
		if c := h.sum(ledger.Chain("ETH")); c != written.Sub(booked).String() {
			broken = fmt.Sprintf("chain %s, booked %s, written %s", c, booked, written)
		}
		if c := h.sum(ledger.Suspense); c != suspense.String() {
			broken = fmt.Sprintf("suspense %s, booked there %s", c, suspense)
		}
		list, _, _, err := h.s.List(ctx, tenant, Filter{Limit: 100})
		require.NoError(t, err)
		for _, p := range list {
			if received[p.ID] != p.Received {
				broken = fmt.Sprintf("payment %s received %d, its deposits %d", p.ID, p.Received, received[p.ID])
			}
			if p.Due <= 0 {
				broken = fmt.Sprintf("payment %s of %d", p.ID, p.Due)
			}
		}
		_, open, err := h.s.SuspenseList(ctx, tenant, SuspenseFilter{Status: SuspenseOpen})
		require.NoError(t, err)
		n := int64(0)
		for _, x := range xs {
			if d, _, ok, _ := Deposits.One(ctx, h.store, storage.Tenant(tenant), DepositID(&x.s)); ok && d.SuspenseStatus() == SuspenseOpen {
				n++
			}
		}
		if n != open {
			broken = fmt.Sprintf("%d are open, %d are counted", n, open)
		}
	}
	return log, broken
}

// Whatever the host says of deposits, people decide and forks take: what is booked is what
// stands on the chain, and lists agree with it.
func TestScreen_RandomWorlds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		if log, broken := screenedWorld(t, seed); broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, broken, strings.Join(log[max(0, len(log)-25):], "\n"))
		}
	}
}
