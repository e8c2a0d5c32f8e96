package solana

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// TestFN01_WhatIsStrangeOfALaterVersionStopsNoBlock: a form that nobody knows yet may
// have another shape anywhere. The rest of its block is read, and what was passed over
// is logged.
func TestFN01_WhatIsStrangeOfALaterVersionStopsNoBlock(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.fresh("a").Address, n.fresh("b").Address
	n.fund(b, "USDTSOL", decimal.NewFromInt(1))
	from := n.Head(t)
	later := n.SendLater(2, nil, n.MoveCoins(pubOf(a), 2_000_000_000),
		n.MoveTokens(solanatest.ATA(pubOf(b), n.program, n.mint), n.program, n.mint, 3_000_000, 6))
	n.Mine(1)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(5)})
	n.Mine(1)
	cut := func(old, new string) func([]byte) []byte {
		return func(x []byte) []byte {
			require.Contains(t, string(x), old)
			return bytes.ReplaceAll(x, []byte(old), []byte(new))
		}
	}
	for what, v := range map[string]struct {
		details string
		change  func([]byte) []byte
		want    string // how much of it is seen, "" for nothing
		logged  bool
	}{
		"as it is":                 {"full", func(x []byte) []byte { return x }, "2 3", false},
		"a version of words":       {"full", cut(`"version":2`, `"version":"second"`), "2 3", false},
		"another kind of bytes":    {"full", cut(`"transaction":[`, `"transaction":{"v2":true},"bytes":[`), "2 3", false},
		"no version":               {"full", cut(`"version":2,`, ``), "2 3", false},
		"a fee of words":           {"full", cut(`"fee":`, `"fee":"none","was":`), "2 3", false},
		"no outcome":               {"full", cut(`"err":null`, `"error":null`), "", true},
		"no balances":              {"full", cut(`"preBalances"`, `"pre"`), "", true},
		"balances that differ":     {"full", cut(`"preBalances":[`, `"preBalances":[1,`), "", true},
		"balances of words":        {"full", cut(`"postBalances":[`, `"postBalances":["a",`), "", true},
		"tokens without a mint":    {"full", cut(`"postTokenBalances":[{"accountIndex"`, `"postTokenBalances":[{"index"`), "", true},
		"tokens of nothing before": {"full", cut(`"preTokenBalances":[`, `"preTokenBalances":[{},`), "2", true},
		"an account more":          {"accounts", cut(`"accountKeys":[`, `"accountKeys":[{"pubkey":"11111111111111111111111111111111"},`), "3", true},
		"accounts of words":        {"accounts", cut(`"pubkey":"`, `"pubkey":"0`), "3", true},
		"no signatures":            {"accounts", cut(`"signatures":[`, `"signed":[`), "", true},
	} {
		var log bytes.Buffer
		block := []byte(`"transactions":[{`)
		c, _ := n.through(func(question, answer []byte) []byte {
			if bytes.Contains(question, []byte(`"`+v.details+`"`)) && bytes.Contains(answer, block) && (v.details == "accounts" || bytes.Contains(answer, []byte(`"version":2`))) {
				return v.change(answer)
			}
			return answer
		}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		got, err := n.scan(c, from, a, b)
		require.NoError(t, err, what)
		var amounts []string
		for _, x := range got[:len(got)-1] {
			require.True(t, x.Unproven, what)
			require.Equal(t, later, x.Tx, what)
			amounts = append(amounts, x.Amount.String())
		}
		require.Equal(t, v.want, strings.Join(amounts, " "), what)
		last := got[len(got)-1]
		require.Equal(t, "5", last.Amount.String(), what)
		require.False(t, last.Unproven, what)
		require.Equal(t, v.logged, strings.Contains(log.String(), "transaction_skipped"), "%s: %s", what, log.String())
	}
}

// TestFN36_NodesThatKnowNoAccountsAreAskedForAll: a node that refuses to give the accounts of a
// block alone is asked for the whole of it, in a form that it has read itself.
func TestFN36_NodesThatKnowNoAccountsAreAskedForAll(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.fresh("a").Address, n.fresh("b").Address
	n.fund(b, "USDTSOL", decimal.NewFromInt(1))
	n.Fault("noaccounts", true)
	from := n.Head(t)
	later := n.SendLater(2, nil, n.MoveCoins(pubOf(a), 2_000_000_000),
		n.MoveTokens(solanatest.ATA(pubOf(b), n.program, n.mint), n.program, n.mint, 3_000_000, 6))
	n.Mine(1)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(5)})
	n.Mine(1)
	got, err := n.scan(n.client, from, a, b)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, want := range []string{"2", "3", "5"} {
		require.Equal(t, want, got[i].Amount.String())
		require.Equal(t, i < 2, got[i].Unproven)
		require.Equal(t, i < 2, got[i].Tx == later)
	}
}

// TestFN01_NodesThatDoNotNameAccountsAreErrors: what a node does wrong is no reason to
// pass over what somebody paid.
func TestFN01_NodesThatDoNotNameAccountsAreErrors(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.fresh("a").Address
	from := n.Head(t)
	n.SendLater(2, nil, n.MoveCoins(pubOf(a), 2_000_000_000))
	n.Mine(1)
	for what, change := range map[string]func([]byte) []byte{
		"an error": func([]byte) []byte {
			return []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`)
		},
		"nothing": func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":null}`) },
		"half":    func(b []byte) []byte { return b[:len(b)/2] },
		"another": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"blockhash":"`), []byte(`"blockhash":"1`)) },
		"fewer": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"transactions":[`), []byte(`"transactions":[],"was":[`))
		},
		"no history": func(b []byte) []byte { return b },
	} {
		c, _ := n.through(func(question, answer []byte) []byte {
			if what == "no history" && bytes.Contains(question, []byte(`"full"`)) {
				return bytes.ReplaceAll(answer, []byte(`"meta":{`), []byte(`"meta":null,"was":{`))
			}
			if bytes.Contains(question, []byte(`"accounts"`)) {
				return change(answer)
			}
			return answer
		})
		_, err := n.scan(c, from, a)
		require.ErrorIs(t, err, chain.ErrNode, what)
	}
}

// TestFN01_WhatCannotBeExplainedIsUnproven: what a node says of instructions and tokens
// of a transaction that was read, and that does not fit it.
func TestFN01_WhatCannotBeExplainedIsUnproven(t *testing.T) {
	t.Parallel()
	c, owner := offline(t), solanatest.Key("owner").PublicKey()
	good := called(owner, "null", 0)
	program := `"programId":"` + solanatest.Token.String() + `"`
	for what, v := range map[string]struct {
		old, new string
		unproven int
		want     int
	}{
		"an inner account that is not there": {`"accounts":[`, `"accounts":[200,`, 2, 2},
		"an inner program that is not there": {`"programIdIndex":`, `"programIdIndex":9`, 2, 2},
		"tokens without a program":           {program, `"programId":null`, 2, 4},
		"tokens of another program":          {program, `"programId":"` + solanatest.Token2022.String() + `"`, 2, 4},
		"tokens of no mint":                  {`"mint":"`, `"mint":"0`, 2, 4},
	} {
		require.Contains(t, good, v.old, what)
		got := decoded(t, c, blockOf(strings.ReplaceAll(good, v.old, v.new)), follow.Only{chain.Address(owner.String())})
		unproven := 0
		for _, x := range got {
			require.True(t, x.Amount.IsPositive(), what)
			if x.Unproven {
				unproven++
			}
		}
		require.Equal(t, v.unproven, unproven, what)
		require.Len(t, got, v.want, what)
	}
}

// TestFN01_BlocksThatAreTooLongAreRead: what programs tell each other can make the answer
// for a block longer than Options.MaxBody. What it paid us is proven all the same, by its
// own transaction; where that is too long, too, it is not.
func TestFN01_BlocksThatAreTooLongAreRead(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.fresh("a").Address, n.fresh("b").Address
	from := n.Head(t)
	for range 12 {
		n.Send(nil, solanatest.Words(strings.Repeat("words of a stranger ", 25)), n.MoveCoins(pubOf(b), 1_000_000))
	}
	tx := n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(5)}, chaintest.Payment{To: a, Currency: "USDTSOL", Amount: decimal.NewFromInt(3)})
	bulky := n.Send(nil, solanatest.Words(strings.Repeat("more words ", 45)), n.MoveCoins(pubOf(a), 7_000_000_000))
	n.SendLater(2, nil, n.MoveCoins(pubOf(a), 9_000_000_000))
	n.Mine(1)
	slot, err := slotOf(n.Head(t).Hash)
	require.NoError(t, err)
	size := func(method string, params ...any) int64 {
		var answer json.RawMessage
		n.Call(&answer, method, params...)
		return int64(len(answer)) + 100
	}
	least, own := size("getBlock", slot, blockOptions("accounts", confirmed)), size("getTransaction", bulky, blockOptions("", confirmed))
	require.Greater(t, size("getBlock", slot, blockOptions("full", confirmed)), least+100)
	c := n.newClient(func(o *Options) { o.MaxBody = least })
	got, err := n.scan(c, from, a)
	require.NoError(t, err)
	require.Len(t, got, 4)
	whole, err := n.scan(n.client, from, a)
	require.NoError(t, err)
	require.ElementsMatch(t, whole, got, "the same transfers, with the same identities and proofs")
	require.Equal(t, tx, got[0].Tx)

	c, _ = n.through(func(question, answer []byte) []byte {
		if bytes.Contains(question, []byte(bulky)) {
			return append(answer, bytes.Repeat([]byte(" "), int(least))...)
		}
		return answer
	}, func(o *Options) { o.MaxBody = max(least, own) })
	got, err = n.scan(c, from, a)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for _, x := range got {
		require.Equal(t, x.Amount.IntPart() == 7 || x.Amount.IntPart() == 9, x.Unproven, x.Amount)
	}
}
