package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// TestWhatACancelledOrderCostIsTold: an order starts again, as its nonce went back to ourselves while
// its tenant was halted. Its owner has not heard yet what that took when the order is cancelled. He
// hears it with the end of the order: what landed is booked, whatever becomes of its order.
func TestWhatACancelledOrderCostIsTold(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(w *world) error{
		"by its owner": func(w *world) error {
			_, err := w.Net.Cancel(w.ctx, "halted")
			return err
		},
		"by an operator": func(w *world) error {
			_, _, err := w.Net.CancelTransaction(w.ctx, "halted", &outgoing.Recorded{ID: "op-cancel", Op: outgoing.Operation{
				Kind: outgoing.OpCancel, By: "ann", Reason: "x", Object: "halted", At: w.clock(),
			}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{family: chain.AccountFamily})
			halted := w.intent("halted", coin)
			halted.Tenant = "t2"
			w.submit(halted)
			w.signer.lose = 1
			_ = w.step()
			w.halt(outgoing.Scope{Tenant: "t2"})
			for range 5 {
				w.advance(time.Minute)
				require.NoError(t, w.step())
			}
			w.submit(w.intent("behind", coin))
			for range 20 {
				w.refuse = errors.New("the owner's database is down")
				w.run(1)
				if v := w.get("halted"); v.State == outgoing.Waiting && len(v.Attempts) > 0 && v.CostTx != "" {
					break
				}
			}
			v := w.get("halted")
			require.Equal(t, outgoing.Waiting, v.State)
			require.Positive(t, v.Cost)
			require.NoError(t, cancel(w))
			end := map[string]outgoing.State{"by its owner": outgoing.Cancelled, "by an operator": outgoing.Failed}[name] // its owner may know it as signed
			require.Equal(t, end, w.state("halted"))
			w.refuse = nil
			w.lift(outgoing.Scope{Tenant: "t2"})
			w.run(20)
			w.unpaid(halted)
			told := w.last("halted")
			require.Equal(t, end, told.State)
			require.Equal(t, []any{v.Cost, v.CostTx}, []any{told.Cost, told.CostTx})
			w.sound()
		})
	}
}
