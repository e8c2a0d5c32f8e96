package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
)

func FuzzParseAddress(f *testing.F) {
	k := open(f, "ETH").Client()
	f.Add("")
	f.Add("simeth")
	f.Add(string(account(f, open(f, "ETH"), "a").Address))
	f.Fuzz(func(t *testing.T, s string) {
		a, err := k.ParseAddress(s)
		if err == nil {
			require.Equal(t, s, string(a), "there is one writing of an address")
			return
		}
		var why *chain.AddressError
		require.ErrorAs(t, err, &why)
	})
}

func FuzzInspectAndBroadcast(f *testing.F) {
	c := open(f, "ETH")
	a := account(f, c, "a")
	_, err := c.Fund(a.Address, "ETH", one)
	require.NoError(f, err)
	tx := signed(f, c, a, chain.Order{Intent: chain.Intent{To: a.Address, Amount: 1e6}})
	k := c.Client()
	f.Add([]byte(body(f, tx)))
	f.Add(tx.Raw)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := k.Inspect(data)
		if err == nil {
			require.NotEmpty(t, u.Digests)
			require.NotEmpty(t, u.Outputs)
			require.GreaterOrEqual(t, int64(u.MaxCost), int64(0))
		} else {
			require.ErrorIs(t, err, chain.ErrRejected)
		}
		if string(data) != string(tx.Raw) {
			require.ErrorIs(t, k.Broadcast(t.Context(), proof.NewStored("ETH", tx.Tx, data)), chain.ErrRejected)
		}
	})
}
