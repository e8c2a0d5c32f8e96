package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// tenant is a merchant of the settings file. Others may be in the store: the operator's command
// makes them.
type tenant struct {
	at            yamlfile.Place
	id, name      string
	fees          wallet.Settings // what it says of fees; the rest is that of all
	webhook       string          // URL, "" = what is stored
	webhookSecret string
	apps          []credential
	keys          []credential
}

// credential is an application or an API key.
type credential struct {
	at         yamlfile.Place
	name       string
	id, secret string // id of an application
	scopes     []auth.Scope
	role       auth.Role
}

func (r *fileReader) tenants(n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Bad(n, "tenants", "must be a list, as `- id: …` below it")
		return
	}
	ids, clients := map[string]bool{}, map[string]bool{}
	for i, one := range list.Values {
		t := r.tenant(one, fmt.Sprintf("tenants[%d]", i))
		if ids[t.id] {
			r.Wrong(t.at, "has the id %s of another tenant", t.id)
		}
		ids[t.id] = true
		for _, a := range t.apps {
			if clients[a.id] {
				r.Wrong(a.at, "has the client_id %s of another application", a.id)
			}
			clients[a.id] = true
		}
		r.f.tenants = append(r.f.tenants, t)
	}
}

func (r *fileReader) tenant(n ast.Node, field string) tenant {
	t := tenant{at: r.Place(n, field)}
	for _, p := range r.Pairs(n, field, []string{"applications", "fees", "id", "keys", "name", "webhook"}) {
		at := yamlfile.Under(field, p.Key)
		switch p.Key {
		case "id":
			if t.id, _ = r.text(p.Value, at); strings.ContainsAny(t.id, " /") || len(t.id) > 64 {
				r.Bad(p.Value, at, "must be 1 to 64 characters without blanks and slashes")
			}
			t.at = r.Place(p.Value, field)
		case "name":
			t.name, _ = r.text(p.Value, at)
		case "fees":
			r.tenantFees(&t, p.Value, at)
		case "webhook":
			for _, w := range r.Pairs(p.Value, at, []string{"secret", "url"}) {
				v, _ := r.text(w.Value, yamlfile.Under(at, w.Key))
				if w.Key == "url" {
					t.webhook = v
					continue
				}
				if t.webhookSecret = v; webhook.CheckSecret(v) != nil {
					r.Bad(w.Value, yamlfile.Under(at, w.Key), "%s", strings.TrimPrefix(webhook.CheckSecret(v).Error(), "webhook: "))
				}
			}
			if t.webhook == "" || t.webhookSecret == "" {
				r.Bad(p.At, at, "needs url and secret: the merchant checks with the secret who sends")
			}
		case "applications":
			t.apps = r.credentials(p.Value, at, []string{"client_id", "client_secret", "name", "role", "scopes"})
		case "keys":
			t.keys = r.credentials(p.Value, at, []string{"key", "name", "role", "scopes"})
		}
	}
	for name, v := range map[string]string{"id": t.id, "name": t.name} {
		if v == "" {
			r.Wrong(t.at, "needs %s", name)
		}
	}
	return t
}

func (r *fileReader) tenantFees(t *tenant, n ast.Node, field string) {
	for _, p := range r.Pairs(n, field, []string{"transaction", "withdrawal_flat", "withdrawal_percent"}) {
		v, ok := r.text(p.Value, yamlfile.Under(field, p.Key))
		if !ok {
			continue
		}
		d, err := ledger.ParseDecimal(v)
		if err != nil {
			r.Bad(p.Value, yamlfile.Under(field, p.Key), "must be a figure, such as 0.5")
		}
		switch p.Key {
		case "transaction":
			t.fees.TransactionFee = &d
		case "withdrawal_percent":
			t.fees.WithdrawalPercent = &d
		case "withdrawal_flat":
			t.fees.WithdrawalFlat = &d
		}
	}
}

func (r *fileReader) credentials(n ast.Node, field string, known []string) (out []credential) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Bad(n, field, "must be a list, as `- name: …` below it")
		return nil
	}
	for i, one := range list.Values {
		at := fmt.Sprintf("%s[%d]", field, i)
		c := credential{at: r.Place(one, at)}
		for _, p := range r.Pairs(one, at, known) {
			if p.Key == "scopes" {
				for _, s := range r.list(p.Value, yamlfile.Under(at, p.Key)) {
					if !slices.Contains([]auth.Scope{auth.Read, auth.Write, auth.Admin}, s) {
						r.Bad(p.Value, yamlfile.Under(at, p.Key), "must be of read, write and admin")
					}
					c.scopes = append(c.scopes, s)
				}
				continue
			}
			v, ok := r.text(p.Value, yamlfile.Under(at, p.Key))
			switch p.Key {
			case "name":
				c.name = v
			case "client_id":
				c.id = v
			case "role":
				if c.role = auth.Role(v); c.role == auth.NoRole || !c.role.Valid() {
					r.Bad(p.Value, yamlfile.Under(at, p.Key), "must be %s, %s, %s or %s:NAME (1 to 32 of a-z, 0-9, - and _), or left out", auth.TenantAdmin, auth.GlobalAdmin, auth.Approver, auth.Approver)
				}
			default:
				if c.secret = v; ok && auth.Weak(v) != "" {
					r.Bad(p.Value, yamlfile.Under(at, p.Key), "%s", auth.Weak(v))
				}
			}
			c.at = r.Place(p.At, at)
		}
		switch {
		case c.name == "":
			r.Wrong(c.at, "needs name")
		case slices.Contains(known, "client_id") && (c.id == "" || c.secret == ""):
			r.Wrong(c.at, "needs client_id and client_secret")
		case c.secret == "":
			r.Wrong(c.at, "needs key")
		}
		out = append(out, c)
	}
	return out
}

// checkTenants refuses what does not go together with tenants of the file.
func (s *settings) checkTenants() (err error) {
	if len(s.tenants) == 0 {
		return nil
	}
	for name, v := range map[string]string{"CRYPTOPAY_CLIENT_ID": s.clientID, "CRYPTOPAY_API_KEY": s.apiKey} {
		if v != "" {
			err = errors.Join(err, fmt.Errorf("%s is of the one tenant that there is without tenants in the settings file: write it there, to its tenant", name))
		}
	}
	guard := (&gateway{s: *s}).callbacks()
	for _, t := range s.tenants {
		if t.webhook == "" {
			continue
		}
		if e := guard.URL(t.webhook); e != nil {
			err = errors.Join(err, fmt.Errorf("%s.webhook.url %s", t.at, strings.TrimPrefix(e.Error(), webhook.ErrURL.Error()+": ")))
		}
	}
	return err
}

// ensure makes a tenant of the file as it says, or has it follow what it says now.
func (g *gateway) ensure(ctx context.Context, t *tenant, all wallet.Settings) error {
	set := all
	set.Name = &t.name
	for _, own := range []struct{ to, of **decimal.Decimal }{
		{&set.TransactionFee, &t.fees.TransactionFee}, {&set.WithdrawalPercent, &t.fees.WithdrawalPercent}, {&set.WithdrawalFlat, &t.fees.WithdrawalFlat},
	} {
		if *own.of != nil {
			*own.to = *own.of
		}
	}
	_, err := g.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: t.id, Settings: set})
	if errors.Is(err, wallet.ErrTenantExists) {
		_, err = g.app.Wallets.UpdateTenant(ctx, t.id, set)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.at, err)
	}
	for _, c := range t.apps {
		err = errors.Join(err, at(c.at, g.ensureApp(ctx, t.id, c)))
	}
	for _, c := range t.keys {
		err = errors.Join(err, at(c.at, g.ensureKey(ctx, t.id, c)))
	}
	return errors.Join(err, at(t.at, g.ensureWebhook(ctx, t)))
}

func at(p yamlfile.Place, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p, err)
}

func (g *gateway) ensureApp(ctx context.Context, tenant string, c credential) error {
	if g.shown.id == "" {
		g.shown.id = c.id
	}
	have, found, err := g.auth.AppByClient(ctx, c.id)
	switch {
	case err != nil:
		return err
	case found && have.Tenant != tenant:
		return fmt.Errorf("client_id %s is of the tenant %s in this store: choose another", c.id, have.Tenant)
	case found:
		if _, err := g.auth.Token(ctx, c.id, c.secret, ""); err != nil {
			return fmt.Errorf("client_secret is not the secret of the application %s in this store: delete that with the operator's command, or put its secret back: %w", c.id, err)
		}
		return nil
	}
	_, _, err = g.auth.CreateApp(ctx, auth.NewApp{Tenant: tenant, Name: c.name, Scopes: c.scopes, Role: c.role, ClientID: c.id, ClientSecret: c.secret, By: bySettings})
	if errors.Is(err, auth.ErrExists) {
		return nil // a process that starts beside this one made it meanwhile
	}
	return err
}

func (g *gateway) ensureKey(ctx context.Context, tenant string, c credential) error {
	who, err := g.auth.CheckKey(ctx, c.secret)
	switch {
	case err == nil && who.Tenant != tenant:
		return fmt.Errorf("key is of the tenant %s in this store: choose another", who.Tenant)
	case err == nil || !errors.Is(err, auth.ErrToken):
		return err
	}
	_, _, err = g.auth.CreateKey(ctx, auth.NewKey{Tenant: tenant, Name: c.name, Scopes: c.scopes, Role: c.role, Key: c.secret, By: bySettings})
	if errors.Is(err, auth.ErrExists) {
		return nil
	}
	return err
}

// ensureWebhook sets the tenant's URL. The secret is that of the file from the first time on;
// later the tenant changes it over the interface.
func (g *gateway) ensureWebhook(ctx context.Context, t *tenant) error {
	if t.webhook == "" {
		return nil
	}
	have, err := g.app.Webhooks.Get(ctx, t.id)
	if err != nil || have.URL == t.webhook {
		return err
	}
	patch := webhook.Patch{URL: &t.webhook, By: webhook.By(bySettings)}
	if have.URL == "" {
		patch.Secret = &t.webhookSecret
	}
	_, err = g.app.Webhooks.Edit(ctx, t.id, patch)
	return err
}

// everyTenant calls f with the id of each tenant of the store.
func (g *gateway) everyTenant(ctx context.Context, f func(id string) error) error {
	const page = 500
	for offset := 0; ; offset += page {
		some, _, err := g.app.Wallets.Tenants(ctx, page, offset)
		if err != nil {
			return err
		}
		for _, t := range some {
			if err := f(t.ID); err != nil {
				return err
			}
		}
		if len(some) < page {
			return nil
		}
	}
}
