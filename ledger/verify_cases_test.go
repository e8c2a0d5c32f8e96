package ledger_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// One unit on the wrong side of zero is a fault, as much as many: suspense never
// owes, and nobody's debt is money of theirs.
func TestFQ12_OneUnitOnTheWrongSide(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		account ledger.Account
		wrong   ledger.Amount
	}{{ledger.Suspense, -1}, {ledger.Receivable("1"), 1}} {
		t.Run(string(of.account), func(t *testing.T) {
			t.Parallel()
			for delta, want := range map[ledger.Amount][]ledger.Fault{of.wrong: {ledger.FaultSign}, -of.wrong: nil} {
				j := sound(t)
				require.NoError(t, j.post(ledger.Tx{ID: "one", Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
					{Account: of.account, Asset: "ETH", Delta: delta},
					{Account: ledger.Chain("net"), Asset: "ETH", Delta: -delta},
				}}))
				require.Equal(t, want, faultsOf(t, j.books()), "%d", delta)
			}
		})
	}
}

// Findings that come from walking a map are told by asset, account, transaction and
// fault, so that two reports of one ledger are the same text.
func TestVerify_FindingsAreSorted(t *testing.T) {
	t.Parallel()
	var books struct {
		balances []ledger.Balance
		entries  []ledger.Entry
	}
	type told struct {
		fault   ledger.Fault
		account ledger.Account
		asset   ledger.Asset
		tx      string
	}
	var reading, lines, txs, sums []told
	assets, ids := []ledger.Asset{"BTC", "ETH", "XRP"}, []string{"t1", "t2", "t3"}
	accounts := []ledger.Account{ledger.FeesPlatform, ledger.Suspense, ledger.Wallet("1")}
	for _, asset := range assets {
		for i, account := range accounts { // no entry explains any of these
			books.balances = append(books.balances, ledger.Balance{Account: account, Asset: asset, Posted: ledger.Amount(3*i - 1), Seq: 1})
			lines = append(lines, told{ledger.FaultCount, account, asset, ""}, told{ledger.FaultDrift, account, asset, ""})
		}
		for _, tx := range ids { // and these have no balance
			books.entries = append(books.entries, ledger.Entry{Account: ledger.Float, Asset: asset, Tx: tx, Delta: 1, Seq: 1})
			reading = append(reading, told{ledger.FaultAhead, ledger.Float, asset, tx})
			txs = append(txs, told{ledger.FaultUnbalanced, "", asset, tx})
		}
		sums = append(sums, told{ledger.FaultDeficit, "", asset, ""}, told{ledger.FaultInsolvent, "", asset, ""}, told{ledger.FaultUneven, "", asset, ""})
	}
	report, err := ledger.Verify(ledger.Books{
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range books.balances {
				if !yield(b, nil) {
					return
				}
			}
		},
		Entries: func(yield func(ledger.Entry, error) bool) {
			for _, e := range books.entries {
				if !yield(e, nil) {
					return
				}
			}
		},
	})
	require.NoError(t, err)
	var got []told
	for _, f := range report.Findings {
		got = append(got, told{f.Fault, f.Account, f.Asset, f.Tx})
	}
	require.Equal(t, slices.Concat(reading, lines, txs, sums), got)
	require.Len(t, report.Totals, len(assets))
	for i, asset := range assets {
		require.Equal(t, asset, report.Totals[i].Asset)
	}
}

// Every finding tells where it is, what should be there and what is.
func TestVerify_FindingsTellTheirFigures(t *testing.T) {
	t.Parallel()
	w, w2 := ledger.Wallet("1"), ledger.Wallet("2")
	for name, c := range map[string]struct {
		damage func(j *journal)
		want   []string
	}{
		"an entry is missing": {
			func(j *journal) {
				j.entries = slices.DeleteFunc(j.entries, func(e ledger.Entry) bool { return e.Account == w && e.Seq == 1 })
			},
			[]string{
				`ledger: gap account="wallet/1" asset="ETH" tx="settle/1" seq=2 want=1 have=2`,
				`ledger: chain account="wallet/1" asset="ETH" tx="settle/1" seq=2 want=-2000000000 have=7900000000`,
				`ledger: drift account="wallet/1" asset="ETH" want=-2000000000 have=7900000000`,
				`ledger: unbalanced asset="ETH" tx="credit/1/1" want=0 have=-9900000000`,
			},
		},
		"a balance is too high": {
			func(j *journal) { j.change(w2, func(b *ledger.Balance) { b.Posted += 7; b.Seq += 2 }) },
			[]string{
				`ledger: count account="wallet/2" asset="ETH" want=1 have=3`,
				`ledger: drift account="wallet/2" asset="ETH" want=4950000000 have=4950000007`,
				`ledger: uneven asset="ETH" want=0 have=7`,
			},
		},
		"more is held than there is": {
			func(j *journal) { j.change(w2, func(b *ledger.Balance) { b.Held = b.Posted + 3 }) },
			[]string{
				`ledger: floor account="wallet/2" asset="ETH" want=0 have=-3`,
			},
		},
		"less than nothing is held": {
			func(j *journal) { j.change(w2, func(b *ledger.Balance) { b.Held = -3 }) },
			[]string{
				`ledger: floor account="wallet/2" asset="ETH" want=0 have=-3`,
			},
		},
		"an entry without a transaction": {
			func(j *journal) { j.entry(w, 1).Tx = "" },
			[]string{
				`ledger: malformed account="wallet/1" asset="ETH" seq=1`,
				`ledger: unbalanced asset="ETH" want=0 have=9900000000`,
				`ledger: unbalanced asset="ETH" tx="credit/1/1" want=0 have=-9900000000`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := sound(t)
			c.damage(j)
			report, err := ledger.Verify(j.books())
			require.NoError(t, err)
			var got []string
			for _, f := range report.Findings {
				got = append(got, f.String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

// The report counts what was read, and what came later than the balances.
func TestVerify_CountsWhatItRead(t *testing.T) {
	t.Parallel()
	j := sound(t)
	report, err := ledger.Verify(j.books())
	require.NoError(t, err)
	require.Equal(t, []int64{6, 13, 0}, []int64{report.Balances, report.Entries, report.Later})

	j.change(ledger.Float, func(b *ledger.Balance) { b.Posted, b.Seq = 0, 0 }) // as before its only entry
	b := j.books()
	b.Live = true
	report, err = ledger.Verify(b)
	require.NoError(t, err)
	require.Equal(t, []int64{6, 12, 1}, []int64{report.Balances, report.Entries, report.Later})
}
