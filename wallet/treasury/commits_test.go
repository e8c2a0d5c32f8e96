package treasury_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// story is a long story of a shop, whose Changes meet faults.
type story struct {
	*world
	f        *failing.Commits
	main     string // currency
	payments []payment.Payment
	payouts  map[string]chain.Address
	sub      string // a sub-account
	moved    []string
	about    string
	last     int // number of the last Change that meets a fault
	quiet    int // blocks since that
}

func newStory(t *testing.T, currency string, at map[int]failing.Fault) *story {
	w := newWorldAs(t, networkOf(currency), func(w *world) { w.outgoing.MaxInputs = 2 })
	s := &story{world: w, main: currency, payouts: map[string]chain.Address{}, about: fmt.Sprint(currency, " ", at), last: slices.Max(slices.Collect(maps.Keys(at)))}
	w.fund("1")
	name, err := w.app.Wallets.Create(t.Context(), w.tenant, wallet.CreateInput{Name: "sub", ExternalID: "sub"})
	require.NoError(t, err)
	s.sub = name.ID
	_, _, err = w.app.Webhooks.Setup(t.Context(), w.tenant, "https://shop.example.com/hook", webhook.By{})
	require.NoError(t, err)
	truth := w.store.Store
	s.f = &failing.Commits{Store: truth, At: at, Counts: func(c *storage.Change) bool {
		return !slices.ContainsFunc(c.Put, func(r storage.Row) bool { return r.Table == incoming.Cursors.Table })
	}}
	other := *w
	other.restart()
	w.store.Store = s.f
	w.restart()
	s.f.Meanwhile = func() { // leases end, and another process goes on
		w.clock.Advance(2 * time.Minute)
		s.ours(other.app.Step(t.Context()))
	}
	return s
}

func (s *story) ours(err error) {
	s.t.Helper()
	if err != nil {
		require.True(s.t, failing.Ours(err), "%s: %v", s.about, err)
	}
}

// again does something until it is known to be done.
func again[T any](s *story, f func() (T, error)) T {
	s.t.Helper()
	for range 10 {
		v, err := f()
		if err == nil {
			return v
		}
		s.ours(err)
		s.clock.Advance(time.Second)
	}
	require.Fail(s.t, "it never ends", s.about)
	panic("")
}

// blocks grows the chain. Once no fault is to come, the library acts less often.
func (s *story) blocks(n int) {
	for i := range n {
		s.clock.Advance(15 * time.Second)
		s.chain.Mine(1)
		if s.f.Seen >= s.last {
			if s.quiet++; s.quiet > 8 && !seldom(i) && i < n-1 {
				continue
			}
		}
		s.ours(s.app.Step(s.t.Context()))
	}
}

func (s *story) order(currency, usd string) {
	if s.n == "BTC" {
		usd += "0"
	}
	p := again(s, func() (payment.Payment, error) {
		return s.app.Payments.Create(s.t.Context(), s.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: usd, Currency: currency}, Key: fmt.Sprint("payment ", len(s.payments)),
		})
	})
	s.payments = append(s.payments, p)
	s.send(p, currency, s.currency(currency).Decimal(p.Due))
}

func (s *story) payout(currency, usd string) string {
	to := s.chain.Customer(fmt.Sprint("supplier ", len(s.payouts)))
	key := fmt.Sprint("payout ", len(s.payouts))
	a := dec(usd)
	if s.n == "BTC" {
		a = a.Mul(dec("10"))
	}
	v := again(s, func() (withdrawal.Withdrawal, error) {
		return s.app.Withdrawals.Create(s.t.Context(), s.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: &a, Currency: currency, Address: string(to)}, Key: key,
		})
	})
	s.payouts[v.ID] = to
	return v.ID
}

func (s *story) transfer(d wallet.Direction, amount string) {
	key := fmt.Sprint("transfer ", len(s.moved))
	v := again(s, func() (wallet.Transfer, error) {
		return s.app.Wallets.CreateTransfer(s.t.Context(), s.tenant, wallet.TransferInput{Direction: d, WalletID: s.sub, Currency: s.main, Amount: dec(amount), Key: key})
	})
	s.moved = append(s.moved, v.ID)
}

// play tells the story: payments that are forwarded, payouts at the same moment, one that is
// cancelled, fees that rise, a fork, and transfers between wallets.
func (s *story) play() {
	gas := string(s.n)
	level := s.chain.FeeLevel()
	s.order(s.main, "300")
	s.order(s.main, "150")
	s.order(gas, "200")
	s.blocks(1)
	late := s.chain.Transfers(chain.Address(s.payments[1].Address))[0].Tx
	_, _ = s.chain.Reorg(1, late)
	s.blocks(4)
	s.ours(s.chain.Resend(late))
	s.blocks(30)
	for _, usd := range []string{"40", "50", "60"} {
		s.payout(s.main, usd)
	}
	cancelled := s.payout(s.main, "30")
	again(s, func() (struct{}, error) {
		_, err := s.app.Withdrawals.Cancel(s.t.Context(), s.tenant, cancelled)
		if late := (*withdrawal.StateError)(nil); errors.As(err, &late) {
			err = nil // another process has paid it meanwhile
		}
		return struct{}{}, err
	})
	s.transfer(wallet.ToSub, "0.0001")
	s.ours(s.app.Step(s.t.Context()))
	s.chain.SetFeeLevel(30 * level)
	s.payout(gas, "70")
	s.order(s.main, "100")
	for range 30 {
		s.clock.Advance(time.Minute)
		s.ours(s.app.Step(s.t.Context()))
	}
	s.blocks(1)
	s.chain.SetFeeLevel(level)
	_, _ = s.chain.Reorg(1, s.chain.Transactions(true)...) // nothing that is final
	s.blocks(1)
	s.chain.ReviveAll()
	s.transfer(wallet.ToMaster, "0.00005")
	s.blocks(20)
	s.payout(s.main, "350") // the coins are merged for it
	s.blocks(30)
	for range 40 {
		if s.over() {
			break
		}
		s.clock.Advance(5 * time.Minute)
		s.blocks(3)
	}
	s.clock.Advance(3 * time.Hour)
	s.blocks(30)
}

func (s *story) over() bool {
	for id := range s.payouts {
		v, err := s.app.Withdrawals.Get(s.t.Context(), s.tenant, id)
		require.NoError(s.t, err)
		if v.Status != withdrawal.Completed && v.Status != withdrawal.Cancelled {
			return false
		}
	}
	for _, p := range s.payments {
		if s.payment(p.ID).Status != payment.Completed {
			return false
		}
	}
	return true
}

// check demands that each payment was credited once and each payout paid once, that the
// books say what the chain does, and that nothing is set aside, waits, or is untold.
func (s *story) check() {
	met := s.about + "\n" + strings.Join(s.f.Met, "\n")
	for _, p := range s.payments {
		p = s.payment(p.ID)
		require.Equal(s.t, payment.Completed, p.Status, met)
	}
	ends := map[string]int{}
	for _, r := range s.events() {
		v := webhook.Events.Value(r)
		require.Equal(s.t, webhook.StatusDelivered, v.Status, "%s %s %s", v.Type, v.Object, met)
		if strings.Contains(v.Body, `"status":"completed"`) || strings.Contains(v.Body, `"status":"cancelled"`) {
			ends[v.Object]++
		}
	}
	for id, to := range s.payouts {
		v, err := s.app.Withdrawals.Get(s.t.Context(), s.tenant, id)
		require.NoError(s.t, err)
		got := s.chain.Transfers(to)
		require.Equal(s.t, 1, ends[id], "events of the end, %s", met)
		if v.Status == withdrawal.Cancelled {
			require.Empty(s.t, got, met)
			continue
		}
		require.Equal(s.t, withdrawal.Completed, v.Status, "%s %s", v.Waiting, met)
		require.Len(s.t, got, 1, met)
		require.Equal(s.t, s.currency(v.Currency).Decimal(v.Amount).String(), got[0].Amount.String(), met)
	}
	for _, p := range s.payments {
		require.Equal(s.t, 1, ends[p.ID], "events of the end, %s", met)
	}
	for _, id := range s.moved {
		v, err := s.app.Wallets.Transfer(s.t.Context(), s.tenant, id)
		require.NoError(s.t, err)
		require.Equal(s.t, wallet.TransferCompleted, v.Status, met)
	}
	require.Equal(s.t, "0.00005", s.posted(ledger.Wallet(s.sub), s.main).String(), met)
	for _, w := range s.sweeps() {
		require.Contains(s.t, []treasury.SweepState{treasury.SweepDone, treasury.SweepDeferred}, w.State, "%s %s", w.Reason, met)
	}
	s.conserved(slices.Compact([]string{string(s.n), s.main})...)
	s.released()
}

func (s *story) events() []storage.Row {
	rows, err := s.store.Find(s.t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant(s.tenant), Limit: 10_000})
	require.NoError(s.t, err)
	return rows
}

// TestC05_CommitComesBackOtherwise: some Change of an App, one of forty, is not done, or is done and
// not known to be: each payment is credited once, each payout is paid once, and no gas stays
// set aside.
func TestC05_CommitComesBackOtherwise(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, currency := range []string{"USDTERC20", "BTC"} {
		for _, fault := range failing.Faults {
			t.Run(currency+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := 1 + len(fault); ; n += 40 * stride() {
					s := newStory(t, currency, map[int]failing.Fault{n: fault})
					s.play()
					s.check()
					if s.f.Seen < n {
						require.Greater(t, n, 100)
						return
					}
				}
			})
		}
	}
}

// TestC05_TwoCommitsComeBackOtherwise is the same with two Changes of one story, at random.
func TestC05_TwoCommitsComeBackOtherwise(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, currency := range []string{"USDTERC20", "BTC"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(5, 1))
			for range 5 {
				first := 1 + r.IntN(300)
				at := map[int]failing.Fault{first: failing.Faults[r.IntN(len(failing.Faults))]}
				at[first+1+r.IntN(12)] = failing.Faults[r.IntN(len(failing.Faults))]
				s := newStory(t, currency, at)
				s.play()
				s.check()
			}
		})
	}
}
