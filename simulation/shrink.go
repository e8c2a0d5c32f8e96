package simulation

import (
	"context"
	"maps"
	"slices"
)

// shrinkRuns bounds how many worlds are played to cut one down.
const shrinkRuns = 300

// Shrink cuts a failing world down: to the nemeses, and then to the steps, that
// the same broken promise needs. It returns the smallest that still fails.
func (w World) Shrink(ctx context.Context, failed Result) Result {
	if failed.Failure == nil {
		return failed
	}
	best, left := failed, shrinkRuns
	try := func(w World) bool {
		if left--; left < 0 || ctx.Err() != nil {
			return false
		}
		r := w.Run(ctx)
		if r.Failure == nil || r.Failure.Invariant != failed.Failure.Invariant {
			return false
		}
		best = r
		return true
	}
	now := failed.World
	now.Nemeses = slices.Sorted(maps.Keys(failed.Struck))
	if now.Nemeses == nil {
		now.Nemeses = []Nemesis{}
	}
	if !try(now) { // drawn again from the list, the rates are the same
		return best
	}
	now.Nemeses = without(now.Nemeses, func(left []Nemesis) bool {
		x := now
		x.Nemeses = left
		return try(x)
	})
	if x := now; x.Span >= 0 { // a week of quiet hours
		x.Span = -1
		if try(x) {
			now = x
		}
	}
	if best.Failure.Step < now.Steps {
		x := now
		x.Steps = max(1, best.Failure.Step+1)
		if try(x) {
			now = x
		}
	}
	var steps []int
	for i := range now.Steps {
		if !now.Skip[i] {
			steps = append(steps, i)
		}
	}
	without(steps, func(left []int) bool {
		x := now
		x.Skip = map[int]bool{}
		for i := range now.Steps {
			if !slices.Contains(left, i) {
				x.Skip[i] = true
			}
		}
		return try(x)
	})
	return best
}

// without leaves out as many elements as it can, half of them at once at first,
// as long as fails still says yes.
func without[T any](all []T, fails func(left []T) bool) []T {
	for size := max(1, len(all)); size > 0; size /= 2 {
		for at := 0; at < len(all); {
			left := append(slices.Clone(all[:at:at]), all[min(at+size, len(all)):]...)
			if left == nil {
				left = []T{}
			}
			if fails(left) {
				all = left
				continue
			}
			at += size
		}
	}
	return all
}
