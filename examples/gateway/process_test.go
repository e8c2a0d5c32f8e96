package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
)

// town is everything around the gateways of a test: the chains, which live on
// when a gateway dies, the receiver of webhooks, and the clock.
type town struct {
	t     testing.TB
	store string // as -store takes it
	key   string
	box   *mailbox
	urls  map[chain.Network]string
	sims  map[chain.Network]*sim.Chain
	hook  string // URL of box

	env     map[string]string // further settings of the gateways
	between func(*rand.Rand)  // before a gateway that works is killed, nil = nothing

	mu    sync.Mutex
	clock fast
}

// networks of the town: one of each family, with two confirmations.
var townNetworks = []chain.Network{"AVAX", "BTC"}

func newTown(t testing.TB, store string) *town {
	t.Helper()
	w := &town{
		t: t, store: store, key: filepath.Join(t.TempDir(), "key"), box: newMailbox(),
		urls: map[chain.Network]string{}, sims: map[chain.Network]*sim.Chain{}, clock: fast{Epoch: time.Now().UTC()},
	}
	_, err := makeKey(w.key)
	require.NoError(t, err)
	for _, n := range townNetworks {
		c, err := simulated(n, w.now)
		require.NoError(t, err)
		h, err := remote.Handler(c.Client())
		require.NoError(t, err)
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		w.sims[n], w.urls[n] = c, server.URL
	}
	receiver := httptest.NewServer(w.box)
	t.Cleanup(receiver.Close)
	w.hook = receiver.URL
	return w
}

func (w *town) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.Now()
}

// skip moves all clocks; processes that live keep theirs.
func (w *town) skip(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock.Skipped += d
}

func (w *town) order(at point) order {
	w.mu.Lock()
	defer w.mu.Unlock()
	return order{Store: w.store, Key: w.key, Chains: w.urls, Clock: w.clock, Point: at, Env: w.env}
}

// mine lets the chains grow until the returned function is called; now and then
// the last block is replaced by an empty one, and what it held comes later.
func (w *town) mine(seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, c := range w.sims {
		wg.Go(func() {
			random := newRandom(seed)
			for (fast{}).Wait(ctx, blockEvery) == nil {
				if random.IntN(60) == 0 {
					_, _ = c.Reorg(1) // the first block cannot be replaced
				}
				c.Mine(1)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// blockEvery is the time between two blocks, by the fast clock.
const blockEvery = 1500 * time.Millisecond

// process is a gateway in a process of its own.
type process struct {
	cmd  *exec.Cmd
	said chan string   // what is noteworthy of what it said
	up   chan struct{} // closed when base is set
	done chan struct{} // closed when it is gone
	base string

	hot   map[chain.Network]chain.Address
	knows chan chain.Network // whose hot address it has said
}

// start runs a gateway; it serves when up is closed.
func (w *town) start(at point) *process {
	w.t.Helper()
	return w.startWith(w.order(at))
}

func (w *town) startWith(o order) *process {
	w.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(w.t, err)
	errs := io.Writer(os.Stderr)
	if os.Getenv("CRYPTOPAY_TEST_QUIET") != "" {
		errs = io.Discard
	}
	return launch(w.t, errs, append(os.Environ(), child+"="+string(text)))
}

// launch runs this program again, in an environment that makes it a gateway.
func launch(t testing.TB, errs io.Writer, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = errs
	_, err = cmd.StdinPipe() // it ends when we are gone
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{
		cmd: cmd, said: make(chan string, 8), up: make(chan struct{}), done: make(chan struct{}),
		hot: map[chain.Network]chain.Address{}, knows: make(chan chain.Network, 16),
	}
	go p.listen(out)
	t.Cleanup(func() { p.signal(syscall.SIGKILL); <-p.done })
	return p
}

// listen reads what the process says until it is gone.
func (p *process) listen(out io.Reader) {
	const at = "cryptopay is at "
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if place, ok := strings.CutPrefix(line, reached); ok {
			p.said <- place
		}
		if hot, ok := strings.CutPrefix(line, hotLine); ok {
			n, rest, _ := strings.Cut(hot, " ")
			a, _, _ := strings.Cut(rest, ": ")
			p.hot[chain.Network(n)] = chain.Address(a)
			p.knows <- chain.Network(n)
		}
		if base, ok := strings.CutPrefix(line, at); ok {
			p.base, _, _ = strings.Cut(base, ",")
			close(p.up)
		}
	}
	_ = p.cmd.Wait() // most are killed
	close(p.done)
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// serves waits until the process serves; false says that it is gone.
func (p *process) serves() bool {
	select {
	case <-p.up:
		return true
	case <-p.done:
		return false
	}
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// inspect opens the town's gateway in this process: to read, not to work.
func (w *town) inspect() *gateway {
	w.t.Helper()
	g, err := w.order(point{}).open(w.t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, g.store.Close()) })
	return g
}

// float gives hot addresses coins of the operator's own.
func (w *town) float(p *process) {
	w.t.Helper()
	for n, c := range w.sims {
		gas, err := chain.MainnetRegistry().Gas(n)
		require.NoError(w.t, err)
		require.NotEmpty(w.t, p.hot[n])
		_, err = c.Fund(p.hot[n], gas.Code, decimal.NewFromInt(floatCoins))
		require.NoError(w.t, err)
		c.Mine(10)
	}
}
