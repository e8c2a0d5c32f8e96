package treasury_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// The operator gave its float to a merchant by an adjustment. The coins at the hot
// address are the merchant's now, so they pay for no gas.
func TestFQ11_AdjustmentsAreOfTheEquity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	adjust := func(id string, units ledger.Amount) {
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: id, Partition: storage.Tenant(w.tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindAdjustment, At: w.clock.Now(), Legs: []ledger.Leg{
				{Account: ledger.Adjustment, Asset: "ETH", Delta: -units},
				{Account: ledger.Wallet(""), Asset: "ETH", Delta: units},
			},
		}}}))
	}
	whole, err := w.currency("ETH").Units(dec("1"), ledger.Down)
	require.NoError(t, err)
	adjust("gift", whole)
	in := chain.Intent{
		ID: "w1", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: "ETH",
		To: w.chain.Customer("supplier"), Amount: 1_000_000, Confirmations: 1,
	}
	var wait *treasury.WaitError
	require.ErrorAs(t, w.app.Treasury.Submit(t.Context(), in), &wait)
	require.Equal(t, outgoing.ReasonOperatorFunds, wait.Reason)
	w.released()
	adjust("given back", -whole/2)
	require.NoError(t, w.app.Treasury.Submit(t.Context(), in))
}

// estimator is a client whose estimates fail.
type estimator struct {
	chain.Client
	chain.Noncer
	chain.Balancer
	err error
}

func (e estimator) EstimateFee(context.Context, chain.Intent) (chain.Fee, error) {
	return chain.Fee{}, e.err
}

// An intent that waits names what it waits for: coins at the hot address where the
// client says that they are missing, the operator's where nothing brings any (TestFT03_), and else a
// node that answers.
func TestFQ11_WaitSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err      error
		currency string
		want     outgoing.Reason
	}{
		{chain.ErrShort, "USDTERC20", outgoing.ReasonHotBalance},
		{chain.ErrShort, "ETH", outgoing.ReasonOperatorFunds},
		{chain.ErrNode, "ETH", outgoing.ReasonNode},
	} {
		w := newWorld(t, "ETH")
		sim := w.chain.Client()
		accounts, err := w.seed.Accounts(chain.MainnetRegistry().Networks())
		require.NoError(t, err)
		source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{w.n: sim.AddressOf})
		require.NoError(t, err)
		app, err := cryptopay.New(cryptopay.Config{
			Store: w.store, Registry: chain.MainnetRegistry(), Addresses: source,
			Chains: []chain.Client{estimator{sim, sim.(chain.Noncer), sim.(chain.Balancer), c.err}},
			Rates:  rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000"}),
			Key:    bytes.Repeat([]byte{7}, 32), Clock: w.clock, Random: w.random, Notifier: receiver{},
			Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		var wait *treasury.WaitError
		require.ErrorAs(t, app.Treasury.Submit(t.Context(), chain.Intent{
			ID: "w1", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: c.currency,
			To: w.chain.Customer("supplier"), Amount: 1_000_000, Confirmations: 1,
		}), &wait)
		require.ErrorIs(t, wait, c.err)
		require.Equal(t, c.want, wait.Reason)
		w.released()
	}
}

// sighting is the newest one of the hot address.
func (w *world) sighting() incoming.Sighting {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network(string(w.n)),
		Where: []storage.Cond{{Column: "address", Op: storage.Eq, Value: string(w.hot)}},
	})
	require.NoError(w.t, err)
	require.Len(w.t, rows, 1)
	return incoming.Sightings.Value(rows[0])
}

// at runs f once, just before a Change is committed whose id begins so.
func (w *world) at(prefix string, f func()) {
	w.store.fail = func(c *storage.Change) bool {
		if strings.HasPrefix(c.ID, prefix) {
			w.store.fail = nil
			f()
		}
		return false
	}
}

// A final top-up is about to be booked when another process books its reversal. It
// stays reversed.
func TestFQ11_TopUpIsNotBookedAfterItsReversal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	_, err := w.chain.Fund(w.hot, "ETH", dec("1"))
	require.NoError(t, err)
	reversed := false
	w.at("topup/", func() {
		s := w.sighting()
		s.State = incoming.Gone
		require.NoError(t, w.app.Treasury.HandleHot(t.Context(), incoming.Fact{Sighting: s}))
		reversed = true
	})
	for range 40 {
		w.chain.Mine(1)
		_ = w.app.Step(t.Context()) // the fact is refused for ever, as its chain has not lost the top-up
	}
	require.True(t, reversed)
	require.Equal(t, "0", w.posted(ledger.Float, "ETH").String())
	require.Equal(t, "0", w.posted(ledger.Chain("ETH"), "ETH").String())
}

// A top-up is taken back as it was booked, whatever its sighting says by then.
func TestFQ11_TopUpIsTakenBackAsItWasBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.mine(10)
	require.Equal(t, "1", w.posted(ledger.Float, "ETH").String())
	s := w.sighting()
	s.State, s.Amount = incoming.Gone, 3*s.Amount
	for range 2 {
		require.NoError(t, w.app.Treasury.HandleHot(t.Context(), incoming.Fact{Sighting: s}))
		require.Equal(t, "0", w.posted(ledger.Float, "ETH").String())
	}
}
