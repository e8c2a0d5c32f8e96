package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
	"github.com/cryptopay-go/cryptopay/payment"
)

// TestFN04_AnAccountDeletedIntoOursStopsNobody: a stranger deletes an account into the
// account that takes all payments, and another finishes an escrow for it. Payments go on,
// and what came is in suspense.
func TestFN04_AnAccountDeletedIntoOursStopsNobody(t *testing.T) {
	t.Parallel()
	node, ok := openXRP(t).(*rippled)
	require.True(t, ok)
	s := openCounter(t, node)
	p := s.order("30")
	account, memo := s.apart(chain.Address(p.Address))
	node.Send(xrptest.Pay{To: string(account), Drops: 200_000, Kind: "AccountDelete"})
	node.Send(xrptest.Pay{To: string(account), Drops: 7_000_000, Kind: "EscrowFinish"})
	s.pay(account, memo, decimal.New(int64(p.Due), -int32(p.Scale)))
	s.blocks(2)
	require.Equal(t, payment.Completed, s.status(p))
	lost, err := s.app.Payments.Suspense(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	amounts := map[string]bool{}
	for _, d := range lost {
		amounts[d.Amount.Format(6, 6)] = true
	}
	require.Equal(t, map[string]bool{"0.200000": true, "7.000000": true}, amounts)
	s.sound()
}

// formerly is a client that counts what a transaction brought as earlier versions did:
// watched accounts alone.
type formerly struct {
	*xrp.Client
	on bool
}

func (f *formerly) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	s, err := f.Client.Scan(ctx, trail, w, limit)
	for _, b := range s.Blocks {
		gains := map[string]int{}
		for i := range b.Transfers {
			if t := &b.Transfers[i]; f.on && t.Ordinal <= -2 {
				t.Ordinal = -2 - gains[t.Tx]
				gains[t.Tx]++
			}
		}
	}
	return s, err
}

// formerRippled is the modelled XRP Ledger, read as an older version did until it is updated.
type formerRippled struct {
	*rippled
	client *formerly
}

func (r *formerRippled) connect(t testing.TB, source func() *keys.Source) chain.Client {
	t.Helper()
	c, ok := r.rippled.connect(t, source).(*xrp.Client)
	require.True(t, ok)
	r.client = &formerly{c, true}
	return r.client
}

// TestFN04_WhatAnOlderVersionRecordedIsNotRecoveredAgain: the present version gives it another
// ordinal, and it is the same money.
func TestFN04_WhatAnOlderVersionRecordedIsNotRecoveredAgain(t *testing.T) {
	t.Parallel()
	node, ok := openXRP(t).(*rippled)
	require.True(t, ok)
	at := &formerRippled{rippled: node}
	s := openCounter(t, at)
	account, _ := s.apart(chain.Address(s.order("30").Address))
	suspense := func() (list []string) {
		t.Helper()
		s.blocks(2)
		lost, err := s.app.Payments.Suspense(t.Context(), s.tenant, 10, 0)
		require.NoError(t, err)
		for _, d := range lost {
			list = append(list, fmt.Sprint(d.Amount.Format(6, 6), " ", d.Ordinal))
		}
		slices.Sort(list)
		return list
	}
	s.blocks(1)
	from, err := s.app.NetworkStatus(t.Context(), "XRP")
	require.NoError(t, err)
	// Of the accounts that gain only the last is watched: it is the first by the old count.
	other := xrptest.Address("somebody")
	for i := 0; other > string(account); i++ {
		other = xrptest.Address(fmt.Sprint("somebody ", i))
	}
	gain := func(drops int64) {
		t.Helper()
		node.Send(xrptest.Pay{To: other, Also: []string{string(account)}, Drops: drops, Kind: "PaymentChannelClaim"})
	}
	gain(7_000_000)
	gain(7_000_000) // as much, by another transaction
	require.Equal(t, []string{"7.000000 -2", "7.000000 -2"}, suspense())

	at.client.on = false
	gain(3_000_000)
	want := suspense()
	require.Equal(t, []string{"3.000000 -3", "7.000000 -2", "7.000000 -2"}, want, "the present version's count")
	for range 2 {
		found, _, err := s.app.Operate.RecoverDeposits(t.Context(), "XRP", account, from.Head, 0, cryptopay.Call{By: "ops", Reason: "asked"})
		require.NoError(t, err)
		require.Zero(t, found)
		require.Equal(t, want, suspense())
	}
	s.sound()
}
