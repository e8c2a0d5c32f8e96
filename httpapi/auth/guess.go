package auth

import (
	"encoding/binary"
	"sync"
	"time"
)

// How wrong secrets slow a client down: the first few are free, then each
// doubles the wait, up to a minute. A quiet while forgets them.
const (
	freeGuesses = 10
	firstWait   = time.Second
	longestWait = time.Minute
	forgotten   = 10 * time.Minute
)

// guesses counts wrong secrets, in this process only: n processes let through n
// times as many. Its memory is fixed. Client ids share slots by keyed hash, so
// nobody can push out another's count, or aim at it, by trying many ids; what a
// flood of ids can do is to make others wait, and of those only the
// applications whose secret was chosen, as a made one is beyond guessing and is
// always let in.
type guesses struct {
	mu    sync.Mutex
	slots [4096]guess
}

type guess struct {
	wrong int32
	last  int64 // µs, of the last one counted
}

// slot is where a client id is counted.
func (s *Service) slot(clientID string) int {
	return int(binary.BigEndian.Uint32(s.mac(forGuess, clientID)) % uint32(len(s.guesses.slots)))
}

// judge says how long the client still has to wait, 0 letting this try count.
func (g *guesses) judge(slot int, now time.Time, right bool) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, at := &g.slots[slot], now.UnixMicro()
	if at < v.last { // the clock was set back: nobody waits longer for that
		v.last = at
	}
	since := time.Duration(at-v.last) * time.Microsecond
	if since >= forgotten {
		v.wrong = 0
	}
	if left := waitAfter(v.wrong) - since; left > 0 {
		return left
	}
	if !right {
		v.wrong, v.last = min(v.wrong+1, 1<<20), at
	}
	return 0
}

// waitAfter is the wait that follows the n-th wrong secret.
func waitAfter(n int32) time.Duration {
	if n < freeGuesses {
		return 0
	}
	if n -= freeGuesses; n > 10 {
		return longestWait
	}
	return min(firstWait<<n, longestWait)
}
