package e2e_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// hurdle is a process's way to the node that fails where it is told to.
type hurdle struct {
	*evm.Client
	fail func(send func() error) error // instead of Broadcast
	sent []chain.Stored
}

func (c *hurdle) Broadcast(ctx context.Context, s chain.Stored) error {
	c.sent = append(c.sent, s)
	send := func() error { return c.Client.Broadcast(ctx, s) }
	if c.fail != nil {
		return c.fail(send)
	}
	return send()
}

// dropping is a signer whose process ends when it has signed.
type dropping struct{ chain.Signer }

func (d dropping) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	if _, err := d.Signer.Sign(ctx, r); err != nil {
		return nil, err
	}
	panic("the process ends here")
}

// The App is dropped, with all that its memory holds, at each place between the
// decision to pay and the record of it.
func TestW02_AppDroppedBetweenSignAndBroadcastPaysOnce(t *testing.T) {
	t.Parallel()
	cut := errors.New("connection reset")
	for name, c := range map[string]struct {
		change func(*host, *hurdle) // arms the fault
		ends   bool                 // the process ends there
	}{
		"SignedNotStored": {func(h *host, _ *hurdle) { h.signer = func(s chain.Signer) chain.Signer { return dropping{s} } }, true},
		"StoredNotSent":   {func(_ *host, x *hurdle) { x.fail = func(func() error) error { panic("the process ends here") } }, true},
		"SentNotRecorded": {func(_ *host, x *hurdle) {
			x.fail = func(send func() error) error { _ = send(); panic("the process ends here") }
		}, true},
		"W01_SendLost":   {func(_ *host, x *hurdle) { x.fail = func(func() error) error { return cut } }, false},
		"W01_AnswerLost": {func(_ *host, x *hurdle) { x.fail = func(send func() error) error { _ = send(); return cut } }, false},
		"W07_AnswerMisunderstood": {func(_ *host, x *hurdle) {
			x.fail = func(send func() error) error { _ = send(); return errors.New("invalid transaction") }
		}, false},
	} {
		for _, currency := range []string{"ETH", "USDTERC20"} {
			t.Run(name+"/"+currency, func(t *testing.T) {
				t.Parallel()
				n := openAnvil(t, usual)
				h := newHost(t, n)
				h.earn("300", currency)
				w := h.withdraw("100", currency, supplier)

				x := &hurdle{Client: n.client()}
				c.change(h, x)
				h.restart(func(s *setup) { s.client = x })
				if c.ends {
					require.Panics(t, func() { _ = h.app.Step(t.Context()) })
				} else {
					h.step()
				}
				before := h.attempts()
				h.restart(func(s *setup) { s.client, s.signer = n.client(), nil })
				h.clock.Advance(blockTime)
				h.step() // before there is a new block: nothing proves anything yet
				w = h.paidOnce(w, supplier)
				after := h.attempts()
				require.Len(t, after, 1, "nothing is built a second time")
				require.Len(t, h.signed(w), 1, "nothing else is signed")
				require.Equal(t, after[0].ID, w.Tx)
				if name != "SignedNotStored" {
					require.Len(t, before, 1)
					require.Equal(t, outgoing.Attempts.Value(before[0]).Raw, outgoing.Attempts.Value(after[0]).Raw)
				}
				h.sound("withdrawal_status_update:completed")
			})
		}
	}
}

// stuck brings a withdrawal into the node's pool, lets gas become dearer than it
// pays, and returns both raw transactions once it was replaced.
func stuck(t *testing.T, currency string) (h *host, w string, raws [2]hexutil.Bytes) {
	t.Helper()
	n := openAnvil(t, usual)
	h = newHost(t, n)
	h.earn("300", currency)
	price := int64(10)
	mine := n.commit
	n.commit = func() {
		n.ask(nil, "anvil_setNextBlockBaseFeePerGas", hexutil.EncodeUint64(uint64(price)*gwei))
		mine()
	}
	h.mine(1)
	w = h.withdraw("100", currency, supplier).ID
	h.step()
	require.Len(t, h.attempts(), 1)
	price = 25
	for range int(stuckAfter/blockTime) - 1 {
		h.mine(1)
		require.Len(t, h.attempts(), 1, "patience first")
	}
	for i := 0; len(h.attempts()) < 2; i++ {
		require.Less(t, i, 3, "not replaced")
		require.True(t, n.holds(supplier, currency).IsZero())
		h.clock.Advance(blockTime)
		h.step()
	}
	for i, row := range h.attempts() {
		raws[i] = outgoing.Attempts.Value(row).Raw
	}
	n.commit = func() { price = 5; mine() }
	return h, w, raws
}

func TestW03_StuckWithdrawalIsReplacedAtAHigherFeeAndPaysOnce(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			h, id, raws := stuck(t, currency)
			w := h.paidOnce(h.withdrawal(id), supplier)
			rows := h.attempts()
			require.Len(t, rows, 2)
			one, two := outgoing.Attempts.Value(rows[0]), outgoing.Attempts.Value(rows[1])
			require.Equal(t, rows[1].ID, w.Tx, "the dearer one")
			require.Equal(t, one.Nonce, two.Nonce)
			require.Equal(t, one.Spends, two.Spends)
			require.Equal(t, []outgoing.AttemptState{outgoing.Dead, outgoing.AttemptFinal}, []outgoing.AttemptState{one.State, two.State})
			h.node.revive(raws[:])
			h.mine(2)
			h.paidOnce(w, supplier)
			h.sound("withdrawal_status_update:completed")
		})
	}
}

// The old transaction comes back from somebody's pool after a reorg has thrown
// out the new one.
func TestW03_TheOldTransactionLandsAfterAllAndPaysOnce(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			h, id, raws := stuck(t, currency)
			rows := h.attempts()
			h.mine(1)
			require.Equal(t, rows[1].ID, h.withdrawal(id).Tx)
			h.node.reorg(1, rows[1].ID)
			h.node.revive(raws[:1])
			w := h.paidOnce(h.withdrawal(id), supplier)
			require.Equal(t, rows[0].ID, w.Tx)
			rows = h.attempts()
			require.Equal(t, outgoing.AttemptFinal, outgoing.Attempts.Value(rows[0]).State)
			require.Equal(t, outgoing.Dead, outgoing.Attempts.Value(rows[1]).State)
			h.node.revive(raws[:])
			h.mine(2)
			h.paidOnce(w, supplier)
			h.sound("withdrawal_status_update:completed")
		})
	}
}

// revive sends old transactions again, as anybody may; the node may refuse.
func (n *node) revive(raws []hexutil.Bytes) {
	n.t.Helper()
	for _, raw := range slices.Backward(raws) {
		_ = n.rpc.CallContext(n.t.Context(), nil, "eth_sendRawTransaction", raw)
	}
}
