package world

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/sim/world/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// inbox is what all receivers got, and how they behave now.
type inbox struct {
	bodies map[string]string // by id: what was delivered and acknowledged
	mood   string            // "" = well
	moody  int               // which tenant's; −1 = all
	dead   int               // the tenant whose receiver never answers, not even when faults stop; −1 = none
	tries  map[string][]time.Time
}

// receivers is every merchant's end of the webhooks.
type receivers struct{ r *run }

// Notify implements webhook.Notifier.
func (x receivers) Notify(_ context.Context, all []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(all))
	for i := range all {
		out[i] = x.r.receive(&all[i])
	}
	return out
}

var errReceiver = errors.New("world: the receiver did not answer")

func (r *run) receive(d *webhook.Delivery) webhook.Result {
	m := r.owner(d.URL)
	if m == nil {
		r.fail("I16", "a webhook went to %s", d.URL)
		return webhook.Result{Err: errReceiver}
	}
	id := d.Header.Get(webhook.HeaderID)
	mood := r.inbox.mood
	if r.calm || r.inbox.moody >= 0 && r.inbox.moody != m.n {
		mood = ""
	}
	if m.n == r.inbox.dead {
		mood = "hang"
	}
	r.tried(m, id)
	if mood == "half" {
		mood = pick(r.rng, []string{"", "error"})
	}
	if mood != "" && mood != "lose" {
		r.outside.judge.Refused(r.hook(m, d))
	}
	switch mood {
	case "error":
		return webhook.Result{Status: http.StatusInternalServerError, Err: errReceiver}
	case "hang":
		return webhook.Result{Err: context.DeadlineExceeded, Duration: 15 * time.Second}
	case "redirect":
		return webhook.Result{Status: http.StatusFound, Err: errReceiver}
	}
	if !r.accept(m, id, d) {
		return webhook.Result{Status: http.StatusBadRequest, Err: errReceiver}
	}
	if mood == "lose" {
		r.outside.judge.Unheard(m.id, r.now)
		return webhook.Result{Err: errReceiver}
	}
	return webhook.Result{Status: http.StatusOK}
}

// schedule is how long after a failed attempt the next one comes: decisions §6.
var schedule = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}

// tried is H08: attempts keep their distance, unless a process may have lost
// count of them.
func (r *run) tried(m *merchant, id string) {
	if r.lossy() {
		return
	}
	key := fmt.Sprint(m.n, "/", id)
	before := r.inbox.tries[key]
	r.inbox.tries[key] = append(before, r.now)
	switch n := len(before); {
	case n == 0:
	case n > len(schedule):
		r.inside("H08", "webhook %s was sent %d times", id, n+1)
	case r.now.Sub(before[n-1]) < schedule[n-1]-time.Microsecond: // stored times have no more places
		r.inside("H08", "attempt %d of webhook %s came %s after the one before", n+1, id, r.now.Sub(before[n-1]))
	}
}

// hook is a delivery as the judge hears of it.
func (r *run) hook(m *merchant, d *webhook.Delivery) judge.Hook {
	return judge.Hook{Shop: m.id, Secret: m.secret, Header: d.Header, Body: d.Body, At: r.now, Lossy: r.lossy()}
}

// lossy reports whether a process may lose what it did, or the count of what it tried.
func (r *run) lossy() bool {
	return r.rate[Crashes]+r.rate[Pauses]+r.rate[LostCommits]+r.rate[Conflicts]+r.rate[FailedReads]+r.rate[Skew] > 0
}

// accept is what a careful receiver does: I12, I16. He refuses what a sender signed,
// and then slept over.
func (r *run) accept(m *merchant, id string, d *webhook.Delivery) bool {
	r.outside.judge.Received(r.hook(m, d))
	err := webhook.Verify(d.Header, d.Body, r.now, 12*time.Hour, m.secret)
	if errors.Is(err, webhook.ErrStale) && r.current != nil && r.current.paused {
		return false
	}
	if err != nil || !m.signed(d) {
		r.inside("H06", "merchant %d cannot verify %s: %v", m.n, id, err)
	}
	key := string(storage.Tenant(m.id)) + "\x00" + id
	e, ok := r.truth.outbox[key]
	if !ok || e.Body != string(d.Body) {
		r.inside("I16", "merchant %d got %s, which is not what was stored for it", m.n, id)
	}
	if old, ok := r.inbox.bodies[key]; ok && old != string(d.Body) {
		r.inside("I12", "webhook %s has come with two bodies", id)
	}
	r.inbox.bodies[key] = string(d.Body)
	r.counts["webhooks"]++
	return true
}

// signed verifies as the documents say it, by nothing of the library's.
func (m *merchant) signed(d *webhook.Delivery) bool {
	sum := func(parts ...[]byte) []byte {
		h := hmac.New(sha256.New, []byte(m.secret))
		_, _ = h.Write(bytes.Join(parts, []byte("."))) // a hash takes all
		return h.Sum(nil)
	}
	whole := sum([]byte(d.Header.Get("Webhook-Id")), []byte(d.Header.Get("Webhook-Timestamp")), d.Body)
	return d.Header.Get("X-Signature") == hex.EncodeToString(sum(d.Body)) &&
		d.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(whole)
}

func (r *run) owner(url string) *merchant {
	for _, m := range r.tenants {
		if strings.HasPrefix(url, m.url) {
			return m
		}
	}
	return nil
}

func (r *run) receiver() string {
	r.inbox.mood = pick(r.rng, []string{"", "", "error", "half", "hang", "redirect", "lose"})
	r.inbox.moody = r.rng.IntN(len(r.tenants)+1) - 1
	return fmt.Sprintf("%q of %d", r.inbox.mood, r.inbox.moody)
}
