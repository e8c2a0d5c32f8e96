package httpapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
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

// TestFA06_BalancesOfATokenOfTheHostsThatIsServedElsewhere: where processes share out the
// networks, each shows a merchant all that he has, also of a token that this library does not
// ship.
func TestFA06_BalancesOfATokenOfTheHostsThatIsServedElsewhere(t *testing.T) {
	t.Parallel()
	currencies := append(chain.Mainnet(), chain.Currency{
		Code: "POINTERC20", Name: "Points", Network: "ETH", Token: "POINT", Contract: "0x00000000000000000000000000000000000000F0", Decimals: 6, Scale: 6,
		Confirmations: 12, Min: decimal.New(1, 0), Max: decimal.New(1000, 0), MinWithdrawal: decimal.New(1, 0), Dust: decimal.New(1, -2),
	})
	registry, err := chain.NewRegistry(chain.Networks(), currencies)
	require.NoError(t, err)
	w := newWorld(t, unlimited)
	w.rates = rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "POINT": "1"})
	w.chains["ETH"] = sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Seed: 1, Now: w.clock.Now, Finality: 20})
	w.only(func(c *cryptopay.Config) { c.Registry = registry }, "ETH", "BTC")
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "POINTERC20"}).Body
	_, err = w.chains["ETH"].Pay(chain.Address(p["address"].(string)), "POINTERC20", decimal.New(25, 0))
	require.NoError(t, err)
	w.mine(15)

	w.only(func(c *cryptopay.Config) { c.Registry, c.Elsewhere = registry, []chain.Network{"ETH"} }, "BTC")
	require.Equal(t, "25.00000000", w.available("POINTERC20"))
	for path, name := range map[string]string{"/user/balances/history/": "history", "/transactions/transactions/": "results", "/payments/": "results", "/transactions/stats/": "by_currency"} {
		require.Len(t, list(t, w.ok(http.StatusOK, "GET", path, nil), name), 1, path)
	}
}
