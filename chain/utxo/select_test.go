package utxo

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestCoinCostsAreBuilds: coins chosen by CoinCosts are enough for Build, and
// the parts are not far above the whole.
func TestCoinCostsAreBuilds(t *testing.T) {
	t.Parallel()
	c := mainnet(t, "BTC")
	kinds := []kind{p2pkh, p2wpkh, p2tr}
	k := testKey("costs")
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) chain.Address {
			a, _ := c.address(form(k, rapid.SampledFrom(kinds).Draw(t, label)))
			return a
		}
		rate := rapid.Int64Range(1000, 200_000).Draw(t, "rate")
		params, err := json.Marshal(feeParams{Rate: rate})
		require.NoError(t, err)
		o := chain.Order{
			Intent: chain.Intent{Currency: "BTC", To: draw("to")}, Fee: chain.Fee{Params: params},
			Change: draw("change"), Attempt: rapid.IntRange(1, 4).Draw(t, "attempt"),
		}
		n := rapid.IntRange(1, 300).Draw(t, "coins")
		var sum ledger.Amount
		for i := range n {
			o.Coins = append(o.Coins, chain.Coin{Outpoint: fmt.Sprintf("%064x:0", i+1), Address: draw("coin"), Amount: 10_000_000})
			sum += 10_000_000
		}
		base, change, least, coins, err := c.CoinCosts(o)
		require.NoError(t, err)
		parts := base
		for _, x := range coins {
			parts += x
		}
		slack := ledger.Amount(n+4) * ledger.Amount(c.raised(rate, o.Attempt)/1000+2)
		cost := func(amount ledger.Amount) (ledger.Amount, int) {
			o.Intent.Amount = amount
			p, err := c.plan(&o)
			require.NoError(t, err)
			out := ledger.Amount(0)
			for _, x := range p.tx.TxOut {
				out += ledger.Amount(x.Value)
			}
			return sum - out, len(p.tx.TxOut)
		}
		got, outs := cost(sum - parts)
		require.LessOrEqual(t, got, parts, "enough, to the unit")
		if outs == 1 {
			require.Equal(t, parts, got)
		}
		got, outs = cost(sum - parts - change - least)
		require.Equal(t, 2, outs)
		require.LessOrEqual(t, got, parts+change)
		require.GreaterOrEqual(t, got+slack, parts+change)
		o.Intent.Amount = sum - parts + slack
		_, err = c.plan(&o)
		require.ErrorIs(t, err, chain.ErrShort)
	})
}

// TestFN02_StandardTransactions: one that spends as many coins of ours as chain.NetworkInfo says, with
// the most payments and change, has at most the 100,000 virtual bytes that nodes relay; with a
// tenth more coins it has not.
func TestFN02_StandardTransactions(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"BTC", "LTC", "DOGE"} {
		c := mainnet(t, n)
		info, err := chain.MainnetRegistry().Network(string(n))
		require.NoError(t, err)
		own := c.ownScript()
		virtual := func(coins int) int64 {
			var s size
			for range coins {
				s.input(own)
			}
			for range 26 {
				s.output(make([]byte, 34)) // as long as those of a script or of Taproot
			}
			return s.virtual()
		}
		require.Positive(t, info.MostInputs)
		require.LessOrEqual(t, virtual(info.MostInputs), int64(100_000), n)
		require.Greater(t, virtual(info.MostInputs*11/10), int64(100_000), n)
	}
}
