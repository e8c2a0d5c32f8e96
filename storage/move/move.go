package move

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Report is what a move ended with.
type Report struct {
	// Source is what was sent. Where Copy or Export returned nil, the source held
	// the same when it was read again.
	Source Summary
	// Target is what the target holds, read back.
	Target Summary
	// Differences are the tables that are not equal, and Rows at most 20 rows, where
	// the source can be asked.
	Differences []Difference
	Rows        []RowDifference
	// Findings are ledger.Verify's over the target. What is wrong in a target that
	// is equal to its source is wrong there too.
	Findings []Finding
}

// Export writes all of a store to w, reads it again, and closes the stream with
// its counts and hashes if both came out the same: else ErrBusy, and the stream
// cannot be imported.
func Export(ctx context.Context, from End, w io.Writer, o Options) (Summary, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	s, err := send(ctx, from, o, func(_ record, text []byte) error { return write(out, text) })
	return s, errors.Join(err, out.Flush())
}

// Import brings a stream of Export into an empty store, or goes on where it was
// interrupted, and compares: ErrDifferent where the target is not what was sent.
func Import(ctx context.Context, r io.Reader, to End, o Options) (Report, error) {
	a, err := newApply(ctx, to)
	if err != nil {
		return Report{}, err
	}
	var sent *Summary
	w := newWalk(End{}, o, "copying")
	for in := (reader{in: bufio.NewReaderSize(r, 1<<16)}); sent == nil; {
		rec, text, err := in.next()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: it ends after line %d, before its last one", ErrStream, in.line-1)
		}
		if err == nil && (in.line == 1) != (rec.Kind == kindHead) {
			err = fmt.Errorf("%w: line %d is a %q", ErrStream, in.line, rec.Kind)
		}
		if err == nil && rec.Kind == kindEnd {
			if sent = rec.Summary; sent == nil {
				err = fmt.Errorf("%w: its last line has no figures", ErrStream)
			}
		}
		if err == nil {
			err = a.step(ctx, rec, text)
		}
		if err != nil {
			return Report{}, err
		}
		w.step()
	}
	w.report()
	return finish(ctx, a, *sent, o)
}

// Copy is Export into Import, without a stream in between.
func Copy(ctx context.Context, from, to End, o Options) (Report, error) {
	a, err := newApply(ctx, to)
	if err != nil {
		return Report{}, err
	}
	sent, err := send(ctx, from, o, func(r record, text []byte) error { return a.step(ctx, r, text) })
	if err != nil {
		return Report{Source: sent}, err
	}
	report, err := finish(ctx, a, sent, o)
	if errors.Is(err, ErrDifferent) {
		rows, derr := Diff(ctx, from, to, maxRows)
		report.Rows, err = rows, errors.Join(err, derr)
	}
	return report, err
}

// maxRows is how many rows that differ a Report names.
const maxRows = 20

// send passes all records of a store on, and then its figures if they are the
// same again.
func send(ctx context.Context, from End, o Options, emit func(record, []byte) error) (Summary, error) {
	pass := func(r record) error {
		text, err := r.text()
		if err != nil {
			return err
		}
		return emit(r, text)
	}
	head := record{Kind: kindHead, Format: format}
	for _, t := range from.Tables {
		head.Tables = append(head.Tables, shapeOf(t))
	}
	if err := pass(head); err != nil {
		return Summary{}, err
	}
	w := newWalk(from, o, "copying")
	if o.Progress != nil && from.Store != nil && from.Partitions != nil {
		var err error
		if w.total, err = size(ctx, from); err != nil {
			return Summary{}, err
		}
	}
	w.part = func(p storage.Partition) error { return pass(record{Kind: kindPart, ID: string(p)}) }
	w.record, w.ledger = emit, w.transactions
	if err := w.run(ctx); err != nil {
		return w.sums.summary(), err
	}
	sent := w.sums.summary()
	again, _, err := summarize(ctx, from, o, "proving the source", sent.read())
	if err != nil {
		return sent, err
	}
	if d := sent.Compare(again); len(d) > 0 {
		return sent, fmt.Errorf("%w (%s differs between two readings)", ErrBusy, d[0].Source.Name)
	}
	return sent, pass(record{Kind: kindEnd, Summary: &sent})
}

// step takes a record and commits when enough has come together.
func (a *apply) step(ctx context.Context, r record, text []byte) error {
	if err := a.take(ctx, r, text); err != nil {
		return err
	}
	if a.n <= a.pos.Records || r.Kind != kindEnd && !a.enough() {
		return nil
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.pos.Done = a.pos.Done || r.Kind == kindEnd
	return a.save(ctx)
}

// finish compares the target with what was sent.
func finish(ctx context.Context, a *apply, sent Summary, o Options) (Report, error) {
	report := Report{Source: sent}
	var err error
	report.Target, report.Findings, err = summarize(ctx, a.end, o, "proving the target", sent.read())
	if err != nil {
		return report, err
	}
	if report.Differences = sent.Compare(report.Target); len(report.Differences) > 0 {
		return report, fmt.Errorf("%w: %s", ErrDifferent, report.Differences[0])
	}
	return report, nil
}
