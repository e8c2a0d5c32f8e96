package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Budget counts the calls to a node, and keeps them to a number a minute. Calls for which there
// is no room wait in the order in which they came. While the node has said that it wants not to be
// asked, calls fail at once. Each process has a budget of its own. It is
// safe for concurrent use. A nil Budget neither counts nor bounds.
type Budget struct {
	minute int // 0 = no bound
	turn   chan struct{}

	mu      sync.Mutex
	start   time.Time
	seconds [window + 1]second // of calls that ended, by second
	total   int64
	flying  int // calls under way
	waiting int
	since   time.Time // when calls began to wait
	rests   time.Time // until when the node wants not to be asked
}

// second is how many calls ended within one second.
type second struct {
	at int64 // seconds since start
	n  int
}

const (
	window = 60 // seconds
	// A sixth of a minute's calls goes into any ten seconds, so that nobody waits for the rest of
	// a minute that another used up.
	parts    = 6
	share    = window / parts
	smallest = window // calls a minute: ten in ten seconds
)

// longestRest is how long a node is not asked at most, whatever it says.
const longestRest = 5 * time.Minute

// NewBudget allows so many calls a minute, at least 60; 0 = any number, which are counted. It
// is made for a client of that name, which its error begins with.
func NewBudget(client string, perMinute int) (*Budget, error) {
	if perMinute != 0 && perMinute < smallest {
		return nil, fmt.Errorf("%s: Options.CallsPerMinute must be at least %d, or 0 for no bound: %d", client, smallest, perMinute)
	}
	return &Budget{minute: perMinute, turn: make(chan struct{}, 1), start: wall()}, nil
}

// wall is the time by which a node counts: that of no App's clock.
func wall() time.Time { return time.Now() } //nolint:forbidigo // nodes are real, whatever clock an App is given

// most is how many calls of n may go into one request.
func (b *Budget) most(n int) int {
	if b == nil || b.minute == 0 {
		return n
	}
	return min(n, b.minute/parts)
}

// Heed has nothing asked of the node for as long as it wants, where err is of one that was asked too
// often and says how long that is.
func (b *Budget) Heed(err error) {
	var limited *chain.LimitedError
	if b == nil || !errors.As(err, &limited) || limited.After <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := wall().Add(min(limited.After, longestRest)); until.After(b.rests) {
		b.rests = until
	}
}

// rest is for how long the node wants not to be asked.
func (b *Budget) rest() time.Duration { return max(b.rests.Sub(wall()), 0) }

// resting is the error of a call while the node wants not to be asked, nil = it may be.
func (b *Budget) resting() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.rest(); left > 0 {
		return &chain.LimitedError{After: left}
	}
	return nil
}

// enter waits until there is room for n calls and takes it. Whoever enters leaves.
func (b *Budget) enter(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	if err := b.resting(); err != nil || b.atOnce(n) {
		return err
	}
	b.wait(n)
	defer b.waited(n)
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return b.spent(ctx)
	}
	for {
		if err := b.resting(); err != nil || b.take(n) {
			return err
		}
		next := time.NewTimer(time.Second - wall().Sub(b.start)%time.Second) //nolint:forbidigo // see wall
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return b.spent(ctx)
		}
	}
}

func (b *Budget) spent(ctx context.Context) error {
	return fmt.Errorf("%w: no room within Options.CallsPerMinute (%d): %w", chain.ErrNode, b.minute, ctx.Err())
}

// atOnce takes room for n calls where there is some and nobody waits for it.
func (b *Budget) atOnce(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting == 0 && b.room(n)
}

func (b *Budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.room(n)
}

// room takes room for n calls where there is some. A call counts until ten seconds after the end of
// the second in which its answer came: when it reached the node nobody here knows.
func (b *Budget) room(n int) bool {
	if b.minute > 0 && b.flying+b.ended(share)+n > b.minute/parts {
		return false
	}
	b.begin(n)
	return true
}

func (b *Budget) begin(n int) { b.flying, b.total = b.flying+n, b.total+int64(n) }

// ended counts the calls that ended within so many whole seconds before this one, and within this.
func (b *Budget) ended(seconds int64) (n int) {
	now := b.now()
	for _, s := range b.seconds {
		if s.at >= now-seconds {
			n += s.n
		}
	}
	return n
}

func (b *Budget) now() int64 { return int64(wall().Sub(b.start) / time.Second) }

// leave says that n calls have ended, however they did.
func (b *Budget) leave(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= n
	now := b.now()
	s := &b.seconds[now%int64(len(b.seconds))]
	if s.at != now {
		*s = second{at: now}
	}
	s.n += n
}

// Note counts n calls that nothing bounds.
func (b *Budget) Note(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.begin(n)
	b.mu.Unlock()
	b.leave(n)
}

func (b *Budget) wait(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == 0 {
		b.since = wall()
	}
	b.waiting += n
}

func (b *Budget) waited(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting -= n
}

// Usage is how much of it is used.
func (b *Budget) Usage() chain.Usage {
	if b == nil {
		return chain.Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u := chain.Usage{Total: b.total, Minute: b.flying + b.ended(window), Most: b.minute, Waiting: b.waiting, Resting: b.rest()}
	if b.waiting > 0 {
		u.Waited = wall().Sub(b.since)
	}
	return u
}
