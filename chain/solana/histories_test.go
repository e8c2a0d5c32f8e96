package solana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFN09_HistoriesAreComplete compares what is found by whole blocks, by histories and by both
// in turns: coins, tokens of ours and of nobody's, other token accounts than the associated one,
// programs that pay, failed transactions, forks and skipped slots.
func TestFN09_HistoriesAreComplete(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Drawn(t, 1, []uint64{0, 1, 2, 3}) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			require.Greater(t, n.ways(seed, n.newClient), 20)
		})
	}
}

// The same of a service whose lists are behind, each by another number, or lack something between.
func TestFN09_LateHistoriesLoseNothing(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Drawn(t, 1, []uint64{0, 1, 2, 3}) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 10)) //nolint:gosec // a test
			late, hidden := 0, 0
			few := n.lacking(func(place int) bool {
				mu.Lock()
				defer mu.Unlock()
				if place == 0 { // most lists of a poll have all
					late = max(0, r.IntN(120)-116)
				}
				lacks := place < late || r.IntN(400) == 0
				if lacks {
					hidden++
				}
				return lacks
			})
			require.Greater(t, n.ways(seed, few), 20)
			require.Positive(t, hidden)
		})
	}
}

// ways is how many transfers are found in all ways.
func (n *town) ways(seed uint64, few func(...func(*Options)) *Client) int {
	t := n.t.(*testing.T)
	n.Mine(4) // what no fork takes back
	return clienttest.Ways{
		Registry: n.registry, Whole: n.newClient(func(o *Options) { o.FewAddresses = -1 }),
		Few: few(func(o *Options) { o.FewAddresses = 1000 }), Seed: seed, Rounds: 60,
		Address: func(i int) chain.Address { return accountOf(t, n.client, fmt.Sprint(t.Name(), i)).Address },
		Happen:  n.happen,
		Settle:  func(testing.TB) { n.Fault("skip", 0); n.Mine(solanatest.Finality + 1) },
	}.Run(t)
}

// happen is one of the things that can happen on the chain.
func (n *town) happen(t testing.TB, r *rand.Rand, paid []chain.Address) {
	t.Helper()
	to := paid[r.IntN(len(paid))]
	key := sdk.MustPublicKeyFromBase58(string(to))
	amount := decimal.New(int64(2_100_000+r.IntN(1000)), -9)
	some := chaintest.Payment{To: to, Currency: "SOL", Amount: amount}
	token := chaintest.Payment{To: to, Currency: "USDTSOL", Amount: decimal.New(int64(1+r.IntN(1000)), -6)}
	switch r.IntN(11) {
	case 0, 1:
		n.pay(some)
	case 2:
		n.pay(token)
	case 3:
		token.Effect = chaintest.Foreign
		n.pay(token)
	case 4: // an account that is not the associated one, opened and paid in one transaction
		n.opened(key, uint64(1+r.IntN(1000)))
	case 5:
		other := chaintest.Payment{To: paid[r.IntN(len(paid))], Currency: "USDTSOL", Amount: token.Amount}
		n.pay(token, other, token)
	case 6:
		n.Unwrap(key, 3_000_000)
	case 7:
		some.Effect = chaintest.Reverted
		n.pay(some)
	case 8:
		n.Reorg(1 + r.IntN(3))
	case 9:
		n.Fault("skip", r.IntN(3))
	}
	n.Mine(r.IntN(6))
}

// opened opens a token account that is not the associated one, of an owner who does not sign
// and is not among the transaction's accounts, and pays into it.
func (n *town) opened(owner sdk.PublicKey, amount uint64) sdk.PublicKey {
	n.t.Helper()
	fresh := solanatest.Key(fmt.Sprint(owner, amount, n.Blockhash()))
	at := fresh.PublicKey()
	n.Send([]sdk.PrivateKey{fresh},
		system.NewCreateAccountInstruction(2_039_280, 165, n.program, n.Payer.PublicKey(), at).Build(),
		sdk.NewInstruction(n.program, sdk.AccountMetaSlice{sdk.Meta(at).WRITE(), sdk.Meta(n.mint)}, append([]byte{18}, owner[:]...)),
		n.MoveTokens(at, n.program, n.mint, amount, 6))
	return at
}

func (n *town) account(name string) chain.Address {
	return accountOf(n.t, n.client, n.t.Name()+name).Address
}

// What is handed out after the list was made, and paid at once, is found by the next Scan.
func TestFN09_AnAddressThatIsHandedOutMeanwhile(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, late := n.account("a"), n.account("late")
	trail := clienttest.Begun(t, n.client)
	n.Mine(2)
	w := &clienttest.Few{Only: follow.Only{a}}
	w.Listed = func() {
		w.Only = follow.Only{a, late}
		n.pay(chaintest.Payment{To: late, Currency: "SOL", Amount: decimal.NewFromInt(1)})
		n.Mine(1)
	}
	found, _ := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, found, 1)
	require.Equal(t, late, found[0].To)
}

// A list is read to its end, also where one page begins among transactions of one block, and no
// more blocks are given than were asked for.
func TestFN09_LongHistories(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.account("a")
	for range 3 { // before the trail: not found once more
		n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
		n.Mine(1)
	}
	trail := clienttest.Begun(t, n.client)
	var want []string
	for i := range 12 {
		for range 1 + i%3 {
			want = append(want, n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)}))
		}
		n.Mine(2)
	}
	found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 3)
	var got []string
	for _, x := range found {
		got = append(got, x.Tx)
	}
	require.Equal(t, want, got)
	require.Len(t, after, 1+12+1)
	trail = trail[:1]
	n.client.most.pages = 1
	found, after = clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 3)
	require.Len(t, found, len(want))
	require.Greater(t, len(after), 1+12+1, "a stranger made the list too long: blocks are read whole")
}

// Who was long away gets histories in parts, too.
func TestFN09_LongAgo(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.client.most.slots = 5
	a := n.account("a")
	trail := clienttest.Begun(t, n.client)
	for range 4 {
		n.Mine(6)
		n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	}
	n.Mine(2)
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 4)
	_, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 10)
	require.Equal(t, n.Head(t).Hash, after[len(after)-1].Hash)
}

// A token account is asked for by its address, whether it is open when it is asked for or not:
// it is paid, emptied and closed, opened once more and paid once more, between two looks.
func TestFN09_TokenAccountsThatAreClosed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, owner := n.account("a"), solanatest.Key(t.Name()+"a")
	at := solanatest.ATA(owner.PublicKey(), n.program, n.mint)
	pay := func() { // names the token account alone
		n.Send(nil, n.MoveTokens(at, n.program, n.mint, 5, 6))
		n.Mine(2)
	}
	empty := func() {
		payer, k := n.Payer.PublicKey(), owner.PublicKey()
		n.Send([]sdk.PrivateKey{owner},
			sdk.NewInstruction(n.program, sdk.AccountMetaSlice{
				sdk.Meta(at).WRITE(), sdk.Meta(n.mint), sdk.Meta(solanatest.ATA(payer, n.program, n.mint)).WRITE(), sdk.Meta(k).SIGNER(),
			}, []byte{12, 5, 0, 0, 0, 0, 0, 0, 0, 6}),
			sdk.NewInstruction(n.program, sdk.AccountMetaSlice{sdk.Meta(at).WRITE(), sdk.Meta(payer).WRITE(), sdk.Meta(k).SIGNER()}, []byte{9}))
		n.Mine(2)
	}
	n.Send(nil, n.OpenATA(owner.PublicKey(), n.program, n.mint))
	n.Mine(1)
	trail := clienttest.Begun(t, n.client)
	pay()
	empty()
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 1)
	n.Send(nil, n.OpenATA(owner.PublicKey(), n.program, n.mint))
	n.Mine(1)
	pay()
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 2)
}

// Token accounts that are not the associated ones are found by their owner, and addresses that
// a transaction takes out of a lookup table are in the node's lists as all others.
func TestFN09_AccountsThatAreNotNamed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.account("a"), n.account("b")
	other := n.opened(pubOf(a), 5)
	n.fund(b, "USDTSOL", decimal.NewFromInt(1))
	table, list := n.table(pubOf(a), solanatest.ATA(pubOf(b), n.program, n.mint), n.mint, n.program)
	n.Mine(2)
	trail := clienttest.Begun(t, n.client)
	n.Send(nil, n.MoveTokens(other, n.program, n.mint, 5, 6))
	n.Mine(3)
	require.Len(t, clienttest.Agree(t, n.client, trail, a, b), 1)
	n.SendWith(map[sdk.PublicKey]sdk.PublicKeySlice{table: list}, nil,
		n.MoveCoins(pubOf(a), 2_000_000_000), n.MoveTokens(list[1], n.program, n.mint, 4_000_000, 6))
	n.Mine(3)
	require.Len(t, clienttest.Agree(t, n.client, trail, a, b), 3)
}

// A node whose lists contradict its blocks, or each other, or end nowhere, is read block by
// block. Whatever it says of histories, nothing is lost.
func TestFN09_ListsThatAreWrong(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.account("a")
	var change func(method string, answer []byte) []byte
	client, _ := n.through(func(question, answer []byte) []byte {
		var q struct{ Method string }
		require.NoError(t, json.Unmarshal(question, &q))
		if change == nil {
			return answer
		}
		return change(q.Method, answer)
	})
	n.client = client
	n.Fault("skip", 2)
	trail := clienttest.Begun(t, n.client)
	for range firstPage + 1 {
		n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
		n.Mine(2)
	}
	require.Len(t, clienttest.Agree(t, n.client, trail, a), firstPage+1)
	one := func(signature string, slot int) string {
		return fmt.Sprintf(`{"signature":%q,"slot":%d,"err":null}`, signature, slot)
	}
	slot, err := slotOf(n.Head(t).Hash)
	require.NoError(t, err)
	for name, says := range map[string]string{
		"refused":         `"error":{"code":-32601,"message":"Method not found"}`,
		"nothing":         `"result":null`,
		"out of order":    `"result":[` + one("x", int(slot)-3) + `,` + one("y", int(slot)) + `]`,
		"of no block":     `"result":[` + one("x", int(slot)-1) + `]`,
		"without an end":  `"result":[` + strings.Repeat(one("x", int(slot))+`,`, nextPage) + one("y", int(slot)) + `]`,
		"no token lists":  "",
		"accounts of all": "",
	} {
		change = func(method string, answer []byte) []byte {
			switch {
			case says == "" && method == "getTokenAccountsByOwner" && name == "no token lists":
				return []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"not here"}}`)
			case says == "" && method == "getTokenAccountsByOwner":
				return []byte(`{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":1},"value":[{"pubkey":"none"}]}}`)
			case says != "" && method == "getSignaturesForAddress":
				return []byte(`{"jsonrpc":"2.0","id":1,` + says + `}`)
			}
			return answer
		}
		found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 10)
		require.Len(t, found, firstPage+1, name)
		require.Len(t, after, 1+2*(firstPage+1), name)
	}
}

// lacking makes clients whose lists lack what drop says, by place from the newest on.
func (n *town) lacking(drop func(place int) bool) func(change ...func(*Options)) *Client {
	client, _ := n.through(func(question, answer []byte) []byte {
		if !bytes.Contains(question, []byte("getSignaturesForAddress")) || bytes.Contains(question, []byte("before")) {
			return answer
		}
		var a struct {
			Version string            `json:"jsonrpc"`
			ID      json.RawMessage   `json:"id"`
			Result  []json.RawMessage `json:"result"`
		}
		if json.Unmarshal(answer, &a) != nil {
			return answer
		}
		kept := []json.RawMessage{}
		for i, x := range a.Result {
			if !drop(i) {
				kept = append(kept, x)
			}
		}
		a.Result = kept
		out, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		return out
	})
	return func(change ...func(*Options)) *Client {
		return n.newClient(append([]func(*Options){func(o *Options) { o.URL = client.o.URL }}, change...)...)
	}
}

// Of several payments, a list lacks the newest, or one between: at a poll that follows another, at
// the first after a start, and at the first of an address that was paid before. All are found, and
// histories are used again once the lists are whole.
func TestFN09_ListsThatLackSome(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	var lacks []int
	client := n.lacking(func(place int) bool { return slices.Contains(lacks, place) })
	coin := func(a chain.Address, amount int64) {
		n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(amount)})
	}
	token := func(a chain.Address, amount int64) {
		n.pay(chaintest.Payment{To: a, Currency: "USDTSOL", Amount: decimal.NewFromInt(amount)})
	}
	others := map[chain.Address]sdk.PublicKey{}
	other := func(a chain.Address, amount int64) { // in a token account that is not the associated one
		if at, ok := others[a]; ok {
			n.Send(nil, n.MoveTokens(at, n.program, n.mint, uint64(amount), 6))
			return
		}
		others[a] = n.opened(pubOf(a), uint64(amount))
	}
	for kind, pay := range map[string]func(a chain.Address, amount int64){"coins": coin, "tokens": token, "other": other} {
		for _, start := range []string{"polled", "first", "restarted"} {
			for _, blocks := range []int{0, 2} {
				for _, list := range [][]int{{0}, {0, 1}, {0, 1, 2}, {1}, {2}, {1, 2}} {
					name := fmt.Sprint(kind, start, blocks, list)
					a, c := n.account(name), client()
					w := &clienttest.Few{Only: follow.Only{a}}
					if start == "restarted" || kind == "other" {
						pay(a, 7)
						n.Mine(1)
					}
					trail := clienttest.Begun(t, c)
					n.Mine(1)
					if start == "polled" {
						_, trail = clienttest.Follow(t, c, trail, w, 10)
						n.Mine(1)
					}
					for i := range 3 {
						pay(a, int64(1+i))
						n.Mine(blocks)
					}
					n.Mine(2)
					lacks = list
					found, after := clienttest.Follow(t, c, trail, w, 10)
					all, _ := clienttest.Follow(t, c, trail, w.Only, 10)
					require.Len(t, all, 3, name)
					require.Len(t, found, 3, name)
					lacks = nil
					n.Mine(2)
					pay(a, 9)
					n.Mine(2)
					found, again := clienttest.Follow(t, c, after, w, 10)
					require.Len(t, found, 1, name)
					require.Len(t, again, len(after)+2, "%s: by histories", name)
				}
			}
		}
	}
}

// A service whose lists come from another database than its blocks, and late, is found out by what
// accounts hold: blocks are read whole until the lists have what changed it. A list that lacks what
// it had is behind, too.
func TestFN09_ListsThatAreLate(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.account("a"), n.account("b")
	late := false
	client, _ := n.through(func(question, answer []byte) []byte {
		if late && bytes.Contains(question, []byte("getSignaturesForAddress")) {
			return []byte(`{"jsonrpc":"2.0","id":1,"result":[]}`)
		}
		return answer
	})
	n.client = client
	w := &clienttest.Few{Only: follow.Only{a, b}}
	n.pay(chaintest.Payment{To: b, Currency: "USDTSOL", Amount: decimal.NewFromInt(1)})
	trail := clienttest.Begun(t, n.client)
	n.Mine(2)
	_, trail = clienttest.Follow(t, n.client, trail, w, 10)
	late = true
	for _, p := range []chaintest.Payment{
		{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)},
		{To: b, Currency: "USDTSOL", Amount: decimal.NewFromInt(2)},
	} {
		n.Mine(2)
		tx := n.pay(p)
		n.Mine(2)
		var found []chain.Transfer
		found, trail = clienttest.Follow(t, n.client, trail, w, 10)
		require.Len(t, found, 1)
		require.Equal(t, tx, found[0].Tx)
	}
	n.Mine(4)
	_, after := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, after, len(trail)+1, "what was read whole is explained")
	late = false
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(4)
	s, err := n.client.Scan(t.Context(), after, w, 0) // the list is read, and no block
	require.NoError(t, err)
	require.Empty(t, s.Blocks)
	late = true
	found, after := clienttest.Follow(t, n.client, after, w, 10)
	require.Len(t, found, 1, "it was listed once")
	fresh := n.account("fresh")
	w.Only = append(w.Only, fresh)
	n.pay(chaintest.Payment{To: fresh, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(4)
	found, _ = clienttest.Follow(t, n.client, after, w, 10)
	require.Len(t, found, 1, "it held nothing before")
}

// What changed without a transaction that tells it has blocks read whole, once: a reward, and coins
// that a stranger sent to a token account without naming its program.
func TestFN09_ChangesThatNoTransactionTells(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.account("a")
	at := solanatest.ATA(pubOf(a), n.program, n.mint)
	n.pay(chaintest.Payment{To: a, Currency: "USDTSOL", Amount: decimal.NewFromInt(1)})
	n.Mine(1)
	trail, w := clienttest.Begun(t, n.client), &clienttest.Few{Only: follow.Only{a}}
	read := func() int {
		before := len(trail)
		n.Mine(4)
		_, trail = clienttest.Follow(t, n.client, trail, w, 10)
		return len(trail) - before
	}
	require.Equal(t, 1, read())
	n.Set(pubOf(a), sdk.SystemProgramID, 3_000_000, nil)
	require.Equal(t, 4, read())
	require.Equal(t, 1, read())
	n.Send(nil, n.MoveCoins(at, 1))
	require.Equal(t, 4, read())
	require.Equal(t, 1, read())
	n.client = n.newClient()
	require.Equal(t, 4, read(), "after a start its last transaction is asked for")
	require.Equal(t, 1, read())
	n.pay(chaintest.Payment{To: a, Currency: "USDTSOL", Amount: decimal.NewFromInt(1)})
	n.Mine(3)
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 1)
}

// What a transaction did is asked for once, and an idle poll asks for none, also where looks are of
// a slot after the head.
func TestFN09_TransactionsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	var mu sync.Mutex
	asked, grow := 0, false
	n.client, _ = n.through(func(question, answer []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(question, []byte("getTransaction")) {
			asked++
		}
		if grow && bytes.Contains(question, []byte("getTokenAccountsByOwner")) {
			grow = false
			n.Mine(2)
		}
		return answer
	})
	a, b := n.account("a"), n.account("b")
	for range 3 {
		n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
		n.Mine(1)
	}
	trail, w := clienttest.Begun(t, n.client), &clienttest.Few{Only: follow.Only{a, b}}
	n.Mine(1)
	for i, want := range []int{1, 0, 0, 3, 0, 0} {
		if want == 3 {
			n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
			n.pay(chaintest.Payment{To: b, Currency: "USDTSOL", Amount: decimal.NewFromInt(1)})
			n.Mine(1)
		}
		mu.Lock()
		asked, grow = 0, true
		mu.Unlock()
		s, err := n.client.Scan(t.Context(), trail, w, 10)
		require.NoError(t, err)
		for _, x := range s.Blocks {
			trail = append(trail, x.Block)
		}
		require.Equal(t, want, asked, "poll %d", i)
	}
}

// Of several nodes behind one URL, one that is a little behind refuses: the next may not.
func TestFN09_ANodeThatIsALittleBehind(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.account("a")
	var mu sync.Mutex
	refused := map[string]bool{}
	client, _ := n.through(func(question, answer []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(question, []byte("minContextSlot")) && !refused[string(question)] {
			refused[string(question)] = true
			return []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":1}}}`)
		}
		return answer
	})
	n.client = client
	trail := clienttest.Begun(t, n.client)
	n.Mine(2)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(2)
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 1)
	require.Len(t, refused, 2+1+2)
}

// A chain that changes while histories are read gives no answer of two branches: the next Scan
// follows the fork.
func TestFN09_AForkMeanwhile(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"getTokenAccountsByOwner", "getSignaturesForAddress", "getBlock"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			a := n.account("a")
			armed := false
			client, _ := n.through(func(question, answer []byte) []byte {
				if armed && bytes.Contains(question, []byte(at)) && (at != "getBlock" || bytes.Contains(question, []byte(`"full"`))) {
					armed = false
					n.Reorg(2)
				}
				return answer
			}, func(o *Options) { o.Parallel = 1 })
			n.client = client
			trail := clienttest.Begun(t, n.client)
			n.Mine(2)
			n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
			n.Mine(2)
			armed = true
			s, err := n.client.Scan(t.Context(), trail, &clienttest.Few{Only: follow.Only{a}}, 10)
			require.False(t, armed)
			if at == "getSignaturesForAddress" { // what was held on one branch is not in the list of the other: read whole
				require.NoError(t, err)
				b, err := n.client.BlockAt(t.Context(), s.Blocks[len(s.Blocks)-1].Height)
				require.NoError(t, err)
				require.Equal(t, b.Hash, s.Blocks[len(s.Blocks)-1].Hash)
			} else {
				require.ErrorIs(t, err, chain.ErrNode)
				require.Empty(t, s)
			}
			n.Mine(2)
			require.Len(t, clienttest.Agree(t, n.client, trail, a), 1)
		})
	}
}

// A node that jumped over blocks lacks what they did in its histories, too: it is read block by
// block up to there, and what was paid there is found from a node that has them.
func TestFN09_ANodeThatLacksBlocks(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.account("a")
	trail := clienttest.Begun(t, n.client)
	n.Mine(2)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(3)
	h := trail[0].Height
	n.Fault("gap", []int64{h + 3, h + 3})
	s, err := n.client.Scan(t.Context(), trail, &clienttest.Few{Only: follow.Only{a}}, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 2)
	trail = append(trail, s.Blocks[0].Block, s.Blocks[1].Block)
	s, err = n.client.Scan(t.Context(), trail, &clienttest.Few{Only: follow.Only{a}}, 10)
	require.ErrorIs(t, err, chain.ErrNode)
	require.Empty(t, s.Blocks)
	n.Fault("gap", nil)
	found, _ := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 10)
	require.Len(t, found, 1)
}

// A node without histories, or without lists of token accounts, is read block by block.
func TestFN09_ANodeWithoutHistories(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"nohistory", "unlisted"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			n.Fault(fault, true)
			a := n.account("a")
			trail := clienttest.Begun(t, n.client)
			n.Mine(2)
			n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
			n.Mine(2)
			found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 10)
			require.Len(t, found, 1)
			require.Len(t, after, 1+4, "every block")
		})
	}
}

// A trail with gaps is gone on with by whole blocks from any of its ends.
func TestFN09_FromHistoriesToWholeBlocks(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.account("a"), n.account("b")
	trail := clienttest.Begun(t, n.client)
	n.Mine(3)
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(3)
	_, trail = clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 10)
	require.Len(t, trail, 3)
	n.pay(chaintest.Payment{To: b, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(2)
	for i := 1; i < 3; i++ {
		found, after := clienttest.Follow(t, n.client, trail[:i+1:i+1], follow.Only{a, b}, 10)
		require.Equal(t, b, found[len(found)-1].To)
		require.Equal(t, after[i].Height+1, after[i+1].Height)
	}
}
