package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// refills are the commands about coins that are to come back from cold addresses.
func (c commands) refills() *cli.Command {
	return group("refills", "Refills from cold addresses, which a person signs elsewhere.",
		c.leaf(leaf{
			name: "list", usage: "List proposals, the newest of a tenant first.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					all, err := pages(func(limit, offset int) ([]refill.Proposal, error) {
						page, _, err := s.App.Operate.Refills(ctx, tenant, limit, offset)
						return page, err
					})
					for i := range all {
						r, failed := s.proposal(&all[i])
						out, err = append(out, r), errors.Join(err, failed)
					}
					return out, err
				})
			},
		}),
		c.leaf(leaf{
			name: "show", usage: "Show a proposal, with what is to be signed.", args: []string{"PROPOSAL"},
			flags: []cli.Flag{ofTenant(), &cli.StringFlag{Name: "o", Usage: "file to write to: the PSBT as it is, or the unsigned transaction in hex", DefaultText: "it is shown, a PSBT in base64"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				p, err := s.App.Operate.Refill(ctx, tenant, s.cmd.Args().First())
				if err != nil {
					return err
				}
				r, err := s.proposal(&p)
				if err != nil {
					return err
				}
				text, err := s.App.Operate.ShowRefill(&p)
				if err != nil {
					return err
				}
				shown := field{"psbt", base64.StdEncoding.EncodeToString(p.Payload)}
				if text != nil {
					r, shown = append(r, field{"transaction", string(text)}), field{"unsigned", string(p.Payload)}
				}
				if file := s.cmd.String("o"); file != "" {
					shown = field{"file", file}
					if err := whole(file, func(w io.Writer) error { _, err := w.Write(p.Payload); return err }); err != nil {
						return err
					}
				}
				return s.one(append(r, shown))
			},
		}),
		c.leaf(leaf{
			name: "propose", usage: "Make the transaction that brings coins from the cold address to the hot one.", writes: true, dry: true,
			about: "`refills show` has what is to be signed. It can be taken back for 48 hours, and one of a currency is open at a time.",
			flags: []cli.Flag{ofTenant(), inCurrency(), &cli.StringFlag{Name: "amount", Usage: "coins, such as 0.5, that the hot address gets (required)"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				currency, err := s.currency()
				if err != nil {
					return err
				}
				text, err := s.need("amount")
				if err != nil {
					return err
				}
				amount, err := ledger.ParseAmount(text, currency.Scale)
				if err != nil {
					return fmt.Errorf("-amount: %w", err)
				}
				p, operation, err := s.App.Operate.ProposeRefill(ctx, tenant, currency.Code, amount, s.call)
				return s.proposed(&p, operation, err)
			},
		}),
		c.leaf(leaf{
			name: "take", usage: "Take back what was signed for a proposal, and have it sent.", args: []string{"PROPOSAL", "FILE"}, writes: true, dry: true,
			about: "The file is the signed transaction in hex, or on BTC and LTC also the signed PSBT, in base64 or as it is. - is the standard input. It must be what was proposed, with all signatures that are needed.",
			flags: []cli.Flag{ofTenant()},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				in, file := os.Stdin, s.cmd.Args().Get(1)
				if file != "-" {
					if in, err = os.Open(file); err != nil {
						return err
					}
					defer in.Close() //nolint:errcheck // it was read
				}
				signed, err := io.ReadAll(io.LimitReader(in, 64<<20))
				if err != nil {
					return err
				}
				p, operation, err := s.App.Operate.TakeRefill(ctx, tenant, s.cmd.Args().First(), signed, s.call)
				return s.proposed(&p, operation, err)
			},
		}),
		c.leaf(leaf{
			name: "cancel", usage: "End a proposal that did not come back.", args: []string{"PROPOSAL"}, flags: []cli.Flag{ofTenant()}, writes: true, dry: true,
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				p, operation, err := s.App.Operate.CancelRefill(ctx, tenant, s.cmd.Args().First(), s.call)
				return s.proposed(&p, operation, err)
			},
		}),
	)
}

// proposed shows a proposal after a call.
func (s *session) proposed(p *refill.Proposal, operation string, err error) error {
	if err != nil {
		return err
	}
	r, err := s.proposal(p)
	if err != nil {
		return err
	}
	return s.one(append(record{{"operation", operation}, {"dry_run", s.call.DryRun}}, r...))
}

func (s *session) proposal(p *refill.Proposal) (record, error) {
	amount, err := s.coins(p.Currency, p.Amount)
	gas, failed := s.App.Config().Registry.Gas(p.Network)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	fee, failed := s.coins(gas.Code, p.Fee)
	return record{
		{"id", p.ID},
		{"tenant", p.Tenant},
		{"status", string(p.Status)},
		{"reason", p.Reason},
		{"requested_by", p.By},
		{"amount", amount},
		{"currency", p.Currency},
		{"fee", fee},
		{"fee_currency", gas.Code},
		{"from", string(p.From)},
		{"to", string(p.To)},
		{"tx", p.Tx},
		{"expires_at", p.ExpiresAt},
		{"created_at", p.CreatedAt},
	}, errors.Join(err, failed)
}
