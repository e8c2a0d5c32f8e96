package restore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Steps are those of one restore, over an open App. All methods may be called concurrently.
type Steps struct {
	App *cryptopay.App
	cfg cryptopay.Config
}

// New makes Steps.
func New(app *cryptopay.App) *Steps { return &Steps{App: app, cfg: app.Config()} }

func check(c cryptopay.Call) error {
	if c.By == "" || c.Reason == "" {
		return cryptopay.ErrCall
	}
	return nil
}

// client is that of a network of this process.
func (s *Steps) client(n chain.Network) (chain.Client, error) {
	for _, c := range s.cfg.Chains {
		if c.Network() == n {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: this process serves no network %s", chain.ErrCurrency, n)
}

// networks are those that any process on the store serves, by name.
func (s *Steps) networks(ctx context.Context) ([]chain.Network, error) {
	out := slices.Clone(s.cfg.Elsewhere)
	for _, c := range s.cfg.Chains {
		out = append(out, c.Network())
	}
	rows, err := s.cfg.Store.Find(ctx, storage.Query{Table: incoming.Cursors.Table, Limit: 1000, IDs: true})
	for _, r := range rows {
		if n, ok := strings.CutPrefix(string(r.Partition), string(storage.Network(""))); ok {
			out = append(out, chain.Network(n))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// record is a new operation.
func (s *Steps) record(kind outgoing.OperationKind, c cryptopay.Call) outgoing.Operation {
	return outgoing.Operation{Kind: kind, By: c.By, Reason: c.Reason, At: s.cfg.Clock.Now()}
}

// recorded is the record of a call about an object, in the partition of its Change.
func (s *Steps) recorded(ctx context.Context, p storage.Partition, kind outgoing.OperationKind, n chain.Network, tenant, object string, c cryptopay.Call) *outgoing.Recorded {
	by := s.under(ctx, p, s.cfg.NewID(), kind, c)
	by.Op.Network, by.Op.Tenant, by.Op.Object = n, tenant, object
	return by
}

// under is the record of a call under an id.
func (s *Steps) under(ctx context.Context, p storage.Partition, id string, kind outgoing.OperationKind, c cryptopay.Call) *outgoing.Recorded {
	return &outgoing.Recorded{ID: id, Op: s.record(kind, c), Part: p, Audit: func(c *storage.Change) error { return s.App.Audited(ctx, c) }}
}

// note writes the record of a call that changes no other row, once. change is the id of its Change.
func (s *Steps) note(ctx context.Context, by *outgoing.Recorded, change, before, after string) error {
	return storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		_, _, done, err := outgoing.Operations.One(ctx, s.cfg.Store, by.Part, by.ID)
		if err != nil || done {
			return storage.Change{}, err
		}
		c := storage.Change{ID: change, Partition: by.Part}
		return c, by.Add(&c, before, after)
	})
}

// done logs what was done.
func (s *Steps) done(ctx context.Context, by *outgoing.Recorded) {
	op := &by.Op
	s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "operator_intervened",
		slog.String("operation", by.ID), slog.String("kind", string(op.Kind)), slog.String("by", op.By), slog.String("reason", op.Reason),
		slog.String("network", string(op.Network)), slog.String("object", op.Object))
}

// page is how many rows are read at a time.
const page = 500

// each calls f with all rows of a query.
func each(ctx context.Context, s storage.Store, q storage.Query, f func(storage.Row) error) error {
	q.Limit = page
	return storage.Pages(ctx, s, q, func(rows []storage.Row) error {
		for _, row := range rows {
			if err := f(row); err != nil {
				return err
			}
		}
		return nil
	})
}
