package solana

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll costs depends neither on how many payments are open nor on
// how many transfers a block has.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	rows := polls(t, -1, nil)
	clienttest.SameCalls(t, rows)
}

// TestFN09_CallsOfAPollByHistories: an idle poll costs what it costs however many blocks were
// made, and some calls an address; above Options.FewAddresses blocks are read as before.
func TestFN09_CallsOfAPollByHistories(t *testing.T) {
	t.Parallel()
	rows := polls(t, 20, []int{1, 20, 21})
	cost := map[int]int{}
	for _, r := range rows {
		if r.Found == "an empty block" {
			cost[r.Open] = r.Calls
		}
		if r.Found == "an empty block" || r.Found == "a block of others" {
			require.Equal(t, cost[r.Open], r.Calls, "%v", r)
			require.Equal(t, r.Open == 21, r.Methods["getSignaturesForAddress"] == 0, "%v", r)
		}
	}
	// Looks at the head, the last block and all accounts, the list of slots; of an address its own list,
	// that of its token account, and two lists of token accounts.
	require.Equal(t, cost[1]+4*19, cost[20])
	require.Less(t, cost[21], cost[20])
}

// TestFN09_TheMostIsReported: that no more addresses are taken than are handed out rests on it.
func TestFN09_TheMostIsReported(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	for set, reported := range map[int]int{0: 10, 3: 3, -1: 0} {
		c := n.newClient(func(o *Options) { o.FewAddresses = set })
		require.Equal(t, reported, c.FewAddresses())
	}
}

func polls(t *testing.T, few int, open []int) []clienttest.Poll {
	t.Helper()
	var m *testenv.Meter
	n := openTown(t, func(o *Options) {
		o.FewAddresses = few
		at := strings.LastIndexByte(o.URL, '/') // the chain's name
		m = testenv.NewMeter(t, o.URL[:at])
		o.URL = m.URL + o.URL[at:]
	})
	address := func(i int) chain.Address {
		key := sha256.Sum256([]byte(strconv.Itoa(i)))
		return chain.Address(sdk.PublicKey(key).String())
	}
	return clienttest.Polls{
		Open: open, Client: n.client, Registry: n.registry, Meter: m, Address: address,
		Mine: func(testing.TB) { n.Mine(1) },
		Pay: func(_ testing.TB, count int) {
			for i := range count {
				n.pay(chaintest.Payment{To: address(i), Currency: "SOL", Amount: decimal.NewFromInt(1)})
			}
			n.Mine(1)
		},
		Others: func(testing.TB) {
			n.pay(chaintest.Payment{To: address(-1), Currency: "SOL", Amount: decimal.NewFromInt(1)})
			n.Mine(1)
		},
	}.Run(t)
}
