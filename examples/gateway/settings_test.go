package main

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/chain/tron"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		bad  string
	}{
		"defaults":             {},
		"half a client":        {env: map[string]string{"CRYPTOPAY_CLIENT_ID": "a"}, bad: "CRYPTOPAY_CLIENT_SECRET"},
		"a fee in words":       {env: map[string]string{"CRYPTOPAY_TRANSACTION_FEE": "half"}, bad: "CRYPTOPAY_TRANSACTION_FEE"},
		"a withdrawal fee":     {env: map[string]string{"CRYPTOPAY_WITHDRAWAL_FEE": "0.1+1.5"}},
		"a bad withdrawal fee": {env: map[string]string{"CRYPTOPAY_WITHDRAWAL_FEE": "0.1+x"}, bad: "CRYPTOPAY_WITHDRAWAL_FEE"},
		"a network fee":        {env: map[string]string{"CRYPTOPAY_NETWORK_FEE": "estimate"}},
		"a bad network fee":    {env: map[string]string{"CRYPTOPAY_NETWORK_FEE": "-1"}, bad: "CRYPTOPAY_NETWORK_FEE"},
		"an unknown network":   {args: []string{"-networks", "ETH,MOON"}, bad: "CRYPTOPAY_NETWORKS"},
		"an unknown flag":      {args: []string{"-nonsense"}, bad: "-store"},
		"dev on real chains":   {args: []string{"-dev"}, env: map[string]string{"CRYPTOPAY_RPC_ETH": "http://node/secret-key"}, bad: "-dev"},
		"real chains":          {env: map[string]string{"CRYPTOPAY_RPC_ETH": "http://node/secret-key"}},
		"a poll in words":      {env: map[string]string{"CRYPTOPAY_POLL": "often"}, bad: "CRYPTOPAY_POLL"},
		"prices of main chains": {
			env: map[string]string{"CRYPTOPAY_RPC_ETH": "http://node/secret-key", "CRYPTOPAY_PRICES": "ETH=2500"}, bad: "CRYPTOPAY_PRICES",
		},
		"prices of simulated chains": {env: map[string]string{"CRYPTOPAY_PRICES": "ETH=2500"}, bad: "CRYPTOPAY_PRICES"},
	} {
		s, err := readSettings(c.args, func(k string) string { return c.env[k] })
		if c.bad != "" {
			require.ErrorContains(t, err, c.bad, name)
			require.NotContains(t, err.Error(), "secret-key", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, !s.real(), s.dev, name)
	}
}

// TestNodeSettings: what is set of one network's node, and what is refused, by the
// setting's name and without what may be secret.
func TestNodeSettings(t *testing.T) {
	t.Parallel()
	const url = "http://user:secret@node/key"
	for name, c := range map[string]struct {
		env map[string]string
		bad string
	}{
		"every family": {env: map[string]string{
			"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_RPC_LTC": url, "CRYPTOPAY_RPC_DOGE": url,
			"CRYPTOPAY_RPC_TRX": url, "CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_RPC_XRP": url, "CRYPTOPAY_RPC_XLM": url,
		}},
		"a btcd":                     {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_DIALECT_BTC": "btcd", "CRYPTOPAY_CONFIRMATIONS_BTC": "6"}},
		"a pruned Bitcoin":           {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_PRUNED_BTC": "1"}},
		"pruned or not":              {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_PRUNED_BTC": "secret"}, bad: "CRYPTOPAY_PRUNED_BTC"},
		"a pruned Dogecoin":          {env: map[string]string{"CRYPTOPAY_RPC_DOGE": url, "CRYPTOPAY_PRUNED_DOGE": "1"}, bad: "CRYPTOPAY_RPC_DOGE"},
		"a pruned Ethereum":          {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_PRUNED_ETH": "1"}, bad: "CRYPTOPAY_PRUNED_ETH"},
		"few addresses":              {env: map[string]string{"CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_FEW_SOL": "6", "CRYPTOPAY_RPC_XLM": url, "CRYPTOPAY_FEW_XLM": "0"}},
		"fewer than none":            {env: map[string]string{"CRYPTOPAY_RPC_XRP": url, "CRYPTOPAY_FEW_XRP": "-1"}, bad: "CRYPTOPAY_FEW_XRP"},
		"calls a minute":             {env: map[string]string{"CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_CALLS_SOL": "240", "CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_CALLS_BTC": "60", "CRYPTOPAY_RPC_ADA": "https://provider/api/v0", "CRYPTOPAY_PROJECT_ADA": "secret", "CRYPTOPAY_CALLS_ADA": "600"}},
		"a poll of its own":          {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_POLL_BTC": "1m", "CRYPTOPAY_POLL": "5s"}},
		"a poll without a unit":      {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_POLL_BTC": "60"}, bad: "CRYPTOPAY_POLL_BTC must be between 50ms and 10m"},
		"a poll once an hour":        {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_POLL_BTC": "1h"}, bad: "CRYPTOPAY_POLL_BTC"},
		"too few calls":              {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CALLS_ETH": "59"}, bad: "CRYPTOPAY_CALLS_ETH must be a number of calls a minute, at least 60"},
		"calls to an own Ogmios":     {env: map[string]string{"CRYPTOPAY_RPC_ADA": "http://node:1337", "CRYPTOPAY_KUPO_ADA": "http://node:1442", "CRYPTOPAY_CALLS_ADA": "600"}, bad: "CRYPTOPAY_CALLS_ADA"},
		"few of a Bitcoin":           {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_FEW_BTC": "6"}, bad: "CRYPTOPAY_FEW_BTC"},
		"a java-tron of one's own":   {env: map[string]string{"CRYPTOPAY_RPC_TRX": url, "CRYPTOPAY_SOLID_TRX": "http://node:8091"}},
		"a key in a header":          {env: map[string]string{"CRYPTOPAY_RPC_TRX": url, "CRYPTOPAY_HEADER_TRX": "TRON-PRO-API-KEY: secret"}},
		"a test chain's token":       {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CHAIN_ETH": "11155111", "CRYPTOPAY_CONTRACT_USDCERC20": "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"}},
		"test chains":                {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_CHAIN_BTC": "regtest", "CRYPTOPAY_PRICES": "BTC=60000"}},
		"an own node of Cardano":     {env: map[string]string{"CRYPTOPAY_RPC_ADA": "http://node:1337", "CRYPTOPAY_KUPO_ADA": "http://node:1442"}},
		"a provider of Cardano":      {env: map[string]string{"CRYPTOPAY_RPC_ADA": "https://provider/api/v0", "CRYPTOPAY_PROJECT_ADA": "secret"}},
		"Ogmios without Kupo":        {env: map[string]string{"CRYPTOPAY_RPC_ADA": url}, bad: "CRYPTOPAY_KUPO_ADA"},
		"Kupo and a provider":        {env: map[string]string{"CRYPTOPAY_RPC_ADA": url, "CRYPTOPAY_KUPO_ADA": url, "CRYPTOPAY_PROJECT_ADA": "secret"}, bad: "CRYPTOPAY_PROJECT_ADA"},
		"another stake":              {env: map[string]string{"CRYPTOPAY_RPC_ADA": url, "CRYPTOPAY_KUPO_ADA": url, "CRYPTOPAY_STAKE_ADA": "secret"}, bad: "CRYPTOPAY_RPC_ADA"},
		"a test network of Cardano":  {env: map[string]string{"CRYPTOPAY_RPC_ADA": url, "CRYPTOPAY_KUPO_ADA": url, "CRYPTOPAY_CHAIN_ADA": "preprod"}, bad: "CRYPTOPAY_CHAIN_ADA"},
		"Kupo of a Bitcoin":          {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_KUPO_BTC": url}, bad: "CRYPTOPAY_KUPO_BTC"},
		"no URL":                     {env: map[string]string{"CRYPTOPAY_RPC_ETH": "secret"}, bad: "CRYPTOPAY_RPC_ETH"},
		"nothing of a node":          {env: map[string]string{"CRYPTOPAY_CHAIN_ETH": "5"}, bad: "CRYPTOPAY_RPC_ETH names none"},
		"a dialect of Ethereum":      {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_DIALECT_ETH": "btcd"}, bad: "CRYPTOPAY_DIALECT_ETH"},
		"an unknown dialect":         {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_DIALECT_BTC": "ltcd"}, bad: "CRYPTOPAY_DIALECT_BTC"},
		"a header without a name":    {env: map[string]string{"CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_HEADER_SOL": "secret"}, bad: "CRYPTOPAY_HEADER_SOL"},
		"no confirmations":           {env: map[string]string{"CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_CONFIRMATIONS_SOL": "0"}, bad: "CRYPTOPAY_CONFIRMATIONS_SOL"},
		"steps":                      {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_STEPS_ETH": "0=1, 100=12, 10000=64 final"}},
		"steps of the house":         {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_STEPS_BTC": "suggested"}},
		"steps that suggest nothing": {env: map[string]string{"CRYPTOPAY_RPC_SOL": url, "CRYPTOPAY_STEPS_SOL": "suggested"}, bad: "CRYPTOPAY_STEPS_SOL"},
		"a step of no confirmation":  {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_STEPS_ETH": "0=0,100=12"}, bad: "CRYPTOPAY_STEPS_ETH"},
		"steps below the currency's": {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_STEPS_ETH": "0=1,100=2"}, bad: "CRYPTOPAY_STEPS_ETH"},
		"no depth":                   {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_FINAL_ETH": "soon"}, bad: "CRYPTOPAY_FINAL_ETH"},
		"the depth of a Bitcoin":     {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_FINAL_BTC": "6"}, bad: "CRYPTOPAY_FINAL_BTC"},
		"a chain id in words":        {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CHAIN_ETH": "sepolia"}, bad: "CRYPTOPAY_CHAIN_ETH"},
		"a main chain as a test's":   {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CHAIN_ETH": "1"}, bad: "CRYPTOPAY_CHAIN_ETH"},
		"Tron's main chain as one":   {env: map[string]string{"CRYPTOPAY_RPC_TRX": url, "CRYPTOPAY_CHAIN_TRX": tron.Mainnet}, bad: "CRYPTOPAY_CHAIN_TRX"},
		"XRP's main chain as one":    {env: map[string]string{"CRYPTOPAY_RPC_XRP": url, "CRYPTOPAY_CHAIN_XRP": "00"}, bad: "CRYPTOPAY_CHAIN_XRP"},
		"an unknown test chain":      {env: map[string]string{"CRYPTOPAY_RPC_DOGE": url, "CRYPTOPAY_CHAIN_DOGE": "regtest"}, bad: "CRYPTOPAY_CHAIN_DOGE"},
		"a network id in words":      {env: map[string]string{"CRYPTOPAY_RPC_XRP": url, "CRYPTOPAY_CHAIN_XRP": "testnet"}, bad: "CRYPTOPAY_CHAIN_XRP"},
		"a token's contract on main": {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CONTRACT_USDCERC20": "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"}, bad: "CRYPTOPAY_CONTRACT_USDCERC20"},
		"a contract that is none":    {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CHAIN_ETH": "5", "CRYPTOPAY_CONTRACT_USDCERC20": "here"}, bad: "CRYPTOPAY_CONTRACT_USDCERC20"},
		"a coin's contract":          {env: map[string]string{"CRYPTOPAY_RPC_ETH": url, "CRYPTOPAY_CHAIN_ETH": "5", "CRYPTOPAY_CONTRACT_ETH": "here"}, bad: "CRYPTOPAY_CONTRACT_ETH"},
		"a price that is none":       {env: map[string]string{"CRYPTOPAY_RPC_BTC": url, "CRYPTOPAY_CHAIN_BTC": "regtest", "CRYPTOPAY_PRICES": "BTC=0"}, bad: "CRYPTOPAY_PRICES"},
	} {
		s, err := readSettings(nil, func(k string) string { return c.env[k] })
		if c.bad == "" {
			require.NoError(t, err, name)
			require.True(t, s.real(), name)
			continue
		}
		require.ErrorContains(t, err, c.bad, name)
		require.NotContains(t, err.Error(), "secret", name)
	}
}

// TestTokensOfTestChains: on a chain that is not the main one there are the tokens
// whose contracts were named, and no others; a main one keeps its own.
func TestTokensOfTestChains(t *testing.T) {
	t.Parallel()
	const contract = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	env := map[string]string{
		"CRYPTOPAY_RPC_ETH": "http://node", "CRYPTOPAY_CHAIN_ETH": "11155111", "CRYPTOPAY_CONTRACT_USDCERC20": contract,
		"CRYPTOPAY_CONFIRMATIONS_ETH": "3", "CRYPTOPAY_RPC_TRX": "http://node", "CRYPTOPAY_POLL_TRX": "1m",
	}
	s, err := readSettings(nil, func(k string) string { return env[k] })
	require.NoError(t, err)
	registry, err := s.nodes.Registry()
	require.NoError(t, err)
	var codes []string
	for _, c := range registry.On("ETH") {
		codes = append(codes, c.Code)
		require.EqualValues(t, 3, c.Confirmations)
	}
	require.ElementsMatch(t, []string{"ETH", "USDCERC20"}, codes)
	usdc, err := registry.Currency("USDCERC20")
	require.NoError(t, err)
	require.Equal(t, contract, usdc.Contract)
	n, err := registry.Network("ETH")
	require.NoError(t, err)
	require.EqualValues(t, 11155111, n.ChainID)
	require.Len(t, registry.On("TRX"), 2)
	require.Equal(t, map[chain.Network]time.Duration{"TRX": time.Minute}, s.nodes.Polls())
	usdt, err := registry.Currency("USDTTRC20")
	require.NoError(t, err)
	require.EqualValues(t, 20, usdt.Confirmations)
}

// TestRealNetworksHaveKeys: a network that is made real by its node's URL has a client,
// and addresses, whatever curve its keys are on.
func TestRealNetworksHaveKeys(t *testing.T) {
	t.Parallel()
	w := &world{registry: networks.Shipped().Registry()}
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(t, err)
	accounts, err := seed.Accounts(w.registry.Networks())
	require.NoError(t, err)
	encode := map[chain.Network]keys.Encode{}
	for _, n := range []chain.Network{"ETH", "CELO", "BTC", "TRX", "SOL", "ADA"} {
		unused := nodes.Of(networks.Shipped(), n)
		unused.URL, unused.Project = "http://127.0.0.1:1/key", "secret"
		c, err := nodes.Dial(w.registry, n, unused, nil, nil)
		require.NoError(t, err)
		encode[n] = c.AddressOf
	}
	source, err := (&gateway{world: w}).source(seed, accounts, encode)
	require.NoError(t, err)
	for n := range encode {
		got, err := source.Derive(t.Context(), n, 0, 2)
		require.NoError(t, err)
		require.Len(t, got, 2)
	}
}

// TestFN16_CallsOfEachNetwork: a bound of calls a minute reaches the client of each network.
func TestFN16_CallsOfEachNetwork(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CRYPTOPAY_PROJECT_ADA": "secret"}
	all := chain.Networks()
	for i, n := range all {
		env["CRYPTOPAY_RPC_"+string(n.Code)] = "http://node"
		env["CRYPTOPAY_CALLS_"+string(n.Code)] = strconv.Itoa(600 + i)
	}
	s, err := readSettings(nil, func(k string) string { return env[k] })
	require.NoError(t, err)
	registry, err := s.nodes.Registry()
	require.NoError(t, err)
	clients, err := s.nodes.Clients(registry, nil, nil)
	require.NoError(t, err)
	require.Len(t, clients, len(all))
	for _, c := range clients {
		want := 600 + slices.IndexFunc(all, func(n chain.NetworkInfo) bool { return n.Code == c.Network() })
		require.Equal(t, []chain.Usage{{Most: want}}, c.(chain.Metered).Usage(), c.Network())
	}
}
