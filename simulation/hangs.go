package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// slot is how long an attempt lasts that gets no end: webhook.HTTP's own limit. A process
// of a world attempts one delivery at a time, so all others wait as long.
const slot = 15 * time.Second

var errSwitching = errors.New("simulation: the receiver switches protocols")

// hang lets the receiver of one merchant, or all of them, take all the time that they are
// given.
func (r *run) hang() string {
	r.inbox.slow = pick(r.rng, []string{"", "silent", "101", "endless"})
	r.inbox.slowly = r.rng.IntN(len(r.tenants)+1) - 1
	return fmt.Sprintf("%q of %d", r.inbox.slow, r.inbox.slowly)
}

// slowly is the answer of a receiver that takes all the time that it is given; ok is
// false for every other.
func (r *run) slowly(m *merchant, d *webhook.Delivery) (res webhook.Result, ok bool) {
	if r.calm || r.inbox.slow == "" || r.inbox.slowly >= 0 && r.inbox.slowly != m.n || m.n == r.inbox.dead {
		return res, false
	}
	switch r.inbox.slow {
	case "101":
		res = webhook.Result{Status: http.StatusSwitchingProtocols, Err: errSwitching, Duration: time.Second}
	case "endless": // a body without an end, after a status that says that all is well
		if !r.accept(m, d) {
			return webhook.Result{Status: http.StatusBadRequest, Err: errReceiver}, true
		}
		res = webhook.Result{Status: http.StatusOK, Duration: slot}
	default:
		res = webhook.Result{Err: context.DeadlineExceeded, Duration: slot}
	}
	if res.Err != nil {
		r.outside.judge.Refused(r.hook(m, d))
	}
	r.now = r.now.Add(res.Duration)
	return res, true
}
