// Package lane is group commit: callers queue Changes and wait, and the first
// of them commits for all who queued meanwhile. It needs no goroutine and no
// timer. Idle latency is one commit; under load batches grow by themselves.
//
// What it promises:
//
//   - Changes of one partition are judged in the order in which they were
//     queued, also where a partition was locked elsewhere and had to wait.
//   - A partition that stays locked elsewhere stalls no other: after a few tries
//     one of its own callers waits for it, and the rest go on. Changes that do not
//     wait (Change.NoWait) are storage.ErrBusy then.
//   - The Changes of one call for one shard are one batch, unless there are more
//     than a batch takes.
//   - The one who commits does so under a context of its own: nobody's
//     cancelled request takes a batch down. A caller whose context ends gets
//     its error, an unknown outcome; what of it was not taken yet is taken
//     back. (A caller that is committing for others notices after its batch.)
//   - A batch that the database refuses is loaded and judged again; refused
//     twice, it goes Change by Change, so that one bad Change fails alone.
package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Errors by which a Target steers the lane. Wrap them.
var (
	// ErrSkipped, as the error of one Change: its partition is locked elsewhere.
	// Nothing happened to it; it stays queued.
	ErrSkipped = errors.New("lane: partition is locked elsewhere")

	// ErrRefused, as the error of a batch: the database rolled it back for sure
	// and may take it in another try (deadlock, serialization, busy, a broken
	// constraint).
	ErrRefused = errors.New("lane: batch was refused and rolled back")
)

// Target is the store below: one transaction per call.
type Target interface {
	// Write locks the partitions of the Changes, loads, judges and stores them
	// in one transaction and returns one verdict each, valid only with a nil
	// error. Partitions locked elsewhere are skipped (ErrSkipped for all their
	// Changes) unless wait. storage.ErrBusy: the database did not let the batch in, in
	// the time that it waits, and nothing happened. An error that wraps neither that
	// nor ErrRefused is an unknown outcome of the whole batch.
	Write(ctx context.Context, wait bool, changes []storage.Change) ([]error, error)
}

// Config of a lane.
type Config struct {
	// Shards is how many batches may be committed at once; a partition belongs
	// to one of them. Defaults to 1.
	Shards int
	// MaxBatch bounds the Changes of one batch. Defaults to 1000.
	MaxBatch int
	// Timeout bounds one transaction. Defaults to 30 s.
	Timeout time.Duration
	// Skips is how often a locked partition is passed over before one is
	// waited for. Defaults to 3.
	Skips int
}

// Lane commits Changes in batches to a Target.
type Lane struct {
	target Target
	cfg    Config
	shards []shard
}

// New makes a lane.
func New(target Target, cfg Config) *Lane {
	if cfg.Shards <= 0 {
		cfg.Shards = 1
	}
	if cfg.MaxBatch <= 0 {
		cfg.MaxBatch = 1000
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Skips <= 0 {
		cfg.Skips = 3
	}
	l := &Lane{target: target, cfg: cfg, shards: make([]shard, cfg.Shards)}
	for i := range l.shards {
		l.shards[i].lane = l
	}
	return l
}

func (l *Lane) shardOf(p storage.Partition) int {
	if len(l.shards) == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p))
	return int(h.Sum32() % uint32(len(l.shards)))
}

// Commit is storage.Store's Commit.
func (l *Lane) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	if err := ctx.Err(); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for n := range l.shards {
		// One shard after the other: a caller waits in one queue at a time, so
		// that two callers cannot wait for each other to lead.
		c := &call{errs: errs, wake: make(chan signal, 4)}
		for i := range changes {
			if l.shardOf(changes[i].Partition) == n {
				c.items = append(c.items, item{call: c, at: i, change: changes[i]})
			}
		}
		if len(c.items) > 0 {
			l.shards[n].commit(ctx, c)
		}
	}
	return errs
}

type signal uint8

const (
	done signal = iota
	lead
	look // there is a partition to wait for
)

// call is one caller's Changes in one shard.
type call struct {
	items []item
	errs  []error
	wake  chan signal

	// under shard.mu
	left   int                 // items without a verdict
	parked int                 // of those, the ones that are in a parking
	waits  []storage.Partition // that it was told to wait for
	away   bool                // it waits for one, and cannot lead
}

type item struct {
	call   *call
	at     int // in call.errs
	change storage.Change
	skips  int
	parked bool
}

type shard struct {
	lane    *Lane
	mu      sync.Mutex
	queue   []*item
	parked  map[storage.Partition][]*item // partitions that one of their callers waits for
	leading bool                          // somebody leads, or was told to
}

// end gives the Change its verdict. It is called under shard.mu.
func (it *item) end(err error) {
	c := it.call
	c.errs[it.at] = err
	it.call = nil
	if c.left--; c.left == 0 {
		c.wake <- done
	}
}

// enqueue is called under mu.
func (s *shard) enqueue(it *item) {
	if len(s.parked) > 0 {
		if others, ok := s.parked[it.change.Partition]; ok {
			if it.change.NoWait {
				it.end(storage.ErrBusy)
				return
			}
			s.parked[it.change.Partition] = append(others, it)
			it.parked = true
			it.call.parked++
			return
		}
	}
	s.queue = append(s.queue, it)
}

func (s *shard) commit(ctx context.Context, c *call) {
	s.mu.Lock()
	c.left = len(c.items)
	for i := range c.items {
		s.enqueue(&c.items[i])
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		var p storage.Partition
		waits, leads := len(c.waits) > 0, false
		switch {
		case c.left == 0:
			s.mu.Unlock()
			return
		case waits:
			p, c.waits, c.away = c.waits[0], c.waits[1:], true
		case !s.leading && c.left > c.parked:
			s.leading, leads = true, true
		}
		s.mu.Unlock()
		switch {
		case waits:
			s.passOn(c)
			s.waitFor(c, p)
		case leads:
			s.lead(ctx, c)
		default:
			select {
			case sig := <-c.wake:
				switch sig {
				case done:
					return
				case lead:
					s.lead(ctx, c)
				}
			case <-ctx.Done():
				s.leave(ctx, c)
				return
			}
		}
	}
}

// lead commits batches until the caller's own Changes have their verdicts, or it
// has to wait for some, then hands over to a caller who still waits.
func (s *shard) lead(ctx context.Context, c *call) {
	handed := false
	defer func() {
		if !handed { // a panic below: the others must not wait for ever
			s.handOver()
		}
	}()
	for {
		s.mu.Lock()
		finished := c.left == c.parked || len(c.waits) > 0
		s.mu.Unlock()
		if finished {
			break
		}
		if ctx.Err() != nil {
			s.abandon(ctx, c)
			break
		}
		// Those whom the last batch released are about to queue their next.
		// Letting them go first makes batches half as large again (27 of 32
		// callers, not 18, on SQLite); a lone caller does not notice.
		runtime.Gosched()
		s.batch()
	}
	handed = true
	s.handOver()
}

// handOver lets the caller of the oldest queued Change lead.
func (s *shard) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leading = false
	s.appointLeader()
}

// appointLeader is called under mu. Who is away leads when it comes back.
func (s *shard) appointLeader() {
	if s.leading {
		return
	}
	for _, it := range s.queue {
		if !it.call.away {
			s.leading = true
			it.call.wake <- lead
			return
		}
	}
}

// park takes a partition out of the queue and lets one of its callers wait for it.
// It is called under mu.
func (s *shard) park(p storage.Partition) {
	var items []*item
	kept := s.queue[:0]
	for _, it := range s.queue {
		switch {
		case it.change.Partition != p:
			kept = append(kept, it)
		case it.change.NoWait:
			it.end(storage.ErrBusy)
		default:
			items = append(items, it)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	for _, it := range items {
		it.parked = true
		it.call.parked++
	}
	if s.parked == nil {
		s.parked = map[storage.Partition][]*item{}
	}
	s.parked[p] = items
	s.appointWaiter(p)
}

// appointWaiter is called under mu.
func (s *shard) appointWaiter(p storage.Partition) {
	items := s.parked[p]
	if len(items) == 0 {
		delete(s.parked, p)
		return
	}
	c := items[0].call
	for _, it := range items {
		if !it.call.away {
			c = it.call
			break
		}
	}
	c.waits = append(c.waits, p)
	if len(c.wake) == 0 { // else it has other signals to read, and looks then
		c.wake <- look
	}
}

// waitFor commits what is parked of a partition, and waits for its lock.
func (s *shard) waitFor(c *call, p storage.Partition) {
	s.mu.Lock()
	items := s.parked[p]
	n := min(len(items), s.lane.cfg.MaxBatch)
	batch := items[:n:n]
	s.parked[p] = items[n:]
	s.mu.Unlock()
	changes, verdicts := unsettled(batch)
	defer func() {
		s.settle(batch, verdicts)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.away = false
		rest := s.parked[p]
		delete(s.parked, p)
		for _, it := range rest {
			it.parked = false
			it.call.parked--
		}
		if len(rest) > 0 {
			s.queue = append(rest, s.queue...)
		}
		s.appointLeader()
	}()
	if len(batch) > 0 {
		s.write(true, changes, verdicts)
	}
}

// leave takes back what was not taken into a batch yet.
func (s *shard) leave(ctx context.Context, c *call) {
	s.abandon(ctx, c)
	s.passOn(c)
}

// passOn lets another lead where the caller was told to, and cannot: it has left, or
// is about to wait for a partition.
func (s *shard) passOn(c *call) {
	for {
		select {
		case sig := <-c.wake:
			if sig == lead {
				s.handOver()
			}
		default:
			return
		}
	}
}

// abandon gives the caller's remaining Changes its context's error. Verdicts
// that come later go nowhere.
func (s *shard) abandon(ctx context.Context, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left == 0 {
		return
	}
	kept := s.queue[:0]
	for _, it := range s.queue {
		if it.call != c {
			kept = append(kept, it)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	for p, items := range s.parked {
		s.parked[p] = slices.DeleteFunc(items, func(it *item) bool { return it.call == c })
	}
	for _, p := range c.waits {
		s.appointWaiter(p)
	}
	c.waits, c.parked = nil, 0
	for i := range c.items {
		if it := &c.items[i]; it.call != nil {
			c.errs[it.at] = ctx.Err()
			it.call = nil
		}
	}
	c.left = 0
}

// take makes the next batch.
func (s *shard) take() []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), s.lane.cfg.MaxBatch)
	if n < len(s.queue) { // whole calls, where one fits
		whole := n
		for whole > 0 && s.queue[whole-1].call == s.queue[whole].call {
			whole--
		}
		n = cmp.Or(whole, n)
	}
	batch := s.queue[:n:n]
	s.queue = slices.Clone(s.queue[n:])
	return batch
}

// errLost is what callers get whose batch ended without a word.
var errLost = errors.New("lane: the commit broke off")

func (s *shard) batch() {
	batch := s.take()
	if len(batch) == 0 {
		return
	}
	changes, verdicts := unsettled(batch)
	defer func() { s.settle(batch, verdicts) }()
	s.write(false, changes, verdicts)
}

func unsettled(batch []*item) (changes []storage.Change, verdicts []error) {
	changes = make([]storage.Change, len(batch))
	verdicts = make([]error, len(batch))
	for i, it := range batch {
		changes[i], verdicts[i] = it.change, errLost
	}
	return changes, verdicts
}

// write fills in the verdicts of one batch.
func (s *shard) write(wait bool, changes []storage.Change, verdicts []error) {
	var err error
	for range 2 {
		var v []error
		if v, err = s.try(wait, changes); err == nil {
			copy(verdicts, v)
			return
		}
		if !errors.Is(err, ErrRefused) && (wait || !errors.Is(err, storage.ErrBusy)) {
			break
		}
	}
	if !errors.Is(err, ErrRefused) || len(changes) == 1 {
		for i := range verdicts {
			verdicts[i] = err
		}
		return
	}
	for i := range changes {
		var v []error
		if v, err = s.try(!changes[i].NoWait, changes[i:i+1]); err == nil {
			verdicts[i] = v[0]
			continue
		}
		verdicts[i] = err
		if !errors.Is(err, ErrRefused) { // the database is gone: do not ask it for each
			for k := i + 1; k < len(verdicts); k++ {
				verdicts[k] = err
			}
			return
		}
	}
}

func (s *shard) try(wait bool, changes []storage.Change) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.lane.cfg.Timeout)
	defer cancel()
	v, err := s.lane.target.Write(ctx, wait, changes)
	if err == nil && len(v) != len(changes) {
		err = fmt.Errorf("lane: %d verdicts for %d changes", len(v), len(changes))
	}
	return v, err
}

// settle hands the verdicts out. What was skipped goes back to the front, or is
// parked.
func (s *shard) settle(batch []*item, verdicts []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var back []*item
	var late []storage.Partition
	for i, it := range batch {
		c := it.call
		if c == nil {
			continue // its caller has left
		}
		if errors.Is(verdicts[i], ErrSkipped) && !it.parked {
			it.skips++
			switch {
			case it.skips < s.lane.cfg.Skips:
				back = append(back, it)
			case it.change.NoWait:
				it.end(storage.ErrBusy)
			default:
				if !slices.Contains(late, it.change.Partition) {
					late = append(late, it.change.Partition)
				}
				back = append(back, it)
			}
			continue
		}
		if it.parked {
			c.parked--
		}
		it.end(verdicts[i])
	}
	if len(back) > 0 {
		s.queue = append(back, s.queue...)
	}
	for _, p := range late {
		s.park(p)
	}
}
