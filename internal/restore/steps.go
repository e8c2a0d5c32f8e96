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

// recorded is the record of a call about an object.
func (s *Steps) recorded(kind outgoing.OperationKind, n chain.Network, tenant, object string, c cryptopay.Call) *outgoing.Recorded {
	op := s.record(kind, c)
	op.Network, op.Tenant, op.Object = n, tenant, object
	return &outgoing.Recorded{ID: s.cfg.NewID(), Op: op}
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
