package journal_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

const tenant = "shop"

var start = time.Date(2026, 11, 1, 23, 0, 0, 0, time.UTC)

func scale(asset string) (uint8, error) {
	switch asset {
	case "ETH":
		return 12, nil
	case "USDTERC20":
		return 6, nil
	}
	return 0, fmt.Errorf("no currency %q", asset)
}

// books posts transactions of several legs over some days, by two processes whose clocks
// differ by a minute.
func books(t *testing.T, n int) (storage.Store, journal.Source) {
	t.Helper()
	const seed = 20261126
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's
	s := memory.New()
	require.NoError(t, s.Open(t.Context()))
	for i := range n {
		at := start.Add(time.Duration(i) * 40 * time.Second)
		if r.IntN(2) == 0 {
			at = at.Add(-time.Minute)
		}
		x := ledger.Amount(r.Int64N(1_000_000) + 2)
		w := ledger.Wallet(fmt.Sprintf("%c-%d", 'a'+rune(i%3), i%17))
		c := storage.Change{ID: fmt.Sprint("change/", i), Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
			ID: fmt.Sprint("credit/", i), Kind: ledger.KindDeposit, Ref: fmt.Sprint("p;|\"", i), At: at,
			Legs: []ledger.Leg{
				{Account: ledger.Chain("ETH"), Asset: "USDTERC20", Delta: -x},
				{Account: w, Asset: "USDTERC20", Delta: x - 1},
				{Account: ledger.FeesPlatform, Asset: "USDTERC20", Delta: 1},
				{Account: ledger.FeesNetwork, Asset: "ETH", Delta: -x},
				{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: x},
			},
		}}}
		require.NoError(t, s.Commit(t.Context(), c)[0])
	}
	return s, journal.Source{Store: s, Tenant: tenant, Scale: scale}
}

// Each entry is there once, in whole transactions, whatever the pages and the clocks.
func TestEachEntryOnce(t *testing.T) {
	t.Parallel()
	const n = 3_000
	_, src := books(t, n)
	seen := map[string]bool{}
	for tx, err := range src.Transactions(t.Context()) {
		require.NoError(t, err)
		require.False(t, seen[tx.ID], "%s stands there twice", tx.ID)
		seen[tx.ID] = true
		require.Len(t, tx.Entries, 5, tx.ID)
	}
	require.Len(t, seen, n)
}

// hledger and Beancount find what was written right, and a balance of the store that its
// entries do not come to wrong.
func TestAccountantsPrograms(t *testing.T) {
	t.Parallel()
	s, src := books(t, 500)
	require.NoError(t, hledger(t, src))
	require.NoError(t, beancount(t, src))

	src.Store = oneMore{s}
	require.ErrorContains(t, hledger(t, src), "assertion")
	require.ErrorContains(t, beancount(t, src), "Balance failed")

	src.Store, src.Until = s, start.Add(3*time.Hour)
	require.NoError(t, hledger(t, src))
	require.NoError(t, beancount(t, src))
}

// The running balance of each account ends at what the store says, with the sign turned.
func TestRunningBalances(t *testing.T) {
	t.Parallel()
	s, src := books(t, 500)
	var b bytes.Buffer
	require.NoError(t, src.CSV(t.Context(), &b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+500*5)
	last := map[string]string{}
	for _, r := range rows[1:] {
		last[r[4]+" "+r[5]] = r[7]
	}
	all, err := s.Balances(t.Context(), storage.Tenant(tenant))
	require.NoError(t, err)
	require.Len(t, last, len(all))
	for _, b := range all {
		if b.Account == ledger.Chain("ETH") && b.Asset == "ETH" {
			n, err := b.Posted.Neg()
			require.NoError(t, err)
			require.Equal(t, n.Format(12, 12), last["Assets:Chains:ETH ETH"])
			require.True(t, strings.HasPrefix(last["Assets:Chains:ETH ETH"], "-"), "what left the chain")
		}
	}
	require.Equal(t, "-0.000500", last["Income:Fees:Platform USDTERC20"])
}

// Whoever lost entries hears of it.
func TestMissingEntries(t *testing.T) {
	t.Parallel()
	s, src := books(t, 20)
	src.Store = lost{s}
	for _, err := range src.Transactions(t.Context()) {
		if err != nil {
			require.ErrorContains(t, err, "has no entries")
			return
		}
	}
	t.Fatal("nothing was said")
}

// An empty tenant has an empty journal, which both programs take.
func TestNothingPosted(t *testing.T) {
	t.Parallel()
	_, src := books(t, 0)
	require.NoError(t, hledger(t, src))
	require.NoError(t, beancount(t, src))
}

// oneMore says of an account one unit more than its entries come to.
type oneMore struct{ storage.Store }

func (f oneMore) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	out, err := f.Store.Balances(ctx, p, accounts...)
	out[0].Posted++
	return out, err
}

// lost leaves out the third entry of everybody.
type lost struct{ storage.Store }

func (l lost) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, most int) (out []ledger.Entry, err error) {
	all, err := l.Store.Entries(ctx, p, a, asset, before, most)
	for _, e := range all {
		if e.Seq != 3 {
			out = append(out, e)
		}
	}
	return out, err
}

func hledger(t *testing.T, src journal.Source) error {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, src.HLedger(t.Context(), &b))
	return testenv.HLedger(t, b.Bytes())
}

func beancount(t *testing.T, src journal.Source) error {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, src.Beancount(t.Context(), &b))
	return testenv.BeanCheck(t, b.Bytes())
}
