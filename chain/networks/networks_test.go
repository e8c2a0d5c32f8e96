package networks_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
)

// whole is a file that adds a network of each kind and tokens, and overrides shipped ones.
const whole = `# our networks
tokens: # before their networks: the order does not matter
  USDCUNI:
    network: UNICHAIN
    token: USDC
    name: USD Coin
    contract: 0x078D782b760474a361dDA0AF3839290b0EF57AD6
    decimals: 6
    stable: true
    min: 1
    max: 1000000
    dust: 0.01
    source: developers.circle.com/stablecoins/usdc-contract-addresses
  USDTERC20:
    override: true
    min: 25
    confirmations: 32
networks:
  UNICHAIN:
    like: BASE
    name: Unichain
    aliases: [UNI]
    chain_id: 130
    confirmations: 30
    head_age: 2m
    max_fee: 1.5
    coin: {code: ETHUNI, token: ETH, name: Ether on Unichain, min: 0.001, max: 500, dust: 0.000001, min_withdrawal: 0.002}
  OWN:
    kind: ethereum
    name: Own chain
    chain_id: 1000000007
    fees: data_fee
    oracle: "0x5300000000000000000000000000000000000002"
    finality: 40
    max_fee: 100
    confirmations: 5
    wait_final: true
    coin: {code: OWNC, name: Own coin, min: 1, max: 1000, dust: 0.01}
  VIA:
    like: LTC
    name: Viacoin
    genesis: 4e9b54001f9976049830128ec0331515eaabe35a70970d79971da1539a400ba1
    checkpoint: {height: 100, hash: 4e9b54001f9976049830128ec0331515eaabe35a70970d79971da1539a400ba2}
    p2pkh: 71
    p2sh: [33]
    bech32: via
    coin_type: 14
    block_time: 24s
    min_rate: 2000
    confirmations: 60
    coin: {code: VIA, name: Viacoin, min: 1, max: 1000000, dust: 0.001}
  ETH:
    override: true
    confirmations: 24
    max_fee: 300
    coin: {min: 0.002}
  BTC:
    override: true
    min_rate: 100
`

// TestX11_NetworksAndTokensOfAFile: a network of each kind by a file alone, with addresses,
// keys and a client.
func TestX11_NetworksAndTokensOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "registry.yaml")
	require.NoError(t, os.WriteFile(file, []byte(whole), 0o600))
	s, err := networks.Read(file)
	require.NoError(t, err)
	r := s.Registry()

	uni, err := r.Network("UNI")
	require.NoError(t, err)
	require.Equal(t, chain.NetworkInfo{
		Code: "UNICHAIN", Name: "Unichain", Aliases: []string{"UNI"}, Family: chain.AccountFamily, AddressType: "EVM", Gas: "ETHUNI", ChainID: 130, HeadAge: 2 * time.Minute,
	}, uni)
	o, ok := s.EVM("UNICHAIN")
	require.True(t, ok)
	base, _ := s.EVM("BASE")
	require.True(t, o.L1Fee && o.OperatorFee && o.FinalityTags, "as BASE, but for what it says itself")
	require.Equal(t, base.MaxTip, o.MaxTip)
	require.Equal(t, int64(1_500_000_000), o.MaxFeePerGas)
	usdc, err := r.Pair("UNICHAIN", "USDC")
	require.NoError(t, err)
	require.Equal(t, "USDCUNI 6 6 1 1000000 1 0.01 30 true", line(usdc), "confirmations are the network's")
	coin, err := r.Gas("UNICHAIN")
	require.NoError(t, err)
	require.Equal(t, "ETHUNI 18 8 0.001 500 0.002 0.000001 30 false", line(coin))

	own, _ := s.EVM("OWN")
	require.True(t, own.L1Fee && !own.OperatorFee && !own.FinalityTags && own.FinalDepth == 40)
	require.Equal(t, "0x5300000000000000000000000000000000000002", own.Oracle)
	final, err := r.Currency("OWNC")
	require.NoError(t, err)
	require.True(t, final.WaitFinal)

	p, ok := s.UTXO("VIA")
	require.True(t, ok)
	require.Equal(t, int64(2000), p.MinRate)
	require.Equal(t, int64(30_000), p.DustRate, "as LTC")
	require.False(t, p.MWEB, "which is LTC's alone")
	require.Equal(t, int64(100), p.Checkpoint.Height)
	via, err := r.Network("VIA")
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, via.HeadAge, "18 blocks, and at least as long as anywhere")
	format, ok := s.Format("VIA")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(string(format.Make([32]byte{1})), "via1"))
	_, err = format.Parse("ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9")
	require.Error(t, err, "another network's")
	seed, err := keys.FromMnemonic("abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about", "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(s.Networks())
	require.NoError(t, err)
	paths := map[chain.Network]string{}
	for _, a := range accounts {
		paths[a.Network] = a.Path
	}
	require.Equal(t, "m/84'/14'/0'", paths["VIA"])
	require.Equal(t, "m/84'/2'/0'", paths["LTC"])
	client, err := utxo.New(utxo.Options{Network: "VIA", Params: p, Registry: r, URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	a, err := client.ParseAddress(string(format.Make([32]byte{1})))
	require.NoError(t, err)
	require.Equal(t, format.Make([32]byte{1}), a)

	btc, _ := s.UTXO("BTC")
	bare, _ := utxo.Mainnet("BTC")
	bare.MinRate = 100
	require.Equal(t, bare, btc)

	// What is overridden has other fields as before, and the shipped Set has not changed.
	eth, _ := s.EVM("ETH")
	was, _ := networks.Shipped().EVM("ETH")
	require.Equal(t, int64(300_000_000_000), eth.MaxFeePerGas)
	require.Equal(t, int64(500_000_000_000), was.MaxFeePerGas)
	require.Equal(t, was.MaxTip, eth.MaxTip)
	for code, want := range map[string]string{
		"ETH": "ETH 18 8 0.002 500 0.001 0.000001 24 false", "USDTERC20": "USDTERC20 6 6 25 1000000 1 0.01 32 true", "DAIERC20": "DAIERC20 18 8 1 1000000 1 0.01 24 true",
	} {
		c, err := r.Currency(code)
		require.NoError(t, err)
		require.Equal(t, want, line(c))
	}
	before, err := networks.Shipped().Registry().Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, int64(12), before.Confirmations)
}

func line(c *chain.Currency) string {
	stable := "false"
	if c.Stable {
		stable = "true"
	}
	return strings.Join([]string{
		c.Code, str(int64(c.Decimals)), str(int64(c.Scale)), c.Min.String(), c.Max.String(), c.MinWithdrawal.String(), c.Dust.String(), str(c.Confirmations), stable,
	}, " ")
}

func str(n int64) string { return strconv.FormatInt(n, 10) }

// TestX11_ABadFileChangesNothing: each mistake is one error, with its line and column, and
// names the field.
func TestX11_ABadFileChangesNothing(t *testing.T) {
	t.Parallel()
	const good = `networks:
  MYNET:
    kind: ethereum
    name: My chain
    chain_id: 4242
    fees: eip1559
    finality: tags
    max_fee: 100
    confirmations: 10
    coin: {code: MYC, name: My coin, min: 1, max: 1000, dust: 0.01}
tokens:
  USDMY:
    network: MYNET
    token: USD
    name: A dollar
    contract: "0x078D782b760474a361dDA0AF3839290b0EF57AD6"
    decimals: 6
    min: 1
    max: 1000
    dust: 0.01
`
	_, err := networks.Parse("f.yaml", []byte(good))
	require.NoError(t, err)
	_, err = networks.Parse("f.yaml", nil)
	require.NoError(t, err)
	for _, c := range []struct{ from, to, want string }{
		{"    kind: ethereum\n", "    kind: solana\n", "f.yaml:3:11: networks.MYNET.kind must be ethereum or bitcoin"},
		{"    kind: ethereum\n", "", "f.yaml:2:3: networks.MYNET needs kind"},
		{"confirmations: 10", "confirmations: 10\n    steps: 0=2, 100=9", "f.yaml:10:12: networks.MYNET.steps has steps that cannot be: the last step must ask for no less"},
		{"confirmations: 10", "confirmations: 10\n    steps: 0=10,100=10", "networks.MYNET.steps has steps that cannot be: the values and the confirmations must rise"},
		{"confirmations: 10", "confirmations: 10\n    steps: 1=10", "networks.MYNET.steps has steps that cannot be: the first step must be from 0 USD on"},
		{"confirmations: 10", "confirmations: 10\n    steps: soon", "networks.MYNET.steps must be USD=CONFIRMATIONS"},
		{"confirmations: 10", "confirmations: 10\n    steps: suggested", "networks.MYNET.steps there are no suggested ones for MYNET"},
		{"chain_id: 4242", "chain_id: 0", "f.yaml:5:15: networks.MYNET.chain_id must be a whole number from 1 to 2147483647"},
		{"chain_id: 4242", "chain_id: 2147483648", "f.yaml:5:15: networks.MYNET.chain_id must be a whole number"},
		{"chain_id: 4242", "chain_id: 0x1092", "f.yaml:5:15: networks.MYNET.chain_id must be a whole number"},
		{"chain_id: 4242", "chain_id: 4_242", "networks.MYNET.chain_id must be a whole number"},
		{"chain_id: 4242", "chain_id: 137", "f.yaml:2:3: networks.MYNET has the chain id 137 of another network: POLYGON and MYNET"},
		{"chain_id: 4242", "chain_ids: 4242", "f.yaml:5:5: networks.MYNET.chain_ids is no setting; the nearest is chain_id"},
		{"chain_id: 4242", "chain_id: [4242]", "f.yaml:5:15: networks.MYNET.chain_id must be one value"},
		{"chain_id: 4242", "chain_id: 4242\n    chain_id: 4243", "f.yaml:6:5: is no YAML"},
		{"name: My chain", "name: Ethereum", "has the name ethereum of another network: ETH and MYNET"},
		{"name: My chain", "name: My chain\n    aliases: [TRON]", "has the code or alias TRON of another network: TRX and MYNET"},
		{"  MYNET:\n", "  POLYGON:\n", "f.yaml:2:3: networks.POLYGON is a network that is there already: say `override: true`"},
		{"  MYNET:\n", "  mynet:\n", "f.yaml:2:3: networks.mynet must be 2 to 20 capital letters"},
		{"    kind: ethereum\n", "    override: true\n    kind: ethereum\n", "f.yaml:2:3: networks.MYNET overrides a network that is not there"},
		{"fees: eip1559", "fees: cheap", "networks.MYNET.fees must be eip1559, legacy, op_stack, data_fee or linea"},
		{"fees: eip1559", "fees: data_fee", "networks.MYNET needs oracle"},
		{"fees: eip1559", "fees: op_stack\n    oracle: 0x5300000000000000000000000000000000000G02", "networks.MYNET.oracle must be an address"},
		{"fees: eip1559", "fees: eip1559\n    oracle: \"0x5300000000000000000000000000000000000002\"", "f.yaml:7:13: networks.MYNET.oracle is of fees op_stack and data_fee"},
		{"finality: tags", "finality: 0", "networks.MYNET.finality must be tags, none, or the number of blocks"},
		{"max_fee: 100", "max_fee: -1", "networks.MYNET.max_fee must be a price in gwei"},
		{"max_fee: 100", "max_fee: 1000001", "networks.MYNET.max_fee must be a price in gwei"},
		{"max_fee: 100", "max_fee: 0", "networks.MYNET needs a max_fee above 0"},
		{"max_fee: 100", "max_fee: 100\n    min_tip: 5\n    max_tip: 4", "min_tip ≤ max_tip"},
		{"max_fee: 100", "max_fee: 100\n    block_time: 5s", "is of networks of Bitcoin's kind, and MYNET is none"},
		{"    confirmations: 10\n", "    confirmations: 0\n", "f.yaml:9:20: networks.MYNET.confirmations must be a whole number from 1 to 100000"},
		{"    confirmations: 10\n", "", "f.yaml:2:3: networks.MYNET needs confirmations"},
		{"code: MYC", "code: ETH", "has the code of another currency, on ETH"},
		{"min: 1, max: 1000,", "min: 1001, max: 1000,", "has limits that contradict each other"},
		{"min: 1, max: 1000,", "min: 0, max: 1000,", "networks.MYNET.coin.min must be an amount of coins above 0"},
		{"min: 1, max: 1000,", "min: 1, max: 900000000000,", "networks.MYNET.coin.max must be an amount"},
		{"min: 1, max: 1000,", "min: 1,", "networks.MYNET.coin needs max"},
		{"network: MYNET", "network: NONET", "f.yaml:13:14: tokens.USDMY.network is none of the networks"},
		{"0x078D782b760474a361dDA0AF3839290b0EF57AD6", "0x078D782b760474a361dDA0AF3839290b0EF57Ad6", "f.yaml:16:15: tokens.USDMY.contract is no address of MYNET: wrong EIP-55 checksum"},
		{"0x078D782b760474a361dDA0AF3839290b0EF57AD6", "0x078d782b760474a361dda0af3839290b0ef57ad6", "tokens.USDMY.contract must be written with its checksum"},
		{"decimals: 6", "decimals: 37", "f.yaml:17:15: tokens.USDMY.decimals must be a whole number from 0 to 36"},
		{"decimals: 6", "decimals: 6\n    scale: 7", "tokens.USDMY.scale must be a whole number from 0 to 6"},
		{"    dust: 0.01\n", "    dust: 0.0000001\n", "tokens.USDMY.dust must be an amount of coins above 0, with at most 6 places"},
		{"  USDMY:", "  USDTERC20:", "f.yaml:12:3: tokens.USDTERC20 is a currency that is there already: say `override: true`"},
		{"  USDMY:\n", "  USDTERC20:\n    override: true\n", "tokens.USDTERC20.contract cannot be overridden: it says what the money is"},
		{"tokens:", "  BSC:\n    override: true\n    chain_id: 57\ntokens:", "networks.BSC.chain_id cannot be overridden: it says whose money it is"},
		{"tokens:", "  SOL:\n    override: true\n    max_fee: 1\ntokens:", "networks.SOL.max_fee is of networks of Ethereum's kind, and SOL is none"},
		{"tokens:", "token:", "f.yaml:11:1: token is no setting; the nearest is tokens"},
		{"tokens:", "---\ntokens:", "is a second document"},
		{"tokens:", "  OTHER:\n    like: MYNET\n    name: Other\n    chain_id: 4242\n    confirmations: 1\n    coin: {code: OTH, name: Other coin, min: 1, max: 2, dust: 1}\ntokens:", "has the chain id 4242 of another network: MYNET and OTHER"},
		{
			"tokens:", "tokens:\n  USDMY2: {network: MYNET, token: USD2, name: Two, contract: \"0x078D782b760474a361dDA0AF3839290b0EF57AD6\", decimals: 6, min: 1, max: 2, dust: 1}",
			"has the symbol or the contract of another currency of MYNET: USDMY2 and USDMY",
		},
		{"max_fee: 100", "max_fee: 100\n    coin_token: \"0x078D782b760474a361dDA0AF3839290b0EF57AD6\"", "makes no client: evm: currency USDMY: its contract is Options.CoinToken"},
		{"networks:\n", "networks: &a\n", ""},
		{"chain_id: 4242", "chain_id: *a", "networks.MYNET.chain_id must be one value"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		require.NotEqual(t, good, text, c.from)
		s, err := networks.Parse("f.yaml", []byte(text))
		if c.want == "" {
			continue // allowed or not: it must not panic
		}
		require.ErrorContains(t, err, c.want, text)
		require.Nil(t, s)
	}
	_, err = networks.Read(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestShippedNetworksAreWhole: each shipped network has an address format, a client and sources.
func TestShippedNetworksAreWhole(t *testing.T) {
	t.Parallel()
	s := networks.Shipped()
	for _, n := range s.Networks() {
		_, ok := s.Format(n.Code)
		require.True(t, ok, n.Code)
		if o, ok := s.EVM(n.Code); ok {
			require.NotEmpty(t, o.Source, n.Code)
			require.Equal(t, n.ChainID, o.ChainID)
		}
	}
	for _, c := range s.Currencies() {
		require.NotEmpty(t, c.Source, c.Code)
		require.True(t, c.Max.IsPositive(), c.Code)
	}
}

// TestR06_StepsOfAFile: a network's steps hold for its coin and its tokens; a coin or token may
// have its own, or none.
func TestR06_StepsOfAFile(t *testing.T) {
	t.Parallel()
	s, err := networks.Parse("f.yaml", []byte(`networks:
  ETH:
    override: true
    steps: 0=1, 100=12, 10000=64 final
  BTC:
    override: true
    coin: {steps: suggested}
tokens:
  USDCERC20:
    override: true
    steps: 0=12, 500=20
  DAIERC20:
    override: true
    steps: none
`))
	require.NoError(t, err)
	for code, want := range map[string]string{"ETH": "1 12 64f", "USDTERC20": "1 12 64f", "USDCERC20": "12 20", "DAIERC20": "", "BTC": "1 2 6", "LTC": ""} {
		c, err := s.Registry().Currency(code)
		require.NoError(t, err)
		var got []string
		for _, step := range c.Steps {
			got = append(got, strconv.FormatInt(step.Confirmations, 10)+map[bool]string{true: "f"}[step.WaitFinal])
		}
		require.Equal(t, want, strings.Join(got, " "), code)
	}
}
