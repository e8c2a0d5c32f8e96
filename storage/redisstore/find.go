package redisstore

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Find implements storage.Store; see the package's text for what it reads.
func (s *Store) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return nil, err
	}
	l, err := s.layout(ctx, q.Table)
	if err != nil {
		return nil, err
	}
	parts, err := s.partitions(ctx, q.Table, q.Partitions)
	if err != nil {
		return nil, err
	}
	g := gather{l: l, q: &q, filters: filters, plan: l.planOf(filters, q.Order), need: min(q.Offset, everything) + min(q.Limit, everything)}
	skip := q.Offset
	if len(parts) == 1 && g.plan.ordered && g.plan.covered {
		g.skip, g.need, skip = q.Offset, q.Limit, 0 // the server passes them over
	}
	found, err := g.all(ctx, s, parts)
	if err != nil {
		return nil, err
	}
	found = found[min(skip, len(found)):]
	found = found[:min(q.Limit, len(found))]
	if q.IDs {
		out := make([]storage.Row, len(found))
		for i, r := range found {
			out[i] = r.Bare(q.Table)
		}
		return out, g.unread
	}
	rows, unread := storage.Readable(q.Table, found)
	return rows, errors.Join(g.unread, unread)
}

// partitions lists those that a query asks.
func (s *Store) partitions(ctx context.Context, t *storage.Table, asked []storage.Partition) ([]storage.Partition, error) {
	if asked != nil {
		return asked, nil
	}
	pipe := s.client.Pipeline()
	for tag := range tags {
		pipe.SMembers(ctx, s.keys.known(t, tag))
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return nil, failed("listing partitions", err)
	}
	var out []storage.Partition
	for _, a := range answers {
		for _, p := range a.(*redis.StringSliceCmd).Val() {
			out = append(out, storage.Partition(p))
		}
	}
	slices.Sort(out)
	return out, nil
}

// gather reads the rows of a query.
type gather struct {
	l       *layout
	q       *storage.Query
	filters []storage.Filter
	plan    plan
	need    int // that many of the first
	skip    int // not these
	found   []*storage.Stored
	unread  error // of what nothing can be read, not even whether it matches
}

// task is one piece of one partition's index, as far as it is not read yet.
type task struct {
	p       storage.Partition
	span    span
	matched int
}

// everything is more rows than there can be.
const everything = min(math.MaxInt/2, 1<<40)

// together is how many tasks share a round trip.
const together = 64

func (g *gather) all(ctx context.Context, s *Store, parts []storage.Partition) ([]*storage.Stored, error) {
	var tasks []*task
	for _, p := range parts {
		for _, sp := range g.plan.spans {
			tasks = append(tasks, &task{p: p, span: sp})
		}
	}
	for len(tasks) > 0 {
		some := tasks[:min(together, len(tasks))]
		rest := tasks[len(some):]
		left, err := g.read(ctx, s, some)
		if err != nil {
			return nil, err
		}
		tasks = slices.Concat(left, rest)
		g.cut(4*chunk + g.need)
	}
	g.cut(0)
	return g.found, nil
}

// read takes the next piece of each task and gives back those that go on.
func (g *gather) read(ctx context.Context, s *Store, tasks []*task) ([]*task, error) {
	count := chunk
	if g.plan.ordered && g.plan.covered {
		count = min(chunk, g.need)
	} else if g.plan.ordered {
		count = min(chunk, max(50, 2*g.need))
	}
	calls := make([]evaluation, len(tasks))
	for i, t := range tasks {
		reverse := ""
		if g.plan.reverse {
			reverse = "REV"
		}
		calls[i] = evaluation{
			keys: []string{s.keys.index(g.l.t, g.plan.index, t.p), s.keys.rows(g.l.t, t.p)},
			args: []any{t.span.from, t.span.to, reverse, g.skip, count},
		}
	}
	g.skip = 0
	var left []*task
	for i, cmd := range s.run(ctx, pageScript, calls) {
		t := tasks[i]
		list, err := cmd.Slice()
		if err != nil {
			return nil, failed("reading rows of "+g.l.t.Name, err)
		}
		if err := g.take(t, list); err != nil {
			return nil, err
		}
		n := (len(list) - 1) / 2
		if n < count || g.plan.ordered && t.matched >= g.need {
			continue
		}
		if last := "(" + list[0].(string); g.plan.reverse {
			t.span.to = last
		} else {
			t.span.from = last
		}
		left = append(left, t)
	}
	return left, nil
}

// take keeps the rows of one answer that match.
func (g *gather) take(t *task, list []any) error {
	a := answer{of: list}
	for i := 1; i < len(list); i += 2 {
		id := a.text(i)
		if a.bad {
			return errForeign
		}
		packed, _ := list[i+1].(string) // else somebody took it away, and left it in the index
		r, err := unpackRow(g.l.t, t.p, id, packed)
		if err != nil {
			g.unread = errors.Join(g.unread, err)
			continue
		}
		if matches(g.filters, r) {
			t.matched++
			g.found = append(g.found, r)
		}
	}
	return nil
}

// cut keeps the first that are needed, once there are more than so many.
func (g *gather) cut(above int) {
	if len(g.found) <= above {
		return
	}
	slices.SortFunc(g.found, g.q.Comparer())
	g.found = g.found[:min(g.need, len(g.found))]
}

func matches(filters []storage.Filter, r *storage.Stored) bool {
	for i := range filters {
		if !filters[i].Match(r) {
			return false
		}
	}
	return true
}

// Count implements storage.Store.
func (s *Store) Count(ctx context.Context, q storage.Query) (int64, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return 0, err
	}
	l, err := s.layout(ctx, q.Table)
	if err != nil {
		return 0, err
	}
	parts, err := s.partitions(ctx, q.Table, q.Partitions)
	if err != nil {
		return 0, err
	}
	p := l.planOf(filters, nil)
	if p.covered {
		return s.countSpans(ctx, l, &p, parts)
	}
	c := counting{gather: gather{l: l, q: &q, filters: filters, plan: p, need: everything}}
	n, err := c.all(ctx, s, parts)
	return n, errors.Join(err, c.unread)
}

// counting reads the rows of a query and keeps none.
type counting struct{ gather }

func (c *counting) all(ctx context.Context, s *Store, parts []storage.Partition) (int64, error) {
	var n int64
	for _, p := range parts {
		for _, sp := range c.plan.spans {
			for left := []*task{{p: p, span: sp}}; len(left) > 0; {
				var err error
				if left, err = c.read(ctx, s, left); err != nil {
					return 0, err
				}
				n += int64(len(c.found))
				c.found = c.found[:0]
			}
		}
	}
	return n, nil
}

// countSpans asks the index alone.
func (s *Store) countSpans(ctx context.Context, l *layout, p *plan, parts []storage.Partition) (int64, error) {
	var n int64
	for some := range slices.Chunk(parts, together) {
		pipe := s.client.Pipeline()
		for _, part := range some {
			for _, sp := range p.spans {
				pipe.ZLexCount(ctx, s.keys.index(l.t, p.index, part), sp.from, sp.to)
			}
		}
		answers, err := pipe.Exec(ctx)
		if err != nil {
			return 0, failed("counting rows of "+l.t.Name, err)
		}
		for _, a := range answers {
			n += a.(*redis.IntCmd).Val()
		}
	}
	return n, nil
}
