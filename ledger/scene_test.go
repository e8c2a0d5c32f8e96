package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// scene is one line of the tables of legs that the whole library goes by.
//
// A Tx is written "<id> <kind>: <legs>", a leg "<account> <amount>[ <asset>]":
// w and w2 are wallets, c the chain, P and N the platform's and the network's
// fees, S suspense, F float, R the receivable of w. H and H2 move what is held
// on w and w2; they are part of that wallet's leg, as an account has one.
type scene struct {
	name    string
	asset   ledger.Asset // of legs and balances that name none
	given   string       // one Tx that stands before; it needs no id and kind
	txs     []string     // none: the line has no legs
	want    string       // every balance that is not zero, after all
	history string       // "<kind> <delta> = <after>" of w, oldest first, without what was given
	deficit bool         // the house's equity in the asset is below zero in the end
}

// scaleOf is the Scale of the assets in the tables.
func scaleOf(a ledger.Asset) uint8 {
	switch a {
	case "USDT", "USDC":
		return 6
	}
	return 8
}

var accountOf = map[string]ledger.Account{
	"w": ledger.Wallet("1"), "w2": ledger.Wallet("2"), "c": ledger.Chain("net"),
	"H": ledger.Wallet("1"), "H2": ledger.Wallet("2"),
	"P": ledger.FeesPlatform, "N": ledger.FeesNetwork, "S": ledger.Suspense,
	"F": ledger.Float, "R": ledger.Receivable("1"),
}

type position struct {
	account ledger.Account
	asset   ledger.Asset
}

// parseLegs reads "c -100, w +99, P +1", in order of first mention.
func parseLegs(t *testing.T, text string, asset ledger.Asset) []ledger.Leg {
	t.Helper()
	var legs []ledger.Leg
	for _, part := range strings.Split(text, ",") {
		words := strings.Fields(part)
		require.Contains(t, []int{2, 3}, len(words), "leg %q", part)
		account, known := accountOf[words[0]]
		require.True(t, known, "leg %q", part)
		leg := ledger.Leg{Account: account, Asset: asset}
		if len(words) == 3 {
			leg.Asset = ledger.Asset(words[2])
		}
		number := strings.TrimLeft(words[1], "+-")
		amount, err := ledger.ParseAmount(number, scaleOf(leg.Asset))
		require.NoError(t, err, "leg %q", part)
		if words[1][0] == '-' {
			amount = -amount
		}
		if words[0][0] == 'H' {
			leg.Hold = amount
		} else {
			leg.Delta = amount
		}
		i := slices.IndexFunc(legs, func(l ledger.Leg) bool { return l.Account == leg.Account && l.Asset == leg.Asset })
		if i < 0 {
			legs = append(legs, leg)
			continue
		}
		legs[i].Delta += leg.Delta
		legs[i].Hold += leg.Hold
	}
	return legs
}

func parseTx(t *testing.T, text string, asset ledger.Asset) ledger.Tx {
	t.Helper()
	head, legs, ok := strings.Cut(text, ":")
	require.True(t, ok, text)
	id, kind, _ := strings.Cut(head, " ")
	return ledger.Tx{ID: id, Kind: ledger.Kind(kind), At: time.Unix(1_700_000_000, 0).UTC(), Legs: parseLegs(t, legs, asset)}
}

// journal is the least thing that keeps a ledger: balances, and entries in
// order of posting.
type journal struct {
	balances map[position]ledger.Balance
	entries  []ledger.Entry
}

// post applies the Tx whole or not at all.
func (j *journal) post(tx ledger.Tx) error {
	if err := tx.Check(); err != nil {
		return err
	}
	after := make([]ledger.Balance, len(tx.Legs))
	for i, l := range tx.Legs {
		b, err := j.balances[position{l.Account, l.Asset}].Apply(l)
		if err != nil {
			return err
		}
		after[i] = b
	}
	for i, l := range tx.Legs {
		j.balances[position{l.Account, l.Asset}] = after[i]
		if l.Delta != 0 {
			j.entries = append(j.entries, tx.Entry(l, after[i]))
		}
	}
	return nil
}

func (j *journal) books() ledger.Books {
	return ledger.Books{
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range j.balances {
				if !yield(b, nil) {
					return
				}
			}
		},
		Entries: func(yield func(ledger.Entry, error) bool) {
			for _, e := range j.entries {
				if !yield(e, nil) {
					return
				}
			}
		},
	}
}

func run(t *testing.T, s scene) {
	t.Helper()
	j := &journal{balances: map[position]ledger.Balance{}}
	if s.given != "" {
		require.NoError(t, j.post(parseTx(t, "given "+string(ledger.KindAdjustment)+":"+s.given, s.asset)))
	}
	before := len(j.entries)
	for _, text := range s.txs {
		tx := parseTx(t, text, s.asset)
		require.NoError(t, tx.Check(), text)
		sums := map[ledger.Asset]ledger.Amount{}
		for _, l := range tx.Legs {
			sums[l.Asset] += l.Delta
		}
		for asset, sum := range sums {
			require.Zero(t, sum, "%s: sum in %s", text, asset)
		}
		require.NoError(t, j.post(tx), text)
	}

	want := map[position]ledger.Balance{}
	if s.want != "" {
		for _, l := range parseLegs(t, s.want, s.asset) {
			want[position{l.Account, l.Asset}] = ledger.Balance{Posted: l.Delta, Held: l.Hold}
		}
	}
	for p, b := range j.balances {
		w := want[p]
		require.Equal(t, w.Posted.Format(scaleOf(p.asset), 8), b.Posted.Format(scaleOf(p.asset), 8), "posted on %v", p)
		require.Equal(t, w.Held.Format(scaleOf(p.asset), 8), b.Held.Format(scaleOf(p.asset), 8), "held on %v", p)
		delete(want, p)
	}
	require.Empty(t, want, "balances that never came")

	var lines []string
	for _, e := range j.entries[before:] {
		if e.Account != accountOf["w"] {
			continue
		}
		scale := scaleOf(e.Asset)
		sign := ""
		if e.Delta > 0 {
			sign = "+"
		}
		lines = append(lines, fmt.Sprintf("%s %s%s = %s", e.Shown(), sign, trim(e.Delta, scale), trim(e.After, scale)))
	}
	require.Equal(t, s.history, strings.Join(lines, "; "))

	report, err := ledger.Verify(j.books())
	require.NoError(t, err)
	var faults []ledger.Fault
	for _, f := range report.Findings {
		faults = append(faults, f.Fault)
	}
	if s.deficit {
		require.ElementsMatch(t, []ledger.Fault{ledger.FaultDeficit, ledger.FaultInsolvent}, faults)
	} else {
		require.Empty(t, faults)
	}
}

// trim writes an amount without needless zeros.
func trim(a ledger.Amount, scale uint8) string {
	return strings.TrimSuffix(strings.TrimRight(a.Format(scale, scale), "0"), ".")
}

func runAll(t *testing.T, scenes []scene) {
	t.Helper()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}
