package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

func (c commands) policies() *cli.Command {
	destination := func(name, usage string, do func(ctx context.Context, s *session, tenant string, n chain.Network, address, memo string) (string, error)) *cli.Command {
		return c.leaf(leaf{
			name: name, usage: usage, args: []string{"NETWORK", "ADDRESS"}, writes: true, dry: true,
			flags: []cli.Flag{ofTenant(), &cli.StringFlag{Name: "memo", Usage: "the memo of the destination"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				n, address, memo := chain.Network(s.cmd.Args().Get(0)), s.cmd.Args().Get(1), s.cmd.String("memo")
				id, err := do(ctx, s, tenant, n, address, memo)
				if err != nil {
					return err
				}
				return s.one(record{{"tenant", tenant}, {"network", string(n)}, {"address", address}, {"memo", memo}, {"dry_run", s.call.DryRun}, {"operation", id}})
			},
		})
	}
	return group("policy", "What payouts of a tenant are held to: limits, approvals, destinations.",
		c.leaf(leaf{
			name: "show", usage: "Show the policy of a tenant.",
			flags: []cli.Flag{ofTenant(), &cli.Int64Flag{Name: "number", Usage: "an earlier version", DefaultText: "the one in force"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				v, err := s.App.Policies.Get(ctx, tenant)
				if n := s.cmd.Int64("number"); err == nil && n != 0 {
					v, err = s.App.Policies.Find(ctx, tenant, n)
				}
				if err != nil {
					return err
				}
				return s.policy(tenant, v, "")
			},
		}),
		c.leaf(leaf{
			name: "set", usage: "Make what a file says the policy of a tenant.", args: []string{"FILE"}, writes: true, dry: true,
			about: "The file is JSON: {\"rules\": [{\"name\": \"large\", \"of\": \"amount\", \"over\": \"10000\", \"needs\": [{\"role\": \"finance\", \"count\": 2}]}], \"cold\": [{\"currency\": \"BTC\", \"address\": \"bc1…\", \"ceiling\": \"2\", \"target\": \"1\"}]}. - is the standard input.",
			flags: []cli.Flag{ofTenant(), &cli.Int64Flag{Name: "number", Usage: "of the version that it replaces", DefaultText: "the one in force"}},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				p, err := readPolicy(s.cmd.Args().First())
				if err != nil {
					return err
				}
				number := s.cmd.Int64("number")
				if !s.cmd.IsSet("number") {
					now, err := s.App.Policies.Get(ctx, tenant)
					if err != nil {
						return err
					}
					number = now.Number
				}
				v, id, err := s.App.Operate.SetPolicy(ctx, tenant, number, p, s.call)
				if err != nil {
					return err
				}
				return s.policy(tenant, v, id)
			},
		}),
		c.leaf(leaf{
			name: "destinations", usage: "List the destinations that were allowed, the newest first.", flags: []cli.Flag{ofTenant()},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				all, err := pages(func(limit, offset int) ([]policy.Destination, error) {
					return s.App.Policies.List(ctx, tenant, limit, offset)
				})
				if err != nil {
					return err
				}
				out := make(records, len(all))
				for i, d := range all {
					out[i] = record{
						{"network", string(d.Network)},
						{"address", d.Address},
						{"memo", d.Memo},
						{"since", d.At},
						{"removed_at", d.RemovedAt},
						{"by", d.By},
						{"reason", d.Reason},
					}
				}
				return s.list(out)
			},
		}),
		destination("allow", "Put a destination on a tenant's list.", func(ctx context.Context, s *session, tenant string, n chain.Network, address, memo string) (string, error) {
			_, id, err := s.App.Operate.AllowDestination(ctx, tenant, n, address, memo, s.call)
			return id, err
		}),
		destination("remove", "Take a destination from a tenant's list.", func(ctx context.Context, s *session, tenant string, n chain.Network, address, memo string) (string, error) {
			return s.App.Operate.RemoveDestination(ctx, tenant, n, address, memo, s.call)
		}),
	)
}

// readPolicy reads a file of at most a megabyte.
func readPolicy(file string) (p policy.Policy, err error) {
	in := os.Stdin
	if file != "-" {
		if in, err = os.Open(file); err != nil {
			return p, err
		}
		defer func() { _ = in.Close() }() // it was read only
	}
	text, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&p); err == nil && d.More() {
		err = fmt.Errorf("there is more than one value")
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func (s *session) policy(tenant string, v policy.Version, operation string) error {
	rules := make(records, len(v.Rules))
	for i, r := range v.Rules {
		needs := make([]string, len(r.Needs))
		for n, need := range r.Needs {
			needs[n] = fmt.Sprintf("%d %s", need.Count, cmp.Or(need.Role, "approver"))
		}
		rules[i] = record{
			{"name", r.Name},
			{"of", string(r.Of)},
			{"over", r.Over},
			{"per", time.Duration(r.Per)},
			{"currency", r.Currency},
			{"each_destination", r.EachDestination},
			{"then", string(r.Then)},
			{"needs", needs},
		}
	}
	cold := make(records, len(v.Cold))
	for i, c := range v.Cold {
		cold[i] = record{{"currency", c.Currency}, {"address", c.Address}, {"memo", c.Memo}, {"ceiling", c.Ceiling}, {"target", c.Target}, {"descriptor", c.Descriptor}}
	}
	sweeps := make(records, len(v.Sweeps))
	for i, c := range v.Sweeps {
		sweeps[i] = record{{"currency", c.Currency}, {"multiple", c.Multiple}, {"wait", time.Duration(c.Wait)}}
	}
	return s.one(record{
		{"tenant", tenant},
		{"number", v.Number},
		{"by", v.By},
		{"reason", v.Reason},
		{"at", v.At},
		{"rules", rules},
		{"cold", cold},
		{"sweeps", sweeps},
		{"dry_run", s.call.DryRun},
		{"operation", operation},
	})
}
