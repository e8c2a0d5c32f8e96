package webhook

import (
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// A host that does not answer is left alone: after opensAfter attempts in a row
// without an answer its deliveries wait for firstPause, then one of them is tried.
// Each time that one gets no answer either, the pause doubles, up to longestPause.
// Any answer, of whatever status, ends it.
const (
	opensAfter   = 5
	firstPause   = 30 * time.Second
	longestPause = 5 * time.Minute
)

// maxBreakers bounds what is remembered. Hosts beyond are tried each time.
const maxBreakers = 10_000

// hostKey is a host as one tenant reaches it: what a tenant does with a host that
// others use, too, is no reason to keep theirs waiting.
type hostKey struct {
	tenant storage.Partition
	host   string
}

func hostOf(p storage.Partition, to string) hostKey {
	u, err := url.Parse(to)
	if err != nil {
		return hostKey{p, ""}
	}
	return hostKey{p, strings.ToLower(u.Host)}
}

// breakers are the circuit breakers of this process, which each learns for itself.
type breakers struct {
	mu  sync.Mutex
	all map[hostKey]*breaker
}

// breaker is one host's, from its first attempt without an answer on.
type breaker struct {
	failures int
	pause    time.Duration // 0 = closed
	until    time.Time     // nothing is tried before
	probing  bool          // one delivery is being tried
	last     time.Time
}

// hold returns until when a delivery to a host must wait; zero = try it now. Where
// the pause is over, whoever asks first tries, and the others wait for firstPause.
func (b *breakers) hold(k hostKey, now time.Time) (until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.all[k]
	if x == nil || x.pause == 0 {
		return time.Time{}
	}
	if left := x.until.Sub(now); left > 0 && left <= longestPause { // more: the clock was set back
		return x.until
	}
	x.probing, x.until = true, after(now, firstPause)
	return time.Time{}
}

// after is when a pause ends, as a row's due time can say it: to the microsecond. Else a
// delivery could be due before its host is tried.
func after(now time.Time, pause time.Duration) time.Time {
	return now.Add(pause).Truncate(time.Microsecond)
}

// report takes what came of an attempt. opened is true where the host is left
// alone from now on.
func (b *breakers) report(k hostKey, answered bool, now time.Time) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answered {
		delete(b.all, k)
		return false
	}
	x := b.all[k]
	if x == nil {
		if x = b.add(k, now); x == nil {
			return false
		}
	}
	x.failures++
	x.last = now
	switch {
	case x.pause == 0 && x.failures >= opensAfter:
		x.pause, opened = firstPause, true
	case x.probing:
		x.pause = min(2*x.pause, longestPause)
	default:
		return false // begun before it opened, or not enough yet
	}
	x.probing, x.until = false, after(now, x.pause)
	return opened
}

// add makes room by forgetting hosts that nobody tried for long.
func (b *breakers) add(k hostKey, now time.Time) *breaker {
	if len(b.all) >= maxBreakers {
		for old, x := range b.all {
			if now.Sub(x.last) > 2*longestPause {
				delete(b.all, old)
			}
		}
		if len(b.all) >= maxBreakers {
			return nil
		}
	}
	x := &breaker{}
	b.all[k] = x
	return x
}
