package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// apart is a registry of a signer that is in no database of the App.
type apart struct {
	*insider
	store storage.Store
}

// apart gives the App a signer with a registry of its own, which asks for these mandates.
func (i *insider) apart(mandates mandate.Keys) *apart {
	i.t.Helper()
	a := &apart{i, memory.New()}
	require.NoError(i.t, a.store.Open(i.t.Context(), keys.Tables()...))
	a.signs(mandates)
	return a
}

func (a *apart) signs(mandates mandate.Keys) {
	a.t.Helper()
	chains := map[chain.Network]keys.Chain{}
	for n, c := range a.chains {
		chains[n] = c.Client()
	}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: a.seed, Chains: chains, Mandates: mandates, Registry: keys.StoreRegistry{Store: a.store},
		KeyOf: func(ctx context.Context, n chain.Network, at chain.Address) (chain.KeyRef, bool, error) {
			return a.app.KeyOf(ctx, n, at)
		},
	})
	require.NoError(a.t, err)
	configure := a.configure
	a.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Signer = signer
	}
	a.restart()
}

// earlier has the registry know what a version before 0035_endings knew.
func (a *apart) earlier(n chain.Network) {
	a.t.Helper()
	part := storage.Network(string(n))
	c := storage.Change{ID: fmt.Sprint("earlier/", a.clock.Now()), Partition: part}
	rows, err := a.store.Find(a.t.Context(), storage.Query{Table: keys.SignedAttempts.Table, Partition: part, Limit: 1000})
	require.NoError(a.t, err)
	for _, r := range rows {
		v := keys.SignedAttempts.Value(r)
		v.Tx, v.Slots = "", nil
		c.Put = append(c.Put, keys.SignedAttempts.Row(r.ID, r.Version, time.Time{}, v))
	}
	for _, t := range keys.Tables() {
		if t.Name != "signed_orders" {
			continue
		}
		lists, err := a.store.Find(a.t.Context(), storage.Query{Table: t, Partition: part, Limit: 1000})
		require.NoError(a.t, err)
		for _, r := range lists {
			c.Drop = append(c.Drop, storage.Row{Table: t, ID: r.ID, Version: r.Version})
		}
	}
	require.NoError(a.t, storage.CommitOne(a.t.Context(), a.store, c))
}

// setBack edits all rows of an order alike, as though its transactions had died.
func (i *insider) setBack(id, set string) {
	i.t.Helper()
	i.edit("DELETE FROM cryptopay_outcomes WHERE id = ?", id)
	_, err := i.db.Exec("UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?", id)
	require.NoError(i.t, err)
	i.edit("UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1, tx = '', reached = 0, plan = x''"+set+" WHERE id = ?", id)
}

// once requires that a supplier has got so much in a currency.
func (i *insider) once(n chain.Network, currency string, to chain.Address, amount string) {
	i.t.Helper()
	require.Equal(i.t, amount, i.chains[n].Balance(to, currency).String())
}

// A signer that had no mandates at first, as while a store is upgraded, knows what it has signed
// for an order all the same: the order is not paid again once the signer has them.
func TestFS02_OrderPaidBeforeTheSignerHadMandatesIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	to := i.chains["ETH"].Customer("supplier")
	a := i.apart(nil)
	w := i.withdraw("USDTERC20", "100", to)
	i.work(60)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	once := usdt.Decimal(w.Amount).String()
	i.once("ETH", "USDTERC20", to, once)
	a.signs(i.mandates)
	i.setBack(w.ID, "")
	i.work(60)
	i.once("ETH", "USDTERC20", to, once)
}

// What a signer of an earlier version has signed for an order is found, whatever the App's
// database says of how many transactions the order has.
func TestFS02_OrderThatAnEarlierSignerPaidIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"as it stands": "",
		"none":         ", attempts = 0",
		"fewer":        ", attempts = -1",
		"many":         ", attempts = 10000000",
		"most":         ", attempts = 9223372036854775806",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			to := i.chains["ETH"].Customer("supplier")
			a := i.apart(i.mandates)
			w := i.withdraw("USDTERC20", "100", to)
			i.work(60)
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			once := usdt.Decimal(w.Amount).String()
			i.once("ETH", "USDTERC20", to, once)
			a.earlier("ETH")
			i.setBack(w.ID, set)
			i.work(60)
			i.once("ETH", "USDTERC20", to, once)
		})
	}
}

// A payment that an earlier signer signed is no transaction to ourselves because a row says so.
func TestFS02_PaymentOfAnEarlierSignerIsNoFill(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	to := i.chains["ETH"].Customer("supplier")
	a := i.apart(i.mandates)
	w := i.withdraw("USDTERC20", "100", to)
	i.work(60)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	once := usdt.Decimal(w.Amount).String()
	i.once("ETH", "USDTERC20", to, once)
	a.earlier("ETH")
	i.edit("UPDATE cryptopay_attempts SET fate = 'open', purpose = 'cancel' WHERE intent = ?", w.ID)
	i.edit("UPDATE cryptopay_outcomes SET state = 'signed' WHERE id = ?", w.ID)
	i.edit("UPDATE cryptopay_intents SET state = 'signed', due = 1, reached = 1 WHERE id = ?", w.ID)
	i.work(60)
	i.once("ETH", "USDTERC20", to, once)
}

// reverts has the transaction of an order that was told to be executed taken out of its block,
// and fail in the next one for good, until the order starts again.
func (i *insider) reverts(id string) {
	i.t.Helper()
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(i.t, err)
	world := i.chains["ETH"]
	var state string
	read := func() string {
		require.NoError(i.t, i.db.Get(&state, "SELECT coalesce(max(state), '') FROM cryptopay_intents WHERE id = ?", id))
		return state
	}
	for n := 0; read() != "executed"; n++ {
		require.Less(i.t, n, 60, state)
		i.work(1)
	}
	var height int64
	for _, hash := range i.sent(id) {
		if st, err := world.Outcome(hash); err == nil && st.State == chain.Included {
			height = st.Block.Height
		}
	}
	world.SetBehaviour(usdt.Contract, sim.Behaviour{Paused: true})
	_, err = world.Reorg(int(world.Height() - height + 1))
	require.NoError(i.t, err)
	for n := 0; read() != "queued" && state != "waiting"; n++ {
		require.Less(i.t, n, 120, state)
		i.work(1)
	}
	world.SetBehaviour(usdt.Contract, sim.Behaviour{})
}

func (i *insider) sent(id string) (hashes []string) {
	i.t.Helper()
	require.NoError(i.t, i.db.Select(&hashes, i.db.Rebind("SELECT id FROM cryptopay_attempts WHERE intent = ? ORDER BY number"), id))
	return hashes
}

// completes requires that a withdrawal is paid, once.
func (i *insider) completes(id string, to chain.Address) {
	i.t.Helper()
	i.work(80)
	got, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, id)
	require.NoError(i.t, err)
	require.Equal(i.t, withdrawal.Completed, got.Status, "%s: %s", got.Waiting, got.Reason)
	c, err := chain.MainnetRegistry().Currency(got.Currency)
	require.NoError(i.t, err)
	i.once(c.Network, c.Code, to, c.Decimal(got.Amount).String())
}

// An order whose transaction is reverted each time starts again each time.
func TestFS02_OrderThatIsRevertedAgainAndAgainIsPaid(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	i.apart(i.mandates)
	to := i.chains["ETH"].Customer("supplier")
	w := i.withdraw("USDTERC20", "100", to)
	for range 3 {
		i.reverts(w.ID)
	}
	i.completes(w.ID, to)
}

// An order that started again before an upgrade, and whose next transaction dies after it, starts
// again once everything is sealed.
func TestFS02_OrderThatDiedBeforeAndAfterAnUpgradeStartsAgain(t *testing.T) {
	t.Parallel()
	for _, sealed := range []string{"on its way", "waiting"} {
		t.Run(sealed, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			to := i.chains["ETH"].Customer("supplier")
			a := i.apart(i.mandates)
			w := i.withdraw("USDTERC20", "100", to)
			for range 2 {
				i.reverts(w.ID)
			}
			for n := 0; len(i.sent(w.ID)) < 3; n++ {
				require.Less(t, n, 20)
				i.work(1)
			}
			a.earlier("ETH")
			i.edit("UPDATE cryptopay_intents SET endings = 'null' WHERE id = ?", w.ID)
			before := i.configure
			i.configure = func(c *cryptopay.Config) {
				before(c)
				c.UnsealedUntil = i.clock.Now().Add(24 * time.Hour)
			}
			i.restart()
			reseal := func() {
				r, err := i.app.Reseal(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, r.Orders)
				r, err = i.app.Reseal(t.Context())
				require.NoError(t, err)
				require.Zero(t, r.Orders)
			}
			if sealed == "on its way" {
				reseal()
			}
			i.reverts(w.ID)
			if sealed == "waiting" {
				i.work(10)
				reseal()
			}
			i.completes(w.ID, to)
		})
	}
}
