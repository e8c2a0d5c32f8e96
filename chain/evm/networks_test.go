package evm

import (
	"encoding/json"
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
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
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

// TestN12_OperatorFeeIsQuotedReservedAndBooked: an OP-stack rollup's operator takes a fee by
// gas, all of it first. It is in what is expected, in the most, in what All leaves behind,
// and in the cost that a receipt tells, by the rule of its fork.
func TestN12_OperatorFeeIsQuotedReservedAndBooked(t *testing.T) {
	t.Parallel()
	require.Equal(t, crypto.Keccak256([]byte("getOperatorFee(uint256)"))[:4], selOperatorFee[:])
	f := newFake(t)
	f.rich(oneEther)
	plain, c := f.client(), f.client(func(o *Options) { o.OperatorFee = true })
	f.lie("eth_call", func(p []json.RawMessage) (any, *fakeError, bool) { // 10 gwei for each gas
		var call struct {
			To   common.Address
			Data hexutil.Bytes
		}
		require.NoError(t, json.Unmarshal(p[0], &call))
		if call.To != opOracle || [4]byte(call.Data) != selOperatorFee {
			return common.BigToHash(oneEther), nil, true // what the sender holds of the token
		}
		fee := new(big.Int).Mul(new(big.Int).SetBytes(call.Data[4:]), big.NewInt(10*gwei))
		return common.BigToHash(fee), nil, true
	})
	in := order("ETH", 1e6, 0, 1).Intent
	a, err := plain.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	b, err := c.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(21_000), b.Cost-a.Cost, "10 gwei are 1 in 10⁻⁸, and 21,000 gas are used")
	require.Equal(t, ledger.Amount(25_200*5/4), b.Max-a.Max, "for all of the gas, and a quarter")

	// What the sender cannot try yet is priced anew by the gas that it then takes.
	o := order("USDTERC20", 1e6, 0, 1)
	o.Intent.From = ""
	if o.Fee, err = c.EstimateFee(t.Context(), o.Intent); err != nil {
		t.Fatal(err)
	}
	o.Intent.From = checksum(hotAddress)
	u, err := c.Build(t.Context(), o)
	require.NoError(t, err)
	o.Fee = chain.Fee{}
	again, err := c.Build(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, again.MaxCost, u.MaxCost)

	sweep := order("ETH", 0, 0, 1)
	sweep.Intent.All, sweep.Intent.Purpose = true, chain.ForSweep
	bare, err := plain.Build(t.Context(), sweep)
	require.NoError(t, err)
	whole, err := c.Build(t.Context(), sweep)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount((22_050*5+3)/4), bare.Outputs[0].Amount-whole.Outputs[0].Amount, "what stays can pay it")

	f.refuses("eth_call", 3, "execution reverted")
	_, err = c.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode, "no price, not a low one")

	for fields, want := range map[string]int64{
		`"operatorFeeScalar":"0x1e8480","operatorFeeConstant":"0x7"`:                           21_000*2 + 7, // Isthmus
		`"operatorFeeScalar":"0x2","operatorFeeConstant":"0x7","daFootprintGasScalar":"0x190"`: 21_000*2*100 + 7,
		`"operatorFeeConstant":"0x7","l1Fee":"0x5"`:                                            12,
		`"operatorFeeScalar":null,"operatorFeeConstant":null,"daFootprintGasScalar":null`:      0,
	} {
		w := newWalk([]byte(`{"transactionHash":"` + common.Hash{1}.Hex() + `","blockHash":"` + common.Hash{2}.Hex() +
			`","blockNumber":"0x1","gasUsed":"0x5208","effectiveGasPrice":"0x1","logs":[],"status":"0x1",` + fields + `}`))
		r := readReceipt(w)
		require.NoError(t, w.End())
		require.Equal(t, 21_000+want, r.cost().Int64(), fields)
	}
}

// TestX11_FeesOfLineaAndScroll: the node itself names the price.
func TestX11_FeesOfLineaAndScroll(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client(func(o *Options) { o.Linea = true })
	var asked map[string]any
	f.lie("linea_estimateGas", func(p []json.RawMessage) (any, *fakeError, bool) {
		asked = nil
		require.NoError(t, json.Unmarshal(p[0], &asked))
		return map[string]string{"gasLimit": "0xcf08", "baseFeePerGas": "0x7", "priorityFeePerGas": "0x3b9aca00"}, nil, true
	})
	_, s := build(t, c, order("USDTERC20", 1e6, 0, 1))
	require.Equal(t, common.HexToAddress(asked["to"].(string)), usdt, "the transfer itself is priced")
	tx := decodeTx(t, s.Raw)
	require.Equal(t, int64(gwei*5/4), tx.GasTipCap().Int64(), "with a quarter more, as data gets dearer")
	require.Equal(t, int64(gwei*5/4+14), tx.GasFeeCap().Int64())
	o := order("USDTERC20", 1e6, 0, 1)
	o.Intent.From = ""
	_, err := c.EstimateFee(t.Context(), o.Intent)
	require.NoError(t, err)
	require.Len(t, asked["data"].(string), 2+2*68, "as many bytes, to somebody without code")
	require.NotEqual(t, common.HexToAddress(asked["to"].(string)), usdt)
	f.says("linea_estimateGas", map[string]string{"gasLimit": "0xcf08", "baseFeePerGas": "0x7", "priorityFeePerGas": "0xffffffffffffffffff"})
	_, err = c.EstimateFee(t.Context(), o.Intent)
	require.ErrorIs(t, err, chain.ErrTooDear, "a lower price than asked is no price: the sequencer would not take it")
	f.refuses("linea_estimateGas", -32601, "the method linea_estimateGas does not exist")
	_, err = c.EstimateFee(t.Context(), o.Intent)
	require.ErrorIs(t, err, chain.ErrNode)

	scroll := f.client(func(o *Options) { o.DataFeeMethod = "scroll_estimateL1DataFee" })
	f.says("scroll_estimateL1DataFee", hexutil.Uint64(100_000*gwei))
	in := order("ETH", 1e6, 0, 1).Intent
	a, err := f.client().EstimateFee(t.Context(), in)
	require.NoError(t, err)
	b, err := scroll.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(12_500), b.Max-a.Max)
	f.refuses("scroll_estimateL1DataFee", -32601, "the method scroll_estimateL1DataFee does not exist")
	_, err = scroll.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode)
}

// celoToken is code that moves the coin of whoever calls transfer by Celo's precompile, and
// logs it as a token does.
var celoToken = "0x33600052" + "600435602052" + "602435604052" + "6000600060606000600060fd5af150" + "602435600052" +
	"60043533" + "7f" + transferTopic.Hex()[2:] + "60206000a3" + "600160005260206000f3"

// TestX11_CeloIsOneMoney: on a node that has Celo's precompile. CELO that moves as a token is
// the coin: reported once, as the coin, proven, and in the balance that the coin's own
// transfers are compared with.
func TestX11_CeloIsOneMoney(t *testing.T) {
	t.Parallel()
	const contract = "0x471EcE3750Da237f93B8E339c536989b8978a438"
	n := newTown(t, Options{Network: "CELO", ChainID: 42220, FinalityTags: true, CoinToken: contract}, "--celo")
	n.ask(t, nil, "anvil_setCode", contract, celoToken)
	trail := begin(t, n.client)
	customer, err := chaintest.Secp256k1Account(n.client, t.Name())
	require.NoError(t, err)
	to := common.HexToAddress(string(customer.Address))

	var hash string
	move := func(coins int64) {
		data := append(append(hexutil.MustDecode("0xa9059cbb"), common.LeftPadBytes(to[:], 32)...), common.LeftPadBytes(new(big.Int).Mul(big.NewInt(coins), pow10(18)).Bytes(), 32)...)
		n.ask(t, &hash, "eth_sendTransaction", map[string]any{"from": n.accounts[0], "to": contract, "data": hexutil.Bytes(data), "gas": "0x493e0"})
	}
	move(3)
	n.pay(t, chaintest.Payment{To: customer.Address, Currency: "ETH", Amount: dec("2")}) // the coin itself, in the same block
	n.mine(t, 1)
	got := all(scan(t, n.client, trail, watch(to)))
	require.Len(t, got, 2, "two transfers, and nothing that is left over")
	sum := dec("0")
	for _, x := range got {
		require.Equal(t, "ETH", x.Currency, "the registry of this test calls every coin so")
		require.Empty(t, x.Contract)
		require.False(t, x.Unproven)
		sum = sum.Add(x.Amount)
	}
	require.Equal(t, "5", sum.String())
	held, err := n.client.Balance(t.Context(), "ETH", customer.Address)
	require.NoError(t, err)
	require.Equal(t, "5", held.String())
	require.NotEmpty(t, hash)
}

// TestGlamsterdamLogsOfEtherAreNoToken: from EIP-7708 on the network logs each transfer of
// ether as a token does. A payment is one deposit then as before, and no foreign token's.
func TestGlamsterdamLogsOfEtherAreNoToken(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	pay := ether(bob, 5)
	pay.logs = []fakeLog{transferLog(common.HexToAddress("0xfffffffffffffffffffffffffffffffffffffffe"), pay.from, bob, big.NewInt(5))}
	f.mine(pay)
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1)
	require.Equal(t, "ETH", got[0].Currency)
	require.Equal(t, -1, got[0].Ordinal, "its identity does not move with the fork")
}

// TestGlamsterdamTransfersNeedLessGas: EIP-2780 takes the 21,000 of every transaction away.
func TestGlamsterdamTransfersNeedLessGas(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	f.says("eth_estimateGas", hexutil.Uint64(12_000))
	_, s := build(t, f.client(), order("ETH", 1e6, 0, 1))
	require.Equal(t, uint64(14_400), decodeTx(t, s.Raw).Gas())
	f.says("eth_estimateGas", hexutil.Uint64(1))
	_, err := f.client().EstimateFee(t.Context(), order("ETH", 1e6, 0, 1).Intent)
	require.ErrorIs(t, err, chain.ErrNode)
}
