package incoming

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// mempool is what waits to be mined, as one reading found it.
type mempool struct {
	keys map[string]bool // by Key
	list []chain.Transfer
}

// pending reads the mempool once. It is nil where the client has none.
func (n *Network) pending(ctx context.Context) (*mempool, error) {
	client, ok := n.cfg.Client.(chain.Mempool)
	if !ok {
		return nil, nil
	}
	list, err := client.Pending(ctx, &view{n: n})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("incoming: %s: reading the mempool: %w", n.name, err)
	}
	m := &mempool{keys: map[string]bool{}}
	for _, t := range list {
		if t.Block.Hash != "" || !validTransfer(&t) {
			return nil, n.nodeErr("its mempool has a transfer in a block, or without a proper tx: %.80q", t.Tx)
		}
		m.keys[Key(t.Tx, t.Ordinal)] = true
		m.list = append(m.list, t)
	}
	return m, nil
}

// seePending records what waits and was not known to.
func (n *Network) seePending(ctx context.Context, m *mempool) (worked int, err error) {
	for list := m.list; len(list) > 0; {
		part := list[:min(len(list), settleChunk)]
		list = list[len(part):]
		put := 0
		err := storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
			put = 0
			_, version, err := n.cursor(ctx)
			if err != nil || version == 0 {
				return storage.Change{}, err
			}
			rows, err := n.merge(ctx, part, fromMempool)
			if put = len(rows); err != nil || put == 0 {
				return storage.Change{}, err
			}
			return n.telling(n.change("seen", []storage.Guard{Cursors.Guard(CursorID, version)}, rows...))
		})
		if worked += put; err != nil {
			return worked, err
		}
	}
	return worked, nil
}
