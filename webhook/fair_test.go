package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// timeout is what an attempt at a dead host takes.
const timeout = 15 * time.Second

// hosts are receivers in a bubble of time: those that are dead take an attempt's
// whole time and answer nothing.
type hosts struct {
	t     *testing.T
	svc   *webhook.Service
	store storage.Store
	n     atomic.Int64

	mu     sync.Mutex
	dead   map[string]bool
	tried  map[string][]time.Time // by delivery id
	flying map[string]int         // by URL
	most   map[string]int
	leads  []string // ids, in the order of trying
}

var errTimeout = errors.New("i/o timeout")

func (h *hosts) Notify(ctx context.Context, ds []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(ds))
	for i, d := range ds {
		id := d.Tenant + " " + d.Header.Get(webhook.HeaderID)
		h.mu.Lock()
		h.tried[id] = append(h.tried[id], time.Now())
		h.leads = append(h.leads, id)
		h.flying[d.Tenant]++
		h.most[d.Tenant] = max(h.most[d.Tenant], h.flying[d.Tenant])
		dead := h.dead[d.URL]
		h.mu.Unlock()
		took := 10 * time.Millisecond
		if dead {
			took = timeout
		}
		select {
		case <-time.After(took):
			out[i] = webhook.Result{Status: 200}
			if dead {
				out[i] = webhook.Result{Err: errTimeout}
			}
		case <-ctx.Done():
			out[i] = webhook.Result{Err: ctx.Err()}
		}
		h.mu.Lock()
		h.flying[d.Tenant]--
		h.mu.Unlock()
	}
	return out
}

func newHosts(t *testing.T, configure ...func(*webhook.Config)) *hosts {
	h := &hosts{
		t: t, store: memory.New(), dead: map[string]bool{}, tried: map[string][]time.Time{}, flying: map[string]int{}, most: map[string]int{},
	}
	require.NoError(t, h.store.Open(t.Context(), append(webhook.Tables(), storage.Counters.Table)...))
	random := rand.NewChaCha8([32]byte{7})
	box, err := secret.NewBox(bytes.Repeat([]byte{9}, 32), random)
	require.NoError(t, err)
	c := webhook.Config{
		Store: h.store, Notifier: h, Box: box, Random: random, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		NewID: func() string { return fmt.Sprintf("id-%06d", h.n.Add(1)) },
	}
	for _, f := range configure {
		f(&c)
	}
	h.svc, err = webhook.New(c)
	require.NoError(t, err)
	return h
}

// emit makes due events of one tenant, each of an object of its own.
func (h *hosts) emit(tenant, url string, n int) {
	var rows []storage.Row
	for range n {
		row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, fmt.Sprintf("p%06d", h.n.Add(1)), 1, url, 1, time.Now())
		require.NoError(h.t, err)
		rows = append(rows, row)
	}
	require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{
		ID: fmt.Sprint("emit-", h.n.Load()), Partition: storage.Tenant(tenant), Put: rows,
	}))
}

// run dispatches as App.Run does, until stop is called.
func (h *hosts) run() (stop func()) {
	ctx, end := context.WithCancel(h.t.Context())
	work, cut := context.WithCancel(h.t.Context())
	d := h.svc.Dispatch(work, 128)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			n, err := d.Step(work)
			if err != nil {
				h.t.Error(err)
			}
			if n > 0 {
				continue
			}
			select {
			case <-d.Wake():
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		if err := d.Close(context.WithoutCancel(work)); err != nil {
			h.t.Error(err)
		}
	}()
	return func() { end(); <-done; cut() }
}

// first is when each of a tenant's deliveries was tried first, the latest last.
func (h *hosts) first(tenant string) (out []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, at := range h.tried {
		if strings.HasPrefix(id, tenant+" ") {
			out = append(out, at[0])
		}
	}
	return out
}

// TestFS03_DeadReceiversDelayNobodyElse: thousands of due events of one tenant,
// all to receivers that hang, at one host and at as many as there are events; the
// first attempts of others go out long before the first of those times out, also
// while retries are due.
func TestFS03_DeadReceiversDelayNobodyElse(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(i int) string{
		"one host": func(int) string { return "https://dead.example/" },
		"many":     func(i int) string { return fmt.Sprintf("https://dead%d.example/", i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHosts(t)
				for i := range 30 {
					h.dead[url(i)] = true
					h.emit("a", url(i), 100)
				}
				stop := h.run()
				defer stop()
				for round := range 14 { // 7 minutes: retries of what is dead are due among them
					h.emit(fmt.Sprint("b", round), "https://good.example/", 5)
					h.emit("a", "https://a-good.example/", 1)
					before := time.Now()
					time.Sleep(30 * time.Second)
					synctest.Wait()
					got := h.first(fmt.Sprint("b", round))
					require.Len(t, got, 5)
					for _, at := range got {
						require.Less(t, at.Sub(before), 3*time.Second, "round %d", round)
					}
				}
				require.LessOrEqual(t, h.most["a"], 64, "never more than half of the slots")
			})
		})
	}
}

// TestFS03_ClaimsWhatItCanFinish: of a tenant whose receivers hang no more is
// claimed than can be tried before half of the lease is over, whatever is due.
func TestFS03_ClaimsWhatItCanFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t)
		h.dead["https://dead.example/"] = true
		for range 20 {
			h.emit("a", "https://dead.example/", 100)
		}
		stop := h.run()
		time.Sleep(timeout / 2)
		synctest.Wait()
		claimed, err := h.store.Count(t.Context(), storage.Query{
			Table: webhook.Events.Table, Partition: storage.Tenant("a"),
			Where: []storage.Cond{{Column: storage.ColVersion, Op: storage.Gt, Value: int64(1)}},
		})
		require.NoError(t, err)
		require.LessOrEqual(t, claimed, int64(256))
		stop()
	})
}

// claims is a store that counts its claims.
type claims struct {
	storage.Store
	n atomic.Int64
}

func (c *claims) Claim(ctx context.Context, q storage.Claim) ([]storage.Row, error) {
	c.n.Add(1)
	return c.Store.Claim(ctx, q)
}

// TestFS03_FullTenantCausesNoClaims: as much of a tenant waits here as may, because its
// receivers hang. However often Step is called meanwhile, the store is asked once a second.
func TestFS03_FullTenantCausesNoClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var store claims
		h := newHosts(t, func(c *webhook.Config) {
			store.Store = c.Store
			c.Store = &store
		})
		h.dead["https://dead.example/"] = true
		for range 6 {
			h.emit("a", "https://dead.example/", 100)
		}
		work, cut := context.WithCancel(t.Context())
		d := h.svc.Dispatch(work, 128)
		steps := func(n int) {
			for range n {
				_, err := d.Step(work)
				require.NoError(t, err)
			}
		}
		steps(20)
		for range 3 {
			before := store.n.Load()
			steps(100)
			require.Equal(t, before, store.n.Load())
			time.Sleep(time.Second)
			steps(1)
			require.Greater(t, store.n.Load(), before)
		}
		cut()
		synctest.Wait()
		require.NoError(t, d.Close(context.WithoutCancel(work)))
	})
}

// TestFS03_ManyDeadTenants: each newcomer among tenants whose receivers all hang
// still finds a slot before the first of theirs times out.
func TestFS03_ManyDeadTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t)
		h.dead["https://dead.example/"] = true
		for i := range 5 {
			h.emit(fmt.Sprint("a", i), "https://dead.example/", 300)
		}
		stop := h.run()
		defer stop()
		time.Sleep(2 * time.Second)
		before := time.Now()
		h.emit("b", "https://good.example/", 5)
		time.Sleep(timeout)
		synctest.Wait()
		require.Len(t, h.first("b"), 5)
		for _, at := range h.first("b") {
			require.Less(t, at.Sub(before), 3*time.Second)
		}
	})
}

// TestFS03_ScheduleHoldsForEach: whatever the breaker holds back, no delivery is
// tried more often than documented, nor sooner; the first goes at once; and all of
// them arrive within minutes once the host is well.
func TestFS03_ScheduleHoldsForEach(t *testing.T) {
	t.Parallel()
	gaps := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t)
		const dead = "https://dead.example/"
		h.dead[dead] = true
		begin := time.Now()
		h.emit("a", dead, 1)
		stop := h.run()
		time.Sleep(timeout / 2)
		h.emit("a", dead, 60)
		time.Sleep(10 * time.Hour)
		h.mu.Lock()
		require.False(t, h.tried["a p000001/000001"][0].After(begin.Add(time.Second)))
		total := 0
		for id, at := range h.tried {
			total += len(at)
			require.LessOrEqual(t, len(at), 6, id)
			for i := 1; i < len(at); i++ {
				require.GreaterOrEqual(t, at[i].Sub(at[i-1]), gaps[i-1], id)
			}
		}
		h.dead[dead] = false
		h.mu.Unlock()
		require.Less(t, total, 61*3, "what is held back is not tried")
		well := time.Now()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		stop()
		sum, err := h.store.Count(t.Context(), storage.Query{
			Table: webhook.Events.Table, Partition: storage.Tenant("a"),
			Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: webhook.StatusPending}, {Column: "attempts", Op: storage.Eq, Value: 0}},
		})
		require.NoError(t, err)
		require.Zero(t, sum, "what never was tried has come, %s after it is well", time.Since(well))
	})
}

// TestFS03_OneDeliveryKeepsItsTimes: of a lone delivery the breaker changes
// nothing: it is tried at the documented times, and then failed.
func TestFS03_OneDeliveryKeepsItsTimes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		w.answer = func(webhook.Delivery) webhook.Result { return webhook.Result{Err: errTimeout} }
		row := w.emit("a", "p1", 1, "", 1)
		var at []int
		for minute := range 400 {
			w.now = start.Add(time.Duration(minute) * time.Minute)
			before := len(w.sent)
			w.step()
			if len(w.sent) > before {
				at = append(at, minute)
			}
		}
		require.Equal(t, []int{0, 1, 6, 21, 81, 321}, at)
		require.Equal(t, webhook.StatusFailed, w.event("a", row.ID).Status)
	})
}

// TestFS03_OldEventsAreTried: nothing was delivered for two days, and the receiver is away
// for a moment when it goes on. No event is given up that was not tried.
func TestFS03_OldEventsAreTried(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	for i := range 40 {
		w.emit("a", fmt.Sprintf("p%02d", i), 1, "", 1)
	}
	w.now = w.now.Add(48 * time.Hour)
	w.answer = func(webhook.Delivery) webhook.Result { return webhook.Result{Err: errTimeout} }
	w.step()
	w.answer = nil
	for range 60 {
		w.now = w.now.Add(10 * time.Second)
		w.step()
	}
	for i := range 40 {
		require.Equal(t, webhook.StatusDelivered, w.event("a", fmt.Sprintf("p%02d/000001", i)).Status)
	}
}

// TestFS03_HeldBackIsNotDueBefore: a delivery that is held back is due when its host may
// be tried, on a clock that counts nanoseconds, too: whoever claims what is due comes to
// an end.
func TestFS03_HeldBackIsNotDueBefore(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.now = w.now.Add(833 * time.Nanosecond)
	w.setup("a")
	w.answer = func(webhook.Delivery) webhook.Result { return webhook.Result{Err: errTimeout} }
	for i := range 12 {
		w.emit("a", fmt.Sprintf("p%02d", i), 1, "", 1)
	}
	require.Positive(t, w.step())
	require.Zero(t, w.step())
	w.now = w.now.Add(30 * time.Second).Truncate(time.Microsecond)
	for n, rounds := w.step(), 0; n > 0; n = w.step() {
		rounds++
		require.Less(t, rounds, 20, "claimed again and again at one time")
	}
}

// TestFS03_HeldBackEnds: what waits for a host shows why and uses no attempt. A day after
// it was first held back or replayed it is tried all the same, until it has failed. Any
// answer of the host ends the waiting.
func TestFS03_HeldBackEnds(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	w.answer = func(webhook.Delivery) webhook.Result { return webhook.Result{Err: errTimeout} }
	for i := range 40 {
		w.emit("a", fmt.Sprintf("p%02d", i), 1, "", 1)
	}
	w.step()
	require.Len(t, w.sent, 5, "then the host is left alone")
	held := w.event("a", "p39/000001")
	require.Equal(t, webhook.StatusPending, held.Status)
	require.Zero(t, held.Attempts)
	require.Contains(t, held.Error, "does not answer")
	// Other hosts of this tenant, and this host for other tenants, are not held back.
	w.emit("a", "q", 1, "https://other.example/", 1)
	w.emit("b", "q", 1, "https://a.example.com/hook", 1)
	w.step()
	require.Len(t, w.sent, 7)
	for end := w.now.Add(30 * time.Hour); w.now.Before(end); w.now = w.now.Add(10 * time.Second) {
		w.step()
	}
	failed := 0
	for i := range 40 {
		e := w.event("a", fmt.Sprintf("p%02d/000001", i))
		if e.Status == webhook.StatusFailed {
			failed++
		}
		require.NotEmpty(t, e.Error)
	}
	require.Equal(t, 40, failed)

	// Replayed, it waits for a day again; an answer, of whatever status, is an answer.
	w.answer = fails
	ok, err := w.svc.Replay(t.Context(), "a", "p39/000001")
	require.NoError(t, err)
	require.True(t, ok)
	for range 40 {
		w.now = w.now.Add(10 * time.Second)
		w.step()
	}
	require.Positive(t, w.event("a", "p39/000001").Attempts)
	before := len(w.sent)
	for i := range 20 {
		w.emit("a", fmt.Sprintf("r%02d", i), 1, "", 1)
	}
	w.step()
	require.Len(t, w.sent, before+20)
}

// TestFS03_HeldBackForADay: what was not even tried in a day is tried all the same, six
// times by the schedule, and then it has failed. Nothing is given up untried.
func TestFS03_HeldBackForADay(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	w.answer = func(webhook.Delivery) webhook.Result { return webhook.Result{Err: errTimeout} }
	for i := range 10 {
		w.emit("a", fmt.Sprintf("p%d", i), 1, "", 1)
	}
	require.Equal(t, 10, w.step())
	require.Len(t, w.sent, 5, "then the host is left alone")
	day := w.now.Add(24 * time.Hour)
	w.now = day
	require.Equal(t, 10, w.step())
	tries := map[string][]time.Duration{}
	note := func(from int) {
		for _, d := range w.sent[from:] {
			id := d.Header.Get("X-Webhook-Id")
			tries[id] = append(tries[id], w.now.Sub(day))
		}
	}
	note(5)
	require.Len(t, w.sent, 11, "what was not tried, and one of the others for the host's sake")
	for w.now.Before(day.Add(30 * time.Hour)) {
		w.now = w.now.Add(time.Minute)
		before := len(w.sent)
		w.step()
		note(before)
	}
	untried := 0
	for i := range 10 {
		id := fmt.Sprintf("p%d/000001", i)
		e := w.event("a", id)
		require.Equal(t, webhook.StatusFailed, e.Status)
		require.Equal(t, 6, e.Attempts)
		if len(tries[id]) == 6 {
			untried++
			require.Equal(t, []time.Duration{0, time.Minute, 6 * time.Minute, 21 * time.Minute, 81 * time.Minute, 321 * time.Minute}, tries[id])
		}
	}
	require.Equal(t, 5, untried, "five were tried before the host was left alone")
	require.Equal(t, 10, strings.Count(w.logs.String(), "webhook_failed_for_good"))
}

// TestFS03_FirstAttemptsBeforeRetries: what was never tried is claimed and sent
// before what is tried again, however long that has been due.
func TestFS03_FirstAttemptsBeforeRetries(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		w.answer = fails
		for i := range 150 {
			w.emit("a", fmt.Sprintf("old%03d", i), 1, "", 1)
		}
		w.step()
		w.step()
		require.Len(t, w.sent, 150)
		w.now = w.now.Add(time.Hour)
		w.emit("a", "fresh", 1, "", 1)
		w.step()
		require.Equal(t, "fresh/000001", w.sent[150].Header.Get(webhook.HeaderID))
	})
}

// TestFS03_StoppedGivesBack: what was claimed and not begun, and what was cut
// off, is due at once for the next process, uncounted.
func TestFS03_StoppedGivesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t)
		h.dead["https://dead.example/"] = true
		h.emit("a", "https://dead.example/", 100)
		stop := h.run()
		time.Sleep(time.Second)
		stop() // those in flight end by themselves
		rows, err := h.store.Claim(t.Context(), storage.Claim{Table: webhook.Events.Table, Now: time.Now(), Until: time.Now().Add(time.Minute), Max: 1000})
		require.NoError(t, err)
		require.Len(t, rows, 100-32)
		for _, row := range rows {
			require.Zero(t, webhook.Events.Value(row).Attempts)
		}
	})
}

// TestFS06_BacklogOfATenantIsCapped: the newest stay; the oldest are failed, with
// a reason, and can be replayed; nobody else's are touched, and no Change that
// makes an event is refused.
func TestFS06_BacklogOfATenantIsCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t, func(c *webhook.Config) { c.MaxUndelivered = 50 })
		h.dead["https://dead.example/"] = true
		for range 12 {
			h.emit("a", "https://dead.example/", 10)
			h.emit("b", "https://dead.example/", 2)
			time.Sleep(time.Second)
		}
		stop := h.run()
		time.Sleep(10 * time.Second)
		h.emit("a", "https://dead.example/", 30)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		stop()
		pending, err := h.svc.List(t.Context(), "a", webhook.StatusPending, 1000, 0)
		require.NoError(t, err)
		require.Len(t, pending, 50)
		failed, err := h.svc.List(t.Context(), "a", webhook.StatusFailed, 1000, 0)
		require.NoError(t, err)
		require.Len(t, failed, 100)
		newest := webhook.Events.Value(failed[99]).Created
		for _, row := range failed {
			require.Contains(t, webhook.Events.Value(row).Error, "more than 50 newer events")
		}
		for _, row := range pending {
			require.False(t, webhook.Events.Value(row).Created.Before(newest))
		}
		others, err := h.svc.List(t.Context(), "b", webhook.StatusPending, 1000, 0)
		require.NoError(t, err)
		require.Len(t, others, 24)
	})
}

// counted counts the claims of a store.
type counted struct {
	storage.Store
	claims atomic.Int64
}

func (c *counted) Claim(ctx context.Context, claim storage.Claim) ([]storage.Row, error) {
	c.claims.Add(1)
	return c.Store.Claim(ctx, claim)
}

// TestFS03_MoreTenantsBehindThanAreLeftOut: a claim leaves out 100 tenants of which enough
// waits. Where more of them have many events due, each claim still takes many, so that
// others' events are soon reached.
func TestFS03_MoreTenantsBehindThanAreLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counted{}
		h := newHosts(t, func(c *webhook.Config) { store.Store, c.Store = c.Store, store })
		h.dead["https://dead.example/"] = true
		const tenants, events = 103, 300
		for i := range tenants {
			h.emit(fmt.Sprint("a", i), "https://dead.example/", events)
		}
		time.Sleep(time.Second)
		h.emit("b", "https://good.example/", 1)
		stop := h.run()
		defer stop()
		time.Sleep(2 * timeout)
		synctest.Wait()
		require.Len(t, h.first("b"), 1)
		require.Less(t, store.claims.Load(), int64(2*tenants*events/100), "few claims, each of many")
	})
}
