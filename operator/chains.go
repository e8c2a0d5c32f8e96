package operator

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// onNetwork is the flag of commands about an object of one network.
func onNetwork() cli.Flag {
	return &cli.StringFlag{Name: "network", Usage: "code of the network, such as ETH (required)"}
}

func (s *session) network() (chain.Network, error) {
	n, err := s.need("network")
	return chain.Network(n), err
}

// known is a network that this program or another one serves: a list of what another name has
// would be empty, as if all were well.
func (s *session) known(n chain.Network) error {
	cfg := s.App.Config()
	if info, err := cfg.Registry.Network(string(n)); (err != nil || info.Code != n) && !slices.Contains(cfg.Elsewhere, n) {
		return fmt.Errorf("%w: network %q", chain.ErrCurrency, n)
	}
	return nil
}

// scope are the flags of halt and lift.
func scope() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "every network, also one that is opened later"},
		&cli.StringFlag{Name: "network", Usage: "code of one network"},
		&cli.StringFlag{Name: "currency", Usage: "code of one currency"},
		&cli.StringFlag{Name: "tenant", Usage: "id of one tenant"},
	}
}

// set does what halt and lift have in common.
func set(do func(o *cryptopay.Operate, ctx context.Context, h cryptopay.HaltScope, c cryptopay.Call) (cryptopay.HaltEffect, error)) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		h := cryptopay.HaltScope{Network: chain.Network(s.cmd.String("network")), Currency: s.cmd.String("currency"), Tenant: s.cmd.String("tenant")}
		if s.cmd.Bool("all") != (h == cryptopay.HaltScope{}) {
			return errors.New("say what is meant: -all alone, or -network, -currency or -tenant; of several, what all of them name")
		}
		e, err := do(s.App.Operate, ctx, h, s.call)
		if err != nil {
			return err
		}
		networks, onTheWay := []string{}, records{}
		for _, n := range e.Networks {
			networks = append(networks, string(n))
		}
		for _, o := range e.OnItsWay {
			onTheWay = append(onTheWay, record{
				{"id", o.Intent}, {"network", string(o.Network)}, {"purpose", string(o.Purpose)}, {"tenant", o.Tenant}, {"currency", o.Currency}, {"state", string(o.State)}, {"txs", o.Txs},
			})
		}
		standing, err := s.halts(ctx)
		if err != nil {
			return err
		}
		return s.one(record{{"operation", e.Operation}, {"dry_run", s.call.DryRun}, {"networks", networks}, {"may_still_land", onTheWay}, {"halts", standing}})
	}
}

// halts are those that stand.
func (s *session) halts(ctx context.Context) (records, error) {
	all, err := s.App.Operate.Halts(ctx)
	out := records{}
	for _, h := range all {
		network := string(h.Network)
		if network == "" {
			network = "all"
		}
		out = append(out, record{{"network", network}, {"currency", h.Currency}, {"tenant", h.Tenant}, {"everywhere", h.Wide}, {"since", h.Since}, {"by", h.By}, {"reason", h.Reason}})
	}
	return out, err
}

func (c commands) halt() *cli.Command {
	return c.leaf(leaf{
		name: "halt", usage: "Stop what is sent: payouts, sweeps, gas transfers.", flags: scope(), writes: true, dry: true,
		about: "Deposits are credited as ever. What was signed before may still land: it is listed, and so are all halts that stand.",
		do:    set((*cryptopay.Operate).Halt),
	})
}

func (c commands) lift() *cli.Command {
	return c.leaf(leaf{
		name: "lift", usage: "End the halt of just this scope: what waited goes on by itself.", flags: scope(), writes: true, dry: true,
		about: "A halt of another scope, also of a wider one, stays. What stands afterwards is listed.",
		do:    set((*cryptopay.Operate).Lift),
	})
}

func (c commands) halts() *cli.Command {
	return c.leaf(leaf{
		name: "halts", usage: "List halts, with who set them, why and since when.",
		do: func(ctx context.Context, s *session) error {
			all, err := s.halts(ctx)
			if err != nil {
				return err
			}
			return s.list(all)
		},
	})
}

func (c commands) operations() *cli.Command {
	return c.leaf(leaf{
		name: "operations", usage: "List what operators did, the newest first.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "network", Usage: "code of one network", DefaultText: "all"},
			&cli.IntFlag{Name: "limit", Usage: "how many", Value: pageSize}, &cli.IntFlag{Name: "offset", Usage: "after how many"},
		},
		do: func(ctx context.Context, s *session) error {
			limit, offset := s.cmd.Int("limit"), s.cmd.Int("offset")
			if limit < 1 || limit > 1000 || offset < 0 {
				return errors.New("-limit must be 1 to 1000, and -offset not below 0")
			}
			n := chain.Network(s.cmd.String("network"))
			if n != "" {
				if err := s.known(n); err != nil {
					return err
				}
			}
			all, err := s.App.Operate.List(ctx, n, limit, offset)
			if err != nil {
				return err
			}
			var out records
			for _, o := range all {
				out = append(out, shownOperation(&o))
			}
			return s.list(out)
		},
	})
}

func (c commands) audit() *cli.Command {
	return c.leaf(leaf{
		name: "audit", usage: "List an audit log by number: that of the service, of a tenant or of a network.",
		about: "Entries follow from each other by their hashes: verify names what was edited, deleted or moved.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "tenant", Usage: "id of a tenant"}, &cli.StringFlag{Name: "network", Usage: "code of a network"},
			&cli.Int64Flag{Name: "after", Usage: "number of the entry before the first"}, &cli.IntFlag{Name: "limit", Usage: "how many", Value: pageSize},
		},
		do: func(ctx context.Context, s *session) error {
			tenant, n, limit := s.cmd.String("tenant"), chain.Network(s.cmd.String("network")), s.cmd.Int("limit")
			p := storage.System
			switch {
			case limit < 1 || limit > 1000 || s.cmd.Int64("after") < 0:
				return errors.New("-limit must be 1 to 1000, and -after not below 0")
			case tenant != "" && n != "":
				return errors.New("-tenant and -network name two logs: give one of them")
			case tenant != "":
				if _, err := s.App.Wallets.Tenant(ctx, tenant); err != nil {
					return err
				}
				p = storage.Tenant(tenant)
			case n != "":
				if err := s.known(n); err != nil {
					return err
				}
				p = storage.Network(string(n))
			}
			all, err := s.App.Operate.AuditLog(ctx, p, s.cmd.Int64("after"), limit)
			if err != nil {
				return err
			}
			var out records
			for _, o := range all {
				out = append(out, append(record{{"number", o.Number}}, append(shownOperation(&o), field{"previous", hex.EncodeToString(o.Previous)}, field{"hash", hex.EncodeToString(o.Hash)})...))
			}
			return s.list(out)
		},
	})
}

// shownOperation is an operation in a list.
func shownOperation(o *cryptopay.Operation) record {
	return record{
		{"id", o.ID},
		{"at", o.At},
		{"kind", string(o.Kind)},
		{"by", o.By},
		{"reason", o.Reason},
		{"network", string(o.Network)},
		{"tenant", o.Tenant},
		{"object", o.Object},
		{"before", o.Before},
		{"after", o.After},
	}
}

func (c commands) networks() *cli.Command {
	resume := c.leaf(leaf{
		name: "resume", usage: "Read a network again from a height, after a fork below what was final.", writes: true, dry: true,
		about: "What was found above the height is taken back, and credited again where it is found again.",
		flags: []cli.Flag{onNetwork(), &cli.Int64Flag{Name: "from", Usage: "height at or below the fork (required)"}},
		do: func(ctx context.Context, s *session) error {
			n, err := s.network()
			if err != nil {
				return err
			}
			if !s.cmd.IsSet("from") {
				return errors.New("-from is required: a height at or below the fork")
			}
			id, err := s.App.Operate.ResumeNetwork(ctx, n, s.cmd.Int64("from"), s.call)
			if err != nil {
				return err
			}
			return s.one(record{{"operation", id}, {"dry_run", s.call.DryRun}})
		},
	})
	list := c.leaf(leaf{
		name: "list", usage: "Show how far each network of this program was read, and which are stuck or halted.",
		do: func(ctx context.Context, s *session) error {
			var out records
			for _, client := range s.App.Config().Chains {
				st, err := s.App.NetworkStatus(ctx, client.Network())
				if errors.Is(err, cryptopay.ErrNotReady) {
					st.Network, st.Stuck, err = client.Network(), "not read yet", nil
				}
				if err != nil {
					return err
				}
				out = append(out, record{
					{"network", string(st.Network)}, {"head", st.Head}, {"head_time", st.HeadTime}, {"final", st.Final}, {"stuck", cmp.Or(st.Stuck, st.Waits())}, {"halted", st.Halted},
				})
			}
			return s.list(out)
		},
	})
	return group("networks", "How far networks were read, and how to go on after a fork.", list, resume)
}

// effect prints what a call about an order did.
func (s *session) effect(n chain.Network, e cryptopay.Effect) error {
	out := record{{"operation", e.Operation}, {"dry_run", s.call.DryRun}}
	for _, side := range []struct {
		name string
		outgoing.Help
	}{{"before", e.Before}, {"after", e.After}} {
		most, err := s.gas(n, side.MaxCost)
		if err != nil {
			return err
		}
		out = append(out,
			field{side.name + "_state", string(side.State)}, field{side.name + "_reason", string(side.Reason)}, field{side.name + "_tx", side.Tx},
			field{side.name + "_max_cost", most}, field{side.name + "_cancelling", side.Cancelling})
	}
	if !s.call.DryRun && e.Before.State == outgoing.Signed && e.Before.Tx == e.After.Tx {
		out = append(out, field{"next", "the processes of the App sign what replaces after_tx with their next step; see transactions show"})
	}
	return s.one(out)
}

// gas is an amount in a network's own coin.
func (s *session) gas(n chain.Network, a ledger.Amount) (string, error) {
	c, err := s.App.Config().Registry.Gas(n)
	if err != nil {
		return "", err
	}
	return s.coins(c.Code, a)
}

// maxCost is the flag of commands that send something.
func maxCost(otherwise string) cli.Flag {
	return &cli.StringFlag{Name: "max-cost", Usage: "the most that the network may take, in its own coin, such as 0.01", DefaultText: otherwise}
}

func (s *session) maxCost(n chain.Network) (ledger.Amount, error) {
	v := s.cmd.String("max-cost")
	if v == "" {
		return 0, nil
	}
	c, err := s.App.Config().Registry.Gas(n)
	if err != nil {
		return 0, err
	}
	a, err := ledger.ParseAmount(v, c.Scale)
	if err == nil && a <= 0 {
		err = errors.New("must be above 0")
	}
	if err != nil {
		return 0, fmt.Errorf("-max-cost: %w", err)
	}
	return a, nil
}

func (c commands) transactions() *cli.Command {
	return group("transactions", "What was signed and sent, and how to help what is stuck.",
		c.leaf(leaf{
			name: "show", usage: "Show an order with every attempt: the id is a withdrawal's, a sweep's or another order's.", args: []string{"ORDER"}, flags: []cli.Flag{onNetwork()},
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				v, err := s.App.Operate.Transactions(ctx, n, s.cmd.Args().First())
				if err != nil {
					return err
				}
				r, err := s.order(n, &v)
				if err != nil {
					return err
				}
				return s.one(r)
			},
		}),
		c.leaf(leaf{
			name: "speed-up", usage: "Replace the transaction of an order now by one with a higher fee.", args: []string{"ORDER"},
			flags: []cli.Flag{onNetwork(), maxCost("the bound that it has")}, writes: true, dry: true,
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				most, err := s.maxCost(n)
				if err != nil {
					return err
				}
				e, err := s.App.Operate.SpeedUp(ctx, n, s.cmd.Args().First(), most, s.call)
				if err != nil {
					return err
				}
				return s.effect(n, e)
			},
		}),
		c.leaf(leaf{
			name: "cancel", usage: "See to it that an order pays nobody: its nonce or coins go back to ourselves.", args: []string{"ORDER"}, flags: []cli.Flag{onNetwork()}, writes: true, dry: true,
			about: "If that lands a withdrawal fails and its money is free again. If the payment lands first, nothing has happened.",
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				e, err := s.App.Operate.CancelTransaction(ctx, n, s.cmd.Args().First(), s.call)
				if err != nil {
					return err
				}
				return s.effect(n, e)
			},
		}),
	)
}

func (s *session) order(n chain.Network, v *outgoing.View) (record, error) {
	most, err := s.gas(n, v.Intent.MaxCost)
	if err != nil {
		return nil, err
	}
	cost, err := s.gas(n, v.Cost)
	if err != nil {
		return nil, err
	}
	amount, err := s.coins(v.Intent.Currency, v.Intent.Amount)
	if err != nil {
		return nil, err
	}
	if v.Intent.All {
		amount = "all"
	}
	if v.CostTx == "" {
		cost = ""
	}
	attempts := records{}
	for _, a := range v.Attempts {
		fee, err := s.gas(n, a.Fee.Cost)
		if err != nil {
			return nil, err
		}
		bound, err := s.gas(n, a.MaxCost)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, record{
			{"number", a.Number},
			{"tx", a.Tx},
			{"purpose", string(a.Purpose)},
			{"nonce", a.Nonce},
			{"state", string(a.Fate)},
			{"rejected", a.Rejected},
			{"fee", fee},
			{"max_cost", bound},
			{"stored", a.Stored},
			{"sent", a.Sent},
		})
	}
	return record{
		{"id", v.Intent.ID},
		{"purpose", string(v.Intent.Purpose)},
		{"tenant", v.Intent.Tenant},
		{"network", string(n)},
		{"state", string(v.State)},
		{"reason", string(v.Reason)},
		{"due", v.Due},
		{"from", string(v.Intent.From)},
		{"to", string(v.Intent.To)},
		{"amount", amount},
		{"currency", v.Intent.Currency},
		{"max_cost", most},
		{"tx", v.Tx},
		{"signing", v.Signing},
		{"cancelling", v.Cancelling},
		{"batch_leader", v.BatchLeader},
		{"cost", cost},
		{"attempts", attempts},
	}, nil
}

func (c commands) nonces() *cli.Command {
	show := func(s *session, all []outgoing.Nonce) error {
		var out records
		for _, n := range all {
			out = append(out, record{{"address", string(n.Address)}, {"store", n.Ours}, {"chain", n.Chain}})
		}
		return s.list(out)
	}
	return group("nonces", "The numbers of transactions of our addresses.",
		c.leaf(leaf{
			name: "beyond", usage: "List our addresses of which the chain knows more transactions than the store.", flags: []cli.Flag{onNetwork()},
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				all, err := s.App.Operate.NoncesBeyond(ctx, n)
				if err != nil {
					return err
				}
				return show(s, all)
			},
		}),
		c.leaf(leaf{
			name: "adopt", usage: "Go on with the chain's nonce at the addresses of `nonces beyond`.", writes: true, dry: true,
			about: "Account first for the transactions that the store does not know. The addresses are listed.",
			flags: []cli.Flag{onNetwork(), &cli.StringSliceFlag{Name: "address", Usage: "one of them", DefaultText: "all"}},
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				var addresses []chain.Address
				for _, a := range s.cmd.StringSlice("address") {
					addresses = append(addresses, chain.Address(a))
				}
				all, err := s.App.Operate.AdoptNonces(ctx, n, addresses, s.call)
				if err != nil && len(all) == 0 {
					return err
				}
				return errors.Join(err, show(s, all)) // what was adopted before it failed stays so
			},
		}),
		c.leaf(leaf{
			name: "fill", usage: "Use up a nonce of one of our addresses that others wait behind.", args: []string{"ADDRESS", "NONCE"},
			flags: []cli.Flag{onNetwork(), maxCost("three times the present estimate")}, writes: true, dry: true,
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				most, err := s.maxCost(n)
				if err != nil {
					return err
				}
				var nonce int64
				if _, err := fmt.Sscanf(s.cmd.Args().Get(1)+"\n", "%d\n", &nonce); err != nil || nonce < 0 {
					return fmt.Errorf("NONCE must be a number from 0: not %q", s.cmd.Args().Get(1))
				}
				id, err := s.App.Operate.FillNonce(ctx, n, chain.Address(s.cmd.Args().First()), nonce, most, s.call)
				if err != nil {
					return err
				}
				return s.one(record{{"operation", id}, {"dry_run", s.call.DryRun}})
			},
		}),
	)
}

func (c commands) sweeps() *cli.Command {
	return group("sweeps", "Coins on deposit addresses that wait to be forwarded.",
		c.leaf(leaf{
			name: "list", usage: "List what waits on a network, with its reason and since when.", flags: []cli.Flag{onNetwork(), oneOrAll()},
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err == nil {
					err = s.known(n)
				}
				if err != nil {
					return err
				}
				return s.each(ctx, func(tenant string) (out records, err error) {
					for offset := 0; ; offset += pageSize {
						page, err := s.App.Treasury.Waiting(ctx, tenant, n, pageSize, offset)
						if err != nil {
							return nil, err
						}
						for _, w := range page {
							below := ""
							if w.DueBelow >= 0 {
								below = ledger.PlainString(w.Currency.Decimal(w.DueBelow))
							}
							out = append(out, record{
								{"sweep", w.Sweep},
								{"tenant", w.Tenant},
								{"address", string(w.Address)},
								{"amount", ledger.PlainString(w.Currency.Decimal(w.Amount))},
								{"currency", w.Currency.Code},
								{"reason", w.Reason},
								{"since", w.Since},
								{"next", w.Next},
								{"due_below", below},
								{"detail", w.Detail},
							})
						}
						if len(page) < pageSize {
							return out, nil
						}
					}
				})
			},
		}),
		c.leaf(leaf{
			name: "retry", usage: "Have a sweep that waits looked at now.", args: []string{"SWEEP"}, flags: []cli.Flag{onNetwork()}, writes: true, dry: true,
			do: func(ctx context.Context, s *session) error {
				n, err := s.network()
				if err != nil {
					return err
				}
				id, waited, err := s.App.Operate.RetrySweep(ctx, n, s.cmd.Args().First(), s.call)
				if err != nil {
					return err
				}
				return s.one(record{{"operation", id}, {"dry_run", s.call.DryRun}, {"waited", waited}})
			},
		}),
	)
}
