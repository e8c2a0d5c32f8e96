package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// forgetful is a store that fails so many commits of deliveries.
type forgetful struct {
	storage.Store
	left atomic.Int64
}

func (f *forgetful) Commit(ctx context.Context, changes ...storage.Change) []error {
	if strings.HasPrefix(changes[0].ID, "deliver/") && f.left.Add(-1) >= 0 {
		return slices.Repeat([]error{errors.New("no connection")}, len(changes))
	}
	return f.Store.Commit(ctx, changes...)
}

// TestFS03_OutcomesOutliveAStoreThatFails: what was delivered while the store failed is
// stored as soon as it works again, so that no receiver gets it twice.
func TestFS03_OutcomesOutliveAStoreThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &forgetful{}
		h := newHosts(t, func(c *webhook.Config) { store.Store, c.Store = c.Store, store })
		store.left.Store(5)
		h.emit("a", "https://a.example/", 40)
		d := h.svc.Dispatch(t.Context(), 128)
		failed := 0
		for range 600 { // twice the lease
			if _, err := d.Step(t.Context()); err != nil {
				failed++
			}
			time.Sleep(time.Second)
		}
		require.NoError(t, d.Close(t.Context()))
		require.Equal(t, 5, failed)
		require.Len(t, h.leads, 40, "each once")
		left, err := h.store.Count(t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant("a"), Where: []storage.Cond{
			{Column: "status", Op: storage.Ne, Value: webhook.StatusDelivered},
		}})
		require.NoError(t, err)
		require.Zero(t, left)
	})
}

// jealous is a store that says of a lost race how it was lost.
type jealous struct{ storage.Store }

func (j jealous) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := j.Store.Commit(ctx, changes...)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("row %d: %w", i, err)
		}
	}
	return errs
}

// TestH01_LostLeaseIsNoFault: another process has the delivery meanwhile. What came of it
// here is not stored, and nobody is told of an error.
func TestH01_LostLeaseIsNoFault(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	row := w.emit("a", "p1", 1, "", 1)
	w.serve(jealous{w.store})
	w.answer = func(d webhook.Delivery) webhook.Result {
		w.answer = nil
		w.mu.Unlock()
		w.now = w.now.Add(6 * time.Minute) // the lease has ended
		require.Equal(t, 1, w.step())
		w.mu.Lock()
		return fails(d)
	}
	require.Equal(t, 1, w.step())
	require.Len(t, w.sent, 2)
	require.Equal(t, webhook.StatusDelivered, w.event("a", row.ID).Status)
}

// TestFS03_SlowReceiversOutliveNoLease: what waited for more than half of its lease is given
// back, due at once and uncounted.
func TestFS03_SlowReceiversOutliveNoLease(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		w.emit("a", "p1", 1, "", 1)
		late := w.emit("a", "p2", 1, "", 1)
		w.answer = func(webhook.Delivery) webhook.Result {
			w.now = w.now.Add(150 * time.Second) // half of the lease
			return webhook.Result{Status: 200}
		}
		require.Equal(t, 2, w.step())
		require.Len(t, w.sent, 1)
		require.Zero(t, w.event("a", late.ID).Attempts)
		require.Equal(t, 1, w.step())
		require.Equal(t, webhook.StatusDelivered, w.event("a", late.ID).Status)
	})
}

// TestARetryComesBeforeALaterEventOfItsObject: both are due at once.
func TestARetryComesBeforeALaterEventOfItsObject(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		first := w.emit("a", "p1", 1, "", 1)
		w.answer = fails
		require.Equal(t, 1, w.step())
		w.now, w.answer = w.now.Add(time.Minute), nil
		second := w.emit("a", "p1", 2, "", 1)
		require.Equal(t, 2, w.step())
		require.Len(t, w.sent, 3)
		require.Equal(t, first.ID, w.sent[1].Header.Get(webhook.HeaderID))
		require.Equal(t, second.ID, w.sent[2].Header.Get(webhook.HeaderID))
	})
}

// TestAURLThatIsNone: an event whose URL cannot be read is tried like any other, and no
// other one waits for it.
func TestAURLThatIsNone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		w.emit("a", "p1", 1, "https://[", 1)
		w.emit("a", "p2", 1, "", 1)
		require.Equal(t, 2, w.step())
		require.Len(t, w.sent, 2)
	})
}

// TestK01_UnreadableSettingsAreLogged: a Dispatcher does not return what only one tenant's
// settings are the cause of, because who calls would pause. It is in the log, and nothing
// is where all can be read.
func TestK01_UnreadableSettingsAreLogged(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	w.emit("a", "p1", 1, "", 1)
	dispatch := func() {
		d := w.svc.Dispatch(t.Context(), 8)
		n, err := d.Step(t.Context())
		require.NoError(t, err)
		if n > 0 {
			<-d.Wake()
		}
		require.NoError(t, d.Close(t.Context()))
	}
	dispatch()
	require.Len(t, w.sent, 1)
	require.NotContains(t, w.logs.String(), "webhooks_unreadable")
	w.key = 8
	w.restart()
	w.emit("a", "p2", 1, "", 1)
	dispatch()
	require.Len(t, w.sent, 1)
	require.Contains(t, w.logs.String(), "webhooks_unreadable")
}

// TestK01_UnreadableSettingsAreToldOnce: of a tenant, not of each of its events.
func TestK01_UnreadableSettingsAreToldOnce(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	w.key = 8
	w.restart()
	w.emit("a", "p1", 1, "", 1)
	w.emit("a", "p2", 1, "", 1)
	_, err := w.svc.Step(t.Context())
	require.ErrorIs(t, err, secret.ErrSealed)
	require.Equal(t, 1, strings.Count(err.Error(), "settings of"), "%v", err)
}

// contended is a store where each delivery is another process's by the time that it is given
// up. It answers ten looks at what is undelivered.
type contended struct {
	storage.Store
	looks int
}

var errEnough = errors.New("looked at again and again")

func (c *contended) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if c.looks++; q.Table == webhook.Events.Table && c.looks > 10 {
		return nil, errEnough
	}
	return c.Store.Find(ctx, q)
}

func (c *contended) Commit(ctx context.Context, changes ...storage.Change) []error {
	if strings.HasPrefix(changes[0].ID, "deliver/") {
		return slices.Repeat([]error{storage.ErrConflict}, len(changes))
	}
	return c.Store.Commit(ctx, changes...)
}

// TestFS06_GivingUpEnds: what others have at the moment is left for the next time.
func TestFS06_GivingUpEnds(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	w.setup("a")
	for i := range 501 { // one look gives up 500
		w.emit("a", fmt.Sprintf("p%03d", i), 1, "", 1)
	}
	w.bounds.MaxUndelivered = 1
	w.serve(&contended{Store: w.store})
	_, err := w.svc.Step(t.Context())
	require.NoError(t, err)
	require.Empty(t, w.sent, "what was to be given up is not sent")
}

// TestBatchOfOne: one event goes after the other, a first attempt as well as a retry.
func TestBatchOfOne(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		w.bounds.Batch = 1
		w.restart()
		row := w.emit("a", "p1", 1, "", 1)
		w.answer = fails
		require.Equal(t, 1, w.step())
		w.now, w.answer = w.now.Add(time.Minute), nil
		require.Equal(t, 1, w.step())
		require.Equal(t, webhook.StatusDelivered, w.event("a", row.ID).Status)
	})
}

// refusing is a store that answers for the outcomes of one tenant what it is told to.
type refusing struct {
	storage.Store
	partition storage.Partition
	with      atomic.Pointer[error]
}

func (r *refusing) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		if with := r.with.Load(); with != nil && c.Partition == r.partition && strings.HasPrefix(c.ID, "deliver/") {
			errs[i] = *with
			continue
		}
		errs[i] = r.Store.Commit(ctx, c)[0]
	}
	return errs
}

// TestFS03_TenantThatCannotBeStoredStopsNoOther: what came of one tenant's webhooks cannot be
// stored, as its partition is locked or the store refuses it for good. The others' webhooks go
// on, that tenant's are not tried meanwhile, and afterwards nothing of it is lost.
func TestFS03_TenantThatCannotBeStoredStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		again  int // how often the first of it is delivered
	}{
		"locked":  {storage.ErrBusy, 1},
		"refused": {fmt.Errorf("%w: as a test says", storage.ErrMalformed), 2}, // when its lease has ended
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &refusing{partition: storage.Tenant("a")}
				h := newHosts(t, func(c *webhook.Config) { store.Store, c.Store = c.Store, store })
				store.with.Store(&c.answer)
				h.emit("a", "https://a.example/", 1)
				d := h.svc.Dispatch(t.Context(), 128)
				steps := func(n int) {
					for range n {
						_, err := d.Step(t.Context())
						require.NoError(t, err)
						time.Sleep(time.Second)
					}
				}
				tries := func(tenant string) (n int) {
					h.mu.Lock()
					defer h.mu.Unlock()
					for id, at := range h.tried {
						if strings.HasPrefix(id, tenant+" ") {
							n += len(at)
						}
					}
					return n
				}
				steps(3)
				h.emit("b", "https://b.example/", 5)
				steps(10)
				require.Equal(t, 5, tries("b"))
				require.Equal(t, 1, tries("a"))
				store.with.Store(nil)
				steps(600) // twice the lease
				require.NoError(t, d.Close(t.Context()))
				require.Equal(t, c.again, tries("a"))
				left, err := h.store.Count(t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant("a"), Where: []storage.Cond{
					{Column: "status", Op: storage.Ne, Value: webhook.StatusDelivered},
				}})
				require.NoError(t, err)
				require.Zero(t, left)
			})
		})
	}
}
