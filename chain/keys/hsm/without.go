//go:build !cgo

package hsm

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
)

var errCgo = errors.New("hsm: this program was built without cgo, which a hardware module needs: build it with CGO_ENABLED=1 and a C compiler")

// Module is none in a program without cgo.
type Module struct{}

// Open fails.
func Open(context.Context, Config) (*Module, error) { return nil, errCgo }

// Public fails.
func (*Module) Public(context.Context, chain.KeyRef) (chain.PublicKey, error) { return nil, errCgo }

// Sign fails.
func (*Module) Sign(context.Context, chain.KeyRef, []byte) ([]byte, error) { return nil, errCgo }

// Make fails.
func (*Module) Make(context.Context, chain.KeyRef) (chain.PublicKey, error) { return nil, errCgo }

// Try fails.
func (*Module) Try(context.Context, chain.KeyRef) error { return errCgo }

// Ready fails.
func (*Module) Ready(context.Context) error { return errCgo }

// Close does nothing.
func (*Module) Close() error { return nil }
