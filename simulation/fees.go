package simulation

import "time"

// fee is a level of a network's fees, and since when it was that.
type fee struct {
	since time.Time
	level int64
}

// charged adds the level of now to those so far, where it is another.
func charged(so []fee, now time.Time, level int64) []fee {
	if len(so) > 0 && so[len(so)-1].level == level {
		return so
	}
	return append(so, fee{now, level})
}

// normal says that for a day fees have been at or below their median of seven days.
func normal(so []fee, now time.Time) bool {
	lasted, most := map[int64]time.Duration{}, int64(0)
	week := now.Add(-7 * 24 * time.Hour)
	for i, f := range so {
		from, until := f.since, now
		if i+1 < len(so) {
			until = so[i+1].since
		}
		if until.After(now.Add(-24 * time.Hour)) {
			most = max(most, f.level)
		}
		if from.Before(week) {
			from = week
		}
		lasted[f.level] += max(0, until.Sub(from))
	}
	var below, all time.Duration
	for level, d := range lasted {
		if all += d; level < most {
			below += d
		}
	}
	return 2*below <= all // so the median is not below the highest of the day
}
