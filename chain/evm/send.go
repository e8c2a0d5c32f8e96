package evm

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
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
	id := transport.NewCall("eth_chainId")
	if err := c.node.Do(ctx, id); err != nil {
		return err
	}
	if err := c.rightChain(id); err != nil {
		return err
	}
	k := transport.NewCall("eth_sendRawTransaction", hexutil.Bytes(s.Raw()))
	if err := c.node.Do(ctx, k); err != nil {
		return err
	}
	if k.Err == nil {
		var h common.Hash
		w := newWalk(k.Out)
		if w.fixed(h[:]); w.End() != nil || h != t.Hash() {
			return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
		}
		return nil
	}
	if transport.Replied(k.Err, "already known", "known transaction", "already imported", "alreadyknown") {
		return nil
	}
	if transport.Replied(k.Err, "nonce") && c.has(ctx, t.Hash()) == nil {
		return nil
	}
	return k.Err
}

// has is nil where the node has the transaction, in its pool or in a block.
func (c *Client) has(ctx context.Context, tx common.Hash) error {
	k := transport.NewCall("eth_getTransactionByHash", tx)
	if err := c.node.Do(ctx, k); err != nil {
		return err
	}
	if k.Err != nil {
		return k.Err
	}
	if transport.Null(k.Out) {
		return errors.New("evm: not there")
	}
	var h common.Hash
	w := newWalk(k.Out)
	w.Object(func(key []byte) {
		if string(key) == "hash" {
			w.fixed(h[:])
			return
		}
		w.Skip()
	})
	if err := w.End(); err != nil {
		return err
	}
	if h != tx {
		return fmt.Errorf("%w: it answered with another transaction", chain.ErrNode)
	}
	return nil
}
