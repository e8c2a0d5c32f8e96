package treasury

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// E01: each move of the table of sweeps is told, another reason to wait, and once that one
// has waited for long. Of what does not change nothing is told.
func TestFE01_EveryMoveOfASweepIsTold(t *testing.T) {
	t.Parallel()
	tr := &Treasury{cfg: Config{Registry: chain.MainnetRegistry(), Now: func() time.Time { return time.Unix(1767323045, 0) }}}
	tell := func(from, to SweepState, was, note SweepNote) []SweepChanged {
		c := storage.Change{}
		j := &job{row: storage.Row{ID: "s"}, s: Sweep{Network: "ETH", Currency: "USDTERC20", State: to, Reason: "words"}, note: note, from: from, told: was}
		require.NoError(t, tr.tell(&c, j))
		out := make([]SweepChanged, len(c.Tell))
		for i, e := range c.Tell {
			require.NoError(t, json.Unmarshal(e.Data, &out[i]))
		}
		return out
	}
	moves := 0
	for _, e := range machine.Edges {
		for _, from := range e.From {
			if e.To == "" || e.To == from {
				continue
			}
			moves++
			got := tell(from, e.To, SweepNote{}, SweepNote{Amount: 1_500_000})
			require.Len(t, got, 1, "from %q to %q", from, e.To)
			require.Equal(t, []any{from, e.To, "1.5", "ETH"}, []any{got[0].From, got[0].To, got[0].Amount, got[0].Gas})
			require.Equal(t, e.To == SweepDone, got[0].Cost == "words")
		}
	}
	require.Positive(t, moves)
	short, halted := SweepNote{Waiting: WaitGasShort}, SweepNote{Waiting: WaitHalted}
	got := tell(SweepDeferred, SweepDeferred, short, halted)
	require.Len(t, got, 1)
	require.Equal(t, []any{WaitHalted, WaitGasShort, false}, []any{got[0].Reason, got[0].Was, got[0].Long})
	require.Empty(t, tell(SweepDeferred, SweepDeferred, halted, halted))
	alerted := halted
	alerted.Alerted = WaitHalted
	got = tell(SweepDeferred, SweepDeferred, halted, alerted)
	require.Len(t, got, 1)
	require.True(t, got[0].Long)
	require.Empty(t, tell(SweepDeferred, SweepDeferred, alerted, alerted), "once")
}
