package evm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// manyBalances is the init code of a contract that is never deployed: eth_call runs it
// as a creation and returns what it returns. The addresses follow the code, 20 bytes
// each. It returns their balances, 16 bytes each.
//
//	PUSH 32, PUSH 47            the first result's place, the first address's place
//	4: JUMPDEST                 while there is an address left:
//	  CODESIZE DUP2 LT ISZERO PUSH 38 JUMPI
//	  PUSH 20 DUP2 PUSH 12 CODECOPY PUSH 0 MLOAD BALANCE
//	  PUSH 128 SHL DUP3 MSTORE  its balance in the upper half of a word
//	  PUSH 20 ADD SWAP1 PUSH 16 ADD SWAP1 PUSH 4 JUMP
//	38: JUMPDEST POP PUSH 32 SWAP1 SUB PUSH 32 RETURN
const manyBalances = "6020602f" + "5b" + "38811015602657" + "601481600c3960005131" + "60801b8252" + "601401906010019060045" + "6" +
	"5b5060209003" + "6020f3"

const (
	// bulkSize is how many balances one eth_call reads. 24576 bytes, the limit of a
	// contract's code, would hold 1536; the gas of 1000 is some 7 million, below every
	// node's limit for a call.
	bulkSize  = 1000
	wordBytes = 16
	// singleReads is how many reads ask for each balance alone after a node failed a bulk
	// read, until a bulk read is tried again.
	singleReads = 100
)

// balances reads each address at each block: [block][address]. chain.ErrNoState where
// the node no longer has the state of one of these blocks.
func (c *Client) balances(ctx context.Context, list []common.Address, blocks ...any) ([][]*big.Int, error) {
	if len(list) == 0 {
		return make([][]*big.Int, len(blocks)), nil
	}
	if c.single.Load() > 0 {
		c.single.Add(-1)
		return c.eachBalance(ctx, list, blocks)
	}
	out, err := c.bulkBalances(ctx, list, blocks)
	var failed *bulkError
	if !errors.As(err, &failed) {
		return out, err
	}
	// Only a node that reads one by one, where it failed to read all at once, is known
	// not to do the latter.
	if out, err = c.eachBalance(ctx, list, blocks); err == nil {
		c.single.Store(singleReads)
	}
	return out, err
}

// bulkError is a node's answer to a bulk read that says nothing of balances.
type bulkError struct{ cause error }

func (e *bulkError) Error() string { return e.cause.Error() }

func (c *Client) bulkBalances(ctx context.Context, list []common.Address, blocks []any) ([][]*big.Int, error) {
	var calls []*transport.Call
	for _, block := range blocks {
		for part := range slices.Chunk(list, bulkSize) {
			calls = append(calls, bulkCall(part, block))
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	out := make([][]*big.Int, len(blocks))
	for i := range blocks {
		for part := range slices.Chunk(list, bulkSize) {
			got, err := bulkAnswer(calls[0], len(part))
			if err != nil {
				return nil, err
			}
			out[i], calls = append(out[i], got...), calls[1:]
		}
	}
	return out, nil
}

func bulkCall(list []common.Address, block any) *transport.Call {
	code := make([]byte, 0, len(manyBalances)/2+len(list)*common.AddressLength)
	code, _ = hex.AppendDecode(code, []byte(manyBalances))
	for _, a := range list {
		code = append(code, a[:]...)
	}
	return transport.NewCall("eth_call", map[string]any{"data": hexutil.Bytes(code)}, block)
}

func bulkAnswer(k *transport.Call, n int) ([]*big.Int, error) {
	if err := stateErr(k.Err); errors.Is(err, chain.ErrNoState) || unknownBlock(err) {
		return nil, err
	}
	if k.Err != nil {
		return nil, &bulkError{k.Err}
	}
	var text string
	raw := make([]byte, n*wordBytes)
	if err := k.Into(&text); err != nil || len(text) != 2+2*len(raw) || !transport.Unhex(raw, []byte(text[2:])) {
		return nil, &bulkError{fmt.Errorf("%w: eth_call did not return %d balances", chain.ErrNode, n)}
	}
	out := make([]*big.Int, n)
	for i := range out {
		out[i] = new(big.Int).SetBytes(raw[i*wordBytes : (i+1)*wordBytes])
	}
	return out, nil
}

// eachBalance asks for every balance, where the node cannot read many at once.
func (c *Client) eachBalance(ctx context.Context, list []common.Address, blocks []any) ([][]*big.Int, error) {
	calls := make([]*transport.Call, 0, len(list)*len(blocks))
	for _, block := range blocks {
		for _, a := range list {
			calls = append(calls, transport.NewCall("eth_getBalance", a, block))
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	out := make([][]*big.Int, len(blocks))
	for i, k := range calls {
		v, err := quantityOf(k)
		if err != nil {
			return nil, stateErr(err)
		}
		out[i/len(list)] = append(out[i/len(list)], v)
	}
	return out, nil
}

// errAlone is a node that does not read many balances at once, for now.
var errAlone = fmt.Errorf("evm: the node does not read many balances at once: %w", errors.ErrUnsupported)

// manyCoins reads what addresses hold of the native coin at the head, in few calls: errAlone where
// the node cannot do that.
func (c *Client) manyCoins(ctx context.Context, list []common.Address) ([]*big.Int, error) {
	if c.single.Load() > 0 {
		c.single.Add(-1)
		return nil, errAlone
	}
	out, err := c.bulkBalances(ctx, list, []any{"latest"})
	var failed *bulkError
	switch {
	case errors.As(err, &failed):
		// As in balances, but for one.
		if _, err = c.eachBalance(ctx, list[:1], []any{"latest"}); err != nil {
			return nil, err
		}
		c.single.Store(singleReads)
		return nil, errAlone
	case err != nil:
		return nil, err
	}
	return out[0], nil
}

// stateErr makes chain.ErrNoState of a node's words for that.
func stateErr(err error) error {
	if stateGone(err) {
		return fmt.Errorf("%w: %w", chain.ErrNoState, err)
	}
	return err
}

// at names a block's state by hash: the answer is of that very block or an error.
func at(h common.Hash) any { return map[string]any{"blockHash": h} }
