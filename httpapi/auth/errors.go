package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// Errors of this package. None of them carries a secret, or a token.
var (
	// ErrToken: the token or API key opens nothing; *TokenError says why.
	ErrToken = errors.New("auth: invalid token")
	// ErrUnknownClient: no application has this client id.
	ErrUnknownClient = errors.New("auth: unknown client")
	// ErrCredentials: the secret is not the application's.
	ErrCredentials = errors.New("auth: wrong client credentials")
	// ErrNotFound: the tenant has no such application or key.
	ErrNotFound = errors.New("auth: no such application or key")
	// ErrExists: the client id or API key to be created is in use.
	ErrExists = errors.New("auth: client id or key is in use")
	// ErrScope: the scope asked for is not the application's; *ScopeError has more.
	ErrScope = errors.New("auth: scope is malformed or exceeds the application's")
	// ErrBackoff: too many wrong credentials came from this address; *BackoffError says
	// how long to wait.
	ErrBackoff = errors.New("auth: too many wrong credentials, wait")
)

// Why a token or key is refused. The difference is a hint for its owner: each
// of them means that a new token is needed.
const (
	Malformed = "malformed" // cannot be one of ours
	Unknown   = "unknown"   // never issued, or forgotten since
	Expired   = "expired"
	Revoked   = "revoked" // or its application is deleted
)

// TokenError says why a token or API key was refused. It unwraps to ErrToken.
type TokenError struct {
	Reason string // Malformed, Unknown, Expired or Revoked
}

func (e *TokenError) Error() string { return "auth: invalid token: " + e.Reason }
func (e *TokenError) Unwrap() error { return ErrToken }

// ScopeError says that a token was asked for with a scope that the application
// does not have. It unwraps to ErrScope.
type ScopeError struct {
	Allowed []Scope // the application's
}

func (e *ScopeError) Error() string {
	return ErrScope.Error() + ": allowed are " + strings.Join(e.Allowed, " ")
}
func (e *ScopeError) Unwrap() error { return ErrScope }

// BackoffError says that too many wrong credentials came from one address, and when the
// next will be looked at. It unwraps to ErrBackoff.
type BackoffError struct {
	RetryAfter time.Duration
}

func (e *BackoffError) Error() string {
	return fmt.Sprintf("%s %s before the next try", ErrBackoff, e.RetryAfter)
}
func (e *BackoffError) Unwrap() error { return ErrBackoff }

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError
