package incoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The first parts of the names of transfers that only balances show, in the place of a
// hash: what came in one block, and what was found in a round, whenever it came.
const (
	balanceTx = "balance/"
	holdingTx = "holding/"
)

// maxSent is how many transactions of an address are read to explain what it holds. One
// that sent more, and of which nothing is kept yet, is taken for explained as it is.
const maxSent = 1000

// book is what is stored of one address's native coins.
type book struct {
	address chain.Address
	hot     bool
	base    kept
	next    Holding
	keep    bool            // next is stored
	rest    decimal.Decimal // of what it holds now, what is not explained
}

// books adds up what is stored of these addresses. One whose watch has ended is left
// out, and so is one that sent what was not signed here.
func (r *reckoning) books(ctx context.Context, list []chain.Address) ([]*book, error) {
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = string(a)
	}
	owners, err := r.n.cfg.Store.Rows(ctx, Addresses.Table, storage.Keys(r.n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	stored, err := r.n.kept(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var all []*book
	for _, row := range owners {
		a := chain.Address(row.ID)
		o := Addresses.Value(row)
		if ended(o, r.at.Time) {
			continue
		}
		base := stored[row.ID]
		b := &book{address: a, hot: o.Use.hot(), base: base, keep: o.Use.hot() || base.known, rest: r.held[a].Sub(base.Amount)}
		b.next = Holding{Amount: r.held[a], Nonce: b.base.Nonce, Height: r.at.Height}
		all = append(all, b)
	}
	if err := r.arrived(ctx, all); err != nil {
		return nil, err
	}
	return r.paid(ctx, all)
}

// arrived takes what came by stored transfers off the rests.
func (r *reckoning) arrived(ctx context.Context, all []*book) error {
	var fresh, based []*book
	for _, b := range all {
		switch {
		case b.hot: // much comes there: alone, from its own height on
			if err := r.take(ctx, []*book{b}, b.base.Height); err != nil {
				return err
			}
		case b.base.known:
			based = append(based, b)
		default:
			fresh = append(fresh, b)
		}
	}
	above := r.at.Height
	for _, b := range based {
		above = min(above, b.base.Height)
	}
	return errors.Join(r.take(ctx, fresh, 0), r.take(ctx, based, above))
}

// take takes the stored transfers above a height off the rests.
func (r *reckoning) take(ctx context.Context, books []*book, above int64) error {
	if len(books) == 0 {
		return nil
	}
	byID := make(map[string]*book, len(books))
	for _, b := range books {
		byID[string(b.address)] = b
	}
	where := []storage.Cond{
		{Column: "address", Op: storage.In, Value: slices.Sorted(maps.Keys(byID))},
		{Column: "state", Op: storage.In, Value: []State{Included, Final}},
	}
	if above > 0 {
		where = append(where, storage.Cond{Column: "final_at", Op: storage.Gt, Value: above}, storage.Cond{Column: "height", Op: storage.Gt, Value: above})
	}
	rows, err := r.n.find(ctx, where...)
	for _, row := range rows {
		s := Sightings.Value(row)
		if b := byID[s.Address]; s.Contract == "" && s.Height > b.base.Height { // native, whatever its code was then
			b.rest = b.rest.Sub(s.Exact)
		}
	}
	return err
}

// paid adds what the addresses' own transactions paid to the rests, where something is
// left to explain.
func (r *reckoning) paid(ctx context.Context, all []*book) (out []*book, err error) {
	firsts := map[chain.Address]uint64{}
	for _, b := range all {
		if !b.rest.IsZero() || b.hot {
			firsts[b.address] = uint64(b.base.Nonce)
		}
	}
	txs := map[chain.Address][]string{}
	if r.n.cfg.Sent != nil && len(firsts) > 0 {
		if txs, err = r.n.cfg.Sent(ctx, firsts); err != nil {
			return nil, fmt.Errorf("reading what was sent: %w", err)
		}
	}
	var senders []chain.Sender
	var asked []*book
	for _, b := range all {
		if _, ok := firsts[b.address]; !ok {
			out = append(out, b)
			continue
		}
		s := chain.Sender{Address: b.address, First: uint64(b.base.Nonce), Txs: txs[b.address]}
		if !b.base.known && len(s.Txs) > maxSent {
			s.Txs = nil
		}
		senders, asked = append(senders, s), append(asked, b)
	}
	if len(senders) == 0 {
		return out, nil
	}
	spent, err := r.rec.Spent(ctx, r.at, senders)
	if err != nil {
		return nil, err
	}
	if len(spent) != len(senders) {
		return nil, r.n.nodeErr("it told what %d of %d addresses spent", len(spent), len(senders))
	}
	for i, b := range asked {
		switch s := spent[i]; {
		case s.Strange && !b.base.known && len(txs[b.address]) > maxSent:
			b.rest, b.keep, b.next.Nonce = decimal.Zero, true, int64(s.Nonce) //nolint:gosec // a nonce
			out = append(out, b)
		case s.Strange:
			r.n.log.Error("address_sent_unknown", slog.String("address", string(b.address)), slog.Int64("nonce", int64(s.Nonce))) //nolint:gosec // a nonce
		default:
			b.rest, b.keep, b.next.Nonce = b.rest.Add(s.Paid), b.keep || s.Nonce > 0, int64(s.Nonce) //nolint:gosec // a nonce
			out = append(out, b)
		}
	}
	return out, nil
}

// unknown leaves of transfers by inner calls those that are not counted yet: neither
// stored, nor part of what was booked by balances alone.
func (n *Network) unknown(ctx context.Context, list []chain.Transfer) ([]chain.Transfer, error) {
	live, err := n.live(ctx, list)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(t chain.Transfer) bool { return live[Key(t.Tx, t.Ordinal)] })
	return n.uncovered(ctx, list, nil)
}

// live tells by key which of these transfers are stored as included or final.
func (n *Network) live(ctx context.Context, list []chain.Transfer) (map[string]bool, error) {
	var keys []string
	for i := range list {
		keys = append(keys, Key(list[i].Tx, list[i].Ordinal))
	}
	live := map[string]bool{}
	for part := range slices.Chunk(keys, readChunk) {
		rows, err := n.cfg.Store.Rows(ctx, Sightings.Table, storage.Keys(n.part, part...)...)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			s := Sightings.Value(row)
			live[row.ID] = s.State == Included || s.State == Final
		}
	}
	return live, nil
}

// uncovered leaves out transfers that are part of what was booked by balances alone. The
// transfer that a difference of balances was is named too late to be booked again. What a
// round booked holds every native transfer up to its block that was not live then.
func (n *Network) uncovered(ctx context.Context, list []chain.Transfer, live map[string]bool) ([]chain.Transfer, error) {
	var addresses []string
	for i := range list {
		addresses = append(addresses, string(list[i].To))
	}
	booked, err := n.unproven(ctx, addresses)
	if err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for i := range list {
		t := &list[i]
		covered := t.Contract == "" && !live[Key(t.Tx, t.Ordinal)] && slices.ContainsFunc(booked[string(t.To)], func(s Sighting) bool {
			return strings.HasPrefix(s.Tx, holdingTx) && t.Block.Height <= s.Height ||
				t.Ordinal <= -2 && s.BlockHash == t.Block.Hash
		})
		if covered {
			n.log.Warn("transfer_booked_unproven", slog.String("tx", t.Tx), slog.String("address", string(t.To)), slog.String("amount", t.Amount.String()))
			continue
		}
		out = append(out, *t)
	}
	return out, nil
}

// unproven lists by address what was booked by balances alone.
func (n *Network) unproven(ctx context.Context, addresses []string) (map[string][]Sighting, error) {
	out := map[string][]Sighting{}
	slices.Sort(addresses)
	for part := range slices.Chunk(slices.Compact(addresses), readChunk) {
		rows, err := n.find(ctx,
			storage.Cond{Column: "address", Op: storage.In, Value: part},
			storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}},
			storage.Cond{Column: "unproven", Op: storage.Eq, Value: true})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if s := Sightings.Value(row); strings.HasPrefix(s.Tx, balanceTx) || strings.HasPrefix(s.Tx, holdingTx) {
				out[s.Address] = append(out[s.Address], s)
			}
		}
	}
	return out, nil
}
