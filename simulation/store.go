package simulation

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// view is the store as one process sees it.
type view struct{ p *process }

var (
	errRead = errors.New("simulation: the store did not answer")
	errLost = errors.New("simulation: the answer of a commit was lost")
)

func (v *view) truth() *witness { return v.p.r.truth }

// read is where a read may fail.
func (v *view) read() error {
	if err := v.p.point(); err != nil {
		return err
	}
	if t := v.p.now; t != nil && v.p.strikes(FailedReads) {
		t.struck = true
		return errRead
	}
	return nil
}

// strikes says whether a nemesis strikes this process's store now. What struck
// once mostly has a reason, and may go on: a store that is out of reach for a while.
func (p *process) strikes(n Nemesis) bool {
	r := p.r
	if p.again[n] > 0 && !r.calm {
		p.again[n]--
		r.struck[n]++
		return true
	}
	if !r.strikes(n) {
		return false
	}
	if r.faults.IntN(2) == 0 {
		p.again[n] = 1 + r.faults.IntN(8)
	}
	return true
}

func (v *view) Open(ctx context.Context, tables ...*storage.Table) error {
	return v.truth().Open(ctx, tables...)
}

func (v *view) Commit(ctx context.Context, changes ...storage.Change) []error {
	out := make([]error, len(changes))
	for i := range changes {
		out[i] = v.commit(ctx, changes[i])
	}
	return out
}

func (v *view) commit(ctx context.Context, c storage.Change) error {
	if err := v.p.point(); err != nil {
		return err
	}
	t, r := v.p.now, v.p.r
	for range 3 { // it is between reading and writing that others hurt most
		if t != nil {
			v.p.linger(t)
		}
	}
	switch {
	case t == nil:
	case c.NoWait && v.p.locked > 0:
		v.p.locked--
		t.struck = true // also where the fault struck an earlier task
		return storage.ErrBusy
	case v.p.strikes(Conflicts):
		t.struck = true
		if c.NoWait && r.faults.IntN(2) == 0 { // another process has locked the partition, for all tries of one Change
			v.p.locked = 2
			return storage.ErrBusy
		}
		return storage.ErrConflict
	case v.p.strikes(LostCommits):
		t.struck = true
		if v.p.again[LostCommits] > 0 || r.faults.IntN(2) == 0 { // out of reach, or it might have been
			return errLost
		}
		if err := v.truth().commit(ctx, c); err != nil {
			return err
		}
		return errLost
	}
	if err := v.truth().commit(ctx, c); err != nil {
		return err
	}
	return v.p.point()
}

func (v *view) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := v.read(); err != nil {
		return nil, err
	}
	return v.truth().Rows(ctx, t, keys...)
}

func (v *view) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := v.read(); err != nil {
		return nil, err
	}
	return v.truth().Find(ctx, q)
}

func (v *view) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := v.read(); err != nil {
		return 0, err
	}
	return v.truth().Count(ctx, q)
}

func (v *view) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if err := v.read(); err != nil {
		return nil, err
	}
	rows, err := v.truth().claim(ctx, c)
	if err != nil {
		return nil, err
	}
	if v.p.now != nil {
		v.p.now.took = rows
	}
	return rows, v.p.point()
}

func (v *view) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	if err := v.read(); err != nil {
		return nil, err
	}
	return v.truth().Balances(ctx, p, accounts...)
}

func (v *view) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	if err := v.read(); err != nil {
		return nil, err
	}
	return v.truth().Entries(ctx, p, a, asset, before, max)
}

// Close leaves the store open: other processes use it.
func (v *view) Close() error { return nil }
