package evm

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

func newNode(o Options) *transport.RPC {
	n := &transport.RPC{Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody}, URL: o.URL, Batch: o.Batch}
	n.Hide(o.URL)
	return n
}

// quantityOf is an answer that must be a number.
func quantityOf(k *transport.Call) (*big.Int, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	w := newWalk(k.Out)
	v := w.big()
	return v, w.End()
}

// wordOf is an answer of eth_call that must be one uint256. A contract that is not
// there answers nothing, which is an error.
func wordOf(k *transport.Call) (*big.Int, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	var b [32]byte
	w := newWalk(k.Out)
	w.fixed(b[:])
	if w.End() != nil {
		return nil, fmt.Errorf("%w: %s did not return a number: no such contract there?", chain.ErrNode, k.Method)
	}
	return new(big.Int).SetBytes(b[:]), nil
}

// unknownBlock: the node says that it has no such block.
func unknownBlock(err error) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && r.Code == -39001 ||
		transport.Replied(err, "unknown block", "block not found", tagFinal+" block not", "safe block not", "header not found")
}

// unsupported: the node does not offer the method.
func unsupported(err error) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && (r.Code == -32601 || r.Code == -32004) ||
		transport.Replied(err, "method not found", "does not exist/is not available", "unsupported method", "not supported", "not available", "not whitelisted")
}

// stateGone: the node has thrown away the state of an old block.
func stateGone(err error) bool {
	return transport.Replied(err, "missing trie node", "state not available", "state is not available", "historical state", "pruned", "state histories", "state already discarded", "archive", "blockoutofrangeerror")
}
