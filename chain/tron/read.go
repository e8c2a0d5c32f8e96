package tron

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// holding is what /wallet/getaccount says; exists is false for an address that
// nothing has ever activated.
type holding struct {
	exists bool
	sun    int64
}

func (c *Client) account(ctx context.Context, a account) (holding, error) {
	raw, err := c.node.post(ctx, "/wallet/getaccount", map[string]any{"address": a.hex(), "visible": false})
	if err != nil {
		return holding{}, err
	}
	var h holding
	var named account
	keys := 0
	w := newWalk(raw)
	w.Object(func(key []byte) {
		keys++
		switch string(key) {
		case "address":
			named, h.exists = hexAccount(w.Text())
		case "balance":
			h.sun = w.number()
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return holding{}, err
	}
	if keys > 0 && (!h.exists || named != a) {
		return holding{}, fmt.Errorf("%w: it was asked for an account and answered something else", chain.ErrNode)
	}
	return h, nil
}

// trial is the outcome of a call that changes nothing.
type trial struct {
	Result struct {
		Result  bool   `json:"result"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"result"`
	EnergyUsed     int64    `json:"energy_used"`
	ConstantResult []string `json:"constant_result"`
	Transaction    struct {
		Ret []struct {
			Ret string `json:"ret"`
		} `json:"ret"`
	} `json:"transaction"`
}

// refusedError: the call, tried, does not go through as things are now.
type refusedError struct{ cause string }

func (e *refusedError) Error() string {
	return "tron: the network refuses this transfer as things are now: " + e.cause
}

// try calls a contract without a transaction. What the contract refuses is a
// *refusedError.
func (c *Client) try(ctx context.Context, from, contract account, data []byte) (*trial, error) {
	var t trial
	err := c.node.ask(ctx, "/wallet/triggerconstantcontract", map[string]any{
		"owner_address": from.hex(), "contract_address": contract.hex(), "data": fmt.Sprintf("%x", data), "visible": false,
	}, &t)
	if err != nil {
		return nil, err
	}
	failed := !t.Result.Result || t.Result.Message != "" || t.Result.Code != "" && t.Result.Code != "SUCCESS"
	for _, r := range t.Transaction.Ret {
		failed = failed || r.Ret != "" && r.Ret != done && r.Ret != "SUCCESS"
	}
	if failed {
		if t.Result.Code == "" && t.Result.Message == "" && len(t.Transaction.Ret) == 0 {
			return nil, fmt.Errorf("%w: a call was answered with nothing", chain.ErrNode)
		}
		return nil, &refusedError{c.node.Redact(strings.TrimSpace(t.Result.Code + " " + t.Result.Message))}
	}
	if t.EnergyUsed < 0 {
		return nil, fmt.Errorf("%w: a call that takes %d energy", chain.ErrNode, t.EnergyUsed)
	}
	return &t, nil
}

func balanceCall(owner account) []byte {
	data := make([]byte, 36)
	copy(data, selBalanceOf[:])
	copy(data[16:], owner[:])
	return data
}

// tokenBalance reads balanceOf. A contract that is not there is an error, not zero.
func (c *Client) tokenBalance(ctx context.Context, contract, owner account) (*big.Int, error) {
	held, err := c.number(ctx, owner, contract, balanceCall(owner))
	if err != nil {
		return nil, fmt.Errorf("%w: balanceOf: %w", chain.ErrNode, err)
	}
	return held, nil
}

var errNoNumber = errors.New("tron: a call did not return a number: no such contract there?")

// number calls a contract for one number.
func (c *Client) number(ctx context.Context, from, contract account, data []byte) (*big.Int, error) {
	t, err := c.try(ctx, from, contract, data)
	if err != nil {
		return nil, err
	}
	var word [32]byte
	if len(t.ConstantResult) != 1 || !transport.Unhex(word[:], []byte(t.ConstantResult[0])) {
		return nil, errNoNumber
	}
	return new(big.Int).SetBytes(word[:]), nil
}

// Balance reads what an address holds at the head, exactly, in whole coins. A
// node of one's own may count what waits in its pool.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	cur, err := c.currency(currency)
	if err != nil {
		return decimal.Zero, err
	}
	owner, err := c.own(a)
	if err != nil {
		return decimal.Zero, err
	}
	if err := c.rightChain(ctx); err != nil {
		return decimal.Zero, err
	}
	has, err := c.holds(ctx, cur, owner)
	if err != nil {
		return decimal.Zero, err
	}
	return coins(has, cur.Decimals), nil
}

func (c *Client) holds(ctx context.Context, cur *chain.Currency, owner account) (*big.Int, error) {
	if cur.Native() {
		h, err := c.account(ctx, owner)
		return big.NewInt(h.sun), err
	}
	contract, err := c.own(chain.Address(cur.Contract))
	if err != nil {
		return nil, err
	}
	return c.tokenBalance(ctx, contract, owner)
}

func (c *Client) currency(code string) (*chain.Currency, error) {
	cur, err := c.o.Registry.Currency(code)
	if err == nil && cur.Network != c.o.Network {
		err = fmt.Errorf("%w: %s is on %s, not on %s", chain.ErrCurrency, code, cur.Network, c.o.Network)
	}
	return cur, err
}

// History lists the executed transfers to an address from height from to height
// to, both included, by reading all of these blocks, with the identities of Scan.
// The error says so where they are more than Options.HistorySpan.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	if _, err := c.own(a); err != nil {
		return nil, err
	}
	if err := c.rightChain(ctx); err != nil {
		return nil, err
	}
	if from = max(from, 1); to < from {
		return nil, nil
	}
	if to-from >= c.o.HistorySpan {
		return nil, fmt.Errorf("tron: History of %d blocks at once: ask for at most Options.HistorySpan, %d", to-from+1, c.o.HistorySpan)
	}
	head, err := c.head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Height < to {
		return nil, fmt.Errorf("%w: its head is %d, asked up to %d", chain.ErrBehind, head.Height, to)
	}
	last, err := c.at(ctx, from-1)
	if err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for at := last.Block; at.Height < to; {
		next, err := c.blocks(ctx, at, int(min(to-at.Height, int64(c.o.Group))))
		if err != nil {
			return nil, err
		}
		scanned, err := c.match(ctx, next, follow.Only{a})
		if err != nil {
			return nil, err
		}
		for i := range scanned {
			out = append(out, scanned[i].Transfers...)
		}
		at = next[len(next)-1].Block
	}
	return out, nil
}
