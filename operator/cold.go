package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// cold are the commands of `house` about coins that came back from cold addresses.
func (c commands) cold() []*cli.Command {
	return []*cli.Command{
		c.leaf(leaf{
			name: "held", usage: "List coins that may have come back from a cold address: a person has to say so.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					behind := ""
					all, err := pages(func(limit, _ int) ([]treasury.Apart, error) {
						page, err := s.App.Operate.HeldTopUps(ctx, tenant, behind, limit)
						if len(page) > 0 {
							behind = page[len(page)-1].ID
						}
						return page, err
					})
					for i := range all {
						a := &all[i]
						amount, failed := s.coins(a.Currency, a.Amount)
						out, err = append(out, record{
							{"id", a.ID},
							{"tenant", tenant},
							{"amount", amount},
							{"currency", a.Currency},
							{"reason", a.Reason},
							{"since", a.Since},
							{"address", string(a.Address)},
							{"from", string(a.From)},
							{"tx", a.Tx},
							{"ends", "house resolve"},
						}), errors.Join(err, failed)
					}
					return out, err
				})
			},
		}),
		c.leaf(leaf{
			name: "resolve", usage: "Say what coins of `house held` are.", args: []string{"TOP-UP"}, writes: true, dry: true,
			about: "refill: they came back from a cold address; what is more than lies there by the books is the operator's. operator_funds: they are the operator's own.",
			flags: []cli.Flag{ofTenant(), &cli.StringFlag{Name: "as", Usage: "refill or operator_funds (required)"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				as, err := s.need("as")
				if err != nil {
					return err
				}
				id := s.cmd.Args().First()
				_, operation, err := s.App.Operate.ResolveTopUp(ctx, tenant, id, treasury.ApartIs(as), s.call)
				if err != nil {
					return err
				}
				return s.one(record{{"operation", operation}, {"dry_run", s.call.DryRun}, {"id", id}, {"tenant", tenant}, {"as", as}})
			},
		}),
		c.leaf(leaf{
			name: "refill-cost", usage: "Book what the network took for a refill, out of cold coins.", args: []string{"HASH"}, writes: true, dry: true,
			flags: []cli.Flag{ofTenant(), onNetwork(), &cli.StringFlag{Name: "cost", Usage: "coins of the network's own currency (required)"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				n, err := s.need("network")
				if err != nil {
					return err
				}
				gas, err := s.App.Config().Registry.Gas(chain.Network(n))
				if err != nil {
					return err
				}
				text, err := s.need("cost")
				if err != nil {
					return err
				}
				cost, err := ledger.ParseAmount(text, gas.Scale)
				if err != nil {
					return fmt.Errorf("-cost: %w", err)
				}
				operation, err := s.App.Operate.BookRefillCost(ctx, tenant, gas.Network, s.cmd.Args().First(), cost, s.call)
				if err != nil {
					return err
				}
				return s.one(record{{"operation", operation}, {"dry_run", s.call.DryRun}, {"tenant", tenant}, {"tx", s.cmd.Args().First()}})
			},
		}),
	}
}
