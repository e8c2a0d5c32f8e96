package payment

import (
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// ErrNotFound says that the tenant has no such payment, deposit or wallet. Errors wrap
// it as a *NotFoundError that says what was looked for.
var ErrNotFound = errors.New("payment: not found")

// NotFoundError says what was looked for.
type NotFoundError struct {
	Field string // "transaction_id", "deposit_id", "wallet_id", "tenant"
	ID    string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("payment: no %s %q", e.Field, e.ID) }

// Unwrap makes it ErrNotFound.
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError

// CurrencyError says that nothing but the currency is wrong. Supported lists the codes
// that a payment can be made in.
type CurrencyError struct {
	Currency  string
	Supported []string
}

func (e *CurrencyError) Error() string {
	return fmt.Sprintf("payment: currency %q is not supported", e.Currency)
}

// StateError says that the payment is in a state that does not allow it.
type StateError struct {
	Status Status
	Reason string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("payment: %s while %s", e.Reason, e.Status)
}
