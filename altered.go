package cryptopay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// contradictions finds rows of a tenant that somebody edited: what is checked where money
// leaves, or an address is shown, is checked here for all of them.
func (a *App) contradictions(ctx context.Context, p storage.Partition) ([]Contradiction, error) {
	looks := []func(context.Context, storage.Partition) ([]Contradiction, error){a.editedWithdrawals}
	if a.Addresses != nil { // without an App's keys no address can be derived
		looks = append(looks, a.editedHouse, a.editedRefills, a.editedOrders, a.editedAddresses, a.editedSweeps, a.editedSecrets, a.editedRefunds, a.editedPolicies, a.brokenAudit)
		looks = append(looks, a.lostSweeps, a.lostListings)
		looks = append(looks, a.foreignCoins)
	}
	var found []Contradiction
	var unread storage.RowErrors
	for _, look := range looks {
		more, err := look(ctx, p)
		found = append(found, more...)
		if err = unread.Take(err); err != nil {
			return found, err
		}
	}
	return found, unread.With(nil)
}

// editedOrders asks of each order that may still be paid what outgoing asks before it
// reserves.
func (a *App) editedOrders(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	var unread storage.RowErrors
	for _, n := range a.networks {
		var ids []string // whose rows may not be acted on
		err := each(ctx, a.cfg.Store, storage.Query{
			Table: outgoing.Intents.Table, Partition: storage.Network(string(n.name)), Where: []storage.Cond{
				{Column: "tenant", Op: storage.Eq, Value: tenantOf(p)},
				{Column: "state", Op: storage.In, Value: openOrders},
			},
		}, func(row storage.Row) error {
			v := outgoing.Intents.Value(row)
			if why := v.Misplanned(row.ID); why != "" {
				out = append(out, Contradiction{"order", row.ID, why})
			}
			if v.State == outgoing.Queued || v.State == outgoing.Waiting {
				ids = append(ids, row.ID)
			}
			if v.State == outgoing.Signed || v.State == outgoing.Executed {
				uncalled, err := a.uncalled(ctx, &row, &v)
				if err != nil {
					return err
				}
				out = append(out, uncalled...)
			}
			if v.Purpose != chain.ForWithdrawal && v.Mandate == "" {
				return nil
			}
			for _, text := range v.Endings {
				if _, err := a.mandateKeys.CheckEnding(text); err != nil {
					out = append(out, Contradiction{"order", row.ID, "what is said of its earlier transactions is not ours: " + err.Error()})
				}
			}
			_, _, why, err := a.order(ctx, v.Order(row.ID))
			if err == nil && why != "" {
				out = append(out, Contradiction{"order", row.ID, why})
			}
			return err
		})
		if err = unread.Take(err); err != nil {
			return out, err
		}
		due, err := a.dueOutcomes(ctx, n, p)
		if err = unread.Take(err); err != nil {
			return out, err
		}
		ids = append(ids, due...)
		slices.Sort(ids)
		for some := range slices.Chunk(slices.Compact(ids), page) {
			refused, err := a.refusals(ctx, n, some...)
			out = append(out, refused...)
			if err = unread.Take(err); err != nil {
				return out, err
			}
		}
	}
	return out, unread.With(nil)
}

// refusals names those orders of a network whose rows are not acted on. Where a row cannot be read, it asks
// about each order by itself.
func (a *App) refusals(ctx context.Context, n *network, ids ...string) (out []Contradiction, err error) {
	why, err := n.out.Refusals(ctx, ids...)
	if broken := (*storage.RowError)(nil); errors.As(err, &broken) && len(ids) > 1 {
		err = nil
		for _, id := range ids {
			one, failed := a.refusals(ctx, n, id)
			out, err = append(out, one...), errors.Join(err, failed)
		}
		return out, err
	}
	for _, id := range slices.Sorted(maps.Keys(why)) {
		out = append(out, Contradiction{"order", id, why[id]})
	}
	return out, err
}

// mostDue is how many untold outcomes of a tenant are looked at.
const mostDue = 1000

// dueOutcomes lists orders of a tenant that are said to be on chain or at an end, and whose owner is still to
// be told.
func (a *App) dueOutcomes(ctx context.Context, n *network, p storage.Partition) (ids []string, err error) {
	rows, err := storage.Peek(ctx, a.cfg.Store, storage.Claim{
		Table: outgoing.Outcomes.Table, Partition: storage.Network(string(n.name)), Now: a.cfg.Clock.Now().Add(24 * time.Hour), Max: mostDue,
		Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenantOf(p)}},
	})
	for _, row := range rows {
		if o := outgoing.Outcomes.Value(row); o.State != outgoing.Queued && o.State != outgoing.Waiting {
			ids = append(ids, row.ID)
		}
	}
	return ids, err
}

// uncalled finds transactions of an order that say that they pay nobody, though nobody has taken
// the order back.
func (a *App) uncalled(ctx context.Context, order *storage.Row, v *outgoing.IntentRow) (out []Contradiction, err error) {
	err = each(ctx, a.cfg.Store, storage.Query{
		Table: outgoing.Attempts.Table, Partition: order.Partition, Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: order.ID}},
	}, func(row storage.Row) error {
		t := outgoing.Attempts.Value(row)
		uncalled, err := v.Uncalled(ctx, order.ID, row.ID, &t, a.sealedBack)
		if uncalled {
			out = append(out, Contradiction{"order", order.ID, "its transaction " + row.ID + " is to pay nobody, and nobody has taken it back"})
		}
		return err
	})
	return out, err
}

// foreignCoins finds coins of a tenant's that lie at an address of nobody's, or of another tenant's.
func (a *App) foreignCoins(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	tenant := tenantOf(p)
	var unread storage.RowErrors
	for _, n := range a.networks {
		err := storage.Pages(ctx, a.cfg.Store, storage.Query{
			Table: outgoing.Coins.Table, Partition: storage.Network(string(n.name)), Limit: page, Where: []storage.Cond{
				{Column: "tenant", Op: storage.Eq, Value: tenant}, {Column: "state", Op: storage.Eq, Value: outgoing.CoinFree},
			},
		}, func(rows []storage.Row) error {
			coins := make([]chain.Coin, len(rows))
			for i, row := range rows {
				coins[i] = chain.Coin{Outpoint: row.ID, Address: outgoing.Coins.Value(row).Address}
			}
			foreign, err := a.foreign(ctx, n.name, tenant, coins)
			for _, outpoint := range foreign {
				out = append(out, Contradiction{"coin", outpoint, "it does not lie at an address of the tenant's"})
			}
			return err
		})
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	return out, unread.With(nil)
}

const ofNonce = "nonce"

// editedNonces finds hot addresses of a network from which nothing can be sent, because the row of their
// nonce was edited: an order has the next nonce already, or an order holds it that does not draw it.
func (a *App) editedNonces(ctx context.Context, n chain.Network) (out []Contradiction, err error) {
	part := storage.Network(string(n))
	err = storage.Pages(ctx, a.cfg.Store, storage.Query{Table: outgoing.Nonces.Table, Partition: part, Limit: page}, func(rows []storage.Row) error {
		keys := make([]storage.Key, len(rows))
		for i, row := range rows {
			keys[i] = storage.Key{Partition: part, ID: row.ID}
		}
		var unread storage.RowErrors // of what cannot be read nothing is said
		owners, err := byKeys(ctx, a.cfg.Store, incoming.Addresses.Table, keys)
		if err = unread.Take(err); err != nil {
			return err
		}
		hot := map[string]bool{}
		for _, o := range owners {
			use := incoming.Addresses.Value(o).Use
			hot[o.ID] = use == incoming.UseHot || use == incoming.UseRetired
		}
		for _, row := range rows {
			if !hot[row.ID] {
				continue // a deposit address: its sweep waits, and shows it
			}
			why, err := a.editedNonce(ctx, part, row)
			if err != nil {
				return err
			}
			if why == "" {
				continue
			}
			// What moved on meanwhile is another version by now.
			_, now, _, err := outgoing.Nonces.One(ctx, a.cfg.Store, part, row.ID)
			if err != nil {
				return err
			}
			if now.Version == row.Version {
				out = append(out, Contradiction{ofNonce, string(n) + "/" + row.ID, why})
			}
		}
		return nil
	})
	return out, err
}

// editedNonce says what is wrong with the row of an address's nonce, "" = nothing.
func (a *App) editedNonce(ctx context.Context, part storage.Partition, row storage.Row) (why string, err error) {
	v := outgoing.Nonces.Value(row)
	last, err := a.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: part, Limit: 1, Order: []storage.Order{{Column: "nonce", Desc: true}}, Where: []storage.Cond{
			{Column: "from_address", Op: storage.Eq, Value: row.ID}, {Column: "nonce", Op: storage.Ge, Value: v.Next},
		},
	})
	if err != nil {
		return "", err
	}
	if len(last) > 0 {
		o := outgoing.Intents.Value(last[0])
		if o.Nonce > v.Next || last[0].ID != v.Holder { // else it is about to be signed
			return fmt.Sprintf("its next nonce is %d, and order %s has %d", v.Next, last[0].ID, o.Nonce), nil
		}
	}
	if v.Holder == "" {
		return "", nil
	}
	o, _, known, err := outgoing.Intents.One(ctx, a.cfg.Store, part, v.Holder)
	switch {
	case err != nil:
		return "", err
	case !known:
		return "order " + v.Holder + " holds its next nonce, and is not there", nil
	case string(o.From) != row.ID || len(o.Plan) == 0:
		return "order " + v.Holder + " holds its next nonce, and does not draw it", nil
	}
	return "", nil
}

// tenantOf is the tenant whose partition it is.
func tenantOf(p storage.Partition) string {
	return strings.TrimPrefix(string(p), string(storage.Tenant("")))
}

// editedWithdrawals compares withdrawals with their lines of the unified history, a page
// at a time.
func (a *App) editedWithdrawals(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	q := storage.Query{Table: withdrawal.Withdrawals.Table, Partition: p, Limit: page}
	err = storage.Pages(ctx, a.cfg.Store, q, func(rows []storage.Row) error {
		keys := make([]storage.Key, len(rows))
		for i, row := range rows {
			keys[i] = storage.Key{Partition: p, ID: row.ID}
		}
		var unread storage.RowErrors
		found, err := byKeys(ctx, a.cfg.Store, storage.Activities.Table, keys)
		if err = unread.Take(err); err != nil {
			return err
		}
		lines := make(map[string]storage.Activity, len(found))
		for _, row := range found {
			lines[row.ID] = storage.Activities.Value(row)
		}
		for _, row := range rows {
			if unread.Has(row.ID) {
				continue
			}
			w := withdrawal.Withdrawals.Value(row)
			w.ID = row.ID
			line, ok := lines[row.ID]
			why, err := w.Contradicts(p, &line, ok), error(nil)
			if a.Withdrawals != nil { // without an App there are no keys to check mandates with
				why, err = a.Withdrawals.Contradicts(ctx, p, &w, &line, ok)
			}
			if err = unread.Take(err); err != nil {
				return err
			}
			if why = cmp.Or(why, w.PaidAfterEnd()); why != "" {
				out = append(out, Contradiction{ofWithdrawal, row.ID, why})
			}
		}
		lost, err := a.lostOrders(ctx, p, rows)
		out = append(out, lost...)
		return unread.With(err)
	})
	return out, err
}

// turnedBack names hot addresses that were replaced, and replaced ones that were not, by an edit of the
// directory.
func (a *App) turnedBack(ctx context.Context, n chain.Network, uses map[string]incoming.Use) (out []Contradiction, err error) {
	hot := slices.Sorted(maps.Keys(uses))
	replaced, err := a.Treasury.WasReplaced(ctx, n, hot...)
	if err != nil {
		return nil, err
	}
	hot = slices.DeleteFunc(hot, func(id string) bool { return replaced[id] == (uses[id] == incoming.UseRetired) })
	// Read again: it may have been replaced between the two reads.
	rows, err := a.cfg.Store.Rows(ctx, incoming.Addresses.Table, storage.Keys(storage.Network(string(n)), hot...)...)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if use := incoming.Addresses.Value(r).Use; use == uses[r.ID] {
			out = append(out, Contradiction{"address", string(n) + "/" + r.ID, "its use is " + string(use) + ", and by Operate.ReplaceHot it is another: call ReplaceHot for it"})
		}
	}
	return out, nil
}

// editedAddresses derives the tenant's addresses that money goes to again: hot ones, those
// for change, and those that open payments wait at.
func (a *App) editedAddresses(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	check := func(kind, id string, err error) error {
		if errors.Is(err, incoming.ErrNotDerived) {
			out = append(out, Contradiction{kind, id, err.Error()})
			return nil
		}
		return err
	}
	tenant := tenantOf(p)
	var unread storage.RowErrors
	for _, n := range a.networks {
		uses := map[string]incoming.Use{}
		err := each(ctx, a.cfg.Store, storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network(string(n.name)), Where: []storage.Cond{
				{Column: "tenant", Op: storage.Eq, Value: tenant},
				{Column: "use_for", Op: storage.In, Value: []incoming.Use{incoming.UseHot, incoming.UseRetired, incoming.UseChange, incoming.UseAccount}},
			},
		}, func(row storage.Row) error {
			if use := incoming.Addresses.Value(row).Use; use == incoming.UseHot || use == incoming.UseRetired {
				uses[row.ID] = use
			}
			return check("address", string(n.name)+"/"+row.ID, a.Addresses.Check(ctx, n.name, row))
		})
		if err = unread.Take(err); err != nil {
			return out, err
		}
		turned, err := a.turnedBack(ctx, n.name, uses)
		out = append(out, turned...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	owned := func(kind string, list []payment.Payment) error {
		wrong, err := a.alteredPayments(ctx, tenant, list, a.Addresses.Owned)
		for _, v := range list {
			if err := wrong[v.ID]; err != nil {
				_ = unread.Take(check(kind, v.ID, err))
			}
		}
		return err
	}
	err = storage.Pages(ctx, a.cfg.Store, storage.Query{Table: payment.PermanentAddresses.Table, Partition: p, Limit: page}, func(rows []storage.Row) error {
		list := make([]payment.Payment, len(rows))
		for i, row := range rows {
			v := payment.PermanentAddresses.Value(row)
			list[i] = v.Shown()
		}
		return owned(ofPermanent, list)
	})
	if err = unread.Take(err); err != nil {
		return out, err
	}
	now, gone := a.cfg.Clock.Now(), map[string]bool{}
	err = storage.Pages(ctx, a.cfg.Store, storage.Query{Table: payment.Payments.Table, Partition: p, Limit: page}, func(rows []storage.Row) error {
		var list []payment.Payment
		for _, row := range rows {
			if v := payment.Payments.Value(row); v.Payable(now) {
				list = append(list, v)
			}
		}
		lost, err := a.lostPermanent(ctx, p, rows)
		for _, id := range lost {
			if !gone[id] {
				gone[id] = true
				out = append(out, Contradiction{ofPermanent, id, "payments were made at it, and it is gone"})
			}
		}
		return errors.Join(err, owned(ofPayment, list))
	})
	return out, unread.With(unread.Take(err))
}

// openSweeps are the states in which a forwarding may still send.
var openSweeps = []treasury.SweepState{treasury.SweepNew, treasury.SweepFunding, treasury.SweepMoving, treasury.SweepDeferred}

// editedSweeps compares forwardings that have not ended with the directory of addresses.
func (a *App) editedSweeps(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	tenant := tenantOf(p)
	var unread storage.RowErrors
	for _, n := range a.networks {
		part := storage.Network(string(n.name))
		err := storage.Pages(ctx, a.cfg.Store, storage.Query{Table: treasury.Sweeps.Table, Partition: part, Limit: page, Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: tenant},
			{Column: "state", Op: storage.In, Value: openSweeps},
		}}, func(rows []storage.Row) error {
			ids := make([]string, len(rows))
			for i, row := range rows {
				ids[i] = treasury.Sweeps.Value(row).Address
			}
			owners := map[string]incoming.AddressRow{}
			var broken storage.RowErrors
			found, err := a.cfg.Store.Rows(ctx, incoming.Addresses.Table, storage.Keys(part, ids...)...)
			if err = broken.Take(err); err != nil {
				return err
			}
			for _, row := range found {
				owners[row.ID] = incoming.Addresses.Value(row)
			}
			for _, row := range rows {
				s := treasury.Sweeps.Value(row)
				o, ok := owners[s.Address]
				if !broken.Has(s.Address) && (!ok || o.Tenant != tenant || o.Key != s.Key) {
					out = append(out, Contradiction{"sweep", row.ID, "its address is not one of the tenant's"})
				}
			}
			return broken.With(nil)
		})
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	return out, unread.With(nil)
}

// editedSecrets opens the tenant's webhook secrets.
func (a *App) editedSecrets(ctx context.Context, p storage.Partition) ([]Contradiction, error) {
	why, err := a.Webhooks.Altered(ctx, tenantOf(p))
	if err != nil || why == "" {
		return nil, err
	}
	return []Contradiction{{"webhook", tenantOf(p), why}}, nil
}

// checkAddresses is incoming.Pool's Ours or Owned.
type checkAddresses = func(ctx context.Context, n chain.Network, tenant string, list ...chain.Address) (wrong map[chain.Address]error, err error)

// alteredPayments says which payments of a tenant have an address that our keys do not give,
// by their ids.
func (a *App) alteredPayments(ctx context.Context, tenant string, list []payment.Payment, check checkAddresses) (map[string]error, error) {
	at := map[chain.Network][]chain.Address{}
	asked := map[[2]string]bool{}
	for i := range list {
		if p := &list[i]; !asked[[2]string{p.Network, p.Address}] {
			asked[[2]string{p.Network, p.Address}] = true
			at[chain.Network(p.Network)] = append(at[chain.Network(p.Network)], chain.Address(p.Address))
		}
	}
	wrong := map[string]error{}
	for n, addresses := range at {
		bad, err := check(ctx, n, tenant, addresses...)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if err := bad[chain.Address(list[i].Address)]; err != nil && chain.Network(list[i].Network) == n {
				wrong[list[i].ID] = err
			}
		}
	}
	return wrong, nil
}
