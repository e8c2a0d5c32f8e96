package cryptopay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Somebody who can write to the database can delete a row, too. Nobody is paid by that, but what
// the row was about may wait for ever. So what other rows say of a deleted row names it.

// handedOver reports whether the payout side has taken a withdrawal over and keeps its order.
// One that Operate found paid by an unknown transaction has none.
func handedOver(w *withdrawal.Withdrawal) bool {
	return w.Stage == withdrawal.Handed && (w.Live() || w.Status == withdrawal.Completed && !w.ProcessedAt.IsZero())
}

// lostOrders finds withdrawals that were handed over and whose order is gone, or is another
// tenant's.
func (a *App) lostOrders(ctx context.Context, p storage.Partition, rows []storage.Row) (out []Contradiction, err error) {
	var keys []storage.Key
	live := map[string]bool{}
	for _, row := range rows {
		if w := withdrawal.Withdrawals.Value(row); handedOver(&w) {
			keys = append(keys, storage.Keys(storage.Network(w.Network), row.ID)...)
			live[row.ID] = w.Live()
		}
	}
	return a.ordersOf(ctx, p, keys, live)
}

// ordersOf names those orders of a tenant that are gone, or are another tenant's, and those that have
// ended without that their owner, one of live, will hear it.
func (a *App) ordersOf(ctx context.Context, p storage.Partition, keys []storage.Key, live map[string]bool) (out []Contradiction, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	found, err := byKeys(ctx, a.cfg.Store, outgoing.Intents.Table, keys)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	strays, err := a.strayMembers(ctx, found)
	if err != nil {
		return nil, err
	}
	untold, err := a.untoldOrders(ctx, p, found, live)
	if err != nil {
		return nil, err
	}
	tenants, strange := map[string]string{}, map[string]string{}
	for _, row := range found {
		v := outgoing.Intents.Value(row)
		tenants[row.ID] = v.Tenant
		switch {
		case v.Purpose != chain.ForWithdrawal:
			strange[row.ID] = "its purpose is " + string(v.Purpose)
		case !slices.Contains(openOrders, v.State) && !slices.Contains(endedOrders, v.State):
			strange[row.ID] = "no process knows its state " + string(v.State)
		}
	}
	for _, k := range keys {
		switch of, ok := tenants[k.ID]; {
		case unread.Has(k.ID):
		case !ok:
			out = append(out, Contradiction{"order", k.ID, "the payout side has lost it"})
		case storage.Tenant(of) != p:
			out = append(out, Contradiction{"order", k.ID, "it names another tenant"})
		case strange[k.ID] != "":
			out = append(out, Contradiction{"order", k.ID, strange[k.ID]})
		case untold[k.ID] != "":
			out = append(out, Contradiction{"order", k.ID, "it is " + untold[k.ID] + ", and nobody tells its owner"})
		case strays[k.ID]:
			out = append(out, Contradiction{"order", k.ID, "no process looks at it: which transaction pays it was edited"})
		}
	}
	return out, unread.With(nil)
}

// untoldOrders says the state of each of these orders that has ended, where its outcome is not to be told
// any more and its owner, one of live, waits for it all the same. An owner hears an outcome before it
// counts as told, so the outcomes are read first.
func (a *App) untoldOrders(ctx context.Context, p storage.Partition, orders []storage.Row, live map[string]bool) (map[string]string, error) {
	state := map[string]string{}
	var keys []storage.Key
	var ids []string
	for _, row := range orders {
		if v := outgoing.Intents.Value(row); live[row.ID] && slices.Contains(endedOrders, v.State) {
			state[row.ID] = string(v.State)
			keys, ids = append(keys, storage.Key{Partition: row.Partition, ID: row.ID}), append(ids, row.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var unread storage.RowErrors // of what cannot be read nothing is said
	outcomes, err := byKeys(ctx, a.cfg.Store, outgoing.Outcomes.Table, keys)
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	for _, row := range outcomes {
		if !row.Due.IsZero() {
			delete(state, row.ID)
		}
	}
	waits := map[string]bool{}
	for _, t := range []*storage.Table{withdrawal.Withdrawals.Table, house.Payments.Table} {
		rows, err := a.cfg.Store.Rows(ctx, t, storage.Keys(p, ids...)...)
		if err = unread.Take(err); err != nil {
			return nil, err
		}
		for _, row := range rows {
			if t == house.Payments.Table {
				v := house.Payments.Value(row)
				waits[row.ID] = v.Status == house.Pending || v.Status == house.Processing
				continue
			}
			w := withdrawal.Withdrawals.Value(row)
			waits[row.ID] = w.Live() && w.Waiting != withdrawal.WaitingDeliveredLess // it waits for a person
		}
	}
	maps.DeleteFunc(state, func(id, _ string) bool { return !waits[id] || unread.Has(id) })
	return state, nil
}

// endedOrders are all states but openOrders.
var endedOrders = []outgoing.State{outgoing.Final, outgoing.Failed, outgoing.Cancelled}

// strayMembers finds open orders that no process looks at. An order that is not due is a member of a
// batch: whoever looks at the order that leads the batch looks at it, too.
func (a *App) strayMembers(ctx context.Context, orders []storage.Row) (map[string]bool, error) {
	still := map[string]storage.Row{} // not due, and not at an end
	for _, row := range orders {
		if v := outgoing.Intents.Value(row); row.Due.IsZero() && slices.Contains(openOrders, v.State) {
			still[row.ID] = row
		}
	}
	if len(still) == 0 {
		return nil, nil
	}
	var unread storage.RowErrors // of what cannot be read nothing is said
	read := func(t *storage.Table, id func(storage.Row) string) ([]storage.Row, error) {
		var keys []storage.Key
		for _, row := range still {
			keys = append(keys, storage.Key{Partition: row.Partition, ID: id(row)})
		}
		byPlace := func(x, y storage.Key) int {
			return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.ID, y.ID))
		}
		slices.SortFunc(keys, byPlace)
		keys = slices.CompactFunc(keys, func(x, y storage.Key) bool { return byPlace(x, y) == 0 })
		rows, err := byKeys(ctx, a.cfg.Store, t, keys)
		return rows, unread.Take(err)
	}
	own := func(row storage.Row) string { return row.ID }
	members, err := read(outgoing.Batches.Table, own)
	if err != nil {
		return nil, err
	}
	leader := make(map[string]string, len(members))
	for _, row := range members {
		leader[row.ID] = outgoing.Batches.Value(row).Leader
	}
	leads, err := read(outgoing.Intents.Table, func(row storage.Row) string { return cmp.Or(leader[row.ID], row.ID) })
	if err != nil {
		return nil, err
	}
	looked := map[string]bool{}
	for _, row := range leads {
		looked[row.ID] = !row.Due.IsZero()
	}
	// Who was moved on meanwhile is another version by now.
	now, err := read(outgoing.Intents.Table, own)
	if err != nil {
		return nil, err
	}
	strays := map[string]bool{}
	for _, row := range now {
		known := !unread.Has(row.ID) && !unread.Has(leader[row.ID])
		if known && row.Version == still[row.ID].Version && !looked[leader[row.ID]] {
			strays[row.ID] = true
		}
	}
	return strays, nil
}

// lostHouseOrders is lostOrders of payments of the house's own.
func (a *App) lostHouseOrders(ctx context.Context, p storage.Partition, rows []storage.Row) ([]Contradiction, error) {
	var keys []storage.Key
	live := map[string]bool{}
	for _, row := range rows {
		v := house.Payments.Value(row)
		if v.Stage == "handed" && (v.Status == house.Pending || v.Status == house.Processing) {
			keys = append(keys, storage.Keys(storage.Network(v.Network), row.ID)...)
			live[row.ID] = true
		}
	}
	return a.ordersOf(ctx, p, keys, live)
}

// lostPermanent finds permanent addresses that payments name and that are gone.
func (a *App) lostPermanent(ctx context.Context, p storage.Partition, payments []storage.Row) (lost []string, err error) {
	var ids []string
	for _, row := range payments {
		if id := payment.Payments.Value(row).AddressID; id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return a.missing(ctx, payment.PermanentAddresses.Table, p, ids)
}

// missing are those of some ids that a table has no row of.
func (a *App) missing(ctx context.Context, t *storage.Table, p storage.Partition, ids []string) (out []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := byKeys(ctx, a.cfg.Store, t, storage.Keys(p, ids...))
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !unread.Has(id) && !slices.ContainsFunc(found, func(r storage.Row) bool { return r.ID == id }) {
			out = append(out, id)
		}
	}
	return out, unread.With(nil)
}

// lostSweeps finds sweeps of a tenant that are gone and whose notes are there.
func (a *App) lostSweeps(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	var unread storage.RowErrors
	for _, n := range a.networks {
		ids, err := a.unswept(ctx, n.name, storage.Cond{Column: "tenant", Op: storage.Eq, Value: tenantOf(p)})
		for _, id := range ids {
			out = append(out, Contradiction{"sweep", id, "its note is there, and it is gone"})
		}
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	return out, unread.With(nil)
}

// unswept are the sweeps of a network that are gone and whose notes are there. A sweep has its
// note until it has ended.
func (a *App) unswept(ctx context.Context, n chain.Network, where ...storage.Cond) (out []string, err error) {
	part := storage.Network(string(n))
	err = storage.Pages(ctx, a.cfg.Store, storage.Query{Table: treasury.SweepNotes.Table, Partition: part, Limit: page, Where: where}, func(rows []storage.Row) error {
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		lost, err := a.missing(ctx, treasury.Sweeps.Table, part, ids)
		out = append(out, lost...)
		return err
	})
	return out, err
}

// lostListings finds currencies of a tenant's books that the store does not know any more.
func (a *App) lostListings(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	balances, err := a.cfg.Store.Balances(ctx, p)
	if err != nil {
		return nil, err
	}
	var codes []string
	for _, b := range balances {
		codes = append(codes, string(b.Asset))
	}
	slices.Sort(codes)
	lost, err := a.missing(ctx, Listings.Table, storage.System, slices.Compact(codes))
	for _, code := range lost {
		out = append(out, Contradiction{"listing", code, "the books have it, and what it stands for is gone"})
	}
	return out, err
}

// directory finds holes in a network's directory of addresses. Its rows are numbered from 1, and
// none is ever taken away.
func (a *App) directory(ctx context.Context, n chain.Network) (out []Contradiction, err error) {
	part := storage.Network(string(n))
	last, err := a.cfg.Store.Find(ctx, storage.Query{Table: incoming.Addresses.Table, Partition: part, Limit: 1, Order: []storage.Order{{Column: "seq", Desc: true}}})
	if err != nil || len(last) == 0 {
		return nil, err
	}
	end := incoming.Addresses.Value(last[0]).Seq
	count, err := a.cfg.Store.Count(ctx, storage.Query{Table: incoming.Addresses.Table, Partition: part, Where: []storage.Cond{{Column: "seq", Op: storage.Le, Value: end}}})
	if err != nil || count == end {
		return nil, err
	}
	next := int64(1)
	for len(out) < mostHoles {
		rows, err := a.cfg.Store.Find(ctx, storage.Query{
			Table: incoming.Addresses.Table, Partition: part, Limit: page, Order: []storage.Order{{Column: "seq"}},
			Where: []storage.Cond{{Column: "seq", Op: storage.Ge, Value: next}, {Column: "seq", Op: storage.Le, Value: end}},
		})
		if err != nil || len(rows) == 0 {
			return out, err
		}
		for _, row := range rows {
			seq := incoming.Addresses.Value(row).Seq
			for ; next < seq && len(out) < mostHoles; next++ {
				out = append(out, Contradiction{"address", fmt.Sprintf("%s/%d", n, next), "the directory has lost the address with this number"})
			}
			next = seq + 1
		}
	}
	return out, nil
}

// mostHoles bounds how many holes of one directory are named.
const mostHoles = 100

// lost is the worker that looks for orders and sweeps that are gone while somebody waits for
// them. It reads what is open, and each is told of once by a process as long as it is found.
type lost struct {
	a *App
	*round
	mu       sync.Mutex
	told     map[string]time.Time // by order
	networks time.Time            // when their sweeps are looked for again
}

// lostEvery is how often a process looks.
const lostEvery = time.Hour

func (a *App) lost() Worker {
	l := &lost{a: a, told: map[string]time.Time{}}
	l.round = &round{a: a, every: lostEvery, batch: page, tenant: l.orders}
	return Worker{Name: "lost", Every: time.Minute, Step: l.step}
}

func (l *lost) step(ctx context.Context) (int, error) {
	if err := l.ofTheHouse(ctx); err != nil {
		return 0, err
	}
	return l.round.step(ctx)
}

// ofTheHouse logs sweeps and halts that are gone.
func (l *lost) ofTheHouse(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.a.cfg.Clock.Now()
	if now.Before(l.networks) {
		return nil
	}
	l.networks = now.Add(lostEvery)
	var unread storage.RowErrors
	parts, err := l.a.houseParts(ctx)
	if err != nil {
		return err
	}
	for _, p := range parts {
		found, err := l.a.lostHalts(ctx, p)
		for _, c := range found {
			l.a.cfg.Log.ErrorContext(ctx, "halt_lost", slog.String("partition", c.ID), slog.String("reason", c.Detail))
		}
		if err = unread.Take(err); err != nil {
			return err
		}
	}
	for _, n := range l.a.networks {
		ids, err := l.a.unswept(ctx, n.name)
		for _, id := range ids {
			l.a.cfg.Log.ErrorContext(ctx, "sweep_lost", slog.String("partition", string(storage.Network(string(n.name)))), slog.String("sweep", id))
		}
		if err = unread.Take(err); err != nil {
			return err
		}
	}
	return unread.With(nil)
}

// orders tells of a tenant's open withdrawals whose order is gone.
func (l *lost) orders(ctx context.Context, store storage.Store, p storage.Partition, now time.Time) (int, error) {
	return 0, storage.Pages(ctx, store, storage.Query{Table: withdrawal.Withdrawals.Table, Partition: p, Limit: page, Where: []storage.Cond{
		{Column: "status", Op: storage.In, Value: []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}},
		{Column: "stage", Op: storage.Eq, Value: withdrawal.Handed},
	}}, func(rows []storage.Row) error {
		found, err := l.a.lostOrders(ctx, p, rows)
		for _, c := range found {
			at := slices.IndexFunc(rows, func(r storage.Row) bool { return r.ID == c.ID })
			of := chain.Intent{ID: c.ID, Tenant: tenantOf(p), Purpose: chain.ForWithdrawal, Network: chain.Network(withdrawal.Withdrawals.Value(rows[at]).Network)}
			l.a.tellAltered(ctx, of, c.Detail, l.heard(c.ID, now))
		}
		return err
	})
}

// heard notes that the host hears of an order now, and reports whether it did before.
func (l *lost) heard(id string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := now.Sub(l.told[id]) < 2*lostEvery
	for other, at := range l.told {
		if now.Sub(at) > 2*lostEvery {
			delete(l.told, other)
		}
	}
	l.told[id] = now
	return before
}
