package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Mount the interface on a mux, with credentials for one merchant.
func ExampleNew() {
	ctx, registry, store := context.Background(), chain.MainnetRegistry(), memory.New()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: time.Now})
	seed, _ := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "") // never use this one
	xpubs, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(xpubs, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})

	var accounts *auth.Service
	app, err := cryptopay.New(cryptopay.Config{
		Store: store, Chains: []chain.Client{eth.Client()}, Addresses: addresses,
		Rates: rates.NewFixed(time.Now, "USD", map[string]string{"ETH": "2000"}), Key: bytes.Repeat([]byte{7}, 32),
		Workers: []cryptopay.Worker{{Name: "tokens", Every: time.Minute, Step: func(ctx context.Context) (int, error) { return accounts.Purge(ctx, 500) }}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err = auth.New(auth.Config{
		Store: store, Key: bytes.Repeat([]byte{9}, 32), Now: time.Now, NewID: app.Config().NewID, Random: rand.Reader,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := app.Open(ctx, auth.Tables()...); err != nil {
		fmt.Println(err)
		return
	}
	name := "My shop"
	shop, _ := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	_, secret, _ := accounts.CreateKey(ctx, auth.NewKey{Tenant: shop.ID, Name: "backend"})

	api, err := httpapi.New(app, httpapi.Options{Auth: accounts, Prefix: "/pay"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/pay/", api)

	for _, key := range []string{secret, "wrong"} {
		r := httptest.NewRequest(http.MethodGet, "/pay/wallets/", http.NoBody)
		r.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 401
}
