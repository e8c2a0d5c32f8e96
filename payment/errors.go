package payment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotFound says that the tenant has no such payment, deposit or wallet. Errors wrap
// it as a *NotFoundError that says what was looked for.
var ErrNotFound = errors.New("payment: not found")

// NotFoundError says what was looked for.
type NotFoundError struct {
	Field string // "transaction_id", "deposit_id", "wallet_id"
	ID    string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("payment: no %s %q", e.Field, e.ID) }

// Unwrap makes it ErrNotFound.
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// InvalidError names every field that is wrong, each with what is wrong.
type InvalidError struct{ Fields map[string][]string }

func (e *InvalidError) Error() string {
	names := make([]string, 0, len(e.Fields))
	for f := range e.Fields {
		names = append(names, f)
	}
	slices.Sort(names)
	return "payment: invalid " + strings.Join(names, ", ")
}

func (e *InvalidError) add(field, message string) {
	if e.Fields == nil {
		e.Fields = map[string][]string{}
	}
	e.Fields[field] = append(e.Fields[field], message)
}

func (e *InvalidError) orNil() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

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
