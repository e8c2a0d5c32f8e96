package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A hot address that was replaced is emptied by sweeps: one of each currency of the network first,
// and one more of what comes later. Its tokens go before the coins that pay for moving them, and
// what it pays already goes before both. It is noted in TopUps, in the network's partition:
//
//	replaced/<address>   Amount is the height that the network was read to, Tx is when it was
const replacedPrefix = "replaced/"

// Replaced is the row that has a hot address emptied. It is written in the Change that puts another
// address in its place.
func (t *Treasury) Replaced(ctx context.Context, n chain.Network, old chain.Address) (storage.Row, error) {
	p, id := storage.Network(string(n)), replacedPrefix+string(old)
	cur, _, _, err := incoming.Cursors.One(ctx, t.cfg.Store, p, incoming.CursorID)
	if err != nil {
		return storage.Row{}, err
	}
	_, row, _, err := TopUps.One(ctx, t.cfg.Store, p, id) // it is there where an edit had made it the hot address again
	return TopUps.Row(id, row.Version, time.Time{}, TopUp{
		Tx: t.cfg.Now().UTC().Format(time.RFC3339), Amount: ledger.Amount(cur.Head),
	}), err
}

// WasReplaced says of which of some hot addresses of a network another one took the place.
func (t *Treasury) WasReplaced(ctx context.Context, n chain.Network, addresses ...string) (map[string]bool, error) {
	ids := make([]string, len(addresses))
	for i, a := range addresses {
		ids[i] = replacedPrefix + a
	}
	rows, err := t.cfg.Store.Rows(ctx, TopUps.Table, storage.Keys(storage.Network(string(n)), ids...)...)
	out := map[string]bool{}
	for _, r := range rows {
		out[strings.TrimPrefix(r.ID, replacedPrefix)] = true
	}
	return out, err
}

// emptyReplaced begins sweeps of a network's replaced hot addresses, and gives what they were to pay
// and is not signed to the present ones. It returns how many rows it has written.
func (t *Treasury) emptyReplaced(ctx context.Context, n chain.Network) (done int, err error) {
	since := map[string]int64{}
	var ids []string
	var addresses []chain.Address
	err = t.each(ctx, storage.Query{Table: TopUps.Table, Partition: storage.Network(string(n)), Where: []storage.Cond{
		{Column: storage.ColID, Op: storage.Ge, Value: replacedPrefix}, {Column: storage.ColID, Op: storage.Lt, Value: past(replacedPrefix)},
	}}, func(r storage.Row) error {
		a := strings.TrimPrefix(r.ID, replacedPrefix)
		since[a] = int64(TopUps.Value(r).Amount)
		ids, addresses = append(ids, a), append(addresses, chain.Address(a))
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	hot := func(ctx context.Context, tenant string) (chain.Derived, error) {
		return t.cfg.Addresses.Hot(ctx, n, tenant)
	}
	for some := range slices.Chunk(addresses, askAtOnce) {
		moved, failed := t.cfg.Senders[n].Replace(ctx, some, hot)
		done, err = done+moved, errors.Join(err, failed)
	}
	for some := range slices.Chunk(ids, askAtOnce) {
		begun, failed := t.beginFirst(ctx, n, some, since)
		done, err = done+begun, errors.Join(err, failed)
	}
	begun, failed := t.beginLater(ctx, n)
	return done + begun, errors.Join(err, failed)
}

// settledAfter is how many blocks after a replacement every transfer is seen as one to a replaced
// address: a block that was being read at that moment is the last of the others.
const settledAfter = 2

// firstSweep is the id of the sweep of what an address held of a currency when it was replaced, at a height.
func firstSweep(k spot, since int64) string {
	return fmt.Sprintf("sweep/%s%s/%d/%s", replacedPrefix, k.address, since, k.currency)
}

// beginFirst plans a sweep of each currency at addresses where none was planned yet.
func (t *Treasury) beginFirst(ctx context.Context, n chain.Network, addresses []string, since map[string]int64) (begun int, err error) {
	p := storage.Network(string(n))
	var ids []string
	for _, a := range addresses {
		for _, c := range t.cfg.Registry.On(n) {
			ids = append(ids, firstSweep(spot{a, c.Code}, since[a]))
		}
	}
	there := map[string]bool{}
	for part := range slices.Chunk(ids, pageSize) {
		rows, err := t.cfg.Store.Rows(ctx, Sweeps.Table, storage.Keys(p, part...)...)
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			there[r.ID] = true
		}
	}
	var lack []spot
	for _, a := range addresses {
		for _, c := range t.cfg.Registry.On(n) {
			if k := (spot{a, c.Code}); !there[firstSweep(k, since[a])] {
				lack = append(lack, k)
			}
		}
	}
	if len(lack) == 0 {
		return 0, nil
	}
	tip, err := t.cfg.Clients[n].Tip(ctx)
	if err != nil {
		return 0, err
	}
	owners, err := t.cfg.Store.Rows(ctx, incoming.Addresses.Table, storage.Keys(p, addresses...)...)
	if err != nil {
		return 0, err
	}
	of := map[string]incoming.AddressRow{}
	for _, r := range owners {
		of[r.ID] = incoming.Addresses.Value(r)
	}
	for _, k := range lack {
		owner, ok := of[k.address]
		if !ok || owner.Use != incoming.UseRetired || tip.Head.Height < since[k.address]+settledAfter {
			continue // or the node may not know all that had come by then
		}
		j := &job{row: storage.Row{ID: firstSweep(k, since[k.address])}}
		j.s = Sweep{Tenant: owner.Tenant, Network: string(n), Address: k.address, Key: owner.Key, Currency: k.currency, Created: t.cfg.Now()}
		j.note = SweepNote{Tenant: owner.Tenant, Address: k.address, Currency: k.currency, DueBelow: -1}
		if err := j.s.to(SweepNew, onPlan); err != nil {
			return begun, err
		}
		c := storage.Change{ID: j.row.ID + "/begin/0", Partition: p}
		if err := t.write(&c, j, t.cfg.Now()); err != nil {
			return begun, err
		}
		switch err := storage.CommitOne(ctx, t.cfg.Store, c); {
		case err == nil:
			begun++
		case !errors.Is(err, storage.ErrConflict): // else another process was first
			return begun, err
		}
	}
	return begun, nil
}

// beginLater plans sweeps of what has come to replaced addresses since, whoever sent it. Gas that was
// sent there for a sweep is left to that. What was in a block before is of a first sweep.
func (t *Treasury) beginLater(ctx context.Context, n chain.Network) (begun int, err error) {
	p := storage.Network(string(n))
	rows, err := t.unread.Found(ctx, t.cfg.Store, storage.Query{
		Table: incoming.Sightings.Table, Partition: p, Limit: t.cfg.Batch, Where: []storage.Cond{
			{Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone},
			{Column: "state", Op: storage.Eq, Value: incoming.Final},
			{Column: "purpose", Op: storage.Eq, Value: incoming.UseRetired},
			{Column: storage.ColDue, Op: storage.Eq, Value: time.Time{}},
			{Column: "currency", Op: storage.In, Value: t.cfg.Registry.Codes()},
		},
	}, t.cfg.Now(), t.cfg.Log)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	var txs []string
	for _, r := range rows {
		txs = append(txs, incoming.Sightings.Value(r).Tx)
	}
	sent, err := t.cfg.Store.Rows(ctx, outgoing.Attempts.Table, storage.Keys(p, union(nil, txs...)...)...)
	if err != nil {
		return 0, err
	}
	gas := map[string]bool{}
	for _, r := range sent {
		gas[r.ID] = outgoing.Attempts.Value(r).Purpose == chain.ForGas
	}
	at := map[spot][]storage.Row{}
	var order []spot
	for _, r := range rows {
		s := incoming.Sightings.Value(r)
		if gas[s.Tx] {
			s.Forward = incoming.NotNeeded
			e := storage.CommitOne(ctx, t.cfg.Store, storage.Change{
				ID: "gas-stays/" + s.Generated(), Partition: p, Put: []storage.Row{incoming.Sightings.Row(r.ID, r.Version, r.Due, s)},
			})
			err = errors.Join(err, unlessDue(e))
			continue
		}
		k := spot{s.Address, s.Currency}
		if at[k] == nil {
			order = append(order, k)
		}
		at[k] = append(at[k], r)
	}
	for _, k := range order {
		e := t.begin(ctx, n, k, at[k])
		if e == nil {
			begun++
		}
		err = errors.Join(err, unlessDue(e))
	}
	return begun, err
}

// bare ends a first sweep of a currency of which a replaced address holds nothing: also one that has
// no price.
func (t *Treasury) bare(ctx context.Context, j *job) (ended bool, err error) {
	if !j.replaced || len(j.s.Deposits) > 0 {
		return false, nil
	}
	c, err := t.cfg.Registry.Currency(j.s.Currency)
	if err != nil {
		return false, err
	}
	if j.note.Amount, err = t.holds(ctx, c, chain.Address(j.s.Address)); err != nil || j.note.Amount >= smallest(c) {
		return false, err
	}
	if err := t.still(ctx, j, c); err != nil {
		return false, err
	}
	return true, t.endEmpty(ctx, j)
}

// pays reports whether an address has something to pay yet, apart from its sweeps. An order that could not
// be paid for an hour, and of which nothing is reserved, holds nothing up: it asks for coins then, or is
// cancelled.
func (t *Treasury) pays(ctx context.Context, j *job) (bool, error) {
	const most = 100
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network(j.s.Network), Limit: most, Where: []storage.Cond{
			{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed}},
			{Column: "from_address", Op: storage.Eq, Value: j.s.Address},
			{Column: "purpose", Op: storage.Ne, Value: chain.ForSweep},
		},
	})
	return len(rows) == most || slices.ContainsFunc(rows, func(r storage.Row) bool {
		v := outgoing.Intents.Value(r)
		return v.State == outgoing.Signed || v.Nonce >= 0 || len(v.Plan) > 0 || v.Created.After(t.cfg.Now().Add(-time.Hour))
	}), err
}
