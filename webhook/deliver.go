package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/storage"
)

// schedule is the waiting time before each retry. After the last the delivery
// is failed: six attempts in all.
var schedule = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}

// longestWait is how long a delivery is held back because its host does not answer, from
// the first time on, or from its replay. After that it is tried all the same, by the
// schedule, so that each delivery gets all its attempts and comes to an end.
const longestWait = 24 * time.Hour

// job is one claimed delivery.
type job struct {
	row     storage.Row
	event   Event
	ep      *endpoint
	url     string    // "" = no merchant is to be told
	host    hostKey   // of url
	claimed time.Time // its lease runs from then on
}

func (j *job) object() rowKey { return rowKey{j.row.Partition, j.event.Object} }

// claim takes due deliveries, at most as many as there is room for: first attempts
// before retries. more is true where there may be more. Where retries are asked for, a
// quarter of the room is kept free for them. Else they are claimed only where first
// attempts leave room: a claim of retries passes over every first attempt that is due.
func (s *Service) claim(ctx context.Context, now time.Time, room int, except []storage.Partition, retries bool) (rows []storage.Row, more bool, err error) {
	c := storage.Claim{Table: Events.Table, Now: now, Until: now.Add(s.cfg.Lease), Except: except}
	first := room
	if retries {
		first -= room / 4
	}
	for _, part := range []struct {
		op  storage.Op
		max int
	}{{storage.Eq, first}, {storage.Gt, room}} {
		c.Where, c.Max = []storage.Cond{{Column: "attempts", Op: part.op, Value: 0}}, part.max-len(rows)
		if c.Max <= 0 || part.op == storage.Gt && more && !retries {
			break
		}
		some, err := storage.Claimed(ctx, s.cfg.Store, c, s.cfg.Log)
		rows, more = append(rows, some...), more || len(some) == c.Max
		if err != nil {
			return rows, more, err
		}
	}
	return rows, more, nil
}

// prepare reads what the rows' tenants have set, and leaves out what their caps
// leave out. Deliveries of one object come in the order of its events. A tenant
// whose settings cannot be opened is no receiver's fault: its deliveries wait for
// the lease's end, uncounted, and nobody else's wait for it.
func (s *Service) prepare(ctx context.Context, rows []storage.Row, now time.Time) ([]*job, error) {
	endpoints, broken := s.endpoints(ctx, rows, now)
	looked, gone := map[storage.Partition]bool{}, map[rowKey]bool{}
	var jobs []*job
	for _, row := range rows {
		if !looked[row.Partition] {
			looked[row.Partition] = true
			broken = errors.Join(broken, s.trim(ctx, row.Partition, now, gone))
		}
		ep := endpoints[row.Partition]
		if ep == nil || gone[keyOf(row)] {
			continue
		}
		j := &job{row: row, event: Events.Value(row), ep: ep, claimed: now}
		if j.url = j.event.URL; j.url == "" && ep.wants(j.event.Type) {
			j.url = ep.url
		}
		j.host = hostOf(row.Partition, j.url)
		jobs = append(jobs, j)
	}
	inOrder(jobs)
	return jobs, broken
}

// endpoints reads what the rows' tenants have set, all together.
func (s *Service) endpoints(ctx context.Context, rows []storage.Row, now time.Time) (map[storage.Partition]*endpoint, error) {
	var tenants []storage.Partition
	found := map[storage.Partition]*endpoint{}
	for _, row := range rows {
		if _, known := found[row.Partition]; !known {
			found[row.Partition] = nil
			tenants = append(tenants, row.Partition)
		}
	}
	name := func(p storage.Partition) string { return string(p) }
	errs := storage.Work(ctx, s.cfg.Store, tenants, name, func(ctx context.Context, p storage.Partition) error {
		ep, err := s.endpoint(ctx, p, now)
		if err != nil {
			return fmt.Errorf("webhook: settings of %s: %w", p, err)
		}
		found[p] = ep
		return nil
	})
	return found, errors.Join(errs...)
}

// inOrder keeps the order of the claim, but puts the events of one object behind
// its first one, as they happened. Receivers must bear any order (retries make
// one), but those who do not are spared the usual case.
func inOrder(jobs []*job) {
	first := map[rowKey]int{} // where an object comes first
	for i, j := range jobs {
		if _, ok := first[j.object()]; !ok {
			first[j.object()] = i
		}
	}
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(first[a.object()], first[b.object()]), cmp.Compare(a.event.Seq, b.event.Seq))
	})
}

// rowKey names a row of the outbox.
type rowKey struct {
	p  storage.Partition
	id string
}

func keyOf(row storage.Row) rowKey { return rowKey{row.Partition, row.ID} }

// attempt tries one delivery, and returns what that changes. What has waited so
// long that it might outlive its lease, and what was cut off by us, is given back
// uncounted.
func (s *Service) attempt(ctx context.Context, j *job) storage.Change {
	now := s.cfg.Now()
	if now.Sub(j.claimed) >= s.cfg.Lease/2 || ctx.Err() != nil {
		return s.change(j.row, j.event, now)
	}
	host := j.host
	if held := j.event.Done; held.IsZero() || now.Sub(held) < longestWait {
		if until := s.breakers.hold(host, now); !until.IsZero() {
			return s.held(j, now, until)
		}
	}
	d := j.ep.delivery(j.url, j.row.ID, j.event.Attempts+1, now, []byte(j.event.Body))
	d.Tenant, d.Type = tenantOf(j.row.Partition), j.event.Type
	d.Object = string(j.row.Partition) + "/" + j.event.Object
	// Nobody waits for a Notifier of the host's longer than the lease holds.
	bounded, cancel := context.WithTimeout(ctx, s.cfg.Lease/2)
	r := s.notify(bounded, d)
	cancel()
	if ctx.Err() != nil && r.Err != nil {
		return s.change(j.row, j.event, s.cfg.Now())
	}
	if answered, counts := answer(r); counts && host.host != "" {
		if s.breakers.report(host, answered, s.cfg.Now()) {
			s.cfg.Log.InfoContext(ctx, "receiver_paused", slog.String("tenant", d.Tenant), slog.String("host", short(host.host)))
		}
	}
	return s.outcome(ctx, j.row, r)
}

// notify calls the Notifier. What it panics with is that delivery's failure.
func (s *Service) notify(ctx context.Context, d Delivery) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Err: fmt.Errorf("webhook: the Notifier panicked: %v", p)}
		}
	}()
	results := s.cfg.Notifier.Notify(ctx, []Delivery{d})
	if len(results) != 1 {
		return Result{Err: fmt.Errorf("webhook: the Notifier returned %d results for one delivery", len(results))}
	}
	return results[0]
}

// answer reads from a result whether the host answered. What we refused to send
// says nothing of it. A name that leads to a forbidden address counts as one that does not
// exist: a pause would tell them apart.
func answer(r Result) (answered, counts bool) {
	for _, ours := range []error{ErrNoURL, ErrURL} {
		if errors.Is(r.Err, ours) {
			return false, false
		}
	}
	return r.Err == nil || r.Status >= 200, true
}

// held puts a delivery off while its host does not answer. That is no attempt.
func (s *Service) held(j *job, now, until time.Time) storage.Change {
	e := j.event
	if e.Done.IsZero() {
		e.Done = now
	}
	e.Error = notTried + "the host does not answer; it is asked again after " + Timestamp(until)
	return s.change(j.row, e, until)
}

// outcome is what one attempt changes.
func (s *Service) outcome(ctx context.Context, row storage.Row, r Result) storage.Change {
	e := Events.Value(row)
	now := s.cfg.Now()
	if errors.Is(r.Err, ErrNoURL) {
		e.Status, e.Done = StatusSkipped, now
		return s.change(row, e, time.Time{})
	}
	e.Attempts++
	e.Response, e.Error = r.Status, ""
	if r.Err == nil {
		e.Status, e.Done = StatusDelivered, now
		return s.change(row, e, time.Time{})
	}
	e.Error = short(r.Err.Error())
	if e.Attempts > len(schedule) {
		e.Status, e.Done = StatusFailed, now
		s.failed(ctx, row, &e)
		return s.change(row, e, time.Time{})
	}
	return s.change(row, e, now.Add(schedule[e.Attempts-1]))
}

func (s *Service) failed(ctx context.Context, row storage.Row, e *Event) {
	s.cfg.Log.WarnContext(ctx, "webhook_failed_for_good",
		slog.String("event", row.ID), slog.Int("attempts", e.Attempts), slog.Int("response", e.Response))
}

func (s *Service) change(row storage.Row, e Event, due time.Time) storage.Change {
	return replace(fmt.Sprintf("deliver/%s/%d", row.ID, row.Version), row, e, due)
}

// commit stores outcomes, and returns those that have to be sent again. A conflict means
// that the lease was lost: whoever has it now delivers again, which is allowed. So does who
// claims what the store refuses for good, which is logged. A tenant that is locked is no
// error of the store: its outcomes are left until it is free.
func (s *Service) commit(ctx context.Context, changes []storage.Change) (left []storage.Change, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	for i, failed := range s.cfg.Store.Commit(ctx, changes...) {
		switch {
		case failed == nil, errors.Is(failed, storage.ErrConflict):
		case storage.Final(failed):
			s.cfg.Log.ErrorContext(ctx, "webhook_outcome_refused", slog.String("partition", string(changes[i].Partition)), slog.Any("error", failed))
		case errors.Is(failed, storage.ErrBusy):
			left = append(left, changes[i])
		default:
			left, err = append(left, changes[i]), errors.Join(err, failed)
		}
	}
	return left, err
}

// short makes text that a receiver had its hand in fit for a column and a log:
// at most 300 bytes of UTF-8 without control characters (a NUL, which Postgres
// does not store, would keep the outcome from ever being recorded).
func short(s string) string {
	if len(s) > 300 {
		s = s[:300]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, s)
}
