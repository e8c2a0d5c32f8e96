package ledger_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

func faultsOf(t require.TestingT, b ledger.Books) []ledger.Fault {
	report, err := ledger.Verify(b)
	require.NoError(t, err)
	var out []ledger.Fault
	for _, f := range report.Findings {
		out = append(out, f.Fault)
	}
	return out
}

// sound is a small ledger without a fault: two deposits, a withdrawal, a cost.
func sound(t *testing.T) *journal {
	t.Helper()
	j := &journal{balances: map[position]ledger.Balance{}}
	for _, text := range []string{
		"topup/1 deposit: c -1, F +1",
		"credit/1/1 deposit: c -100, w +99, P +1",
		"credit/2/1 deposit: c -50, w2 +49.5, P +0.5",
		"hold/1 withdrawal: H +20",
		"settle/1 withdrawal: H -20, w -20, c +19, N +1",
		"cost/net/1 fee: N -0.5, c +0.5",
	} {
		require.NoError(t, j.post(parseTx(t, text, "ETH")), text)
	}
	require.Empty(t, faultsOf(t, j.books()))
	return j
}

// entry finds the n-th entry of an account, from 1.
func (j *journal) entry(a ledger.Account, n int64) *ledger.Entry {
	return &j.entries[slices.IndexFunc(j.entries, func(e ledger.Entry) bool { return e.Account == a && e.Seq == n })]
}

func (j *journal) change(a ledger.Account, f func(*ledger.Balance)) {
	b := j.balances[position{a, "ETH"}]
	f(&b)
	j.balances[position{a, "ETH"}] = b
}

func TestL10_VerifyNamesEveryFault(t *testing.T) {
	t.Parallel()
	w, w2, c := ledger.Wallet("1"), ledger.Wallet("2"), ledger.Chain("net")
	for name, s := range map[string]struct {
		damage func(j *journal)
		want   []ledger.Fault
	}{
		"entry's delta edited": {
			func(j *journal) { j.entry(w, 1).Delta += 5 },
			[]ledger.Fault{ledger.FaultChain, ledger.FaultDrift, ledger.FaultUnbalanced},
		},
		"entry's After edited": {
			func(j *journal) { j.entry(c, 2).After++ },
			[]ledger.Fault{ledger.FaultChain, ledger.FaultChain},
		},
		"last entry deleted": {
			func(j *journal) {
				j.entries = slices.DeleteFunc(j.entries, func(e ledger.Entry) bool { return e.Account == w && e.Seq == 2 })
			},
			[]ledger.Fault{ledger.FaultCount, ledger.FaultDrift, ledger.FaultUnbalanced},
		},
		"first entry deleted": {
			func(j *journal) {
				j.entries = slices.DeleteFunc(j.entries, func(e ledger.Entry) bool { return e.Account == w && e.Seq == 1 })
			},
			[]ledger.Fault{ledger.FaultGap, ledger.FaultChain, ledger.FaultDrift, ledger.FaultUnbalanced},
		},
		"Tx renamed on one entry": {
			func(j *journal) { j.entry(w2, 1).Tx = "credit/9/1" },
			[]ledger.Fault{ledger.FaultUnbalanced, ledger.FaultUnbalanced},
		},
		"balance raised": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Posted += 7 }) },
			[]ledger.Fault{ledger.FaultDrift, ledger.FaultUneven},
		},
		"balance raised beyond what is there": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Posted += 300_00000000 }) },
			[]ledger.Fault{ledger.FaultDrift, ledger.FaultUneven, ledger.FaultInsolvent},
		},
		"Seq raised": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Seq++ }) },
			[]ledger.Fault{ledger.FaultCount},
		},
		"Seq lowered": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Seq-- }) },
			[]ledger.Fault{ledger.FaultAhead, ledger.FaultCount},
		},
		"balance lost": {
			func(j *journal) { delete(j.balances, position{w2, "ETH"}) },
			[]ledger.Fault{ledger.FaultAhead, ledger.FaultUneven},
		},
		"hold below zero": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Held = -1 }) },
			[]ledger.Fault{ledger.FaultFloor},
		},
		"held more than posted": {
			func(j *journal) { j.change(w, func(b *ledger.Balance) { b.Held = b.Posted + 1 }) },
			[]ledger.Fault{ledger.FaultFloor},
		},
		"entry that is empty": {
			func(j *journal) { j.entries = append(j.entries, ledger.Entry{}) },
			[]ledger.Fault{ledger.FaultMalformed, ledger.FaultAhead},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := sound(t)
			s.damage(j)
			require.ElementsMatch(t, s.want, faultsOf(t, j.books()))
		})
	}
}

// post without Apply, as a store with a fault would.
func (j *journal) force(tx ledger.Tx) {
	for _, l := range tx.Legs {
		p := position{l.Account, l.Asset}
		b := j.balances[p]
		b.Account, b.Asset, b.Posted, b.Held, b.Seq = l.Account, l.Asset, b.Posted+l.Delta, b.Held+l.Hold, b.Seq+1
		j.balances[p] = b
		j.entries = append(j.entries, tx.Entry(l, b))
	}
}

// Every sum is right, every chain is whole, the money is there: and yet one
// wallet has spent what was another's.
func TestL11_NegativeWalletHiddenBySums(t *testing.T) {
	t.Parallel()
	j := sound(t)
	j.force(parseTx(t, "settle/9 transfer: w -100, w2 +100", "ETH"))
	report, err := ledger.Verify(j.books())
	require.NoError(t, err)
	require.Len(t, report.Findings, 2)
	for i, seq := range []int64{0, 3} { // the balance, and the entry where it happened
		f := report.Findings[i]
		require.Equal(t, ledger.FaultFloor, f.Fault)
		require.Equal(t, ledger.Wallet("1"), f.Account)
		require.Equal(t, seq, f.Seq)
		require.Equal(t, int64(-21_00000000), f.Have.Int64())
	}

	// It does not help to have paid it back since.
	j.force(parseTx(t, "settle/10 transfer: w +100, w2 -100", "ETH"))
	require.Equal(t, []ledger.Fault{ledger.FaultFloor}, faultsOf(t, j.books()))
}

func TestL11_SuspenseAndReceivableHaveASide(t *testing.T) {
	t.Parallel()
	j := sound(t)
	j.force(parseTx(t, "adjust/9 adjustment: S -5, w +5", "ETH"))
	require.Equal(t, []ledger.Fault{ledger.FaultSign}, faultsOf(t, j.books()))
	j = sound(t)
	j.force(parseTx(t, "recover/9 adjustment: R +5, w -5", "ETH"))
	require.Equal(t, []ledger.Fault{ledger.FaultSign}, faultsOf(t, j.books()))
	j = sound(t)
	tx := parseTx(t, "adjust/9 adjustment: S -5, w +5", "ETH")
	tx.Legs[0].Account = "wallets/1"
	j.force(tx)
	require.Contains(t, faultsOf(t, j.books()), ledger.FaultStray)
}

func TestVerify_DeficitIsToldWithItsFigures(t *testing.T) {
	t.Parallel()
	j := sound(t)
	j.force(parseTx(t, "cost/net/9 fee: N -4, c +4", "ETH"))
	report, err := ledger.Verify(j.books())
	require.NoError(t, err)
	require.Len(t, report.Findings, 2)
	require.Equal(t, `ledger: deficit asset="ETH" want=0 have=-100000000`, report.Findings[0].String())
	require.Equal(t, `ledger: insolvent asset="ETH" want=12850000000 have=12750000000`, report.Findings[1].String())
	require.Len(t, report.Totals, 1)
	require.Equal(t, int64(127_50000000), report.Totals[0].Assets.Int64())
	require.Equal(t, int64(128_50000000), report.Totals[0].Liabilities.Int64())
	require.Equal(t, int64(-1_00000000), report.Totals[0].Equity.Int64())
}

// Sums beyond 2^63 are summed, not wrapped.
func TestL10_VerifySumsIn128Bits(t *testing.T) {
	t.Parallel()
	j := &journal{balances: map[position]ledger.Balance{}}
	for i := range 4 {
		w, c := ledger.Wallet(strconv.Itoa(i)), ledger.Chain(strconv.Itoa(i))
		require.NoError(t, j.post(ledger.Tx{ID: strconv.Itoa(i), Legs: []ledger.Leg{
			{Account: w, Asset: "ETH", Delta: ledger.MaxAmount}, {Account: c, Asset: "ETH", Delta: -ledger.MaxAmount},
		}}))
	}
	report, err := ledger.Verify(j.books())
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.Equal(t, "36893488147419103228", report.Totals[0].Assets.String())

	b := j.balances[position{ledger.Wallet("0"), "ETH"}]
	for i := range 4 { // in 64 bits 2^64 more would look like nothing
		b.Account = ledger.Wallet("more" + strconv.Itoa(i))
		b.Posted = 1 << 62
		j.balances[position{b.Account, "ETH"}] = b
	}
	require.Contains(t, faultsOf(t, j.books()), ledger.FaultUneven)
}

func TestL10_DoubledBalanceIsFound(t *testing.T) {
	t.Parallel()
	j := sound(t)
	b := j.books()
	once := b.Balances
	b.Balances = func(yield func(ledger.Balance, error) bool) {
		once(yield)
		yield(j.balances[position{ledger.Wallet("1"), "ETH"}], nil)
	}
	require.Equal(t, []ledger.Fault{ledger.FaultDoubled}, faultsOf(t, b))
}

func TestVerify_StopsAtAnErrorOfItsSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	b := sound(t).books()
	b.Balances = func(yield func(ledger.Balance, error) bool) { yield(ledger.Balance{}, broken) }
	_, err := ledger.Verify(b)
	require.ErrorIs(t, err, broken)
	b = sound(t).books()
	b.Entries = func(yield func(ledger.Entry, error) bool) { yield(ledger.Entry{}, broken) }
	_, err = ledger.Verify(b)
	require.ErrorIs(t, err, broken)
}

// grow posts random Txs that the ledger's own rules accept.
func grow(t *rapid.T, j *journal, n int) {
	for range n {
		a := rapid.SampledFrom(someAccounts).Draw(t, "from")
		b := rapid.SampledFrom(someAccounts).Draw(t, "to")
		asset := rapid.SampledFrom(someAssets).Draw(t, "asset")
		v := ledger.Amount(rapid.Int64Range(1, 1000).Draw(t, "units"))
		tx := ledger.Tx{ID: strconv.Itoa(len(j.entries)), Legs: []ledger.Leg{{Account: a, Asset: asset, Delta: -v}, {Account: b, Asset: asset, Delta: v}}}
		_ = j.post(tx) // refused ones leave nothing behind
	}
}

// bookFaults leaves out what is about money.
func bookFaults(faults []ledger.Fault) []ledger.Fault {
	return slices.DeleteFunc(faults, func(f ledger.Fault) bool {
		return f == ledger.FaultInsolvent || f == ledger.FaultDeficit || f == ledger.FaultSign
	})
}

// Whatever was posted by the rules is proved, read in any order that keeps each
// account's; read while more is posted, too; and any one number changed is found.
func TestL10_VerifyAgainstRandomLedgers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := &journal{balances: map[position]ledger.Balance{}}
		grow(t, j, rapid.IntRange(1, 40).Draw(t, "txs"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		entries := slices.Clone(j.entries)
		random.Shuffle(len(entries), func(a, b int) { entries[a], entries[b] = entries[b], entries[a] })
		slices.SortStableFunc(entries, func(a, b ledger.Entry) int { return int(a.Seq - b.Seq) })
		j.entries = entries
		require.Empty(t, bookFaults(faultsOf(t, j.books())))

		then := j.books()
		balances := map[position]ledger.Balance{}
		for p, b := range j.balances {
			balances[p] = b
		}
		then.Balances = (&journal{balances: balances}).books().Balances
		grow(t, j, 10)
		then.Live = true
		require.Empty(t, bookFaults(faultsOf(t, then)))

		if len(entries) == 0 {
			return
		}
		j.balances, j.entries = balances, entries
		e := &j.entries[random.IntN(len(j.entries))]
		by := ledger.Amount(1 + random.Int64N(1000))
		switch random.IntN(4) {
		case 0:
			e.Delta += by
		case 1:
			e.After -= by
		case 2:
			e.Seq += int64(by)
		default:
			e.Tx += "'"
		}
		require.NotEmpty(t, bookFaults(faultsOf(t, j.books())))
	})
}
