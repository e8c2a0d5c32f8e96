package evm

import (
	"crypto/ecdsa"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
)

// gethTown is a go-ethereum process of a town. It holds no keys of the people,
// and its blocks are made of what the pool has, read whole, as it sorts new
// transactions in its own time.
type gethTown struct {
	*town
	keys map[common.Address]*ecdsa.PrivateKey
	time uint64
}

func openGethTown(t *testing.T) *town {
	t.Helper()
	n := &town{url: testenv.Geth(t).URL(), preset: Options{Network: "ETH", ChainID: 1337, FinalityTags: true}}
	g := &gethTown{town: n, keys: map[common.Address]*ecdsa.PrivateKey{}}
	var head struct{ Timestamp hexutil.Uint64 }
	n.ask(t, &head, "eth_getBlockByNumber", "latest", false)
	g.time = uint64(head.Timestamp)
	var rich []common.Address
	n.ask(t, &rich, "eth_accounts")
	for i := range payers {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte(fmt.Sprint("payer ", i))))
		require.NoError(t, err)
		a := crypto.PubkeyToAddress(key.PublicKey)
		g.keys[a], n.accounts = key, append(n.accounts, a)
		million := new(big.Int).Mul(oneEther, big.NewInt(1e6))
		n.ask(t, nil, "eth_sendTransaction", txArgs{"from": rich[0], "to": a, "value": (*hexutil.Big)(million), "nonce": hexutil.Uint64(i), "gas": "0x5208", "maxFeePerGas": "0x174876e800", "maxPriorityFeePerGas": "0x1"})
	}
	n.geth = g
	g.mine(t, 1)
	n.settle(t)
	return n
}

type pooled map[string]struct{ Hash common.Hash }

// next is the nonce after all that the pool has of somebody.
func (g *gethTown) next(t testing.TB, a common.Address) uint64 {
	t.Helper()
	nonce := g.mined(t, a)
	var pool struct{ Pending, Queued pooled }
	g.ask(t, &pool, "txpool_contentFrom", a)
	for has := true; has; nonce++ {
		key := strconv.FormatUint(nonce, 10)
		_, has = pool.Pending[key]
		if _, queued := pool.Queued[key]; queued {
			has = true
		}
		if !has {
			break
		}
	}
	return nonce
}

// waiting is what can be mined of the pool, each sender's in order.
func (g *gethTown) waiting(t testing.TB) []common.Hash {
	t.Helper()
	var pool struct{ Pending, Queued map[common.Address]pooled }
	g.ask(t, &pool, "txpool_content")
	senders := slices.AppendSeq(slices.Collect(maps.Keys(pool.Pending)), maps.Keys(pool.Queued))
	slices.SortFunc(senders, common.Address.Cmp)
	var out []common.Hash
	for _, a := range slices.Compact(senders) {
		for nonce := g.mined(t, a); ; nonce++ {
			key := strconv.FormatUint(nonce, 10)
			tx, ok := pool.Pending[a][key]
			if !ok {
				tx, ok = pool.Queued[a][key]
			}
			if !ok {
				break
			}
			out = append(out, tx.Hash)
		}
	}
	return out
}

func (g *gethTown) mined(t testing.TB, a common.Address) uint64 {
	t.Helper()
	var n hexutil.Uint64
	g.ask(t, &n, "eth_getTransactionCount", a, "latest")
	return uint64(n)
}

// send signs for one of the people. The pool takes back what a rewritten block had in its
// own time: where it did so between the look at it and the sending, the nonce is the next
// one by then.
func (g *gethTown) send(t testing.TB, from common.Address, args txArgs) common.Hash {
	t.Helper()
	gas, err := hexutil.DecodeUint64(args["gas"].(string))
	require.NoError(t, err)
	tx := &types.DynamicFeeTx{ChainID: big.NewInt(g.preset.ChainID), Gas: gas, GasTipCap: big.NewInt(gwei), GasFeeCap: big.NewInt(100 * gwei)}
	if to, ok := args["to"].(common.Address); ok {
		tx.To = &to
	}
	if v, ok := args["value"].(*hexutil.Big); ok {
		tx.Value = v.ToInt()
	}
	switch d := args["data"].(type) {
	case hexutil.Bytes:
		tx.Data = d
	case string:
		tx.Data = common.FromHex(d)
	}
	for {
		tx.Nonce = g.next(t, from)
		signed := types.MustSignNewTx(g.keys[from], types.LatestSignerForChainID(tx.ChainID), tx)
		raw, err := signed.MarshalBinary()
		require.NoError(t, err)
		var h common.Hash
		refused := g.try(t, &h, "eth_sendRawTransaction", hexutil.Bytes(raw))
		if refused == nil {
			return h
		}
		require.NotEqual(t, tx.Nonce, g.next(t, from), "%s", refused.Message)
	}
}

// mine adds blocks, the first with everything in the pool that can be mined. The pool
// hears of them a moment later: until it has let go of what is mined it knows old
// balances.
func (g *gethTown) mine(t testing.TB, blocks int) {
	t.Helper()
	raws := []hexutil.Bytes{}
	mined := g.waiting(t)
	for _, h := range mined {
		var raw hexutil.Bytes
		g.ask(t, &raw, "eth_getRawTransactionByHash", h)
		raws = append(raws, raw)
	}
	for range blocks {
		g.commit(t, raws)
		raws = []hexutil.Bytes{}
	}
	for start := time.Now(); !g.forgot(t, mined); {
		require.Less(t, time.Since(start), time.Minute, "the pool keeps what is mined")
	}
}

// forgot reports whether the pool has none of these transactions.
func (g *gethTown) forgot(t testing.TB, txs []common.Hash) bool {
	t.Helper()
	var pool struct{ Pending, Queued map[common.Address]pooled }
	g.ask(t, &pool, "txpool_content")
	for _, sender := range slices.AppendSeq(slices.Collect(maps.Values(pool.Pending)), maps.Values(pool.Queued)) {
		for _, tx := range sender {
			if slices.Contains(txs, tx.Hash) {
				return false
			}
		}
	}
	return true
}

// rewrite replaces the last blocks by empty ones. The pool hears first that they are gone:
// where it learned that together with the new blocks, it would take back by itself what
// the old blocks had, also what the test drops.
func (g *gethTown) rewrite(t testing.TB, depth int) {
	t.Helper()
	head := g.height()
	lost := map[common.Address]uint64{} // the first nonce of each sender in these blocks
	for h := head; h > head-int64(depth); h-- {
		var b struct {
			Transactions []struct {
				From  common.Address
				Nonce hexutil.Uint64
			}
		}
		g.ask(t, &b, "eth_getBlockByNumber", quantity(h), true)
		for _, tx := range slices.Backward(b.Transactions) {
			lost[tx.From] = uint64(tx.Nonce)
		}
	}
	g.ask(t, nil, "debug_setHead", quantity(head-int64(depth)))
	for a, nonce := range lost {
		for start := time.Now(); ; {
			var pooled hexutil.Uint64
			g.ask(t, &pooled, "eth_getTransactionCount", a, "pending")
			if uint64(pooled) == nonce {
				break
			}
			require.Less(t, time.Since(start), time.Minute, "the pool does not hear of the blocks that are gone")
		}
	}
	for range depth {
		g.commit(t, []hexutil.Bytes{})
	}
}

// commit makes a block of exactly these transactions.
func (g *gethTown) commit(t testing.TB, raws []hexutil.Bytes) {
	t.Helper()
	g.time += 12
	g.ask(t, nil, "testing_commitBlockV1", map[string]any{
		"timestamp": hexutil.Uint64(g.time), "prevRandao": common.Hash{}, "suggestedFeeRecipient": common.Address{},
		"withdrawals": []any{}, "parentBeaconBlockRoot": common.Hash{},
	}, raws, nil)
}

// TestGethConformance puts the client to the suite on a go-ethereum, which offers
// traces where asked to.
func TestGethConformance(t *testing.T) {
	t.Parallel()
	n := openGethTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		h := n.harness(t)
		h.Finality = 1000 // this node calls nothing final
		h.WrongChain = func(t testing.TB) chain.Client { return n.connect(t, n.url, 1) }
		return h
	})
}
