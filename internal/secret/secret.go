// Package secret keeps bytes that must reach no log, error, response or dump:
// a Secret prints as stars whatever prints it, and a Box seals what has to be
// stored, bound to the place it is stored at.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Secret hides its content from fmt, log/slog and encoding/json.
//
// The content is behind a function, not in a field: fmt and dumpers walk into
// unexported fields of whatever holds a Secret without asking its methods, and
// there is nothing for them to find.
type Secret struct{ open func() []byte }

// New wraps b, which the caller must not use afterwards.
func New(b []byte) Secret { return Secret{func() []byte { return b }} }

// Reveal returns the content itself; the caller must not keep or print it.
func (s Secret) Reveal() []byte {
	if s.open == nil {
		return nil
	}
	return s.open()
}

// Empty reports whether there is no content.
func (s Secret) Empty() bool { return len(s.Reveal()) == 0 }

const hidden = "***"

// Format, String, GoString, LogValue and MarshalText all hide the content.
func (s Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, hidden) }
func (s Secret) String() string               { return hidden }
func (s Secret) GoString() string             { return hidden }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// ErrSealed says that the sealed bytes were changed, moved to another place, or sealed
// with another key.
var ErrSealed = errors.New("secret: cannot be opened: changed, moved, or sealed with another key")

// Box seals with AES-256-GCM. The place (tenant, purpose, id, version) is
// authenticated with it, so that a row's ciphertext opens nowhere else. Safe
// for concurrent use where random is.
type Box struct {
	aeads func() []cipher.AEAD // a function, as in Secret: the ciphers hold the keys
	rand  io.Reader
}

// NewBox makes a Box of a 32-byte key, which also opens what older keys sealed. Nonces are
// read from random.
func NewBox(key []byte, random io.Reader, older ...[]byte) (*Box, error) {
	var aeads []cipher.AEAD
	for _, k := range append([][]byte{key}, older...) {
		if len(k) != 32 {
			return nil, fmt.Errorf("secret: the key must have 32 bytes, not %d", len(k))
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		aeads = append(aeads, aead)
	}
	return &Box{aeads: func() []cipher.AEAD { return aeads }, rand: random}, nil
}

// Seal encrypts s for one place.
func (b *Box) Seal(s Secret, place string) ([]byte, error) {
	aead := b.aeads()[0]
	nonce := make([]byte, aead.NonceSize())
	if _, err := io.ReadFull(b.rand, nonce); err != nil {
		return nil, fmt.Errorf("secret: no randomness: %w", err)
	}
	return aead.Seal(nonce, nonce, s.Reveal(), []byte(place)), nil
}

// Open decrypts what Seal made for the same place with any of the keys. The error wraps
// ErrSealed and names the place.
func (b *Box) Open(sealed []byte, place string) (Secret, error) {
	for i := range b.aeads() {
		if s, ok := b.open(i, sealed, place); ok {
			return s, nil
		}
	}
	return Secret{}, fmt.Errorf("%w: %s", ErrSealed, place)
}

// Newest reports whether the newest key sealed what Open opens.
func (b *Box) Newest(sealed []byte, place string) bool {
	_, ok := b.open(0, sealed, place)
	return ok
}

func (b *Box) open(key int, sealed []byte, place string) (Secret, bool) {
	aead := b.aeads()[key]
	n := aead.NonceSize()
	if len(sealed) < n {
		return Secret{}, false
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], []byte(place))
	return New(plain), err == nil
}
