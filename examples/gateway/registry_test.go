package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// ours is a registry file: a token on a shipped network, and a network of its own.
const ours = `tokens:
  USDCTEST:
    network: GNOSIS
    token: TESTUSD
    name: Test dollar
    contract: "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    decimals: 6
    min: 1
    max: 1000000
    dust: 0.01
networks:
  BERACHAIN:
    kind: ethereum
    name: Berachain
    chain_id: 80094
    fees: eip1559
    finality: tags
    max_fee: 500
    confirmations: 15
    coin: {code: BERA, name: Bera, min: 1, max: 500000, dust: 0.001}
`

// openOwn is anvil under a network's chain id, which the gateway knows by data alone.
func openOwn(network chain.Network, id string) func(testing.TB) *site {
	return func(t testing.TB) *site {
		r := newRich(t, testenv.Anvil(t, "--chain-id", id).URL())
		s := &site{network: network, float: "1", pace: 2, pay: r.pay}
		s.mine = func(blocks int) { ask(t, r.url, nil, "anvil_mine", hexutil.Uint64(blocks)) }
		s.fork = func(string) bool {
			ask(t, r.url, nil, "anvil_reorg", 1, []any{})
			return true
		}
		r.deploy(s.mine)
		file := filepath.Join(t.TempDir(), "registry.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(ours, "0x5FbDB2315678afecb367f032d93F642f64180aa3", r.token.Hex())), 0o600))
		s.settings = map[string]string{
			"CRYPTOPAY_REGISTRY": file, "CRYPTOPAY_PRICES": "XDAI=1,TESTUSD=1,BERA=2",
			"CRYPTOPAY_RPC_" + string(network): r.url, "CRYPTOPAY_FINAL_" + string(network): "3", "CRYPTOPAY_CONFIRMATIONS_" + string(network): "4",
		}
		return s
	}
}

// TestX11_NetworksOfAFilePayInAndOut: the gateway serves networks and a token that no Go was
// written for, on nodes with their chain ids: a payment in, with a fork, and a withdrawal out.
func TestX11_NetworksOfAFilePayInAndOut(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node and a gateway for each network")
	}
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for _, c := range []struct {
		currency string
		open     func(testing.TB) *site
	}{
		{"USDCTEST", openOwn("GNOSIS", "100")},
		{"BERA", openOwn("BERACHAIN", "80094")},
	} {
		all.Go(func() {
			t.Run(c.currency, func(t *testing.T) {
				visit(t, c.open(t), c.currency).inAndOut()
			})
		})
	}
}

// TestX11_RegistrySetting: the file is named by the environment or the settings file, whose
// networks it then knows. A bad one is an error with its own line, and nothing else is said.
func TestX11_RegistrySetting(t *testing.T) {
	t.Parallel()
	file := written(t, ours)
	config := func(text string) (settings, error) {
		return readSettings([]string{"-config", written(t, text)}, func(string) string { return "" })
	}
	// Two merchants on one network of the file, a shipped network of this kind beside it.
	s, err := config("registry: " + file + `
networks:
  BERACHAIN:
    node: http://node
    confirmations: 30
  GNOSIS:
    node: http://node
    contracts: {}
prices: {BERA: 2, XDAI: 1}
tenants:
  - {id: a, name: A}
  - {id: b, name: B}
`)
	require.NoError(t, err)
	require.Len(t, s.tenants, 2)
	r, err := s.nodes.Registry()
	require.NoError(t, err)
	bera, err := r.Currency("BERA")
	require.NoError(t, err)
	require.EqualValues(t, 30, bera.Confirmations)
	n, err := r.Network("BERACHAIN")
	require.NoError(t, err)
	require.EqualValues(t, 80094, n.ChainID)

	s, err = readSettings(nil, func(k string) string {
		return map[string]string{"CRYPTOPAY_REGISTRY": file, "CRYPTOPAY_RPC_BERACHAIN": "http://node", "CRYPTOPAY_PRICES": "BERA=2"}[k]
	})
	require.NoError(t, err)
	require.NoError(t, checkNames(s.all, []string{"CRYPTOPAY_RPC_BERACHAIN=x", "CRYPTOPAY_CONTRACT_USDCTEST=x"}))
	require.Error(t, checkNames(s.all, []string{"CRYPTOPAY_RPC_BERACHAINS=x"}))

	for name, c := range map[string]struct{ text, want string }{
		"no such file":        {"registry: /no/such/file", ":1:11: registry: open /no/such/file"},
		"a bad file":          {"registry: " + written(t, "networks:\n  X1:\n    kind: moon\n"), ":3:11: networks.X1.kind must be ethereum or bitcoin"},
		"an unknown network":  {"registry: " + file + "\nnetworks:\n  BERACHIN:\n    node: http://x", "networks.BERACHIN is no setting; the nearest is BERACHAIN"},
		"a shipped chain id":  {"registry: " + file + "\nnetworks:\n  BERACHAIN:\n    node: http://x\n    chain: 100", "networks.BERACHAIN.chain names a main chain"},
		"a live price":        {"registry: " + file + "\nnetworks:\n  BERACHAIN:\n    node: http://x\nprices: {ETH: 1}", "names ETH, and BERACHAIN is a main chain, beside which its price is live"},
		"another kind's word": {"registry: " + file + "\nnetworks:\n  BERACHAIN:\n    node: http://x\n    dialect: core", "BERACHAIN has no such setting"},
	} {
		_, err := config(c.text)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err = readSettings(nil, func(k string) string { return map[string]string{"CRYPTOPAY_REGISTRY": "/no/such/file"}[k] })
	require.EqualError(t, err, "CRYPTOPAY_REGISTRY: open /no/such/file: no such file or directory")
}
