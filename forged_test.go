package cryptopay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Somebody who writes to the database makes a deposit up, and pays out what a merchant was credited
// by that. A merchant's payouts spend coins that came to him: one without any gets nothing of
// others'. What leaves is within the signer's own limits, whatever the database says. The
// comparison with the chain finds that the coins never came, and where Reconcile.Halt is set nothing
// more of the tenant is paid.
func TestFS02_W13_AForgedDepositIsBoundedAndFound(t *testing.T) {
	t.Parallel()
	for name, ofNew := range map[string]bool{"a merchant without coins": true, "a merchant with coins": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forgedDeposit(t, ofNew)
		})
	}
}

// forgedDeposit makes a deposit up, of a merchant who has no other where ofNew is set.
func forgedDeposit(t *testing.T, ofNew bool) {
	t.Helper()
	i := newInsider(t, "USDTERC20")
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	world, ctx := i.chains["ETH"], t.Context()
	own := memory.New()
	require.NoError(t, own.Open(ctx, keys.LimitTables()...))
	limit, err := usdt.Units(dec("300"), ledger.Down)
	require.NoError(t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: i.seed, Chains: map[chain.Network]keys.Chain{"ETH": world.Client()},
		Registry: keys.LimitedRegistry{Store: own, Now: i.clock.Now, Limits: keys.Limits{
			Pays:  map[string][]keys.Limit{"USDTERC20": {{Amount: limit, Per: 365 * 24 * time.Hour}}},
			Costs: map[chain.Network][]keys.Limit{"ETH": {{Amount: 1 << 60, Per: time.Hour}}},
		}},
		KeyOf: func(ctx context.Context, n chain.Network, at chain.Address) (chain.KeyRef, bool, error) {
			return i.app.KeyOf(ctx, n, at)
		},
	})
	require.NoError(t, err)
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Signer, c.Reconcile.Halt = signer, true
	}
	i.restart()

	if ofNew {
		i.newTenant()
		hot, err := i.app.Hot(ctx, "ETH", i.tenant)
		require.NoError(t, err)
		_, err = world.Fund(hot, "ETH", dec("2"))
		require.NoError(t, err)
		i.work(20)
	}
	p, err := i.app.Payments.Create(ctx, i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "900", Currency: "USDTERC20"}})
	require.NoError(t, err)
	part := storage.Network("ETH")
	came, err := i.store.Find(ctx, storage.Query{Table: incoming.Sightings.Table, Partition: part, Limit: 1, Where: []storage.Cond{
		{Column: "state", Op: storage.Eq, Value: incoming.Final}, {Column: "currency", Op: storage.Eq, Value: "USDTERC20"},
	}})
	require.NoError(t, err)
	require.NotEmpty(t, came)
	s := incoming.Sightings.Value(came[0])
	s.Tx, s.Address, s.Tenant = "0x"+s.Tx[3:]+"0", p.Address, i.tenant
	s.Exact, s.FirstSeen, s.Forward, s.ForwardTx = usdt.Decimal(p.Due), i.clock.Now(), incoming.ForwardNone, ""
	s.Amount = p.Due
	require.NoError(t, storage.CommitOne(ctx, i.store, storage.Change{ID: "forged", Partition: part, Put: []storage.Row{
		incoming.Sightings.Row(s.Key(), 0, time.Unix(1, 0), s),
	}}))
	i.work(3)
	var last withdrawal.Withdrawal
	for range 8 {
		last = i.withdraw("USDTERC20", "100", i.thief) // it was credited
		i.work(10)
	}
	bounded := func() {
		t.Helper()
		got := world.Balance(i.thief, "USDTERC20")
		require.True(t, got.LessThanOrEqual(usdt.Decimal(limit)), "%s", got)
		require.Equal(t, ofNew, got.IsZero(), "%s", got)
	}
	bounded()
	last, err = i.app.Withdrawals.Get(ctx, i.tenant, last.ID)
	require.NoError(t, err)
	require.Equal(t, map[bool]string{true: withdrawal.ShownHotShort, false: withdrawal.ShownStuck}[ofNew], last.WaitingReason())
	for range 60 {
		i.clock.Advance(time.Hour)
		i.work(1)
	}
	require.Contains(t, i.log.heard(), "books_differ")
	bounded()
	halts, err := i.app.Operate.Halts(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, halts)
}
