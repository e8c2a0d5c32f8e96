package evm

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
)

// hot is a key that signs, as a Signer would.
var hot, _ = crypto.ToECDSA(crypto.Keccak256([]byte("hot")))

var hotAddress = crypto.PubkeyToAddress(hot.PublicKey)

// rich makes the fake node price gas and hold balances.
func (f *fakeNode) rich(wei *big.Int) {
	f.says("eth_maxPriorityFeePerGas", "0x3b9aca00")
	f.says("eth_gasPrice", "0x77359400")
	f.says("eth_estimateGas", "0x5208")
	f.says("eth_getBalance", "0x"+wei.Text(16))
	f.says("eth_call", common.BigToHash(wei))
}

func order(currency string, amount ledger.Amount, nonce uint64, attempt int) chain.Order {
	return chain.Order{Nonce: nonce, Attempt: attempt, Intent: chain.Intent{
		ID: "i", Purpose: chain.ForWithdrawal, Network: "ETH", Currency: currency,
		From: checksum(hotAddress), To: checksum(bob), Amount: amount,
	}}
}

func build(t *testing.T, c *Client, o chain.Order) (chain.Unsigned, chain.Signed) {
	t.Helper()
	u, err := c.Build(t.Context(), o)
	require.NoError(t, err)
	sig, err := crypto.Sign(u.Digests[0].Hash[:], hot)
	require.NoError(t, err)
	s, err := c.Assemble(u, []chain.Signature{sig})
	require.NoError(t, err)
	return u, s
}

func stored(s chain.Signed) chain.Stored { return proof.NewStored("ETH", s.Tx, s.Raw) }

func attempt(u chain.Unsigned, s chain.Signed) chain.Attempt {
	return chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends}
}

var oneEther = new(big.Int).Mul(big.NewInt(1e9), big.NewInt(gwei))

func decodeTx(t *testing.T, raw []byte) *types.Transaction {
	t.Helper()
	var tx types.Transaction
	require.NoError(t, tx.UnmarshalBinary(raw))
	return &tx
}

// mined turns a signed transaction into one of the fake chain.
func mined(t *testing.T, s chain.Signed) *fakeTx {
	t.Helper()
	tx := decodeTx(t, s.Raw)
	return &fakeTx{hash: tx.Hash(), from: hotAddress, to: *tx.To(), value: tx.Value(), nonce: tx.Nonce()}
}

func TestW01_LostAnswerIsNoRejection(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	_, s := build(t, c, order("ETH", 1e6, 0, 1))
	cut := f.client(func(o *Options) {
		o.HTTP = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
		})}
	})
	err := cut.Broadcast(t.Context(), stored(s))
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotErrorIs(t, err, chain.ErrRejected)

	f.refuses("eth_sendRawTransaction", -32000, "already known")
	require.NoError(t, c.Broadcast(t.Context(), stored(s)), "the same bytes again")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }

func TestW05_NonceTooLowAsksForOurOwn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	_, s := build(t, c, order("ETH", 1e6, 0, 1))
	f.refuses("eth_sendRawTransaction", -32000, "nonce too low: next nonce 1, tx nonce 0")
	err := c.Broadcast(t.Context(), stored(s))
	require.Error(t, err)
	require.NotErrorIs(t, err, chain.ErrRejected)
	f.mine(mined(t, s))
	require.NoError(t, c.Broadcast(t.Context(), stored(s)), "it was ours that took the nonce")
}

func TestW07_UnknownErrorsAreUnknown(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	_, s := build(t, c, order("ETH", 1e6, 0, 1))
	for _, m := range []string{
		"replacement transaction underpriced", "transaction underpriced", "insufficient funds for gas * price + value",
		"nonce too high", "intrinsic gas too low", "txpool is full", "exceeds block gas limit", "invalid sender",
		"invalid chain id for signer", "transaction rejected", "oops", "",
	} {
		f.refuses("eth_sendRawTransaction", -32000, m)
		err := c.Broadcast(t.Context(), stored(s))
		require.Error(t, err, m)
		require.NotErrorIs(t, err, chain.ErrRejected, m)
	}
	f.says("eth_sendRawTransaction", fakeHash())
	require.ErrorIs(t, c.Broadcast(t.Context(), stored(s)), chain.ErrNode)
	f.says("eth_sendRawTransaction", s.Tx)
	require.NoError(t, c.Broadcast(t.Context(), stored(s)))
}

func TestW07_RejectedOnlyWithProof(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	_, s := build(t, c, order("ETH", 1e6, 0, 1))
	bad := append([]byte(nil), s.Raw...)
	bad = bad[:len(bad)-1]
	require.ErrorIs(t, c.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, bad)), chain.ErrRejected)
	require.ErrorIs(t, c.Broadcast(t.Context(), proof.NewStored("ETH", fakeHash().Hex(), s.Raw)), chain.ErrRejected)

	other := types.MustSignNewTx(hot, types.LatestSignerForChainID(big.NewInt(56)), &types.LegacyTx{To: &bob, Gas: 21000, GasPrice: big.NewInt(1)})
	raw, err := other.MarshalBinary()
	require.NoError(t, err)
	require.ErrorIs(t, c.Broadcast(t.Context(), proof.NewStored("ETH", other.Hash().Hex(), raw)), chain.ErrRejected, "of another chain")
	require.Zero(t, f.asked["eth_sendRawTransaction"])
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	u1, bad := build(t, c, order("ETH", 1e6, 0, 1))
	u2, good := build(t, c, order("ETH", 1e6, 1, 1))
	f.mine(mined(t, bad))
	f.mine(mined(t, good))
	say := func(field, value string) func() {
		return func() {
			f.lie("eth_getTransactionReceipt", func(p []json.RawMessage) (any, *fakeError, bool) {
				b, i := f.find(text(p[0]))
				r := b.receipt(i)
				if text(p[0]) == bad.Tx {
					r[field] = value
				}
				return r, nil, true
			})
		}
	}
	clienttest.Desk{At: c}.ToldWrong(t, attempt(u1, bad), attempt(u2, good), []clienttest.Spoilt{
		clienttest.As("another's", say("transactionHash", good.Tx)),
		clienttest.As("at an absurd cost", say("effectiveGasPrice", "0x"+strings.Repeat("f", 60))),
		clienttest.As("in a block that is not there", say("blockNumber", "0x77")),
		clienttest.As("no receipt", say("blockHash", "soon")),
	}, func() { f.refuses("eth_getTransactionReceipt", -32005, "limit exceeded") })
}

func TestW03_DeathOnlyByTheOtherTransactionItself(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	u1, s1 := build(t, c, order("ETH", 1e6, 0, 1))
	u2, s2 := build(t, c, order("ETH", 1e6, 0, 2))
	require.NotEqual(t, s1.Tx, s2.Tx)
	require.Equal(t, u1.Spends, u2.Spends, "a replacement shares the nonce")
	status := func() chain.Status {
		t.Helper()
		got, err := c.Status(t.Context(), attempt(u1, s1))
		require.NoError(t, err)
		return got[0]
	}
	require.Equal(t, chain.Unknown, status().State)
	for range 3 {
		f.mine()
	}
	b := f.mine(mined(t, s2))
	for range 9 {
		f.mine()
	}
	st := status()
	require.Equal(t, chain.Conflicted, st.State)
	require.Equal(t, s2.Tx, st.By)
	require.Equal(t, b.hash.Hex(), st.Block.Hash)
	require.Equal(t, int64(10), st.Confirmations)
	require.False(t, st.Final, "not before finality")
	f.mu.Lock()
	f.final = b.height
	f.mu.Unlock()
	require.True(t, status().Final)

	// The nonce is used, but by what the node does not show: no proof.
	f.says("eth_getTransactionCount", "0x9")
	require.Equal(t, chain.Unknown, status().State)
	f.refuses("eth_getTransactionCount", -32000, "missing trie node")
	require.Equal(t, chain.Unknown, status().State)
	f.lie("eth_getTransactionCount", nil)

	// The node has forgotten the receipt of one that did land: no conflict.
	f.says("eth_getTransactionReceipt", nil)
	f.says("eth_getTransactionByHash", nil)
	got, err := c.Status(t.Context(), attempt(u2, s2))
	require.NoError(t, err)
	require.Equal(t, chain.Unknown, got[0].State)
}

func TestStatusOfWhatLanded(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	u, s := build(t, c, order("ETH", 1e6, 0, 1))
	f.says("eth_getTransactionByHash", map[string]any{"hash": s.Tx, "blockHash": nil})
	got, err := c.Status(t.Context(), attempt(u, s), chain.Attempt{Tx: "0x", Raw: []byte{1}})
	require.NoError(t, err)
	require.Equal(t, chain.Pending, got[0].State)
	require.Equal(t, chain.Unknown, got[1].State)

	x := mined(t, s)
	b := f.mine(x)
	f.mine()
	got, err = c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.Equal(t, chain.Included, got[0].State)
	require.True(t, got[0].Executed)
	require.Equal(t, int64(2), got[0].Confirmations)
	require.Equal(t, ledger.Amount(2100), got[0].Cost, "21000 gwei in units of 10 gwei")
	x.failed = true
	got, err = c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.False(t, got[0].Executed)
	require.Equal(t, ledger.Amount(2100), got[0].Cost, "a revert costs too")

	// A receipt from a branch that is gone.
	f.lie("eth_getTransactionReceipt", func([]json.RawMessage) (any, *fakeError, bool) {
		r := b.receipt(0)
		r["blockHash"] = fakeHash()
		return r, nil, true
	})
	got, err = c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.Equal(t, chain.Unknown, got[0].State)
	require.False(t, got[0].Final)
}

func TestD02_TokenPaymentWithoutALogIsNotExecuted(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	u, s := build(t, c, order("USDTERC20", 25e5, 0, 1))
	x := mined(t, s)
	f.mine(x)
	got, err := c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.Equal(t, chain.Included, got[0].State)
	require.False(t, got[0].Executed, "status 1, but the token moved nothing")
	x.logs = []fakeLog{transferLog(usdt, hotAddress, bob, big.NewInt(25e5))}
	got, err = c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.True(t, got[0].Executed)
}

// TestFN07_WhatTheTokenLoggedIsWhatArrived: less is a shortfall and no failure, whichever
// way the token took its share.
func TestFN07_WhatTheTokenLoggedIsWhatArrived(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	u, s := build(t, c, order("USDTERC20", 25e5, 0, 1))
	x := mined(t, s)
	f.mine(x)
	owner := common.HexToAddress("0xfee")
	move := func(from, to common.Address, units int64) fakeLog {
		return transferLog(usdt, from, to, big.NewInt(units))
	}
	for name, y := range map[string]struct {
		logs     []fakeLog
		executed bool
		short    ledger.Amount
	}{
		"all of it":           {[]fakeLog{move(hotAddress, bob, 25e5)}, true, 0},
		"less":                {[]fakeLog{move(hotAddress, bob, 24e5), move(hotAddress, owner, 1e5)}, true, 1e5},
		"in two parts":        {[]fakeLog{move(hotAddress, bob, 1e5), move(hotAddress, bob, 24e5)}, true, 0},
		"through the token":   {[]fakeLog{move(hotAddress, usdt, 25e5), move(usdt, bob, 24e5)}, true, 1e5},
		"all to somebody":     {[]fakeLog{move(hotAddress, owner, 25e5)}, true, 25e5},
		"more":                {[]fakeLog{move(hotAddress, bob, 26e5)}, true, 0},
		"more than an amount": {[]fakeLog{transferLog(usdt, hotAddress, bob, new(big.Int).Lsh(big.NewInt(1), 200))}, true, 0},
		"between others":      {[]fakeLog{move(owner, usdt, 25e5)}, false, 0},
		"of another token":    {[]fakeLog{transferLog(owner, hotAddress, bob, big.NewInt(25e5))}, false, 0},
		"nothing":             {nil, false, 0},
	} {
		x.logs = y.logs
		got, err := c.Status(t.Context(), attempt(u, s))
		require.NoError(t, err, name)
		require.Equal(t, chain.Included, got[0].State, name)
		require.Equal(t, y.executed, got[0].Executed, name)
		require.Equal(t, y.short, got[0].Shortfall, name)
	}
}

func TestW14_AbsurdFees(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	in := order("ETH", 1e6, 0, 1).Intent

	f.says("eth_maxPriorityFeePerGas", "0xffffffffffffffffffffff")
	fee, err := c.EstimateFee(t.Context(), in)
	require.NoError(t, err, "an absurd tip is cut")
	require.LessOrEqual(t, fee.Max, ledger.Amount(25200*52/10+1))

	dear := f.client(func(o *Options) { o.MaxFeePerGas, o.MaxTip = gwei, gwei })
	_, err = dear.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrTooDear, "the base fee alone is the limit")
	legacy := f.client(func(o *Options) { o.Legacy, o.MaxFeePerGas = true, 2*gwei })
	_, err = legacy.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrTooDear)

	f.says("eth_maxPriorityFeePerGas", "0x3b9aca00")
	o := order("ETH", 1e6, 0, 1)
	o.Intent.MaxCost = 7000
	_, err = c.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrTooDear, "what the intent allows")
	o.Intent.MaxCost = 7560
	u, err := c.Build(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(7560), u.MaxCost, "25200 gas at 3 gwei")

	f.says("eth_estimateGas", "0xffffffffff")
	_, err = c.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode)
	f.says("eth_estimateGas", "0x5208")

	f.says("eth_getBalance", "0x2386f26fc10000") // 0.01 ETH: the amount, and nothing for the fee
	_, err = c.Build(t.Context(), order("ETH", 1e6, 0, 1))
	require.ErrorIs(t, err, chain.ErrShort)
	_, err = c.Build(t.Context(), order("USDTERC20", 1e6, 0, 1))
	require.NoError(t, err)
	f.says("eth_call", common.BigToHash(big.NewInt(999_999)))
	_, err = c.Build(t.Context(), order("USDTERC20", 1e6, 0, 1))
	require.ErrorIs(t, err, chain.ErrShort)
}

func TestReplacementPaysAnEighthMore(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	for _, legacy := range []bool{false, true} {
		c := f.client(func(o *Options) { o.Legacy = legacy })
		fee, err := c.EstimateFee(t.Context(), order("ETH", 1e6, 0, 1).Intent)
		require.NoError(t, err)
		var last *types.Transaction
		for n := 1; n <= 4; n++ {
			o := order("ETH", 1e6, 0, n)
			o.Fee = fee
			_, s := build(t, c, o)
			tx := decodeTx(t, s.Raw)
			if last != nil {
				for _, p := range [][2]*big.Int{{last.GasFeeCap(), tx.GasFeeCap()}, {last.GasTipCap(), tx.GasTipCap()}} {
					least := new(big.Int).Mul(p[0], big.NewInt(1125))
					require.GreaterOrEqual(t, new(big.Int).Mul(p[1], big.NewInt(1000)).Cmp(least), 0)
				}
			}
			last = tx
		}
	}
}

func TestSweepTakesAll(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	o := order("ETH", 0, 0, 1)
	o.Intent.All, o.Intent.Purpose = true, chain.ForSweep
	u, s := build(t, c, o)
	tx := decodeTx(t, s.Raw)
	most := new(big.Int).Mul(tx.GasFeeCap(), new(big.Int).SetUint64(tx.Gas()))
	require.Equal(t, oneEther, new(big.Int).Add(tx.Value(), most), "nothing stays but what the fee may take")
	require.Equal(t, checksum(bob), u.Outputs[0].To)

	f.says("eth_call", common.BigToHash(big.NewInt(1234567)))
	o.Intent.Currency = "USDTERC20"
	u, _ = build(t, c, o)
	require.Equal(t, ledger.Amount(1234567), u.Outputs[0].Amount)
	f.says("eth_call", common.Hash{})
	_, err := c.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrShort)
	f.says("eth_call", "0x")
	_, err = c.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrNode, "no contract is no balance of zero")
}

func TestCancelSendsNothingToOurselves(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	o := order("ETH", 0, 3, 1)
	_, err := c.Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrRejected)
	o.Intent.Purpose, o.Intent.To = chain.ForCancel, o.Intent.From
	u, _ := build(t, c, o)
	require.Zero(t, u.Outputs[0].Amount)
	require.Equal(t, []string{hotAddress.Hex() + "/3"}, u.Spends)
}

// A limit that is too low for an eighth more is bid in full, where that is an eighth more
// than gas costs: what is stuck pays less.
func TestFN03_ReplacementBidsTheLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	bid := func(limit int64, attempt int) (int64, error) {
		c := f.client(func(o *Options) { o.MaxFeePerGas = limit })
		u, err := c.Build(t.Context(), order("ETH", 1e6, 0, attempt))
		if err != nil {
			return 0, err
		}
		_, tx, err := unsigned(u.Payload)
		require.NoError(t, err)
		return tx.GasFeeCap().Int64(), nil
	}
	for _, attempt := range []int{1, 2, 5} {
		at, err := bid(26*gwei/10, attempt)
		require.NoError(t, err)
		require.EqualValues(t, 26*gwei/10, at, "gas costs 2 gwei")
	}
	_, err := bid(22*gwei/10, 1)
	require.NoError(t, err)
	_, err = bid(22*gwei/10, 2)
	require.ErrorIs(t, err, chain.ErrTooDear)
}

// The sender gets what it is short of only where the limit allows to spend it: that is said
// first.
func TestFN03_TooDearIsSaidBeforeShort(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	f.says("eth_getBalance", "0x0")
	o := order("USDTERC20", 1e6, 0, 1)
	_, err := f.client().Build(t.Context(), o)
	require.ErrorIs(t, err, chain.ErrShort)
	o.Intent.MaxCost = 7559
	_, err = f.client().Build(t.Context(), o)
	var dear *chain.DearError
	require.ErrorAs(t, err, &dear)
	require.EqualValues(t, 7560, dear.Need)
}

func TestDataFeeOfARollup(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	plain := f.client()
	c := f.client(func(o *Options) { o.L1Fee = true })
	require.Equal(t, crypto.Keccak256([]byte("getL1Fee(bytes)"))[:4], selL1Fee[:])
	f.says("eth_call", common.BigToHash(big.NewInt(100_000*gwei)))
	in := order("ETH", 1e6, 0, 1).Intent
	a, err := plain.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	b, err := c.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(12_500), b.Max-a.Max, "with the margin of a quarter")
}

func TestQuoteWithoutASender(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	c := f.client()
	o := order("USDTERC20", 1e6, 0, 1)
	o.Intent.From = ""
	fee, err := c.EstimateFee(t.Context(), o.Intent)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(150_000*3/10), fee.Max)
	o.Intent.From, o.Fee = checksum(hotAddress), fee
	_, s := build(t, c, o)
	require.Equal(t, uint64(25_200), decodeTx(t, s.Raw).Gas(), "what is built was tried")
}

func TestErrorsDoNotShowTheKey(t *testing.T) {
	t.Parallel()
	const key = "s3cr3t-api-key"
	for _, u := range []string{"http://127.0.0.1:1/v3/" + key, "http://127.0.0.1:1/?apikey=" + key, "http://user:" + key + "@127.0.0.1:1/"} {
		c, err := New(Options{Network: "ETH", ChainID: 1, Registry: mainRegistry(t), URL: u})
		require.NoError(t, err)
		_, err = c.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode)
		require.NotContains(t, err.Error(), key)
	}
	_, err := New(Options{Network: "ETH", ChainID: 1, Registry: mainRegistry(t), URL: "ftp://x/" + key})
	require.Error(t, err)
	require.NotContains(t, err.Error(), key)

	f := newFake(t)
	c := f.client(func(o *Options) { o.URL += "/" + key })
	f.refuses("eth_chainId", -32000, "project "+key+" is over its limit")
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotContains(t, err.Error(), key)
	f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such key "+key, http.StatusForbidden)
	})
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotContains(t, err.Error(), key)
}

func TestD14_PartialAndBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "[]", "null", "{}", "[1]", `[{"jsonrpc":"2.0","id":1,"result":"0x1"}]`, `{"jsonrpc":"2.0","id":1}`,
		`[{"id":1,"result":"0x1"},{"id":1,"result":"0x1"}]`, `[{"id":1,"result":"0x1"},{"id":9,"result":null}]`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"too many requests"}}`, "<html>", `[{"id":1,"result":"0x1"},{"id":2,"result":{}}] x`,
		strings.Repeat("[", 100_000),
	} {
		f := newFake(t)
		f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		c := f.client(func(o *Options) { o.FinalityTags = false })
		_, err := c.Tip(t.Context())
		require.ErrorIs(t, err, chain.ErrNode, "%.40q", body)
		_, err = c.Scan(t.Context(), []chain.Block{{Height: 1, Hash: "0x1"}}, watch(), 1)
		require.ErrorIs(t, err, chain.ErrNode, "%.40q", body)
	}
}

func TestR06_TipKnowsFinality(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	f.mine()
	f.mine()
	f.final = 1
	tip, err := c.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1, 1}, []int64{tip.Head.Height, tip.Safe, tip.Final})
	tip, err = f.client(func(o *Options) { o.FinalityTags = false }).Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{2, -1, -1}, []int64{tip.Head.Height, tip.Safe, tip.Final})
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		return nil, &fakeError{-39001, "Unknown block"}, text(p[0]) == tagFinal
	})
	tip, err = c.Tip(t.Context())
	require.NoError(t, err)
	require.Zero(t, tip.Final, "nothing is final yet, which is not: has no notion of it")
}

// TestFN11_FinalizedAheadOfTheHeadIsTheHead: head and finalized come from two states of
// the node, and the head is the older one.
func TestFN11_FinalizedAheadOfTheHeadIsTheHead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.mine()
	older := f.mine()
	f.mine()
	f.final = 3
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		return older.json(false), nil, text(p[0]) == "latest"
	})
	tip, err := f.client().Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2, 2}, []int64{tip.Head.Height, tip.Safe, tip.Final}, "the lower height is what both have")
}

// TestFT03_SweepSpendsTheGasThatIsThere: a sweep of a token goes with less room for a rising
// price where its address has less than all of it: between the least and the most. A replacement
// and a payout do not.
func TestFT03_SweepSpendsTheGasThatIsThere(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.rich(oneEther)
	f.says("eth_call", common.BigToHash(big.NewInt(1e6)))
	c := f.client()
	sweep := order("USDTERC20", 1e6, 0, 1)
	sweep.Intent.Purpose = chain.ForSweep
	fee, err := c.EstimateFee(t.Context(), sweep.Intent)
	require.NoError(t, err)
	require.Greater(t, fee.Least, fee.Cost)
	require.Greater(t, fee.Max, fee.Least)
	wei := func(units ledger.Amount) *big.Int { return new(big.Int).Mul(big.NewInt(int64(units)), pow10(10)) }

	between := (fee.Least + fee.Max) / 2
	f.says("eth_getBalance", hexutil.EncodeBig(wei(between)))
	u, s := build(t, c, sweep)
	tx := decodeTx(t, s.Raw)
	require.LessOrEqual(t, u.MaxCost, between)
	require.Greater(t, u.MaxCost, between-between/100, "all of it, but for the rest of a division")
	require.Positive(t, tx.GasFeeCap().Cmp(tx.GasTipCap()))
	sweep.Attempt = 2
	_, err = c.Build(t.Context(), sweep)
	require.ErrorIs(t, err, chain.ErrShort, "nodes take a replacement for an eighth more")
	payout := order("USDTERC20", 1e6, 0, 1)
	_, err = c.Build(t.Context(), payout)
	require.ErrorIs(t, err, chain.ErrShort, "others wait behind its nonce")

	sweep.Attempt = 1
	f.says("eth_getBalance", hexutil.EncodeBig(wei(fee.Least-1)))
	_, err = c.Build(t.Context(), sweep)
	require.ErrorIs(t, err, chain.ErrShort, "no block takes it now")
}
