package e2e_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// waiting lists what waits to be forwarded.
func (h *host) waiting() []treasury.Waiting {
	h.t.Helper()
	list, err := h.app.Treasury.Waiting(h.t.Context(), h.tenant, "ETH", 1000, 0)
	require.NoError(h.t, err)
	return list
}

// Many payments of two cents on a real node: no gas is spent on them, each waits and says
// why, and one that later grows to what is worth it goes.
func TestFT02_DustOnARealNode(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	const many = 50
	var first *payment.Payment
	for i := range many {
		p := h.order("5", "USDTERC20")
		if i == 0 {
			first = p
		}
		n.pay(p.Address, "USDTERC20", dec("0.02"))
		if i%10 == 9 {
			h.mine(1)
		}
	}
	before := n.holds(h.hot, "ETH")
	h.mine(confirmations + finalDepth)
	require.Equal(t, before.String(), n.holds(h.hot, "ETH").String(), "nothing is spent")
	waiting := h.waiting()
	require.Len(t, waiting, many)
	for _, x := range waiting {
		require.Equal(t, treasury.WaitBelowCost, x.Reason)
	}
	n.pay(first.Address, "USDTERC20", dec("80"))
	h.mine(confirmations + finalDepth)
	h.until("the grown one is forwarded", func() bool { return n.holds(h.hot, "USDTERC20").Equal(dec("80.02")) })
	cost := before.Sub(n.holds(h.hot, "ETH")).Mul(dec("2000"))
	require.True(t, cost.LessThan(dec("40.01")), "%s USD, with the gas that stays where it was sent", cost)
	require.Len(t, h.waiting(), many-1)
}

// thaw takes an address off the list of those whose tokens are frozen, for which the
// contract has no call: the one word of its storage that says so.
func (n *node) thaw(token, owner common.Address) {
	n.t.Helper()
	thawed := 0
	for slot := range 32 {
		at := crypto.Keccak256Hash(common.LeftPadBytes(owner[:], 32), common.LeftPadBytes([]byte{byte(slot)}, 32))
		var word common.Hash
		n.ask(&word, "eth_getStorageAt", token, at, "latest")
		if word == common.BigToHash(common.Big1) {
			var ok bool
			n.ask(&ok, "anvil_setStorageAt", token, at, common.Hash{})
			thawed++
		}
	}
	require.Equal(n.t, 1, thawed)
}

// An issuer freezes a deposit address and thaws it days later, on a real node and through
// a restart: the coins come by themselves.
func TestFT01_ThawedAddressIsForwardedOnARealNode(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	p := h.order("300", "USDTERC20")
	n.pay(p.Address, "USDTERC20", h.due(p))
	token := n.at["NoReturnToken"]
	n.send(n.boss, &token, nil, pack("addBlackList(address)", common.HexToAddress(p.Address)), 100_000)
	h.mine(confirmations + finalDepth)
	h.clock.Advance(31 * time.Minute)
	h.mine(finalDepth)
	h.completed(p)
	for range 8 {
		h.clock.Advance(6 * time.Hour)
		h.mine(2)
	}
	require.Equal(t, "0", n.holds(h.hot, "USDTERC20").String())
	n.thaw(token, common.HexToAddress(p.Address))
	h.restart()
	for range 6 {
		h.clock.Advance(6 * time.Hour)
		h.mine(4)
	}
	require.Equal(t, "300", n.holds(h.hot, "USDTERC20").String())
	h.mine(finalDepth)
	require.Empty(t, h.waiting())
}

// TestFT03_LittleGasIsLeftBehind: what is sent to deposit addresses for the gas of sweeps is
// what these need and some, on a real node whose base fee falls meanwhile.
func TestFT03_LittleGasIsLeftBehind(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	const many = 10
	paid := map[common.Address]bool{}
	for range many {
		p := h.order("300", "USDTERC20")
		n.pay(p.Address, "USDTERC20", h.due(p))
		paid[common.HexToAddress(p.Address)] = true
		h.mine(1)
	}
	h.until("all is forwarded", func() bool { return n.holds(h.hot, "USDTERC20").Equal(dec("3000")) })
	var sent, left, cost decimal.Decimal // in wei
	for _, tx := range n.all() {
		if tx.To != nil && paid[*tx.To] {
			sent = sent.Add(decimal.NewFromBigInt(tx.Value.ToInt(), 0))
			cost = cost.Add(decimal.NewFromBigInt(tx.cost, 0))
		}
	}
	for address := range paid {
		left = left.Add(n.holds(address.Hex(), "ETH").Shift(18))
	}
	require.True(t, sent.IsPositive())
	share := left.Div(sent)
	t.Logf("%s wei were sent for the gas of %d sweeps at a cost of %s, %s %% of them are left", sent, many, cost, share.Shift(2).StringFixed(1))
	require.True(t, share.LessThan(dec("0.45")), share)
}
