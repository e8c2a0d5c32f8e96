package stellar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

// TestFN09_HistoriesAreComplete compares what is found by whole ledgers, by histories and by both
// in turns.
func TestFN09_HistoriesAreComplete(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			few := n.client.o
			few.FewAddresses = 1000
			whole := few
			whole.FewAddresses = -1
			accounts := []chain.Address{n.customer(t, "one").Address, n.customer(t, "two").Address}
			ids := map[chain.Address]uint64{}
			found := clienttest.Ways{
				Registry: n.registry, Whole: newClient(t, whole), Few: newClient(t, few), Seed: seed, Rounds: 60,
				Address: func(i int) chain.Address {
					a, err := n.client.Multiplex(accounts[i%2], uint32(i))
					require.NoError(t, err)
					ids[a] = uint64(i)
					return a
				},
				Happen: func(t testing.TB, r *rand.Rand, paid []chain.Address) {
					to := paid[r.IntN(len(paid))]
					account, _, _ := n.client.Untag(to)
					id := ids[to]
					p := stellartest.Pay{To: string(account), MuxedID: &id, Stroops: lumen + r.Int64N(1000)}
					all := []stellartest.Pay{p}
					switch r.IntN(12) {
					case 0: // to the account alone
						all[0].MuxedID = nil
					case 1:
						all[0].MuxedID, all[0].MemoType, all[0].Memo = nil, "id", fmt.Sprint(id)
					case 2:
						all[0].Asset = "USD"
					case 3:
						all[0].Fails = true
					case 4, 5:
						all[0].Kind = []string{
							"path_payment_strict_send", "path_payment_strict_receive", "account_merge", "invoke_host_function",
							"create_claimable_balance", stellartest.Tomorrow,
						}[r.IntN(6)]
					case 6:
						other := p
						other.To, other.MuxedID = string(accounts[r.IntN(2)]), nil
						all = append(all, other, p)
					case 7:
						all[0].To = stellartest.Address("stranger")
					}
					n.Send(all...)
					n.Mine(r.IntN(6))
				},
				Settle: func(testing.TB) { n.Mine(2) },
			}.Run(t)
			require.Greater(t, found, 25)
		})
	}
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// TestFN09_ConformanceByHistories is TestConformance where Horizon's word on accounts says which
// ledgers are read.
func TestFN09_ConformanceByHistories(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		h := openTown(t).harness()
		h.Histories = true
		return h
	})
}

// paid makes a chain in which an account was paid in some of the ledgers after a trail.
func (n *town) paid(t testing.TB, a chain.Address, times, apart int) (trail []chain.Block) {
	t.Helper()
	n.fund(t, a, 100)
	trail = clienttest.Begun(t, n.client)
	for i := range times {
		for range 1 + i%3 {
			n.Send(payment(a, decimal.NewFromInt(1), fmt.Sprint(i)))
		}
		n.Mine(apart)
	}
	return trail
}

// What is handed out after the list was made, and paid at once, is found by the next Scan.
func TestFN09_AnAccountThatIsHandedOutMeanwhile(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, late := n.customer(t, "a").Address, n.customer(t, "late").Address
	trail := n.paid(t, a, 1, 3)
	w := &clienttest.Few{Only: follow.Only{a}}
	w.Listed = func() {
		w.Only = follow.Only{a, late}
		n.fund(t, late, 5)
	}
	found, _ := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, found, 2)
	require.Equal(t, late, found[1].To)
}

// A list that is longer than is asked for at once is read in parts. No more ledgers are given than
// were asked for.
func TestFN09_LongLists(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	n.fund(t, a, 100)
	trail := clienttest.Begun(t, n.client)
	const many = 60
	one := payment(a, decimal.NewFromInt(1), "1")
	for range many { // in each of the ledgers with many operations
		all := make([]stellartest.Pay, 90)
		for i := range all {
			all[i] = one
		}
		n.Send(all...)
		n.Mine(2)
	}
	require.Greater(t, many*90, 2*mostPages*pageSize)
	require.Len(t, clienttest.Agree(t, n.client, trail, a), many*90)
	for range mostPages*pageSize/100 + 1 { // more in one ledger than is asked for at once
		all := make([]stellartest.Pay, 100)
		for i := range all {
			all[i] = one
		}
		n.Send(all...)
	}
	trail = clienttest.Begun(t, n.client)
	n.Mine(2)
	found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 3)
	require.Len(t, found, mostPages*pageSize+100)
	require.Len(t, after, 1+2)
}

// A node that does not show that it named all ledgers is read ledger by ledger. Whatever it says of
// accounts, nothing is lost.
func TestFN09_ListsThatAreWrong(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	trail := n.paid(t, a, 4, 3)
	head := n.Head(t).Height
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 1+2+3+1)
	state := func(path string) bool { return strings.HasSuffix(path, string(a)) }
	list := func(path string) bool {
		return strings.HasSuffix(path, "/operations") && strings.HasPrefix(path, "/accounts/")
	}
	says := func(of func(path string) bool, body string) func(f *stellartest.Fault) {
		return func(f *stellartest.Fault) {
			f.Tamper = func(path string, was []byte) []byte {
				if of(path) {
					return []byte(body)
				}
				return was
			}
		}
	}
	behind := func(of func(path string) bool, by int) func(f *stellartest.Fault) {
		return func(f *stellartest.Fault) {
			f.Backs = func(path string) int { return map[bool]int{true: by}[of(path)] }
		}
	}
	const problem = `{"type":"https://stellar.org/horizon-errors/x","title":"x","status":%d}`
	operation := func(id int64, good bool) string {
		return fmt.Sprintf(`{"id":"%d","transaction_hash":%q,"transaction_successful":%t,"type":"payment"}`, id, strings.Repeat("0", 64), good)
	}
	records := func(all ...string) string { return `{"_embedded":{"records":[` + strings.Join(all, ",") + `]}}` }
	for name, fault := range map[string]func(f *stellartest.Fault){
		"no date":                          func(f *stellartest.Fault) { f.Undated = true },
		"accounts of a server behind":      behind(state, 1),
		"accounts of one far behind":       behind(state, 13),
		"lists of a server behind":         behind(list, 3),
		"lists of one far behind":          behind(list, 9),
		"lists of one that lacks them all": behind(list, 13),
		"another account":                  says(state, `{"account_id":"G","last_modified_ledger":1}`),
		"never changed":                    says(state, fmt.Sprintf(`{"account_id":%q}`, a)),
		"no account":                       says(state, `7`),
		"refused":                          says(state, fmt.Sprintf(problem, 400)),
		"lists are refused":                says(list, fmt.Sprintf(problem, 400)),
		"no list":                          says(list, fmt.Sprintf(problem, 404)),
		"an empty list":                    says(list, records()),
		"a list out of order":              says(list, records(operation(head<<32|1<<12|2, true), operation(head<<32|1<<12|1, true))),
		"before the range":                 says(list, records(operation(1, true))),
		"failed":                           says(list, records(operation(head<<32|1<<12|1, false))),
	} {
		n.Set(fault)
		found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 100)
		require.Len(t, found, 1+2+3+1, name)
		require.Len(t, after, 1+int(head-trail[0].Height), name)
		n.Set(func(f *stellartest.Fault) { *f = stellartest.Fault{} })
	}
}

// What changed an account after the head was read tells nothing of what is below: the list does.
func TestFN09_AnAccountThatIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	trail := n.paid(t, a, 2, 2)
	w := &clienttest.Few{Only: follow.Only{a}}
	w.Listed = func() {
		for range 2 {
			n.Send(payment(a, decimal.NewFromInt(1), ""))
			n.Mine(1)
		}
	}
	s, err := n.client.Scan(t.Context(), trail, w, 10)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 2+1, "not all ledgers are read")
	for _, b := range s.Blocks {
		trail = append(trail, b.Block)
	}
	found, _ := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, found, 2)
}

// Whoever has no history so far back gives an error.
func TestFN09_LedgersThatWerePruned(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	trail := n.paid(t, a, 1, 6)
	w := &clienttest.Few{Only: follow.Only{a}}
	n.Set(func(f *stellartest.Fault) { f.Earliest = trail[0].Height + 3 })
	s, err := n.client.Scan(t.Context(), trail, w, 10)
	require.ErrorIs(t, err, chain.ErrNode)
	require.Empty(t, s.Blocks)
	n.Set(func(f *stellartest.Fault) { f.Earliest = 0 })
	found, _ := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, found, 1)
}
