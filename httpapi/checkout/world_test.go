package checkout_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
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

// merchantOf describes a merchant by the payment's order.
func merchantOf(by map[string]checkout.Merchant) func(context.Context, string, *payment.Payment) (checkout.Merchant, error) {
	return func(_ context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
		return by[p.OrderID], nil
	}
}

// picture is a PNG.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		m.Set(i%width, i/width, color.RGBA{uint8(i % width * 2), 80, 120, 255})
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// sends what is due and goes no further: the transaction is in the mempool.
func sends(t testing.TB, h *cryptopaytest.Host, p payment.Payment) {
	t.Helper()
	c := h.Chains[chain.Network(p.Network)]
	_, err := c.Pay(chain.Address(p.Address), p.Currency, p.DueCoins())
	require.NoError(t, err)
}
