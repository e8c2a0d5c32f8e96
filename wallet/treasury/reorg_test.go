package treasury_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// never: hot and custody together are never more than what the chain holds at our
// addresses, right after a Sync.
func (w *world) never(v *treasury.Treasury, p string, currency string) {
	w.t.Helper()
	_, err := v.Sync(w.t.Context(), w.tenant)
	require.NoError(w.t, err)
	h, err := v.Holdings(w.t.Context(), w.tenant)
	require.NoError(w.t, err)
	there := w.chain.Balance(w.hot, currency).Add(w.chain.Balance(chain.Address(p), currency))
	for _, x := range h.Totals {
		if x.Currency.Code == currency {
			sum := x.Sum()
			require.True(w.t, sum.LessThanOrEqual(there), "hot %s and custody %s of %s", x.Hot, x.Custody, there)
		}
	}
}

// A deposit that was final and swept is taken away by a deep reorg and mined again, with
// its sweep, without it, or much later: the treasury never sees more than there is.
func TestFT09_NothingIsCountedTwiceAfterADeepReorg(t *testing.T) {
	t.Parallel()
	for currency, n := range map[string]chain.Network{"ETH": "ETH", "USDTERC20": "ETH", "USDTARB": "ARB"} {
		for name, drop := range map[string]bool{"with its sweep": false, "later": true} {
			t.Run(currency+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, n)
				v := w.viewer(node{Client: w.chain.Client()}, nil)
				gas, err := chain.MainnetRegistry().Gas(n)
				require.NoError(t, err)
				_, err = w.chain.Fund(w.hot, gas.Code, dec("100"))
				require.NoError(t, err)
				w.mine(140)
				p := w.pay(currency, "300")
				w.mine(1)
				tx := w.chain.Transfers(chain.Address(p.Address))[0].Tx
				deep := int(w.currency(currency).Confirmations) + 30
				w.mine(deep)
				w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
				w.mine(5)
				w.never(v, p.Address, currency)
				depth := int(w.chain.Height() - w.chain.Transfers(chain.Address(p.Address))[0].Block.Height + 1)
				var gone []string
				if drop {
					gone = []string{tx}
				}
				_, err = w.chain.Reorg(depth, gone...)
				require.NoError(t, err)
				w.never(v, p.Address, currency)
				for range 3 {
					w.mine(1)
					w.never(v, p.Address, currency)
				}
				if drop {
					require.NoError(t, w.chain.Resend(tx))
				}
				for range deep {
					w.mine(1)
					w.never(v, p.Address, currency)
				}
				w.hours(3 * 24)
				w.never(v, p.Address, currency)
				h := w.holdings(v)
				require.Equal(t, "0", figures(h, currency)[2], "it was swept, once")
				require.Zero(t, w.waits())
			})
		}
	}
}
