package cryptopay_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

var anywhere = flag.Bool("halts.all", false, "die at every commit of a halted App, and not at one in four")

// TestFT05_CrashAnywhereOfAHaltedApp: two payouts, and a deposit to forward with gas, are stopped before
// anything of them is done or while they are under way, by a halt or by the host's hook. The process dies
// at a commit of the whole App, or after it: while they are stopped, when that begins or ends, or later.
// Nothing is signed meanwhile, and afterwards all of it is sent, once.
func TestFT05_CrashAnywhereOfAHaltedApp(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for n, c := range []struct {
		name  string
		hook  bool
		after int // steps before they are stopped
	}{{"a halt", false, 0}, {"a halt later", false, 3}, {"the hook", true, 0}, {"the hook later", true, 3}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at, stride := 1+4*n, 16 // each dies at other commits; a run takes a fifth of a second
			if *anywhere {
				at, stride = 1, 1
			}
			fault, other := failing.Undone, failing.Unheard
			for diesHalted(t, c.hook, c.after, at, fault) {
				at, fault, other = at+stride, other, fault
			}
			t.Logf("%d commits", at)
			require.Greater(t, at, 100)
		})
	}
}

// diesHalted plays one such run, and reports whether there was a commit with that number.
func diesHalted(t *testing.T, hook bool, after, at int, fault failing.Fault) (died bool) {
	t.Helper()
	f := &failing.Commits{Store: memory.New()}
	h, why := newHostOn(t, f, 61, "ETH"), ""
	name := fmt.Sprintf("commit %d is %s", at, fault)
	h.configure = func(c *cryptopay.Config) {
		c.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { return why, nil }
		c.Log = slog.New(slog.DiscardHandler)
	}
	h.restart()
	h.earn(usdt, "300")
	before := h.signed()
	tries := func(f func() error) {
		for f() != nil {
			h.restart()
		}
	}
	work := func(blocks int) {
		for range blocks {
			h.clock.Advance(15 * time.Second)
			h.chains["ETH"].Mine(1)
			if h.app.Step(t.Context()) != nil {
				h.restart()
			}
		}
	}
	p := h.create("50", usdt)
	h.pay(p, usdt, dec("50"))
	ids := []string{h.payout(h.tenant, usdt, "20"), h.payout(h.tenant, usdt, "30")}

	f.Seen, f.At = 0, map[int]failing.Fault{at: fault}
	work(after)
	everything := cryptopay.HaltScope{}
	if hook {
		why = "an incident"
	} else {
		tries(func() error {
			_, err := h.app.Operate.Halt(t.Context(), everything, because("keys may be stolen"))
			return err
		})
	}
	halted := h.signed()
	work(12)
	require.Equal(t, halted, h.signed(), "%s: nothing is signed", name)
	if after == 0 {
		require.Equal(t, before, halted, name)
	}
	if why = ""; !hook {
		tries(func() error {
			_, err := h.app.Operate.Lift(t.Context(), everything, because("keys are safe"))
			return err
		})
	}
	work(50)
	require.LessOrEqual(t, len(f.Met), 1, name)
	for _, id := range ids {
		require.Equal(t, "completed", h.status(h.tenant, id), name)
	}
	h.paidOnce(h.tenant, ids...)
	signed := h.signed()
	require.Equal(t, before[chain.ForWithdrawal]+2, signed[chain.ForWithdrawal], "%s: each once", name)
	require.Equal(t, before[chain.ForSweep]+1, signed[chain.ForSweep], name)
	require.Equal(t, before[chain.ForGas]+1, signed[chain.ForGas], name)
	h.sound()
	return len(f.Met) > 0
}
