package main

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

var (
	kills    = flag.Int("kills", 10, "how often TestL01 kills the gateway on each store")
	killSeed = flag.Uint64("kill.seed", 0, "what chance follows in tests that kill; 0 = another each time")
)

// durable are the stores that survive the program, each as they promise it.
var durable = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gateway.db") },
	"postgres": func(t *testing.T) string {
		return testenv.Postgres(t).DSN("postgres")
	},
	"mariadb": func(t *testing.T) string { return "mysql://root@" + testenv.MariaDB(t).Address() + "/test" },
	"redis": func(t *testing.T) string {
		return "redis://" + testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Address() + "/0"
	},
}

// places are where a process can be made to end. The rest is left to the clock.
func places() []string {
	out := []string{signed, stored, sent}
	for _, table := range []string{
		"payments", "deposits", "activity", "events", "withdrawals", "transfers", "sightings", "cursors", "addresses", "intents",
		"attempts", "reservations", "outcomes", "sweeps", "topups", "signed_attempts", "idempotency", "coins", "nonces",
	} {
		out = append(out, "before "+table, "after "+table)
	}
	for _, table := range []string{"payments", "events", "withdrawals", "transfers", "sightings", "intents", "outcomes", "sweeps"} {
		out = append(out, "claimed "+table)
	}
	return out
}

// The gateway is killed with -9 in a busy run, again and again, and started on
// the same store: what was answered is there, what was not is there whole or not
// at all, recipients are paid once, webhooks go on in order, the books are sound.
func TestL01_W02_H01_KilledGatewayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills processes")
	}
	for _, name := range testenv.Drawn(t, 2, slices.Sorted(maps.Keys(durable))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := *killSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("-kill.seed=%d", seed)
			killed(t, newTown(t, durable[name](t)), seed)
		})
	}
}

func killed(t *testing.T, w *town, seed uint64) {
	o := w.order(point{})
	o.Hot = true
	p := w.startWith(o)
	require.True(t, p.serves(), "it starts")
	w.float(p)
	stopMining := w.mine(seed)
	defer stopMining()
	m := newMerchant(w, seed)
	m.use(p)
	require.NoError(t, m.open(t.Context()))
	require.NoError(t, m.settle(t.Context(), w.inspect())) // there is money to pay out

	working, stop := context.WithCancel(t.Context())
	defer stop()
	finish := m.work(working, 4, 70*time.Millisecond)
	r := newRandom(seed)
	at := map[string]int{}
	began := time.Now()
	for range *kills {
		if w.between != nil {
			w.between(r)
		}
		m.use()
		p.kill()
		w.skip(afterLeases)
		var place string
		p, place = w.life(r, m)
		at[place]++
	}
	m.use()
	p.kill()
	w.skip(afterLeases)
	p = w.start(point{})
	require.True(t, p.serves())
	m.use(p)
	stop()
	finish()
	took := time.Since(began)
	ends, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*kills)*time.Second)
	defer cancel()
	g := w.inspect()
	require.NoError(t, m.settle(ends, g))
	stopMining()
	resolved, there := m.check(g)
	require.Empty(t, w.box.disorder(), "each object's events came in order")
	t.Logf("%d kills in %s: %d requests answered, %d answers lost, %d given up and looked up (%d were there); %d webhooks, %d again; ends: %v",
		*kills, took.Round(time.Second), m.answered, m.unknown, resolved, there, len(w.box.bodies), w.box.again, at)
}

// afterLeases is how long nothing runs after a kill, by the fast clock: longer
// than any lease, so that the next process takes over what the last one held.
const afterLeases = 6 * time.Minute

// life starts a process, lets it work until chance ends it, and says where that
// was: half of them end at a place, the rest at any moment.
func (w *town) life(r *rand.Rand, m *merchant) (p *process, place string) {
	long := time.Duration(100+r.IntN(300)) * time.Millisecond
	kind, names := r.IntN(12), places()
	at := point{Nth: 1 + r.IntN(2)}
	switch {
	case kind < 3: // around the signature
		at.At = names[r.IntN(3)]
	case kind < 8:
		at.At = names[r.IntN(len(names))]
	}
	if at.At != "" {
		long *= 2
	}
	p = w.start(at)
	if kind == 11 {
		time.Sleep(long / 3)
		p.kill()
		return p, "starting"
	}
	if !p.serves() {
		return p, w.told(p)
	}
	m.use(p)
	if kind == 10 {
		w.box.onArrival(func() { p.signal(syscall.SIGKILL) })
		defer w.box.onArrival(nil)
	}
	select {
	case <-p.done:
		if kind == 10 {
			return p, "webhook sent, no answer"
		}
		return p, w.told(p)
	case <-time.After(long):
		p.kill()
		return p, "any moment"
	}
}

// told is where a process said that it ends.
func (w *town) told(p *process) string {
	<-p.done
	select {
	case place := <-p.said:
		first, _, _ := strings.Cut(place, " ")
		switch first {
		case "before", "after":
			return first + " a commit"
		case "claimed":
			return "after a claim"
		}
		return place
	default:
		w.t.Error("a process ended that nobody killed")
		return "nowhere"
	}
}
