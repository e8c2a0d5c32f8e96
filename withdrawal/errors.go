package withdrawal

import (
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// Errors of this package. A bad address is the client's *chain.AddressError, an
// unknown currency wraps chain.ErrCurrency, a missing price wraps
// rates.ErrUnavailable, an unknown account is the wallets' own error, and an
// idempotency key used wrongly storage.ErrIdempotencyMismatch or ErrInProgress.
var (
	ErrNotFound = errors.New("withdrawal: no such withdrawal")
	// ErrFee: the network fee cannot be told now, or is absurd. Try again later.
	ErrFee = errors.New("withdrawal: the network fee cannot be estimated now, try again later")
	// ErrHandingOver: Cancel came while a worker hands the withdrawal over, and
	// the payout side cannot take it yet. Nothing has changed; ask again after a
	// Config.Lease, when it waits visibly or has gone out.
	ErrHandingOver = errors.New("withdrawal: it is being handed over at this moment, ask again in a minute")
	// ErrNotShort: the withdrawal does not wait for a decision on what it delivered.
	ErrNotShort = errors.New("withdrawal: it does not wait as delivered_less")
	// ErrNoEquity: the operator owns less of the currency than PayMissing would pay. Top up
	// the tenant's hot address first.
	ErrNoEquity = errors.New("withdrawal: the operator owns less of the currency than is missing: top up the hot address first")
	// ErrNoIntent is what Payouts.Cancel answers for an id that it never took.
	ErrNoIntent = errors.New("withdrawal: the payout side has no such intent")
)

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError

// InsufficientError says that the wallet cannot pay. Figures are whole coins;
// Requested includes the fees.
type InsufficientError = fault.InsufficientError

// StateError says that a withdrawal has gone too far for what was asked.
type StateError struct {
	ID      string
	Current Status
	Reason  string // what stands against it beside its status, "" = nothing
}

func (e *StateError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("withdrawal: %s is %s: %s", e.ID, e.Current, e.Reason)
	}
	return fmt.Sprintf("withdrawal: %s is %s: only one that is pending and not handed over can change", e.ID, e.Current)
}

// WaitError is what Payouts.Submit answers where nothing is wrong and nothing
// was taken: the withdrawal stays pending and is handed over again later.
type WaitError struct {
	Reason string // as shown to operators: "halted", "hot_short" …
}

func (e *WaitError) Error() string {
	return "withdrawal: cannot be handed over yet: " + e.Reason
}
