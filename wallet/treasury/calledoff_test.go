package treasury_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// A process dies at any commit on a sweep's way to its gas, and the address has
// gas by other means when the next one looks: nothing stays set aside for what
// is sent no more.
func TestW02_GasThatIsNeededNoMoreIsCalledOff(t *testing.T) {
	t.Parallel()
	for at := 4; at <= 8; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			p := w.pay("USDTERC20", "300")
			w.mine(10)
			w.store.commits, w.store.dieAt, w.store.after = 0, at, true
			w.until(func() bool { return w.store.dieAt == 0 || len(w.intents(chain.ForSweep)) > 0 }) // dieAt is 0 in a new process
			w.store.dieAt = 0
			_, err := w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.01"))
			require.NoError(t, err)
			w.mine(30)
			w.hours(2)
			w.mine(30)
			require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
			w.conserved("ETH", "USDTERC20")
			w.released()
		})
	}
}

// A process sleeps after it decided on a sweep's first gas transfer. Another one finds gas
// at the address by then, and later decides on a second transfer. The first process wakes,
// sets the cost of the first aside, and dies: that is given back when the sweep has ended.
func TestW02_GasThatWasSetAsideTooLateIsCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	w.until(func() bool { return len(w.intents(chain.ForSweep)) > 0 })
	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(t, err)
	s := treasury.Sweeps.Value(rows[0])
	require.Equal(t, 1, s.Fundings)
	s.Fundings = 3
	late := "gas/2/" + rows[0].ID
	float, at, _, err := treasury.GasFloats.One(t.Context(), w.store, storage.Tenant(w.tenant), "ETH")
	require.NoError(t, err)
	float.Reserved, float.Count = float.Reserved+1000, float.Count+1
	for _, c := range []storage.Change{
		{ID: "more", Partition: rows[0].Partition, Put: []storage.Row{treasury.Sweeps.Row(rows[0].ID, rows[0].Version, rows[0].Due, s)}},
		{ID: "late", Partition: storage.Tenant(w.tenant), Put: []storage.Row{
			treasury.GasFloats.Row("ETH", at.Version, time.Time{}, float),
			treasury.Reservations.Row(late, 0, time.Time{}, treasury.Reservation{Asset: "ETH", Amount: 1000, Since: w.clock.Now(), Open: true}),
		}},
	} {
		require.NoError(t, storage.CommitOne(t.Context(), w.store, c))
	}
	w.hours(1)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// The first process sleeps until the sweep has ended, and only then hands its gas transfer
// over: nothing is sent, and nothing stays set aside.
func TestW02_GasThatIsHandedOverAfterItsSweepHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, between := range []bool{false, true} {
		t.Run(fmt.Sprintf("set aside as it is called off %v", between), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			p := w.pay("USDTERC20", "300")
			w.until(func() bool { return len(w.intents(chain.ForSweep)) > 0 })
			rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
			require.NoError(t, err)
			s := treasury.Sweeps.Value(rows[0])
			require.Equal(t, 1, s.Fundings)
			s.Fundings = 2
			require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
				ID: "more", Partition: rows[0].Partition, Put: []storage.Row{treasury.Sweeps.Row(rows[0].ID, rows[0].Version, rows[0].Due, s)},
			}))
			late := chain.Intent{
				ID: "gas/2/" + rows[0].ID, Purpose: chain.ForGas, Tenant: w.tenant, Network: w.n, Currency: "ETH",
				To: chain.Address(p.Address), Amount: 5000, Confirmations: 1,
			}
			if between {
				w.at("called-off/gas/2/", func() {
					err := w.app.Treasury.Submit(t.Context(), late)
					require.ErrorIs(t, err, outgoing.ErrDiffers)
				})
			}
			w.hours(1)
			w.mine(30)
			require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
			before := w.chain.Balance(chain.Address(p.Address), "ETH").String()
			require.Error(t, w.app.Treasury.Submit(t.Context(), late))
			w.hours(1)
			w.mine(30)
			require.Equal(t, before, w.chain.Balance(chain.Address(p.Address), "ETH").String())
			w.conserved("ETH", "USDTERC20")
			w.released()
		})
	}
}

// A process dies after it called the gas transfer back, and before it wrote that nothing was
// ever set aside for it. The sleeper wakes then and sets it aside: the next process gives that
// back, although the order was called back long ago and nobody is told of it again.
func TestW02_GasThatIsSetAsideAfterItWasCalledOffIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.until(func() bool { return len(w.intents(chain.ForSweep)) > 0 })
	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(t, err)
	s := treasury.Sweeps.Value(rows[0])
	require.Equal(t, 1, s.Fundings)
	s.Fundings = 2
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "more", Partition: rows[0].Partition, Put: []storage.Row{treasury.Sweeps.Row(rows[0].ID, rows[0].Version, rows[0].Due, s)},
	}))
	late := chain.Intent{
		ID: "gas/2/" + rows[0].ID, Purpose: chain.ForGas, Tenant: w.tenant, Network: w.n, Currency: "ETH",
		To: chain.Address(p.Address), Amount: 5000, Confirmations: 1,
	}
	died, told := false, false
	w.store.fail = func(c *storage.Change) bool {
		died = strings.HasPrefix(c.ID, "called-off/gas/2/")
		w.store.dead = died
		return died
	}
	w.until(func() bool { return died })
	w.store.fail = func(c *storage.Change) bool {
		if !told && strings.HasPrefix(c.ID, "out/told/") && c.Put[0].ID == late.ID { // nothing was set aside that could be given back
			told = true
			require.ErrorIs(t, w.app.Treasury.Submit(t.Context(), late), outgoing.ErrDiffers)
		}
		return false
	}
	w.until(func() bool { return told })
	w.hours(1)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A process sleeps after it decided on a sweep's gas transfer. Another one finds that the
// operator's coins do not cover it, so that it is no transfer of the sweep any more. The first
// process wakes once they do, sets the cost aside and dies before it hands the transfer over.
// The address gets gas by other means: once the sweep has landed, the cost is given back.
func TestW02_GasThatCouldNotBePaidForIsCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	p := w.pay("USDTERC20", "300")
	w.mine(40)
	require.Empty(t, w.intents(chain.ForGas))
	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, 0, treasury.Sweeps.Value(rows[0]).Fundings)
	require.Equal(t, treasury.SweepDeferred, treasury.Sweeps.Value(rows[0]).State)
	late := "gas/1/" + rows[0].ID
	float, at, _, err := treasury.GasFloats.One(t.Context(), w.store, storage.Tenant(w.tenant), "ETH")
	require.NoError(t, err)
	float.Asset, float.Reserved, float.Count = "ETH", float.Reserved+1000, float.Count+1
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "late", Partition: storage.Tenant(w.tenant), Put: []storage.Row{
			treasury.GasFloats.Row("ETH", at.Version, time.Time{}, float),
			treasury.Reservations.Row(late, 0, time.Time{}, treasury.Reservation{Asset: "ETH", Amount: 1000, Since: w.clock.Now(), Open: true}),
		},
	}))
	_, err = w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.01"))
	require.NoError(t, err)
	w.mine(30)
	w.hours(4)
	w.fund("1")
	w.hours(4)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}
