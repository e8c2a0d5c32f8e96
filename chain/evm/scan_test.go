package evm

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

func TestD01_RevertedIsNeverCredited(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	paid, coin, token := ether(bob, 5), ether(bob, 7), tokens(transferLog(usdt, alice, bob, big.NewInt(9)))
	coin.failed, token.failed = true, true
	f.mine(coin, paid, token)
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1, "only the executed one")
	require.Equal(t, paid.hash.Hex(), got[0].Tx)
	require.Equal(t, -1, got[0].Ordinal)
	require.True(t, dec("0.000000000000000005").Equal(got[0].Amount), got[0].Amount)
	require.Equal(t, []string{alice.Hex() + "/0"}, got[0].Spends)

	// A status that is not understood is not executed.
	f.lie("eth_getTransactionReceipt", func(p []json.RawMessage) (any, *fakeError, bool) {
		b, i := f.find(text(p[0]))
		r := b.receipt(i)
		r["status"] = "0x2"
		return r, nil, true
	})
	require.Empty(t, all(scan(t, c, trail, watch(bob))))
}

func TestD01_LogsWithoutReceiptThatSaysSo(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.lie("eth_getTransactionReceipt", func(p []json.RawMessage) (any, *fakeError, bool) {
		b, i := f.find(text(p[0]))
		r := b.receipt(i)
		r["status"] = "0x0"
		return r, nil, true
	})
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode, "logs and receipt contradict each other")
}

func TestD02_SuccessWithoutALogMovesNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(tokens())
	require.Empty(t, all(scan(t, c, trail, watch(bob))))
}

func TestD03_AnotherContractIsAnotherAsset(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(tokens(transferLog(mallory, alice, bob, big.NewInt(5e6)), transferLog(usdt, alice, bob, big.NewInt(25e5))))
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 2)
	require.Empty(t, got[0].Currency)
	require.Equal(t, string(checksum(mallory)), got[0].Contract)
	require.Equal(t, "USDTERC20", got[1].Currency)
	require.True(t, dec("2.5").Equal(got[1].Amount))
}

func TestD04_ZeroAmountsAreNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(ether(bob, 0), tokens(transferLog(usdt, bob, bob, new(big.Int)), transferLog(usdt, alice, bob, new(big.Int))))
	require.Empty(t, all(scan(t, c, trail, watch(bob))))

	both := tokens(transferLog(usdt, alice, bob, new(big.Int)), transferLog(usdt, alice, bob, big.NewInt(1)))
	both.to = bob
	f.mine(both)
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1, "beside something it is still nothing")
	require.Equal(t, 1, got[0].Ordinal)
}

// What a token logs is held against what balanceOf says of the two blocks, and against
// that of now where the node has thrown the blocks' state away.
func TestD05_AuditedTokenThatDeliversLess(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(tokensAudited)
	trail := begin(t, c)
	b := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(100))))
	held, now, gone, broken := int64(99), int64(100), false, false
	f.lie("eth_call", func(p []json.RawMessage) (any, *fakeError, bool) {
		var at struct{ BlockHash common.Hash }
		switch _ = json.Unmarshal(p[1], &at); {
		case broken:
			return nil, &fakeError{Code: 3, Message: "execution reverted"}, true
		case at.BlockHash == common.Hash{}:
			return common.BigToHash(big.NewInt(now)), nil, true
		case gone:
			return nil, &fakeError{Code: -32000, Message: "missing trie node"}, true
		case at.BlockHash == b.hash:
			return common.BigToHash(big.NewInt(held)), nil, true
		}
		return common.Hash{}, nil, true
	})
	said := func() (unproven, contradicted bool) {
		t.Helper()
		got := all(scan(t, c, trail, watch(bob)))
		require.Len(t, got, 1)
		return got[0].Unproven, got[0].Contradicted
	}
	unproven, contradicted := said()
	require.True(t, unproven && contradicted, "logged 100, arrived 99")
	held = 100
	unproven, contradicted = said()
	require.False(t, unproven || contradicted)
	gone = true
	unproven, _ = said()
	require.False(t, unproven, "the address holds as much by now")
	now = 99
	unproven, contradicted = said()
	require.True(t, unproven)
	require.False(t, contradicted, "it may have been swept since")
	broken = true
	unproven, contradicted = said()
	require.True(t, unproven && contradicted, "a broken contract stops its own deposits, not the network")
}

func TestD07_LaggingNodeEmptyLogs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))

	// It has the block, but not its logs yet.
	f.says("eth_getLogs", []any{})
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)

	// The same, and it cannot give all receipts at once.
	f.refuses("eth_getBlockReceipts", -32601, "method not found")
	_, err = c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
	f.lie("eth_getBlockReceipts", nil)

	// Another backend answers, which does not know the block.
	f.says("eth_getBlockTransactionCountByHash", nil)
	_, err = c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
	f.lie("eth_getBlockTransactionCountByHash", nil)

	f.refuses("eth_getLogs", -32000, "unknown block")
	_, err = c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)

	f.lie("eth_getLogs", nil)
	require.Len(t, all(scan(t, c, trail, watch(bob))), 1)
}

// A backend that does not know the hash may answer [] even where the header's
// bloom tells nothing.
func TestD07_UnknownHashWithoutBloom(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	b := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		if at := f.at(text(p[0])); at == b {
			m := b.json(string(p[1]) == "true").(map[string]any)
			m["logsBloom"] = "0x" + string(make0(512))
			return m, nil, true
		}
		return nil, nil, false
	})
	f.says("eth_getLogs", []any{})
	f.says("eth_getBlockTransactionCountByHash", nil)
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
}

func make0(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return b
}

func TestD07_ReceiptsOfAnotherBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(ether(bob, 5))
	f.lie("eth_getTransactionReceipt", func(p []json.RawMessage) (any, *fakeError, bool) {
		b, i := f.find(text(p[0]))
		r := b.receipt(i)
		r["blockHash"] = fakeHash()
		return r, nil, true
	})
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
	f.says("eth_getTransactionReceipt", nil)
	_, err = c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
}

func TestD07_HoleBelowTheHead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	hole := f.mine(ether(bob, 5))
	f.mine()
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		return nil, nil, text(p[0]) == quantity(hole.height)
	})
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode, "a block that is missing below the head is no end of the chain")
}

func TestD07_HistoryOfALaggingNode(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	begin(t, c)
	x := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.mine()
	f.says("eth_getBalance", "0x0")
	f.lie("eth_getLogs", func(p []json.RawMessage) (any, *fakeError, bool) {
		return x.logs(), nil, !strings.Contains(string(p[0]), "blockHash")
	})
	got, err := c.History(t.Context(), checksum(bob), 0, 2)
	require.NoError(t, err)
	require.Len(t, got, 1)

	// Another backend answers for the range, which has not come so far.
	f.says("eth_getLogs", []any{})
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) { return nil, nil, text(p[0]) == quantity(2) })
	_, err = c.History(t.Context(), checksum(bob), 0, 2)
	require.ErrorIs(t, err, chain.ErrNode)
	_, err = c.History(t.Context(), checksum(bob), 0, 9)
	require.ErrorIs(t, err, chain.ErrBehind)
}

func TestD03_LogOfATransactionThatIsNotInTheBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	b := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		if f.at(text(p[0])) != b {
			return nil, nil, false
		}
		m := b.json(true).(map[string]any)
		m["transactions"] = []any{}
		return m, nil, true
	})
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1, "a system transaction: its receipt is of the block")
	require.Empty(t, got[0].Spends)
	f.says("eth_getTransactionReceipt", nil)
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
}

// A node that gives logs of a branch that it has left says so of each.
func TestR02_RemovedLogIsOfNoBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	b := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.lie("eth_getLogs", func([]json.RawMessage) (any, *fakeError, bool) {
		logs := b.logs()
		logs[0].(map[string]any)["removed"] = true
		return logs, nil, true
	})
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode)
	f.lie("eth_getLogs", nil)
	require.Len(t, all(scan(t, c, trail, watch(bob))), 1)
}

func TestD09_ManyPaymentsInOneTransaction(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	x := tokens(
		transferLog(usdt, alice, bob, big.NewInt(1)), transferLog(usdt, alice, mallory, big.NewInt(2)),
		transferLog(usdt, alice, bob, big.NewInt(1)), transferLog(usdt, alice, bob, big.NewInt(3)))
	x.to, x.value = bob, big.NewInt(4)
	f.mine(tokens(transferLog(usdt, alice, mallory, big.NewInt(2))), x)
	var ordinals []int
	for _, g := range all(scan(t, c, trail, watch(bob))) {
		ordinals = append(ordinals, g.Ordinal)
	}
	require.Equal(t, []int{-1, 0, 2, 3}, ordinals)
}

func TestD18_WrongChain(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(ether(bob, 5))
	f.mu.Lock()
	f.chainID = 56 // the same endpoint, changed under our feet
	f.mu.Unlock()
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrWrongNet)
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrWrongNet)
	_, err = c.Balance(t.Context(), "ETH", checksum(bob))
	require.ErrorIs(t, err, chain.ErrWrongNet)
	_, err = c.Nonce(t.Context(), checksum(bob))
	require.ErrorIs(t, err, chain.ErrWrongNet)
	_, err = c.BlockAt(t.Context(), 0)
	require.ErrorIs(t, err, chain.ErrWrongNet)
	_, err = c.Status(t.Context())
	require.ErrorIs(t, err, chain.ErrWrongNet)
}

func TestD18_NodeBehindIsNoFork(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	for range 3 {
		f.mine()
	}
	trail := append(begin(t, c), chain.Block{})[:1]
	for range 2 {
		f.mine()
		s := scan(t, c, trail, watch())
		trail = append(trail, s.Blocks[0].Block)
	}
	gone := f.drop(2)
	_, err := c.Scan(t.Context(), trail, watch(), 10)
	require.ErrorIs(t, err, chain.ErrBehind)
	f.blocks = append(f.blocks, gone...)
	s := scan(t, c, trail, watch())
	require.Zero(t, s.Rewound)
	require.Empty(t, s.Blocks)
}

func TestD19_AbsurdAmountsAndMalformedLogs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	top := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	good := transferLog(usdt, alice, bob, top)
	short, long, nft, dirty := transferLog(usdt, alice, bob, top), transferLog(usdt, alice, bob, top), transferLog(usdt, alice, bob, top), transferLog(usdt, alice, bob, top)
	short.data = short.data[:31]
	long.data = append(long.data, 0)
	nft.topics = append(nft.topics, common.Hash{31: 1})
	dirty.topics[2][0] = 1
	f.mine(tokens(short, long, nft, dirty, good))
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1)
	require.Equal(t, 4, got[0].Ordinal)
	require.Equal(t, top, got[0].Amount.Shift(6).BigInt(), "exact, whatever it is")
}

func TestD19_OversizedAnswerIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(func(o *Options) { o.MaxBody = 100 })
	_, err := c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.ErrorContains(t, err, "over 100 bytes")
}

// TestX01_ABlockOfMoreLogsThanAnAnswerHolds: anybody can fill a block with transfers. They are read from receipts
// then, as many at once as an answer holds, and nothing is missed.
func TestX01_ABlockOfMoreLogsThanAnAnswerHolds(t *testing.T) {
	t.Parallel()
	for _, receipts := range []bool{true, false} { // the node has eth_getBlockReceipts
		f := newFake(t)
		if !receipts {
			f.refuses("eth_getBlockReceipts", -32601, "method not found")
		}
		c := f.client(func(o *Options) { o.MaxBody = 40 << 10 })
		trail := begin(t, c)
		var txs []*fakeTx
		for range 12 {
			var logs []fakeLog
			for range 30 {
				logs = append(logs, transferLog(usdt, bob, alice, big.NewInt(5)))
			}
			txs = append(txs, tokens(append(logs, transferLog(usdt, alice, bob, big.NewInt(7)))...))
		}
		f.mine(txs...)
		f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
		var got []chain.Transfer
		for len(trail) < 3 {
			s := scan(t, c, trail, watch(bob))
			require.NotEmpty(t, s.Blocks)
			got = append(got, all(s)...)
			for _, b := range s.Blocks {
				trail = append(trail, b.Block)
			}
		}
		require.Len(t, got, 13, "receipts %v", receipts)
	}
}

func TestR01_ForkOfEveryDepth(t *testing.T) {
	t.Parallel()
	for depth := 1; depth <= 5; depth++ {
		f := newFake(t)
		c := f.client(func(o *Options) { o.Group, o.Batch = 2, 3 })
		f.mine()
		trail := begin(t, c)
		for range 5 {
			f.mine(ether(bob, 5))
		}
		for _, b := range scan(t, c, trail, watch(bob)).Blocks {
			trail = append(trail, b.Block)
		}
		require.Len(t, trail, 6)
		gone := f.drop(depth)
		moved := gone[0].txs[0]
		f.mine()
		for range depth {
			f.mine()
		}
		last := f.mine(moved)
		s := scan(t, c, trail, watch(bob))
		require.Equal(t, depth, s.Rewound)
		require.Len(t, s.Blocks, depth+2)
		require.Equal(t, trail[5-depth].Hash, s.Blocks[0].Parent)
		got := all(s)
		require.Len(t, got, 1, "the moved one; the others are gone")
		require.Equal(t, moved.hash.Hex(), got[0].Tx)
		require.Equal(t, last.hash.Hex(), got[0].Block.Hash)
	}
}

func TestR01_DeepFork(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	f.mine()
	trail := begin(t, c)
	f.drop(1)
	f.mine()
	f.mine()
	_, err := c.Scan(t.Context(), trail, watch(), 10)
	require.ErrorIs(t, err, chain.ErrDeepFork)
}

func TestR01_ForkWhileReading(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	f.mine()
	trail := begin(t, c)
	f.mine()
	f.mine()
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		b := f.at(text(p[0]))
		if b == nil || text(p[0]) != quantity(3) {
			return nil, nil, false
		}
		m := b.json(true).(map[string]any)
		m["parentHash"] = fakeHash()
		return m, nil, true
	})
	s := scan(t, c, trail, watch())
	require.Len(t, s.Blocks, 1, "what links is given, the rest is read again")
}

func TestR02_OrdinalSurvivesBeingMinedElsewhere(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	f.mine()
	trail := begin(t, c)
	x := tokens(transferLog(usdt, alice, mallory, big.NewInt(1)), transferLog(usdt, alice, bob, big.NewInt(1)))
	other := tokens(transferLog(usdt, alice, mallory, big.NewInt(1)), transferLog(usdt, alice, mallory, big.NewInt(1)))
	f.mine(x)
	first := all(scan(t, c, trail, watch(bob)))
	f.drop(1)
	f.mine(other, x)
	second := all(scan(t, c, trail, watch(bob)))
	require.Len(t, first, 1)
	require.Len(t, second, 1)
	require.Equal(t, first[0].Tx, second[0].Tx)
	require.Equal(t, 1, first[0].Ordinal)
	require.Equal(t, 1, second[0].Ordinal)
}

func TestR04_FlipFlop(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	f.mine()
	trail := begin(t, c)
	root := trail[0]
	a := f.mine(ether(bob, 1))
	f.drop(1)
	b := f.mine(ether(bob, 2))
	for i := range 6 {
		top := a
		if i%2 == 1 {
			top = b
		}
		f.mu.Lock()
		f.blocks[len(f.blocks)-1] = top
		f.mu.Unlock()
		s := scan(t, c, trail, watch(bob))
		require.Equal(t, len(trail)-1, s.Rewound, "round %d", i)
		require.Len(t, s.Blocks, 1)
		require.Equal(t, top.hash.Hex(), s.Blocks[0].Hash)
		trail = []chain.Block{root, s.Blocks[0].Block}
	}
}

func TestCatchUpInGroups(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(func(o *Options) { o.Group, o.Batch = 4, 1 })
	trail := begin(t, c)
	for range 11 {
		f.mine(ether(bob, 1))
	}
	w := watch(bob)
	s, err := c.Scan(t.Context(), trail, w, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 10)
	require.Len(t, all(s), 10)
	require.Equal(t, 3, w.syncs, "addresses are read after blocks, before they are matched")
}

func TestD01_InternalIsProvenByTraceOrUnproven(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	b := f.mine(ether(bob, 5), ether(mallory, 7))
	f.lie("eth_getBalance", func(p []json.RawMessage) (any, *fakeError, bool) {
		var at struct{ BlockHash common.Hash }
		_ = json.Unmarshal(p[1], &at)
		if at.BlockHash == b.hash {
			return quantity(105), nil, true
		}
		return "0x0", nil, true
	})
	w := watch(bob)
	require.Len(t, all(scan(t, c, trail, w)), 1)
	require.Zero(t, f.asked["eth_getBalance"], "nothing is asked where nobody waits")

	w.opens = []common.Address{bob}
	got := all(scan(t, c, trail, w))
	require.Len(t, got, 2)
	require.False(t, got[0].Unproven)
	require.True(t, got[1].Unproven)
	require.True(t, dec("0.0000000000000001").Equal(got[1].Amount), "what no transaction explains")

	// A trace that explains it makes it a transfer; failed calls and delegate calls do not count.
	call := func(kind string, value int64, extra map[string]any) map[string]any {
		m := map[string]any{"type": kind, "from": mallory, "to": bob, "value": quantity(value)}
		for k, v := range extra {
			m[k] = v
		}
		return m
	}
	f.says("debug_traceBlockByHash", []any{
		map[string]any{"txHash": b.txs[0].hash, "result": call("CALL", 5, nil)},
		map[string]any{"txHash": b.txs[1].hash, "result": call("CALL", 7, map[string]any{"calls": []any{
			call("CALL", 1000, map[string]any{"error": "execution reverted", "calls": []any{call("CALL", 50, nil)}}),
			call("DELEGATECALL", 100, map[string]any{"calls": []any{call("CALL", 40, nil)}}),
			call("CALL", 60, nil),
		}})},
	})
	got = all(scan(t, c, trail, w))
	require.Len(t, got, 3)
	require.Equal(t, []int{-1, -2, -3}, []int{got[0].Ordinal, got[1].Ordinal, got[2].Ordinal})
	require.Equal(t, b.txs[1].hash.Hex(), got[2].Tx)
	require.False(t, got[1].Unproven || got[2].Unproven)

	// A pruned node cannot be asked; what transactions prove still counts.
	f.refuses("eth_getBalance", -32000, "missing trie node 0xabc")
	require.Len(t, all(scan(t, c, trail, w)), 1)
	f.refuses("eth_getBalance", -32000, "internal error")
	_, err := c.Scan(t.Context(), trail, w, 10)
	require.ErrorIs(t, err, chain.ErrNode)
}

// The Registry is held against the tokens themselves: a decimal more or less would
// credit ten times as much. A token that does not say, or is not there, is let pass.
func TestW18_DecimalsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.says("decimals()", word(18))
	c := f.client()
	_, err := c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrUnits)
	require.ErrorContains(t, err, "has 18, the Registry says 6")
	f.says("decimals()", word(6))
	_, err = c.Tip(t.Context())
	require.NoError(t, err, "all tokens that are listed there have six")
	before := f.asked["decimals()"]
	_, err = c.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, f.asked["decimals()"], "asked once")

	f.refuses("decimals()", 3, "execution reverted")
	_, err = f.client().Tip(t.Context())
	require.NoError(t, err)
}
