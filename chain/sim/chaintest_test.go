package sim_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// registry has one network of each family.
func registry(t testing.TB) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry([]chain.NetworkInfo{
		{Code: "ETH", Family: chain.AccountFamily, AddressType: "EVM", ChainID: 1, Gas: "ETH"},
		{Code: "BTC", Family: chain.UTXOFamily, Gas: "BTC"},
	}, []chain.Currency{
		{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 2},
		{Code: "USDTERC20", Network: "ETH", Token: "USDT", Contract: "contractusdt", Decimals: 6, Scale: 6, Confirmations: 2},
		{Code: "BTC", Network: "BTC", Token: "BTC", Decimals: 8, Scale: 8, Confirmations: 2},
	})
	require.NoError(t, err)
	return r
}

func open(t testing.TB, n chain.Network, change ...func(*sim.Options)) *sim.Chain {
	t.Helper()
	o := sim.Options{Network: n, Registry: registry(t), Seed: 1, Finality: 5}
	for _, f := range change {
		f(&o)
	}
	c, err := sim.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Audit()) })
	return c
}

func harness(c *sim.Chain, r *chain.Registry, finality int64) *chaintest.Harness {
	must := func(t testing.TB, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	h := &chaintest.Harness{
		Client: c.Client(), Registry: r, Family: c.Family(), Native: string(c.Network()),
		Finality: finality, Batch: true, Memo: true, Returns: true, Replaceable: true,
		Fund: func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
			_, err := c.Fund(to, currency, amount)
			must(t, err)
		},
		Pay: func(t testing.TB, payments ...chaintest.Payment) string {
			tx := sim.Tx{Memo: payments[0].Memo}
			for _, p := range payments {
				x := sim.Payment{To: p.To, Currency: p.Currency, Amount: p.Amount, Effect: sim.Effect(p.Effect)}
				if p.Effect == chaintest.Foreign {
					x.Contract, x.Effect = c.LookAlike(p.Currency), sim.Plain
				}
				tx.Payments = append(tx.Payments, x)
			}
			hash, err := c.Send(tx)
			must(t, err)
			return hash
		},
		Mine: func(_ testing.TB, n int) { c.Mine(n) },
		Reorg: func(t testing.TB, depth int, drop ...string) {
			_, err := c.Reorg(depth, drop...)
			must(t, err)
		},
		Lag:     func(_ testing.TB, n int) { c.Front().Lag(int64(n)) },
		Partial: func(_ testing.TB, on bool) { c.Front().Partial(on) },
		Fail: func(_ testing.TB, on bool) {
			if c.Front().FailRate(0); on {
				c.Front().FailRate(1000)
			}
		},
		LoseAnswer: func(testing.TB) { c.Front().LoseAnswers(1) },
		WrongChain: func(testing.TB) chain.Client { return c.NewNode().WrongChain(true).Client() },
	}
	if c.Family() == chain.AccountFamily {
		h.Token, h.Contract = "USDTERC20", c.LookAlike("USDTERC20")
		h.Effects = []chaintest.Effect{
			chaintest.Reverted, chaintest.ReturnsFalse, chaintest.InnerReverted, chaintest.Internal, chaintest.Foreign,
		}
	}
	return h
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		for name, finality := range map[string]int64{"Final": 5, "NeverFinal": -1} {
			t.Run(string(n)+name, func(t *testing.T) {
				t.Parallel()
				chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
					c := open(t, n, func(o *sim.Options) { o.Finality = finality })
					return harness(c, registry(t), finality)
				})
			})
		}
	}
}

func TestConformanceWithoutTraces(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		c := open(t, "ETH")
		c.Front().Traces(false)
		return harness(c, registry(t), 5)
	})
}

// All cases on one chain: the suite assumes nothing of what is there already.
func TestConformanceOnOneChain(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			c := open(t, n)
			chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return harness(c, registry(t), 5) })
		})
	}
}
