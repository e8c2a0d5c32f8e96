package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

const (
	// hookWait is how long a withdrawal waits for an answer of Config.Policy. A later one is taken
	// when the withdrawal is due again. While some hang, the others are waited for less.
	hookWait, hookWaitLess = 3 * time.Second, 100 * time.Millisecond
	hookLess               = time.Minute
	// hookFor is the deadline of the context that Config.Policy gets. A call that goes on all the
	// same is logged each hookHangs. No other is made of its withdrawal, which would hang, too.
	hookFor, hookHangs = 30 * time.Second, 10 * time.Minute
	// hookKeeps is for how long beyond RetryDelay an answer counts that came too late for its
	// try.
	hookKeeps = time.Minute
	// maxHookKept is how many calls are noted, about, before those go that have ended.
	maxHookKept = 1000
)

var errHookSilent = errors.New("withdrawal: Config.Policy has not answered")

// hookAnswer is what Config.Policy said, or err, why it could not.
type hookAnswer struct {
	verdict Verdict
	reason  string
	err     error
	at      time.Time // when it came
}

// hookCall is one call of Config.Policy. It is kept while it runs, and until a try has used
// its answer: whoever loses a race of commits does not ask again.
type hookCall struct {
	began time.Time
	said  time.Time // when it was logged last that it hangs, or began
	done  chan struct{}
	hookAnswer
}

func (q *hookCall) ended() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// hookCalls are the calls of Config.Policy of this process, by withdrawal.
type hookCalls struct {
	mu   sync.Mutex
	of   map[string]*hookCall
	less time.Time // until then answers are waited for less
}

// forget drops the answer that a try has used.
func (hs *hookCalls) forget(tenant, id string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if q := hs.of[tenant+"/"+id]; q != nil && q.ended() {
		delete(hs.of, tenant+"/"+id)
	}
}

// askPolicy asks Config.Policy about a withdrawal. One that panics, or does not come back in time, is
// an error, so that no other withdrawal waits for it.
func (s *Service) askPolicy(ctx context.Context, w *Withdrawal) (Verdict, string, error) {
	if s.c.Policy == nil {
		return Allow, "", nil
	}
	q, wait := s.beginPolicy(ctx, w)
	select {
	case <-q.done:
		return q.verdict, q.reason, q.err
	default:
	}
	timeout, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-q.done:
		return q.verdict, q.reason, q.err
	case <-timeout.Done():
	}
	if ctx.Err() == nil {
		s.hooks.mu.Lock()
		now := s.now()
		s.hooks.less = now.Add(hookLess)
		hangs := now.Sub(q.said) >= hookHangs
		if hangs {
			q.said = now
		}
		s.hooks.mu.Unlock()
		if hangs {
			s.c.Log.LogAttrs(ctx, slog.LevelError, "policy_hangs", slog.String("tenant", w.Tenant), slog.String("withdrawal", w.ID), slog.Time("since", q.began))
		}
	}
	return AskReview, "", errHookSilent
}

// beginPolicy calls Config.Policy, unless it is being asked already or its answer is there.
func (s *Service) beginPolicy(ctx context.Context, w *Withdrawal) (q *hookCall, wait time.Duration) {
	hs, now, key := &s.hooks, s.now(), w.Tenant+"/"+w.ID
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if wait = hookWait; now.Before(hs.less) {
		wait = hookWaitLess
	}
	if q = hs.of[key]; q != nil && q.counts(now, s.c.RetryDelay+hookKeeps) {
		return q, wait
	}
	if hs.of == nil {
		hs.of = map[string]*hookCall{}
	}
	if len(hs.of) >= maxHookKept {
		for k, q := range hs.of {
			if q.ended() {
				delete(hs.of, k)
			}
		}
	}
	q = &hookCall{began: now, said: now, done: make(chan struct{})}
	hs.of[key] = q
	asked := *w
	ctx = context.WithoutCancel(storage.Apart(ctx))
	go func() {
		defer close(q.done)
		q.hookAnswer = s.callPolicy(ctx, asked)
		q.at = s.now()
	}()
	return q, wait
}

// counts reports whether a call need not be made again: it runs, or has an answer of late.
func (q *hookCall) counts(now time.Time, keeps time.Duration) bool {
	return !q.ended() || q.err == nil && now.Sub(q.at) <= keeps
}

func (s *Service) callPolicy(ctx context.Context, w Withdrawal) (a hookAnswer) {
	defer func() {
		if p := recover(); p != nil {
			a = hookAnswer{err: fmt.Errorf("withdrawal: Config.Policy panicked: %v", p)}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, hookFor)
	defer cancel()
	a.verdict, a.reason, a.err = s.c.Policy(ctx, w)
	a.reason = storable(a.reason)
	return a
}

// storable is a host's text as every store takes it.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason])
	}
	return text
}
