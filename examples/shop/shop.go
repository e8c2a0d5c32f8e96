package main

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/httpapi/limit"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
)

const (
	name       = "Corner Shop"
	tenant     = "shop" // this platform has one merchant: itself
	restPrefix = "/pay"
)

// shop is the program's parts.
type shop struct {
	settings
	*database
	log       *slog.Logger
	world     *world // the networks and the prices
	app       *cryptopay.App
	pay       *checkout.Handler // the pages that customers pay on
	api       *httpapi.Handler  // the REST interface
	templates *template.Template
	limits    *limit.Memory
}

// open composes the shop. It starts nothing.
func open(ctx context.Context, s settings, log *slog.Logger) (_ *shop, err error) {
	out := &shop{settings: s, log: log, limits: limit.NewMemory(10_000)}
	if out.templates, err = readTemplates(); err != nil {
		return nil, err
	}
	if out.database, err = openDatabase(ctx, s); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.database.close()
		}
	}()
	if out.world, err = openWorld(ctx, s, out.database, log); err != nil {
		return nil, err
	}
	if err = out.compose(ctx); err != nil {
		return nil, err
	}
	return out, out.world.fund(ctx, out.app)
}

// compose embeds the library: the App, the pages that customers pay on, the REST interface.
func (s *shop) compose(ctx context.Context) error {
	key, seed, err := loadKeys(s.dir)
	if err != nil {
		return err
	}
	addresses, err := seed.Source(s.world.clients...)
	if err != nil {
		return err
	}
	s.world.source = addresses
	inspect := map[chain.Network]keys.Chain{}
	for _, c := range s.world.clients {
		inspect[c.Network()] = c
	}
	// In earnest the signer is a program on another machine: docs/signer.md.
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: inspect, Registry: keys.StoreRegistry{Store: s.store}, Mandates: cryptopay.MandateKeys(key),
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	if err != nil {
		return err
	}
	cfg := cryptopay.Config{
		Store: s.store, Chains: s.world.clients, Registry: s.world.registry, Addresses: addresses, Signer: signer,
		Rates: s.world.rates, Key: key, Clock: s.world.clock, Log: s.log,
		Consumers: []stream.Consumer{{Name: "orders", Handle: s.hear}},
	}
	if s.app, err = cryptopay.Open(ctx, cfg, tables()...); err != nil {
		return err
	}
	_, err = s.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: tenant, Settings: wallet.Settings{Name: new(name)}})
	if err != nil && !errors.Is(err, wallet.ErrTenantExists) {
		return err
	}
	if s.pay, err = checkout.New(s.app, checkout.Options{BaseURL: s.base, Merchant: merchant, Log: s.log}); err != nil {
		return err
	}
	s.api, err = httpapi.New(s.app, httpapi.Options{Login: s, Prefix: restPrefix, BaseURL: s.base, CheckoutURL: s.pay.URL, Log: s.log})
	return err
}

// merchant is what the page of a payment shows of the shop: the way back leads to the order.
// Whoever may create payments over the REST interface may write anything for an order.
func merchant(_ context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
	back := "/"
	if numbers.MatchString(p.OrderID) {
		back = "/orders/" + p.OrderID
	}
	return checkout.Merchant{Name: name, Colour: colour, ReturnURL: back, Contact: "mailto:help@shop.example"}, nil
}

// handler is everything that is served: the shop's own pages, the pages of payments, the REST
// interface. Forms of other sites are refused.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	s.routes(mux)
	own := s.guarded(http.NewCrossOriginProtection().Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A ServeMux would redirect paths that are not clean, and so lose what is posted.
		switch {
		case strings.HasPrefix(r.URL.Path, "/checkout/"):
			s.pay.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, restPrefix+"/"):
			s.api.ServeHTTP(w, r)
		default:
			own.ServeHTTP(w, r)
		}
	})
}

// work does what is due until ctx ends.
func (s *shop) work(ctx context.Context) error {
	if s.world.simulated() {
		return s.world.run(ctx, s.app, s.block)
	}
	return s.app.Run(ctx)
}

func (s *shop) close() error { return s.database.close() }
