package cardano

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// coin funds an account with one output.
func (n *town) coin(a chaintest.Account, p cardanotest.Pay) chain.Coin {
	p.To = string(a.Address)
	tx := n.Send(nil, p)
	n.Mine(1)
	return chain.Coin{Outpoint: tx + ":0", Address: a.Address, Amount: ledger.Amount(p.Lovelace)}
}

// order pays somebody three ada of coins.
func (n *town) order(t *testing.T, coins ...chain.Coin) chain.Order {
	t.Helper()
	o := n.Order(t, n.Intent("", n.account(t, "somebody").Address, 3_000_000))
	o.Intent.MaxCost = 5_000_000
	o.Coins, o.Change = coins, n.account(t, "change").Address
	return o
}

// attempt signs such an order of a coin of its own.
func (n *town) attempt(t *testing.T, name string) chain.Attempt {
	t.Helper()
	a := n.account(t, name)
	return n.Sign(t, n.order(t, n.coin(a, cardanotest.Pay{Lovelace: 10_000_000})), a)
}

// TestD03_TokensAreUnlistedAndTheirAdaUnproven: each token is seen as what it is, under a place
// of its own; the ada beside tokens, or beside a script, is for an operator to judge.
func TestD03_TokensAreUnlistedAndTheirAdaUnproven(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.account(t, "ours")
		n.Send([]string{"first ", "second"}, cardanotest.Pay{To: string(a.Address), Lovelace: 5_000_000},
			cardanotest.Pay{To: string(a.Address), Lovelace: 2_000_000, Tokens: map[string]uint64{cardanotest.Coin("Fake"): 77, cardanotest.Coin(""): 2}},
			cardanotest.Pay{To: string(a.Address), Lovelace: 2_000_000, Script: true})
		got := n.Seen(t, a.Address)
		require.Len(t, got, 5)
		places := map[int]bool{}
		for _, x := range got {
			places[x.Ordinal] = true
			require.Equal(t, "first second", x.Memo)
			switch {
			case x.Ordinal == 0:
				require.False(t, x.Unproven)
				require.Equal(t, "5", x.Amount.String())
			case x.Currency != "":
				require.True(t, x.Unproven, "%+v", x)
			default:
				require.Contains(t, map[string]string{cardanotest.Coin("Fake"): "77", cardanotest.Coin(""): "2"}, x.Contract)
				require.True(t, x.Amount.Equal(decimal.NewFromInt(77)) || x.Amount.Equal(decimal.NewFromInt(2)))
			}
		}
		require.Len(t, places, 5)
	})
}

// TestD13_WhatScriptsRefusedPaysOnlyItsReturn: of a transaction whose scripts did not agree, the
// surety is taken and what is left of it returned; its outputs never were.
func TestD13_WhatScriptsRefusedPaysOnlyItsReturn(t *testing.T) {
	t.Parallel()
	ours := bytes.Repeat([]byte{7}, 28)
	address := append([]byte{headerEnterprise}, ours...)
	in := func(b byte) []any { return []any{[]any{bytes.Repeat([]byte{b}, 32), 1}} }
	make := func(valid bool) *tx {
		raw, err := cbor.Marshal([]any{
			map[uint64]any{0: in(1), 1: []any{[]any{address, 9_000_000}, []any{address, 8_000_000}}, 2: 200_000, 13: in(2), 16: map[uint64]any{0: address, 1: 4_000_000}},
			map[uint64]any{},
			valid, nil,
		})
		require.NoError(t, err)
		got, err := readTx(raw)
		require.NoError(t, err)
		return got
	}
	good, bad := make(true), make(false)
	require.Len(t, good.outputs, 2)
	require.Equal(t, byte(1), good.spends[0].id[0])
	require.Len(t, bad.outputs, 1)
	require.EqualValues(t, 4_000_000, bad.outputs[0].coin)
	require.EqualValues(t, 2, bad.outputs[0].index, "behind those that it does not make")
	require.Equal(t, byte(2), bad.spends[0].id[0])
}

// TestD14_AnswersThatAreNone: whatever a node says in the place of an answer is an error, and
// never no transfers.
func TestD14_AnswersThatAreNone(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.account(t, "ours")
		n.Send(nil, cardanotest.Pay{To: string(a.Address), Lovelace: 5_000_000})
		from := n.Head(t)
		n.Mine(1)
		for _, body := range []string{"", "null", "[]", "{}", "text", `{"result":null}`, `{"result":{}}`, `"x"`, `[null]`, `{"error":{"code":-1,"message":"no"}}`, `{"status_code":500,"error":"x","message":"y"}`} {
			n.Set(func(f *cardanotest.Fault) {
				f.Tamper = func(what string, good []byte) []byte {
					if strings.Contains(what, "next") || strings.Contains(what, "cbor") {
						return []byte(body)
					}
					return good
				}
			})
			s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a.Address}, 1)
			require.ErrorIs(t, err, chain.ErrNode, body)
			require.Empty(t, s.Blocks, body)
		}
		// One transaction in the place of another is noticed by its bytes.
		other := n.Send(nil, cardanotest.Pay{To: string(n.account(t, "other").Address), Lovelace: 5_000_000})
		bytesOfOther := fmt.Sprintf("%x", n.Raw(other))
		n.Set(func(f *cardanotest.Fault) {
			f.Tamper = func(_ string, good []byte) []byte {
				at := bytes.Index(good, []byte(`"cbor":"`))
				if at < 0 {
					return good
				}
				rest := good[at+8:]
				return []byte(string(good[:at+8]) + bytesOfOther + string(rest[bytes.IndexByte(rest, '"'):]))
			}
		})
		_, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{a.Address}, 1)
		require.ErrorIs(t, err, chain.ErrNode)
	})
}

// TestD18_WrongNetworkIsRefusedByEveryCall.
func TestD18_WrongNetworkIsRefusedByEveryCall(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		n.Set(func(f *cardanotest.Fault) { f.Magic = 1 })
		n.WrongNet(t, n.account(t, "ours").Address)
	})
}

// TestK03_AnIndexThatDoesNotKnowUsSaysNothing: Kupo without a pattern of ours, or behind, is
// an error and not an address without payments.
func TestK03_AnIndexThatDoesNotKnowUsSaysNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t, "Ogmios")
	a := n.account(t, "ours")
	n.coin(a, cardanotest.Pay{Lovelace: 5_000_000})
	head := n.Head(t)
	for _, x := range []struct {
		spoil func(f *cardanotest.Fault)
		want  error
	}{
		{func(f *cardanotest.Fault) { f.Unmatched = true }, chain.ErrNode},
		{func(f *cardanotest.Fault) { f.Unmatched, f.IndexLag = false, 1 }, chain.ErrBehind},
	} {
		n.Set(x.spoil)
		_, err := n.client.History(t.Context(), a.Address, head.Height, head.Height)
		require.ErrorIs(t, err, x.want)
		_, err = n.client.Balance(t.Context(), "ADA", a.Address)
		require.ErrorIs(t, err, x.want)
	}
	n.Set(func(f *cardanotest.Fault) { f.IndexLag = 0 })
	got, err := n.client.History(t.Context(), a.Address, head.Height, head.Height)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// TestW03_AnotherTransactionOfTheCoinIsAConflict: named, and only while its block stands.
func TestW03_AnotherTransactionOfTheCoinIsAConflict(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.account(t, "sender")
		o := n.order(t, n.coin(a, cardanotest.Pay{Lovelace: 10_000_000}))
		first := n.Sign(t, o, a)
		o.Attempt = 2
		second := n.Sign(t, o, a)
		require.NotEqual(t, first.Tx, second.Tx)
		require.Equal(t, first.Spends, second.Spends, "only one can land")
		require.NoError(t, n.Broadcast(t, second))
		require.Equal(t, chain.Pending, n.Status(t, second).State)
		require.Equal(t, chain.Unknown, n.Status(t, first).State, "what waits is no proof")
		n.Mine(1)
		st := n.Status(t, first)
		require.Equal(t, chain.Conflicted, st.State)
		require.Equal(t, second.Tx, st.By)
		require.Equal(t, n.Status(t, second).Block, st.Block)
		err := n.Broadcast(t, first)
		require.Error(t, err)
		require.NotErrorIs(t, err, chain.ErrRejected, "a fork can let it in again")
		n.Reorg(1, second.Tx)
		require.Equal(t, chain.Unknown, n.Status(t, first).State)
		require.NoError(t, n.Broadcast(t, first))
		n.Mine(1)
		require.Equal(t, chain.Included, n.Status(t, first).State)
	})
}

// TestW09_PastItsTimeIsUnknown: a transaction that no block has and none can have any more is
// not called dead; nodes refuse it, and it is told when its time was over.
func TestW09_PastItsTimeIsUnknown(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.attempt(t, "sender")
		at, ok := n.client.Until(a.Raw)
		require.True(t, ok)
		require.InDelta(t, 600, at.Sub(n.Head(t).Time).Seconds(), 2)
		n.Mine(31)
		require.True(t, n.Head(t).Time.After(at))
		require.Equal(t, chain.Unknown, n.Status(t, a).State)
		err := n.Broadcast(t, a)
		require.Error(t, err)
		require.NotErrorIs(t, err, chain.ErrRejected)
	})
}

// TestW07_ToldWrong: what a node says of one attempt that cannot be makes that one Unknown.
func TestW07_ToldWrong(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		bad, good := n.attempt(t, "bad"), n.attempt(t, "good")
		require.NoError(t, n.Broadcast(t, bad))
		n.Mine(1)
		require.NoError(t, n.Broadcast(t, good))
		n.Mine(1)
		id, _, _ := strings.Cut(bad.Spends[0], ":")
		nowhere := strings.Repeat("ab", 32)
		spoil := func(old, by string) func() {
			return func() {
				n.Set(func(f *cardanotest.Fault) {
					f.Tamper = func(what string, body []byte) []byte {
						if strings.Contains(what, "/matches/") && strings.Contains(what, id) || what == "/txs/"+id+"/utxos" || what == "/txs/"+bad.Tx {
							return []byte(strings.ReplaceAll(string(body), old, by))
						}
						return body
					}
				})
			}
		}
		block := n.Status(t, bad).Block.Hash
		n.ToldWrong(t, bad, good, []clienttest.Spoilt{
			clienttest.As("a block that is not on the chain", spoil(`"`+block+`"`, `"`+nowhere+`"`)),
			clienttest.As("no transaction that spent it", spoil(`"`+bad.Tx+`"`, `""`)),
		}, func() { n.Set(func(f *cardanotest.Fault) { f.Fail = true }) })
	})
}

// TestW06_CoinsThatAreNotThere: a coin that is spent, or undone by a fork, is for later; one that
// is something else can never be spent as ordered.
func TestW06_CoinsThatAreNotThere(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.account(t, "sender")
		coin := n.coin(a, cardanotest.Pay{Lovelace: 10_000_000})
		o := n.order(t, coin)
		first := n.Sign(t, o, a)
		o.Coins[0].Amount++
		_, err := n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrRejected)
		o.Coins[0].Amount--
		o.Coins = append(o.Coins, coin)
		_, err = n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrRejected, "the same coin twice")
		o.Coins = o.Coins[:1]
		scripted := n.order(t, n.coin(a, cardanotest.Pay{Lovelace: 10_000_000, Script: true}))
		_, err = n.client.Build(t.Context(), scripted)
		require.ErrorIs(t, err, chain.ErrRejected, "what it costs to spend is not known")
		require.NoError(t, n.Broadcast(t, first))
		n.Mine(1)
		_, err = n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrNode)
		require.NotErrorIs(t, err, chain.ErrRejected, "the payment may just have landed")
	})
}

// TestW14_WhatANodeSaysOfFeesIsBounded: parameters that cannot be are an error; those that would
// give much away are too dear, in fees and in change that is too small to be an output.
func TestW14_WhatANodeSaysOfFeesIsBounded(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		for name, want := range map[string]map[int64]error{
			"minFeeA":          {0: chain.ErrNode, -1: chain.ErrNode, 1 << 40: chain.ErrNode, 100_000: chain.ErrTooDear},
			"minFeeB":          {-1: chain.ErrNode, 10_000_000: chain.ErrTooDear},
			"coinsPerUTxOByte": {0: chain.ErrNode, 1 << 40: chain.ErrNode, 43_100: chain.ErrTooDear},
		} {
			for v, err := range want {
				n.Set(func(f *cardanotest.Fault) { f.Params = map[string]int64{name: v} })
				_, got := n.client.EstimateFee(t.Context(), n.Intent("", "", 1))
				require.ErrorIs(t, got, err, "%s = %d", name, v)
			}
		}
	})
}

// TestW16_LessThanAnOutputMustHold: refused before anything is held for it, with the figure.
func TestW16_LessThanAnOutputMustHold(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		to := n.account(t, "somebody").Address
		const least = 4310 * (160 + 1 + 31 + 5) // an array of two, an enterprise address, an amount of four bytes
		require.NoError(t, n.client.Deliverable(t.Context(), "ADA", to, "", least))
		err := n.client.Deliverable(t.Context(), "ADA", to, "", least-1)
		var why *chain.AddressError
		require.ErrorAs(t, err, &why)
		require.Contains(t, why.Reason, "0.84907")
		a := n.account(t, "sender")
		o := n.order(t, n.coin(a, cardanotest.Pay{Lovelace: 10_000_000}))
		o.Intent.Amount = least
		_, err = n.client.Build(t.Context(), o)
		require.NoError(t, err)
		o.Intent.Amount--
		_, err = n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrRejected)
	})
}

// TestTokensReturn: what is paid out of coins with tokens pays no token to anybody. Where the
// change is too little for them, more coins are needed.
func TestTokensReturn(t *testing.T) {
	onBackends(t, func(t *testing.T, n *town) {
		a := n.account(t, "sender")
		o := n.order(t, n.coin(a, cardanotest.Pay{Lovelace: 4_100_000, Tokens: map[string]uint64{cardanotest.Coin("Fake"): 9}}))
		_, err := n.client.Build(t.Context(), o)
		require.ErrorIs(t, err, chain.ErrShort)
		o.Coins = append(o.Coins, n.coin(a, cardanotest.Pay{Lovelace: 2_000_000}))
		sent := n.Sign(t, o, a, a)
		require.NoError(t, n.Broadcast(t, sent))
		n.Mine(1)
		require.Equal(t, map[string]uint64{cardanotest.Coin("Fake"): 9}, n.Tokens(string(o.Change)))
		require.Empty(t, n.Tokens(string(o.Intent.To)))
		require.EqualValues(t, 3_000_000, n.Received(string(o.Intent.To)))
	})
}

// TestCoinCostsAreBuilds: coins chosen by CoinCosts are enough for Build, and little is reckoned
// too much.
func TestCoinCostsAreBuilds(t *testing.T) {
	t.Parallel()
	n := openTown(t, "Ogmios")
	a := n.account(t, "sender")
	for count := 1; count <= 30; count += 7 {
		var coins []chain.Coin
		for range count {
			coins = append(coins, n.coin(a, cardanotest.Pay{Lovelace: 5_000_000}))
		}
		o := n.order(t, coins...)
		base, change, least, costs, err := n.client.CoinCosts(o)
		require.NoError(t, err)
		sum := base + change
		for _, c := range costs {
			sum += c
		}
		u, err := n.client.Build(t.Context(), o)
		require.NoError(t, err)
		require.LessOrEqual(t, u.MaxCost, sum)
		require.Less(t, sum-u.MaxCost, ledger.Amount(count*101*44+2000), "one key has one signature")
		require.Less(t, least, ledger.Amount(1_000_000))
	}
}

// TestI06_NoSecretInAnError: of the endpoints, the project id and headers.
func TestI06_NoSecretInAnError(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Ogmios: "http://canary1:canary2@127.0.0.1:1/canary3", Kupo: "http://127.0.0.1:1/canary4", Header: http.Header{"Key": {"canary5"}}})
	clienttest.Secret(t, c, err)
	c, err = New(Options{Blockfrost: "http://127.0.0.1:1/canary1", Project: "canary2"})
	clienttest.Secret(t, c, err)
}

// TestN16_AProvidersLimitIsHeard: with its own word for how long to wait.
func TestN16_AProvidersLimitIsHeard(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("project_id") != "project" {
			http.Error(w, "who?", http.StatusForbidden)
			return
		}
		w.Header().Set("Retry-After", "7")
		http.Error(w, `{"status_code":429,"error":"Project Over Limit","message":"slow down"}`, http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	c, err := New(Options{Blockfrost: s.URL, Project: "project"})
	require.NoError(t, err)
	_, err = c.Tip(t.Context())
	clienttest.Limited(t, err, 7*time.Second)
}

// TestBaseAddresses: with a stake of ours the addresses are an account's own.
func TestBaseAddresses(t *testing.T) {
	t.Parallel()
	v := load(t).HD
	account, err := ParseAccount(v.XPub, 0)
	require.NoError(t, err)
	c, err := New(Options{Blockfrost: "http://127.0.0.1:1", Stake: v.Stake})
	require.NoError(t, err)
	pub, err := account.PublicKey(RoleExternal, 0)
	require.NoError(t, err)
	got, err := c.AddressOf(pub)
	require.NoError(t, err)
	want, err := account.Address(RoleExternal, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, o := range []Options{
		{},
		{Ogmios: "http://a"},
		{Kupo: "http://a"},
		{Ogmios: "http://a", Kupo: "http://b", Blockfrost: "http://c"},
		{Blockfrost: "ftp://a"},
		{Blockfrost: "http://a?x=1"},
		{Blockfrost: "http://a", Stake: string(want)},
		{Blockfrost: "http://a", Stake: v.Stake[:20]},
		{Blockfrost: "http://a", Expiry: time.Second},
	} {
		_, err := New(o)
		require.Error(t, err, "%+v", o)
	}
}

// TestK03_AnIndexOfAnotherForkSaysNothing: Kupo that has come far enough, on a branch that Ogmios
// is not on, does not know what the chain pays us.
func TestK03_AnIndexOfAnotherForkSaysNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t, "Ogmios")
	a := n.account(t, "ours")
	n.coin(a, cardanotest.Pay{Lovelace: 5_000_000})
	head := n.Head(t)
	n.Set(func(f *cardanotest.Fault) {
		f.Tamper = func(what string, good []byte) []byte {
			switch {
			case what == "/checkpoints":
				return []byte(strings.ReplaceAll(string(good), head.Hash, strings.Repeat("ab", 32)))
			case strings.HasPrefix(what, "/matches/"):
				return []byte("[]")
			}
			return good
		}
	})
	_, err := n.client.History(t.Context(), a.Address, head.Height, head.Height)
	require.ErrorIs(t, err, chain.ErrNode)
	_, err = n.client.Balance(t.Context(), "ADA", a.Address)
	require.ErrorIs(t, err, chain.ErrNode)
}

// TestD14_AGatewaysErrorIsNoTransaction: what stands before a provider answers with JSON of its
// own. That is no word that a transaction waits, and none of what spent its inputs.
func TestD14_AGatewaysErrorIsNoTransaction(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/mempool/", "/txs/"} {
		n := openTown(t, "Blockfrost")
		a := n.attempt(t, "sender")
		n.Mine(31) // past its time: the node refuses it
		n.Set(func(f *cardanotest.Fault) {
			f.Tamper = func(what string, good []byte) []byte {
				if strings.HasPrefix(what, path) {
					return []byte(`{"message":"no route is known"}`)
				}
				return good
			}
		})
		_, err := n.client.Status(t.Context(), a)
		require.ErrorIs(t, err, chain.ErrNode, path)
		require.Error(t, n.Broadcast(t, a), path)
	}
}
