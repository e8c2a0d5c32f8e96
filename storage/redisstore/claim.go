package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Claim implements storage.Store: it looks for the oldest due rows of each tag,
// and takes those that did not move on meanwhile. What other claims took first
// is looked for again, so that nothing found means that nothing is due.
func (s *Store) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	filters, err := c.Ready()
	if err != nil {
		return nil, err
	}
	if _, err := s.layout(ctx, c.Table); err != nil {
		return nil, err
	}
	var taken []*storage.Stored
	var broken error // rows of which nothing can be read
	for len(taken) < c.Max {
		w := search{c: &c, filters: filters, most: c.Max - len(taken), seen: map[string]bool{}}
		if err = s.due(ctx, &w); err != nil || len(w.found)+len(w.broken) == 0 {
			break
		}
		var won []*storage.Stored
		won, err = s.take(ctx, &w)
		taken, broken = append(taken, won...), errors.Join(broken, w.unread)
		if err != nil || len(w.found) == 0 {
			break
		}
	}
	if len(taken) == 0 && err != nil {
		return nil, errors.Join(err, broken)
	}
	rows, unread := storage.Readable(c.Table, taken) // also where an error followed: their lease runs
	return rows, errors.Join(broken, unread)
}

// Peek implements storage.Peeker.
func (s *Store) Peek(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	filters, err := c.Ready()
	if err != nil {
		return nil, err
	}
	if _, err := s.layout(ctx, c.Table); err != nil {
		return nil, err
	}
	w := search{c: &c, filters: filters, most: c.Max, seen: map[string]bool{}}
	if err := s.due(ctx, &w); err != nil {
		return nil, err
	}
	rows, unread := storage.Readable(c.Table, w.found)
	return rows, errors.Join(w.unread, unread)
}

// dueSet is the due rows of one tag, as far as they were listed.
type dueSet struct {
	tag  int
	size int // asked for so far
	done bool
}

// dueMember is one that was listed.
type dueMember struct {
	score float64
	p     storage.Partition
	id    string
}

// search looks for due rows, the oldest first.
type search struct {
	c       *storage.Claim
	filters []storage.Filter
	most    int
	sets    []*dueSet
	seen    map[string]bool
	waiting []dueMember // listed and not read
	found   []*storage.Stored
	broken  []brokenRow
	unread  error // of the broken ones
}

// brokenRow is one of which nothing can be read.
type brokenRow struct {
	p          storage.Partition
	id, packed string
}

// due finds the oldest rows that are due and match, without taking them. Each
// round lists twice as much of each tag as the one before, and reads the oldest
// of what was listed: so it never reads a row before an older one.
func (s *Store) due(ctx context.Context, w *search) error {
	for tag := range tags {
		if w.c.Partition == "" || tag == tagOf(w.c.Partition) {
			w.sets = append(w.sets, &dueSet{tag: tag})
		}
	}
	for len(w.found) < w.most && len(w.sets)+len(w.waiting) > 0 {
		if err := s.list(ctx, w); err != nil {
			return failed("listing due rows of "+w.c.Table.Name, err)
		}
		if err := s.readDue(ctx, w); err != nil {
			return failed("reading due rows of "+w.c.Table.Name, err)
		}
	}
	slices.SortFunc(w.found, func(a, b *storage.Stored) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.ID, b.ID))
	})
	w.found = w.found[:min(w.most, len(w.found))]
	return nil
}

// list goes further into each tag's set: always from its beginning, so that what
// others take meanwhile does not hide the rest.
func (s *Store) list(ctx context.Context, w *search) error {
	if len(w.sets) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	for _, d := range w.sets {
		d.size = max(2*d.size, min(w.most, chunk))
		pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
			Key: s.keys.due(w.c.Table, d.tag), ByScore: true,
			Start: "-inf", Stop: strconv.FormatInt(storage.Micros(w.c.Now), 10), Count: int64(d.size),
		})
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return err
	}
	for i, d := range w.sets {
		members := answers[i].(*redis.ZSliceCmd).Val()
		d.done = len(members) < d.size
		for _, m := range members {
			member, _ := m.Member.(string)
			w.add(member, m.Score)
		}
	}
	w.sets = slices.DeleteFunc(w.sets, func(d *dueSet) bool { return d.done })
	slices.SortFunc(w.waiting, func(a, b dueMember) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.p, b.p), cmp.Compare(a.id, b.id))
	})
	return nil
}

func (w *search) add(member string, score float64) {
	part, id, ok := strings.Cut(member, "\x00")
	p := storage.Partition(part)
	if !ok || w.seen[member] || w.c.Partition != "" && w.c.Partition != p || slices.Contains(w.c.Except, p) {
		return
	}
	w.seen[member] = true
	w.waiting = append(w.waiting, dueMember{score, p, id})
}

// readDue reads the oldest rows that were listed.
func (s *Store) readDue(ctx context.Context, w *search) error {
	some := w.waiting[:min(w.most, len(w.waiting))]
	w.waiting = w.waiting[len(some):]
	if len(some) == 0 {
		return nil
	}
	ids := map[storage.Partition][]string{}
	var parts []storage.Partition
	for _, m := range some {
		if ids[m.p] == nil {
			parts = append(parts, m.p)
		}
		ids[m.p] = append(ids[m.p], m.id)
	}
	pipe := s.client.Pipeline()
	for _, p := range parts {
		pipe.HMGet(ctx, s.keys.rows(w.c.Table, p), ids[p]...)
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return err
	}
	now := storage.Micros(w.c.Now)
	for i, p := range parts {
		for k, v := range answers[i].(*redis.SliceCmd).Val() {
			packed, ok := v.(string)
			if !ok {
				continue // dropped meanwhile
			}
			r, err := unpackRow(w.c.Table, p, ids[p][k], packed)
			if err != nil {
				w.broken, w.unread = append(w.broken, brokenRow{p, ids[p][k], packed}), errors.Join(w.unread, err)
				continue
			}
			if r.Due > 0 && r.Due <= now && matches(w.filters, r) {
				w.found = append(w.found, r)
			}
		}
	}
	return nil
}

// take puts the rows under the lease, and returns those that it got. Those that are broken
// are put off until its end.
func (s *Store) take(ctx context.Context, w *search) ([]*storage.Stored, error) {
	c, until := w.c, storage.Micros(w.c.Until)
	at := map[storage.Partition]int{}
	var calls []evaluation
	add := func(p storage.Partition, row ...any) {
		i, ok := at[p]
		if !ok {
			i = len(calls)
			at[p] = i
			calls = append(calls, evaluation{
				keys: []string{s.keys.rows(c.Table, p), s.keys.due(c.Table, tagOf(p))},
				args: []any{string(p), until},
			})
		}
		calls[i].args = append(calls[i].args, row...)
	}
	for _, r := range w.found {
		add(r.Partition, r.ID, r.Version, r.Version+1)
	}
	for _, b := range w.broken {
		add(b.p, b.id, "", b.packed)
	}
	var failure error
	won := make([]map[string]bool, len(calls))
	for i, cmd := range s.run(ctx, claimScript, calls) {
		ids, err := cmd.StringSlice()
		if err != nil {
			failure = failed("claiming rows of "+c.Table.Name, err)
		}
		won[i] = map[string]bool{}
		for _, id := range ids {
			won[i][id] = true
		}
	}
	var out []*storage.Stored
	for _, r := range w.found {
		if won[at[r.Partition]][r.ID] {
			r.Version++
			r.Due = until
			out = append(out, r)
		}
	}
	return out, failure
}
