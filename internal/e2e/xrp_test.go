package e2e_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
	"github.com/cryptopay-go/cryptopay/chain/xrp/xrptest"
)

// rippled is the modelled XRP Ledger.
type rippled struct {
	*xrptest.Node
	url string
}

func openXRP(t testing.TB) post {
	n := xrptest.New(t.Name(), xrp.Mainnet)
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.Send(xrptest.Pay{To: xrptest.Address("somebody"), Drops: 5_000_000})
	n.Mine(1)
	return &rippled{n, server.URL}
}

func (*rippled) network() chain.Network  { return "XRP" }
func (*rippled) existing() chain.Address { return chain.Address(xrptest.Address("somebody")) }
func (r *rippled) mine()                 { r.Mine(1) }
func (r *rippled) swallow(on bool)       { r.Set(func(f *xrptest.Fault) { f.Swallow = on }) }

func (r *rippled) connect(t testing.TB, source func() *keys.Source) chain.Client {
	t.Helper()
	c, err := xrp.New(xrp.Options{
		Registry: chain.MainnetRegistry().Only("XRP"), URL: r.url,
		PublicKey: func(_ chain.Address, k chain.KeyRef) (chain.PublicKey, error) { return source().PublicKey("XRP", k) },
	})
	require.NoError(t, err)
	return c
}

func (r *rippled) pay(account chain.Address, memo string, coins decimal.Decimal) {
	p := xrptest.Pay{To: string(account), Drops: coins.Shift(6).IntPart()}
	if n, err := strconv.ParseUint(memo, 10, 32); err == nil {
		tag := uint32(n)
		p.Tag = &tag
	}
	r.Send(p)
}
