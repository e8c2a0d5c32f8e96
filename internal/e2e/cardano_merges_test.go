package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/nodes/cardanotest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// hours lets time go by: a block each hour.
func (s *stall) hours(n int) {
	s.t.Helper()
	for range n {
		s.clock.Advance(time.Hour - 20*time.Second)
		s.mine(1)
	}
}

// crumbs has payments come in so many outputs of so many lovelace each, a multiple of 20.
func (s *stall) crumbs(count int, lovelace int64) {
	s.t.Helper()
	const each = 20
	var last payment.Payment
	for range count / each {
		last = s.order(fmt.Sprint(each * lovelace / 1_000_000))
		pays := make([]cardanotest.Pay, each)
		for i := range pays {
			pays[i] = cardanotest.Pay{To: last.Address, Lovelace: lovelace}
		}
		s.Send(nil, pays...)
	}
	s.until("completed", func() bool { return s.payment(last.ID).Status == payment.Completed })
}

// landed are the transactions of ours that are final, of early merges and of others.
func (s *stall) landed() (early, other []outgoing.AttemptRow) {
	s.t.Helper()
	rows, err := s.store.Find(s.t.Context(), storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network("ADA"), Limit: 1000,
		Where: []storage.Cond{{Column: "fate", Op: storage.Eq, Value: outgoing.AttemptFinal}},
	})
	require.NoError(s.t, err)
	for _, r := range rows {
		if a := outgoing.Attempts.Value(r); outgoing.ParseID(a.Intent).Early() {
			early = append(early, a)
		} else {
			other = append(other, a)
		}
	}
	return early, other
}

func costOf(list []outgoing.AttemptRow) (sum ledger.Amount) {
	for _, a := range list {
		sum += a.MaxCost
	}
	return sum
}

// The fee of Cardano is the same from one vote to the next, so no time is cheaper than another: coins
// are merged when a payout needs it, and never before.
func TestFT04_CardanoMergesNothingEarly(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Ogmios", 20)
	s.crumbs(120, 3_000_000)
	s.hours(48)
	next, err := s.app.EarlyMerge(t.Context(), s.tenant, "ADA")
	require.NoError(t, err)
	require.Contains(t, next.Why, "cheap")
	early, _ := s.landed()
	require.Empty(t, early)
	w, err := s.withdraw("345", s.somebody("a"))
	require.NoError(t, err)
	s.mine(1)
	w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.ShownConsolidating, w.WaitingReason())
	w = s.withdrawn(w.ID)
	s.mine(20)
	require.EqualValues(t, w.Amount, s.Received(string(s.somebody("a"))))
	early, other := s.landed()
	require.Empty(t, early)
	t.Logf("%d transactions for %d", len(other), costOf(other))
	s.sound()
}

// A vote lowers the fee: for the days until that is the usual one, coins are merged.
func TestFT04_CardanoMergesWhileAVoteHasLoweredTheFee(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Blockfrost", 20)
	s.crumbs(120, 3_000_000)
	s.Set(func(f *cardanotest.Fault) { f.Params = map[string]int64{"minFeeA": 66, "minFeeB": 233_000} })
	s.hours(30)
	early, _ := s.landed()
	require.Empty(t, early)
	s.Set(func(f *cardanotest.Fault) { f.Params = nil })
	s.hours(30)
	early, _ = s.landed()
	require.NotEmpty(t, early)
	for _, a := range early {
		require.LessOrEqual(t, 20*a.MaxCost, sumOf(a))
	}
	s.sound()
}

func sumOf(a outgoing.AttemptRow) (sum ledger.Amount) {
	for _, c := range a.Coins {
		sum += c.Amount
	}
	return sum
}

// A host that wants payouts of ADA not to wait has coins merged at the usual fee. Coins with native
// tokens are among them, and such that none can spend. The tokens stay ours, and each output holds what
// it must.
func TestFT04_CardanoMergesAtTheUsualFeeWhereAHostWantsIt(t *testing.T) {
	t.Parallel()
	s := openStallWith(t, "Ogmios", outgoing.Merging{Below: 100, Portion: 3}, 20)
	hot, err := s.app.Hot(t.Context(), "ADA", s.tenant)
	require.NoError(t, err)
	tokens := map[string]uint64{}
	for i := range 5 {
		coin := cardanotest.Coin(fmt.Sprint("Fake", i))
		tokens[coin] = 1 << 40
		s.Send(nil, cardanotest.Pay{To: string(hot), Lovelace: 2_900_000, Tokens: map[string]uint64{coin: 1 << 40}})
		s.Send(nil, cardanotest.Pay{To: string(hot), Lovelace: 2_800_000, Script: true})
	}
	s.crumbs(120, 3_000_000)
	s.hours(60)
	s.mine(20)
	early, _ := s.landed()
	require.NotEmpty(t, early)
	for _, a := range early {
		require.LessOrEqual(t, len(a.Coins), 100)
		require.LessOrEqual(t, 20*a.MaxCost, sumOf(a), "a twentieth of what it moves")
	}
	t.Logf("%d early merges for %d", len(early), costOf(early))
	kept := map[string]uint64{}
	order, _, _, err := outgoing.Intents.One(t.Context(), s.store, storage.Network("ADA"), early[0].Intent)
	require.NoError(t, err)
	for _, to := range []chain.Address{hot, order.To} {
		for k, v := range s.Tokens(string(to)) {
			kept[k] = v
		}
	}
	require.Equal(t, tokens, kept)
	w, err := s.withdraw("345", s.somebody("a"))
	require.NoError(t, err)
	s.mine(2)
	w, err = s.app.Withdrawals.Get(t.Context(), s.tenant, w.ID)
	require.NoError(t, err)
	require.Contains(t, []withdrawal.Status{withdrawal.Processing, withdrawal.Completed}, w.Status, "it waits for %q", w.WaitingReason())
	w = s.withdrawn(w.ID)
	s.mine(20)
	require.EqualValues(t, w.Amount, s.Received(string(s.somebody("a"))))
	_, other := s.landed()
	require.Len(t, other, 1)
	t.Logf("then one transaction for %d", costOf(other))
	s.sound()
}

// A stranger sends coins to an address of ours that no transaction of ours can spend, as each holds a
// script. Payouts are made of the others.
func TestCardanoW06_StrangersScriptsStopNoPayout(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Ogmios", 2)
	for range 5 {
		s.earn("12")
	}
	hot, err := s.app.Hot(t.Context(), "ADA", s.tenant)
	require.NoError(t, err)
	for i := range 12 {
		s.Send(nil, cardanotest.Pay{To: string(hot), Lovelace: 60_000_000 + int64(i), Script: true})
	}
	s.mine(20)
	w, err := s.withdraw("45", s.somebody("a"))
	require.NoError(t, err)
	w = s.withdrawn(w.ID)
	require.EqualValues(t, w.Amount, s.Received(string(s.somebody("a"))))
	s.sound()
}

// A stranger sends many small coins with a native token of its own in each: one output cannot hold all of these.
// Payouts and merges are made of other coins, and of some of these.
func TestCardanoW06_StrangersTokensStopNoPayout(t *testing.T) {
	t.Parallel()
	s := openStall(t, "Blockfrost", 2)
	hot, err := s.app.Hot(t.Context(), "ADA", s.tenant)
	require.NoError(t, err)
	for i := range 90 {
		coin := cardanotest.Coin(fmt.Sprintf("%032d", i))
		s.Send(nil, cardanotest.Pay{To: string(hot), Lovelace: 1_500_000, Tokens: map[string]uint64{coin: 1<<63 - 1}})
	}
	s.crumbs(100, 1_400_000)
	w, err := s.withdraw("135", s.somebody("a"))
	require.NoError(t, err)
	w = s.withdrawn(w.ID)
	require.EqualValues(t, w.Amount, s.Received(string(s.somebody("a"))))
	s.sound()
}
