package checkout_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Mount the pages on a mux, and send the customer to the page of a payment.
func ExampleNew() {
	ctx, registry := context.Background(), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: time.Now})
	seed, _ := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "") // never use this one
	xpubs, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(xpubs, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	app, err := cryptopay.Open(ctx, cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{eth.Client()}, Addresses: addresses,
		Rates: rates.NewFixed(time.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1"}), Key: bytes.Repeat([]byte{7}, 32),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pages, err := checkout.New(app, checkout.Options{
		BaseURL: "https://pay.example.com",
		Merchant: func(_ context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
			return checkout.Merchant{Name: "Tea House", Colour: "#1f5fbf", ReturnURL: "https://tea.example.com/orders/" + url.PathEscape(p.OrderID)}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/checkout/", pages)

	name := "Tea House"
	shop, _ := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	p, err := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}, OrderID: "42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	link := pages.URL(shop.ID, p.ID) // send the customer there

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, strings.TrimPrefix(link, "https://pay.example.com"), nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "Send exactly 25 USDT"))
	// Output: 200 true
}
