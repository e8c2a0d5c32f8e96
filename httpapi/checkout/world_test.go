package checkout_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/payment"
)

const origin = "https://pay.example.com"

// pages makes a Handler of a host's App.
func pages(t testing.TB, h *cryptopaytest.Host, edit ...func(*checkout.Options)) *checkout.Handler {
	t.Helper()
	o := checkout.Options{BaseURL: origin}
	for _, f := range edit {
		f(&o)
	}
	p, err := checkout.New(h.App, o)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// get asks for a path, or for a link of Handler.URL.
func get(t testing.TB, p http.Handler, link string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimPrefix(link, origin), nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// shows is the page of a payment.
func shows(t testing.TB, h *cryptopaytest.Host, p http.Handler, of payment.Payment) string {
	t.Helper()
	w := get(t, p, p.(*checkout.Handler).URL(h.Tenant.ID, of.ID))
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.Code, string(body))
	return string(body)
}
