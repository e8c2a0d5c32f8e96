package checkout

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"
)

// ref is the payment that a link is of.
type ref struct{ tenant, payment string }

// sealer makes the tokens of links and reads them. A token is a MAC of 16 bytes over a ref,
// and the ref encrypted with the MAC as its initial vector (as in RFC 5297): whoever has a
// token learns no id, and the same ref always has the same token under the same key.
type sealer struct{ keys func() []linkKey } // a function: what prints a Handler finds no key

type linkKey struct{ mac, cipher []byte }

const macSize = 16

func newSealer(macs, ciphers [][]byte) sealer {
	keys := make([]linkKey, len(macs))
	for i := range macs {
		keys[i] = linkKey{macs[i], ciphers[i]}
	}
	return sealer{func() []linkKey { return keys }}
}

// token is made with the newest key.
func (s sealer) token(r ref) string {
	k, body := s.keys()[0], r.pack()
	iv := k.sum(body)
	return base64.RawURLEncoding.EncodeToString(append(iv, k.crypt(iv, body)...))
}

// open reads a token that any of the keys made.
func (s sealer) open(token string) (ref, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= macSize || len(token) > maxToken || strings.ContainsAny(token, "\r\n") { // which base64 passes over
		return ref{}, false
	}
	for _, k := range s.keys() {
		if body := k.crypt(raw[:macSize], raw[macSize:]); hmac.Equal(k.sum(body), raw[:macSize]) {
			return unpack(body)
		}
	}
	return ref{}, false
}

// maxToken bounds the work that a stranger's link makes.
const maxToken = 512

func (k linkKey) sum(body []byte) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write(body)
	return h.Sum(nil)[:macSize]
}

func (k linkKey) crypt(iv, in []byte) []byte {
	block, err := aes.NewCipher(k.cipher)
	if err != nil {
		panic(err) // the size is a constant
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, iv).XORKeyStream(out, in)
	return out
}

// The forms of a packed ref, its first byte.
const (
	formUUIDs = 1 // both ids are UUIDs
	formTexts = 2 // any other: the tenant, a NUL, the payment
)

func (r ref) pack() []byte {
	t, err := uuid.Parse(r.tenant)
	p, err2 := uuid.Parse(r.payment)
	if err == nil && err2 == nil && t.String() == r.tenant && p.String() == r.payment {
		return append(append([]byte{formUUIDs}, t[:]...), p[:]...)
	}
	return append([]byte{formTexts}, r.tenant+"\x00"+r.payment...)
}

func unpack(b []byte) (ref, bool) {
	switch {
	case b[0] == formUUIDs && len(b) == 33:
		return ref{uuid.UUID(b[1:17]).String(), uuid.UUID(b[17:33]).String()}, true
	case b[0] == formTexts:
		tenant, payment, ok := strings.Cut(string(b[1:]), "\x00")
		return ref{tenant, payment}, ok
	}
	return ref{}, false
}
