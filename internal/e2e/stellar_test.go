package e2e_test

import (
	"net/http/httptest"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/stellar"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

// horizon is the modelled Stellar network.
type horizon struct {
	*stellartest.Node
	url string
}

func openStellar(t testing.TB) post {
	n := stellartest.New(t.Name(), stellar.Mainnet)
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.Send(stellartest.Pay{To: stellartest.Address("somebody"), Stroops: 50_000_000})
	n.Mine(1)
	return &horizon{n, server.URL}
}

func (*horizon) network() chain.Network  { return "XLM" }
func (*horizon) existing() chain.Address { return chain.Address(stellartest.Address("somebody")) }
func (h *horizon) mine()                 { h.Mine(1) }
func (h *horizon) swallow(on bool)       { h.Set(func(f *stellartest.Fault) { f.Swallow = on }) }

func (h *horizon) connect(t testing.TB, _ func() *keys.Source) chain.Client {
	t.Helper()
	c, err := stellar.New(stellar.Options{Registry: chain.MainnetRegistry().Only("XLM"), URL: h.url})
	require.NoError(t, err)
	return c
}

func (h *horizon) pay(account chain.Address, memo string, coins decimal.Decimal) {
	p := stellartest.Pay{To: string(account), Stroops: coins.Shift(7).IntPart()}
	if memo != "" {
		p.MemoType, p.Memo = "id", memo
	}
	h.Send(p)
}
