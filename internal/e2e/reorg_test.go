package e2e_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
)

func TestR01_DepositDroppedByAReorgIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "Token": "USDTERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h := newHost(t, n)
			p := h.order("300", currency)
			tx := n.pay(p.Address, currency, h.due(p))
			h.mine(2)
			require.Equal(t, payment.Confirming, h.payment(p.ID).Status)
			n.reorg(2, tx)
			h.mine(finalDepth)
			require.Nil(t, n.receipt(tx))
			require.NotContains(t, []payment.Status{payment.Confirmed, payment.Sending, payment.Completed}, h.payment(p.ID).Status)
			require.Equal(t, "0", h.available(currency))
			h.sound("deposit_received")

			// Somebody pays after all.
			n.pay(p.Address, currency, h.due(p))
			h.completed(p)
			require.Equal(t, h.due(p).String(), h.available(currency))
			h.sound("payment_status_update:completed")
		})
	}
}

func TestR02_DepositMovedByAReorgIsCreditedOnce(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "Token": "USDTERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h := newHost(t, n)
			p := h.order("300", currency)
			tx := n.pay(p.Address, currency, h.due(p))
			h.mine(2)
			require.EqualValues(t, 0, n.receipt(tx).Index)
			was := n.receipt(tx).BlockHash
			raw := n.raw(tx)
			n.reorg(2, tx)
			// Others come first now: the log's place in the block is another.
			n.pay(supplier, "USDTERC20", dec("1"))
			n.pay(supplier, "USDCERC20", dec("1"))
			n.revive([]hexutil.Bytes{raw})
			h.completed(p)
			require.NotEqual(t, was, n.receipt(tx).BlockHash)
			require.EqualValues(t, 2, n.receipt(tx).Index)
			require.Equal(t, h.due(p).String(), h.available(currency))
			require.Equal(t, "300.00", h.payment(p.ID).MerchantReceived())
			h.mine(finalDepth)
			require.Equal(t, h.due(p).String(), h.available(currency))
			require.Len(t, h.sightings(tx), 1, "it is the same transfer wherever it is mined")
			require.Equal(t, 1, h.inbox.count("deposit_received"))
			h.sound("payment_status_update:completed")
		})
	}
}

func TestR01_DepositMovedAfterItWasCreditedStaysOneCredit(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	p := h.order("300", "USDTERC20")
	tx := n.pay(p.Address, "USDTERC20", h.due(p))
	h.until("credited", func() bool { return h.available("USDTERC20") == "300" })
	was := n.receipt(tx).BlockHash
	n.reorg(confirmations)
	h.step()
	require.Equal(t, "0", h.available("USDTERC20"), "it is in no block now")
	h.sound()
	h.mine(1)
	h.completed(p)
	h.mine(finalDepth)
	require.NotEqual(t, was, n.receipt(tx).BlockHash)
	h.seenAt(tx, 2)
	require.Equal(t, "300", h.available("USDTERC20"))
	require.Equal(t, "300.00", h.payment(p.ID).MerchantReceived())
	h.sound()
	w := h.withdraw("100", "USDTERC20", supplier)
	h.paidOnce(w, supplier)
	h.sound("withdrawal_status_update:completed")
}

// seenAt wants one Sighting of a transaction, in the block that the node has it
// in, in its so many-th life.
func (h *host) seenAt(tx string, generation int) {
	h.t.Helper()
	rows := h.sightings(tx)
	require.Len(h.t, rows, 1, "it is the same transfer wherever it is mined")
	s := incoming.Sightings.Value(rows[0])
	require.Equal(h.t, h.node.receipt(tx).BlockHash.Hex(), s.BlockHash)
	require.Equal(h.t, generation, s.Generation)
}

func TestR05_WithdrawalThrownOutByAReorgIsSentAgainAndPaysOnce(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	h.earn("300", "USDCERC20")
	w := h.withdraw("100", "USDCERC20", supplier)
	h.until("in a block", func() bool { v := h.withdrawal(w.ID); return v.Tx != "" && n.receipt(v.Tx) != nil })
	tx := h.withdrawal(w.ID).Tx
	n.reorg(1, tx)
	require.Nil(t, n.receipt(tx), "the node has forgotten it")
	w = h.paidOnce(w, supplier)
	require.Equal(t, tx, w.Tx, "the same bytes")
	require.Len(t, h.attempts(), 1)
	h.sound("withdrawal_status_update:completed")
}

func TestR01_GethForkMovesADeposit(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "Token": "USDTERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openGeth(t, usual)
			h := newHost(t, n)
			p := h.order("300", currency)
			tx := n.pay(p.Address, currency, h.due(p))
			h.mine(2)
			was := n.receipt(tx).BlockHash
			h.seenAt(tx, 1)
			n.fork(2)
			n.commit()
			n.commit()
			n.commit() // the longer branch
			h.step()
			require.NotEqual(t, was, n.receipt(tx).BlockHash)
			h.seenAt(tx, 1) // it was not final before: no other life
			h.completed(p)
			require.Equal(t, h.due(p).String(), h.available(currency))
			h.seenAt(tx, 1)
			require.Equal(t, 1, h.inbox.count("deposit_received"))
			h.mine(finalDepth)
			w := h.withdraw("100", currency, supplier)
			h.paidOnce(w, supplier)
			h.sound("payment_status_update:completed", "withdrawal_status_update:completed")
		})
	}
}

// Deeper than the confirmations that the host chose to trust: what was credited
// is taken back, and what is sent on its strength comes to nothing.
func TestR01_DepositDroppedAfterItWasCreditedIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "Token": "USDTERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h := newHost(t, n)
			p := h.order("300", currency)
			tx := n.pay(p.Address, currency, h.due(p))
			h.until("credited", func() bool { return h.available(currency) == h.due(p).String() })
			n.reorg(confirmations, tx)
			h.mine(3 * finalDepth)
			require.Nil(t, n.receipt(tx))
			require.Equal(t, "0", h.available(currency))
			h.sound()

			h.earn("400", currency)
			h.sound("payment_status_update:completed")
			w := h.withdraw("100", currency, supplier)
			h.paidOnce(w, supplier)
			h.sound("withdrawal_status_update:completed")
		})
	}
}
