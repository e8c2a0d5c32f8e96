package tron

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// signer signs whatever it is asked to, and remembers how often.
type signer struct {
	chaintest.Account
	signed int
}

func (s *signer) Sign(_ context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	s.signed++
	sig, err := s.Account.Sign(r.Unsigned.Digests[0].Hash)
	return []chain.Signature{sig}, err
}

// office sends through chain/outgoing on the modelled node.
type office struct {
	*town
	*outgoing.Sender
	t      testing.TB
	signer *signer
	now    time.Time
	last   outgoing.Outcome
}

func openOffice(t *testing.T) *office {
	t.Helper()
	n := openTown(t, func(o *Options) { o.Expiry = time.Minute })
	o := &office{town: n, t: t, signer: &signer{Account: n.customer(t, "hot")}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	n.fund(t, o.signer.Address, "TRX", 900)
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), append(outgoing.Tables(), storage.Tables()...)...))
	var err error
	o.Sender, err = outgoing.New(outgoing.Config{
		Store: store, Client: n.client, Registry: n.registry, Signer: o.signer, Now: func() time.Time { return o.now },
		Poll: 3 * time.Second, StuckAfter: 9 * time.Second, Lease: time.Minute,
		Handle: func(_ context.Context, x outgoing.Outcome) error { o.last = x; return nil },
	})
	require.NoError(t, err)
	return o
}

// run makes blocks, one at a time, and does what is due after each.
func (o *office) run(blocks int) {
	o.t.Helper()
	for range blocks {
		o.Mine(1)
		o.now = o.now.Add(3 * time.Second)
		for range 5 {
			if worked, err := o.Step(o.t.Context()); err != nil || worked == 0 {
				require.NoError(o.t, err)
				break
			}
		}
	}
}

func (o *office) submit(to chain.Address) {
	o.t.Helper()
	in := o.intent(o.signer.Address, to, "TRX", 5)
	in.FromKey, in.MaxCost = "m/0", 100*trx
	require.NoError(o.t, o.Submit(o.t.Context(), in))
}

func (o *office) has(a chain.Address) decimal.Decimal {
	o.t.Helper()
	d, err := o.client.Balance(o.t.Context(), "TRX", a)
	require.NoError(o.t, err)
	return d
}

// TestW09_SentAnewOnlyWhenTheFirstIsDead: two transactions of Tron never exclude
// each other, so a stuck one is not replaced; it is sent anew once it is proven
// dead, and paid once.
func TestW09_SentAnewOnlyWhenTheFirstIsDead(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	to := o.customer(t, "to").Address
	o.Set(func(f *trontest.Fault) { f.Swallow = true })
	o.submit(to)
	o.run(30) // stuck by far, expired, and nothing solid is past that
	require.Equal(t, 1, o.signer.signed, "one live transaction at a time")
	o.Set(func(f *trontest.Fault) { f.Swallow = false })
	o.run(60)
	require.Equal(t, 2, o.signer.signed)
	require.Equal(t, outgoing.Final, o.last.State)
	require.Positive(t, o.last.Cost)
	require.True(t, decimal.NewFromInt(5).Equal(o.has(to)), "%s", o.has(to))
	v, ok, err := o.Get(t.Context(), "i")
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, v.Attempts, 2)
	require.Equal(t, []outgoing.AttemptState{outgoing.Dead, outgoing.AttemptFinal}, []outgoing.AttemptState{v.Attempts[0].Fate, v.Attempts[1].Fate})
}

// TestW03_AnOldTransactionThatReturnsIsPaidOnce: every raw transaction ever made
// is sent by somebody at any time.
func TestW03_AnOldTransactionThatReturnsIsPaidOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	to := o.customer(t, "to").Address
	kept := map[string][]byte{}
	o.Set(func(f *trontest.Fault) { f.Swallow, f.Took = true, func(id string, raw []byte) { kept[id] = raw } })
	o.submit(to)
	for i := range 120 {
		if i == 12 || i > 25 {
			o.Set(func(f *trontest.Fault) { f.Swallow = false })
			for id, raw := range kept {
				_ = o.Broadcast(t, chain.Attempt{Tx: id, Raw: raw})
			}
		}
		o.run(1)
	}
	require.Equal(t, outgoing.Final, o.last.State)
	require.True(t, decimal.NewFromInt(5).Equal(o.has(to)), "%s", o.has(to))
	require.Equal(t, ledger.Amount(5*trx), o.last.Amount)
}
