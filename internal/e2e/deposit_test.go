package e2e_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/payment"
)

func TestD05_FeeOnTransferTokenIsCreditedAsArrived(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	p := h.order("300", "DAIERC20")
	n.pay(p.Address, "DAIERC20", dec("300"))
	h.mine(confirmations + 1)
	require.Equal(t, payment.PartiallyPaid, h.payment(p.ID).Status)
	require.Equal(t, "297", n.currency("DAIERC20").Decimal(h.payment(p.ID).Live).String(), "what arrived, not what the customer's transaction says")

	// What was kept is made up for.
	n.pay(p.Address, "DAIERC20", dec("3.04"))
	h.completed(p)
	require.Equal(t, "300.0096", h.available("DAIERC20"))
	n.pay(h.hot, "DAIERC20", dec("10")) // the sweep of it brings less: the house bears that
	h.mine(finalDepth)
	h.sound("payment_status_update:partially_paid", "payment_status_update:completed")
}

func TestD03_LookAlikeTokenIsIgnored(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	p := h.order("300", "USDTERC20")
	n.transfer(n.at["LookAlike"], p.Address, big.NewInt(300_000_000))
	h.mine(confirmations + 2)
	require.Equal(t, payment.Waiting, h.payment(p.ID).Status)
	require.Equal(t, "0", h.available("USDTERC20"))
	h.sound()
	require.NotContains(t, h.inbox.events(), "deposit_received")

	n.pay(p.Address, "USDTERC20", h.due(p))
	h.completed(p)
	require.Equal(t, "300", h.available("USDTERC20"))
	h.sound("deposit_received")
}

// The wallet of an exchange pays many at once, from within a contract.
func TestD01_EtherByInternalCallIsProvenByItsTrace(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	one, two := h.order("300", "ETH"), h.order("300", "ETH")
	n.scatter(h.due(one).Mul(dec("2")), 200_000, one.Address, two.Address)
	h.completed(one)
	h.completed(two)
	require.Equal(t, "0.3", h.available("ETH"))
	h.sound("deposit_received", "payment_status_update:completed")
}

func TestD01_EtherByInternalCallWithoutTracesGoesToSuspense(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n, func(s *setup) { s.client = n.client(func(o *evm.Options) { o.NoTrace = true }) })
	p := h.order("300", "ETH")
	n.scatter(h.due(p), 200_000, p.Address)
	h.mine(finalDepth)
	require.Equal(t, "0", h.available("ETH"), "seen, and not proven")
	require.NotEqual(t, payment.Completed, h.payment(p.ID).Status)
	waiting, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.Equal(t, payment.RoleUnproven, waiting[0].Role)
	h.sound()
}

func TestD01_RevertedTransferIsNotCredited(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	coin, token := h.order("300", "ETH"), h.order("300", "USDCERC20")
	undoes, usdc := n.at["Undoes"], n.at["TestToken"]
	wei := h.due(coin).Shift(18).BigInt()
	tooMuch := new(big.Int).Lsh(big.NewInt(1), 200)
	outOfGas := n.scatter(h.due(coin), 40_000, coin.Address)
	inner := n.send(n.payer(), &undoes, wei, common.LeftPadBytes(common.HexToAddress(coin.Address).Bytes(), 32), 200_000)
	poor := n.transfer(usdc, token.Address, tooMuch)
	h.mine(finalDepth)
	require.EqualValues(t, 0, n.receipt(outOfGas).Status)
	require.EqualValues(t, 1, n.receipt(inner).Status, "it succeeded, and its inner call did not")
	require.EqualValues(t, 0, n.receipt(poor).Status)
	for _, p := range []*payment.Payment{coin, token} {
		require.Equal(t, payment.Waiting, h.payment(p.ID).Status)
		require.Equal(t, "0", h.available(p.Currency))
	}
	h.sound()
	require.NotContains(t, h.inbox.events(), "deposit_received")
}

func TestD02_TokenThatReturnsFalseIsNotCredited(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, listed{"USDTERC20": "ReturnsFalse", "USDCERC20": "TestToken", "DAIERC20": "FeeToken"})
	h := newHost(t, n)
	p := h.order("300", "USDTERC20")
	tx := n.pay(p.Address, "USDTERC20", h.due(p))
	h.mine(finalDepth)
	require.EqualValues(t, 1, n.receipt(tx).Status, "status 1, and no log")
	require.Equal(t, payment.Waiting, h.payment(p.ID).Status)
	require.Equal(t, "0", h.available("USDTERC20"))
	h.sound()
}

// The issuer freezes an address between the payment and its forwarding: nothing
// that would fail is sent, the merchant has the money, and the rest goes on.
func TestD06_FrozenDepositAddressIsDeferred(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	p := h.order("300", "USDTERC20")
	n.pay(p.Address, "USDTERC20", h.due(p))
	token := n.at["NoReturnToken"]
	n.send(n.boss, &token, nil, pack("addBlackList(address)", common.HexToAddress(p.Address)), 100_000)
	h.mine(confirmations)
	require.Equal(t, "300", h.available("USDTERC20"), "credited: it arrived")
	h.mine(finalDepth)
	h.clock.Advance(31 * time.Minute)
	h.completed(p)
	h.mine(finalDepth)
	var sent hexutil.Uint64
	n.ask(&sent, "eth_getTransactionCount", p.Address, "latest")
	require.Zero(t, sent, "no gas is burnt on a transfer that the contract refuses")
	require.Equal(t, "300", n.holds(p.Address, "USDTERC20").String())

	h.earn("100", "USDTERC20")
	require.Equal(t, "400", h.available("USDTERC20"))
	h.sound("payment_status_update:completed")
}
