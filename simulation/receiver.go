package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// inbox is what all receivers got, and how they behave now.
type inbox struct {
	mood   string // "" = well
	moody  int    // which tenant's; −1 = all
	slow   string // how one takes all the time that it is given, "" = none does
	slowly int    // which tenant's; −1 = all
	dead   int    // the tenant whose receiver never answers, not even when faults stop; −1 = none
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

var errReceiver = errors.New("simulation: the receiver did not answer")

func (r *run) receive(d *webhook.Delivery) webhook.Result {
	m := r.owner(d.URL)
	if d.URL == "" && d.Tenant == wasted {
		return webhook.Result{Status: 200} // the host hears what came to an address that it gave to nobody
	}
	if d.URL == "" { // for the host alone, which passes it on
		for _, x := range r.tenants {
			if x.id == d.Tenant {
				m = x
			}
		}
	}
	if m == nil {
		r.fail("I16", "a webhook of %s went to %q", d.Tenant, d.URL)
		return webhook.Result{Err: errReceiver}
	}
	if res, ok := r.slowly(m, d); ok {
		return res
	}
	mood := r.inbox.mood
	if r.calm || r.inbox.moody >= 0 && r.inbox.moody != m.n {
		mood = ""
	}
	if m.n == r.inbox.dead {
		mood = "hang"
	}
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
	if !r.accept(m, d) {
		return webhook.Result{Status: http.StatusBadRequest, Err: errReceiver}
	}
	if mood == "lose" {
		r.outside.judge.Unheard(m.id, r.now)
		return webhook.Result{Err: errReceiver}
	}
	return webhook.Result{Status: http.StatusOK}
}

// hook is a delivery as the judge hears of it.
func (r *run) hook(m *merchant, d *webhook.Delivery) judge.Hook {
	return judge.Hook{Shop: m.id, Secret: m.secret, Header: d.Header, Body: d.Body, At: r.now, Lossy: r.lossy()}
}

// lossy reports whether a process may lose what it did, or the count of what it tried.
func (r *run) lossy() bool {
	return r.rate[Crashes]+r.rate[Pauses]+r.rate[LostCommits]+r.rate[Conflicts]+r.rate[FailedReads]+r.rate[Skew] > 0
}

// accept is what a careful receiver does: he refuses what a sender signed, and then slept
// over.
func (r *run) accept(m *merchant, d *webhook.Delivery) bool {
	err := webhook.Verify(d.Header, d.Body, r.now, 12*time.Hour, m.secret)
	late := errors.Is(err, webhook.ErrStale) && r.current != nil && r.current.paused
	h := r.hook(m, d)
	if !late {
		h.Refused = err
	}
	r.outside.judge.Received(h)
	if late {
		return false
	}
	r.counts["webhooks"]++
	return true
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
