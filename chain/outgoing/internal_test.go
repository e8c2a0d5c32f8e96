package outgoing_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// malleated pays intent a by a transaction that somebody gave another hash, and
// returns what that one moved: the payment first, then the change.
func malleated(t *testing.T, w *world) (tx string, moved []chain.Transfer) {
	in := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	stored := outgoing.Attempts.Value(w.rows(outgoing.Attempts.Table)[0])
	tx, err := w.chain.Malleate(w.last("a").Tx)
	require.NoError(t, err)
	w.alien[tx] = true
	w.chain.Mine(1)
	for i, o := range stored.Outputs {
		got := w.chain.Transfers(o.To)
		require.Len(t, got, 1)
		require.Equal(t, i, got[0].Ordinal)
		require.Equal(t, o.Change, i == 1)
		moved = append(moved, got[0])
	}
	require.Len(t, moved, 2)
	w.paid(in)
	return tx, moved
}

func TestW04_ChangeUnderAnotherHashIsInternal(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	tx, moved := malleated(t, w)
	require.Equal(t, tx, moved[1].Tx)
	ask := func(transfers ...chain.Transfer) []bool {
		out, _, err := w.Net.Internal(w.ctx, chain.Network(w.gas), transfers)
		require.NoError(t, err)
		return out
	}
	require.Equal(t, []bool{false, true}, ask(moved...), "the change is ours, what was paid is not")
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	require.Equal(t, []bool{false, true}, ask(moved...), "also once it is settled, and nothing is reserved any more")

	// Whatever differs in what it does or spends is no transaction of ours.
	more, elsewhere, beside, foreign := moved[1], moved[1], moved[1], moved[1]
	more.Amount = more.Amount.Add(more.Amount)
	elsewhere.To = w.to("somebody")
	beside.Ordinal++
	foreign.Spends = []string{"of-somebody:0"}
	wider := moved[1]
	wider.Spends = append(slices.Clone(wider.Spends), "of-somebody:0")
	require.Equal(t, make([]bool, 5), ask(more, elsewhere, beside, foreign, wider))
	w.sound()
}

func TestW04_ChangeThatIsACoinAlreadySettlesItsIntent(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	_, moved := malleated(t, w)
	cur, err := w.reg.Currency(w.gas)
	require.NoError(t, err)
	change := outgoing.Attempts.Value(w.rows(outgoing.Attempts.Table)[0]).Outputs[1]
	require.True(t, moved[1].Amount.Equal(cur.Decimal(change.Amount)))
	row := outgoing.CoinRow("t1", chain.Coin{Outpoint: moved[1].Tx + ":1", Address: change.To, Key: "m/0", Amount: change.Amount})
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "by somebody else", Partition: storage.Network(w.gas), Put: []storage.Row{row},
	}))
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.sound()
}
