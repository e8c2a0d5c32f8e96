package utxo

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func someScript(seed byte) []byte {
	hash := make([]byte, 20)
	hash[0] = seed
	return scriptOf(p2wpkh, hash)
}

func addressOf(t testing.TB, c *Client, script []byte) chain.Address {
	t.Helper()
	a, ok := c.address(script)
	require.True(t, ok)
	return a
}

func root(f *fakeNode) []chain.Block { return []chain.Block{{Hash: f.hashes[0]}} }

// TestD07_BlockWithoutATransactionIsNoBlock: a node leaves one out, doubles the
// last, gives another block, or cuts the bytes off.
func TestD07_BlockWithoutATransactionIsNoBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	script := someScript(1)
	first, second := serialize(payTx("1", 1000, script)), serialize(payTx("2", 1000, script))
	f.mine(first, second)
	w := follow.Only{addressOf(t, c, script)}
	s, err := c.Scan(t.Context(), root(f), w, 5)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 2)

	whole := f.blocks[1]
	doubled := slices.Concat(whole, second) // the Merkle root of three is that of four with the last twice
	doubled[headerSize]++
	less := slices.Clone(whole[:len(whole)-len(second)])
	less[headerSize]--
	moved := slices.Concat(whole[:headerSize+1+len(coinbaseTx(1, []byte{0x51}))], second, first)
	for what, bad := range map[string][]byte{
		"one less": less, "the last one doubled": doubled, "another order": moved, "cut off": whole[:len(whole)-1],
		"more": append(slices.Clone(whole), 0), "another block": f.blocks[0], "header alone": whole[:headerSize], "nothing": {},
		"no transactions": append(slices.Clone(whole[:headerSize]), 0),
	} {
		f.set("getblock", func([]any) (any, *fakeError) { return hex.EncodeToString(bad), nil })
		s, err := c.Scan(t.Context(), root(f), w, 5)
		require.ErrorIs(t, err, chain.ErrNode, what)
		require.Empty(t, s.Blocks)
	}
}

// TestD07_MissingBlockBelowTheHeadIsAnError: the node's head is there, a block
// on the way is not.
func TestD07_MissingBlockBelowTheHeadIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	f.mine()
	f.mine()
	f.set("getblockhash", func(p []any) (any, *fakeError) {
		if p[0] == 1.0 {
			return nil, &fakeError{-8, "Block height out of range"}
		}
		return f.usual("getblockhash", p)
	})
	_, err := c.Scan(t.Context(), root(f), follow.Only{""}, 5)
	require.ErrorIs(t, err, chain.ErrNode)
}

// TestX02_NodeWhoseQueueIsFull says so in words, with status 503, and 500 before Core 22.
func TestX02_NodeWhoseQueueIsFull(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusInternalServerError} {
		for _, batch := range []int{1, 50} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte("Work queue depth exceeded"))
			}))
			c := newFake(t).client(t, "BTC", func(o *Options) { o.URL, o.Batch = s.URL, batch })
			_, err := c.Tip(t.Context())
			s.Close()
			clienttest.Limited(t, err, 0, status)
		}
	}
}

// TestD18_ForkThatKeptTheGenesis: the genesis is right, the checkpoint is not,
// or is not reached yet.
func TestD18_ForkThatKeptTheGenesis(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.mine()
	at := func(height int64, hash string) *Client {
		return f.client(t, "BTC", func(o *Options) { o.Params.Checkpoint = Checkpoint{height, hash} })
	}
	_, err := at(1, f.hashes[1]).Tip(t.Context())
	require.NoError(t, err)
	for _, c := range []*Client{at(1, strings.Repeat("0", 64)), f.client(t, "BTC", func(o *Options) { o.Params.Genesis = f.hashes[1] })} {
		_, err = c.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrWrongNet)
		_, err = c.Scan(t.Context(), root(f), follow.Only{""}, 1)
		require.ErrorIs(t, err, chain.ErrWrongNet)
		_, err = c.Pending(t.Context(), follow.Only{""})
		require.ErrorIs(t, err, chain.ErrWrongNet)
		_, err = c.EstimateFee(t.Context(), chain.Intent{})
		require.ErrorIs(t, err, chain.ErrWrongNet)
	}
	_, err = at(5, f.hashes[1]).Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrBehind)
}

// TestD04_OutputsWithoutValueAreNothing and what no address stands for is not
// reported; each output of one address is.
func TestD04_OutputsWithoutValueAreNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	script := someScript(1)
	tx := payTx("1", 0, script)
	tx.AddTxOut(wire.NewTxOut(700, script))
	tx.AddTxOut(wire.NewTxOut(800, []byte{0x6a, 1, 2}))
	tx.AddTxOut(wire.NewTxOut(700, script))
	f.mine(serialize(tx))
	s, err := c.Scan(t.Context(), root(f), follow.Only{addressOf(t, c, script)}, 5)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 2)
	require.Equal(t, 1, s.Blocks[0].Transfers[0].Ordinal)
	require.Equal(t, 3, s.Blocks[0].Transfers[1].Ordinal)
}

// TestD19_ImpossibleAmountsAreErrors: a negative output is no deposit and no
// silence.
func TestD19_ImpossibleAmountsAreErrors(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	tx := payTx("1", -1, someScript(1))
	f.mine(serialize(tx))
	_, err := c.Scan(t.Context(), root(f), follow.Only{addressOf(t, c, someScript(1))}, 5)
	require.ErrorIs(t, err, chain.ErrNode)
}

// TestD15_CoinbaseMustMature: new coins need more confirmations than others.
func TestD15_CoinbaseMustMature(t *testing.T) {
	t.Parallel()
	for network, want := range map[chain.Network]int64{"BTC": 100, "LTC": 100, "DOGE": 240} {
		f := newFake(t)
		c := f.client(t, network)
		script := scriptOf(p2pkh, make([]byte, 20))
		raw, hash := makeBlock(f.hashes[0], 2, nil, [][]byte{coinbaseTx(1, script), serialize(payTx("1", 5000, script))}, nil)
		f.put(raw, hash)
		s, err := c.Scan(t.Context(), root(f), follow.Only{addressOf(t, c, script)}, 5)
		require.NoError(t, err)
		got := s.Blocks[0].Transfers
		require.Len(t, got, 2)
		require.Equal(t, want, got[0].Confirmable)
		require.Empty(t, got[0].Spends)
		require.Zero(t, got[1].Confirmable)
	}
}

// TestMergeMinedBlocks: Dogecoin's headers carry another chain's proof of work.
func TestMergeMinedBlocks(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "DOGE")
	script := scriptOf(p2pkh, make([]byte, 20))
	proof := slices.Concat(
		coinbaseTx(7, []byte{0x51}), make([]byte, 32), // the parent's coinbase, and its block
		[]byte{2}, make([]byte, 64), []byte{0, 0, 0, 0}, // branch to its header, place
		[]byte{1}, make([]byte, 32), []byte{3, 0, 0, 0}, // branch to ours, place
		make([]byte, headerSize),
	)
	txs := [][]byte{coinbaseTx(1, []byte{0x51}), serialize(payTx("1", 5_0000_0000, script))}
	raw, hash := makeBlock(f.hashes[0], 0x620104, proof, txs, nil)
	f.put(raw, hash)
	s, err := c.Scan(t.Context(), root(f), follow.Only{addressOf(t, c, script)}, 5)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 1)
	require.Equal(t, "5", s.Blocks[0].Transfers[0].Amount.String())
	_, err = f.client(t, "BTC").Scan(t.Context(), root(f), follow.Only{""}, 5)
	require.ErrorIs(t, err, chain.ErrNode, "on another network these bytes are none")
}

// TestExtensionBlocks: Litecoin's last transaction pays what leaves the
// extension block, which follows it.
func TestExtensionBlocks(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "LTC")
	script := someScript(1)
	plain := serialize(payTx("hogex", 7000, script))
	hogex := slices.Concat(plain[:4], []byte{0, 8}, plain[4:len(plain)-4], []byte{0}, plain[len(plain)-4:])
	raw, hash := makeBlock(f.hashes[0], 0x20000000, nil, [][]byte{coinbaseTx(1, []byte{0x51}), serialize(payTx("1", 5000, script)), hogex}, []byte{1, 2, 3, 4})
	f.put(raw, hash)
	s, err := c.Scan(t.Context(), root(f), follow.Only{addressOf(t, c, script)}, 5)
	require.NoError(t, err)
	got := s.Blocks[0].Transfers
	require.Len(t, got, 2)
	require.EqualValues(t, pegMaturity, got[1].Confirmable)
	require.Equal(t, payTx("hogex", 7000, script).TxHash().String(), got[1].Tx)

	// In the mempool a transaction carries its part of the extension block.
	both := slices.Concat(plain[:4], []byte{0, 8}, plain[4:len(plain)-4], []byte{1, 9, 9, 9, 9, 9}, plain[len(plain)-4:])
	only := []byte{2, 0, 0, 0, 0, 8, 0, 0, 1, 7, 7, 7, 0, 0, 0, 0}
	f.pool[got[1].Tx], f.pool[strings.Repeat("ab", 32)] = both, only
	for range 2 {
		waits, err := c.Pending(t.Context(), follow.Only{addressOf(t, c, script)})
		require.NoError(t, err)
		require.Len(t, waits, 1)
		require.Equal(t, got[1].Tx, waits[0].Tx)
	}
}

// TestFN04_AWaitingTransactionOfAnUnknownFormIsPassedOver: its block will tell; what waits
// beside it is seen.
func TestFN04_AWaitingTransactionOfAnUnknownFormIsPassedOver(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	script := someScript(1)
	tx := payTx("a", 1000, script)
	f.pool[tx.TxHash().String()] = serialize(tx)
	f.pool[strings.Repeat("ab", 32)] = []byte{9, 0, 0, 0, 0, 0x40, 1, 2, 3} // a flag that is not known
	c := f.client(t, "BTC")
	for range 2 {
		waits, err := c.Pending(t.Context(), follow.Only{addressOf(t, c, script)})
		require.NoError(t, err)
		require.Len(t, waits, 1)
	}
	require.Equal(t, 2, f.asked["getrawtransaction"], "each is read once")

	f.pool[strings.Repeat("cd", 32)] = serialize(payTx("b", 1000, script))
	_, err := c.Pending(t.Context(), follow.Only{addressOf(t, c, script)})
	require.ErrorIs(t, err, chain.ErrNode, "another than was asked for")
}

// TestX01_MempoolIsReadOnceAndInBounds: each waiting transaction is asked for
// once; more than the bounds allow is an error and never a part.
func TestX01_MempoolIsReadOnceAndInBounds(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	script := someScript(1)
	for i := range 25 {
		tx := payTx(string(rune('a'+i)), 1000, script)
		f.pool[tx.TxHash().String()] = serialize(tx)
	}
	c := f.client(t, "BTC", func(o *Options) { o.PoolFetch, o.Batch = 10, 4 })
	w := follow.Only{addressOf(t, c, script)}
	for range 2 {
		waits, err := c.Pending(t.Context(), w)
		require.ErrorIs(t, err, chain.ErrNode)
		require.Empty(t, waits)
	}
	for range 3 {
		waits, err := c.Pending(t.Context(), w)
		require.NoError(t, err)
		require.Len(t, waits, 25)
	}
	require.Equal(t, 25, f.asked["getrawtransaction"])
	clear(f.pool)
	waits, err := c.Pending(t.Context(), w)
	require.NoError(t, err)
	require.Empty(t, waits)
	require.Zero(t, c.pool.bytes)
}

// TestD14_ARefusalIsNoTransfer: HTTP 200 with an error, another id, half of the
// answers, or a text that is none.
func TestD14_ARefusalIsNoTransfer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `[{}]`, `"rate limited"`, `rate limited`, `{"error":"rate limited"}`,
		`[{"id":1,"result":0,"error":null}]`, `[{"id":9,"result":0,"error":null},{"id":1,"result":1}]`,
		`{"id":null,"result":null,"error":{"code":-32600,"message":"batches are not served"}}`,
		`[{"id":1,"result":"` + f.hashes[0] + `"},{"id":1,"result":5}]`, `[{"id":1,"result":"` + f.hashes[0] + `"},{"id":2,"result":5}`,
		`[{"id":1,"result":"` + f.hashes[0] + `","error":null},{"id":2,"result":-5,"error":null}]`,
		`[{"id":1,"result":"` + f.hashes[0] + `","error":null},{"id":2,"result":1.5,"error":null}]`,
		`[{"id":1,"result":"` + f.hashes[0] + `","error":null},{"id":2,"result":null,"error":null}]`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		c := f.client(t, "BTC", func(o *Options) { o.URL = s.URL })
		_, err := c.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode, body)
		got, err := c.Scan(t.Context(), root(f), follow.Only{""}, 3)
		require.ErrorIs(t, err, chain.ErrNode, body)
		require.Empty(t, got.Blocks)
		s.Close()
	}
}

// TestD14_AnswersInPartsAreNone: each call has its answer, or none has.
func TestD14_AnswersInPartsAreNone(t *testing.T) {
	t.Parallel()
	const whole = `[{"id":2,"result":2,"error":null},{"id":1,"result":null,"error":{"code":-5,"message":"no"}}]`
	a, b := transport.NewCall("a"), transport.NewCall("b")
	require.NoError(t, (&transport.RPC{}).Split([]byte(whole), []*transport.Call{a, b}))
	require.Error(t, a.Err)
	require.Equal(t, "2", string(b.Out))
	for _, bad := range []string{
		`[]`, `[{"id":1,"result":1}]`, `[{"id":1,"result":1},{"id":1,"result":2}]`, `[{"id":1,"result":1},{"id":3,"result":2}]`,
		`[{"id":1,"result":1},{"id":2}]`, whole[:len(whole)-1], whole + whole, whole + "x", `[{"id":1,"result":1},{"id":2,"result":[[[}]`,
	} {
		require.ErrorIs(t, (&transport.RPC{}).Split([]byte(bad), []*transport.Call{transport.NewCall("a"), transport.NewCall("b")}), chain.ErrNode, bad)
	}
}

// TestW07_OnlyTheBytesProveARejection: whatever the node says of a transaction
// that could be one, it may still be on its way.
func TestW07_OnlyTheBytesProveARejection(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	tx := payTx("1", 1000, someScript(1))
	good := proof.NewStored("BTC", tx.TxHash().String(), serialize(tx))
	for _, e := range []fakeError{
		{-26, "bad-txns-inputs-missingorspent"},
		{-25, "Missing inputs"},
		{-26, "min relay fee not met"},
		{-26, "txn-mempool-conflict"},
		{-26, "insufficient fee, rejecting replacement"},
		{-22, "TX decode failed"},
		{-26, "scriptpubkey"},
		{-26, "mandatory-script-verify-flag-failed"},
		{-27, "Transaction already in block chain"},
		{-32601, "Method not found"},
		{0, ""},
	} {
		f.set("sendrawtransaction", func([]any) (any, *fakeError) { return nil, &e })
		err := c.Broadcast(t.Context(), good)
		require.Error(t, err, e.Message)
		require.NotErrorIs(t, err, chain.ErrRejected, e.Message)
	}
	f.pool[good.Tx()] = good.Raw()
	require.NoError(t, c.Broadcast(t.Context(), good), "refused, but it is there")
	f.set("sendrawtransaction", func([]any) (any, *fakeError) { return strings.Repeat("0", 64), nil })
	require.Error(t, c.Broadcast(t.Context(), good), "taken under another name")

	twice := payTx("1", 1000, someScript(1))
	twice.AddTxIn(twice.TxIn[0])
	for what, bad := range map[string]chain.Stored{
		"no bytes": proof.NewStored("BTC", good.Tx(), nil), "more bytes": proof.NewStored("BTC", good.Tx(), append(slices.Clone(good.Raw()), 0)),
		"another id": proof.NewStored("BTC", strings.Repeat("0", 64), good.Raw()), "an input twice": proof.NewStored("BTC", twice.TxHash().String(), serialize(twice)),
	} {
		require.ErrorIs(t, c.Broadcast(t.Context(), bad), chain.ErrRejected, what)
	}
	err := c.Broadcast(t.Context(), proof.NewStored("LTC", good.Tx(), good.Raw()))
	require.Error(t, err)
	require.NotErrorIs(t, err, chain.ErrRejected)
}

// TestW14_AbsurdFees: what an estimator says is bounded below by what nodes
// relay and above by MaxRate.
func TestW14_AbsurdFees(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	estimate := func(v any) (int64, error) {
		f.set("estimatesmartfee", func([]any) (any, *fakeError) { return v, nil })
		return c.rate(t.Context())
	}
	for _, absurd := range []string{"0.01000001", "1", "1e3", "21000000", "99999999999", "1e30"} {
		_, err := estimate(map[string]any{"feerate": jsonNumber(absurd)})
		require.Error(t, err, absurd)
	}
	_, err := estimate(map[string]any{"feerate": jsonNumber("0.5")})
	require.ErrorIs(t, err, chain.ErrTooDear)
	_, err = estimate(map[string]any{"feerate": "NaN"})
	require.Error(t, err)
	for text, want := range map[string]int64{"0.00012345": 12345, "0.000123451": 12346, "1e-8": 1000, "0": 10_000, "-1": 10_000} {
		got, err := estimate(map[string]any{"feerate": jsonNumber(text)})
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	got, err := estimate(map[string]any{"errors": []string{"Insufficient data or no feerate found"}})
	require.NoError(t, err)
	require.EqualValues(t, 10_000, got)
	f.set("getmempoolinfo", func([]any) (any, *fakeError) { return map[string]any{"mempoolminfee": jsonNumber("0.00020000")}, nil })
	got, err = estimate(map[string]any{"feerate": jsonNumber("0.00001")})
	require.NoError(t, err)
	require.EqualValues(t, 20_000, got, "a full mempool takes nothing below")
	f.set("getmempoolinfo", func([]any) (any, *fakeError) { return map[string]any{"mempoolminfee": jsonNumber("0.5")}, nil })
	_, err = c.rate(t.Context())
	require.ErrorIs(t, err, chain.ErrTooDear)

	for attempt, last := 1, int64(0); attempt < 200; attempt++ {
		rate := c.raised(1000, attempt)
		require.LessOrEqual(t, rate, c.p.MaxRate)
		if rate < c.p.MaxRate {
			require.GreaterOrEqual(t, rate, last+c.p.Increment)
		}
		last = rate
	}
}

// TestW14_ChildFees: a child is never priced below its parent, nor above MaxRate.
func TestW14_ChildFees(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	parent := serialize(payTx("parent", 50_000, form(testKey("parent"), p2wpkh)))
	size := int64(len(parent)) // without a witness
	in := chain.Intent{Currency: "BTC", To: addressOf(t, c, form(testKey("child"), p2wpkh))}
	last := chain.Fee{}
	for _, x := range []struct{ rate, want int64 }{{1000, 10_000}, {9_000, 10_125}, {50_000, 56_250}, {500_000, 562_500}} {
		fee, err := c.ChildFee(t.Context(), in, parent, ledger.Amount(x.rate*size/1000))
		require.NoError(t, err)
		p, err := parseParams(fee.Params)
		require.NoError(t, err)
		require.InDelta(t, x.want, p.Rate, 20)
		require.InDelta(t, (x.want-x.rate)*size/1000, p.Parent, 5, "what the parent lacks")
		require.Greater(t, fee.Cost, ledger.Amount(p.Parent))
		last = fee
	}
	_, err := c.ChildFee(t.Context(), in, parent, ledger.Amount(950_000*size/1000))
	require.ErrorIs(t, err, chain.ErrTooDear)
	_, err = c.ChildFee(t.Context(), in, parent[1:], 1000)
	require.ErrorIs(t, err, chain.ErrRejected)
	_, err = c.plan(&chain.Order{
		Intent: chain.Intent{Currency: "BTC", To: in.To, Amount: 10_000}, Fee: last, Change: in.To,
		Coins: []chain.Coin{{Outpoint: fmt.Sprintf("%064x:0", 1), Address: in.To, Amount: 50_000_000}},
	})
	require.ErrorIs(t, err, chain.ErrRejected, "a child pays nobody else")
}

type jsonNumber string

func (n jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// TestK02_NothingOfTheEndpointIsInErrors: URL, user, password, token and key.
func TestK02_NothingOfTheEndpointIsInErrors(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	secrets := []string{"canary-user", "canary-password", "canary-path", "canary-query", "canary-token"}
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		text := r.URL.String() + " " + user + " " + password + " " + r.Header.Get("X-Token")
		_, _ = w.Write([]byte(`[{"id":1,"error":{"code":1,"message":"` + text + `"}},{"id":2,"error":{"code":1,"message":"` + text + `"}}]`))
	}))
	defer hostile.Close()
	host := strings.TrimPrefix(hostile.URL, "http://")
	for _, at := range []string{host, "127.0.0.1:1"} {
		c := f.client(t, "BTC", func(o *Options) {
			o.URL = "http://canary-user:canary-password@" + at + "/canary-path?key=canary-query"
			o.Header = http.Header{"X-Token": {"canary-token"}}
		})
		_, err := c.Tip(t.Context())
		require.Error(t, err)
		for _, s := range append(secrets, at) {
			require.NotContains(t, err.Error(), s)
		}
	}
	c := f.client(t, "BTC", func(o *Options) { o.User, o.Password = "canary-user", "canary-password" })
	_, err := c.Tip(t.Context())
	require.NoError(t, err)
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	coins := payTx("coins", 9000, someScript(1), someScript(2))
	spend := func(n uint32) *wire.MsgTx {
		tx := wire.NewMsgTx(2)
		tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: coins.TxHash(), Index: n}, nil, nil))
		tx.AddTxOut(wire.NewTxOut(8000, someScript(3)))
		return tx
	}
	bad, good := spend(0), spend(1)
	for _, tx := range []*wire.MsgTx{coins, bad, good} {
		f.mine(serialize(tx))
	}
	first := chain.Attempt{Tx: bad.TxHash().String()}
	say := func(field, value string) func() {
		return func() {
			f.set("getrawtransaction", func(p []any) (any, *fakeError) {
				answer, refused := f.transaction(p)
				if told, ok := answer.(map[string]any); ok && p[0] == first.Tx {
					told[field] = value
				}
				return answer, refused
			})
		}
	}
	clienttest.Desk{At: f.client(t, "BTC")}.ToldWrong(t, first, chain.Attempt{Tx: good.TxHash().String()}, []clienttest.Spoilt{
		clienttest.As("another", say("hex", hex.EncodeToString(serialize(good)))),
		clienttest.As("no transaction", say("hex", "zz")),
		clienttest.As("in a block that is not there", say("blockhash", strings.Repeat("ab", 32))),
		clienttest.As("in what is no block", say("blockhash", "seven")),
	}, func() {
		f.set("getrawtransaction", func([]any) (any, *fakeError) { return nil, &fakeError{-28, "Loading block index"} })
	})
}

// TestStatusSaysWhatTheNodeLacks: without an index of transactions nothing is
// known, which is said and not guessed.
func TestStatusSaysWhatTheNodeLacks(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(t, "BTC")
	f.set("getrawtransaction", func([]any) (any, *fakeError) {
		return nil, &fakeError{-5, "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries."}
	})
	_, err := c.Status(t.Context(), chain.Attempt{Tx: f.hashes[0]})
	require.ErrorIs(t, err, errNoIndex)
	_, err = c.Balance(t.Context(), "BTC", addressOf(t, c, someScript(1)))
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestConflictIsFoundBlocksBack and no further than SearchBlocks.
func TestConflictIsFoundBlocksBack(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.set("gettxout", func([]any) (any, *fakeError) { return nil, nil })
	made := payTx("made", 9000, someScript(1))
	f.mine(serialize(made))
	rival := wire.NewMsgTx(2)
	rival.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: made.TxHash()}, nil, nil))
	rival.AddTxOut(wire.NewTxOut(8000, someScript(2)))
	block := f.mine(serialize(rival))
	for range 30 {
		f.mine()
	}
	ours := chain.Attempt{Tx: payTx("ours", 1, nil).TxHash().String(), Spends: []string{made.TxHash().String() + ":0"}}
	ask := func(c *Client) chain.Status {
		all, err := c.Status(t.Context(), ours)
		require.NoError(t, err)
		return all[0]
	}
	c := f.client(t, "BTC")
	for range 2 {
		got := ask(c)
		require.Equal(t, chain.Conflicted, got.State)
		require.Equal(t, rival.TxHash().String(), got.By)
		require.Equal(t, block, got.Block.Hash)
		require.EqualValues(t, 31, got.Confirmations)
	}
	before := f.asked["getblock"]
	ask(c)
	require.Equal(t, before, f.asked["getblock"], "found once, it is remembered")
	short := f.client(t, "BTC", func(o *Options) { o.SearchBlocks = 10 })
	require.Equal(t, chain.Unknown, ask(short).State)

	// A coin that is in no block proves nothing.
	ours.Spends = []string{strings.Repeat("12", 32) + ":0"}
	require.Equal(t, chain.Unknown, ask(c).State)
}

func TestVarintsHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{0, 1, 0xfc, 0xfd, 0xffff, 0x10000, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
		var b []byte
		switch {
		case n < 0xfd:
			b = []byte{byte(n)}
		case n <= 0xffff:
			b = binary.LittleEndian.AppendUint16([]byte{0xfd}, uint16(n))
		case n <= math.MaxUint32:
			b = binary.LittleEndian.AppendUint32([]byte{0xfe}, uint32(n))
		default:
			b = binary.LittleEndian.AppendUint64([]byte{0xff}, n)
		}
		r := &cursor{b: b}
		require.Equal(t, n, r.varint())
		require.False(t, r.bad)
	}
	for _, long := range [][]byte{{0xfd, 1, 0}, {0xfe, 1, 0, 0, 0}, {0xff, 1, 0, 0, 0, 0, 0, 0, 0}, {0xfd}, {}} {
		r := &cursor{b: long}
		r.varint()
		require.True(t, r.bad)
	}
}
