package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/simulation"
)

// anvil is Ethereum as a world needs it, on a real node: it mines when told, at
// the world's time, and has the listed tokens where mainnet has them. What moved
// is read from the node's blocks here, past the library's client.
type anvil struct {
	t      testing.TB
	o      sim.Options
	url    string
	rpc    *rpc.Client
	http   *http.Client // the library's way to the node
	rng    *rand.Rand
	at     map[string]common.Address // contracts by name
	slots  map[common.Address]uint64 // of tokens: where balances are kept
	blocks []mined                   // the canonical ones, by height
	branch int64
	people int
	theirs map[string]*sent         // what customers sent, by hash
	raws   map[string]hexutil.Bytes // what anybody ever sent
	made   []string                 // hashes of it, in order
	held   map[string]decimal.Decimal
}

// mined is a block and what it moved.
type mined struct {
	chain.Block
	txs   []string
	moved []chain.Transfer
}

// TestWorldOnAnvil plays worlds whose chain is a real EVM node, as many as
// -world.anvil says. Another run of one may differ where the node does, so they
// are not cut down.
func TestWorldOnAnvil(t *testing.T) {
	t.Parallel()
	first := firstSeed()
	last := first + *onAnvil - 1
	if testing.Short() {
		last = min(first, last)
	}
	if *seed != 0 {
		first, last = *seed, *seed
	}
	for s := first; s <= last; s++ {
		t.Run(fmt.Sprint("seed=", s), func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Nodes = map[chain.Network]func(sim.Options) (simulation.Chain, error){
				"ETH": func(o sim.Options) (simulation.Chain, error) { return openAnvil(t, o), nil },
			}
			r := simulation.World{Seed: s, Options: o}.Run(t.Context())
			if r.Failure != nil || *seed != 0 {
				t.Log(r.Story(0))
			}
			t.Log(r.Counts, r.Struck)
			require.Nil(t, r.Failure)
		})
	}
}

func openAnvil(t testing.TB, o sim.Options) *anvil {
	t.Helper()
	c := &anvil{
		t: t, o: o, url: testenv.Anvil(t, "--chain-id", "1", "--timestamp", fmt.Sprint(o.Now().Add(-time.Hour).Unix())).URL(),
		rng: rand.New(rand.NewPCG(o.Seed, 0xa11)), at: map[string]common.Address{}, slots: map[common.Address]uint64{},
		theirs: map[string]*sent{}, raws: map[string]hexutil.Bytes{}, held: map[string]decimal.Decimal{},
	}
	way := &http.Transport{}
	t.Cleanup(way.CloseIdleConnections)
	c.http = &http.Client{Transport: tap{way, c}}
	var err error
	c.rpc, err = rpc.DialOptions(t.Context(), c.url, rpc.WithHTTPClient(&http.Client{Transport: way}))
	require.NoError(t, err)
	t.Cleanup(c.rpc.Close)
	c.read()
	c.deploy()
	return c
}

// ask calls the node itself.
func (c *anvil) ask(out any, method string, params ...any) {
	c.t.Helper()
	require.NoError(c.t, c.rpc.CallContext(c.t.Context(), out, method, params...), method)
}

// tap remembers what the library sends.
type tap struct {
	http.RoundTripper
	c *anvil
}

func (x tap) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	type call struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	all := make([]call, 1)
	if bytes.HasPrefix(body, []byte("[")) {
		err = json.Unmarshal(body, &all)
	} else {
		err = json.Unmarshal(body, &all[0])
	}
	for _, one := range all {
		var raw hexutil.Bytes
		if one.Method == "eth_sendRawTransaction" && json.Unmarshal(one.Params[0], &raw) == nil {
			x.c.keep(raw)
		}
	}
	if err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Body = io.NopCloser(bytes.NewReader(body))
	return x.RoundTripper.RoundTrip(q)
}

// keep remembers a raw transaction and returns its hash.
func (c *anvil) keep(raw hexutil.Bytes) string {
	hash := crypto.Keccak256Hash(raw).Hex()
	if c.raws[hash] == nil {
		c.raws[hash], c.made = raw, append(c.made, hash)
	}
	return hash
}

func (c *anvil) Family() chain.Family { return chain.AccountFamily }

func (c *anvil) Client() chain.Client {
	depth := c.o.Finality
	if depth > 0 {
		depth++ // the head itself is one deep
	}
	client, err := evm.New(evm.Options{
		Network: c.o.Network, ChainID: 1, Registry: c.o.Registry, URL: c.url, HTTP: c.http, FinalDepth: depth,
	})
	require.NoError(c.t, err)
	return client
}

func (c *anvil) head() *mined { return &c.blocks[len(c.blocks)-1] }

func (c *anvil) Height() int64 { return c.head().Height }

func (c *anvil) Mine(n int) int64 {
	for range n {
		c.ask(nil, "evm_setNextBlockTimestamp", max(c.o.Now().Unix(), c.head().Time.Unix()))
		c.ask(nil, "evm_mine")
		c.read()
	}
	return c.Height()
}

// ReorgTo takes blocks back and mines others in their place, empty ones: what was
// in the old ones waits again, in another order.
func (c *anvil) ReorgTo(depth, length int, drop ...string) (int64, error) {
	if depth >= len(c.blocks) {
		return 0, sim.ErrDepth
	}
	var back []string
	for _, b := range c.blocks[len(c.blocks)-depth:] {
		back = append(back, b.txs...)
	}
	back = append(back, c.waiting()...)
	c.ask(nil, "anvil_dropAllTransactions")
	c.ask(nil, "anvil_rollback", depth)
	c.blocks = c.blocks[:len(c.blocks)-depth]
	c.branch++ // else a block might be the one that it replaces
	c.ask(nil, "anvil_setCoinbase", common.BigToAddress(big.NewInt(c.branch)))
	c.Mine(length)
	c.rng.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
	c.resend(slices.DeleteFunc(back, func(h string) bool { return slices.Contains(drop, h) }))
	return c.Height(), nil
}

// waiting lists what is in the mempool.
func (c *anvil) waiting() (out []string) {
	var pool map[string]map[common.Address]map[string]struct {
		Hash common.Hash `json:"hash"`
	}
	c.ask(&pool, "txpool_content")
	for _, h := range c.made {
		for _, part := range pool {
			for _, by := range part {
				for _, tx := range by {
					if tx.Hash.Hex() == h {
						out = append(out, h)
					}
				}
			}
		}
	}
	return out
}

func (c *anvil) Drop(hashes ...string) {
	for _, h := range hashes {
		var gone any
		c.ask(&gone, "anvil_dropTransaction", h)
	}
}

// ReviveAll sends all that was ever sent again. What can never be mined is refused.
func (c *anvil) ReviveAll() int {
	back := slices.Clone(c.made)
	c.rng.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
	return c.resend(back)
}

// resend sends again what is in no block, and reports how much the node took.
func (c *anvil) resend(hashes []string) (taken int) {
	in := map[string]bool{}
	for i := range c.blocks {
		for _, h := range c.blocks[i].txs {
			in[h] = true
		}
	}
	for _, h := range hashes {
		if in[h] {
			continue
		}
		if x := c.theirs[h]; x != nil {
			c.grant(x)
		}
		if c.rpc.CallContext(c.t.Context(), nil, "eth_sendRawTransaction", c.raws[h]) == nil {
			taken++
		}
	}
	return taken
}

// read looks at the block that is the head now.
func (c *anvil) read() {
	clear(c.held)
	var b struct {
		Number, Timestamp hexutil.Uint64
		Hash, ParentHash  common.Hash
		Transactions      []struct {
			Hash  common.Hash
			From  common.Address
			To    *common.Address
			Value *hexutil.Big
		}
	}
	c.ask(&b, "eth_getBlockByNumber", "latest", true)
	x := mined{Block: chain.Block{
		Height: int64(b.Number), Hash: b.Hash.Hex(), Parent: b.ParentHash.Hex(), Time: time.Unix(int64(b.Timestamp), 0).UTC(),
	}}
	for _, t := range b.Transactions {
		x.txs = append(x.txs, t.Hash.Hex())
		var r types.Receipt
		c.ask(&r, "eth_getTransactionReceipt", t.Hash)
		if r.Status != types.ReceiptStatusSuccessful {
			continue
		}
		move := func(ordinal int, token common.Address, from, to common.Address, units *big.Int) {
			if units.Sign() == 0 {
				return
			}
			m := chain.Transfer{
				Tx: t.Hash.Hex(), Ordinal: ordinal, Block: x.Block, Currency: "ETH", From: chain.Address(from.Hex()), To: chain.Address(to.Hex()),
				Amount: decimal.NewFromBigInt(units, -18),
			}
			if token != (common.Address{}) {
				m.Currency, m.Contract, m.Amount = "", token.Hex(), decimal.NewFromBigInt(units, 0)
				if cur := c.o.Registry.ByContract(c.o.Network, token.Hex()); cur != nil {
					m.Currency, m.Amount = cur.Code, decimal.NewFromBigInt(units, -int32(cur.Decimals))
				}
			}
			x.moved = append(x.moved, m)
		}
		if t.To != nil {
			move(-1, common.Address{}, t.From, *t.To, t.Value.ToInt())
		}
		for i, l := range r.Logs {
			if len(l.Topics) == 3 && l.Topics[0] == crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")) {
				move(i, l.Address, common.BytesToAddress(l.Topics[1][:]), common.BytesToAddress(l.Topics[2][:]), new(big.Int).SetBytes(l.Data))
			}
		}
		if s := c.theirs[t.Hash.Hex()]; s != nil && s.within {
			move(-2, common.Address{}, *t.To, s.to, t.Value.ToInt())
		}
	}
	require.Equal(c.t, len(c.blocks), int(x.Height), "the node is where it was left")
	c.blocks = append(c.blocks, x)
}

func (c *anvil) Transfers(to chain.Address) (out []chain.Transfer) {
	for i := range c.blocks {
		for _, x := range c.blocks[i].moved {
			if to == "" || x.To == to {
				out = append(out, x)
			}
		}
	}
	return out
}

func (c *anvil) Balance(a chain.Address, code string) decimal.Decimal {
	key := string(a) + code
	if d, ok := c.held[key]; ok {
		return d
	}
	cur, err := c.o.Registry.Currency(code)
	require.NoError(c.t, err)
	var units *big.Int
	if cur.Native() {
		var v hexutil.Big
		c.ask(&v, "eth_getBalance", a, "latest")
		units = v.ToInt()
	} else {
		var word hexutil.Bytes
		c.ask(&word, "eth_call", map[string]any{
			"to": cur.Contract, "data": hexutil.Bytes(packed("balanceOf(address)", common.HexToAddress(string(a)).Bytes())),
		}, "latest")
		units = new(big.Int).SetBytes(word)
	}
	c.held[key] = decimal.NewFromBigInt(units, -int32(cur.Decimals))
	return c.held[key]
}

// Audit wants the node's blocks to be those that were read.
func (c *anvil) Audit() error {
	for _, x := range c.blocks[max(0, len(c.blocks)-50):] {
		var b struct{ Hash common.Hash }
		c.ask(&b, "eth_getBlockByNumber", hexutil.Uint64(x.Height), false)
		if b.Hash.Hex() != x.Hash {
			return fmt.Errorf("block %d was %s and is %s", x.Height, x.Hash, b.Hash)
		}
	}
	return nil
}
