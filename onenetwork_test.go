package cryptopay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// TestFT11_StuckAfterFitsTheNetwork: a payout has as much time as blocks of its network take before it is
// replaced, unless the host says otherwise, for all networks or for this one.
func TestFT11_StuckAfterFitsTheNetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		network  chain.Network
		onDemand bool
		all, own time.Duration
		want     time.Duration
	}{
		"BTC":                     {network: "BTC", want: time.Hour},
		"LTC":                     {network: "LTC", want: 20 * time.Minute},
		"blocks on demand":        {network: "BTC", onDemand: true, want: 15 * time.Minute},
		"the host's for all":      {network: "BTC", all: 3 * time.Minute, want: 3 * time.Minute},
		"the host's for this one": {network: "BTC", all: 3 * time.Minute, own: 2 * time.Hour, want: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 60, c.network)
			h.rates.Set("LTC", "USD", dec("60000"))
			h.chains[c.network] = sim.MustNew(sim.Options{Network: c.network, Registry: chain.MainnetRegistry(), Seed: 60, Now: h.clock.Now, Steady: !c.onDemand})
			h.store = memory.New()
			var asked atomic.Int64
			h.configure = func(cfg *cryptopay.Config) {
				cfg.Outgoing.StuckAfter = c.all
				cfg.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { asked.Add(1); return "", nil }
				if c.own > 0 {
					cfg.OutgoingOn = map[chain.Network]outgoing.Config{c.network: {StuckAfter: c.own}}
				}
			}
			h.restart()
			tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: ptr("shop")}})
			require.NoError(t, err)
			h.tenant = tenant.ID
			h.mine(1)
			p := h.create("1200", string(c.network))
			h.pay(p, string(c.network), dec("0.05"))
			h.mine(20)
			h.float(c.network, "1")
			h.mine(20)
			id := h.withdraw("900", string(c.network))
			h.step()
			require.Empty(t, h.shownReason(id))
			v, _, ok, err := outgoing.Intents.One(t.Context(), h.store, storage.Network(string(c.network)), id)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, outgoing.Signed, v.State)
			require.Equal(t, c.want, v.BumpAt.Sub(h.clock.Now()))
			require.Positive(t, asked.Load(), "a hook that one network leaves out is that of all")
		})
	}
}

// TestFT11_PollFitsTheNetwork: each network is asked as often as the host says for it.
func TestFT11_PollFitsTheNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, 61, "BTC", "ETH")
		counts := map[chain.Network]*atomic.Int64{}
		cfg := h.app.Config()
		cfg.Key, cfg.Clock, cfg.Poll = hostKey, cryptopay.SystemClock{}, time.Minute
		cfg.PollOn = map[chain.Network]time.Duration{"BTC": 10 * time.Minute}
		for i, client := range cfg.Chains {
			counts[client.Network()] = &atomic.Int64{}
			cfg.Chains[i] = countingTips{client, counts[client.Network()]}
		}
		app, err := cryptopay.New(cfg)
		require.NoError(t, err)
		require.NoError(t, app.Open(t.Context()))
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Hour+time.Second)
		defer stop()
		require.NoError(t, app.Run(ctx))
		require.InDelta(t, 600, counts["ETH"].Load(), 60)
		require.InDelta(t, 60, counts["BTC"].Load(), 6)
	})
}

type countingTips struct {
	chain.Client
	n *atomic.Int64
}

func (c countingTips) Tip(ctx context.Context) (chain.Tip, error) {
	c.n.Add(1)
	return c.Client.Tip(ctx)
}

// TestFT11_SettingsOfNetworksThatAreNone are refused, and so is a poll without a pause.
func TestFT11_SettingsOfNetworksThatAreNone(t *testing.T) {
	t.Parallel()
	h := newHost(t, 62, "BTC", "TRX")
	for _, c := range []struct {
		change func(*cryptopay.Config)
		says   string
	}{
		{func(c *cryptopay.Config) { c.PollOn = map[chain.Network]time.Duration{"BTCC": time.Second} }, `PollOn or OutgoingOn names "BTCC"`},
		{func(c *cryptopay.Config) { c.PollOn = map[chain.Network]time.Duration{"TRON": time.Second} }, `names "TRON": its code is "TRX"`},
		{func(c *cryptopay.Config) { c.OutgoingOn = map[chain.Network]outgoing.Config{"EHT": {}} }, `PollOn or OutgoingOn names "EHT"`},
		{func(c *cryptopay.Config) { c.PollOn = map[chain.Network]time.Duration{"BTC": 0} }, "Config.PollOn of BTC must be above 0"},
	} {
		cfg := h.app.Config()
		cfg.Key = hostKey
		c.change(&cfg)
		_, err := cryptopay.New(cfg)
		require.ErrorContains(t, err, c.says)
	}
}
