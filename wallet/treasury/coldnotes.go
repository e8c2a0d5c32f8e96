package treasury

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A cold address is one more address of the tenant's, so a move there and a refill from there
// have no legs: chain/<network> is minus what is held at all of them. What lies at cold addresses
// is noted beside the ledger, in TopUps, in the Change that completes a move or books a refill:
//
//	cold/<currency>               what lies there by the books; Tx is the last move that began
//	cold-at/<network>/<address>   an address that a move was made to
//	refill/<transfer>             what came back from there
//	apart/<transfer>              what came and may have come from there: it is in suspense; Tx is why
//	spent/<cost>                  what a network took of them for a refill, or a token of a move there
//	need/<currency>               how much an operator was asked to bring back; Tx is since when, and where to
const (
	coldPrefix   = "cold/"
	coldAt       = "cold-at/"
	refillPrefix = "refill/"
	apartPrefix  = "apart/"
	spentPrefix  = "spent/"
	needPrefix   = "need/"
)

func past(prefix string) string { return prefix[:len(prefix)-1] + "0" } // behind every id with the prefix

// ColdOf is what lies at a tenant's cold addresses by the books, and the row to write it back.
func ColdOf(ctx context.Context, s storage.Store, tenant, currency string) (TopUp, storage.Row, error) {
	v, row, _, err := TopUps.One(ctx, s, storage.Tenant(tenant), coldPrefix+currency)
	v.Currency = currency
	return v, row, err
}

// ColdRow is a note of ColdOf to be written.
func ColdRow(row storage.Row, v TopUp) storage.Row {
	return TopUps.Row(coldPrefix+v.Currency, row.Version, time.Time{}, v)
}

// SpentRow is the row that says what left cold addresses, or never came there, with a Tx of the ledger.
func SpentRow(cost string, v TopUp) storage.Row {
	return TopUps.Row(spentPrefix+cost, 0, time.Time{}, v)
}

// ColdAt is the row that makes an address one of the tenant's cold ones; ok is false where it is
// already.
func ColdAt(ctx context.Context, s storage.Store, tenant, network, address, move string) (row storage.Row, ok bool, err error) {
	id := coldAt + network + "/" + address
	_, _, known, err := TopUps.One(ctx, s, storage.Tenant(tenant), id)
	return TopUps.Row(id, 0, time.Time{}, TopUp{Tx: move}), err == nil && !known, err
}

// transferOf is the network and the Sighting's key of a row's id.
func transferOf(id string) (network, key string) {
	_, rest, _ := strings.Cut(id, "/")
	network, rest, _ = strings.Cut(rest, "/")
	return network, rest[:max(strings.LastIndex(rest, "/"), 0)]
}

// ColdBooks compares the notes of what lies at cold addresses. It returns, by currency, what the
// note says, and what came back or was spent; and what is held apart, by transfer.
func ColdBooks(ctx context.Context, s storage.Store, p storage.Partition) (noted, back, apart map[string]ledger.Amount, err error) {
	noted, back, apart = map[string]ledger.Amount{}, map[string]ledger.Amount{}, map[string]ledger.Amount{}
	for _, of := range []struct {
		prefix string
		take   func(id string, v TopUp) error
	}{
		{coldPrefix, func(_ string, v TopUp) error { noted[v.Currency] = v.Amount; return nil }},
		{refillPrefix, func(_ string, v TopUp) (err error) {
			back[v.Currency], err = back[v.Currency].Add(v.Amount)
			return err
		}},
		{spentPrefix, func(_ string, v TopUp) (err error) {
			back[v.Currency], err = back[v.Currency].Add(v.Amount)
			return err
		}},
		{apartPrefix, func(id string, v TopUp) error { apart[id] = v.Amount; return nil }},
	} {
		err = cmp.Or(err, storage.Pages(ctx, s, storage.Query{
			Table: TopUps.Table, Partition: p, Where: []storage.Cond{
				{Column: storage.ColID, Op: storage.Ge, Value: of.prefix}, {Column: storage.ColID, Op: storage.Lt, Value: past(of.prefix)},
			},
		}, func(rows []storage.Row) error {
			if of.prefix == refillPrefix {
				if rows, err = came(ctx, s, p, rows); err != nil {
					return err
				}
			}
			for _, r := range rows {
				if err := of.take(strings.TrimPrefix(r.ID, of.prefix), TopUps.Value(r)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return noted, back, apart, err
}

// came are the rows of refills that are no more than a transfer brought which the network's part of
// the store has. What somebody wrote beside them came from nowhere, and counts as nothing.
func came(ctx context.Context, s storage.Store, p storage.Partition, rows []storage.Row) ([]storage.Row, error) {
	keys := make([]storage.Key, len(rows))
	for i, r := range rows {
		network, key := transferOf(r.ID)
		keys[i] = storage.Keys(storage.Network(network), key)[0]
	}
	seen, err := s.Rows(ctx, incoming.Sightings.Table, keys...)
	if err != nil {
		return nil, err
	}
	brought := map[string]incoming.Sighting{}
	for _, r := range seen {
		v := incoming.Sightings.Value(r)
		brought[v.Generated()] = v
	}
	return slices.DeleteFunc(rows, func(r storage.Row) bool {
		v, row := brought[strings.TrimPrefix(r.ID, refillPrefix)], TopUps.Value(r)
		return storage.Tenant(v.Tenant) != p || v.Currency != row.Currency || row.Amount < 0 || row.Amount > v.Amount
	}), nil
}
