package storage

import (
	"context"
	"time"
)

// Clock is an optional ability of a Store that other machines stand on too: the
// time as the one place that they all share has it, to within what the answer
// takes to arrive. Leases are kept by the clocks of the processes; whoever is far
// from this one would take what another still works on, so cryptopay's Run
// compares. A Store within one machine has no use for it.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
