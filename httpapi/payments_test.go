package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaymentFromCreationToCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(w.tenant)
	p := w.earn("USDTERC20", "25.00", "")
	require.Equal(t, "completed", p.Body["status"])
	require.Equal(t, "25.00", p.Body["amount_usd"])
	require.NotNil(t, p.Body["transaction_hash"])
	list := w.ok(http.StatusOK, "GET", "/payments?status=completed&currency=USDTERC20", nil)
	require.Equal(t, "1", list.Body["count"].(interface{ String() string }).String())
	require.Len(t, list.Body["results"], 1)
}

func TestPaymentErrorsNameEveryField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusBadRequest, "POST", "/payments/", `{"amount":"1e3","currency":"USDTERC20","is_fixed_rate":"yes","order_id":5,"expiry_minutes":0,"price_currency":"XXX","customer_email":"nobody"}`)
	require.Equal(t, "invalid_request", a.code())
	details := a.at("error", "details").(map[string]any)
	for _, field := range []string{"amount", "is_fixed_rate", "order_id", "expiry_minutes", "price_currency", "customer_email"} {
		require.Contains(t, details, field)
	}
	a = w.ok(http.StatusUnprocessableEntity, "POST", "/payments/", map[string]any{"amount": "5", "currency": "usdterc20"})
	require.Equal(t, "invalid_currency", a.code())
	require.NotEmpty(t, a.at("error", "details", "supported_currencies"))
}
