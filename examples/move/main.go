// Move takes everything from one store to another and proves that both are equal:
//
//	go run ./examples/move -from sqlite:cryptopay.db -to postgres://user:password@host/db
//
// Stop every process that uses the source first. It may be interrupted: called
// again with the same two, it goes on. At the end it prints what was compared,
// proves the books of the target, and says whether the target may be used.
//
// stream:FILE may stand at either end: a copy in a file, to be brought into any
// store. A host with tables of its own adds them in tables.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage/move"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "move:", err)
		os.Exit(1)
	}
}

const stream = "stream:"

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	f := flag.NewFlagSet("move", flag.ContinueOnError)
	f.SetOutput(progress)
	from := f.String("from", "", "the source: "+kinds)
	to := f.String("to", "", "the target, empty: "+kinds)
	quiet := f.Bool("quiet", false, "no progress bar")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *from == "" || *to == "" || *from == *to {
		return errors.New("say -from and -to, two different stores: " + kinds)
	}
	var o move.Options
	if !*quiet {
		b := &bar{w: progress, now: cryptopay.SystemClock{}.Now}
		o.Progress = b.show
		defer b.end()
	}
	report, err := between(ctx, *from, *to, o)
	if ctx.Err() != nil {
		return errors.New("interrupted: call it again with the same -from and -to to go on. Do not use the target yet")
	}
	if len(report.Source.Sums) > 0 {
		table(out, report)
	}
	if err != nil {
		return fmt.Errorf("%w\nDo not use the target", err)
	}
	if strings.HasPrefix(*to, stream) {
		_, _ = fmt.Fprintln(out, "EQUAL: the source was the same when it was read again.")
		return nil
	}
	return prove(ctx, *to, report, out)
}

// between moves, whatever the two ends are.
func between(ctx context.Context, from, to string, o move.Options) (move.Report, error) {
	if file, ok := strings.CutPrefix(to, stream); ok {
		return export(ctx, from, file, o)
	}
	target, err := openTarget(ctx, to)
	if err != nil {
		return move.Report{}, fmt.Errorf("-to: %w", err)
	}
	defer target.Store.Close() //nolint:errcheck // whatever is in it was committed
	if file, ok := strings.CutPrefix(from, stream); ok {
		f, err := os.Open(file)
		if err != nil {
			return move.Report{}, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		return move.Import(ctx, f, target, o)
	}
	source, err := openSource(ctx, from)
	if err != nil {
		return move.Report{}, fmt.Errorf("-from: %w", err)
	}
	defer source.Store.Close() //nolint:errcheck // it was only read
	return move.Copy(ctx, source, target, o)
}

// export writes the file under another name, which it loses when all is written.
func export(ctx context.Context, from, file string, o move.Options) (r move.Report, err error) {
	source, err := openSource(ctx, from)
	if err != nil {
		return r, fmt.Errorf("-from: %w", err)
	}
	defer source.Store.Close() //nolint:errcheck // it was only read
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return r, err
	}
	r.Source, err = move.Export(ctx, source, f, o)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return r, err
	}
	return r, os.Rename(part, file)
}

// prove ends with the books of every tenant, read from the target.
func prove(ctx context.Context, to string, report move.Report, out io.Writer) error {
	target, err := openTarget(ctx, to)
	if err != nil {
		return err
	}
	defer target.Store.Close() //nolint:errcheck // it was only read
	reports, err := cryptopay.VerifyStore(ctx, target.Store)
	if err != nil {
		return err
	}
	wrong := 0
	for _, f := range report.Findings {
		wrong++
		_, _ = fmt.Fprintf(out, "books: %s: %s\n", f.Partition, f.Finding)
	}
	for _, r := range reports {
		if !r.Sound() {
			wrong++
			_, _ = fmt.Fprintf(out, "books: tenant %s: %d holds, %d postings and %d gas floats are not explained\n", r.Tenant, len(r.Holds), len(r.Unexplained), len(r.Gas))
		}
	}
	_, _ = fmt.Fprintf(out, "EQUAL: %d records, the same counts and hashes at both ends.\n", report.Source.Records())
	if wrong > 0 {
		_, _ = fmt.Fprintln(out, "The books came over as they were, and they were not right before: see above.")
		return nil
	}
	_, _ = fmt.Fprintf(out, "PROVEN: the books of %d tenants. The target may be used; never start anything on the source again.\n", len(reports))
	return nil
}
