package ledger_test

import (
	"encoding/binary"
	"errors"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

var (
	someAccounts = []ledger.Account{
		ledger.Wallet("1"), ledger.Wallet("2"), ledger.Chain("net"), ledger.FeesPlatform,
		ledger.FeesNetwork, ledger.Suspense, ledger.Float, ledger.Receivable("1"),
	}
	someAssets = []ledger.Asset{"USDT", "USDt", "ETH"}
)

// expected says what Check must answer, with big integers.
func expected(tx ledger.Tx) error {
	if tx.ID == "" || len(tx.Legs) == 0 {
		return ledger.ErrMalformed
	}
	seen, sums := map[position]bool{}, map[ledger.Asset]*big.Int{}
	for _, l := range tx.Legs {
		p := position{l.Account, l.Asset}
		if l.Account == "" || l.Asset == "" || l.Delta == 0 && l.Hold == 0 || seen[p] {
			return ledger.ErrMalformed
		}
		seen[p] = true
		if sums[l.Asset] == nil {
			sums[l.Asset] = new(big.Int)
		}
		sums[l.Asset].Add(sums[l.Asset], bigOf(l.Delta))
	}
	for _, sum := range sums {
		if sum.Sign() != 0 {
			return ledger.ErrUnbalanced
		}
	}
	return nil
}

// agrees compares Check with the model. A Tx that is wrong in two ways may be
// told either.
func agrees(t require.TestingT, tx ledger.Tx) {
	want, got := expected(tx), tx.Check()
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.Error(t, got)
	if errors.Is(want, ledger.ErrUnbalanced) {
		require.ErrorIs(t, got, want)
	}
}

func TestL10_CheckAgainstBigInt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tx := ledger.Tx{ID: "credit/1/1"}
		for range rapid.IntRange(0, 6).Draw(t, "legs") {
			tx.Legs = append(tx.Legs, ledger.Leg{
				Account: rapid.SampledFrom(someAccounts).Draw(t, "account"),
				Asset:   rapid.SampledFrom(someAssets).Draw(t, "asset"),
				Delta:   amounts().Draw(t, "delta"), Hold: amounts().Draw(t, "hold") >> 62,
			})
		}
		if n := len(tx.Legs); n > 0 && rapid.Bool().Draw(t, "balance it") {
			sum := ledger.Amount(0) // wraps: then it only looks balanced, and must be refused
			for _, l := range tx.Legs[:n-1] {
				sum += l.Delta
			}
			tx.Legs[n-1].Delta = -sum
			for i := range tx.Legs {
				tx.Legs[i].Asset = tx.Legs[0].Asset
			}
		}
		agrees(t, tx)
	})
}

func TestL10_MalformedTxIsRefused(t *testing.T) {
	t.Parallel()
	w, c := ledger.Wallet("1"), ledger.Chain("net")
	leg := func(a ledger.Account, asset ledger.Asset, delta ledger.Amount) ledger.Leg {
		return ledger.Leg{Account: a, Asset: asset, Delta: delta}
	}
	for name, c := range map[string]struct {
		id   string
		legs []ledger.Leg
		want error
	}{
		"no id":          {"", []ledger.Leg{leg(w, "ETH", 1), leg(c, "ETH", -1)}, ledger.ErrMalformed},
		"no legs":        {"1", nil, ledger.ErrMalformed},
		"zero leg":       {"1", []ledger.Leg{leg(w, "ETH", 0)}, ledger.ErrMalformed},
		"no account":     {"1", []ledger.Leg{leg("", "ETH", 1), leg(c, "ETH", -1)}, ledger.ErrMalformed},
		"no asset":       {"1", []ledger.Leg{leg(w, "", 1), leg(c, "", -1)}, ledger.ErrMalformed},
		"two legs":       {"1", []ledger.Leg{leg(w, "ETH", 1), leg(w, "ETH", 1), leg(c, "ETH", -2)}, ledger.ErrMalformed},
		"one-sided":      {"1", []ledger.Leg{leg(w, "ETH", 1)}, ledger.ErrUnbalanced},
		"mixed assets":   {"1", []ledger.Leg{leg(w, "ETH", 1), leg(c, "USDT", -1)}, ledger.ErrUnbalanced},
		"letter case":    {"1", []ledger.Leg{leg(w, "USDT", 1), leg(c, "usdt", -1)}, ledger.ErrUnbalanced},
		"wraps to zero":  {"1", []ledger.Leg{leg(w, "ETH", ledger.MinAmount), leg(c, "ETH", ledger.MinAmount)}, ledger.ErrUnbalanced},
		"balanced":       {"1", []ledger.Leg{leg(w, "ETH", 1), leg(c, "ETH", -1)}, nil},
		"a hold alone":   {"1", []ledger.Leg{{Account: w, Asset: "ETH", Hold: 5}}, nil},
		"at the borders": {"1", []ledger.Leg{leg(w, "ETH", ledger.MaxAmount), leg(c, "ETH", ledger.MinAmount), leg(ledger.Float, "ETH", 1)}, nil},
	} {
		tx := ledger.Tx{ID: c.id, Legs: c.legs}
		require.ErrorIs(t, tx.Check(), c.want, name)
		agrees(t, tx)
	}
}

// Apply against a model in big integers: the same verdict, the same balance,
// and a refused leg changes nothing.
func TestL11_ApplyAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		account := rapid.SampledFrom(someAccounts).Draw(t, "account")
		var b ledger.Balance
		posted, held, seq := new(big.Int), new(big.Int), int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "legs") {
			l := ledger.Leg{Account: account, Asset: "ETH", Delta: amounts().Draw(t, "delta"), Hold: amounts().Draw(t, "hold")}
			if rapid.Bool().Draw(t, "gentle") {
				l.Delta, l.Hold = l.Delta%1000, l.Hold%1000
			}
			p, h := new(big.Int).Add(posted, bigOf(l.Delta)), new(big.Int).Add(held, bigOf(l.Hold))
			after, err := b.Apply(l)
			_, wallet := account.WalletID()
			var short *ledger.InsufficientFundsError
			switch {
			case !p.IsInt64() || !h.IsInt64():
				require.ErrorIs(t, err, ledger.ErrOverflow)
				require.Equal(t, b, after)
				continue
			case wallet && (h.Sign() < 0 || p.Cmp(h) < 0):
				require.ErrorAs(t, err, &short)
				require.Equal(t, account, short.Account)
				if short.Requested != ledger.MaxAmount { // the nearest bound of what was asked for
					require.Less(t, short.Available, short.Requested)
				}
				require.Equal(t, b, after)
				continue
			}
			require.NoError(t, err)
			if l.Delta != 0 {
				seq++
			}
			posted, held, b = p, h, after
			require.Equal(t, ledger.Balance{
				Account: account, Asset: "ETH", Posted: ledger.Amount(p.Int64()), Held: ledger.Amount(h.Int64()), Seq: seq,
			}, b)
		}
	})
}

func TestL10_LegOnAnothersBalanceIsRefused(t *testing.T) {
	t.Parallel()
	b, err := ledger.Balance{}.Apply(ledger.Leg{Account: ledger.Wallet("1"), Asset: "ETH", Delta: 5})
	require.NoError(t, err)
	for _, l := range []ledger.Leg{
		{Account: ledger.Wallet("1"), Asset: "USDT", Delta: 5},
		{Account: ledger.Wallet("2"), Asset: "ETH", Delta: 5},
	} {
		after, err := b.Apply(l)
		require.ErrorIs(t, err, ledger.ErrMalformed)
		require.Equal(t, b, after)
	}
}

// A balance that lacks a part of its name gets it with its first leg.
func TestBalance_IsNamedByItsFirstLeg(t *testing.T) {
	t.Parallel()
	l := ledger.Leg{Account: ledger.Float, Asset: "ETH", Delta: 5}
	for _, b := range []ledger.Balance{{}, {Account: ledger.Float}, {Asset: "ETH"}, {Account: ledger.Float, Asset: "ETH"}} {
		after, err := b.Apply(l)
		require.NoError(t, err)
		require.Equal(t, ledger.Balance{Account: ledger.Float, Asset: "ETH", Posted: 5, Seq: 1}, after)
	}
}

func TestAccountsKnowTheirSide(t *testing.T) {
	t.Parallel()
	for a, house := range map[ledger.Account]bool{
		ledger.FeesPlatform: true, ledger.FeesNetwork: true, ledger.Float: true, ledger.Adjustment: true, ledger.Receivable("1"): true,
		ledger.Suspense: false, ledger.Wallet("1"): false, ledger.Chain("ETH"): false, "else": false, "": false,
	} {
		require.Equal(t, house, a.House(), a)
		_, wallet := a.WalletID()
		require.Equal(t, a == ledger.Wallet("1"), wallet, a)
		require.Equal(t, wallet, a.Floored(), a)
	}
}

func FuzzTxCheck(f *testing.F) {
	leg := func(account, asset byte, delta int64, hold byte) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{account, asset}, uint64(delta)), hold)
	}
	f.Add("1", append(leg(1, 1, 99, 0), leg(3, 1, -99, 0)...))
	f.Add("1", append(leg(1, 1, -1<<63, 0), leg(3, 1, -1<<63, 0)...))
	f.Add("1", append(leg(1, 1, 5, 0), leg(3, 2, -5, 0)...))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		tx := ledger.Tx{ID: id}
		for len(data) >= 11 && len(tx.Legs) < 64 {
			tx.Legs = append(tx.Legs, ledger.Leg{
				Account: append([]ledger.Account{""}, someAccounts...)[int(data[0])%(len(someAccounts)+1)],
				Asset:   append([]ledger.Asset{""}, someAssets...)[int(data[1])%(len(someAssets)+1)],
				Delta:   ledger.Amount(binary.BigEndian.Uint64(data[2:])),
				Hold:    ledger.Amount(int8(data[10])),
			})
			data = data[11:]
		}
		agrees(t, tx)
	})
}
