package reconcile

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	d := decimal.RequireFromString
	registry := chain.MainnetRegistry()
	of := func(code string) *chain.Currency {
		c, err := registry.Currency(code)
		require.NoError(t, err)
		return c
	}
	eth, usdt, btc := of("ETH"), of("USDTERC20"), of("BTC")
	for name, c := range map[string]struct {
		l      look
		kind   Kind
		amount string
	}{
		"the same":                        {look{currency: eth, held: d("1.5"), books: d("1.5")}, Agrees, "0"},
		"explained before":                {look{currency: eth, held: d("1.5"), books: d("1"), explained: d("0.5")}, Agrees, "0"},
		"a unit less":                     {look{currency: btc, held: d("1"), books: d("1.00000001")}, Missing, "-0.00000001"},
		"a unit more":                     {look{currency: usdt, held: d("1.000001"), books: d("1")}, Surplus, "0.000001"},
		"dust":                            {look{currency: btc, held: d("1.00000001"), books: d("1")}, Dust, "0.00000001"},
		"a token has no dust":             {look{currency: usdt, held: d("1.001"), books: d("1")}, Surplus, "0.001"},
		"less than a unit":                {look{currency: eth, held: d("0.999999995"), books: d("1")}, Rounding, "-0.000000005"},
		"a unit for each of ours":         {look{currency: eth, held: d("1.00000002"), books: d("1"), sent: 2}, Rounding, "0.00000002"},
		"nobody watched":                  {look{currency: usdt, held: d("41"), books: d("1"), unwatched: true}, Unwatched, "40"},
		"nobody watched, and less":        {look{currency: usdt, held: d("1"), books: d("2"), unwatched: true}, Missing, "-1"},
		"may have left":                   {look{currency: usdt, held: d("0"), books: d("30"), out: d("30")}, InFlight, "0"},
		"more is gone than left":          {look{currency: usdt, held: d("0"), books: d("30.000001"), out: d("30")}, Missing, "-0.000001"},
		"may have come":                   {look{currency: usdt, held: d("30"), books: d("0"), in: d("30")}, InFlight, "0"},
		"more is there than came":         {look{currency: usdt, held: d("31"), books: d("0"), in: d("30")}, Surplus, "1"},
		"a clock was wrong":               {look{currency: usdt, held: d("50"), books: d("20"), fresh: []decimal.Decimal{d("7"), d("30")}}, InFlight, "0"},
		"clocks were wrong":               {look{currency: usdt, held: d("57"), books: d("20"), fresh: []decimal.Decimal{d("7"), d("30")}}, InFlight, "0"},
		"no clock explains it":            {look{currency: usdt, held: d("50.000001"), books: d("20"), fresh: []decimal.Decimal{d("7"), d("30")}}, Surplus, "30.000001"},
		"no clock explains what is gone":  {look{currency: usdt, held: d("19"), books: d("20"), fresh: []decimal.Decimal{d("1")}}, Missing, "-1"},
		"a clock was wrong, rounded":      {look{currency: eth, held: d("1.000000304"), books: d("1"), sent: 1, fresh: []decimal.Decimal{d("0.0000003")}}, InFlight, "0"},
		"nothing is explained meanwhile":  {look{currency: usdt, held: d("31"), books: d("0"), in: d("30"), unwatched: true}, InFlight, "1"},
		"found late":                      {look{currency: usdt, held: d("41"), books: d("41"), explained: d("40"), late: d("40")}, Late, "-40"},
		"what was explained is gone":      {look{currency: usdt, held: d("1"), books: d("1"), explained: d("40")}, Missing, "-40"},
		"not more than was found is late": {look{currency: usdt, held: d("40"), books: d("41"), explained: d("40"), late: d("40")}, Missing, "-41"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(c.l)
			require.Equal(t, []any{c.kind, c.amount}, []any{v.kind, v.amount.String()})
		})
	}
}

// A node that stands still answers with an old balance. What has left since is not in it, however
// long ago that is by the clock of the process that reads.
func TestI26_BalanceOfANodeThatStoodStill(t *testing.T) {
	t.Parallel()
	d := decimal.RequireFromString
	trx, err := chain.MainnetRegistry().Currency("TRX")
	require.NoError(t, err)
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	paid := outflow{currency: "TRX", amount: d("17"), fee: d("1"), ended: true, updated: start.Add(8 * time.Hour)}
	for name, c := range map[string]struct {
		head time.Duration // when the node first had its head, after start; the balance was read 12 h after it
		held string
		kind Kind
	}{
		"the node stood still":                    {0, "400", Agrees},
		"and more is gone than that":              {0, "381", Missing},
		"it went on, and the payout is in it":     {12*time.Hour - time.Second, "382", Agrees},
		"it went on, and the payout has not left": {12*time.Hour - time.Second, "400", Surplus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &account{out: []outflow{paid}, look: LookRow{
				Reading: Reading{At: start.Add(12 * time.Hour), Head: start.Add(c.head), Held: map[string]decimal.Decimal{"TRX": d(c.held)}},
				Spots:   map[string]Spot{"TRX": {Base: d("400")}},
			}}
			require.Equal(t, c.kind, judge(a.sum(trx, true, false)).kind)
		})
	}
}
