package cryptopay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Resealed is what App.Reseal did.
type Resealed struct {
	// Withdrawals (and payments of the house's own, and proposals of refills), Refunds, Orders, Policies, Secrets,
	// Seals and AuditLogs count the rows that were written.
	Withdrawals, Refunds, Orders, Policies, Secrets, Seals, AuditLogs int
	// Left are rows that were left as they are, because no key that is configured made
	// their MAC, or because they contradict others. They are refused.
	Left []Contradiction
}

// Reseal seals everything with the newest of Config.Keys: mandates of withdrawals and their
// orders, policies, claim links of refunds, webhook secrets, and the MACs of
// journals and audit logs. What a version before mandates wrote is
// sealed as it stands, while it is accepted: see App.Unsealed. A row that was edited is left
// as it is, and is named. Credentials have a Reseal of their own, httpapi/auth.Service.Reseal.
//
// Call it once after an upgrade, when no older process runs, and once after the newest key changed,
// when every process lists it first. It works in pages beside processes that work, may be
// stopped, and may be called again: it writes what is not sealed with the newest key yet.
func (a *App) Reseal(ctx context.Context) (Resealed, error) {
	var r Resealed
	err := each(ctx, a.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System}, func(row storage.Row) error {
		p := storage.Tenant(row.ID)
		if err := a.resealWithdrawals(ctx, p, &r); err != nil {
			return err
		}
		if err := a.resealPolicies(ctx, row.ID, &r); err != nil {
			return err
		}
		if err := a.resealRefunds(ctx, p, &r); err != nil {
			return err
		}
		if err := a.resealHouse(ctx, p, &r); err != nil {
			return err
		}
		if err := a.resealProposals(ctx, p, &r); err != nil {
			return err
		}
		n, left, err := a.Webhooks.Reseal(ctx, row.ID)
		r.Secrets += n
		for _, why := range left {
			r.Left = append(r.Left, Contradiction{"webhook secret", row.ID, why})
		}
		if err != nil {
			return err
		}
		n, err = seal.Resign(ctx, a.cfg.Store, p, a.sealKeys())
		r.Seals += n
		if err != nil {
			return err
		}
		return a.resignAudit(ctx, p, &r)
	})
	if err != nil {
		return r, err
	}
	parts, err := a.houseParts(ctx)
	for _, p := range parts {
		err = cmp.Or(err, a.resignAudit(ctx, p, &r))
	}
	if err != nil {
		return r, err
	}
	networks := slices.Clone(a.cfg.Elsewhere)
	for _, n := range a.networks {
		networks = append(networks, n.name)
	}
	for _, n := range networks {
		if err := a.resealOrders(ctx, n, &r); err != nil {
			return r, err
		}
	}
	return r, a.noteSealed(ctx)
}

// noteSealed writes the rows about the store with the newest key.
func (a *App) noteSealed(ctx context.Context) error {
	prints, err := a.fingerprints(ctx)
	if err != nil {
		return err
	}
	store := a.identity.store.Load()
	if store == nil {
		return errNotOpen
	}
	want := map[string]Fingerprint{
		keyRow:   {Sum: prints[slices.IndexFunc(prints, func(p fingerprint) bool { return p.id == keyRow })].sums[0]},
		storeRow: {Sum: attest(a.cfg.Keys[0], *store)},
	}
	return storage.Decide(ctx, a.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		known, err := a.stored(ctx, prints)
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{Partition: storage.System}
		for _, id := range []string{keyRow, storeRow} {
			if row := known[id]; row.Version == 0 || Fingerprints.Value(row) != want[id] {
				c.Put = append(c.Put, Fingerprints.Row(id, row.Version, time.Time{}, want[id]))
			}
		}
		if len(c.Put) > 0 {
			c.ID = "reseal/" + mandate.KeyID(a.cfg.Keys[0]) + "/" + a.cfg.NewID()
		}
		return c, nil
	})
}

// resealWithdrawals makes the mandates of a tenant's withdrawals that the newest key has not
// made.
func (a *App) resealWithdrawals(ctx context.Context, p storage.Partition, r *Resealed) error {
	q := storage.Query{Table: withdrawal.Withdrawals.Table, Partition: p, Limit: page}
	return storage.Pages(ctx, a.cfg.Store, q, func(rows []storage.Row) error {
		rows = slices.DeleteFunc(rows, func(row storage.Row) bool {
			w := withdrawal.Withdrawals.Value(row)
			return a.newest(&w) // Verify checks it
		})
		n, err := a.resealRows(ctx, rows, ofWithdrawal, r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
			w, now, ok, err := withdrawal.Withdrawals.One(ctx, a.joined(), p, row.ID)
			if err != nil || !ok || a.newest(&w) {
				return storage.Row{}, "", err
			}
			w.ID = row.ID
			line, _, has, err := storage.Activities.One(ctx, a.joined(), p, row.ID)
			if err != nil {
				return storage.Row{}, "", err
			}
			why, err := a.Withdrawals.Contradicts(ctx, p, &w, &line, has)
			if err == nil && why == "" {
				err = a.Withdrawals.Authorize(&w)
			}
			return withdrawal.Withdrawals.Row(row.ID, now.Version, now.Due, w), why, err
		})
		r.Withdrawals += n
		return err
	})
}

// newest reports whether the newest key made all that a withdrawal needs.
func (a *App) newest(w *withdrawal.Withdrawal) bool {
	for _, d := range w.Decisions {
		if !a.mandateKeys.Newest(d.Seal) {
			return false
		}
	}
	return a.mandateKeys.Newest(w.Mandate) && (!w.Approved() || a.mandateKeys.Newest(w.Approval))
}

// openOrders are those that may still be paid.
var openOrders = []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed}

// resealOrders gives the orders of a network the mandates of their withdrawals.
func (a *App) resealOrders(ctx context.Context, n chain.Network, r *Resealed) error {
	p := storage.Network(string(n))
	return storage.Pages(ctx, a.cfg.Store, storage.Query{
		Table: outgoing.Intents.Table, Partition: p, Limit: page, Where: []storage.Cond{{Column: "state", Op: storage.In, Value: openOrders}},
	}, func(rows []storage.Row) error {
		rows = slices.DeleteFunc(rows, func(row storage.Row) bool {
			v := outgoing.Intents.Value(row)
			return v.Purpose != chain.ForWithdrawal || a.mandateKeys.Newest(v.Mandate) && v.Attempts == 0
		})
		n, err := a.resealRows(ctx, rows, "order", r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
			v, now, ok, err := outgoing.Intents.One(ctx, a.joined(), p, row.ID)
			if err != nil || !ok {
				return storage.Row{}, "", err
			}
			mandate, _, why, err := a.order(ctx, v.Order(row.ID))
			if err != nil || why != "" {
				return storage.Row{}, why, err
			}
			endings, why, err := a.resealEndings(ctx, p, row.ID, &v)
			if err != nil || why != "" || v.Mandate == mandate && slices.Equal(v.Endings, endings) {
				return storage.Row{}, why, err
			}
			v.Mandate, v.Endings = mandate, endings
			return outgoing.Intents.Row(row.ID, now.Version, now.Due, v), "", nil
		})
		r.Orders += n
		return err
	})
}

// resealEndings gives an order its Endings with the newest key. While what nobody sealed is
// accepted, what became of its transactions before there were Endings is sealed as it stands.
func (a *App) resealEndings(ctx context.Context, p storage.Partition, id string, v *outgoing.IntentRow) (out []string, why string, err error) {
	for _, text := range v.Endings {
		if text, err = a.mandateKeys.RenewEnding(text); err != nil {
			return v.Endings, "what is said of its earlier transactions is not ours: " + err.Error(), nil //nolint:nilerr // it is named
		}
		out = append(out, text)
	}
	if v.Attempts == 0 {
		return out, "", nil
	}
	if taken, err := a.Unsealed(ctx); err != nil || !taken {
		return out, "", err
	}
	back, ended, err := a.unsealedAttempts(ctx, p, id, v)
	if err != nil {
		return v.Endings, "", err
	}
	if len(ended.Dead) > 0 {
		back = append(back, ended)
	}
	more, err := a.endings(ctx, back)
	return append(out, more...), "", err
}

// unsealedAttempts makes Endings of what rows say of those transactions of an order that no Ending
// names: back of each that gives the order's nonce or coins back, ended of all that have ended.
func (a *App) unsealedAttempts(ctx context.Context, p storage.Partition, id string, v *outgoing.IntentRow) (back []mandate.Ending, ended mandate.Ending, err error) {
	named, sealed := map[string]bool{}, map[mandate.Attempt]bool{}
	for _, text := range v.Endings {
		var e mandate.Ending
		if e.Read(text) != nil {
			continue
		}
		for _, t := range e.Dead {
			named[t.ID] = true
		}
		sealed[e.Back] = true
	}
	ended = mandate.Ending{Network: v.Network, Order: id}
	err = each(ctx, a.joined(), storage.Query{
		Table: outgoing.Attempts.Table, Partition: p, Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: id}},
	}, func(row storage.Row) error {
		t := outgoing.Attempts.Value(row)
		one := t.Named(row.ID)
		if t.Purpose == chain.ForCancel && (v.Cancelling || t.State != outgoing.Open) && !sealed[one] {
			back = append(back, mandate.Ending{Network: v.Network, Order: id, Back: one})
		}
		if t.State != outgoing.Open && !named[one.ID] {
			if ended.Dead = append(ended.Dead, one); t.State == outgoing.AttemptFinal {
				ended.Landed = one
			}
		}
		return nil
	})
	return back, ended, err
}

// endings seals each, and returns the texts.
func (a *App) endings(ctx context.Context, all []mandate.Ending) (texts []string, err error) {
	for _, e := range all {
		text, err := a.ending(ctx, e)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// sealBacks seals, as the rows say it, which transactions give the nonce or coins of open orders
// back. A version before did not.
func (a *App) sealBacks(ctx context.Context) error {
	for _, n := range a.networks {
		p := storage.Network(string(n.name))
		err := storage.Pages(ctx, a.cfg.Store, storage.Query{
			Table: outgoing.Intents.Table, Partition: p, Limit: page, Where: []storage.Cond{{Column: "state", Op: storage.In, Value: openOrders}},
		}, func(rows []storage.Row) error {
			rows = slices.DeleteFunc(rows, func(row storage.Row) bool {
				v := outgoing.Intents.Value(row)
				return v.Purpose != chain.ForWithdrawal || v.Attempts == 0
			})
			_, err := a.resealRows(ctx, rows, "order", &Resealed{}, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
				v, now, ok, err := outgoing.Intents.One(ctx, a.joined(), p, row.ID)
				if err != nil || !ok {
					return storage.Row{}, "", err
				}
				back, _, err := a.unsealedAttempts(ctx, p, row.ID, &v)
				if err != nil || len(back) == 0 {
					return storage.Row{}, "", err
				}
				more, err := a.endings(ctx, back)
				if err != nil {
					return storage.Row{}, "", err
				}
				v.Endings = append(v.Endings, more...)
				return outgoing.Intents.Row(row.ID, now.Version, now.Due, v), "", nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// resealRows writes what f makes of each row, and returns how many it wrote. f returns a
// row without a table where there is nothing to write, and why a row is left as it is.
func (a *App) resealRows(ctx context.Context, rows []storage.Row, kind string, r *Resealed, f func(context.Context, storage.Row) (storage.Row, string, error)) (n int, err error) {
	type did struct {
		wrote bool
		why   string
	}
	done := map[string]*did{}
	for _, row := range rows {
		done[row.ID] = &did{}
	}
	one := func(ctx context.Context, row storage.Row) error {
		d := done[row.ID]
		return storage.Decide(ctx, a.joined(), func(ctx context.Context) (storage.Change, error) {
			put, why, err := f(ctx, row)
			d.wrote, d.why = err == nil && why == "" && put.Table != nil, why
			if !d.wrote {
				return storage.Change{}, err
			}
			return storage.Change{ID: "mandate/" + a.cfg.NewID(), Partition: row.Partition, Put: []storage.Row{put}}, nil
		})
	}
	id := func(row storage.Row) string { return row.ID }
	for i, failed := range storage.Work(ctx, a.cfg.Store, rows, id, one) {
		if errors.Is(failed, storage.ErrBusy) || errors.Is(failed, storage.ErrConflict) {
			failed = one(storage.Apart(ctx), rows[i]) // now it waits for whoever works on it
		}
		if failed != nil {
			return n, failed
		}
		if d := done[rows[i].ID]; d.why != "" {
			r.Left = append(r.Left, Contradiction{kind, rows[i].ID, d.why})
		} else if d.wrote {
			n++
		}
	}
	return n, nil
}
