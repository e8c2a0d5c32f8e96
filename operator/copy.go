package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
)

// errCopyBroken reports that the books of a copy are not right.
var errCopyBroken = errors.New("operator: the copy is equal, and its books are not right, as those of the source: verify the source")

func (c commands) copy() *cli.Command {
	return c.leaf(leaf{
		name: "copy", usage: "Copy all of the store into another one, of any kind, and prove that both are equal.", writes: true, dry: true,
		about: "Stop every process that uses the store first: a store that is written to meanwhile is refused. The target must be empty. It may be ended at any moment and called " +
			"again: it goes on. At the end counts and hashes of both ends are compared, and the books of the target are proved. Then start the processes on the target, and never one on the source again: two stores that pay are two payments.",
		flags: []cli.Flag{&cli.StringFlag{Name: "to", Usage: "the target, as the program names a store (required)"}},
		do:    copyStore,
	})
}

func copyStore(ctx context.Context, s *session) (err error) {
	name, err := s.need("to")
	if err != nil {
		return err
	}
	if s.OpenStore == nil {
		return errors.New("this service has not said how its store is copied")
	}
	end := func(store storage.Store) move.End {
		return move.End{Store: store, Tables: s.Tables, Partitions: cryptopay.Partitions, Levels: cryptopay.LevelsOf}
	}
	source := s.App.Config().Store
	target, err := s.OpenStore(ctx, name, !s.call.DryRun)
	if err != nil {
		return fmt.Errorf("-to: %w", err)
	}
	if target != nil {
		defer func() { err = errors.Join(err, target.Close()) }()
	}
	if s.call.DryRun {
		return s.wouldCopy(ctx, source, target)
	}
	phase := ""
	var told int64
	r, err := move.Copy(ctx, end(source), end(target), move.Options{Progress: func(p move.Progress) {
		if p.Phase != phase {
			phase, told = p.Phase, -1
		}
		percent := int64(100)
		if p.Total > 0 {
			percent = min(100, p.Done*100/p.Total)
		}
		if percent/5 != told/5 || told < 0 {
			told = percent
			s.note("%s: %d of %d records, %d %%", p.Phase, p.Done, p.Total, percent)
		}
	}})
	if ctx.Err() != nil {
		return errors.New("the copy was interrupted: call it again with the same -to, and do not use the target yet")
	}
	if err != nil {
		for _, d := range r.Rows {
			s.note("differs: %v", d)
		}
		return fmt.Errorf("%w: do not use the target", err)
	}
	return s.proveCopy(ctx, target, &r)
}

// proveCopy ends with the books of every tenant, read from the target.
func (s *session) proveCopy(ctx context.Context, target storage.Store, r *move.Report) error {
	reports, err := cryptopay.VerifyStore(ctx, target)
	if err != nil {
		return err
	}
	wrong := len(r.Findings)
	var sealed int64
	for i := range reports {
		sealed += reports[i].Seals.Entries
		if !reports[i].Sound() {
			wrong++
		}
	}
	s.did(ctx, "", s.cmd.String("to"))
	sums := records{}
	for i, sum := range r.Source.Sums {
		if sum.Count > 0 {
			sums = append(sums, record{{"table", sum.Name}, {"source", sum.Count}, {"target", r.Target.Sums[i].Count}, {"hash", sum.Hash}})
		}
	}
	err = s.one(record{
		{"equal", true}, {"records", r.Source.Records()}, {"tenants", len(reports)}, {"sealed_entries", sealed}, {"sound", wrong == 0}, {"tables", sums},
	})
	if err == nil && wrong > 0 {
		err = errCopyBroken
	}
	return err
}

// wouldCopy says what a copy would bring over. target is nil where there is nothing yet.
func (s *session) wouldCopy(ctx context.Context, source, target storage.Store) error {
	var all, there int64
	tables := records{}
	begun := false
	for _, t := range s.Tables {
		n, err := source.Count(ctx, storage.Query{Table: t})
		if err != nil {
			return err
		}
		if all += n; n > 0 {
			tables = append(tables, record{{"table", t.Name}, {"rows", n}})
		}
		if target == nil {
			continue
		}
		if n, err = target.Count(ctx, storage.Query{Table: t}); err != nil {
			return err
		}
		there += n
	}
	if target != nil {
		n, err := target.Count(ctx, storage.Query{Table: move.Positions.Table})
		if err != nil {
			return err
		}
		begun = n > 0
	}
	if there > 0 && !begun {
		return fmt.Errorf("-to: %w: it has %d rows", move.ErrNotEmpty, there)
	}
	return s.one(record{{"dry_run", true}, {"rows", all}, {"goes_on", begun}, {"tables", tables}})
}
