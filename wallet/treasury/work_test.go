package treasury_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// counted is a world that counts the calls of its store.
func counted(t *testing.T, n chain.Network) (*world, *failing.Store) {
	t.Helper()
	calls := &failing.Store{Store: memory.New(), Counts: func(failing.Call) bool { return true }}
	return newWorldAs(t, n, func(w *world) { w.store.Store = calls }), calls
}

// shop is a tenant with coins of its own and of the operator's.
func (w *world) shop(name, currency string) (tenant string) {
	w.t.Helper()
	v, err := w.app.Wallets.CreateTenant(w.t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(w.t, err)
	_, err = w.app.Hot(w.t.Context(), w.n, v.ID)
	require.NoError(w.t, err)
	c := storage.Change{ID: "fill/" + v.ID, Partition: storage.Tenant(v.ID)}
	for account, asset := range map[ledger.Account]string{ledger.Wallet(wallet.Master): currency, ledger.Float: string(w.n)} {
		c.Post = append(c.Post, ledger.Tx{ID: "fill/" + string(account), Kind: ledger.KindAdjustment, Ref: v.ID, At: w.clock.Now(), Legs: []ledger.Leg{
			{Account: account, Asset: ledger.Asset(asset), Delta: 1e15}, {Account: ledger.Chain(string(w.n)), Asset: ledger.Asset(asset), Delta: -1e15},
		}})
	}
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, c))
	return v.ID
}

func (w *world) withdrawals(tenant, currency string, n int) (out []withdrawal.Withdrawal) {
	w.t.Helper()
	for i := range n {
		amount := decimal.NewFromInt(int64(i + 20))
		v, err := w.app.Withdrawals.Create(w.t.Context(), tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &amount, Currency: currency, Address: string(w.chain.Customer(fmt.Sprint("c", i)))},
		})
		require.NoError(w.t, err)
		out = append(out, v)
	}
	return out
}

func (w *world) gas(tenant, asset string) treasury.GasFloat {
	w.t.Helper()
	v, _, _, err := treasury.GasFloats.One(w.t.Context(), w.store, storage.Tenant(tenant), asset)
	require.NoError(w.t, err)
	return v
}

// A tenant's payouts are handed over, and what became of them is taken over, in about as
// many calls of the store as one payout is, though all set gas aside in one row.
func TestFP01_PayoutsCostFewCalls(t *testing.T) {
	t.Parallel()
	submitted, ended := map[int]int{}, map[int]int{}
	for _, n := range []int{1, 90} {
		w, calls := counted(t, "ETH")
		w.step()
		tenant := w.shop("s", "USDTERC20")
		list := w.withdrawals(tenant, "USDTERC20", n)
		var bound ledger.Amount
		calls.Calls = 0
		worked, err := w.app.Withdrawals.Step(t.Context())
		submitted[n] = calls.Calls
		require.NoError(t, err)
		require.Equal(t, n, worked)
		var outcomes []outgoing.Outcome
		for i, v := range list {
			v, err := w.app.Withdrawals.Get(t.Context(), tenant, v.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Handed, v.Stage)
			in, _, ok, err := outgoing.Intents.One(t.Context(), w.store, "network/ETH", v.ID)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, v.MaxCost, in.MaxCost)
			bound += in.MaxCost
			outcomes = append(outcomes, outgoing.Outcome{
				Intent: v.ID, Purpose: chain.ForWithdrawal, Tenant: tenant, Network: "ETH", Currency: v.Currency, State: outgoing.Final,
				Tx: fmt.Sprint("0x", i), Confirmations: 12, Amount: v.Amount, Cost: 7, CostTx: fmt.Sprint("0x", i), At: w.clock.Now(),
			})
		}
		require.Equal(t, treasury.GasFloat{Asset: "ETH", Reserved: bound, Count: int64(n)}, w.gas(tenant, "ETH"))

		calls.Calls = 0
		errs := storage.Work(t.Context(), storage.Joined(w.store), outcomes, func(o outgoing.Outcome) string { return o.Intent }, w.app.Treasury.HandleOutcome)
		ended[n] = calls.Calls
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, treasury.GasFloat{Asset: "ETH"}, w.gas(tenant, "ETH"))
		for _, v := range list {
			v, err := w.app.Withdrawals.Get(t.Context(), tenant, v.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, v.Status)
			r, _, _, err := treasury.Reservations.One(t.Context(), w.store, storage.Tenant(tenant), v.ID)
			require.NoError(t, err)
			require.False(t, r.Open)
		}
	}
	// mortal commits Changes one by one, three for each that is handed over and two for each
	// that has ended.
	require.LessOrEqual(t, submitted[90], submitted[1]+3*89)
	require.LessOrEqual(t, ended[90], ended[1]+2*89)
}

// Of what the operator's coins do not bear together, as much is taken over as they bear,
// in order; the rest waits for gas.
func TestFP01_ReservationsInOneChangeKeepWithinTheEquity(t *testing.T) {
	t.Parallel()
	w, _ := counted(t, "ETH")
	w.step()
	tenant := w.shop("s", "USDTERC20")
	submit := func(max ...ledger.Amount) (short []bool) {
		var items []chain.Intent
		hot, err := w.app.Hot(t.Context(), "ETH", tenant)
		require.NoError(t, err)
		for i, m := range max {
			items = append(items, chain.Intent{
				ID: fmt.Sprint("w", len(max), i), Purpose: chain.ForWithdrawal, Tenant: tenant, Network: "ETH", Currency: "USDTERC20",
				From: hot, To: w.chain.Customer("c"), Amount: 1, MaxCost: m, Confirmations: 1,
			})
		}
		for _, err := range storage.Work(t.Context(), storage.Joined(w.store), items, func(in chain.Intent) string { return in.ID }, w.app.Treasury.Submit) {
			wait := (*treasury.WaitError)(nil)
			if !errors.As(err, &wait) {
				require.NoError(t, err)
			} else {
				require.Equal(t, outgoing.ReasonOperatorFunds, wait.Reason)
			}
			short = append(short, err != nil)
		}
		return short
	}
	require.Equal(t, []bool{false, true, false, false, true}, submit(4e14, 7e14, 5e14, 1e14, 1))
	require.Equal(t, treasury.GasFloat{Asset: "ETH", Reserved: 1e15, Count: 3, Lacking: 7e14}, w.gas(tenant, "ETH"))
	require.Equal(t, []bool{true, true}, submit(1, 1))
}

// Sweeps of many addresses are begun, judged and handed over in about as many look-ups as
// one is. Of each tenant one goes first, so that its calls come twice.
func TestFP01_SweepsCostFewCalls(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{2, 30} {
		w, count := counted(t, "ETH")
		others := func() {
			for worked := 1; worked > 0; {
				worked = 0
				for _, k := range w.app.Workers() {
					if k.Name == "treasury/ETH" {
						continue
					}
					some, err := k.Step(t.Context())
					require.NoError(t, err)
					worked += some
				}
			}
		}
		others()
		w.fund("10")
		for range n {
			w.pay("USDTERC20", "100")
		}
		for range 40 {
			w.clock.Advance(15 * time.Second)
			w.chain.Mine(1)
			others()
		}
		count.Calls = 0
		worked, err := w.app.Treasury.Step(t.Context(), "ETH")
		calls[n] = count.Calls
		require.NoError(t, err)
		require.Equal(t, 2*n, worked)
		require.Len(t, w.sweeps(), n)
		for _, s := range w.sweeps() {
			require.Equal(t, treasury.SweepFunding, s.State)
		}
		require.Equal(t, int64(n), w.gas(w.tenant, "ETH").Count)
		w.mine(60)
		for _, s := range w.sweeps() {
			require.Equal(t, treasury.SweepDone, s.State)
		}
		require.Zero(t, w.gas(w.tenant, "ETH").Count)
		w.conserved("ETH", "USDTERC20")
	}
	// mortal commits Changes one by one, four for each sweep: that it begins, that it waits
	// for gas, the order of the gas, and that it was ordered.
	require.LessOrEqual(t, calls[30], calls[2]+4*28)
}

// locked is a store in which a partition stays locked elsewhere for some Changes.
type locked struct {
	storage.Store
	of func(c *storage.Change) bool
}

func (s *locked) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		if changes[i].NoWait && s.of != nil && s.of(&changes[i]) {
			errs[i] = storage.ErrBusy
			continue
		}
		errs[i] = s.Store.Commit(ctx, changes[i])[0]
	}
	return errs
}

// Sweeps that are worth their cost now cannot be made due, as the network's partition is
// locked elsewhere. They are found again in the next round, and not over and over in this
// one.
func TestFP01_ABusyStoreLeavesSweepsForTheNextRound(t *testing.T) {
	t.Parallel()
	store := &locked{Store: memory.New()}
	w := newWorldAs(t, "ETH", func(w *world) { w.store.Store, w.treasury.Batch = store, 2 })
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(spike * level)
	for range 5 {
		w.pay("USDTERC20", "20")
	}
	w.mine(60)
	require.Equal(t, 5, w.waits())
	w.chain.SetFeeLevel(level)
	w.clock.Advance(2 * time.Minute)
	store.of = func(c *storage.Change) bool { return strings.Contains(c.ID, "/due/") }
	rounds := 0
	for worked := 1; worked > 0 && rounds < 10; rounds++ { // and the clock stands
		var err error
		worked, err = w.app.Treasury.Step(t.Context(), w.n)
		require.NoError(t, err)
	}
	require.Less(t, rounds, 10, "it does not come to an end")
	store.of = nil
	w.clock.Advance(2 * time.Minute)
	for range 20 {
		w.step()
	}
	require.Zero(t, w.waits())
}

// What payouts of many tenants lack is looked for in as many calls of the store as for one.
func TestFP01_CoinsForManyTenantsAreLookedForTogether(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{1, 12} {
		w, s := counted(t, "ETH")
		for i := range n {
			w.withdrawals(w.shop(fmt.Sprint("shop", i), "USDTERC20"), "USDTERC20", 1)
		}
		w.mine(4)
		short := 0
		for _, v := range w.intents(chain.ForWithdrawal) {
			if v.Reason == outgoing.ReasonHotBalance {
				short++
			}
		}
		require.Equal(t, n, short)
		w.clock.Advance(time.Hour)
		s.Calls = 0
		for worked := 1; worked > 0; {
			var err error
			worked, err = w.app.Treasury.Step(t.Context(), w.n)
			require.NoError(t, err)
		}
		calls[n] = s.Calls
	}
	require.Equal(t, calls[1], calls[12], "calls: %v", calls)
}
