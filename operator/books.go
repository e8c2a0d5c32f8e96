package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ErrFound reports that verify found something.
var ErrFound = errors.New("operator: the books are not sound: each finding is listed; the runbook's alerts say what they mean")

func (c commands) verify() *cli.Command {
	return c.leaf(leaf{
		name: "verify", usage: "Prove the books of tenants from what is stored.", flags: []cli.Flag{oneOrAll()},
		about: "It is exact while nothing else writes. On a live store a hold that is taken meanwhile may be reported, and is gone when asked again. " +
			"It fails where something is found.",
		do: func(ctx context.Context, s *session) error {
			tenants, err := s.named(ctx)
			if err != nil {
				return err
			}
			var out records
			sound := true
			for i, t := range tenants {
				r, err := s.App.VerifyTenant(ctx, t)
				if err != nil {
					return fmt.Errorf("tenant %s: %w", t, err)
				}
				s.note("verified %d of %d tenants", i+1, len(tenants))
				sound = sound && r.Sound()
				out = append(out, record{
					{"tenant", t}, {"sound", r.Sound()}, {"balances", r.Ledger.Balances}, {"entries", r.Ledger.Entries}, {"sealed", r.Seals.Entries}, {"findings", findings(&r)},
				})
			}
			if err := s.list(out); err != nil || sound {
				return err
			}
			return ErrFound
		},
	})
}

// findings is all that a report has found.
func findings(r *cryptopay.Report) records {
	out := records{}
	add := func(kind, format string, args ...any) {
		out = append(out, record{{"kind", kind}, {"finding", fmt.Sprintf(format, args...)}})
	}
	for _, f := range r.Ledger.Findings {
		add("ledger", "%s", f)
	}
	for _, f := range r.Holds {
		add("hold", "%s of %s: held %d units, owed %d", f.Asset, f.Account, f.Held, f.Owed)
	}
	for _, f := range r.Unexplained {
		add("unexplained", "%s %s: posted %d units, its row says %d", f.Kind, f.ID, f.Posted, f.Stated)
	}
	for _, f := range r.Contradictions {
		add("contradiction", "%s %s: %s", f.Kind, f.ID, f.Detail)
	}
	for _, f := range r.Gas {
		add("gas", "%s: %d units set aside for %d orders, open are %d units for %d", f.Asset, f.Reserved, f.Count, f.Owed, f.Open)
	}
	for _, f := range r.Counters {
		add("counter", "%s: is %d, should be %d: `recount` mends it", f.Counter, f.Have, f.Want)
	}
	for _, f := range r.Seals.Findings {
		add("seal", "%s", f)
	}
	if r.Seals.More > 0 {
		add("seal", "%d more", r.Seals.More)
	}
	for _, f := range r.Unreadable {
		add("unreadable", "%s", f)
	}
	return out
}

func (c commands) recount() *cli.Command {
	return c.leaf(leaf{
		name: "recount", usage: "Count again what a tenant has, and mend the counters of lists and statistics that differ.", args: []string{"TENANT"}, writes: true,
		do: func(ctx context.Context, s *session) error {
			tenant := s.cmd.Args().First()
			if _, err := s.App.Wallets.Tenant(ctx, tenant); err != nil {
				return err
			}
			if err := s.begins(ctx, audit.Recount, storage.Tenant(tenant), tenant); err != nil {
				return err
			}
			all, err := s.App.Recount(ctx, tenant)
			if err != nil {
				return err
			}
			s.did(ctx, tenant, tenant)
			var out records
			for _, d := range all {
				out = append(out, record{{"counter", d.Counter}, {"was", d.Have}, {"is", d.Want}})
			}
			return s.list(out)
		},
	})
}

func (c commands) journal() *cli.Command {
	return c.leaf(leaf{
		name: "journal", usage: "Write a tenant's ledger for accountants.", args: []string{"TENANT"},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "csv, hledger or beancount (required)"},
			&cli.StringFlag{Name: "o", Usage: "file to write", DefaultText: "standard output"},
			&cli.StringFlag{Name: "until", Usage: "day, such as 2027-01-31, from which on nothing is written; it begins at 0:00 UTC", DefaultText: "all is written"},
		},
		about: "It shows one moment, and its balances stand in it as assertions. With -json it says what was written, and needs -o.",
		do:    writeJournal,
	})
}

func writeJournal(ctx context.Context, s *session) (err error) {
	tenant, file := s.cmd.Args().First(), s.cmd.String("o")
	if s.cmd.Bool("json") && file == "" {
		return errors.New("-json needs -o FILE: a journal has a format of its own")
	}
	if _, err := s.App.Wallets.Tenant(ctx, tenant); err != nil {
		return err
	}
	books := journal.Source{Store: s.App.Config().Store, Tenant: tenant, Scale: s.App.Scale}
	if day := s.cmd.String("until"); day != "" {
		if books.Until, err = time.Parse(time.DateOnly, day); err != nil {
			return fmt.Errorf("-until must be a day, such as 2027-01-31: not %q", day)
		}
	}
	var write func(context.Context, io.Writer) error
	switch format := s.cmd.String("format"); format {
	case "csv":
		write = books.CSV
	case "hledger":
		write = books.HLedger
	case "beancount":
		write = books.Beancount
	default:
		return fmt.Errorf("-format must be csv, hledger or beancount: not %q", format)
	}
	if file == "" {
		return write(ctx, s.cmd.Root().Writer)
	}
	if err := whole(file, func(w io.Writer) error { return write(ctx, w) }); err != nil {
		return err
	}
	return s.one(record{{"file", file}})
}

// whole writes a file that its owner alone can read, and that has its name once all is in it.
func whole(file string, write func(io.Writer) error) error {
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, file)
}

func (c commands) reseal() *cli.Command {
	return c.leaf(leaf{
		name: "reseal", usage: "Seal with the newest key what older ones have sealed.", writes: true,
		about: "Credentials that are listed move by their use alone. Take the old key out once nothing is left and nothing is listed.",
		do: func(ctx context.Context, s *session) error {
			unmoved := records{}
			if err := s.begins(ctx, audit.Reseal, storage.System, ""); err != nil {
				return err
			}
			if s.Auth != nil {
				if _, err := s.Auth.Reseal(ctx); err != nil {
					return err
				}
			}
			r, err := s.App.Reseal(ctx)
			if err != nil {
				return err
			}
			if s.Reseal != nil {
				if err := s.Reseal(ctx); err != nil {
					return err
				}
			}
			s.did(ctx, "", "")
			if s.Auth != nil {
				all, err := s.Auth.Unmoved(ctx)
				if err != nil {
					return err
				}
				for _, c := range all {
					unmoved = append(unmoved, record{{"kind", c.Kind}, {"id", c.ID}, {"tenant", c.Tenant}})
				}
			}
			left := records{}
			for _, l := range r.Left {
				left = append(left, record{{"kind", l.Kind}, {"id", l.ID}, {"detail", l.Detail}})
			}
			return s.one(record{{"withdrawals", r.Withdrawals}, {"orders", r.Orders}, {"secrets", r.Secrets}, {"seals", r.Seals}, {"left", left}, {"credentials_not_moved", unmoved}})
		},
	})
}
