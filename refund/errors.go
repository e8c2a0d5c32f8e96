package refund

import (
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// Errors of this package, beside those of payments and withdrawals, which are passed on.
var (
	ErrNotFound = errors.New("refund: no such refund")
	// ErrNoClaim: no link has this token, or it was used, or has ended.
	ErrNoClaim = errors.New("refund: no such claim link, or it was used, or has ended")
	// ErrNotNow: the address is good, and no withdrawal to it can be made now. The merchant
	// sees why: Refund.Waiting. The link stays.
	ErrNotNow = errors.New("refund: it cannot be paid now")
	// ErrAltered: somebody edited the refund's stored row. Nothing is paid by it.
	ErrAltered = errors.New("refund: its stored row was edited")
	// ErrNotUpgraded: a process of an earlier version may run on this store. It would not
	// give back what a refund that fails has taken.
	ErrNotUpgraded = errors.New("refund: call App.Upgraded once no process of an earlier version runs")
)

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError

// StateError says that a refund, or the payment that is to be refunded, is in a state that
// does not allow it.
type StateError struct {
	Status string // of the refund or the payment
	Reason string
}

func (e *StateError) Error() string { return fmt.Sprintf("refund: %s while %s", e.Reason, e.Status) }
