package evm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"
)

// Holdings reads what each address held after a block, in whole coins.
func (c *Client) Holdings(ctx context.Context, b chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	owners, err := c.owners(list)
	if err != nil {
		return nil, err
	}
	got, err := c.balances(ctx, owners, at(common.HexToHash(b.Hash)))
	if err != nil {
		return nil, err
	}
	out := make([]decimal.Decimal, len(list))
	for i, v := range got[0] {
		out[i] = coins(v, c.native.Decimals)
	}
	return out, nil
}

// owners are the addresses as the node knows them; errors.ErrUnsupported with
// Options.NoInternal.
func (c *Client) owners(list []chain.Address) ([]common.Address, error) {
	if c.o.NoInternal {
		return nil, fmt.Errorf("evm: %s: Options.NoInternal is set: %w", c.o.Network, errors.ErrUnsupported)
	}
	out := make([]common.Address, len(list))
	for i, a := range list {
		var err error
		if out[i], err = c.own(a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Spent adds up what senders paid with their transactions, as receipts tell it.
func (c *Client) Spent(ctx context.Context, b chain.Block, senders []chain.Sender) ([]chain.Spent, error) {
	var calls []*transport.Call
	for _, s := range senders {
		owner, err := c.own(s.Address)
		if err != nil {
			return nil, err
		}
		calls = append(calls, transport.NewCall("eth_getTransactionCount", owner, at(common.HexToHash(b.Hash))))
		for _, tx := range s.Txs {
			calls = append(calls, transport.NewCall("eth_getTransactionByHash", tx), transport.NewCall("eth_getTransactionReceipt", tx))
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	out := make([]chain.Spent, len(senders))
	for i, s := range senders {
		n := 1 + 2*len(s.Txs)
		var err error
		if out[i], err = c.spent(b, s, calls[:n]); err != nil {
			return nil, err
		}
		calls = calls[n:]
	}
	return out, nil
}

func (c *Client) spent(b chain.Block, s chain.Sender, calls []*transport.Call) (chain.Spent, error) {
	next, err := quantityOf(calls[0])
	if err != nil {
		return chain.Spent{}, stateErr(err)
	}
	if !next.IsInt64() {
		return chain.Spent{}, fmt.Errorf("%w: a nonce of %s", chain.ErrNode, next)
	}
	sum, known := new(big.Int), map[uint64]bool{}
	for calls = calls[1:]; len(calls) > 0; calls = calls[2:] {
		t, rec, err := landed(calls[0], calls[1])
		if err != nil {
			return chain.Spent{}, err
		}
		if rec == nil || checksum(t.from) != s.Address || rec.height > b.Height || t.nonce < 0 || uint64(t.nonce) < s.First || known[uint64(t.nonce)] {
			continue
		}
		known[uint64(t.nonce)] = true
		if sum.Add(sum, rec.cost()); rec.ok {
			sum.Add(sum, t.value)
		}
	}
	return chain.Spent{
		Paid: coins(sum, c.native.Decimals), Nonce: next.Uint64(), Strange: s.First+uint64(len(known)) != next.Uint64(),
	}, nil
}

// landed decodes a transaction and its receipt; nil where it is in no block.
func landed(tx, receipt *transport.Call) (blockTx, *receipt, error) {
	rec, err := receiptOf(receipt)
	if err != nil || rec == nil {
		return blockTx{}, nil, err
	}
	if tx.Err != nil {
		return blockTx{}, nil, tx.Err
	}
	if tx.Null() {
		return blockTx{}, nil, fmt.Errorf("%w: it has the receipt of a transaction that it does not have", chain.ErrNode)
	}
	var b block
	w := newWalk(tx.Out)
	b.addTx(w)
	if err := w.End(); err != nil {
		return blockTx{}, nil, err
	}
	return b.txs[0], rec, nil
}

// Received finds the native transfers to addresses between two blocks: it halves the
// range wherever a balance differs, and reads the blocks that this points at as Scan
// would.
func (c *Client) Received(ctx context.Context, list []chain.Address, from, to chain.Block) ([]chain.Transfer, error) {
	owners, err := c.owners(list)
	if err != nil {
		return nil, err
	}
	ends, err := c.balances(ctx, owners, at(common.HexToHash(from.Hash)), at(common.HexToHash(to.Hash)))
	if err != nil {
		return nil, err
	}
	s := &search{c: c, found: map[int64][]common.Address{}}
	if err := s.between(ctx, from.Height, to.Height, owners, ends[0], ends[1]); err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for _, height := range slices.Sorted(maps.Keys(s.found)) {
		got, err := c.blocksAt(ctx, newOpened(s.found[height]), []int64{height})
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return slices.DeleteFunc(out, func(x chain.Transfer) bool { return x.Currency != c.native.Code }), nil
}

// How much one Received reads. It is more than 128 blocks can need, of which a pruned node has the
// state.
const (
	maxFound = 250  // blocks
	maxReads = 1000 // times of balances
)

// search finds the blocks that changed balances.
type search struct {
	c     *Client
	found map[int64][]common.Address
	reads int
}

// between looks between two heights at which these addresses had these balances.
func (s *search) between(ctx context.Context, lo, hi int64, list []common.Address, before, after []*big.Int) error {
	var moved []common.Address
	var first, last []*big.Int
	for i, a := range list {
		if before[i].Cmp(after[i]) != 0 {
			moved, first, last = append(moved, a), append(first, before[i]), append(last, after[i])
		}
	}
	if len(moved) == 0 {
		return nil
	}
	one := hi-lo <= 1
	if one {
		s.found[hi] = append(s.found[hi], moved...)
	} else {
		s.reads++
	}
	switch {
	case len(s.found) > maxFound || s.reads > maxReads:
		return fmt.Errorf("%w, or too many blocks moved coins of these addresses: from block %d on", chain.ErrNoState, lo)
	case one:
		return nil
	}
	mid := lo + (hi-lo)/2
	got, err := s.c.balances(ctx, moved, quantity(mid))
	if err != nil {
		return err
	}
	if err := s.between(ctx, lo, mid, moved, first, got[0]); err != nil {
		return err
	}
	return s.between(ctx, mid, hi, moved, got[0], last)
}

// opened is the Watch of some addresses, each of which is open.
type opened struct {
	has  map[chain.Address]bool
	list []chain.Address
}

func newOpened(list []common.Address) opened {
	s := opened{has: make(map[chain.Address]bool, len(list))}
	for _, a := range list {
		s.has[checksum(a)] = true
		s.list = append(s.list, checksum(a))
	}
	return s
}

// Sync has nothing to read.
func (opened) Sync(context.Context) error { return nil }

// Contains looks it up.
func (s opened) Contains(a chain.Address) bool { return s.has[a] }

// Open is all of them.
func (s opened) Open() []chain.Address { return s.list }
