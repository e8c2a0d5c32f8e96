package solana

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// tamper stands between a client and its node.
type tamper struct {
	http.Handler
	change atomic.Pointer[func(question, answer []byte) []byte]
}

// through makes a client whose node's answers a test can change.
func (n *town) through(change func(question, answer []byte) []byte, more ...func(*Options)) (*Client, *tamper) {
	n.t.Helper()
	x := &tamper{}
	x.change.Store(&change)
	x.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		resp, err := http.Post(n.URL, "application/json", bytes.NewReader(question)) //nolint:noctx // a test's proxy
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		_, _ = w.Write((*x.change.Load())(question, answer))
	})
	s := httptest.NewServer(x)
	n.t.Cleanup(s.Close)
	return n.newClient(append([]func(*Options){func(o *Options) { o.URL = s.URL }}, more...)...), x
}

func same(_, answer []byte) []byte { return answer }

// scan reads what came after a block to some addresses.
func (n *town) scan(c *Client, from chain.Block, a ...chain.Address) ([]chain.Transfer, error) {
	n.t.Helper()
	var out []chain.Transfer
	trail := []chain.Block{from}
	for range 20 {
		s, err := c.Scan(n.t.Context(), trail, follow.Only(a), 10)
		if err != nil {
			return nil, err
		}
		if len(s.Blocks) == 0 {
			break
		}
		for _, b := range s.Blocks {
			trail = append(trail, b.Block)
			out = append(out, b.Transfers...)
		}
	}
	return out, nil
}

func pubOf(a chain.Address) sdk.PublicKey { return sdk.MustPublicKeyFromBase58(string(a)) }

func (n *town) fresh(name string) chaintest.Account {
	n.t.Helper()
	return accountOf(n.t, n.client, n.t.Name()+name)
}

// TestD11_OnlyTheAssociatedAccountCounts: tokens in another account of the same owner
// are seen, and never credited: nothing of ours would find them there.
func TestD11_OnlyTheAssociatedAccountCounts(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.fresh("a").Address
	other := solanatest.Key("other account").PublicKey()
	n.Hold(other, pubOf(a), n.program, n.mint, 0, 1)
	from := n.Head(n.t)
	n.Send(nil, n.MoveTokens(other, n.program, n.mint, 5_000_000, 6))
	n.pay(chaintest.Payment{To: a, Currency: "USDTSOL", Amount: decimal.NewFromInt(3)})
	n.Mine(1)
	got, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Len(t, got, 2)
	for _, x := range got {
		require.Equal(t, "USDTSOL", x.Currency)
		require.Equal(t, x.Amount.IntPart() == 5, x.Unproven)
	}
}

// TestD11_GivenAccountsAreTheirWholeBalance: an account that changes hands pays its new
// owner what it holds, once, with no transfer in it.
func TestD11_GivenAccountsAreTheirWholeBalance(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, giver := n.fresh("a").Address, solanatest.Key("giver")
	at := solanatest.Key("given").PublicKey()
	n.Hold(at, giver.PublicKey(), n.program, n.mint, 7_000_000, 1)
	from := n.Head(n.t)
	owner := pubOf(a)
	n.Send([]sdk.PrivateKey{giver}, sdk.NewInstruction(n.program, sdk.AccountMetaSlice{
		sdk.Meta(at).WRITE(), sdk.Meta(giver.PublicKey()).SIGNER(),
	}, append([]byte{6, 2, 1}, owner[:]...)))
	n.Mine(1)
	got, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "7", got[0].Amount.String())
	require.True(t, got[0].Unproven)
}

// table makes a lookup table.
func (n *town) table(list ...sdk.PublicKey) (sdk.PublicKey, sdk.PublicKeySlice) {
	n.t.Helper()
	table := solanatest.Key("table").PublicKey()
	data := append([]byte{1, 0, 0, 0}, bytes.Repeat([]byte{255}, 8)...) // a table that nobody gave up
	data = append(data, make([]byte, 44)...)
	for _, k := range list {
		data = append(data, k[:]...)
	}
	n.Set(table, sdk.MustPublicKeyFromBase58("AddressLookupTab1e1111111111111111111111111"), 10_000_000, data)
	return table, list
}

// TestD11_AddressesOutOfTablesArePaid: a recipient that stands in a lookup table.
func TestD11_AddressesOutOfTablesArePaid(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.fresh("a").Address, n.fresh("b").Address
	n.fund(b, "USDTSOL", decimal.NewFromInt(1))
	n.fund(b, "SOL", decimal.NewFromInt(1))
	table, list := n.table(pubOf(a), solanatest.ATA(pubOf(b), n.program, n.mint), n.mint, n.program)
	n.Mine(2)
	from := n.Head(n.t)
	tx := n.SendWith(map[sdk.PublicKey]sdk.PublicKeySlice{table: list}, nil,
		n.MoveCoins(pubOf(a), 2_000_000_000), n.MoveTokens(list[1], n.program, n.mint, 4_000_000, 6))
	n.Mine(1)
	got, err := n.scan(n.client, from, a, b)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []string{tx, tx}, []string{got[0].Tx, got[1].Tx})
	require.Equal(t, a, got[0].To)
	require.Equal(t, "2", got[0].Amount.String())
	require.Equal(t, b, got[1].To)
	require.Equal(t, "4", got[1].Amount.String())
}

// TestD10_WhatArrivesIsReported: a token that keeps a fee of each transfer is none of
// ours; what is told of it is what arrived, not what was sent.
func TestD10_WhatArrivesIsReported(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	fee := make([]byte, 108)
	for _, at := range []int{72, 90} { // older and newer: epoch, most, basis points
		binary.LittleEndian.PutUint64(fee[at+8:], 1<<40)
		binary.LittleEndian.PutUint16(fee[at+16:], 100)
	}
	mint := n.Mint("fee", solanatest.Token2022, 6, solanatest.Extension{Kind: 1, Value: fee})
	payer := n.Payer.PublicKey()
	n.Hold(solanatest.ATA(payer, solanatest.Token2022, mint), payer, solanatest.Token2022, mint, 1<<60, 1, solanatest.Extension{Kind: 2, Value: make([]byte, 8)})
	a := n.fresh("a").Address
	from := n.Head(n.t)
	n.Send(nil, n.OpenATA(pubOf(a), solanatest.Token2022, mint),
		n.MoveTokens(solanatest.ATA(pubOf(a), solanatest.Token2022, mint), solanatest.Token2022, mint, 1_000_000, 6))
	n.Mine(1)
	got, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, mint.String(), got[0].Contract)
	require.Empty(t, got[0].Currency)
	require.Equal(t, "990000", got[0].Amount.String())
}

// TestD11_UnsafeMintsAreRefused: each extension that is not known to be harmless, by
// name, before anything is read.
func TestD11_UnsafeMintsAreRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	for kind, why := range map[uint16]string{
		1: "transfer fee", 3: "close authority", 4: "confidential transfers", 6: "default account state", 9: "no transfers",
		10: "interest", 12: "permanent delegate", 14: "transfer hook", 16: "confidential transfer fees", 24: "confidential minting",
		25: "scaled amount", 26: "pause", 28: "permissioned burning", 77: "not known to be harmless", 0: "", 18: "", 19: "", 20: "", 21: "", 22: "", 23: "",
	} {
		list := []solanatest.Extension{{Kind: metadataPointer, Value: make([]byte, 64)}, {Kind: kind, Value: make([]byte, 40)}}
		mint := n.Mint("unsafe"+why+string(rune('a'+kind)), solanatest.Token2022, 6, list...)
		n.Mine(1)
		c := n.newClient(func(o *Options) { o.Registry = registry(t, mint.String()) })
		_, err := c.Tip(t.Context())
		if why == "" {
			require.NoError(t, err, kind)
			continue
		}
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "USDTSOL")
		_, err = c.Scan(t.Context(), nil, follow.Only(nil), 1)
		require.ErrorContains(t, err, why)
	}
	wrong := n.Mint("decimals", solanatest.Token, 9)
	for what, contract := range map[string]string{"decimals": wrong.String(), "no mint": n.Payer.PublicKey().String(), "not on this chain": solanatest.Key("none").PublicKey().String()} {
		c := n.newClient(func(o *Options) { o.Registry = registry(t, contract) })
		_, err := c.Tip(t.Context())
		require.ErrorContains(t, err, what)
	}
}

// TestD12_MissingBlocksAreAnError: a node that started from a snapshot lists no slots
// for what it lacks, exactly as if they had been skipped.
func TestD12_MissingBlocksAreAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.fresh("a").Address
	n.Fault("skip", 3)
	from := n.Head(n.t)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(6)
	for _, gap := range [][2]int64{{from.Height + 1, from.Height + 1}, {from.Height + 1, from.Height + 3}, {from.Height, from.Height}, {from.Height - 5, from.Height + 2}} {
		n.Fault("gap", gap)
		s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a}, 10)
		require.ErrorIs(t, err, chain.ErrNode, "%v", gap)
		require.NotErrorIs(t, err, chain.ErrDeepFork, "blocks that are missing are no fork")
		require.Empty(t, s.Blocks)
	}
	n.Fault("gap", []int64{from.Height + 3, from.Height + 3})
	s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a}, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 2, "up to the gap, and no further")
	_, err = n.client.Scan(t.Context(), []chain.Block{from, s.Blocks[0].Block, s.Blocks[1].Block}, follow.Only{a}, 10)
	require.ErrorIs(t, err, chain.ErrNode)
	n.Fault("gap", nil)
	got, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// TestD07_BlockThatIsNotToldYetIsNotEmpty: nodes know a block before they can tell what
// it did. The head is then the one before; a block in the middle is an error.
func TestD07_BlockThatIsNotToldYetIsNotEmpty(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.fresh("a").Address
	from := n.Head(n.t)
	n.Mine(1)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(1)
	n.Fault("late", []int64{from.Height + 2})
	require.Equal(t, from.Height+1, n.Head(n.t).Height)
	got, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Empty(t, got)
	n.Mine(1)
	_, err = n.scan(n.client, from, a)
	require.ErrorIs(t, err, chain.ErrNode)
	n.Fault("late", nil)
	got, err = n.scan(n.client, from, a)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// TestD14_StrangeAnswersAreErrors: HTTP 200 with something else in it.
func TestD14_StrangeAnswersAreErrors(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.fresh("a").Address
	from := n.Head(n.t)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(1)
	cut := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
	}
	c, x := n.through(same)
	for what, change := range map[string]func([]byte) []byte{
		"a page":           func([]byte) []byte { return []byte("<html>rate limited</html>") },
		"nothing":          func([]byte) []byte { return nil },
		"an error":         func([]byte) []byte { return []byte(`{"error":"too many requests"}`) },
		"no result":        func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1}`) },
		"null":             func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":null}`) },
		"half":             func(b []byte) []byte { return b[:len(b)/2] },
		"no transactions":  cut(`"transactions"`, `"transaktionen"`),
		"no outcome":       cut(`"err":null`, `"error":null`),
		"fewer balances":   cut(`"postBalances":[`, `"postBalances":[],"was":[`),
		"one balance more": cut(`"preBalances":[`, `"preBalances":[1,`),
		"an account more": func(b []byte) []byte {
			return cut(`"preBalances":[`, `"preBalances":[0,`)(cut(`"postBalances":[`, `"postBalances":[0,`)(b))
		},
		"negative balance":    cut(`"postBalances":[`, `"postBalances":[-`),
		"another transaction": cut(`"transaction":["`, `"transaction":["AAAA`),
		"no parent":           cut(`"previousBlockhash"`, `"previous"`),
	} {
		change := func(question, answer []byte) []byte {
			if bytes.Contains(question, []byte(`"full"`)) {
				return change(answer)
			}
			return answer
		}
		x.change.Store(&change)
		_, err := n.scan(c, from, a)
		require.ErrorIs(t, err, chain.ErrNode, what)
	}
	x.change.Store(ptr(same))
	got, err := n.scan(c, from, a)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func ptr[T any](v T) *T { return &v }

// TestR07_FinalAboveTheHeadIsAnError: commitments that contradict each other.
func TestR07_FinalAboveTheHeadIsAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	c, x := n.through(same)
	_, err := c.Tip(t.Context())
	require.NoError(t, err)
	change := func(question, answer []byte) []byte {
		if bytes.Contains(question, []byte(`"getSlot"`)) && bytes.Contains(question, []byte(confirmed)) {
			return []byte(`{"jsonrpc":"2.0","id":1,"result":2}`)
		}
		return answer
	}
	x.change.Store(&change)
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
}

// TestD14_ErrorsKeepTheKey: the URL is what pays for the node.
func TestD14_ErrorsKeepTheKey(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit of `+r.URL.String()+`"}}`)
	}))
	t.Cleanup(s.Close)
	c, err := New(Options{Registry: registry(t, string(tokenProgram.text())), URL: s.URL + "/v2/canary-key?api-key=canary-two"})
	require.NoError(t, err)
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotContains(t, strings.ToLower(err.Error()), "canary")
}

// order is a withdrawal of an amount in units.
func (n *town) order(from chain.Address, to chain.Address, code string, amount int64) chain.Order {
	n.t.Helper()
	in := n.Intent(from, to, amount)
	in.Currency = code
	return n.Order(n.t, in)
}

func TestX02_NodesThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.Fault("limited", 11)
	_, err := n.client.Tip(t.Context())
	clienttest.Limited(t, err, 11*time.Second)
}

// TestX02_StrangersLogsAreNoRateLimit: a node that refuses a transaction before it is sent
// quotes what the programs in it logged.
func TestX02_StrangersLogsAreNoRateLimit(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := n.fresh("from")
	n.fund(from.Address, "SOL", decimal.NewFromInt(3))
	a := n.Sign(t, n.order(from.Address, n.fresh("to").Address, "SOL", 1_0000_0000), from)
	var refusal string
	c, _ := n.through(func(question, answer []byte) []byte {
		if bytes.Contains(question, []byte("sendTransaction")) {
			return []byte(refusal)
		}
		return answer
	})
	stored := proof.NewStored("SOL", a.Tx, a.Raw)
	refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Transaction simulation failed: Error processing Instruction 1: custom program error: 0x1",` +
		`"data":{"accounts":null,"err":{"InstructionError":[1,{"Custom":1}]},"logs":["Program log: rate limit","Program log: too many requests, suspended for 3600 s"],"unitsConsumed":0}}}`
	err := c.Broadcast(t.Context(), stored)
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotErrorAs(t, err, new(*chain.LimitedError))
	refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"rate limit","data":{"backoff_seconds":3}}}`
	clienttest.Limited(t, c.Broadcast(t.Context(), stored), 3*time.Second)
}
