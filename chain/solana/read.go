package solana

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// account is what the chain keeps under an address; the zero one is not there.
type account struct {
	lamports uint64
	owner    key
	data     []byte
}

func (a *account) exists() bool { return a.lamports > 0 }

// accounts reads several at one moment.
func (c *Client) accounts(ctx context.Context, commitment string, keys ...key) ([]account, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = string(k.text())
	}
	var answer struct {
		Value []*struct {
			Lamports uint64   `json:"lamports"`
			Owner    string   `json:"owner"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	if err := c.node.ask(ctx, &answer, "getMultipleAccounts", names, object{"encoding": "base64", "commitment": commitment}); err != nil {
		return nil, err
	}
	if len(answer.Value) != len(keys) {
		return nil, fmt.Errorf("%w: %d accounts were asked for, %d answered", chain.ErrNode, len(keys), len(answer.Value))
	}
	out := make([]account, len(keys))
	for i, v := range answer.Value {
		if v == nil {
			continue
		}
		owner, ok := parseKey(v.Owner)
		if !ok || len(v.Data) != 2 || v.Data[1] != "base64" {
			return nil, fmt.Errorf("%w: an account without owner or data", chain.ErrNode)
		}
		data, err := base64.StdEncoding.DecodeString(v.Data[0])
		if err != nil {
			return nil, fmt.Errorf("%w: an account's data is not base64", chain.ErrNode)
		}
		out[i] = account{v.Lamports, owner, data}
	}
	return out, nil
}

// holding is a token account.
type holding struct {
	mint, owner key
	amount      uint64
	frozen      bool
	wantsMemo   bool
}

// Sizes and places in the data of the token programs.
const (
	mintSize     = 82
	accountSize  = 165
	amountAt     = 64
	kindAt       = 165 // where extensions follow, what they extend
	kindMint     = 1
	kindAccount  = 2
	extensionsAt = 166
)

// holding reads a token account of a program; false where it is none.
func (a *account) holding(program key) (holding, bool) {
	d := a.data
	if a.owner != program || len(d) < accountSize || d[108] == 0 || len(d) > accountSize && d[kindAt] != kindAccount {
		return holding{}, false
	}
	h := holding{mint: key(d[:32]), owner: key(d[32:64]), amount: binary.LittleEndian.Uint64(d[amountAt:]), frozen: d[108] == 2}
	all, ok := extensions(d)
	for _, x := range all {
		h.wantsMemo = h.wantsMemo || x.kind == memoTransfer && len(x.value) == 1 && x.value[0] == 1
	}
	return h, ok
}

// Balance reads what an address holds at the head, exactly, in whole coins: of a
// token in its associated token account.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	cur, err := c.currency(currency)
	if err != nil {
		return decimal.Zero, err
	}
	owner, err := c.anyKey(a)
	if err != nil {
		return decimal.Zero, err
	}
	if err := c.ready(ctx); err != nil {
		return decimal.Zero, err
	}
	t := c.tokenOf(cur)
	if t == nil {
		all, err := c.accounts(ctx, confirmed, owner)
		if err != nil {
			return decimal.Zero, err
		}
		return whole(all[0].lamports, cur.Decimals), nil
	}
	all, err := c.accounts(ctx, confirmed, associated(owner, t.program(), t.mint))
	if err != nil || !all[0].exists() {
		return decimal.Zero, err
	}
	h, ok := all[0].holding(t.program())
	if !ok || h.mint != t.mint || h.owner != owner {
		return decimal.Zero, nil // the account is another's now
	}
	return whole(h.amount, cur.Decimals), nil
}

func (c *Client) currency(code string) (*chain.Currency, error) {
	cur, err := c.o.Registry.Currency(code)
	if err == nil && cur.Network != c.o.Network {
		err = fmt.Errorf("%w: %s is on %s, not on %s", chain.ErrCurrency, code, cur.Network, c.o.Network)
	}
	return cur, err
}

// tokenOf is nil for the native coin.
func (c *Client) tokenOf(cur *chain.Currency) *token {
	if cur.Native() {
		return nil
	}
	mint, _ := parseKey(cur.Contract)
	return c.tokens[mint]
}

// History lists the executed transfers to an address from height from to height to,
// both included, with the identities of Scan, as far as the node's index of addresses
// knows them: SOL and registered tokens. The error says so where they are more than
// Options.HistoryLimit.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	owner, err := c.own(a)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	if from = max(from, 1); to < from {
		return nil, nil
	}
	head, err := c.newest(ctx, confirmed)
	if err != nil {
		return nil, err
	}
	first, err := c.at(ctx, from, head)
	if err != nil {
		return nil, err
	}
	last, err := c.at(ctx, to, head)
	if err != nil {
		return nil, err
	}
	ask := []key{owner}
	for _, t := range c.tokens {
		ask = append(ask, associated(owner, t.program(), t.mint))
	}
	found := map[string]int64{}
	for _, k := range ask {
		if err := c.signaturesOf(ctx, k, first.slot, last.slot, found); err != nil {
			return nil, err
		}
	}
	return c.executed(ctx, a, found)
}

// signaturesOf adds the transactions that name an account, by slot.
func (c *Client) signaturesOf(ctx context.Context, k key, from, to int64, found map[string]int64) error {
	const page = 1000
	before := ""
	for {
		o := object{"limit": page, "commitment": confirmed, "minContextSlot": to}
		if before != "" {
			o["before"] = before
		}
		var all []struct {
			Signature string `json:"signature"`
			Slot      int64  `json:"slot"`
			Err       any    `json:"err"`
		}
		if err := c.node.ask(ctx, &all, "getSignaturesForAddress", k.text(), o); err != nil {
			return err
		}
		for _, s := range all {
			if s.Slot >= from && s.Slot <= to && s.Err == nil {
				found[s.Signature] = s.Slot
			}
		}
		if len(found) > c.o.HistoryLimit {
			return fmt.Errorf("solana: History of over %d transactions: ask for fewer blocks, or raise Options.HistoryLimit", c.o.HistoryLimit)
		}
		if len(all) < page || all[len(all)-1].Slot < from || all[len(all)-1].Signature == before {
			return nil
		}
		before = all[len(all)-1].Signature
	}
}

// executed reads transactions and what they moved to an address.
func (c *Client) executed(ctx context.Context, a chain.Address, found map[string]int64) ([]chain.Transfer, error) {
	ids := make([]string, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		x, y := found[ids[i]], found[ids[j]]
		return x < y || x == y && ids[i] < ids[j]
	})
	var slots []int64
	for _, id := range ids {
		slots = append(slots, found[id])
	}
	headers, err := c.read(ctx, slices.Compact(slots), "none", confirmed)
	if err != nil {
		return nil, err
	}
	blocks := map[int64]*block{}
	for _, b := range headers {
		blocks[b.slot] = b
	}
	out := make([][]chain.Transfer, len(ids))
	err = follow.Each(len(ids), c.o.Parallel, func(i int) error {
		t, slot, err := c.transaction(ctx, ids[i])
		if err == nil && (t == nil || slot != found[ids[i]]) {
			err = fmt.Errorf("%w: it lists transaction %s of slot %d and does not give it", chain.ErrNode, ids[i], found[ids[i]])
		}
		if err == nil {
			out[i], err = c.match(ctx, &block{header: blocks[slot].header, txs: []blockTx{*t}}, follow.Only{a})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(out...), nil
}

// transaction reads one with what it did; nil where the node has none.
func (c *Client) transaction(ctx context.Context, id string) (*blockTx, int64, error) {
	k := c.node.call(ctx, "getTransaction", id, object{"encoding": "base64", "commitment": confirmed, "maxSupportedTransactionVersion": anyVersion})
	if k.Err != nil || k.Null() {
		return nil, 0, k.Err
	}
	var place struct {
		Slot int64 `json:"slot"`
	}
	if err := k.Into(&place); err != nil {
		return nil, 0, follow.Torn(err)
	}
	w := walkOf(k.Out)
	t := readBlockTx(w)
	t.id = id
	return &t, place.Slot, follow.Torn(w.End())
}
