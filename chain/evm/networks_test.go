package evm

import (
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// pricedByLength is the code of a GasPriceOracle that takes 1000 gwei for each byte
// of the transaction that getL1Fee is given.
const pricedByLength = "0x602435" + "64e8d4a51000" + "02" + "600052" + "60206000f3"

func (n *town) withOracle(t *testing.T) *town {
	t.Helper()
	n.ask(t, nil, "anvil_setCode", opOracle, pricedByLength)
	return n
}

// TestNetworksConform puts every preset to the suite, on a node with that
// network's chain id and, on rollups, its predeploy. The last one is nobody's: a
// network that a host configures.
func TestNetworksConform(t *testing.T) {
	t.Parallel()
	for _, o := range append(Networks(), Options{Network: "OWN", ChainID: 1_000_000_007, FinalityTags: true, L1Fee: true}) {
		t.Run(string(o.Network), func(t *testing.T) {
			t.Parallel()
			n := newTown(t, o)
			if o.L1Fee {
				n.withOracle(t)
			}
			chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return n.harness(t) })
		})
	}
}

func TestDataFeeOfANode(t *testing.T) {
	t.Parallel()
	preset, ok := Preset("BASE")
	require.True(t, ok)
	n := newTown(t, preset)
	in := chain.Intent{Network: "BASE", Currency: "ETH", To: checksum(bob), Amount: 1e8, Purpose: chain.ForWithdrawal}
	_, err := n.client.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode, "a rollup whose oracle does not answer has no price, not a low one")
	n.withOracle(t)

	plain := n.connect(t, n.url, preset.ChainID, func(o *Options) { o.L1Fee = false })
	extra := func(currency string) ledger.Amount {
		t.Helper()
		in.Currency, in.Amount = currency, 1e8
		with, err := n.client.EstimateFee(t.Context(), in)
		require.NoError(t, err)
		without, err := plain.EstimateFee(t.Context(), in)
		require.NoError(t, err)
		require.InDelta(t, int64(with.Max-without.Max), int64(with.Cost-without.Cost), 1, "but for rounding, the data fee is in what is expected and in the most")
		return with.Max - without.Max
	}
	coin, token := extra("ETH"), extra("USD")
	require.Greater(t, int64(coin), int64(110*125), "in 10⁻⁸: a transfer with its signature has 110 bytes and more, a quarter is margin")
	require.Greater(t, int64(token), int64(coin), "a token's has more bytes")

	// All that an address holds leaves room for it: what stays can pay it.
	from, err := chaintest.Secp256k1Account(n.client, t.Name())
	require.NoError(t, err)
	n.pay(t, chaintest.Payment{To: from.Address, Currency: "ETH", Amount: dec("1")})
	n.mine(t, 1)
	sweep := chain.Order{Attempt: 1, Intent: chain.Intent{Network: "BASE", Currency: "ETH", From: from.Address, To: checksum(bob), All: true, Purpose: chain.ForSweep}}
	whole, err := n.client.Build(t.Context(), sweep)
	require.NoError(t, err)
	bare, err := plain.Build(t.Context(), sweep)
	require.NoError(t, err)
	require.Greater(t, int64(bare.Outputs[0].Amount-whole.Outputs[0].Amount), int64(100*125))
	require.LessOrEqual(t, whole.Outputs[0].Amount+whole.MaxCost, ledger.Amount(1e8+1))
}

func TestArbitrumPaysNoTipAndLeavesRoomForItsData(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	f.says("eth_maxPriorityFeePerGas", "0x0") // as its nodes do
	preset, _ := Preset("ARB")
	c := f.client(func(o *Options) {
		o.MaxTip, o.GasMargin, o.MaxFeePerGas = preset.MaxTip, preset.GasMargin, preset.MaxFeePerGas
	})
	_, s := build(t, c, order("ETH", 1e6, 0, 1))
	tx := decodeTx(t, s.Raw)
	require.Equal(t, big.NewInt(1), tx.GasTipCap(), "the sequencer ignores tips")
	require.Equal(t, uint64(31_500), tx.Gas())
}

func TestPresetsAreSourced(t *testing.T) {
	t.Parallel()
	for _, o := range Networks() {
		require.NotEmpty(t, o.Source, o.Network)
		require.True(t, o.FinalityTags, o.Network)
	}
	require.Equal(t, common.HexToAddress("0x420000000000000000000000000000000000000F"), opOracle)
}

// TestX02_ProvidersThatAreAskedTooOften say so in an error of JSON-RPC. They are not asked
// for receipts then in the place of logs.
func TestX02_ProvidersThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	for code, message := range map[int]string{-32005: "project ID request rate exceeded", -32016: "over rate limit", 429: "exceeded its throughput"} {
		f := newFake(t)
		c := f.client()
		trail := begin(t, c)
		f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
		f.refuses("eth_getLogs", code, message)
		_, err := c.Scan(t.Context(), trail, watch(bob), 10)
		clienttest.Limited(t, err, 0, message)
		require.Zero(t, f.asked["eth_getBlockReceipts"])
	}
}

// TestX02_StrangersRevertIsNoRateLimit: the recipient of a withdrawal may be a contract.
// It chooses the text of its revert.
func TestX02_StrangersRevertIsNoRateLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	for code, message := range map[int]string{3: "execution reverted: rate limit", -32000: "execution reverted: too many requests", -32015: "VM execution error: reverted: slowdown"} {
		f.refuses("eth_estimateGas", code, message)
		_, err := c.EstimateFee(t.Context(), order("ETH", 1e6, 0, 1).Intent)
		require.ErrorIs(t, err, chain.ErrNode, message)
		require.NotErrorAs(t, err, new(*chain.LimitedError), message)
	}
	f.refuses("eth_estimateGas", -32005, "project ID request rate exceeded")
	_, err := c.EstimateFee(t.Context(), order("ETH", 1e6, 0, 1).Intent)
	clienttest.Limited(t, err, 0)
}

func TestX02_LimitedNodeSaysForHowLong(t *testing.T) {
	t.Parallel()
	for status, after := range map[int]string{http.StatusTooManyRequests: "7", http.StatusServiceUnavailable: "9", http.StatusBadGateway: ""} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
		}))
		c, err := New(Options{Network: "ETH", ChainID: 1, Registry: mainRegistry(t), URL: s.URL})
		require.NoError(t, err)
		_, err = c.Tip(t.Context())
		s.Close()
		require.ErrorIs(t, err, chain.ErrNode)
		var limited *chain.LimitedError
		require.Equal(t, after != "", errors.As(err, &limited), status)
		if after != "" {
			require.Equal(t, after+"s", limited.After.String())
		}
	}
}
