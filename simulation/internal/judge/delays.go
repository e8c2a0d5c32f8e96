package judge

import "time"

// pause is what one attempt that fails may cost: the first pause of the schedule.
const pause = time.Minute

// lease is how long a process that stands still may keep what it has claimed.
const lease = time.Minute

// alone is how long a receiver that answered badly may be left alone.
const alone = 24 * time.Hour

// firsts is I28: whatever others' receivers and payouts do, a merchant's webhook is
// tried, and a withdrawal begun or given a reason, by the time that a process has done
// all that was due.
func (j *Judge) firsts(s *Scene, shop *Shop) {
	trouble, own := false, shop.Deaf || s.Now.Sub(j.trouble[shop.ID]) < alone
	for i := range shop.Payouts {
		if p := &shop.Payouts[i]; p.Reason != "" {
			j.reasons[p.ID] = s.Now
		}
	}
	for i := range shop.Outbox {
		own = own || shop.Outbox[i].Attempts > 0 && !shop.Outbox[i].Failed // its own receiver may be left alone for a while
	}
	for i := range s.Shops {
		other := &s.Shops[i]
		if other.ID == shop.ID {
			continue
		}
		trouble = trouble || other.Deaf
		for k := range other.Outbox {
			trouble = trouble || other.Outbox[k].Attempts > 0
		}
		for k := range other.Payouts {
			trouble = trouble || other.Payouts[k].Reason != ""
		}
	}
	for i := range shop.Outbox {
		l := &shop.Outbox[i]
		j.ask("six", l.Failed, l.Attempts == len(pauses)+1, "webhook %s of %s was given up after %d attempts: %s", l.ID, l.Object, l.Attempts, l.Error)
	}
	if s.Stepped.IsZero() {
		j.ask("I28", false, true, "")
		return
	}
	for i := range shop.Outbox {
		l := &shop.Outbox[i]
		j.ask("I28", trouble && !own, l.Failed || l.Attempts > 0 || l.Created.Add(pause).After(s.Stepped.Add(-s.Weather.Skew)),
			"webhook %s of %s waits since %s for its first attempt", l.ID, l.Object, l.Created.Format(time.DateTime))
	}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		known := p.Coin != s.Weather.Fresh // to whoever has done all that was due
		since := p.Created
		if said := j.reasons[p.ID]; said.After(since) {
			since = said
		}
		j.ask("I28", trouble && known, p.Status != pending || p.Reason != "" || since.Add(pause).After(s.Stepped.Add(-s.Weather.Skew)) || j.leased(s, p.ID),
			"withdrawal %s waits since %s and says nothing", p.ID, since.Format(time.DateTime))
	}
}

// leased reports whether a withdrawal may be in the hands of a process that stands still:
// whoever does all that is due finds it when that one's lease has ended, by its own clock.
func (j *Judge) leased(s *Scene, id string) bool {
	first, known := j.looked[id]
	if !known {
		first = s.Stepped
		j.looked[id] = first
	}
	return !s.Stepped.After(first.Add(lease + s.Weather.Skew))
}
