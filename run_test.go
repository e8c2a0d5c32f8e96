package cryptopay_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Run does in the background what Step does at once, and ends when told to.
func TestRunWorksUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, 5, "BTC")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.app.Run(ctx) }()

	p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	for range 200_000 {
		if h.payment(p.ID).Status == payment.Completed {
			break
		}
		if h.chains["BTC"].Height() < 40 {
			h.chains["BTC"].Mine(1)
		}
		h.clock.Advance(time.Second)
		runtime.Gosched()
	}
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	cancel()
	require.NoError(t, <-done)
	h.sound()
}

// A worker that fails is left out and told of; the others go on.
func TestStepGoesOnWithoutAFailingWorker(t *testing.T) {
	t.Parallel()
	h := newHost(t, 6, "BTC", "ETH")
	h.step()
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	broken := errors.New("node is down")
	h.chains["ETH"].Front().FailNext(1000, broken)
	h.chains["BTC"].Mine(3)
	err = h.app.Step(t.Context())
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "incoming/ETH")
	require.Equal(t, payment.Completed, h.payment(p.ID).Status, "the other network does not wait")
}

// New refuses what cannot work and says what is missing.
func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := newHost(t, 7, "BTC")
	good := cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{unsimulated{h.chains["BTC"].Client()}}, Key: bytes.Repeat([]byte{1}, 32),
	}
	_, err := cryptopay.New(good)
	require.NoError(t, err)
	for want, spoil := range map[string]func(*cryptopay.Config){
		"Store":  func(c *cryptopay.Config) { c.Store = nil },
		"Chains": func(c *cryptopay.Config) { c.Chains = nil },
		"Key":    func(c *cryptopay.Config) { c.Key = nil },
		"32":     func(c *cryptopay.Config) { c.Key = []byte("canary 8f14e45") },
		"two":    func(c *cryptopay.Config) { c.Chains = append(c.Chains, c.Chains[0]) },
	} {
		c := good
		spoil(&c)
		_, err := cryptopay.New(c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary", "K02: the key is in no error")
	}
}

// Nobody is shown an address of a chain that is not being read: what is paid
// before the first look would never be seen.
func TestNoAddressBeforeTheChainIsRead(t *testing.T) {
	t.Parallel()
	h := newHost(t, 8, "BTC")
	h.chains["BTC"].Front().FailNext(1000, errors.New("node is down"))
	_, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.ErrorIs(t, err, cryptopay.ErrNotReady)
	h.chains["BTC"].Front().Honest()

	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	h.chains["BTC"].Mine(5)
	h.step()
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
}

func TestManualClock(t *testing.T) {
	t.Parallel()
	c := cryptopay.NewManualClock(time.Unix(1000, 0))
	woken := make(chan error, 1)
	go func() { woken <- c.Wait(t.Context(), time.Minute) }()
	for waiting := true; waiting; {
		select {
		case err := <-woken:
			require.NoError(t, err)
			waiting = false
		default:
			c.Advance(time.Second)
			runtime.Gosched()
		}
	}
	require.False(t, c.Now().Before(time.Unix(1060, 0)), "woken early")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Wait(ctx, time.Hour), context.Canceled)
}

// I07: nothing of the host's is touched or asked.
func TestIDsAreOfTheInjectedClockAndRandomness(t *testing.T) {
	t.Parallel()
	first, second := newHost(t, 9, "BTC"), newHost(t, 9, "BTC")
	require.Equal(t, first.tenant, second.tenant, "the same seed gives the same ids")
	require.True(t, strings.HasPrefix(first.tenant, "019b7ca9-"), "a UUIDv7 of the manual clock's time")
}

// What is kept for a day is forgotten after it, and the host's own work is done
// beside the App's.
func TestX03_StepForgetsOutlivedResponses(t *testing.T) {
	t.Parallel()
	h := newHost(t, 7, "BTC")
	more := 3
	h.configure = func(c *cryptopay.Config) {
		c.Workers = []cryptopay.Worker{{Name: "own", Every: time.Second, Step: func(context.Context) (int, error) {
			if more == 0 {
				return 0, nil
			}
			more--
			return 1, nil
		}}}
	}
	h.restart()
	_, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}, Key: "k"})
	require.NoError(t, err)
	kept := func() int64 {
		n, err := h.store.Count(t.Context(), storage.Query{Table: storage.OnceTable.Table, Partition: storage.Tenant(h.tenant)})
		require.NoError(t, err)
		return n
	}
	h.clock.Advance(23 * time.Hour)
	h.step()
	require.EqualValues(t, 1, kept())
	require.Zero(t, more)
	h.clock.Advance(2 * time.Hour)
	h.step()
	require.Zero(t, kept())
}

// A worker that could not be told from another, or does nothing, is refused: two of one name
// would make every scrape fail.
func TestE10_WorkersThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, 9, "ETH")
	step := func(context.Context) (int, error) { return 0, nil }
	for _, c := range []struct {
		list []cryptopay.Worker
		says string
	}{
		{[]cryptopay.Worker{{Name: "a", Step: step}, {Name: "a", Step: step}}, `two workers have the name "a"`},
		{[]cryptopay.Worker{{Name: "payments", Step: step}}, `two workers have the name "payments"`},
		{[]cryptopay.Worker{{Step: step}}, "needs a Name and a Step"},
		{[]cryptopay.Worker{{Name: "a"}}, "needs a Name and a Step"},
		{[]cryptopay.Worker{{Name: "a", Step: step, Every: -1}}, "must not be negative"},
	} {
		cfg := h.app.Config()
		cfg.Key, cfg.Workers = hostKey, c.list
		_, err := cryptopay.New(cfg)
		require.ErrorContains(t, err, c.says)
	}
}

// A worker that does not say how long it rests does not turn round and round.
func TestWorkerWithoutEvery(t *testing.T) {
	t.Parallel()
	h := newHost(t, 9, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Workers = []cryptopay.Worker{{Name: "own", Step: func(context.Context) (int, error) { return 0, nil }}}
	}
	h.restart()
	workers := h.app.Workers()
	own := workers[len(workers)-1]
	require.Equal(t, "own", own.Name)
	require.Equal(t, time.Second, own.Every)
}
