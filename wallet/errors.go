package wallet

import (
	"errors"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// Errors of this package. An unknown currency wraps chain.ErrCurrency. Those of a Key, which
// is judged before anything else, wrap storage.ErrIdempotencyMismatch where its first request
// said something else, storage.ErrInProgress while that runs in this process, or
// storage.ErrIdempotencyKey.
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
type InvalidError = fault.InvalidError

// InsufficientError says that the source of a transfer cannot pay. Figures are
// whole coins.
type InsufficientError = fault.InsufficientError
