package webhook_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// TestH06_Vectors: RFC 4231 and the reference vector of Standard Webhooks.
func TestH06_Vectors(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ key, body, want string }{
		{strings.Repeat("\x0b", 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{strings.Repeat("\xaa", 20), strings.Repeat("\xdd", 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		s := webhook.NewSigner([]byte(v.key))
		for range 3 { // the state is used again
			require.Equal(t, v.want, s.Body([]byte(v.body)))
		}
	}
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	const body, id, want = `{"test": 2432232314}`, "msg_p5jXN8AQM9LWM0D4loKWxJek", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at := time.Unix(1614265330, 0)
	require.Equal(t, want, webhook.NewSigner(key).Standard(id, at, []byte(body)))
	h := http.Header{}
	h.Set(webhook.HeaderStandardID, id)
	h.Set(webhook.HeaderStandardTimestamp, "1614265330")
	h.Set(webhook.HeaderStandardSignature, "v1a,xxxx v2,yyyy "+want)
	require.NoError(t, webhook.Verify(h, []byte(body), at, 0, string(key)))
}

func signed(secret, previous, id string, at time.Time, body []byte) http.Header {
	h := http.Header{}
	var p *webhook.Signer
	if previous != "" {
		p = webhook.NewSigner([]byte(previous))
	}
	webhook.Headers(h, webhook.NewSigner([]byte(secret)), p, id, 1, at, body)
	return h
}

func TestH06_Verify(t *testing.T) {
	t.Parallel()
	const secret, old = "correct-horse-battery", "older-horse-battery"
	body, at := []byte(`{"event":"x"}`), time.Unix(1_790_000_000, 0)
	fresh := func() http.Header { return signed(secret, old, "e/000001", at, body) }

	require.NoError(t, webhook.Verify(fresh(), body, at, 0, secret))
	require.NoError(t, webhook.Verify(fresh(), body, at, 0, old), "the secret before, in its overlap")
	require.NoError(t, webhook.Verify(fresh(), body, at, 0, "", "wrong", secret))
	require.NoError(t, webhook.VerifyBody(fresh(), body, secret))
	require.NoError(t, webhook.VerifyBody(fresh(), body, old))

	for _, d := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		require.NoError(t, webhook.Verify(fresh(), body, at.Add(d), 0, secret))
		require.ErrorIs(t, webhook.Verify(fresh(), body, at.Add(d+d/300), 0, secret), webhook.ErrStale)
	}
	require.NoError(t, webhook.Verify(fresh(), body, at.Add(time.Hour), time.Hour, secret))

	for name, change := range map[string]func(h http.Header){
		"id":                   func(h http.Header) { h.Set(webhook.HeaderStandardID, "e/000002") },
		"time":                 func(h http.Header) { h.Set(webhook.HeaderStandardTimestamp, fmt.Sprint(at.Unix()+1)) },
		"no id":                func(h http.Header) { h.Del(webhook.HeaderStandardID) },
		"no time":              func(h http.Header) { h.Del(webhook.HeaderStandardTimestamp) },
		"empty":                func(h http.Header) { clear(h) },
		"negative time":        func(h http.Header) { h.Set(webhook.HeaderStandardTimestamp, "-1") },
		"huge time":            func(h http.Header) { h.Set(webhook.HeaderStandardTimestamp, "9223372036854775807") },
		"time with a sign":     func(h http.Header) { h.Set(webhook.HeaderStandardTimestamp, "1e9") },
		"the headers stripped": func(h http.Header) { h.Del(webhook.HeaderStandardSignature) },
		"another version": func(h http.Header) {
			h.Set(webhook.HeaderStandardSignature, "v2"+h.Get(webhook.HeaderStandardSignature)[2:])
		},
		"X-Signature in place": func(h http.Header) { h.Set(webhook.HeaderStandardSignature, "v1,"+h.Get(webhook.HeaderSignature)) },
		"an empty signature":   func(h http.Header) { h.Set(webhook.HeaderStandardSignature, "v1,") },
		"a signature cut short": func(h http.Header) {
			h.Set(webhook.HeaderStandardSignature, h.Get(webhook.HeaderStandardSignature)[:20])
		},
	} {
		h := fresh()
		change(h)
		require.ErrorIs(t, webhook.Verify(h, body, at, 0, secret), webhook.ErrSignature, name)
	}
	for name, secrets := range map[string][]string{"none": nil, "empty": {""}, "wrong": {"wrong"}, "longer": {secret + "0"}} {
		require.ErrorIs(t, webhook.Verify(fresh(), body, at, 0, secrets...), webhook.ErrSignature, name)
		require.ErrorIs(t, webhook.VerifyBody(fresh(), body, secrets...), webhook.ErrSignature, name)
	}
	other := []byte(`{"event":"y"}`)
	require.ErrorIs(t, webhook.Verify(fresh(), other, at, 0, secret), webhook.ErrSignature)
	require.ErrorIs(t, webhook.VerifyBody(fresh(), other, secret), webhook.ErrSignature)
	// Moving a boundary between id, time and body moves nothing unnoticed.
	h := signed(secret, "", "e/1", time.Unix(11, 0), []byte("x"))
	h.Set(webhook.HeaderStandardTimestamp, "1")
	require.ErrorIs(t, webhook.Verify(h, []byte("1.x"), time.Unix(11, 0), 0, secret), webhook.ErrSignature)
}

// FuzzH06_Verify: what was not signed is never taken, and nothing panics.
func FuzzH06_Verify(f *testing.F) {
	const secret = "correct-horse-battery"
	body, at := []byte(`{"event":"x"}`), time.Unix(1_790_000_000, 0)
	good := signed(secret, "", "e/000001", at, body)
	f.Add("e/000001", "1790000000", good.Get(webhook.HeaderStandardSignature), good.Get(webhook.HeaderSignature), body)
	f.Add("", "", "", "", []byte{})
	f.Add("e/000001", "+1790000000", "v1,"+strings.Repeat("A", 44), "00", []byte("x"))
	f.Fuzz(func(t *testing.T, id, unix, standard, plain string, sent []byte) {
		h := http.Header{}
		h.Set(webhook.HeaderStandardID, id)
		h.Set(webhook.HeaderStandardTimestamp, unix)
		h.Set(webhook.HeaderStandardSignature, standard)
		h.Set(webhook.HeaderSignature, plain)
		if webhook.Verify(h, sent, at, 0, secret) == nil {
			require.Equal(t, "e/000001", id)
			require.Equal(t, string(body), string(sent))
			require.Contains(t, strings.Fields(standard), good.Get(webhook.HeaderStandardSignature))
		}
		if webhook.VerifyBody(h, sent, secret) == nil {
			require.Equal(t, string(body), string(sent))
			require.Equal(t, good.Get(webhook.HeaderSignature), strings.ToLower(plain))
		}
	})
}

func TestHeadersAreCanonical(t *testing.T) {
	t.Parallel()
	h := signed("secret", "previous", "id", start, []byte("x"))
	require.Len(t, h, 8)
	for name := range h {
		canonical := http.CanonicalHeaderKey(name)
		require.Equal(t, name, canonical)
	}
	h.Set(webhook.HeaderID, "other")
	h.Add(webhook.HeaderTimestamp, "more")
	require.Equal(t, "id", h.Get(webhook.HeaderStandardID))
	require.Len(t, h[webhook.HeaderStandardTimestamp], 1)
}
