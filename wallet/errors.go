package wallet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Errors of this package. An unknown currency wraps chain.ErrCurrency; an
// idempotency key used wrongly is storage.ErrIdempotencyMismatch or
// ErrInProgress.
var (
	ErrNotFound = errors.New("wallet: no such wallet")
	ErrNoTenant = errors.New("wallet: no such tenant")
	// ErrNotEmpty: the wallet has a balance or something pending.
	ErrNotEmpty = errors.New("wallet: not empty, move its balances and wait for what is pending")
	// ErrExternalID: another open wallet of the tenant has this external_id.
	ErrExternalID = errors.New("wallet: external_id is taken")
	// ErrTenantExists: a tenant with this id exists.
	ErrTenantExists = errors.New("wallet: a tenant with this id exists")
)

// InvalidError names every field of a request that is wrong, and why.
type InvalidError struct {
	Fields map[string][]string
}

func (e *InvalidError) Error() string {
	names := slices.Sorted(maps.Keys(e.Fields))
	for i, n := range names {
		names[i] = n + ": " + strings.Join(e.Fields[n], ", ")
	}
	return "wallet: invalid request: " + strings.Join(names, "; ")
}

func (e *InvalidError) add(field, message string) {
	if e.Fields == nil {
		e.Fields = map[string][]string{}
	}
	e.Fields[field] = append(e.Fields[field], message)
}

// err is e, or nil where nothing was found wrong.
func (e *InvalidError) err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

// InsufficientError says that the source of a transfer cannot pay. Figures are
// whole coins.
type InsufficientError struct {
	Available decimal.Decimal
	Requested decimal.Decimal
	Currency  string
	Scale     uint8
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("wallet: insufficient balance: %s %s available, %s requested",
		ledger.PlainString(e.Available), e.Currency, ledger.PlainString(e.Requested))
}
