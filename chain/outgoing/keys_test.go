package outgoing_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

func TestK05_SignerThatSignedAndDidNotAnswer(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.lose = 3
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.ReasonSigner, w.last("a").Reason)
		w.client.fee = func(f chain.Fee) chain.Fee { f.Max *= 2; return f } // a plan made now would differ
		other := w.submit(w.intent("b", coin))
		w.restart()
		w.run(20)
		w.paid(in)
		w.paid(other)
		require.Len(t, w.signer.payloads, 2, "each was signed as one payload")
		w.sound()
	})
}

func TestK05_RefusedIntentLeavesNoGap(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.fail = []error{fmt.Errorf("%w: above its limit", chain.ErrRefused)}
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Waiting, w.state("a"))
		require.Equal(t, outgoing.ReasonSigner, w.last("a").Reason)
		require.Empty(t, w.rows(outgoing.InputReservations.Table))
		b := w.submit(w.intent("b", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Signed, w.state("b"), "the nonce is free for the next")
		ok, err := w.Net.Cancel(w.ctx, "a")
		require.NoError(t, err)
		require.True(t, ok)
		w.run(12)
		w.paid(b)
		w.unpaid(in)
		w.sound()
	})
}

func TestK05_RefusalsDoNotMakeTheFeeDearer(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		refused := fmt.Errorf("%w: limit", chain.ErrRefused)
		w.signer.fail = []error{refused, refused, refused, refused, refused}
		a := w.submit(w.intent("a", coin))
		w.run(20)
		w.paid(a)
		b := w.submit(w.intent("b", coin))
		w.run(12)
		w.paid(b)
		require.Equal(t, w.last("b").Cost, w.last("a").Cost)
	})
}

// dyingSigner is a signer whose process and caller can die around it.
type dyingSigner struct {
	chain.Signer
	p *points
}

func (s dyingSigner) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	s.p.pass("before sign")
	sigs, err := s.Signer.Sign(ctx, r)
	s.p.pass("after sign")
	return sigs, err
}

// keyed is a world whose keys are in a seed and whose signer is the library's.
func keyed(t *testing.T, family chain.Family) *world {
	w := newWorld(t, setup{family: family})
	seed, err := keys.FromBytes(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	info, err := w.reg.Network(w.gas)
	require.NoError(t, err)
	accounts, err := seed.Accounts([]chain.NetworkInfo{info})
	require.NoError(t, err)
	n := chain.Network(w.gas)
	w.source, err = keys.NewSource(accounts, map[chain.Network]keys.Encode{n: w.client.AddressOf})
	require.NoError(t, err)
	require.NoError(t, w.store.Open(w.ctx, keys.Tables()...))
	real, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{n: w.client}, Registry: keys.StoreRegistry{Store: w.store},
		KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			all, err := w.source.Derive(w.ctx, n, 0, w.keys+1)
			i := slices.IndexFunc(all, func(d chain.Derived) bool { return d.Address == a })
			if err != nil || i < 0 {
				return "", false, err
			}
			return all[i].Key, true, nil
		},
	})
	require.NoError(t, err)
	w.set.change = func(c *outgoing.Config) { c.Signer = dyingSigner{real, w.points} }
	w.hot = w.key()
	w.restart()
	if family == chain.UTXOFamily {
		for range 4 {
			w.fund(w.key(), "BTC", 5*coin)
		}
	} else {
		w.fund(w.hot, "ETH", 20*coin)
	}
	return w
}

// The library's own signer lets everything through that outgoing does: the
// same plan again after a crash, replacements, and filling a nonce.
func TestK05_LibrarySignerAgrees(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at++ {
				w := keyed(t, family)
				w.points.dieAt = at
				var in, bad chain.Intent
				for again := true; again; {
					again = w.die(func() { in = w.submit(w.intent("a", coin)) })
				}
				w.die(func() { _ = w.step() })
				w.stick()
				for range 13 {
					w.die(func() { w.run(1) })
				}
				w.chain.SetFeeLevel(0)
				w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
				for again := true; again; {
					again = w.die(func() { bad = w.submit(w.intent("bad", coin)) })
				}
				for range 25 {
					w.die(func() { w.run(1) })
				}
				w.paid(in)
				w.unpaid(bad)
				require.Equal(t, outgoing.Failed, w.state("bad"))
				w.sound()
				if at += 3; !w.died {
					return
				}
			}
		})
	}
}
