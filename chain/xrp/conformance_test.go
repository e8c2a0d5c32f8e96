package xrp

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
)

// town is a modelled node with a client in front of it.
type town struct {
	*xrptest.Node
	clienttest.Desk
	client   *Client
	registry *chain.Registry

	mu   sync.Mutex
	keys map[chain.Address]chain.PublicKey
}

func registry(t testing.TB) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "XRP", Name: "XRP Ledger", Family: chain.AccountFamily, AddressType: "XRP", Gas: "XRP", NeedsMemo: true}},
		[]chain.Currency{{Code: "XRP", Name: "XRP", Network: "XRP", Token: "XRP", Decimals: 6, Scale: 6, Confirmations: 1}})
	require.NoError(t, err)
	return r
}

func openTown(t testing.TB, change ...func(o *Options)) *town {
	t.Helper()
	n := &town{Node: xrptest.New(t.Name(), Mainnet), registry: registry(t), keys: map[chain.Address]chain.PublicKey{}}
	server := httptest.NewServer(n.Node)
	t.Cleanup(server.Close)
	o := Options{Registry: n.registry, URL: server.URL, PublicKey: n.key}
	for _, f := range change {
		f(&o)
	}
	var err error
	n.client, err = New(o)
	require.NoError(t, err)
	n.Desk = clienttest.Desk{At: n.client, Add: n.Mine}
	return n
}

// key is the Options.PublicKey of a town: of the accounts that it made.
func (n *town) key(a chain.Address, _ chain.KeyRef) (chain.PublicKey, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.keys[a]; k != nil {
		return k, nil
	}
	return nil, errors.New("not an account of this test")
}

// customer makes an account whose key the test has.
func (n *town) customer(t testing.TB, name string) chaintest.Account {
	t.Helper()
	a, err := chaintest.Secp256k1Account(n.client, t.Name()+name)
	require.NoError(t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys[a.Address] = a.Key
	return a
}

func (n *town) pay(t testing.TB, to chain.Address, coins decimal.Decimal, memo string) string {
	t.Helper()
	p := xrptest.Pay{To: string(to), Drops: coins.Shift(6).IntPart()}
	if memo != "" {
		tag, err := strconv.ParseUint(memo, 10, 32)
		require.NoError(t, err)
		short := uint32(tag)
		p.Tag = &short
	}
	return n.Send(p)
}

func (n *town) fund(t testing.TB, to chain.Address, coins int64) {
	t.Helper()
	n.pay(t, to, decimal.NewFromInt(coins), "")
	n.Mine(1)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTown(t).harness() })
}

// TestConformanceClio is TestConformance through the other server of the same API.
func TestConformanceClio(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		n := openTown(t)
		n.Set(func(f *xrptest.Fault) { f.Clio = true })
		return n.harness()
	})
}

func (n *town) harness() *chaintest.Harness {
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.AccountFamily, Native: "XRP",
		Amount: decimal.NewFromInt(100), Finality: 0, Memo: true, Replaceable: true, Reserve: coins(xrptest.Reserve),
		Effects:    []chaintest.Effect{chaintest.Reverted, chaintest.Internal, chaintest.Strange},
		NewAccount: func(t testing.TB, i int) chaintest.Account { return n.customer(t, strconv.Itoa(i)) },
		Fund: func(t testing.TB, to chain.Address, _ string, amount decimal.Decimal) {
			n.pay(t, to, amount, "")
			n.Mine(1)
		},
		Pay: func(t testing.TB, ps ...chaintest.Payment) string {
			require.Len(t, ps, 1)
			p := xrptest.Pay{To: string(ps[0].To), Drops: ps[0].Amount.Shift(6).IntPart()}
			switch ps[0].Effect {
			case chaintest.Reverted:
				p.Fails = "tecPATH_DRY"
			case chaintest.Internal:
				p.Kind = "EscrowFinish"
			case chaintest.Strange:
				p.Kind = "TypeOfTomorrow"
			default:
				return n.pay(t, ps[0].To, ps[0].Amount, ps[0].Memo)
			}
			return n.Send(p)
		},
		Mine: func(_ testing.TB, count int) { n.Mine(count) },
		Crowded: func(_ testing.TB, on bool) {
			n.OpenFee(xrptest.BaseFee)
			if on {
				n.OpenFee(100 * xrptest.BaseFee)
			}
		},
		Lag:        func(_ testing.TB, blocks int) { n.Set(func(f *xrptest.Fault) { f.Lag = blocks }) },
		Partial:    func(_ testing.TB, on bool) { n.Set(func(f *xrptest.Fault) { f.Partial = on }) },
		Fail:       func(_ testing.TB, on bool) { n.Set(func(f *xrptest.Fault) { f.Fail = on }) },
		LoseAnswer: func(testing.TB) { n.Set(func(f *xrptest.Fault) { f.Lose = true }) },
		WrongChain: func(t testing.TB) chain.Client {
			return openTown(t, func(o *Options) { o.NetworkID = Testnet }).client
		},
		BadAddresses: []string{
			"rrrrrrrrrrrrrrrrrrrrrhoLvTp", "0x0000000000000000000000000000000000000001",
			"T719a5UwUCnEs54UsxG9CJYYDhwmFCqkr7wxCcNcfZ6p5GZ", // an X-address of the test network
		},
	}
}
