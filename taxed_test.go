package cryptopay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// taxes has the issuer of USDT take a share of each transfer from now on, in 10^-4.
func (h *host) taxes(basisPoints int64) {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(usdt)
	require.NoError(h.t, err)
	h.chains["ETH"].SetBehaviour(c.Contract, sim.Behaviour{FeeBasisPoints: basisPoints})
}

// arrives has a customer pay 100 USDT while the issuer takes no fee.
func (h *host) arrives() payment.Payment {
	h.t.Helper()
	h.taxes(0)
	p := h.create("100", usdt)
	h.pay(p, usdt, dec("100"))
	h.chains["ETH"].Mine(1)
	return p
}

// agree requires that the books of USDT are what the chain holds at the addresses of ours.
func (h *host) agree(of ...payment.Payment) {
	h.t.Helper()
	hot, err := h.app.Hot(h.t.Context(), "ETH", h.tenant)
	require.NoError(h.t, err)
	there := h.chains["ETH"].Balance(hot, usdt)
	for _, p := range of {
		there = there.Add(h.chains["ETH"].Balance(chain.Address(p.Address), usdt))
	}
	books := decimal.New(-int64(h.posted(ledger.Chain("ETH"), usdt)), -6)
	require.Equal(h.t, there.String(), books.String())
}

// losses are the house's entries in USDT for what moves of its own have lost, and by that were taken back.
func (h *host) losses() (out []string) {
	h.t.Helper()
	entries, err := h.store.Entries(h.t.Context(), storage.Tenant(h.tenant), ledger.FeesNetwork, usdt, 0, 1000)
	require.NoError(h.t, err)
	for _, e := range entries {
		what, _, _ := strings.Cut(e.Tx, "/ETH/")
		if !strings.HasSuffix(what, "less") { // a quoted fee
			continue
		}
		out = append([]string{fmt.Sprintf("%s %d", what, e.Delta)}, out...)
	}
	return out
}

// covers has the operator bring USDT of his own.
func (h *host) covers(amount string) {
	h.t.Helper()
	hot, err := h.app.Hot(h.t.Context(), "ETH", h.tenant)
	require.NoError(h.t, err)
	_, err = h.chains["ETH"].Fund(hot, usdt, dec(amount))
	require.NoError(h.t, err)
}

// distrusted lists the currencies that the library has halted, with the reasons.
func (h *host) distrusted() (out []string) {
	h.t.Helper()
	halts, err := h.app.Operate.Halts(h.t.Context())
	require.NoError(h.t, err)
	for _, x := range halts {
		require.Equal(h.t, []string{cryptopay.Library, ""}, []string{x.By, x.Tenant})
		out = append(out, x.Currency+" "+x.Reason)
	}
	return out
}

var takesAFee = []string{usdt + " delivered_less"}

// TestFM03_TaxedSweepIsALossAndHaltsTheCurrency: the issuer's fee begins between a deposit and its sweep. The
// books are what the chain holds, the house bears the fee, the host is told, and payouts of the token wait,
// those of other merchants too. Other currencies are paid out.
func TestFM03_TaxedSweepIsALossAndHaltsTheCurrency(t *testing.T) {
	t.Parallel()
	h, l := listening(t, memory.New(), 811)
	var notices []treasury.Notice
	consumers := h.configure
	h.configure = func(c *cryptopay.Config) {
		consumers(c)
		c.Treasury.Notify = func(_ context.Context, n treasury.Notice) { notices = append(notices, n) }
	}
	h.restart()
	h.float("ETH", "1")
	eth := h.create("300", "ETH")
	h.pay(eth, "ETH", eth.DueCoins())
	p := h.arrives()
	h.taxes(100)
	h.mine(80)
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	require.Equal(t, ledger.Amount(100_000_000), h.credited(usdt), "what is owed stays")
	h.agree(p)
	require.Equal(t, []string{"less -1000000"}, h.losses())
	require.Equal(t, takesAFee, h.distrusted())
	require.Equal(t, []incoming.HaltChanged{{Network: "ETH", Currency: usdt, Halted: true, Reason: "delivered_less"}}, told[incoming.HaltChanged](l, ether), "once")
	require.NotEmpty(t, notices)
	for _, n := range notices {
		require.Equal(t, []any{"delivered_less", h.tenant, chain.Network("ETH"), usdt}, []any{n.Kind, n.Tenant, n.Network, n.Currency})
		require.Contains(t, n.Detail, "99")
	}

	other := "another shop"
	tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &other}})
	require.NoError(t, err)
	h.agreeHalted(tenant.ID)
	waits, goes := h.payout(h.tenant, usdt, "10"), h.payout(h.tenant, "ETH", "0.01")
	h.mine(60)
	require.Equal(t, []string{"pending halted", "completed"}, []string{h.status(h.tenant, waits), h.status(h.tenant, goes)})
	h.days(2)
	require.Empty(t, h.differences("ETH"))
	h.agree(p)

	h.taxes(0) // the issuer stops, and an operator has looked
	h.lift(usdt)
	h.mine(60)
	require.Equal(t, "pending halted", h.status(h.tenant, waits), "100 are owed, and 99 are there")
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, waits)
	require.NoError(t, err)
	require.Contains(t, w.Reason, "equity")
	h.covers("1")
	h.mine(60)
	require.Equal(t, "completed", h.status(h.tenant, waits))
	h.agree(p)
	h.sound()
	q := h.arrives()
	h.mine(80)
	require.Equal(t, []string{"less -1000000"}, h.losses(), "a whole sweep loses nothing")
	require.Empty(t, h.distrusted())
	h.agree(p, q)
	h.sound()
}

// agreeHalted requires that payouts of USDT are halted for a merchant who has none.
func (h *host) agreeHalted(tenant string) {
	h.t.Helper()
	p, err := h.app.Payments.Create(h.t.Context(), tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "50", Currency: usdt}})
	require.NoError(h.t, err)
	h.taxes(0)
	_, err = h.chains["ETH"].Pay(chain.Address(p.Address), usdt, dec("50"))
	require.NoError(h.t, err)
	h.mine(60)
	id := h.payout(tenant, usdt, "10")
	h.mine(40)
	require.Equal(h.t, "pending halted", h.status(tenant, id))
}

// TestFM03_LiftedHaltStaysLiftedUntilTheNextFee: an operator lifts while the sweep that lost is not final yet. It
// halts nothing again when it becomes final, and the next one does.
func TestFM03_LiftedHaltStaysLiftedUntilTheNextFee(t *testing.T) {
	t.Parallel()
	h := newHost(t, 812, "ETH")
	h.float("ETH", "1")
	h.covers("10")
	p := h.arrives()
	h.taxes(100)
	for range 60 {
		h.mine(1)
		if len(h.distrusted()) > 0 {
			break
		}
	}
	require.Equal(t, takesAFee, h.distrusted())
	require.Empty(t, h.losses(), "a fork may still undo it")
	h.lift(usdt)
	h.mine(60)
	require.Equal(t, []string{"less -1000000"}, h.losses())
	require.Empty(t, h.distrusted())
	q := h.arrives()
	h.taxes(100)
	h.mine(80)
	require.Equal(t, []string{"less -1000000", "less -1000000"}, h.losses())
	require.Equal(t, takesAFee, h.distrusted())
	h.agree(p, q)
	h.sound()
}

// TestFM03_TwoTaxedSweepsOfOneBlock: each is a loss of its own, and the currency is halted once.
func TestFM03_TwoTaxedSweepsOfOneBlock(t *testing.T) {
	t.Parallel()
	h, l := listening(t, memory.New(), 813)
	h.float("ETH", "1")
	h.covers("10")
	var of []payment.Payment
	for range 2 {
		p := h.create("100", usdt)
		h.pay(p, usdt, dec("100"))
		of = append(of, p)
	}
	h.chains["ETH"].Mine(1)
	h.taxes(100)
	h.mine(90)
	blocks := map[int64]int{}
	for _, p := range of {
		for _, x := range h.chains["ETH"].Transfers(chain.Address("")) {
			if string(x.From) == p.Address {
				blocks[x.Block.Height]++
			}
		}
	}
	require.Len(t, blocks, 1, "both are in one block")
	require.Equal(t, []string{"less -1000000", "less -1000000"}, h.losses())
	require.Equal(t, takesAFee, h.distrusted())
	require.Len(t, told[incoming.HaltChanged](l, ether), 1)
	h.agree(of...)
	h.sound()
}

// swept is the transaction that moved a payment's coins to the hot address, and how deep it is.
func (h *host) swept(p payment.Payment) (tx string, depth int) {
	h.t.Helper()
	for _, x := range h.chains["ETH"].Transfers("") {
		if string(x.From) == p.Address && x.Currency == usdt {
			tx, depth = x.Tx, int(h.chains["ETH"].Height()-x.Block.Height+1)
		}
	}
	require.NotEmpty(h.t, tx)
	return tx, depth
}

// TestFM03_ReorgTakesTheLossOfASweepBack: a fork takes a settled sweep that lost a fee away. Where the issuer has
// stopped by the time that it lands again it has lost nothing, where he takes more it has lost that, and so it is
// where the fork mines it again at once.
func TestFM03_ReorgTakesTheLossOfASweepBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fee    int64
		stays  bool // it is in a block of the other branch
		losses []string
	}{
		"no fee by then":      {0, false, []string{"less -1000000", "undone/less 1000000"}},
		"the same fee":        {100, false, []string{"less -1000000", "undone/less 1000000", "less -1000000"}},
		"a greater fee":       {200, false, []string{"less -1000000", "undone/less 1000000", "less -2000000"}},
		"no fee at once":      {0, true, []string{"less -1000000", "undone/less 1000000"}},
		"a greater at once":   {200, true, []string{"less -1000000", "undone/less 1000000", "less -2000000"}},
		"the same fee, again": {100, true, []string{"less -1000000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 814, "ETH")
			h.float("ETH", "1")
			h.covers("10")
			p := h.arrives()
			h.taxes(100)
			h.mine(80)
			require.Equal(t, []string{"less -1000000"}, h.losses())
			tx, depth := h.swept(p)
			var gone []string
			if !c.stays {
				gone = append(gone, tx)
			}
			h.taxes(c.fee)
			height := h.chains["ETH"].Height() - int64(depth)
			_, err := h.chains["ETH"].Reorg(depth, gone...)
			require.NoError(t, err)
			for range 4 {
				h.mineHalted()
			}
			_, err = h.app.Operate.ResumeNetwork(t.Context(), "ETH", height, because("the fork was looked at"))
			require.NoError(t, err)
			for range 120 {
				h.mineHalted()
				h.clock.Advance(5 * time.Minute)
			}
			h.mine(40)
			require.True(t, h.chains["ETH"].Balance(chain.Address(p.Address), usdt).IsZero())
			require.Equal(t, c.losses, h.losses())
			h.agree(p)
			h.sound()
		})
	}
}

func postsALoss(c *storage.Change) bool {
	return slices.ContainsFunc(c.Post, func(x ledger.Tx) bool { return strings.Contains(x.ID, "less/") })
}

// TestFM03_TaxedSweepCrashAtEachStep: wherever a commit fails while a sweep that lost a fee lands, the loss is booked once,
// and the currency is halted.
func TestFM03_TaxedSweepCrashAtEachStep(t *testing.T) {
	t.Parallel()
	steps := 0
	for failAt := 0; failAt <= 60; failAt++ {
		fault := failing.Undone
		if failAt%2 == 1 {
			fault = failing.Unheard
		}
		run := func(t *testing.T) {
			f := &failing.Commits{Store: memory.New()}
			h := newHostOn(t, f, 815, "ETH")
			h.float("ETH", "1")
			h.covers("10")
			p := h.arrives()
			h.taxes(100)
			loses := func(c *storage.Change) bool {
				if postsALoss(c) {
					return true
				}
				for _, r := range c.Put {
					switch {
					case r.Table == incoming.AssetHalts.Table:
						return true
					case r.Table == outgoing.Outcomes.Table && outgoing.Outcomes.Value(r).Reason == outgoing.ReasonDeliveredLess:
						return true
					}
				}
				return false
			}
			f.Counts, f.Seen = loses, 0
			if failAt > 0 {
				f.At = map[int]failing.Fault{(failAt + 1) / 2: fault}
			}
			ctx := context.WithoutCancel(t.Context())
			for range 90 {
				h.clock.Advance(15 * time.Second)
				h.chains["ETH"].Mine(1)
				if h.app.Step(ctx) != nil {
					h.restart()
				}
			}
			if failAt == 0 {
				steps = f.Seen
			}
			require.Len(t, f.Met, len(f.At))
			f.At = nil
			h.restart()
			h.clock.Advance(2 * time.Minute)
			h.mine(20)
			require.Equal(t, []string{"less -1000000"}, h.losses())
			require.Equal(t, takesAFee, h.distrusted())
			h.agree(p)
			h.sound()
		}
		if failAt == 0 {
			run(t)
			require.Greater(t, steps, 3)
			continue
		}
		if (failAt+1)/2 > steps {
			break
		}
		t.Run(fmt.Sprintf("%d/%s", (failAt+1)/2, fault), func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

// TestFN07_PayoutThatBringsLessHaltsTheCurrencyForAll: the fee is the token's, so that every merchant's payouts would
// bring less. What an operator decides about the one that did ends its wait, and a Lift that of the others.
func TestFN07_PayoutThatBringsLessHaltsTheCurrencyForAll(t *testing.T) {
	t.Parallel()
	h := rich(t, 816)
	shop := h.tenant
	h.newTenant()
	h.float("ETH", "1")
	p := h.create("100", usdt)
	h.pay(p, usdt, dec("100"))
	h.mine(60)
	h.taxes(100)
	first := h.payout(shop, usdt, "20")
	h.mine(60)
	require.Equal(t, "processing delivered_less", h.status(shop, first))
	require.Equal(t, takesAFee, h.distrusted())
	second := h.payout(h.tenant, usdt, "20")
	h.mine(40)
	require.Equal(t, "pending halted", h.status(h.tenant, second))
	_, err := h.app.Withdrawals.TakeDelivered(t.Context(), shop, first, "ann", "it is little")
	require.NoError(t, err)
	h.taxes(0)
	h.mine(40)
	require.Equal(t, []string{"completed", "pending halted"}, []string{h.status(shop, first), h.status(h.tenant, second)})
	h.lift(usdt)
	h.mine(60)
	require.Equal(t, "completed", h.status(h.tenant, second))
	require.Empty(t, h.losses(), "the recipient's, not the house's")
	h.sound()
}

// TestFM03_EditedOutcomeBooksNoOtherLoss: somebody edits what a taxed sweep brought, or that it brought less, before
// that is booked. The house books nothing by that, and what is true once it stands there again.
func TestFM03_EditedOutcomeBooksNoOtherLoss(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(o *outgoing.Outcome){
		"a greater loss": func(o *outgoing.Outcome) { o.Amount -= 50_000_000 },
		"a smaller one":  func(o *outgoing.Outcome) { o.Amount += 500_000 },
		"none":           func(o *outgoing.Outcome) { o.Amount, o.Reason = 100_000_000, "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing.Commits{Store: memory.New()}
			h := newHostOn(t, f, 817, "ETH")
			h.float("ETH", "1")
			h.covers("10")
			p := h.arrives()
			h.taxes(100)
			f.Counts, f.Seen = postsALoss, 0
			f.At = map[int]failing.Fault{1: failing.Undone}
			for range 120 {
				h.clock.Advance(15 * time.Second)
				h.chains["ETH"].Mine(1)
				if _ = h.app.Step(t.Context()); len(f.Met) > 0 {
					break
				}
			}
			require.Len(t, f.Met, 1)
			f.At = nil
			rows, err := h.store.Find(t.Context(), storage.Query{Table: outgoing.Outcomes.Table, Partition: ether, Limit: 100})
			require.NoError(t, err)
			put := func(row storage.Row, as outgoing.Outcome) {
				_, at, _, err := outgoing.Outcomes.One(t.Context(), h.store, ether, row.ID)
				require.NoError(t, err)
				require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
					ID: fmt.Sprint("thief/", at.Version), Partition: ether, Put: []storage.Row{outgoing.Outcomes.Row(row.ID, at.Version, h.clock.Now(), as)},
				}))
			}
			for _, r := range rows {
				if was := outgoing.Outcomes.Value(r); was.Purpose == chain.ForSweep {
					edited := was
					edit(&edited)
					put(r, edited)
					h.mine(20)
					require.Empty(t, h.losses())
					put(r, was)
				}
			}
			h.clock.Advance(2 * time.Minute)
			h.mine(20)
			require.Equal(t, []string{"less -1000000"}, h.losses())
			h.agree(p)
			h.sound()
		})
	}
}
