package outgoing_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// TestAMemberThatMayNotBeSentHoldsNobodyUp: the signer is away after a batch was planned. Meanwhile
// the host forbids one of its payments, as a move to a cold address that is no longer the policy's.
// The others are paid.
func TestAMemberThatMayNotBeSentHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, forbidden := range []string{"a", "b"} {
		t.Run(forbidden, func(t *testing.T) {
			t.Parallel()
			armed := false
			w := funded(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
				c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
					if armed && in.ID == forbidden && in.Purpose == chain.ForWithdrawal {
						return "its cold address is no longer the policy's", nil
					}
					return "", nil
				}
			}})
			a, b := w.submit(w.intent("a", coin)), w.submit(w.intent("b", coin))
			w.signer.lose = 1
			_ = w.step()
			require.True(t, w.get("a").Signing && w.get("b").Signing)
			armed = true
			w.run(120)
			if forbidden == "a" {
				a, b = b, a
			}
			w.unpaid(b)
			w.paid(a)
		})
	}
}
