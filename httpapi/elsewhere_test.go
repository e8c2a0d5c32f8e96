package httpapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// only goes on with an App that serves these networks alone.
func (w *world) only(config func(*cryptopay.Config), networks ...chain.Network) {
	w.t.Helper()
	for n := range w.chains {
		if !slices.Contains(networks, n) {
			delete(w.chains, n)
		}
	}
	w.app = w.compose(setup{config: config}, &lockedRandom{r: rand.NewChaCha8([32]byte{2})})
	require.NoError(w.t, w.app.Open(w.t.Context(), append(keys.Tables(), auth.Tables()...)...))
	var err error
	w.api, err = httpapi.New(w.app, httpapi.Options{Auth: w.auth, Limits: &httpapi.Limits{}})
	require.NoError(w.t, err)
	w.contract = contractOf(w.t, w.api)
}

// TestFA06_PaymentsOfANetworkThatIsNotServedAreShown: a process that has no client of a
// network, because another one serves it or nobody does any more, lists its payments, shows
// them and their deposits, and decides about what is in suspense.
func TestFA06_PaymentsOfANetworkThatIsNotServedAreShown(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(*cryptopay.Config){
		"elsewhere": func(c *cryptopay.Config) { c.Elsewhere = []chain.Network{"ETH"} },
		"retired":   func(c *cryptopay.Config) { c.Retire = []string{"ETH", "USDTERC20", "USDCERC20"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, unlimited)
			id := w.otherwise()
			w.only(config, "BTC")
			shown := list(t, w.ok(http.StatusOK, "GET", "/payments/", nil), "results")
			require.Len(t, shown, 1)
			require.Equal(t, []any{id, "10.00000000"}, []any{shown[0]["transaction_id"], shown[0]["amount_received"]})
			require.Len(t, w.paid(id)["suspense"], 2)
			deposits := list(t, w.ok(http.StatusOK, "GET", "/payments/"+id+"/deposits/", nil), "deposits")
			require.Len(t, deposits, 3)
			require.Equal(t, []any{"final", json.Number("60")}, []any{deposits[0]["status"], deposits[0]["confirmations"]})
			for _, entry := range list(t, w.ok(http.StatusOK, "GET", "/suspense/", nil), "suspense") {
				w.ok(http.StatusOK, "POST", "/suspense/"+entry["suspense_id"].(string)+"/resolve/", map[string]any{"action": "credit", "reason": "it is his"})
			}
			require.Equal(t, "35.00000000", w.available("USDTERC20"))
			w.sound()
		})
	}
}
