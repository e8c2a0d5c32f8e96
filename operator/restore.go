package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/restore"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// errOlder reports that restore check found something.
var errOlder = errors.New("operator: the store knows less than the world does: begin a restore before any process works on it")

// restoredTenant has the addresses that are withheld, unless another tenant is named.
const restoredTenant = "restored"

func (c commands) backup() *cli.Command {
	return group("backup", "What belongs to a backup.",
		c.leaf(leaf{
			name: "check", usage: "Show how far the store is, and what has to be saved together.",
			about: "Its JSON is a receipt: keep it apart from the store and the backup, each time that a backup is made. `restore check` compares it with what was restored. It holds no secret.",
			flags: []cli.Flag{&cli.StringFlag{Name: "o", Usage: "file to write the receipt to, too", DefaultText: "none"}},
			do:    backupCheck,
		}))
}

func backupCheck(ctx context.Context, s *session) error {
	r, err := restore.New(s.App).Receipt(ctx)
	if err != nil {
		return err
	}
	if file := s.cmd.String("o"); file != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := whole(file, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err }); err != nil {
			return err
		}
	}
	schema := ""
	if v, ok := s.App.Config().Store.(interface {
		SchemaVersion(ctx context.Context) (int64, error)
	}); ok {
		at, err := v.SchemaVersion(ctx)
		if err != nil {
			return err
		}
		schema = fmt.Sprint(at)
	}
	keep := records{}
	for _, what := range append([]string{"the store, in one copy of one moment", "the receipt, apart from both"}, s.Keep...) {
		keep = append(keep, record{{"what", what}})
	}
	networks, tenants := records{}, records{}
	for _, n := range r.Networks {
		networks = append(networks, record{{"network", string(n.Network)}, {"head", n.Head}, {"shown", n.Shown}})
	}
	for _, t := range r.Tenants {
		tenants = append(tenants, record{{"tenant", t.Tenant}, {"seal", t.Seal}, {"hash", t.Hash}})
	}
	return s.one(record{{"store", r.Store}, {"at", r.At}, {"schema", schema}, {"networks", networks}, {"tenants", tenants}, {"keep", keep}})
}

func (c commands) restore() *cli.Command {
	oneNetwork := &cli.StringFlag{Name: "network", Usage: "code of one network", DefaultText: "all of this program"}
	return group("restore", "Steps after the store was put back to an older moment, in this order: check, begin, withhold, unknown, take, end.",
		c.leaf(leaf{
			name: "check", usage: "Ask whether the store is older than what is known elsewhere.",
			about: "It asks each chain for the transactions of our addresses, and compares a receipt of `backup check`. It fails where the store is older.",
			flags: []cli.Flag{&cli.StringFlag{Name: "receipt", Usage: "file of the newest receipt that was kept", DefaultText: "none"}},
			do:    restoreCheck,
		}),
		c.leaf(leaf{
			name: "begin", usage: "Halt everything, and note where the store stands.", writes: true, dry: true,
			about: "Do it before any process works on the restored store. Then start the processes, closed to customers: they read the chains up to the tip and send nothing.",
			do: func(ctx context.Context, s *session) error {
				r, err := restore.New(s.App).Begin(ctx, s.call)
				if err != nil {
					return err
				}
				var networks records
				for _, n := range r.Networks {
					networks = append(networks, record{{"network", string(n.Network)}, {"read_from", n.From.Height}, {"shown", n.Shown}})
				}
				return s.one(record{{"operation", r.ID}, {"dry_run", s.call.DryRun}, {"begun", r.Begun}, {"by", r.By}, {"reason", r.Reason}, {"networks", networks}})
			},
		}),
		c.leaf(leaf{
			name: "withhold", usage: "Keep addresses that may have been shown since the backup from being shown again.", writes: true, dry: true,
			about: "Money that comes to them goes to the tenant's suspense. It may be called again.",
			flags: []cli.Flag{
				oneNetwork,
				&cli.Int64Flag{Name: "count", Usage: "how many of each network: more than were shown since, 0 if surely none was (required)"},
				&cli.StringFlag{Name: "tenant", Usage: "id of the tenant that they are given to", Value: restoredTenant},
			},
			do: withhold,
		}),
		c.leaf(leaf{
			name: "unknown", usage: "List transactions of our keys that the store does not know, read from the chains.", flags: []cli.Flag{oneNetwork},
			do: func(ctx context.Context, s *session) error {
				all, err := s.unknown(ctx)
				if err != nil {
					return err
				}
				var out records
				for i := range all {
					out = append(out, unknownRecord(&all[i]))
				}
				return s.list(out)
			},
		}),
		c.leaf(leaf{
			name: "take", usage: "Book transactions that `restore unknown` lists, so that none is paid again.", writes: true, dry: true,
			about: "A withdrawal that was paid is completed. What else left is taken from the wallet that is named; what it does not have, it owes.",
			flags: []cli.Flag{
				oneNetwork,
				&cli.StringFlag{Name: "tx", Usage: "hash of one transaction", DefaultText: "all of which it is known what they were for"},
				&cli.StringFlag{Name: "tenant", Usage: "id of the tenant of -wallet", DefaultText: "whose address or coins it spent"},
				&cli.StringFlag{Name: "wallet", Usage: "id or external id of the tenant's wallet that bears it, master = the master account; with -tx", DefaultText: "none"},
			},
			do: take,
		}),
		c.leaf(leaf{
			name: "end", usage: "Prove that nothing is left to do, adopt nonces, and lift the halt of everything.", writes: true, dry: true,
			about: "What is left is listed, and nothing is done then.",
			flags: []cli.Flag{&cli.BoolFlag{Name: "despite", Usage: "end it although something is left, which you have accounted for"}},
			do: func(ctx context.Context, s *session) error {
				e, failed := restore.New(s.App).End(ctx, s.cmd.Bool("despite"), s.call)
				if failed != nil && !errors.Is(failed, restore.ErrRestoreOpen) {
					return failed
				}
				left, adopted := records{}, records{}
				for _, l := range e.Left {
					left = append(left, record{{"network", string(l.Network)}, {"object", l.Object}, {"left", l.Detail}})
				}
				for _, n := range e.Adopted {
					adopted = append(adopted, record{{"address", string(n.Address)}, {"nonce", n.Chain}})
				}
				if err := s.one(record{{"ended", e.Ended}, {"dry_run", s.call.DryRun}, {"left", left}, {"nonces_adopted", adopted}}); err != nil {
					return err
				}
				return failed
			},
		}),
	)
}

func restoreCheck(ctx context.Context, s *session) error {
	found, err := restore.New(s.App).Behind(ctx)
	if err != nil {
		return err
	}
	if file := s.cmd.String("receipt"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("-receipt: %w", err)
		}
		var r restore.Receipt
		if err := json.Unmarshal(text, &r); err != nil || r.Store == "" {
			return errors.New("-receipt must be a file that `backup check -o` wrote")
		}
		more, err := restore.New(s.App).Since(ctx, r)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	out := records{}
	for _, l := range found {
		out = append(out, record{{"kind", l.Kind}, {"object", l.Object}, {"detail", l.Detail}})
	}
	r, restoring, err := restore.New(s.App).Restoring(ctx)
	if err != nil {
		return err
	}
	begun := time.Time{}
	if restoring {
		begun = r.Begun
	}
	if err := s.one(record{{"older", len(out) > 0}, {"restore_begun", begun}, {"findings", out}}); err != nil || len(out) == 0 {
		return err
	}
	return errOlder
}

// networksNamed are the network of the flag, or all of this program.
func (s *session) networksNamed() (out []chain.Network) {
	if n := s.cmd.String("network"); n != "" {
		return []chain.Network{chain.Network(n)}
	}
	for _, client := range s.App.Config().Chains {
		out = append(out, client.Network())
	}
	return out
}

func withhold(ctx context.Context, s *session) error {
	count, tenant := s.cmd.Int64("count"), s.cmd.String("tenant")
	if !s.cmd.IsSet("count") || count < 0 || count > 1_000_000 {
		return errors.New("-count is required: how many addresses of each network, 0 to 1000000")
	}
	if _, restoring, err := restore.New(s.App).Restoring(ctx); err != nil || !restoring {
		return errors.Join(err, restore.ErrNoRestore)
	}
	if tenant == restoredTenant && !s.call.DryRun {
		name := "Addresses withheld after a restore"
		_, err := s.App.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: tenant, Settings: wallet.Settings{Name: &name}})
		if err != nil && !errors.Is(err, wallet.ErrTenantExists) {
			return err
		}
	} else if tenant != restoredTenant {
		if _, err := s.App.Wallets.Tenant(ctx, tenant); err != nil {
			return err
		}
	}
	var out records
	for _, n := range s.networksNamed() {
		taken := 0
		if tenant != restoredTenant || !s.call.DryRun {
			var err error
			if taken, err = restore.New(s.App).Withhold(ctx, n, tenant, count, s.call); err != nil {
				return err
			}
		}
		out = append(out, record{{"network", string(n)}, {"tenant", tenant}, {"taken", taken}, {"dry_run", s.call.DryRun}})
	}
	return s.list(out)
}

// unknown are the transactions of the networks that are named.
func (s *session) unknown(ctx context.Context) (out []restore.Tx, err error) {
	for _, n := range s.networksNamed() {
		var last int64
		found, err := restore.New(s.App).Unknown(ctx, n, func(height, of int64) {
			if height-last >= 1000 || last == 0 {
				last = height
				s.note("%s: read block %d of %d", n, height, of)
			}
		})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func unknownRecord(u *restore.Tx) record {
	moves := records{}
	for _, m := range u.Moves {
		purpose := "unknown"
		switch {
		case m.Ours:
			purpose = "to ourselves"
		case m.Withdrawal != "":
			purpose = "withdrawal"
		}
		moves = append(moves, record{
			{"to", string(m.To)}, {"amount", m.Amount.String()}, {"currency", m.Currency}, {"for", purpose}, {"withdrawal", m.Withdrawal}, {"tenant", m.Tenant}, {"status", string(m.Status)}, {"wallet", m.Wallet},
		})
	}
	return record{
		{"tx", u.Tx}, {"network", string(u.Network)}, {"height", u.Block.Height}, {"final", u.Final}, {"from", string(u.From)}, {"tenant", u.Tenant}, {"taken", u.Taken}, {"moves", moves},
	}
}

func take(ctx context.Context, s *session) error {
	tx, bearer := s.cmd.String("tx"), restore.Bearer{Tenant: s.cmd.String("tenant"), Wallet: s.cmd.String("wallet")}
	if bearer.Wallet != "" && tx == "" || bearer.Tenant != "" && bearer.Wallet == "" {
		return errors.New("-wallet needs -tx, and -tenant needs -wallet: say which transaction it bears")
	}
	all, err := s.unknown(ctx)
	if err != nil {
		return err
	}
	if tx != "" {
		i := slices.IndexFunc(all, func(u restore.Tx) bool { return u.Tx == tx })
		if i < 0 {
			return fmt.Errorf("-tx %s is none of those that `restore unknown` lists", tx)
		}
		all = all[i : i+1]
	}
	var out records
	var failed error
	for i := range all {
		u := &all[i]
		if u.Taken && tx == "" {
			continue
		}
		result, why := "taken", ""
		if err := restore.New(s.App).Take(ctx, *u, bearer, s.call); err != nil {
			result, why = "left", advise(err).Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", u.Tx, err))
		} else if s.call.DryRun {
			result = "would be taken"
		}
		out = append(out, record{{"tx", u.Tx}, {"network", string(u.Network)}, {"tenant", u.Tenant}, {"result", result}, {"why", why}})
	}
	if err := s.list(out); err != nil {
		return err
	}
	return failed
}
