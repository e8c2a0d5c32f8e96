package xrp

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
)

// TestFN09_HistoriesAreComplete compares what is found by whole ledgers, by histories and by both
// in turns, of rippled and of Clio.
func TestFN09_HistoriesAreComplete(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := openTown(t)
			n.Set(func(f *xrptest.Fault) { f.Clio = seed%2 == 1 })
			few := n.client.o
			few.FewAddresses = 1000
			whole := few
			whole.FewAddresses = -1
			accounts := []chain.Address{n.customer(t, "one").Address, n.customer(t, "two").Address}
			tags := map[chain.Address]uint32{}
			found := clienttest.Ways{
				Registry: n.registry, Whole: newClient(t, whole), Few: newClient(t, few), Seed: seed, Rounds: 60,
				Address: func(i int) chain.Address {
					a, err := n.client.Multiplex(accounts[i%2], uint32(i))
					require.NoError(t, err)
					tags[a] = uint32(i)
					return a
				},
				Happen: func(t testing.TB, r *rand.Rand, paid []chain.Address) {
					to := paid[r.IntN(len(paid))]
					account, _, _ := n.client.Untag(to)
					p := xrptest.Pay{To: string(account), Tag: tag(tags[to]), Drops: xrp + r.Int64N(1000)}
					switch r.IntN(12) {
					case 0: // to the account alone
						p.Tag = nil
					case 1:
						p.Delivers = p.Drops / 2
					case 2:
						p.Issued = "EUR"
					case 3:
						p.Fails = "tecPATH_DRY"
					case 4:
						p.Kind = []string{"EscrowFinish", "PaymentChannelClaim", "CheckCash", "AccountDelete", "TypeOfTomorrow"}[r.IntN(5)]
					case 5:
						p.Kind, p.Also = "TypeOfTomorrow", []string{string(accounts[0]), string(accounts[1])}
					case 6:
						p.Unsaid = true
					case 7:
						p.To = xrptest.Address("stranger")
					}
					n.Send(p)
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

// TestFN09_ConformanceByHistories is TestConformance where lists of transactions say which
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
			n.pay(t, a, decimal.NewFromInt(1), strconv.Itoa(i))
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

// A list that is longer than is asked for at once is read in parts; a page may end, and the
// reading, within a ledger. No more ledgers are given than were asked for.
func TestFN09_LongLists(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t)
		n.Set(func(f *xrptest.Fault) { f.Clio = clio })
		a := n.customer(t, "a").Address
		trail := n.paid(t, a, 40, 2)
		require.Len(t, clienttest.Agree(t, n.client, trail, a), 40+13+2*13)
		found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 3)
		require.Len(t, found, 40+13+2*13)
		require.Less(t, len(after), 1+2*40)
		for range 3*mostPages + 1 { // more in one ledger than is asked for at once
			n.pay(t, a, decimal.NewFromInt(1), "")
		}
		n.Mine(2)
		again, _ := clienttest.Follow(t, n.client, after, &clienttest.Few{Only: follow.Only{a}}, 3)
		require.Len(t, again, 3*mostPages+1)
	}
}

// A node whose list is not of the whole range, or is out of order, not validated or endless, or
// that has none, is read ledger by ledger. Whatever it says of lists, nothing is lost.
func TestFN09_ListsThatAreWrong(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	trail := n.paid(t, a, 4, 3)
	head := n.Head(t).Height
	require.Len(t, clienttest.Agree(t, n.client, trail, a), 1+2+3+1)
	from := trail[0].Height + 1
	entry := func(ledger int64, index int, validated bool) string {
		return fmt.Sprintf(`{"meta":{"TransactionIndex":%d},"tx":{"ledger_index":%d},"validated":%t}`, index, ledger, validated)
	}
	says := func(least, most int64, more string, entries ...string) string {
		return fmt.Sprintf(`{"result":{"status":"success","ledger_index_min":%d,"ledger_index_max":%d,"transactions":[%s]%s}}`, least, most, strings.Join(entries, ","), more)
	}
	marker := `,"marker":{"ledger":1,"seq":1}`
	for name, answer := range map[string]string{
		"a later beginning": says(from+1, head, ""),
		"an earlier end":    says(from, head-1, ""),
		"no range":          `{"result":{"status":"success","transactions":[]}}`,
		"below the range":   says(from, head, "", entry(from-1, 0, true)),
		"above the range":   says(from, head, "", entry(head+1, 0, true)),
		"not validated":     says(from, head, "", entry(from, 0, false)),
		"out of order":      says(from, head, "", entry(from+1, 0, true), entry(from, 0, true)),
		"twice":             says(from, head, "", entry(from, 0, true), entry(from, 0, true)),
		"a loop":            says(from, head, marker, entry(from, 0, true)),
		"no end":            says(from, head, marker),
		"no metadata":       says(from, head, "", `{"tx":{"ledger_index":`+fmt.Sprint(from)+`},"validated":true}`),
		"not enabled":       `{"result":{"status":"error","error":"notEnabled","error_code":12,"error_message":"Not enabled in configuration."}}`,
		"no such account":   `{"result":{"status":"error","error":"actNotFound","error_code":19,"error_message":"Account not found."}}`,
		"no such range":     `{"result":{"status":"error","error":"lgrIdxsInvalid","error_code":57,"error_message":"Ledger indexes invalid."}}`,
		"something else":    `{"result":{"status":"success"}}`,
	} {
		n.Set(func(f *xrptest.Fault) {
			f.Tamper = func(method string, body []byte) []byte {
				if method == "account_tx" {
					return []byte(answer)
				}
				return body
			}
		})
		found, after := clienttest.Follow(t, n.client, trail, &clienttest.Few{Only: follow.Only{a}}, 100)
		require.Len(t, found, 1+2+3+1, name)
		require.Len(t, after, 1+int(head-trail[0].Height), name)
	}
}

// A server that lacks a ledger gives an error, and no answer without it; what was paid there is
// found once it has it.
func TestFN09_LedgersThatAreMissing(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a := n.customer(t, "a").Address
	trail := n.paid(t, a, 1, 6)
	w := &clienttest.Few{Only: follow.Only{a}}
	for name, fault := range map[string]func(f *xrptest.Fault){
		"one":   func(f *xrptest.Fault) { f.Missing = trail[0].Height + 1 },
		"first": func(f *xrptest.Fault) { f.Earliest = trail[0].Height + 2 },
	} {
		n.Set(fault)
		s, err := n.client.Scan(t.Context(), trail, w, 10)
		require.ErrorIs(t, err, chain.ErrNode, name)
		require.Empty(t, s.Blocks, name)
		n.Set(func(f *xrptest.Fault) { f.Missing, f.Earliest = 0, 0 })
	}
	found, _ := clienttest.Follow(t, n.client, trail, w, 10)
	require.Len(t, found, 1)
}
