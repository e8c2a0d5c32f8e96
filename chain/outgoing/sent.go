package outgoing

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Sent lists, for each of some addresses, the hashes of all attempts that were stored
// with nonces from the given one on, whatever became of them. Its signature is what
// incoming asks for.
func (n *Sender) Sent(ctx context.Context, first map[chain.Address]uint64) (map[chain.Address][]string, error) {
	out := make(map[chain.Address][]string, len(first))
	var from []chain.Address // that have sent little: all of it is read
	for _, a := range slices.Sorted(maps.Keys(first)) {
		if first[a] == 0 {
			from = append(from, a)
			continue
		}
		if err := n.sent(ctx, out, first[a], a); err != nil {
			return nil, err
		}
	}
	if len(from) == 0 {
		return out, nil
	}
	return out, n.sent(ctx, out, 0, from...)
}

// sent adds the attempts of addresses with nonces from first on.
func (n *Sender) sent(ctx context.Context, out map[chain.Address][]string, first uint64, from ...chain.Address) error {
	where := []storage.Cond{{Column: "from_address", Op: storage.In, Value: from}}
	if first > 0 {
		where = append(where, storage.Cond{Column: "nonce", Op: storage.Ge, Value: int64(first)}) //nolint:gosec // a nonce
	}
	var ids []string
	owner := map[string]chain.Address{}
	for r, err := range storage.All(ctx, n.Store, storage.Query{Table: Intents.Table, Partition: n.part, Where: where}) {
		if err != nil {
			return fmt.Errorf("outgoing: reading intents: %w", err)
		}
		ids, owner[r.ID] = append(ids, r.ID), Intents.Value(r).From
	}
	const some = 500
	for part := range slices.Chunk(ids, some) {
		byIntent, err := n.attempts(ctx, part...)
		if err != nil {
			return err
		}
		for _, id := range part {
			for _, a := range byIntent[id] {
				out[owner[id]] = append(out[owner[id]], a.tx)
			}
		}
	}
	return nil
}
