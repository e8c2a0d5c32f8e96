package cardano

import (
	"crypto/ed25519"
	"crypto/sha256"
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
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
)

// town is a modelled node with a client in front of it.
type town struct {
	*cardanotest.Node
	clienttest.Desk
	client   *Client
	registry *chain.Registry
	url      string
	mu       sync.Mutex
	keys     map[chain.Address]ed25519.PrivateKey
}

// backends are what a client can ask of one node.
var backends = map[string]func(o *Options, url string){
	"Ogmios":     func(o *Options, url string) { o.Ogmios, o.Kupo = url, url+cardanotest.Kupo },
	"Blockfrost": func(o *Options, url string) { o.Blockfrost, o.Project = url+cardanotest.Blockfrost, "project" },
}

// onBackends runs a test on each.
func onBackends(t *testing.T, f func(t *testing.T, n *town)) {
	t.Parallel()
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, openTown(t, name))
		})
	}
}

func openTown(t testing.TB, backend string, change ...func(o *Options)) *town {
	t.Helper()
	n := &town{Node: cardanotest.New(t.Name()), registry: chain.MainnetRegistry(), keys: map[chain.Address]ed25519.PrivateKey{}}
	server := httptest.NewServer(n.Node)
	t.Cleanup(server.Close)
	n.url = server.URL
	n.connect(t, backend, change...)
	return n
}

func (n *town) connect(t testing.TB, backend string, change ...func(o *Options)) {
	t.Helper()
	o := Options{Registry: n.registry, PublicKey: n.key}
	backends[backend](&o, n.url)
	for _, f := range change {
		f(&o)
	}
	var err error
	n.client, err = New(o)
	require.NoError(t, err)
	n.Desk = clienttest.Desk{At: n.client, Add: n.Mine}
}

// key is the Options.PublicKey of a town: of the accounts that it made.
func (n *town) key(a chain.Address, _ chain.KeyRef) (chain.PublicKey, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.keys[a]
	if !ok {
		return nil, errors.New("nobody's")
	}
	return chain.PublicKey(k.Public().(ed25519.PublicKey)), nil
}

// account makes an account whose key the test has.
func (n *town) account(t testing.TB, name string) chaintest.Account {
	t.Helper()
	seed := sha256.Sum256([]byte(t.Name() + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	pub := chain.PublicKey(key.Public().(ed25519.PublicKey))
	a, err := n.client.AddressOf(pub)
	require.NoError(t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys[a] = key
	return chaintest.Account{Address: a, Key: pub, Sign: func(d [32]byte) (chain.Signature, error) {
		return ed25519.Sign(key, d[:]), nil
	}}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return openTown(t, name).harness(name) })
		})
	}
}

func (n *town) harness(backend string) *chaintest.Harness {
	return &chaintest.Harness{
		Client: n.client, Registry: n.registry, Family: chain.UTXOFamily, Native: "ADA",
		Amount: decimal.NewFromInt(100), Finality: -1, Memo: true, Batch: true, Returns: true,
		NewAccount: func(t testing.TB, i int) chaintest.Account { return n.account(t, strconv.Itoa(i)) },
		Pay: func(_ testing.TB, ps ...chaintest.Payment) string {
			var all []cardanotest.Pay
			for _, p := range ps {
				all = append(all, cardanotest.Pay{To: string(p.To), Lovelace: p.Amount.Shift(6).IntPart()})
			}
			var lines []string
			if ps[0].Memo != "" {
				lines = []string{ps[0].Memo}
			}
			return n.Send(lines, all...)
		},
		Mine:       func(_ testing.TB, count int) { n.Mine(count) },
		Reorg:      func(_ testing.TB, depth int, drop ...string) { n.Reorg(depth, drop...) },
		Lag:        func(_ testing.TB, blocks int) { n.Set(func(f *cardanotest.Fault) { f.Lag = blocks }) },
		Partial:    func(_ testing.TB, on bool) { n.Set(func(f *cardanotest.Fault) { f.Partial = on }) },
		Fail:       func(_ testing.TB, on bool) { n.Set(func(f *cardanotest.Fault) { f.Fail = on }) },
		LoseAnswer: func(testing.TB) { n.Set(func(f *cardanotest.Fault) { f.Lose = true }) },
		WrongChain: func(t testing.TB) chain.Client {
			other := openTown(t, backend)
			other.Set(func(f *cardanotest.Fault) { f.Magic = 2 })
			return other.client
		},
		BadAddresses: []string{
			"stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw",
			"addr_test1qq8ac7qqy0vtulyl7wntmsxc6wex80gvcyjy33qffrhm7sh927ysx5sftuw0dlft05dz3c7revpf7jx0xnlcjz3g69mqkt5dmn",
		},
	}
}
