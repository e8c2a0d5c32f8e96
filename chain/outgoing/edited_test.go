package outgoing_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// edit changes the row of a transaction past this package.
func (w *world) edit(tx string, change func(*outgoing.AttemptRow)) {
	w.t.Helper()
	v, row, there, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network(w.gas), tx)
	require.NoError(w.t, err)
	require.True(w.t, there)
	change(&v)
	w.ops++
	require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "edit/" + tx + "/" + time.Duration(w.ops).String(), Partition: storage.Network(w.gas),
		Put: []storage.Row{outgoing.Attempts.Row(tx, row.Version, time.Time{}, v)},
	}))
}

// An order was replaced, and somebody edits the row of its first transaction, which lands: the
// second one can never land, and the order has not failed.
func TestFS02_EditedReplacedTransactionThatLandsGivesNothingBack(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*outgoing.AttemptRow){
		"dead":           func(a *outgoing.AttemptRow) { a.State = outgoing.Dead },
		"landed":         func(a *outgoing.AttemptRow) { a.State = outgoing.AttemptFinal },
		"pays nobody":    func(a *outgoing.AttemptRow) { a.Purpose = chain.ForCancel },
		"another amount": func(a *outgoing.AttemptRow) { a.Outputs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			families(t, func(t *testing.T, w *world) {
				log := new(bytes.Buffer)
				w.set.change = func(o *outgoing.Config) { o.Log = slog.New(slog.NewTextHandler(log, nil)) }
				w.restart()
				in := w.submit(w.intent("a", coin))
				require.NoError(t, w.step())
				w.stickAll()
				w.run(45)
				atts := w.attempts("a")
				require.Greater(t, len(atts), 1, "it was replaced")
				first, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network(w.gas), atts[0].Tx)
				require.NoError(t, err)
				w.edit(atts[0].Tx, edit)

				w.chain.SetFeeLevel(0)
				w.chain.Drop(w.chain.Mempool()...)
				require.NoError(t, w.chain.Resend(atts[0].Tx))
				w.chain.MineOnly(atts[0].Tx)
				w.run(20)
				w.paid(in)
				require.Equal(t, name != "another amount", strings.Contains(log.String(), "order_altered"))
				require.NotContains(t, w.states("a"), outgoing.Failed)

				w.edit(atts[0].Tx, func(a *outgoing.AttemptRow) {
					a.State, a.Purpose, a.Outputs = first.State, first.Purpose, first.Outputs
				})
				w.run(20)
				w.paid(in)
				require.Equal(t, outgoing.Final, w.last("a").State)
			})
		})
	}
}
