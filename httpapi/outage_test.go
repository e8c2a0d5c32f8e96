package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// contended is a store in which somebody else was always quicker.
type contended struct {
	storage.Store
	on atomic.Bool
}

func (s *contended) Commit(ctx context.Context, changes ...storage.Change) []error {
	if !s.on.Load() {
		return s.Store.Commit(ctx, changes...)
	}
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = storage.ErrConflict
	}
	return errs
}

// nowhere has no addresses.
type nowhere struct{ chain.AddressSource }

func (s nowhere) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	if from == 0 && count == 1 { // what Open compares
		return s.AddressSource.Derive(ctx, n, from, count)
	}
	return nil, nil
}

// TestFA05_OutagesAndPressureAre503: they pass, and the caller is told when to come
// again. What is down stands in the log alone.
func TestFA05_OutagesAndPressureAre503(t *testing.T) {
	t.Parallel()
	pay := map[string]any{"amount": "25", "currency": "BTC"}
	for name, c := range map[string]struct {
		config func(*cryptopay.Config)
		before func(*world)
		method string
		path   string
		body   any
	}{
		"a node that does not answer": {
			config: func(c *cryptopay.Config) {
				c.Payments.NetworkFee = func(context.Context, *chain.Currency) (ledger.Amount, error) { return 0, chain.ErrNode }
			},
			method: "POST", path: "/payments/", body: pay,
		},
		"a network that was never read": {
			before: func(w *world) { w.chains["BTC"].Front().FailNext(1000, errors.New("secret of the node")) },
			method: "POST", path: "/payments/", body: pay,
		},
		"no address": {
			config: func(c *cryptopay.Config) { c.Addresses = nowhere{c.Addresses} },
			method: "POST", path: "/payments/", body: pay,
		},
		"too many conflicts": {
			before: func(w *world) { w.store.(*contended).on.Store(true) },
			method: "POST", path: "/wallets/", body: map[string]any{"name": "n", "external_id": "e"},
		},
		"no price for a payment": {
			config: func(c *cryptopay.Config) { c.Rates = rates.NewFixed(c.Clock.Now, "USD", nil) },
			method: "POST", path: "/payments/", body: pay,
		},
		"no price to show": {
			config: func(c *cryptopay.Config) { c.Rates = rates.NewFixed(c.Clock.Now, "USD", nil) },
			method: "GET", path: "/rates/BTC/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *setup) { s.store, s.config = &contended{Store: memory.New()}, c.config })
			if c.before != nil {
				c.before(w)
			}
			a := w.ok(http.StatusServiceUnavailable, c.method, c.path, c.body)
			require.Equal(t, "server_error", a.code())
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			require.NotEmpty(t, a.at("error", "details", "request_id"))
			require.NotContains(t, a.Raw, "secret")
		})
	}
}

// TestFA11_TheTokenThatANetworkHas: without a token USDT is meant where the network has
// it, else its own coin.
func TestFA11_TheTokenThatANetworkHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step()
	for network, token := range map[string]string{"ETH": "USDT", "BTC": "BTC"} {
		held := w.ok(http.StatusOK, "GET", "/manage/users/balances/"+network, nil)
		require.Equal(t, token, held.Body["token"])
	}
	for network, currency := range map[string]string{"ETH": "USDTERC20", "BTC": "BTC"} {
		fee := w.ok(http.StatusOK, "POST", "/withdrawal/fee-estimate/", map[string]any{"amount": 1, "blockchain": network})
		require.Equal(t, currency, fee.Body["currency"])
	}
}
