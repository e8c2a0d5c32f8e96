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
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run one seed of the simulation")
	simSeeds = flag.Uint64("sim.seeds", 12, "how many seeds of the simulation to run")
	simSteps = flag.Int("sim.steps", 120, "actions per seed")
)

// TestSimulatedWorld drives payments, withdrawals, transfers, reorgs, faults of
// nodes and receivers, and restarts by a seed, and proves the books after every
// action. A failing seed is replayed with -sim.seed.
func TestSimulatedWorld(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), *simSeeds
	if testing.Short() {
		last = min(last, 3)
	}
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			trace := newWorld(t, seed).run(*simSteps)
			if seed == first {
				require.Equal(t, trace, newWorld(t, seed).run(*simSteps), "the same seed must give the same run")
			}
		})
	}
}

// world is one seeded run. Everything that it does is drawn from rng.
type world struct {
	*host
	rng      *rand.Rand
	trace    []string
	payments []string
	paid     map[string]ledger.Amount // by withdrawal: what its address must hold in the end
	wallets  []string
	outs     []string
	loose    []string // customers' transactions that may be dropped
	tries    int
	faulty   bool
	level    map[chain.Network]int64 // of fees, as it was at first
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{host: newHost(t, seed, "ETH", "BTC"), rng: rand.New(rand.NewPCG(seed, 1)), paid: map[string]ledger.Amount{}, level: map[chain.Network]int64{}}
	fee, percent := dec("1"), dec("0.5")
	_, err := w.app.Wallets.UpdateTenant(t.Context(), w.tenant, wallet.Settings{TransactionFee: &fee, WithdrawalPercent: &percent})
	require.NoError(t, err)
	for _, n := range []chain.Network{"ETH", "BTC"} {
		hot, err := w.app.Hot(t.Context(), n, w.tenant)
		require.NoError(t, err)
		_, err = w.chains[n].Fund(hot, string(n), dec("5"))
		require.NoError(t, err)
	}
	w.mine(14)
	return w
}

func (w *world) run(steps int) []string {
	actions := []struct {
		weight int
		name   string
		do     func() string
	}{
		{6, "pay", w.pay},
		{3, "stray", w.stray},
		{5, "withdraw", w.withdraw},
		{2, "cancel", w.cancel},
		{2, "wallet", w.wallet},
		{3, "transfer", w.transfer},
		{20, "mine", w.grow},
		{2, "reorg", w.reorg},
		{2, "drop", w.drop},
		{2, "replace rate", w.rate},
		{3, "node fault", w.fault},
		{2, "receiver fault", w.receiver},
		{3, "restart", func() string { w.restart(); return "" }},
		{2, "advance", w.advance},
		{4, "die", w.die},
		{1, "lose answers", w.lose},
		{2, "fees", w.fees},
	}
	var deck []int
	for i, a := range actions {
		deck = append(deck, slices.Repeat([]int{i}, a.weight)...)
	}
	for i := range steps {
		a := actions[deck[w.rng.IntN(len(deck))]]
		detail := a.do()
		w.trace = append(w.trace, fmt.Sprintf("%d %s %s", i, a.name, detail))
		err := w.app.Step(w.t.Context())
		if w.store.dead {
			w.restart()
		} else if !w.unwell() {
			require.NoError(w.t, err, w.story())
		}
		w.prove()
	}
	w.calm()
	return w.trace
}

// story is what a person needs to see of a failing run.
func (w *world) story() string {
	return fmt.Sprintf("last actions: %q", w.trace[max(0, len(w.trace)-12):])
}

// prove holds after every action: the books, and the chains' own conservation.
func (w *world) prove() {
	if w.store.dead {
		w.restart()
	}
	reports, err := w.app.Verify(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range reports {
		require.Empty(w.t, r.Ledger.Findings, w.story())
		require.Empty(w.t, r.Holds, w.story())
		require.Empty(w.t, r.Unexplained, w.story())
	}
	for _, c := range w.chains {
		require.NoError(w.t, c.Audit(), w.story())
	}
}

// calm ends all faults, lets everything come to its end, and compares what the
// library promised with what the chains say.
func (w *world) calm() {
	for _, c := range w.chains {
		c.Front().Honest()
		c.ReviveAll() // old raw transactions come back to haunt us
	}
	w.faulty, w.inbox.fail = false, nil
	w.heal()
	for range 6 {
		w.clock.Advance(time.Hour)
		w.mine(25)
	}
	w.prove()
	w.conserved()
	for _, id := range w.payments {
		p := w.payment(id)
		require.Contains(w.t, []payment.Status{payment.Completed, payment.Expired, payment.Failed}, p.Status, w.story())
	}
	for id, amount := range w.paid {
		v, err := w.app.Withdrawals.Get(w.t.Context(), w.tenant, id)
		require.NoError(w.t, err)
		c, err := chain.MainnetRegistry().Currency(v.Currency)
		require.NoError(w.t, err)
		got, want := w.chains[c.Network].Balance(chain.Address(v.Address), v.Currency), c.Decimal(amount)
		switch v.Status {
		case withdrawal.Completed:
			require.True(w.t, got.Equal(want), "withdrawal %s paid %s of %s; %s", id, got, want, w.story())
		case withdrawal.Cancelled, withdrawal.Failed:
			require.True(w.t, got.IsZero(), "withdrawal %s is %s and paid %s; %s", id, v.Status, got, w.story())
		default:
			w.t.Fatalf("withdrawal %s is still %s (%s); %s", id, v.Status, v.Waiting, w.story())
		}
	}
}

func (w *world) currency() string {
	return []string{"ETH", "USDTERC20", "BTC"}[w.rng.IntN(3)]
}

func (w *world) chainOf(currency string) (*chain.Currency, chain.Network) {
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(w.t, err)
	return c, c.Network
}

// pay creates a payment and pays it: in full, in part, too much, twice, late.
func (w *world) pay() string {
	currency := w.currency()
	c, n := w.chainOf(currency)
	fixed, byUser := w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
	p, err := w.app.Payments.Create(w.t.Context(), w.tenant, payment.CreateInput{Pricing: payment.Pricing{
		Amount: fmt.Sprint(50 + w.rng.IntN(500)), Currency: currency, FixedRate: &fixed, FeeByUser: &byUser,
	}})
	if err != nil {
		require.True(w.t, w.unwell(), "%v", err)
		return "refused"
	}
	w.payments = append(w.payments, p.ID)
	part := []string{"1", "1", "1", "0.4", "1.5", "0.997", "0.6"}[w.rng.IntN(7)]
	amount := c.Decimal(p.Due).Mul(dec(part)).Truncate(int32(c.Scale))
	tx, err := w.chains[n].Pay(chain.Address(p.Address), currency, amount)
	require.NoError(w.t, err)
	w.loose = append(w.loose, tx)
	return fmt.Sprintf("%s %s of %s", currency, amount, c.Decimal(p.Due))
}

// stray sends the wrong thing to an address of ours.
func (w *world) stray() string {
	if len(w.payments) == 0 {
		return "nobody"
	}
	p := w.payment(w.payments[w.rng.IntN(len(w.payments))])
	currency := map[string]string{"ETH": "USDCERC20", "USDTERC20": "ETH", "BTC": "BTC"}[p.Currency]
	c, n := w.chainOf(currency)
	amount := dec("0.02").Mul(dec(fmt.Sprint(1 + w.rng.IntN(50)))).Truncate(int32(c.Scale))
	tx, err := w.chains[n].Pay(chain.Address(p.Address), currency, amount)
	require.NoError(w.t, err)
	w.loose = append(w.loose, tx)
	return currency + " " + amount.String()
}

func (w *world) withdraw() string {
	currency := w.currency()
	_, n := w.chainOf(currency)
	amount := dec(fmt.Sprint(20 + w.rng.IntN(100)))
	w.tries++ // a request whose answer was lost may be paid too: nobody else has its address
	to := w.chains[n].Customer(fmt.Sprintf("supplier %d", w.tries))
	v, err := w.app.Withdrawals.Create(w.t.Context(), w.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{
		PriceAmount: &amount, Currency: currency, Address: string(to), FinalAmount: w.rng.IntN(2) == 0,
	}}, storage.Once{})
	if short := (*withdrawal.InsufficientError)(nil); errors.As(err, &short) {
		return "short of " + currency
	}
	if err != nil {
		require.True(w.t, w.unwell(), "%v", err)
		return "refused"
	}
	w.outs, w.paid[v.ID] = append(w.outs, v.ID), v.Amount
	return currency
}

func (w *world) cancel() string {
	if len(w.outs) == 0 {
		return "nothing"
	}
	_, err := w.app.Withdrawals.Cancel(w.t.Context(), w.tenant, w.outs[w.rng.IntN(len(w.outs))])
	return fmt.Sprint(err == nil)
}

func (w *world) wallet() string {
	id := fmt.Sprintf("sub-%d", len(w.wallets))
	v, err := w.app.Wallets.Create(w.t.Context(), w.tenant, id, id, storage.Once{})
	if err != nil {
		require.True(w.t, w.unwell(), "%v", err)
		return "refused"
	}
	w.wallets = append(w.wallets, v.ID)
	return id
}

func (w *world) transfer() string {
	if len(w.wallets) == 0 {
		return "nobody"
	}
	way := wallet.ToSub
	if w.rng.IntN(2) == 0 {
		way = wallet.ToMaster
	}
	_, err := w.app.Wallets.CreateTransfer(w.t.Context(), w.tenant, wallet.TransferInput{
		Direction: way, WalletID: w.wallets[w.rng.IntN(len(w.wallets))], Currency: w.currency(), Amount: dec("0.001"),
	}, storage.Once{})
	return fmt.Sprint(way, err == nil)
}

func (w *world) grow() string {
	n := 1 + w.rng.IntN(4)
	for range n {
		w.clock.Advance(15 * time.Second)
		for _, name := range []chain.Network{"ETH", "BTC"} {
			w.chains[name].Mine(1)
		}
	}
	return fmt.Sprint(n)
}

// reorg is never as deep as a deposit's confirmations: what is deeper has tests
// of its own.
func (w *world) reorg() string {
	n := []chain.Network{"ETH", "BTC"}[w.rng.IntN(2)]
	depth := 1
	if n == "ETH" {
		depth += w.rng.IntN(8)
	}
	var drop []string
	if len(w.loose) > 0 && w.rng.IntN(2) == 0 {
		drop = append(drop, w.loose[len(w.loose)-1])
	}
	_, err := w.chains[n].Reorg(depth, drop...)
	return fmt.Sprint(n, depth, len(drop), err == nil)
}

func (w *world) drop() string {
	if len(w.loose) == 0 {
		return "nothing"
	}
	for _, c := range w.chains {
		c.Drop(w.loose[len(w.loose)-1])
	}
	return "last"
}

func (w *world) rate() string {
	p := dec(fmt.Sprint(1900 + w.rng.IntN(200)))
	w.rates.Set("ETH", "USD", p)
	return p.String()
}

func (w *world) fault() string {
	front := w.chains[[]chain.Network{"ETH", "BTC"}[w.rng.IntN(2)]].Front()
	w.faulty = true
	switch w.rng.IntN(6) {
	case 0:
		front.Lag(int64(1 + w.rng.IntN(5)))
		return "lag"
	case 1:
		front.FailRate(1 + w.rng.IntN(300))
		return "errors"
	case 2:
		front.LoseAnswers(1 + w.rng.IntN(3))
		return "lost answers"
	case 3:
		front.Partial(true)
		return "partial"
	case 4:
		front.Swallow(1 + w.rng.IntN(2))
		return "swallowed"
	default:
		for _, c := range w.chains {
			c.Front().Honest()
		}
		w.faulty = false
		return "none"
	}
}

func (w *world) receiver() string {
	if w.inbox.fail != nil {
		w.inbox.fail = nil
		return "well"
	}
	w.inbox.fail = func(d webhook.Delivery) bool { return len(d.Body)%2 == 0 }
	return "fails by half"
}

func (w *world) advance() string {
	d := time.Duration(1+w.rng.IntN(50)) * time.Minute
	w.clock.Advance(d)
	return d.String()
}
