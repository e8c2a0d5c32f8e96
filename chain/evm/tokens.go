package evm

import (
	"context"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// manyHoldings is the init code of a contract that is never deployed, as manyBalances is. It asks
// tokens for balances: pairs of a token and an owner follow the code, 20 bytes each. For each pair
// it returns two words: 1 where the token answered with one word, else 0; and that word.
//
//	PUSH4 0x70a08231 PUSH 224 SHL PUSH 0 MSTORE   the selector of balanceOf(address)
//	PUSH 128, PUSH 83                             the first result's place, the first pair's place
//	15: JUMPDEST                                  while there is a pair left:
//	  CODESIZE DUP2 LT ISZERO PUSH 74 JUMPI
//	  PUSH 20 DUP2 PUSH 76 CODECOPY               the token, at the end of the word at 64
//	  PUSH 20 DUP2 PUSH 20 ADD PUSH 16 CODECOPY   the owner, behind the selector
//	  PUSH 32 DUP3 PUSH 32 ADD PUSH 36 PUSH 0 PUSH 64 MLOAD PUSH3 200000 STATICCALL
//	  RETURNDATASIZE PUSH 32 EQ AND DUP3 MSTORE
//	  PUSH 40 ADD SWAP1 PUSH 64 ADD SWAP1 PUSH 15 JUMP
//	74: JUMPDEST POP PUSH 128 SWAP1 SUB PUSH 128 RETURN
const manyHoldings = "6370a0823160e01b600052" + "60806053" + "5b" + "38811015604a57" + "601481604c39" + "601481601401601039" +
	"602082602001" + "60246000604051" + "62030d40fa" + "3d60201416" + "8252" + "602801" + "9060400190" + "600f56" + "5b5060809003" + "6080f3"

// bulkTokens is how many balances of tokens one eth_call reads. What is returned counts as the code
// of a contract: 24576 bytes would hold 384. A token that is a proxy takes some 30,000 gas, the most
// that one is given is 200,000.
const bulkTokens = 100

// fewTokens are asked for one by one.
const fewTokens = 2

// holder is an owner of a token.
type holder struct{ contract, owner common.Address }

// asked are holders at one block.
type asked struct {
	holders []holder
	block   any
	said    map[holder]said
}

// said is what a token said of a balance.
type said struct {
	n    *big.Int // nil = it does not say
	gone bool     // the node has thrown that state away
}

// holdings asks tokens for the balances of each list at its block. What a read of many does not
// tell is asked for alone.
func (c *Client) holdings(ctx context.Context, lists []asked) error {
	if err := c.bulkHoldings(ctx, lists); err != nil {
		return err
	}
	var calls []*transport.Call
	var alone []func(said)
	for i := range lists {
		list := &lists[i]
		for _, h := range list.holders {
			if _, told := list.said[h]; !told {
				list.said[h] = said{}
				calls = append(calls, balanceOf(h.contract, h.owner, list.block))
				alone = append(alone, func(s said) { list.said[h] = s })
			}
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	for i, k := range calls {
		n, gone, err := held(k)
		if err != nil {
			return err
		}
		alone[i](said{n, gone})
	}
	return nil
}

// bulkHoldings fills in what reads of many tell.
func (c *Client) bulkHoldings(ctx context.Context, lists []asked) error {
	var at []int
	for i := range lists {
		lists[i].said = make(map[holder]said, len(lists[i].holders))
		if len(lists[i].holders) > fewTokens {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	if err := c.manyHeld(ctx, lists, at); !errors.Is(err, errAlone) {
		return err
	}
	return nil
}

// manyHeld fills in what reads of many tell of some lists: errAlone where the node cannot do that
// for all of them.
func (c *Client) manyHeld(ctx context.Context, lists []asked, at []int) error {
	if c.singleToken.Load() > 0 {
		c.singleToken.Add(-1)
		return errAlone
	}
	var calls []*transport.Call
	for _, i := range at {
		for part := range slices.Chunk(lists[i].holders, bulkTokens) {
			calls = append(calls, holdingsCall(part, lists[i].block))
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	var alone error
	for _, i := range at {
		for part := range slices.Chunk(lists[i].holders, bulkTokens) {
			var limited *chain.LimitedError
			switch k := calls[0]; {
			case errors.As(k.Err, &limited) || unknownBlock(k.Err):
				return k.Err
			case stateGone(k.Err):
				for _, h := range part {
					lists[i].said[h] = said{gone: true}
				}
			case !holdingsAnswer(k, part, lists[i].said):
				c.singleToken.Store(singleReads)
				alone = errAlone
			}
			calls = calls[1:]
		}
	}
	return alone
}

func holdingsCall(list []holder, block any) *transport.Call {
	code := make([]byte, 0, len(manyHoldings)/2+len(list)*2*common.AddressLength)
	code, _ = hex.AppendDecode(code, []byte(manyHoldings))
	for _, h := range list {
		code = append(append(code, h.contract[:]...), h.owner[:]...)
	}
	return transport.NewCall("eth_call", map[string]any{"data": hexutil.Bytes(code)}, block)
}

// holdingsAnswer takes what the tokens said into out. It reports whether the answer was one.
func holdingsAnswer(k *transport.Call, list []holder, out map[holder]said) bool {
	const word, pair = 32, 64
	var text string
	raw := make([]byte, len(list)*pair)
	if k.Into(&text) != nil || len(text) != 2+2*len(raw) || !transport.Unhex(raw, []byte(text[2:])) {
		return false
	}
	for i, h := range list {
		if flag := raw[i*pair : i*pair+word]; new(big.Int).SetBytes(flag).Cmp(common.Big1) == 0 {
			out[h] = said{n: new(big.Int).SetBytes(raw[i*pair+word : (i+1)*pair])}
		}
	}
	return true
}
