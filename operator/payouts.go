package operator

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func (c commands) withdrawals() *cli.Command {
	var roles []string // that -role names
	decide := func(name, usage string, do func(ctx context.Context, w *withdrawal.Service, tenant, id string, call cryptopay.Call) (withdrawal.Withdrawal, error)) *cli.Command {
		flags := []cli.Flag{ofTenant()}
		if name == "approve" {
			flags = append(flags, &cli.StringSliceFlag{Name: "role", Usage: "a role that you have in the tenant's policy", Destination: &roles})
		}
		return c.leaf(leaf{
			name: name, usage: usage, args: []string{"WITHDRAWAL"}, flags: flags, writes: true,
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				w, err := do(ctx, s.App.Withdrawals, tenant, s.cmd.Args().First(), s.call)
				if err != nil {
					return err
				}
				s.did(ctx, tenant, s.cmd.Args().First())
				r, err := s.withdrawal(&w)
				if err != nil {
					return err
				}
				return s.one(r)
			},
		})
	}
	return group("withdrawals", "Payouts of tenants: which wait, and what a person decides.",
		c.leaf(leaf{
			name: "waiting", usage: "List withdrawals under way that wait, each with its reason and since when.", flags: []cli.Flag{oneOrAll()},
			about: "A withdrawal that is completed and waits (reorged, delivered_less; stuck and others where no confirmations are asked for) is not listed: `withdrawals show` has it. `verify` names those that were paid after they had failed or were cancelled.",
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					for _, status := range []withdrawal.Status{withdrawal.Pending, withdrawal.Processing} {
						all, err := pages(func(limit, offset int) ([]withdrawal.Withdrawal, error) {
							page, _, err := s.App.Withdrawals.List(ctx, tenant, withdrawal.Filter{Status: status, Sort: withdrawal.CreatedAsc, Limit: limit, Offset: offset})
							return page, err
						})
						if err != nil {
							return nil, err
						}
						for _, w := range all {
							if w.Waiting == "" && !w.Frozen {
								continue
							}
							r, err := s.withdrawal(&w)
							if err != nil {
								return nil, err
							}
							out = append(out, r)
						}
					}
					return out, nil
				})
			},
		}),
		c.leaf(leaf{
			name: "show", usage: "Show a withdrawal.", args: []string{"WITHDRAWAL"}, flags: []cli.Flag{ofTenant()},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				w, err := s.App.Withdrawals.Get(ctx, tenant, s.cmd.Args().First())
				if err != nil {
					return err
				}
				r, err := s.withdrawal(&w)
				if err != nil {
					return err
				}
				return s.one(r)
			},
		}),
		decide("approve", "Say that a withdrawal may go out. Where a policy wants more people, it waits for them. A hold stays in force. Who asked for it may not.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.Approve(ctx, tenant, id, c.By, c.Reason, roles...)
			}),
		decide("refuse", "End a withdrawal that was not handed over, as failed: its money is free again. Who asked for it may not.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.Refuse(ctx, tenant, id, c.By, c.Reason)
			}),
		decide("hold", "Freeze a withdrawal that was not handed over, until release.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.Hold(ctx, tenant, id, c.By, c.Reason)
			}),
		decide("release", "End a hold: the withdrawal goes on.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.Release(ctx, tenant, id, c.By, c.Reason)
			}),
		decide("take-delivered", "Complete a withdrawal that waits as delivered_less: what arrived is taken for the whole. Of one that was paid after it had failed or was cancelled, note that you have looked at it.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.TakeDelivered(ctx, tenant, id, c.By, c.Reason)
			}),
		decide("pay-missing", "Complete a withdrawal that waits as delivered_less, and pay what is missing by another, which is shown.",
			func(ctx context.Context, w *withdrawal.Service, tenant, id string, c cryptopay.Call) (withdrawal.Withdrawal, error) {
				return w.PayMissing(ctx, tenant, id, c.By, c.Reason)
			}),
	)
}

func (s *session) withdrawal(w *withdrawal.Withdrawal) (record, error) {
	amount, err := s.coins(w.Currency, w.Amount)
	said := make(records, len(w.Decisions))
	for i, d := range w.Decisions {
		said[i] = record{{"by", d.By}, {"at", d.At}, {"decision", string(d.Answer)}, {"rule", d.Rule}, {"reason", d.Reason}}
	}
	return record{
		{"id", w.ID},
		{"tenant", w.Tenant},
		{"status", string(w.Status)},
		{"waiting", w.Waiting},
		{"since", w.WaitingSince},
		{"held", w.Frozen},
		{"reason", w.Reason},
		{"requested_by", w.RequestedBy},
		{"decisions", said},
		{"amount", amount},
		{"currency", w.Currency},
		{"address", w.Address},
		{"tx", w.Tx},
		{"created_at", w.CreatedAt},
	}, err
}

func (c commands) suspense() *cli.Command {
	decide := func(name, usage string, flags []cli.Flag, do func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error)) *cli.Command {
		return c.leaf(leaf{
			name: name, usage: usage, args: []string{"DEPOSIT"}, flags: append([]cli.Flag{ofTenant()}, flags...), writes: true, dry: true,
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				d, id, err := do(ctx, s, tenant, s.cmd.Args().First())
				if err != nil {
					return err
				}
				r, err := s.deposit(tenant, &d.Deposit)
				if err != nil {
					return err
				}
				return s.one(append(record{{"operation", id}, {"dry_run", s.call.DryRun}}, r...))
			},
		})
	}
	return group("suspense", "Money that counts for no payment.",
		c.leaf(leaf{
			name: "list", usage: "List deposits whose money stands in suspense, the oldest of a tenant first.", flags: []cli.Flag{oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				return s.each(ctx, func(tenant string) (out records, err error) {
					all, err := pages(func(limit, offset int) ([]payment.Deposit, error) {
						return s.App.Payments.Suspense(ctx, tenant, limit, offset)
					})
					if err != nil {
						return nil, err
					}
					for _, d := range all {
						r, err := s.deposit(tenant, &d)
						if err != nil {
							return nil, err
						}
						out = append(out, r)
					}
					return out, nil
				})
			},
		}),
		decide("credit", "Credit a deposit in suspense to a wallet, in full and without fees.",
			[]cli.Flag{&cli.StringFlag{Name: "wallet", Usage: "id or external id of the tenant's wallet", DefaultText: "the master account"}},
			func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error) {
				return s.App.Operate.CreditSuspense(ctx, tenant, id, s.cmd.String("wallet"), s.call)
			}),
		decide("release", "Have a deposit count that the host's screening has held, as if it had been allowed.", nil,
			func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error) {
				return s.App.Operate.ReleaseSuspense(ctx, tenant, id, s.call)
			}),
		decide("ignore", "Leave the money of a deposit where it is; nobody is asked about it any more.", nil,
			func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error) {
				return s.App.Operate.IgnoreSuspense(ctx, tenant, id, s.call)
			}),
		decide("refund", "Book that you send the money of a deposit back yourself, outside of this service.", nil,
			func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error) {
				return s.App.Operate.RefundSuspense(ctx, tenant, id, s.call)
			}),
		decide("pay-out", "Refund the money of a deposit, less the fees, by a withdrawal to an address that the customer named.",
			[]cli.Flag{
				&cli.StringFlag{Name: "address", Usage: "the customer's", Required: true},
				&cli.StringFlag{Name: "memo", Usage: "memo or destination tag of the address"},
			},
			func(ctx context.Context, s *session, tenant, id string) (payment.Suspended, string, error) {
				_, done, err := s.App.Operate.PayOutSuspense(ctx, tenant, id, s.cmd.String("address"), s.cmd.String("memo"), s.call)
				if err != nil {
					return payment.Suspended{}, "", err
				}
				d, err := s.App.Payments.SuspendedDeposit(ctx, tenant, id)
				return d, done, err
			}),
	)
}

func (s *session) deposit(tenant string, d *payment.Deposit) (record, error) {
	amount, err := s.coins(d.Currency, d.Amount)
	return record{
		{"id", d.ID},
		{"tenant", tenant},
		{"booking", string(d.Booking)},
		{"role", string(d.Role)},
		{"since", d.FirstSeen},
		{"amount", amount},
		{"currency", d.Currency},
		{"payment", d.Payment},
		{"wallet", d.Wallet},
		{"from", d.From},
		{"address", d.Address},
		{"tx", d.Tx},
		{"screen", string(d.Screen)},
		{"screen_reason", d.ScreenReason},
	}, err
}
