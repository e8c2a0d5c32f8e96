package cryptopay_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// For TestPolicy_ManyPayoutsOverOneHotAddress.
var (
	payouts     = flag.Int("payouts", 1000, "payouts over one hot address")
	payoutsSeed = flag.Uint64("payouts.seed", 41, "of what happens meanwhile")
)

// TestPolicy_ManyPayoutsOverOneHotAddress: the node fails, loses, forgets and forks, fees rise, and
// processes start anew in the middle. Somebody approves whatever there is. Each payout is paid exactly
// once, or was refused by its rule or by a person, or waits for the people whom its rule asks for.
func TestPolicy_ManyPayoutsOverOneHotAddress(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(*payoutsSeed, 1))
	t.Logf("seed %d", *payoutsSeed)
	i := newInsiderOn(t, "USDTERC20", memory.New(), "", "")
	ctx, world := t.Context(), i.chains["ETH"]
	hot, err := i.app.Hot(ctx, "ETH", i.tenant)
	require.NoError(t, err)
	_, err = world.Fund(hot, "ETH", dec("200"))
	require.NoError(t, err)
	for range 2 {
		p, err := i.app.Payments.Create(ctx, i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "90000", Currency: "USDTERC20"}})
		require.NoError(t, err)
		_, err = world.Pay(chain.Address(p.Address), "USDTERC20", dec("90000"))
		require.NoError(t, err)
	}
	i.mine(40)
	i.ruled(
		policy.Rule{Name: "most", Of: policy.KindAmount, Over: dec("500"), Then: policy.Refuse},
		policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("100"), Needs: []withdrawal.Need{{Role: "finance", Count: 2}, {Count: 1}}},
	)

	// What becomes of each in the end.
	const (
		pays    = "paid"
		ruled   = "refused by its rule"
		refused = "refused by a person"
		waits   = "waits for people"
	)
	end, to := map[string]string{}, map[string]chain.Address{}
	var waiting []string // those that people decide about
	order := func(n int) {
		amount, want := "20", pays
		switch r.IntN(10) {
		case 0:
			amount, want = "600", ruled
		case 1:
			amount, want = "150", refused
		case 2:
			amount, want = "150", waits
		case 3, 4:
			amount = "150"
		}
		at := world.Customer(fmt.Sprint("payee ", n))
		var w withdrawal.Withdrawal
		err := chain.ErrNode
		for errors.Is(err, chain.ErrNode) { // he tries again
			w, err = i.app.Withdrawals.Create(ctx, i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec(amount)), FinalAmount: true, Currency: "USDTERC20", Address: string(at)}, By: "alice",
			})
		}
		require.NoError(t, err)
		end[w.ID], to[w.ID] = want, at
		if amount == "150" {
			waiting = append(waiting, w.ID)
		}
	}
	// decide lets people say what they think of one: an error means that it has ended.
	decide := func(id string) {
		say := func(by string, roles ...string) {
			_, _ = i.app.Withdrawals.Approve(ctx, i.tenant, id, by, "", roles...)
		}
		say("rogue")
		say("ROGUE ")
		say("alice", "finance")
		say("rogue", "sales")
		switch end[id] {
		case refused:
			say("bob", "finance")
			_, err := i.app.Withdrawals.Refuse(ctx, i.tenant, id, "carol", "who is that?")
			require.NoError(t, err)
			say("carol", "finance")
		case waits:
			say("bob", "finance")
			say("bob", "finance", "cfo")
		case pays:
			say("bob", "finance")
			say("carol", "finance")
		}
	}
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	level := world.FeeLevel()
	for n, decided := 0, 0; n < *payouts || decided < len(waiting); {
		for range min(r.IntN(8), *payouts-n) {
			order(n)
			n++
		}
		for range min(r.IntN(4), len(waiting)-decided) {
			decide(waiting[decided])
			decided++
		}
		switch r.IntN(12) {
		case 0:
			world.Front().FailRate(300)
		case 1:
			world.Front().LoseAnswers(3)
		case 2:
			world.Front().Swallow(3)
		case 3:
			_, err := world.Reorg(1+r.IntN(3), some(r, world.Transactions(true))...)
			require.NoError(t, err)
		case 4:
			world.SetFeeLevel(level * int64(1+r.IntN(6)))
		case 5:
			i.restart()
		case 6:
			world.Drop(world.Mempool()...)
		default:
			world.Front().FailRate(0)
		}
		i.work(1 + r.IntN(3))
	}
	world.Front().FailRate(0)
	world.SetFeeLevel(level)
	for range 300 {
		i.work(1)
	}
	i.clock.Advance(time.Hour)
	i.work(60)

	counts := map[string]int{}
	for id, want := range end {
		w, got := i.withdrawalOf(id), world.Balance(to[id], "USDTERC20").String()
		counts[want]++
		switch want {
		case pays:
			require.Equal(t, []any{withdrawal.Completed, usdt.Decimal(w.Amount).String()}, []any{w.Status, got}, "%s %s", w.WaitingReason(), w.Reason)
		case ruled:
			require.Equal(t, []any{withdrawal.Failed, "most", "0"}, []any{w.Status, w.Rule(), got})
		case refused:
			require.Equal(t, []any{withdrawal.Failed, "0"}, []any{w.Status, got})
		case waits:
			require.Equal(t, []any{withdrawal.Pending, "approval", "large", "0"}, []any{w.Status, w.WaitingReason(), w.Rule(), got})
		}
	}
	require.Len(t, counts, 4, "all of them happen")
	require.NoError(t, world.Audit())
	i.sound()
	i.nothingFound()
}

// some are about a tenth of all.
func some(r *rand.Rand, all []string) []string {
	return slices.DeleteFunc(all, func(string) bool { return r.IntN(10) > 0 })
}
