package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestX01_PaymentsLinkToThePageThatCustomersPayOn: the gateway serves the page of each payment
// where it knows its own address, and says null where it does not.
func TestX01_PaymentsLinkToThePageThatCustomersPayOn(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	pay := func() map[string]any {
		return i.ok("POST", "/payments/", map[string]any{"amount": "25.00", "currency": "USDTERC20", "order_id": "first"})
	}
	open := &net.TCPAddr{IP: net.IPv4zero, Port: 80}
	require.NoError(t, i.g.serveCheckout(open))
	require.Nil(t, pay()["checkout_url"], "nobody reaches 0.0.0.0")

	require.NoError(t, i.g.serveCheckout(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}))
	p := pay()
	link, _ := p["checkout_url"].(string)
	require.Regexp(t, `^http://127\.0\.0\.1:8080/checkout/[\w-]+$`, link)
	page := func() string {
		rec := httptest.NewRecorder()
		i.api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimPrefix(link, "http://127.0.0.1:8080"), nil))
		require.Equal(t, http.StatusOK, rec.Code)
		return rec.Body.String()
	}
	require.Contains(t, page(), "Send exactly 25 USDT")
	i.ok("POST", "/dev/pay", map[string]any{"address": p["address"], "currency": p["currency"], "amount": p["amount_crypto"]})
	i.ok("POST", "/dev/mine", map[string]any{"blockchain": "ETH", "blocks": 30})
	require.Contains(t, page(), "Payment complete")

	i.g.s.base = "https://pay.example.com"
	require.NoError(t, i.g.serveCheckout(open))
	require.Contains(t, pay()["checkout_url"], "https://pay.example.com/checkout/")
}
