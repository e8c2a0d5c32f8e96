package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The headers of a delivery. The last three are those of the Standard Webhooks
// specification (standardwebhooks.com), whose signature also covers id and
// time; X-Signature covers the body alone.
const (
	HeaderSignature         = "X-Signature"          // hex HMAC-SHA256 of the raw body
	HeaderSignaturePrevious = "X-Signature-Previous" // the same with the secret before, for 24 h
	HeaderID                = "X-Webhook-Id"
	HeaderTimestamp         = "X-Webhook-Timestamp" // Unix seconds of this attempt
	HeaderAttempt           = "X-Webhook-Attempt"
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature" // "v1,<base64>", one per secret, space-separated
)

// Errors of Verify.
var (
	ErrSignature = errors.New("webhook: the signature does not match: check the secret and that the raw body is used")
	ErrStale     = errors.New("webhook: the timestamp is outside the tolerance: a replay, or a clock that is off")
)

// Signer signs with one secret. It keeps keyed hash states for reuse and may be
// used concurrently.
type Signer struct{ pool sync.Pool }

// keyed is a state with room for what comes out of it.
type keyed struct {
	hash.Hash
	sum  [sha256.Size]byte
	text [2 * sha256.Size]byte
}

// NewSigner makes a Signer of a secret's bytes.
func NewSigner(secret []byte) *Signer {
	key := append([]byte(nil), secret...)
	return &Signer{pool: sync.Pool{New: func() any { return &keyed{Hash: hmac.New(sha256.New, key)} }}}
}

// sign encodes the HMAC-SHA256 of the parts.
func (s *Signer) sign(encode func(dst, sum []byte) []byte, parts ...[]byte) string {
	k := s.pool.Get().(*keyed)
	k.Reset()
	for _, p := range parts {
		k.Write(p)
	}
	text := string(encode(k.text[:0], k.Sum(k.sum[:0])))
	s.pool.Put(k)
	return text
}

// Body is the value of X-Signature: hex HMAC-SHA256 of the raw body.
func (s *Signer) Body(body []byte) string { return s.sign(hex.AppendEncode, body) }

// Standard is one entry of Webhook-Signature: over "id.timestamp.body".
func (s *Signer) Standard(id string, at time.Time, body []byte) string {
	head := append(strconv.AppendInt(append([]byte(id), '.'), at.Unix(), 10), '.')
	return s.sign(appendStandard, head, body)
}

func appendStandard(dst, sum []byte) []byte {
	return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), sum)
}

// Headers sets every signing header for one attempt. previous may be nil.
func Headers(h http.Header, current, previous *Signer, id string, attempt int, at time.Time, body []byte) {
	standard := current.Standard(id, at, body)
	if previous != nil {
		h.Set(HeaderSignaturePrevious, previous.Body(body))
		standard += " " + previous.Standard(id, at, body)
	}
	// The names are canonical; one array holds all values.
	v := [...]string{current.Body(body), id, strconv.FormatInt(at.Unix(), 10), strconv.Itoa(attempt), standard}
	h[HeaderSignature] = v[0:1:1]
	h[HeaderID], h[HeaderStandardID] = v[1:2:2], v[1:2:2]
	h[HeaderTimestamp], h[HeaderStandardTimestamp] = v[2:3:3], v[2:3:3]
	h[HeaderAttempt] = v[3:4:4]
	h[HeaderStandardSignature] = v[4:5:5]
}

// Verify checks a delivery on the receiver's side: header and the raw,
// unparsed body as they came, the receiver's secrets (the current one, and for
// a day after a rotation the one before), the receiver's time, and how far the
// timestamp may be off (0 = 5 minutes). It compares in constant time.
//
// It goes by the Standard Webhooks headers, which cover id and time too. The
// same id may still come twice within the tolerance: remember ids. A replay
// outside of it is ErrStale, any mismatch, also a missing header, ErrSignature:
// whoever could strip headers could otherwise replay for ever; VerifyBody is
// for those who have X-Signature alone.
//
// The key is the secret's own bytes; where a Standard Webhooks library wants
// one, give it "whsec_" and the secret in base64.
func Verify(h http.Header, body []byte, now time.Time, tolerance time.Duration, secrets ...string) error {
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	unix, err := strconv.ParseInt(h.Get(HeaderStandardTimestamp), 10, 64)
	if err != nil || unix < 0 || unix > 1<<40 {
		return fmt.Errorf("%w: no usable %s", ErrSignature, HeaderStandardTimestamp)
	}
	at := time.Unix(unix, 0)
	ok := false
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		want := []byte(NewSigner([]byte(secret)).Standard(h.Get(HeaderStandardID), at, body))
		for _, got := range strings.Fields(h.Get(HeaderStandardSignature)) {
			ok = hmac.Equal([]byte(got), want) || ok
		}
	}
	if !ok {
		return ErrSignature
	}
	if d := now.Sub(at); d > tolerance || d < -tolerance {
		return ErrStale
	}
	return nil
}

// VerifyBody checks X-Signature, or for a day after a rotation
// X-Signature-Previous, in constant time: that the body is the sender's. It
// cannot tell a replay, and says nothing about any other header. The error is
// ErrSignature.
func VerifyBody(h http.Header, body []byte, secrets ...string) error {
	ok := false
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		want := []byte(NewSigner([]byte(secret)).Body(body))
		for _, name := range []string{HeaderSignature, HeaderSignaturePrevious} {
			ok = hmac.Equal([]byte(strings.ToLower(h.Get(name))), want) || ok
		}
	}
	if !ok {
		return ErrSignature
	}
	return nil
}
