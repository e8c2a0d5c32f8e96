package evm

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// sent is a signed transaction read back from its bytes.
type sent struct {
	*types.Transaction
	from common.Address
}

// signed reads a signed transaction. An error here is proof: no node of this
// network takes the bytes.
func (c *Client) signed(tx string, raw []byte) (*sent, error) {
	var t types.Transaction
	if err := t.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: not a transaction: %w", chain.ErrRejected, err)
	}
	if !t.Protected() {
		return nil, fmt.Errorf("%w: the signature holds for no chain id", chain.ErrRejected)
	}
	from, err := types.Sender(c.signer(), &t)
	if err != nil {
		return nil, fmt.Errorf("%w: signature: %w", chain.ErrRejected, err)
	}
	if t.Hash().Hex() != tx {
		return nil, fmt.Errorf("%w: the bytes are those of another transaction", chain.ErrRejected)
	}
	return &sent{&t, from}, nil
}

// Broadcast sends the stored bytes. The node's words prove nothing: "already
// known" is success, "nonce too low" is success where the node has this very
// transaction, and everything else is an unknown outcome. ErrRejected comes only
// from what can be seen in the bytes themselves: no transaction, no valid
// signature, or one for another chain id.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("evm: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := c.signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	id := newCall("eth_chainId")
	if err := c.node.do(ctx, id); err != nil {
		return err
	}
	if err := c.rightChain(id); err != nil {
		return err
	}
	k := newCall("eth_sendRawTransaction", hexutil.Bytes(s.Raw()))
	if err := c.node.do(ctx, k); err != nil {
		return err
	}
	if k.err == nil {
		var h common.Hash
		w := &walk{b: k.out}
		if w.fixed(h[:]); w.end() != nil || h != t.Hash() {
			return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
		}
		return nil
	}
	if replied(k.err, "already known", "known transaction", "already imported", "alreadyknown") {
		return nil
	}
	if replied(k.err, "nonce") && c.has(ctx, t.Hash()) == nil {
		return nil
	}
	return k.err
}

// has is nil where the node has the transaction, in its pool or in a block.
func (c *Client) has(ctx context.Context, tx common.Hash) error {
	k := newCall("eth_getTransactionByHash", tx)
	if err := c.node.do(ctx, k); err != nil {
		return err
	}
	if k.err != nil {
		return k.err
	}
	if isNull(k.out) {
		return errors.New("evm: not there")
	}
	var h common.Hash
	w := &walk{b: k.out}
	w.object(func(key []byte) {
		if string(key) == "hash" {
			w.fixed(h[:])
			return
		}
		w.skip(0)
	})
	if err := w.end(); err != nil {
		return err
	}
	if h != tx {
		return fmt.Errorf("%w: it answered with another transaction", chain.ErrNode)
	}
	return nil
}
