package cryptopay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
)

// auditChain makes the audit log's chain with the keys of a Config.
func auditChain(keys [][]byte) *audit.Chain {
	var derived [][]byte
	for _, k := range keys {
		derived = append(derived, audit.Key(k))
	}
	return outgoing.AuditChain(derived...)
}

// Audited adds the new operations that a Change puts to the audit log of its partition. Call it
// in the decision that makes the Change.
func (a *App) Audited(ctx context.Context, c *storage.Change) error {
	return outgoing.Audited(ctx, a.joined(), a.audit, c)
}

// Audit records an act in the Change that does it, as an operation in the audit log of the
// Change's partition: it is for auth.Config.Audit. Call it in the decision that makes the
// Change, once.
func (a *App) Audit(ctx context.Context, c *storage.Change, act audit.Act) error {
	before, err := shownAct(act.Before)
	after, failed := shownAct(act.After)
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	op := outgoing.Operation{
		Kind: outgoing.OperationKind(act.Kind), By: act.By, Reason: act.Reason, Tenant: act.Tenant, Object: act.Object,
		Before: before, After: after, At: a.cfg.Clock.Now(),
	}
	if act.Tell {
		by := outgoing.Recorded{ID: a.cfg.NewID(), Op: op, Part: c.Partition, Audit: func(c *storage.Change) error { return a.Audited(ctx, c) }}
		return by.Add(c, before, after)
	}
	c.Put = append(c.Put, outgoing.Operations.Row(a.cfg.NewID(), 0, time.Time{}, op))
	return a.Audited(ctx, c)
}

func shownAct(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// AuditLog returns operations of one audit log by number, those after a number: of
// storage.Tenant what concerns that tenant's money and policy, of storage.Network what concerns
// that network, of storage.System what concerns all, and credentials. limit 0 = 100. What a
// version before the log recorded is in List alone.
func (o *Operate) AuditLog(ctx context.Context, p storage.Partition, after int64, limit int) ([]Operation, error) {
	rows, err := o.a.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Operations.Table, Partition: p, Limit: limit, Order: []storage.Order{{Column: "number"}},
		Where: []storage.Cond{{Column: "number", Op: storage.Gt, Value: max(after, 0)}},
	})
	out := make([]Operation, len(rows))
	for i, r := range rows {
		out[i] = Operation{ID: r.ID, Operation: outgoing.Operations.Value(r)}
	}
	return out, err
}

// ofAudit is the kind of a Contradiction.
const ofAudit = "audit log"

// brokenAudit names what is wrong with the audit log of a partition. The log must have the entry
// that the newest seal of the partition's journal names, if there is a seal.
func (a *App) brokenAudit(ctx context.Context, p storage.Partition) ([]Contradiction, error) {
	newest, _, err := seal.Newest(ctx, a.cfg.Store, p)
	if err != nil {
		return nil, err
	}
	breaks, err := a.audit.Verify(ctx, a.cfg.Store, p, audit.Sealed{Number: newest.Audit, Hash: newest.AuditHash})
	var out []Contradiction
	for _, b := range breaks {
		detail := b.Detail
		if b.ID != "" {
			detail += ": operation " + b.ID
		}
		out = append(out, Contradiction{ofAudit, fmt.Sprintf("%s/%d", p, b.Number), detail})
	}
	return out, err
}

// verifyHouse reports on what belongs to no tenant: audit logs, halts, directories of addresses, and nonces of
// hot addresses.
func (a *App) verifyHouse(ctx context.Context) (r Report, err error) {
	parts, err := a.houseParts(ctx)
	if err != nil {
		return r, err
	}
	for _, p := range parts {
		for _, look := range []func(context.Context, storage.Partition) ([]Contradiction, error){a.brokenAudit, a.lostHalts} {
			found, err := look(ctx, p)
			r.Contradictions = append(r.Contradictions, found...)
			if err = r.Unreadable.Take(err); err != nil {
				return r, err
			}
		}
	}
	for _, n := range a.networks {
		for _, look := range []func(context.Context, chain.Network) ([]Contradiction, error){a.directory, a.editedNonces} {
			found, err := look(ctx, n.name)
			r.Contradictions = append(r.Contradictions, found...)
			if err = r.Unreadable.Take(err); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// houseParts are the partitions that have an audit log and no tenant.
func (a *App) houseParts(ctx context.Context) ([]storage.Partition, error) {
	networks, err := (&Operate{a}).networks(ctx)
	parts := []storage.Partition{storage.System}
	for _, n := range networks {
		parts = append(parts, storage.Network(string(n)))
	}
	return parts, err
}

// resignAudit signs the head of an audit log with the newest key.
func (a *App) resignAudit(ctx context.Context, p storage.Partition, r *Resealed) error {
	done, err := a.audit.Resign(ctx, a.cfg.Store, p)
	if done {
		r.AuditLogs++
	}
	return err
}
