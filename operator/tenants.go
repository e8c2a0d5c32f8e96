package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// pageSize is how many rows are read at a time.
const pageSize = 100

// ofTenant is the flag of commands about an object of one tenant.
func ofTenant() cli.Flag {
	return &cli.StringFlag{Name: "tenant", Usage: "id of the tenant that it is of (required)"}
}

// oneOrAll is the flag of commands that go over tenants.
func oneOrAll() cli.Flag {
	return &cli.StringFlag{Name: "tenant", Usage: "id of the one tenant that is meant", DefaultText: "all"}
}

// tenant is the value of ofTenant: of a tenant that there is.
func (s *session) tenant(ctx context.Context) (string, error) {
	id, err := s.need("tenant")
	if err == nil {
		_, err = s.App.Wallets.Tenant(ctx, id)
	}
	return id, err
}

// named is the value of oneOrAll: ids in ascending order. Tenants whose own row cannot be read
// are among them.
func (s *session) named(ctx context.Context) (ids []string, err error) {
	if s.cmd.String("tenant") != "" {
		id, err := s.tenant(ctx)
		return []string{id}, err
	}
	var unread storage.RowErrors
	for p, err := range cryptopay.Partitions(ctx, s.App.Config().Store) {
		if err := unread.Take(err); err != nil {
			return nil, err
		}
		if id, ok := strings.CutPrefix(string(p), string(storage.Tenant(""))); ok {
			ids = append(ids, id)
		}
	}
	for _, r := range unread {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// pages reads all of a list.
func pages[T any](read func(limit, offset int) ([]T, error)) (all []T, err error) {
	for {
		page, err := read(pageSize, len(all))
		if all = append(all, page...); err != nil || len(page) < pageSize {
			return all, err
		}
	}
}

func (c commands) tenants() *cli.Command {
	return group("tenants", "The merchants.",
		c.leaf(leaf{
			name: "list", usage: "List all tenants, the oldest first.",
			do: func(ctx context.Context, s *session) error {
				all, err := pages(func(limit, offset int) ([]wallet.Tenant, error) {
					page, _, err := s.App.Wallets.Tenants(ctx, limit, offset)
					return page, err
				})
				if err != nil {
					return err
				}
				var out records
				for _, t := range all {
					out = append(out, tenantRecord(t))
				}
				return s.list(out)
			},
		}),
		c.leaf(leaf{
			name: "show", usage: "Show a tenant with its fees and balances.", args: []string{"TENANT"},
			do: func(ctx context.Context, s *session) error {
				id := s.cmd.Args().First()
				t, err := s.App.Wallets.Tenant(ctx, id)
				if err != nil {
					return err
				}
				balances, err := s.balances(ctx, id)
				if err != nil {
					return err
				}
				return s.one(append(tenantRecord(t), field{"balances", balances}))
			},
		}),
		c.leaf(leaf{
			name: "create", usage: "Create a tenant with its master account.", writes: true,
			flags: []cli.Flag{
				&cli.StringFlag{Name: "id", Usage: "its id", DefaultText: "one is made"},
				&cli.StringFlag{Name: "name", Usage: "its name (required)"},
				&cli.StringFlag{Name: "transaction-fee", Usage: "percent that payments cost it", DefaultText: "0"},
				&cli.StringFlag{Name: "withdrawal-percent", Usage: "percent that withdrawals cost it", DefaultText: "0"},
				&cli.StringFlag{Name: "withdrawal-flat", Usage: "coins that each withdrawal costs it", DefaultText: "0"},
				&cli.BoolFlag{Name: "fee-paid-by-user", Usage: "payments that do not say it add the fee to what is due"},
			},
			do: createTenant,
		}),
	)
}

func createTenant(ctx context.Context, s *session) error {
	name, err := s.need("name")
	if err != nil {
		return err
	}
	n := wallet.NewTenant{ID: s.cmd.String("id"), Settings: wallet.Settings{Name: &name}}
	for flag, to := range map[string]**decimal.Decimal{
		"transaction-fee": &n.TransactionFee, "withdrawal-percent": &n.WithdrawalPercent, "withdrawal-flat": &n.WithdrawalFlat,
	} {
		if v := s.cmd.String(flag); v != "" {
			d, err := ledger.ParseDecimal(v)
			if err != nil {
				return fmt.Errorf("-%s: %w", flag, err)
			}
			*to = &d
		}
	}
	if s.cmd.IsSet("fee-paid-by-user") {
		by := s.cmd.Bool("fee-paid-by-user")
		n.FeePaidByUser = &by
	}
	if err := s.begins(ctx, audit.CreateTenant, storage.System, cmp.Or(n.ID, name)); err != nil {
		return err
	}
	t, err := s.App.Wallets.CreateTenant(ctx, n)
	if err != nil {
		return err
	}
	s.did(ctx, t.ID, t.ID)
	return s.one(tenantRecord(t))
}

func tenantRecord(t wallet.Tenant) record {
	return record{
		{"id", t.ID},
		{"name", t.Name},
		{"transaction_fee", ledger.PlainString(t.TransactionFee)},
		{"fee_paid_by_user", t.FeePaidByUser},
		{"withdrawal_percent", ledger.PlainString(t.WithdrawalPercent)},
		{"withdrawal_flat", ledger.PlainString(t.WithdrawalFlat)},
		{"created_at", t.CreatedAt},
	}
}

// balances are those of a tenant's wallets. Accounts of the books that are no wallets are left out.
func (s *session) balances(ctx context.Context, tenant string) (out records, err error) {
	all, err := s.App.Config().Store.Balances(ctx, storage.Tenant(tenant))
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		id, ok := strings.CutPrefix(string(b.Account), string(ledger.Wallet("")))
		if !ok {
			continue
		}
		posted, err := s.coins(string(b.Asset), b.Posted)
		if err != nil {
			return nil, err
		}
		held, err := s.coins(string(b.Asset), b.Held)
		if err != nil {
			return nil, err
		}
		out = append(out, record{{"wallet", id}, {"currency", string(b.Asset)}, {"balance", posted}, {"held", held}})
	}
	return out, nil
}

// errNoAuth: the host has no applications and keys.
var errNoAuth = errors.New("this service has no applications and API keys: it has a login of its own")

// credentials are the flags of commands that make one.
func credentials() []cli.Flag {
	return []cli.Flag{
		ofTenant(),
		&cli.StringFlag{Name: "name", Usage: "what it is for (required)"},
		&cli.StringSliceFlag{Name: "scopes", Usage: "what it may do, such as read,write", DefaultText: "read,write"},
		&cli.StringFlag{Name: "role", Usage: "tenant_admin, global_admin, approver, or approver:NAME for a role in policies", DefaultText: "none"},
	}
}

// credential reads those flags.
func (s *session) credential(ctx context.Context) (tenant, name string, err error) {
	if s.Auth == nil {
		return "", "", errNoAuth
	}
	if tenant, err = s.tenant(ctx); err != nil {
		return "", "", err
	}
	name, err = s.need("name")
	return tenant, name, err
}

func (c commands) applications() *cli.Command {
	show := func(a auth.App) record {
		return record{
			{"id", a.ID}, {"tenant", a.Tenant}, {"name", a.Name}, {"client_id", a.ClientID}, {"scopes", a.Scopes}, {"role", string(a.Role)}, {"created_at", a.CreatedAt},
		}
	}
	return group("applications", "OAuth applications of tenants.",
		c.leaf(leaf{
			name: "list", usage: "List applications, without their secrets.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					if s.Auth == nil {
						return nil, errNoAuth
					}
					all, err := s.Auth.Apps(ctx, tenant)
					for _, a := range all {
						out = append(out, show(a))
					}
					return out, err
				})
			},
		}),
		c.leaf(leaf{
			name: "create", usage: "Create an application. Its secret is shown now, and never again.", flags: credentials(), writes: true,
			do: func(ctx context.Context, s *session) error {
				tenant, name, err := s.credential(ctx)
				if err != nil {
					return err
				}
				a, secret, err := s.Auth.CreateApp(ctx, auth.NewApp{Tenant: tenant, Name: name, Scopes: s.cmd.StringSlice("scopes"), Role: auth.Role(s.cmd.String("role")), By: s.who()})
				if err != nil {
					return err
				}
				s.did(ctx, tenant, strconv.FormatInt(a.ID, 10))
				return s.one(append(show(a), field{"client_secret", secret}))
			},
		}),
		c.leaf(leaf{
			name: "delete", usage: "Delete an application: its credentials and tokens are void at once.", args: []string{"ID"}, flags: []cli.Flag{ofTenant()}, writes: true,
			do: func(ctx context.Context, s *session) error {
				if s.Auth == nil {
					return errNoAuth
				}
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				id, err := strconv.ParseInt(s.cmd.Args().First(), 10, 64)
				if err != nil {
					return fmt.Errorf("ID must be a number, as `applications list` shows it: not %q", s.cmd.Args().First())
				}
				if err := s.Auth.DeleteApp(ctx, tenant, id, s.who()); err != nil {
					return err
				}
				s.did(ctx, tenant, s.cmd.Args().First())
				return s.one(record{{"deleted", id}})
			},
		}),
	)
}

// who is who runs a command, as credentials record it.
func (s *session) who() auth.By { return auth.By{Name: s.call.By, Reason: s.call.Reason} }

func (c commands) keys() *cli.Command {
	show := func(k auth.APIKey) record {
		return record{{"id", k.ID}, {"tenant", k.Tenant}, {"name", k.Name}, {"masked", k.Masked}, {"scopes", k.Scopes}, {"role", string(k.Role)}, {"created_at", k.CreatedAt}}
	}
	return group("keys", "API keys of tenants.",
		c.leaf(leaf{
			name: "list", usage: "List API keys, without the keys themselves.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					if s.Auth == nil {
						return nil, errNoAuth
					}
					all, err := s.Auth.Keys(ctx, tenant)
					for _, k := range all {
						out = append(out, show(k))
					}
					return out, err
				})
			},
		}),
		c.leaf(leaf{
			name: "create", usage: "Create an API key. It is shown now, and never again.", flags: credentials(), writes: true,
			do: func(ctx context.Context, s *session) error {
				tenant, name, err := s.credential(ctx)
				if err != nil {
					return err
				}
				k, secret, err := s.Auth.CreateKey(ctx, auth.NewKey{Tenant: tenant, Name: name, Scopes: s.cmd.StringSlice("scopes"), Role: auth.Role(s.cmd.String("role")), By: s.who()})
				if err != nil {
					return err
				}
				s.did(ctx, tenant, k.ID)
				return s.one(append(show(k), field{"key", secret}))
			},
		}),
		c.leaf(leaf{
			name: "delete", usage: "Delete an API key: it is void at once.", args: []string{"ID"}, flags: []cli.Flag{ofTenant()}, writes: true,
			do: func(ctx context.Context, s *session) error {
				if s.Auth == nil {
					return errNoAuth
				}
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				id := s.cmd.Args().First()
				if err := s.Auth.DeleteKey(ctx, tenant, id, s.who()); err != nil {
					return err
				}
				s.did(ctx, tenant, id)
				return s.one(record{{"deleted", id}})
			},
		}),
	)
}

// each prints what the tenants that oneOrAll names have.
func (s *session) each(ctx context.Context, of func(tenant string) (records, error)) error {
	tenants, err := s.named(ctx)
	if err != nil {
		return err
	}
	var out records
	for _, t := range tenants {
		some, err := of(t)
		if err != nil {
			return err
		}
		out = append(out, some...)
	}
	return s.list(out)
}
