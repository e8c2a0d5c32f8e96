package cryptopaytest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// TB is what a Host needs of a test. *testing.T and *testing.B are one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
	Output() io.Writer // of what the App logs
}

// Options refine a Host. The zero value is that of New.
type Options struct {
	// Store is where everything is kept. Its schema is there already. Defaults to memory.New().
	Store storage.Store
	// Networks are simulated, by code. Defaults to ETH and BTC.
	Networks []chain.Network
	// Configure edits the Config each time that the App is made: consumers, workers, a
	// policy, a Notifier of the host's own, which gets what Host.Webhooks lists. Defaults to
	// nothing.
	Configure func(*cryptopay.Config)
	// Tables are the host's own that the store opens. Defaults to none.
	Tables []*storage.Table
	// Start is where the clock stands. Defaults to a moment of January 2026.
	Start time.Time
	// Seed is what chains and ids follow from. Defaults to 0.
	Seed uint64
}

// Host is an App on simulated chains with a merchant and a customer.
type Host struct {
	*Tenant // the first merchant

	App      *cryptopay.App
	Clock    *cryptopay.ManualClock
	Store    storage.Store
	Rates    *rates.Fixed
	Chains   map[chain.Network]*sim.Chain
	Customer Customer

	t      TB
	o      Options
	random *rand.ChaCha8 //nolint:forbidigo // of Options.Seed
	heard  *heard
}

// New is Open without Options.
func New(t TB) *Host {
	t.Helper()
	return Open(t, Options{})
}

// Open makes an App and a merchant, whose hot addresses have coins for network fees.
func Open(t TB, o Options) *Host {
	t.Helper()
	if o.Store == nil {
		o.Store = memory.New()
	}
	if len(o.Networks) == 0 {
		o.Networks = []chain.Network{"ETH", "BTC"}
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	h := &Host{
		t: t, o: o, Store: o.Store, Clock: cryptopay.NewManualClock(o.Start), Chains: map[chain.Network]*sim.Chain{},
		random: rand.NewChaCha8([32]byte{byte(o.Seed), byte(o.Seed >> 8)}), heard: &heard{}, //nolint:forbidigo // as above
	}
	h.Rates, h.Customer = Prices(h.Clock.Now), Customer{h}
	for _, n := range o.Networks {
		c, err := sim.New(sim.Options{Network: n, Seed: o.Seed, Now: h.Clock.Now, Finality: 20})
		h.must(err)
		h.Chains[n] = c
	}
	h.Restart()
	h.Tenant = h.NewTenant("My shop")
	return h
}

// Restart makes the App anew on the same store and chains: what a process kept in memory
// is gone.
func (h *Host) Restart() {
	h.t.Helper()
	cfg, err := Parts{
		Store: h.Store, Clock: h.Clock, Chains: h.Chains, App: func() *cryptopay.App { return h.App }, Mandates: cryptopay.MandateKeys(Key()),
	}.Config()
	h.must(err)
	cfg.Rates, cfg.Random, cfg.Log = h.Rates, h.random, slog.New(slog.NewTextHandler(h.t.Output(), nil))
	if h.o.Configure != nil {
		h.o.Configure(&cfg)
	}
	h.heard.listen(&cfg)
	h.App, err = cryptopay.Open(h.t.Context(), cfg, append(keys.Tables(), h.o.Tables...)...)
	h.must(err)
}

// NewTenant opens another merchant, whose hot addresses have coins for network fees.
func (h *Host) NewTenant(name string) *Tenant {
	h.t.Helper()
	v, err := h.App.Wallets.CreateTenant(h.t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	h.must(err)
	t := &Tenant{ID: v.ID, h: h}
	for _, n := range h.o.Networks {
		hot, err := h.App.Hot(h.t.Context(), n, t.ID)
		h.must(err)
		gas, err := chain.MainnetRegistry().Gas(n)
		h.must(err)
		_, err = h.Chains[n].Fund(hot, gas.Code, decimal.New(1, 0))
		h.must(err)
	}
	h.Settle()
	return t
}

// Step does all that is due, without a block or time in between.
func (h *Host) Step() {
	h.t.Helper()
	h.must(h.App.Step(h.t.Context()))
}

// Mine grows every chain by n blocks, 12 seconds each, with time for the App in between.
func (h *Host) Mine(n int) {
	h.t.Helper()
	for range n {
		h.block(12*time.Second, func(c *sim.Chain) { c.Mine(1) })
	}
}

func (h *Host) block(after time.Duration, mine func(*sim.Chain)) {
	h.t.Helper()
	h.Clock.Advance(after)
	for _, n := range h.o.Networks {
		mine(h.Chains[n])
	}
	h.Step()
}

// RaiseFees makes the fees of a currency's network ten times what they are: blocks take only
// what pays that much. What was sent before waits, and is replaced when the clock has advanced by
// 15 minutes.
func (h *Host) RaiseFees(currency string) {
	h.t.Helper()
	world := h.world(currency)
	world.SetFeeLevel(10 * world.FeeLevel())
}

// Settle mines and steps until nothing is on its way any more, or nothing has moved for a
// while: what still waits then waits for somebody.
func (h *Host) Settle() {
	h.t.Helper()
	h.Step()
	const bound, patience = 2000, 30 // blocks
	still, before := 0, ""
	for range bound {
		now, under := h.underWay()
		if still++; now != before {
			still, before = 0, now
		}
		if under == 0 || still > patience {
			return
		}
		h.Mine(1)
	}
	h.t.Fatalf("cryptopaytest: nothing comes to rest in %d blocks: %s", bound, before)
}

// Verify fails the test unless the books and the chains are sound.
func (h *Host) Verify() {
	h.t.Helper()
	reports, err := h.App.Verify(h.t.Context())
	h.must(err)
	for i := range reports {
		if !reports[i].Sound() {
			h.t.Fatalf("cryptopaytest: the books of tenant %s are not sound: %+v", reports[i].Tenant, reports[i])
		}
	}
	for _, n := range h.o.Networks {
		h.must(h.Chains[n].Audit())
	}
}

func (h *Host) must(err error) {
	if err != nil {
		h.t.Helper()
		h.t.Fatalf("cryptopaytest: %v", err)
		panic(fmt.Sprint("cryptopaytest: Fatalf returned: ", err)) // of a TB that is no testing.TB
	}
}
