package webhook_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// A receiver checks the raw body before it parses anything. During a rotation
// it may give both of its secrets.
func ExampleVerify() {
	const secret = "sender-and-receiver-share-this"
	body := []byte(`{"event":"payment_status_update","data":{},"timestamp":"2026-11-20T12:00:00.000Z"}`)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	header := http.Header{} // what the sender does
	webhook.Headers(header, webhook.NewSigner([]byte(secret)), nil, "payment-1/000001", 1, at, body)

	fmt.Println(webhook.Verify(header, body, at.Add(time.Second), 0, secret))
	fmt.Println(webhook.Verify(header, []byte(`{}`), at, 0, secret))
	fmt.Println(webhook.Verify(header, body, at.Add(time.Hour), 0, secret))
	// Output:
	// <nil>
	// webhook: the signature does not match: check the secret and that the raw body is used
	// webhook: the timestamp is outside the tolerance: a replay, or a clock that is off
}

// A whole receiver: bounded body, signature, each id once, and a quick 2xx.
func Example_receiver() {
	const secret = "sender-and-receiver-share-this"
	seen := map[string]bool{} // in earnest: a table with a unique key
	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(r.Header, body, time.Now(), 0, secret) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if id := r.Header.Get(webhook.HeaderStandardID); !seen[id] {
			seen[id] = true
			fmt.Println("new:", id)
		}
		w.WriteHeader(http.StatusNoContent)
	})

	deliver := func(attempt int, body string) int {
		r := httptest.NewRequest(http.MethodPost, "/hook", bytes.NewBufferString(body))
		webhook.Headers(r.Header, webhook.NewSigner([]byte(secret)), nil, "payment-1/000001", attempt, time.Now(), []byte(body))
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		return w.Code
	}
	fmt.Println(deliver(1, `{"event":"payment_status_update"}`))
	fmt.Println(deliver(2, `{"event":"payment_status_update"}`)) // delivered twice, done once
	// Output:
	// new: payment-1/000001
	// 204
	// 204
}
