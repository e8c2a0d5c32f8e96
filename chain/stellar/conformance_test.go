package stellar

import (
	"crypto/ed25519"
	"crypto/sha256"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

// town is a modelled node with a client in front of it.
type town struct {
	*stellartest.Node
	clienttest.Desk
	client   *Client
	registry *chain.Registry
}

func registry(t testing.TB) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "XLM", Name: "Stellar", Family: chain.AccountFamily, AddressType: "XLM", Gas: "XLM", NeedsMemo: true}},
		[]chain.Currency{{Code: "XLM", Name: "Lumens", Network: "XLM", Token: "XLM", Decimals: 7, Scale: 7, Confirmations: 1}})
	require.NoError(t, err)
	return r
}

func openTown(t testing.TB, change ...func(o *Options)) *town {
	t.Helper()
	n := &town{Node: stellartest.New(t.Name(), Mainnet), registry: registry(t)}
	server := httptest.NewServer(n.Node)
	t.Cleanup(server.Close)
	o := Options{Registry: n.registry, URL: server.URL}
	for _, f := range change {
		f(&o)
	}
	var err error
	n.client, err = New(o)
	require.NoError(t, err)
	n.Desk = clienttest.Desk{At: n.client, Add: n.Mine}
	return n
}

// customer makes an account whose key the test has.
func (n *town) customer(t testing.TB, name string) chaintest.Account {
	t.Helper()
	seed := sha256.Sum256([]byte(t.Name() + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	pub := chain.PublicKey(key.Public().(ed25519.PublicKey))
	a, err := n.client.AddressOf(pub)
	require.NoError(t, err)
	return chaintest.Account{Address: a, Key: pub, Sign: func(d [32]byte) (chain.Signature, error) {
		return ed25519.Sign(key, d[:]), nil
	}}
}

func payment(to chain.Address, coins decimal.Decimal, memo string) stellartest.Pay {
	p := stellartest.Pay{To: string(to), Stroops: coins.Shift(7).IntPart()}
	if memo != "" {
		p.MemoType, p.Memo = "id", memo
	}
	return p
}

func (n *town) fund(t testing.TB, to chain.Address, coins int64) {
	t.Helper()
	n.Send(payment(to, decimal.NewFromInt(coins), ""))
	n.Mine(1)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTown(t).harness() })
}

func (n *town) harness() *chaintest.Harness {
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.AccountFamily, Native: "XLM",
		Amount: decimal.NewFromInt(100), Finality: 0, Memo: true, Batch: true, OneWaits: true, Reserve: coins(2 * stellartest.BaseReserve),
		Effects:    []chaintest.Effect{chaintest.Reverted, chaintest.Internal, chaintest.Strange},
		NewAccount: func(t testing.TB, i int) chaintest.Account { return n.customer(t, strconv.Itoa(i)) },
		Fund: func(_ testing.TB, to chain.Address, _ string, amount decimal.Decimal) {
			n.Send(payment(to, amount, ""))
			n.Mine(1)
		},
		Pay: func(_ testing.TB, ps ...chaintest.Payment) string {
			var all []stellartest.Pay
			for _, p := range ps {
				x := payment(p.To, p.Amount, p.Memo)
				x.Fails = p.Effect == chaintest.Reverted
				switch p.Effect {
				case chaintest.Internal:
					x.Kind = "invoke_host_function"
				case chaintest.Strange:
					x.Kind = stellartest.Tomorrow
				}
				all = append(all, x)
			}
			return n.Send(all...)
		},
		Mine:       func(_ testing.TB, count int) { n.Mine(count) },
		Lag:        func(_ testing.TB, blocks int) { n.Set(func(f *stellartest.Fault) { f.Lag = blocks }) },
		Partial:    func(_ testing.TB, on bool) { n.Set(func(f *stellartest.Fault) { f.Partial = on }) },
		Fail:       func(_ testing.TB, on bool) { n.Set(func(f *stellartest.Fault) { f.Fail = on }) },
		LoseAnswer: func(testing.TB) { n.Set(func(f *stellartest.Fault) { f.Lose = true }) },
		WrongChain: func(t testing.TB) chain.Client {
			return openTown(t, func(o *Options) { o.Passphrase = Testnet }).client
		},
		BadAddresses: []string{
			"SBRRR6JXVMQRQ3ZLH3CQ6EMQ4C5NQZ7HK5XJNCXVX5Q4WQZ4XKZ5V5QF", "gbrrr6jxvmqrq3zlh3cq6emq4c5nqz7hk5xjncxvx5q4wqz4xkz5v5qf",
		},
	}
}
