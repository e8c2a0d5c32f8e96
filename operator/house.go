package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet/house"
)

func (c commands) house() *cli.Command {
	take := func(name, usage, about string, do func(ctx context.Context, s *session, t house.Take) (house.Payment, string, error)) *cli.Command {
		return c.leaf(leaf{
			name: name, usage: usage, about: about, writes: true, dry: true,
			flags: []cli.Flag{
				ofTenant(), inCurrency(),
				&cli.StringFlag{Name: "amount", Usage: "coins, such as 0.5, or all (required)"},
				&cli.StringFlag{Name: "address", Usage: "one of the host's own that its configuration lists (required)"},
				&cli.StringFlag{Name: "memo", Usage: "as it is listed with the address", DefaultText: "none"},
				ofKey("a payment"),
			},
			do: func(ctx context.Context, s *session) error {
				t, err := s.take(ctx)
				if err != nil {
					return err
				}
				p, id, err := do(ctx, s, t)
				if err != nil {
					return err
				}
				r, err := s.housePayment(&p)
				if err != nil {
					return err
				}
				return s.one(append(record{{"operation", id}, {"dry_run", s.call.DryRun}}, r...))
			},
		})
	}
	return group("house", "The house's own money: fees that it earned, float that it put in, corrections of the books, and coins from cold addresses.", append(c.cold(),
		c.leaf(leaf{
			name: "list", usage: "List what was taken out, the newest of a tenant first.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					all, err := pages(func(limit, offset int) ([]house.Payment, error) {
						return s.App.Operate.HousePayments(ctx, tenant, limit, offset)
					})
					for i := range all {
						r, failed := s.housePayment(&all[i])
						out, err = append(out, r), errors.Join(err, failed)
					}
					return out, err
				})
			},
		}),
		take("pay-out-fees", "Take fees that were earned out, by a payment to an address of the host's own.",
			"It is never more than was earned and not taken yet, and leaves what is owed to customers and what is set aside for gas. "+
				"A worker sends it: `house list` shows how far it is. One that fails is given back.",
			func(ctx context.Context, s *session, t house.Take) (house.Payment, string, error) {
				return s.App.Operate.PayOutFees(ctx, t, s.call)
			}),
		take("withdraw-funds", "Take coins out that the operator has put in.",
			"Gas that is set aside for what is in flight stays. Else it is as pay-out-fees.",
			func(ctx context.Context, s *session, t house.Take) (house.Payment, string, error) {
				return s.App.Operate.WithdrawOperatorFunds(ctx, t, s.call)
			}),
		c.leaf(leaf{
			name: "cancel", usage: "End a payment of which nothing was signed: its amount is the house's again.", args: []string{"PAYMENT"}, flags: []cli.Flag{ofTenant()}, writes: true, dry: true,
			about: "`transactions cancel` is for one that was signed.",
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				p, id, err := s.App.Operate.CancelHousePayment(ctx, tenant, s.cmd.Args().First(), s.call)
				if err != nil {
					return err
				}
				r, err := s.housePayment(&p)
				if err != nil {
					return err
				}
				return s.one(append(record{{"operation", id}, {"dry_run", s.call.DryRun}}, r...))
			},
		}),
		c.leaf(leaf{
			name: "adjust", usage: "Correct the books: the first call asks, the same by another person within a day books it.", writes: true, dry: true,
			about: "Moves sum to 0. A token that took 30 by rebasing: -move adjustment=-30 -move chain/ETH=30. " +
				"Accounts: adjustment, float, fees/platform, fees/network, the currency's chain/NETWORK, wallet/ID. On a wallet + is what is owed to it; on a chain − is what is held there.",
			flags: []cli.Flag{
				ofTenant(), inCurrency(),
				&cli.StringSliceFlag{Name: "move", Usage: "ACCOUNT=COINS, twice at least (required)"},
				ofKey("a correction"),
			},
			do: adjust,
		}),
	)...)
}

func inCurrency() cli.Flag {
	return &cli.StringFlag{Name: "currency", Usage: "currency, such as USDTERC20 (required)"}
}

func ofKey(what string) cli.Flag {
	return &cli.StringFlag{Name: "key", Usage: "tells " + what + " from another: the same key twice is the same one (required)"}
}

// currency is the value of inCurrency.
func (s *session) currency() (*chain.Currency, error) {
	code, err := s.need("currency")
	if err != nil {
		return nil, err
	}
	return s.App.Config().Registry.Currency(code)
}

// take is what the flags say.
func (s *session) take(ctx context.Context) (t house.Take, err error) {
	if t.Tenant, err = s.tenant(ctx); err != nil {
		return t, err
	}
	c, err := s.currency()
	if err != nil {
		return t, err
	}
	t.Currency, t.Memo = c.Code, s.cmd.String("memo")
	for flag, to := range map[string]*string{"address": &t.Address, "key": &t.Key} {
		v, failed := s.need(flag)
		*to, err = v, errors.Join(err, failed)
	}
	amount, failed := s.need("amount")
	if err = errors.Join(err, failed); err != nil {
		return t, err
	}
	if t.All = amount == "all"; t.All {
		return t, nil
	}
	t.Amount, err = ledger.ParseAmount(amount, c.Scale)
	if err == nil && t.Amount <= 0 {
		err = errors.New("must be above 0, or all")
	}
	if err != nil {
		err = fmt.Errorf("-amount: %w", err)
	}
	return t, err
}

func (s *session) housePayment(p *house.Payment) (record, error) {
	amount, err := s.coins(p.Currency, p.Amount)
	return record{
		{"id", p.ID},
		{"tenant", p.Tenant},
		{"status", string(p.Status)},
		{"waiting", p.Waiting},
		{"since", p.WaitingSince},
		{"reason", p.Reason},
		{"requested_by", p.By},
		{"source", string(p.Source)},
		{"amount", amount},
		{"currency", p.Currency},
		{"address", p.Address},
		{"memo", p.Memo},
		{"tx", p.Tx},
		{"created_at", p.CreatedAt},
	}, err
}

func adjust(ctx context.Context, s *session) error {
	tenant, err := s.tenant(ctx)
	if err != nil {
		return err
	}
	c, err := s.currency()
	if err != nil {
		return err
	}
	key, err := s.need("key")
	if err != nil {
		return err
	}
	a := house.Adjustment{Tenant: tenant, Currency: c.Code, Key: key, Moves: map[ledger.Account]ledger.Amount{}}
	for _, move := range s.cmd.StringSlice("move") {
		account, coins, _ := strings.Cut(move, "=")
		coins, less := strings.CutPrefix(coins, "-")
		units, err := ledger.ParseAmount(coins, c.Scale)
		if less {
			units = -units
		}
		if _, twice := a.Moves[ledger.Account(account)]; err == nil && twice {
			err = errors.New("the account is named twice")
		}
		if err != nil {
			return fmt.Errorf("-move %s: %w", move, err)
		}
		a.Moves[ledger.Account(account)] = units
	}
	out, id, err := s.App.Operate.Adjust(ctx, a, s.call)
	if err != nil {
		return err
	}
	return s.one(adjusted(&out, id, s.call))
}

func adjusted(a *house.Adjusted, id string, call cryptopay.Call) record {
	var moves records
	for account, was := range a.Before {
		moves = append(moves, record{{"account", string(account)}, {"before", was}, {"after", a.After[account]}})
	}
	slices.SortFunc(moves, func(x, y record) int { return strings.Compare(x[0].value.(string), y[0].value.(string)) })
	return record{
		{"operation", id},
		{"dry_run", call.DryRun},
		{"id", a.ID},
		{"booked", a.Booked()},
		{"asked_by", a.AskedBy},
		{"asked_at", a.AskedAt},
		{"approved_by", a.ApprovedBy},
		{"until", a.Until},
		{"accounts", moves},
	}
}
