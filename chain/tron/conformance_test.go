package tron

import (
	"net/http/httptest"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
)

// town is a modelled node with a client in front of it.
type town struct {
	*trontest.Node
	clienttest.Desk
	client   *Client
	registry *chain.Registry
}

func registry(t testing.TB, contract string) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "TRX", Name: "Tron", Family: chain.AccountFamily, AddressType: "TRX", Gas: "TRX"}},
		[]chain.Currency{
			{Code: "TRX", Name: "Tron", Network: "TRX", Token: "TRX", Decimals: 6, Scale: 6, Confirmations: 20, WaitFinal: true},
			{Code: "USDTTRC20", Name: "Tether USD", Network: "TRX", Token: "USDT", Contract: contract, Decimals: 6, Scale: 6, Confirmations: 20, WaitFinal: true},
		})
	require.NoError(t, err)
	return r
}

func openTown(t testing.TB, change ...func(o *Options)) *town {
	t.Helper()
	n := trontest.New(t.Name())
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	r := registry(t, string(account(n.Token).text()))
	o := Options{Registry: r, Genesis: n.Genesis(), URL: server.URL}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return &town{n, clienttest.Desk{At: c, Add: n.Mine}, c, r}
}

func (n *town) account(t testing.TB, a chain.Address) trontest.Account {
	t.Helper()
	b, err := parseAddress("TRX", string(a))
	require.NoError(t, err)
	return trontest.Account(b)
}

func (n *town) pay(t testing.TB, effect string, foreign bool, ps ...chaintest.Payment) string {
	t.Helper()
	var list []trontest.Pay
	for _, p := range ps {
		x := trontest.Pay{To: n.account(t, p.To), Amount: p.Amount.Shift(6).BigInt()}
		if p.Currency != "TRX" {
			x.Contract = n.Token
		}
		if foreign {
			x.Contract = n.Foreign
		}
		list = append(list, x)
	}
	return n.Send(effect, list...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTown(t).harness() })
}

func (n *town) harness() *chaintest.Harness {
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.AccountFamily,
		Native: "TRX", Token: "USDTTRC20", Contract: string(account(n.Foreign).text()),
		Amount: decimal.NewFromInt(100), Finality: trontest.Solidify,
		Effects: []chaintest.Effect{chaintest.Reverted, chaintest.ReturnsFalse, chaintest.InnerReverted, chaintest.Internal, chaintest.Foreign, chaintest.Strange},
		Batch:   true, Returns: true,
		Fund: func(t testing.TB, to chain.Address, currency string, amount decimal.Decimal) {
			n.pay(t, "", false, chaintest.Payment{To: to, Currency: currency, Amount: amount})
			n.Mine(1)
		},
		Pay: func(t testing.TB, ps ...chaintest.Payment) string {
			effect := string(ps[0].Effect)
			if ps[0].Effect == chaintest.Foreign {
				return n.pay(t, "", true, ps...)
			}
			return n.pay(t, effect, false, ps...)
		},
		Mine:       func(_ testing.TB, count int) { n.Mine(count) },
		Reorg:      func(_ testing.TB, depth int, drop ...string) { n.Reorg(depth, drop...) },
		Lag:        func(_ testing.TB, blocks int) { n.Set(func(f *trontest.Fault) { f.Lag = blocks }) },
		Partial:    func(_ testing.TB, on bool) { n.Set(func(f *trontest.Fault) { f.Partial = on }) },
		Fail:       func(_ testing.TB, on bool) { n.Set(func(f *trontest.Fault) { f.Fail = on }) },
		LoseAnswer: func(testing.TB) { n.Set(func(f *trontest.Fault) { f.Lose = true }) },
		WrongChain: func(t testing.TB) chain.Client {
			return openTown(t, func(o *Options) { o.Genesis = Nile }).client
		},
		BadAddresses: []string{
			"41a614f803b6fd780986a42c78ec9c7f77e6ded13c", "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13C",
			"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T", "tr7nhqjekqxgtci8q8zy4pl8otszgjlj6t",
		},
	}
}
