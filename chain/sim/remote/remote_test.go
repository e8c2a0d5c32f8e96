package remote_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
)

// pair is a chain and a client of it that asks over the wire.
func pair(t testing.TB, n chain.Network) (*sim.Chain, *chain.Registry, chain.Client) {
	t.Helper()
	r := chain.MainnetRegistry()
	o := sim.Options{Network: n, Registry: r, Seed: 7, Finality: 5}
	c, err := sim.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Audit()) })
	return c, r, dial(t, o, c.Client())
}

func dial(t testing.TB, o sim.Options, served chain.Client) chain.Client {
	t.Helper()
	h, err := remote.Handler(served)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	local, err := sim.New(o)
	require.NoError(t, err)
	return remote.Dial(server.URL, local)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			c, r, client := pair(t, n)
			chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
				h := &chaintest.Harness{
					Client: client, Registry: r, Family: c.Family(), Native: string(n),
					Finality: 5, Batch: true, Memo: true, Returns: true, Replaceable: true,
					Fund: func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
						_, err := c.Fund(to, currency, amount)
						require.NoError(t, err)
					},
					Pay: func(t testing.TB, payments ...chaintest.Payment) string {
						tx := sim.Tx{Memo: payments[0].Memo}
						for _, p := range payments {
							tx.Payments = append(tx.Payments, sim.Payment{To: p.To, Currency: p.Currency, Amount: p.Amount, Effect: sim.Effect(p.Effect)})
						}
						hash, err := c.Send(tx)
						require.NoError(t, err)
						return hash
					},
					Mine: func(_ testing.TB, n int) { c.Mine(n) },
					Reorg: func(t testing.TB, depth int, drop ...string) {
						_, err := c.Reorg(depth, drop...)
						require.NoError(t, err)
					},
					Lag:     func(_ testing.TB, n int) { c.Front().Lag(int64(n)) },
					Partial: func(_ testing.TB, on bool) { c.Front().Partial(on) },
					Fail: func(_ testing.TB, on bool) {
						if c.Front().FailRate(0); on {
							c.Front().FailRate(1000)
						}
					},
					LoseAnswer: func(testing.TB) { c.Front().LoseAnswers(1) },
					WrongChain: func(t testing.TB) chain.Client {
						return dial(t, sim.Options{Network: n, Registry: r, Seed: 7, Finality: 5}, c.NewNode().WrongChain(true).Client())
					},
				}
				if c.Family() == chain.AccountFamily {
					h.Token = "USDTERC20"
					h.Effects = []chaintest.Effect{chaintest.Reverted, chaintest.ReturnsFalse, chaintest.InnerReverted, chaintest.Internal}
				}
				return h
			})
		})
	}
}

// A server that is gone is a node that failed: never an empty answer.
func TestGoneServer(t *testing.T) {
	t.Parallel()
	local, err := sim.New(sim.Options{Network: "BTC", Registry: chain.MainnetRegistry()})
	require.NoError(t, err)
	server := httptest.NewServer(nil)
	client := remote.Dial(server.URL, local)
	_, err = client.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode, "it serves no chain")
	server.Close()
	_, err = client.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Tip(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = remote.Handler(struct{ chain.Client }{client})
	require.ErrorContains(t, err, "lacks abilities")
}
