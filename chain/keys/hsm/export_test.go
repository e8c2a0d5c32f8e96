//go:build cgo

package hsm

import (
	"context"

	"github.com/miekg/pkcs11"

	"github.com/cryptopay-go/cryptopay/chain"
)

// What the tests may do at the module itself, with its PIN.

// Inside gives the library, a session, and the private key of a name.
func (m *Module) Inside(ctx context.Context, ref chain.KeyRef, do func(*pkcs11.Ctx, pkcs11.SessionHandle, pkcs11.ObjectHandle) error) error {
	return m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		p, err := t.find(ctx, s, ref)
		if err != nil {
			return err
		}
		return do(t.lib, s, p.private)
	})
}

// Another makes one more key of a name, as a second process would at the same moment.
func (m *Module) Another(ctx context.Context, ref chain.KeyRef, onEdwards bool) error {
	return m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		_, _, err := t.generate(s, curveOf(onEdwards), string(ref), []byte("another"), true)
		return err
	})
}
