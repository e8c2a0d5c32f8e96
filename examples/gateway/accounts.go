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

// tenantID is the one merchant of this program.
const tenantID = "merchant"

// authenticate makes what knows credentials.
func (g *gateway) authenticate(_ context.Context, ring keyring) (err error) {
	g.auth, err = auth.New(auth.Config{
		Store: g.store, Keys: ring.of(forCredentials), Now: g.world.clock.Now, NewID: g.app.Config().NewID, Random: random,
		Unsealed: g.app.Unsealed, Log: g.log,
	})
	return err
}

// accounts makes the merchant and its first application at the first start,
// and follows what the settings say now.
func (g *gateway) accounts(ctx context.Context, ring keyring) (err error) {
	if err := g.authenticate(ctx, ring); err != nil {
		return err
	}
	name := "Merchant"
	fees := wallet.Settings{
		TransactionFee: &g.s.fee, WithdrawalPercent: &g.s.percent, WithdrawalFlat: &g.s.flat, WithdrawalFlats: map[string]decimal.Decimal{},
	}
	first := fees
	first.Name = &name
	_, err = g.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: tenantID, Settings: first})
	switch {
	case errors.Is(err, wallet.ErrTenantExists):
		_, err = g.app.Wallets.UpdateTenant(ctx, tenantID, fees)
	case err == nil: // the store is new
		g.allSealed(ctx)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(g.application(ctx), g.apiKey(ctx)); err != nil || !g.s.upgraded && !g.s.reseal {
		return err
	}
	return g.reseal(ctx, ring)
}

// alteredCredentials are those that somebody edited in the database. Tokens are those of the
// one merchant.
func (g *gateway) alteredCredentials(ctx context.Context, _ string) (out []cryptopay.Contradiction, err error) {
	found, err := g.auth.Verify(ctx, "")
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
		ClientID: g.s.clientID, ClientSecret: g.s.clientSecret,
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
	_, _, err := g.auth.CreateKey(ctx, auth.NewKey{Tenant: tenantID, Name: "bootstrap", Key: g.s.apiKey})
	if errors.Is(err, auth.ErrExists) {
		return nil // a process that starts beside this one made it meanwhile
	}
	if err != nil {
		return fmt.Errorf("CRYPTOPAY_API_KEY: %w", err)
	}
	return nil
}
