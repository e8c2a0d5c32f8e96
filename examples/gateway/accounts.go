package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// bySettings makes what the settings list.
var bySettings = auth.By{Name: "settings", Reason: "the settings of the gateway list it"}

// tenantID is the merchant of this program where no settings file lists others.
const tenantID = "merchant"

// authenticate makes what knows credentials.
func (g *gateway) authenticate(_ context.Context, ring keyring) (err error) {
	g.auth, err = auth.New(auth.Config{
		Store: g.store, Keys: ring.of(forCredentials), Now: g.world.clock.Now, NewID: g.app.Config().NewID, Random: random,
		Unsealed: g.app.Unsealed, Audit: g.app.Audit, Log: g.log,
	})
	return err
}

// accounts makes the merchant and its first application at the first start,
// and follows what the settings say now.
func (g *gateway) accounts(ctx context.Context, ring keyring) (err error) {
	if err := g.authenticate(ctx, ring); err != nil {
		return err
	}
	fees := wallet.Settings{
		TransactionFee: &g.s.fee, WithdrawalPercent: &g.s.percent, WithdrawalFlat: &g.s.flat, WithdrawalFlats: map[string]decimal.Decimal{},
	}
	if len(g.s.tenants) == 0 {
		err = g.only(ctx, fees)
	}
	if len(g.s.tenants) > 0 {
		err = g.listed(ctx, fees)
	}
	if err != nil || !g.s.upgraded && !g.s.reseal {
		return err
	}
	return g.reseal(ctx, ring)
}

// listed makes the tenants of the settings file.
func (g *gateway) listed(ctx context.Context, fees wallet.Settings) error {
	there, _, err := g.app.Wallets.Tenants(ctx, 1, 0)
	if err != nil {
		return err
	}
	for i := range g.s.tenants {
		if err := g.ensure(ctx, &g.s.tenants[i], fees); err != nil {
			return err
		}
	}
	if len(there) == 0 { // the store is new
		g.allSealed(ctx)
	}
	return nil
}

// ids are those of the tenants of the settings: the first one is there from the beginning.
func (s *settings) ids() []string {
	if len(s.tenants) == 0 {
		return []string{tenantID}
	}
	var out []string
	for i := range s.tenants {
		out = append(out, s.tenants[i].id)
	}
	return out
}

// only makes the one merchant that there is without a settings file.
func (g *gateway) only(ctx context.Context, fees wallet.Settings) error {
	name := "Merchant"
	first := fees
	first.Name = &name
	_, err := g.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: tenantID, Settings: first})
	switch {
	case errors.Is(err, wallet.ErrTenantExists):
		_, err = g.app.Wallets.UpdateTenant(ctx, tenantID, fees)
	case err == nil: // the store is new
		g.allSealed(ctx)
	}
	if err != nil {
		return err
	}
	return errors.Join(g.application(ctx), g.apiKey(ctx))
}

// alteredCredentials are those of a tenant that somebody edited in the database. Tokens are of
// no tenant, and named with the first one, which has those of all.
func (g *gateway) alteredCredentials(ctx context.Context, tenant string) (out []cryptopay.Contradiction, err error) {
	if tenant == g.s.ids()[0] {
		tenant = ""
	}
	found, err := g.auth.Verify(ctx, tenant)
	for _, c := range found {
		out = append(out, cryptopay.Contradiction{Kind: c.Kind, ID: c.ID, Detail: c.Detail})
	}
	return out, err
}

// reseal seals what a version before this one stored, and with the newest key what an older
// one sealed. It logs what cannot be sealed.
func (g *gateway) reseal(ctx context.Context, ring keyring) error {
	if _, err := g.auth.Reseal(ctx); err != nil {
		return err
	}
	r, err := g.app.Reseal(ctx)
	for _, c := range r.Left {
		g.log.ErrorContext(ctx, "row_not_sealed", "kind", c.Kind, "id", c.ID, "reason", c.Detail)
	}
	if err := errors.Join(err, ring.resealSeed(ctx, g.store)); err != nil {
		return err
	}
	if g.s.upgraded {
		g.allSealed(ctx)
	}
	g.log.InfoContext(ctx, "resealed", "withdrawals", r.Withdrawals, "orders", r.Orders, "secrets", r.Secrets, "seals", r.Seals, "left", len(r.Left))
	unmoved, err := g.auth.Unmoved(ctx)
	for _, c := range unmoved {
		g.log.WarnContext(ctx, "credential_not_moved", "kind", c.Kind, "id", c.ID, "hint", "only its use moves it to the newest key: it is void once the older key is gone")
	}
	return err
}

// application makes the application of the settings, or one of its own where
// they name none and the merchant has none yet.
func (g *gateway) application(ctx context.Context) error {
	made := auth.NewApp{
		Tenant: tenantID, Name: "bootstrap", Scopes: []auth.Scope{auth.Read, auth.Write, auth.Admin}, Role: auth.TenantAdmin,
		ClientID: g.s.clientID, ClientSecret: g.s.clientSecret, By: bySettings,
	}
	if g.s.clientID == "" {
		apps, err := g.auth.Apps(ctx, tenantID)
		if err != nil {
			return err
		}
		if len(apps) > 0 {
			g.shown = credentials{id: apps[0].ClientID}
			return nil
		}
	} else if _, found, err := g.auth.AppByClient(ctx, g.s.clientID); err != nil || found {
		if err != nil {
			return err
		}
		g.shown = credentials{id: g.s.clientID}
		if _, err := g.auth.Token(ctx, g.s.clientID, g.s.clientSecret, ""); err != nil {
			return fmt.Errorf("CRYPTOPAY_CLIENT_SECRET is not the secret of the application %s in this store: %w", g.s.clientID, err)
		}
		return nil
	}
	app, secret, err := g.auth.CreateApp(ctx, made)
	if errors.Is(err, auth.ErrExists) {
		return g.application(ctx) // a process that starts beside this one made it meanwhile
	}
	if err != nil {
		return fmt.Errorf("CRYPTOPAY_CLIENT_ID, CRYPTOPAY_CLIENT_SECRET: %w", err)
	}
	g.shown = credentials{id: app.ClientID, secret: secret, fresh: g.s.clientID == ""}
	return nil
}

// apiKey makes the API key of the settings.
func (g *gateway) apiKey(ctx context.Context) error {
	if g.s.apiKey == "" {
		return nil
	}
	if _, err := g.auth.CheckKey(ctx, g.s.apiKey); err == nil || !errors.Is(err, auth.ErrToken) {
		return err
	}
	_, _, err := g.auth.CreateKey(ctx, auth.NewKey{Tenant: tenantID, Name: "bootstrap", Key: g.s.apiKey, By: bySettings})
	if errors.Is(err, auth.ErrExists) {
		return nil // a process that starts beside this one made it meanwhile
	}
	if err != nil {
		return fmt.Errorf("CRYPTOPAY_API_KEY: %w", err)
	}
	return nil
}
