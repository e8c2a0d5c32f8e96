package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var byHand = cryptopay.Call{By: "somebody", Reason: "asked by phone"}

// signing calls a function after the first signature.
type signing struct {
	chain.Signer
	then *func()
}

func (s signing) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	sigs, err := s.Signer.Sign(ctx, r)
	if f := *s.then; f != nil {
		*s.then = nil
		f()
	}
	return sigs, err
}

// TestFT06_AnvilCancelledPayoutPaysNobody: payouts of a coin and of a token are in a node's
// pool when an operator calls them off. At the fees of before, a transaction to ourselves takes
// the nonce of each; nobody is paid, and the payout behind them goes.
func TestFT06_AnvilCancelledPayoutPaysNobody(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "20")
	m.pays(3)
	m.pending()
	require.Equal(t, 3, m.unmined())
	off := m.payouts[:2]
	m.payouts = m.payouts[2:]
	for _, p := range off {
		_, err := m.app.Operate.CancelTransaction(t.Context(), "ETH", p.id, byHand)
		require.NoError(t, err)
	}
	m.pending()
	m.pass(40, time.Minute)
	got := map[string]bool{}
	for _, tx := range m.node.all() {
		for _, a := range tx.arrived {
			got[a.to.Hex()] = true
		}
	}
	for _, p := range off {
		w := m.withdrawal(p.id)
		require.Equal(t, withdrawal.Failed, w.Status, "%s waits for %q", w.Currency, w.WaitingReason())
		require.False(t, got[p.to], "%s", w.Currency)
	}
	m.judge()
}

// TestFT05_AnvilHaltedPlanStopsNobody: a payout is halted between signing and storing, and
// holds its nonce when fees rise tenfold and stay. The nonce goes back to ourselves at the new
// price, a payout of another currency goes, and after Lift the first one does. The same
// where the first one is called off meanwhile: it pays nobody.
func TestFT05_AnvilHaltedPlanStopsNobody(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("called_off_", off), func(t *testing.T) {
			t.Parallel()
			m := openSqueeze(t, "20")
			scope := cryptopay.HaltScope{Currency: "ETH"}
			then := func() {
				_, err := m.app.Operate.Halt(t.Context(), scope, byHand)
				require.NoError(t, err)
			}
			m.restart(func(s *setup) {
				s.signer = func(is chain.Signer) chain.Signer { return signing{is, &then} }
			})
			m.pays(1)
			m.pending()
			m.base *= 10
			m.node.commit()
			first := m.payouts[0]
			if off {
				_, err := m.app.Operate.CancelTransaction(t.Context(), "ETH", first.id, byHand)
				require.NoError(t, err)
			}
			m.pays(1)
			m.pass(60, 4*time.Minute)
			second := m.withdrawal(m.payouts[1].id)
			require.Equal(t, withdrawal.Completed, second.Status, "waits for %q", second.WaitingReason())
			_, err := m.app.Operate.Lift(t.Context(), scope, byHand)
			require.NoError(t, err)
			m.pass(20, 4*time.Minute)
			if off {
				require.Equal(t, withdrawal.Failed, m.withdrawal(first.id).Status)
				require.True(t, m.node.holds(first.to, "ETH").IsZero())
				m.payouts = m.payouts[1:]
			}
			m.judge()
		})
	}
}

// TestFT06_AnvilSpeedUpSaysWhenItDoesNothing: a payout that has as many transactions as it may
// is not sped up any more, which the operator is told. He can cancel it.
func TestFT06_AnvilSpeedUpSaysWhenItDoesNothing(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "20")
	m.pays(1)
	m.pending()
	p := m.payouts[0]
	for range 19 { // outgoing.Config.MaxAttempts is 20
		_, err := m.app.Operate.SpeedUp(t.Context(), "ETH", p.id, 0, byHand)
		require.NoError(t, err)
		m.pending()
	}
	v, err := m.app.Operate.Transactions(t.Context(), "ETH", p.id)
	require.NoError(t, err)
	require.Len(t, v.Attempts, 20)
	_, err = m.app.Operate.SpeedUp(t.Context(), "ETH", p.id, 0, byHand)
	require.ErrorIs(t, err, outgoing.ErrHelp)
	_, err = m.app.Operate.CancelTransaction(t.Context(), "ETH", p.id, byHand)
	require.NoError(t, err)
	m.pending()
	m.pass(20, time.Minute)
	require.Equal(t, withdrawal.Failed, m.withdrawal(p.id).Status)
	require.True(t, m.node.holds(p.to, "ETH").IsZero())
	m.payouts = nil
	m.judge()
}

// TestFT06_CoinsCancelledPayoutOfSeveral: one transaction in btcd's mempool pays three, and the
// one that carries the others is called off. It pays nobody, and the others are paid once.
func TestFT06_CoinsCancelledPayoutOfSeveral(t *testing.T) {
	t.Parallel()
	m := utxotest.Open(t, "BTC", "simnet", 330)
	s := openShop(t, m)
	orders := make([]payment.Payment, 6)
	for i := range orders {
		orders[i] = s.order("30")
		m.Pay(orders[i].Address, decimal.New(int64(orders[i].Due), -8))
	}
	s.until("paid", func() bool { return s.payment(orders[5].ID).Status == payment.Completed })
	s.mine(1)
	var ids []string
	to := map[string]string{}
	for k := range 3 {
		who, err := m.Client.AddressOf(testPub(fmt.Sprint("payee ", k)))
		require.NoError(t, err)
		amount := decimal.New(int64(5+k), 0)
		w, err := s.app.Withdrawals.Create(t.Context(), s.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "BTC", Address: string(who)},
		})
		require.NoError(t, err)
		ids, to[w.ID] = append(ids, w.ID), string(who)
	}
	s.step()
	var pool []string
	m.Ask(&pool, "getrawmempool")
	require.Len(t, pool, 1)
	at := slices.IndexFunc(ids, func(id string) bool {
		v, err := s.app.Operate.Transactions(t.Context(), "BTC", id)
		require.NoError(t, err)
		return v.BatchLeader == ""
	})
	off := ids[at]
	_, err := s.app.Operate.CancelTransaction(t.Context(), "BTC", off, byHand)
	require.NoError(t, err)
	s.clock.Advance(11 * time.Second)
	s.step()
	for range 20 {
		s.clock.Advance(4 * time.Minute)
		s.mine(1)
	}
	for _, id := range ids {
		w, err := s.app.Withdrawals.Get(t.Context(), s.tenant, id)
		require.NoError(t, err)
		if id == off {
			require.Equal(t, withdrawal.Failed, w.Status)
			require.Empty(t, m.Paid(to[id]))
			continue
		}
		require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
		require.Equal(t, fmt.Sprint([]decimal.Decimal{decimal.New(int64(w.Amount), -8)}), fmt.Sprint(m.Paid(to[id])), "once")
	}
	s.sound()
}
