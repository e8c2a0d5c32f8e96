package cryptopay

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Observer hears of each step of work in this process, at once, on the goroutine that
// worked: it must not block, and is called concurrently. Packages observe/prometheus and
// observe/otel have one.
type Observer interface {
	// Stepped is called after a step of a worker: how long it took by Config.Clock, how much
	// it did, and why it failed.
	Stepped(worker string, took time.Duration, did int, err error)
}

// StepFigures say what a worker has done in this process since the App was made.
type StepFigures struct {
	Worker   string
	Steps    int64
	Failures int64
	Did      int64         // pieces of work
	Took     time.Duration // all steps together
	Last     time.Time     // the end of the last step
	// Failing is since when no step has succeeded, Error why the last did not; zero where
	// the last one did.
	Failing time.Time
	Error   string
}

// record is what this process remembers of itself, for Health and Figures.
type record struct {
	mu       sync.Mutex
	steps    map[string]*StepFigures
	alerts   map[string]int64
	verified Verified
	parts    map[string]Part      // as they were last
	probing  map[string]time.Time // probes that are being asked, and since when
	probes   singleflight.Group
}

// SweepWaiting is the kind of a treasury.Notice among Figures.Alerts.
const SweepWaiting = "sweep_waiting_long"

// BooksDiffer is the kind of a reconcile.Difference among Figures.Alerts.
const BooksDiffer = "books_differ"

// alertKinds are what a host's Notify hooks hear of.
var alertKinds = []string{
	string(payment.AlertSuspense), string(payment.AlertReversed), string(payment.AlertQuarantined), string(payment.AlertUnreadable), string(payment.AlertUnscreened),
	withdrawal.NoticeReview, withdrawal.NoticeResent, withdrawal.NoticeReorged, withdrawal.NoticeConflict, withdrawal.NoticeFailed,
	withdrawal.NoticeAltered, withdrawal.NoticeShort, withdrawal.NoticeWaiting, withdrawal.NoticeHouse, withdrawal.NoticeUnreadable, SweepWaiting,
	BooksDiffer, treasury.NoticeApart, treasury.NoticeRefill, treasury.NoticeDeliveredLess,
}

func newRecord() *record {
	r := &record{steps: map[string]*StepFigures{}, alerts: map[string]int64{}, parts: map[string]Part{}, probing: map[string]time.Time{}}
	for _, k := range alertKinds {
		r.alerts[k] = 0
	}
	return r
}

func (r *record) alert(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alerts[kind]++
}

func (r *record) alerted() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.alerts)
}

// counted calls a host's hook, and counts what it hears.
func counted[T any](a *App, kind func(T) string, hook func(context.Context, T)) func(context.Context, T) {
	return func(ctx context.Context, n T) {
		a.record.alert(kind(n))
		if hook != nil {
			hook(ctx, n)
		}
	}
}

func kindOfAlert(n payment.Alert) string      { return string(n.Kind) }
func kindOfNotice(n withdrawal.Notice) string { return n.Kind }
func kindOfSweep(n treasury.Notice) string    { return cmp.Or(n.Kind, SweepWaiting) }

// noted is a worker's step, of which the record and the Observer hear, unless it was ended
// from outside.
func (a *App) noted(worker string, step func(context.Context) (int, error)) func(context.Context) (int, error) {
	return func(ctx context.Context) (did int, err error) {
		began, returned := a.cfg.Clock.Now(), false
		defer func() {
			if ctx.Err() != nil {
				return
			}
			if !returned {
				err = errPanicked // whoever called sees what with
			}
			now := a.cfg.Clock.Now()
			a.record.stepped(worker, now, now.Sub(began), did, err)
			if a.cfg.Observer != nil {
				a.cfg.Observer.Stepped(worker, now.Sub(began), did, err)
			}
		}()
		did, err = step(ctx)
		returned = true
		return did, err
	}
}

var errPanicked = errors.New("cryptopay: the step panicked")

func (r *record) stepped(worker string, now time.Time, took time.Duration, did int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.steps[worker]
	if s == nil {
		s = &StepFigures{Worker: worker}
		r.steps[worker] = s
	}
	s.Steps, s.Did, s.Took, s.Last = s.Steps+1, s.Did+int64(did), s.Took+took, now
	if err == nil {
		s.Failing, s.Error = time.Time{}, ""
		return
	}
	s.Failures++
	if s.Error = err.Error(); s.Failing.IsZero() {
		s.Failing = now
	}
}

// worked lists what workers did, by name.
func (r *record) worked() []StepFigures {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]StepFigures, 0, len(r.steps))
	for _, s := range r.steps {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(x, y StepFigures) int { return cmp.Compare(x.Worker, y.Worker) })
	return out
}

// Verified is what the last complete App.Verify of this process found.
type Verified struct {
	At      time.Time // when it ended; zero = none did
	Tenants int
	Unsound int // tenants whose Report is not Sound
}

func (r *record) verify(v Verified) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verified = v
}

func (r *record) lastVerify() Verified {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified
}
