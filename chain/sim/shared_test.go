package sim_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
)

// watching is a watch of some addresses.
type watching []chain.Address

func (watching) Sync(context.Context) error      { return nil }
func (watching) Open() []chain.Address           { return nil }
func (w watching) Contains(a chain.Address) bool { return slices.Contains(w, a) }

// On a network that needs memos one account has many addresses, as with the clients of XRP and
// Stellar: what arrives under the memo of a watched one arrived there, whoever wrote the two
// apart, and everything else at the account. A client in another process sees the same.
func TestA09_OneAccountHasManyAddresses(t *testing.T) {
	t.Parallel()
	c, err := sim.New(sim.Options{Network: "XRP", Registry: chain.MainnetRegistry()})
	require.NoError(t, err)
	handler, err := remote.Handler(c.Client())
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	account := c.Customer("shop")
	many, shares := c.Client().(chain.Multiplexer)
	require.True(t, shares)
	at := func(id uint32) chain.Address {
		a, err := many.Multiplex(account, id)
		require.NoError(t, err)
		parsed, err := c.Client().ParseAddress(string(a))
		require.NoError(t, err)
		require.Equal(t, a, parsed)
		return a
	}
	five, six := at(5), at(6)
	of, memo, tagged := many.Untag(five)
	require.Equal(t, []any{account, "5", true}, []any{of, memo, tagged})
	_, _, tagged = many.Untag(account)
	require.False(t, tagged)
	_, err = many.Multiplex(five, 7)
	require.Error(t, err)
	for _, bad := range []string{"-", "-05", "--5", "-4294967296", "-x", "-5-5"} {
		_, err := c.Client().ParseAddress(string(account) + bad)
		require.Error(t, err, bad)
	}
	eth, err := sim.New(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry()})
	require.NoError(t, err)
	_, shares = eth.Client().(chain.Multiplexer)
	require.False(t, shares)
	_, err = eth.Client().ParseAddress(string(eth.Customer("shop")) + "-5")
	require.Error(t, err)

	clients := map[string]chain.Client{"here": c.Client(), "elsewhere": remote.Dial(server.URL, c)}
	trail := map[string][]chain.Block{}
	for name, client := range clients {
		s, err := client.Scan(t.Context(), nil, watching{}, 1)
		require.NoError(t, err)
		trail[name] = []chain.Block{s.Blocks[0].Block}
	}
	pay := func(to chain.Address, memo, amount string) {
		_, err := c.Send(sim.Tx{Memo: memo, Payments: []sim.Payment{{To: to, Currency: "XRP", Amount: decimal.RequireFromString(amount)}}})
		require.NoError(t, err)
	}
	pay(five, "", "1")     // by the address
	pay(account, "5", "2") // the two apart
	pay(account, "6", "3") // of an address that nobody watches
	pay(account, "", "4")
	pay(account, "05", "5") // another writing is another memo
	_, err = c.Send(sim.Tx{Memo: "6", Payments: []sim.Payment{{To: five, Currency: "XRP", Amount: decimal.NewFromInt(1)}}})
	require.ErrorContains(t, err, "another memo")
	want := map[string]chain.Address{"1": five, "2": five, "3": account, "4": account, "5": account}
	arrived := func(all []chain.Transfer) map[string]chain.Address {
		out := map[string]chain.Address{}
		for _, x := range all {
			out[x.Amount.String()] = x.To
		}
		return out
	}
	for name, client := range clients {
		waiting, err := client.(chain.Mempool).Pending(t.Context(), watching{account, five})
		require.NoError(t, err)
		require.Equal(t, want, arrived(waiting), name)
	}
	c.Mine(1)
	for name, client := range clients {
		s, err := client.Scan(t.Context(), trail[name], watching{account, five}, 10)
		require.NoError(t, err)
		require.Len(t, s.Blocks, 1)
		require.Equal(t, want, arrived(s.Blocks[0].Transfers), name)
		s, err = client.Scan(t.Context(), trail[name], watching{five}, 10)
		require.NoError(t, err)
		require.Empty(t, s.Blocks[0].Transfers, "where the account is not watched, nothing arrives")
		height := s.Blocks[0].Height
		past, err := client.(chain.Historian).History(t.Context(), five, height, height)
		require.NoError(t, err)
		require.Equal(t, map[string]chain.Address{"1": five, "2": five}, arrived(past), name)
		past, err = client.(chain.Historian).History(t.Context(), six, height, height)
		require.NoError(t, err)
		require.Equal(t, map[string]chain.Address{"3": six}, arrived(past), name)
		held, err := client.(chain.Balancer).Balance(t.Context(), "XRP", six)
		require.NoError(t, err)
		require.Equal(t, "15", held.String(), "it is the account's")
	}
	require.Len(t, c.Transfers(five), 2)
	require.Equal(t, "15", c.Balance(five, "XRP").String())
}
