package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// deletes takes rows away, and returns what puts them back.
func (i *insider) deletes(table, where string, args ...any) (back func()) {
	i.t.Helper()
	_, err := i.db.Exec("DROP TABLE IF EXISTS kept")
	require.NoError(i.t, err)
	_, err = i.db.Exec(i.db.Rebind("CREATE TABLE kept AS SELECT * FROM cryptopay_"+table+" WHERE "+where), args...)
	require.NoError(i.t, err)
	i.edit("DELETE FROM cryptopay_"+table+" WHERE "+where, args...)
	return func() {
		i.t.Helper()
		i.edit("INSERT INTO cryptopay_" + table + " SELECT * FROM kept")
	}
}

// contradictions is all that Verify names.
func (i *insider) contradictions() string {
	i.t.Helper()
	all, err := i.app.Verify(i.t.Context())
	require.NoError(i.t, err)
	var out []cryptopay.Contradiction
	for _, r := range all {
		out = append(out, r.Contradictions...)
	}
	return fmt.Sprint(out)
}

// supplierGets pays out and says what the recipient has then.
func (i *insider) supplierGets(name string) (w withdrawal.Withdrawal, got string) {
	i.t.Helper()
	world := i.chains["ETH"]
	to := world.Customer(name)
	w = i.withdraw("USDTERC20", "100", to)
	i.work(60)
	w, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, w.ID)
	require.NoError(i.t, err)
	return w, world.Balance(to, "USDTERC20").String()
}

// The order of a withdrawal is deleted once its transaction is out, or when it was completed: it
// is not paid again. Verify names it, and while somebody waits for it the host is told, once.
func TestFS02_DeletedOrderIsNamed(t *testing.T) {
	t.Parallel()
	for _, at := range []withdrawal.Status{withdrawal.Processing, withdrawal.Completed} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			notices := i.countsAltered()
			world := i.chains["ETH"]
			to := world.Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			for range 80 {
				got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
				require.NoError(t, err)
				if got.Status == at {
					break
				}
				i.work(1)
			}
			back := i.deletes("intents", "id = ?", w.ID)
			i.named(w.ID)
			for range 5 {
				i.clock.Advance(time.Hour)
				i.work(10)
			}
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String(), "once")
			i.named(w.ID)
			if at == withdrawal.Completed { // nobody waits for it
				require.Zero(t, *notices)
				return
			}
			require.Equal(t, 1, *notices)
			require.Contains(t, i.log.heard(), "msg=order_altered")
			back()
			i.work(60)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, got.Status)
			i.sound()
		})
	}
}

// A hot address is deleted from the directory. No other is made in its place, so that nothing goes
// where nobody looks: payouts and forwardings wait, the log names it, and so does Verify. The
// directory does not grow by those who ask.
func TestFS02_DeletedHotAddressIsNamed(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	hot, err := i.app.Hot(t.Context(), "ETH", i.tenant)
	require.NoError(t, err)
	rows := func() (n int) {
		require.NoError(t, i.db.Get(&n, "SELECT count(*) FROM cryptopay_addresses"))
		return n
	}
	had := rows()
	var seq int64
	require.NoError(t, i.db.Get(&seq, "SELECT seq FROM cryptopay_addresses WHERE id = ?", string(hot)))
	back := i.deletes("addresses", "id = ?", string(hot))
	require.Contains(t, i.contradictions(), fmt.Sprintf("{address ETH/%d ", seq))
	p := i.pays()
	w, got := i.supplierGets("supplier")
	require.Equal(t, "0", got)
	require.Equal(t, withdrawal.Pending, w.Status)
	_, err = i.app.Hot(t.Context(), "ETH", i.tenant)
	require.ErrorIs(t, err, incoming.ErrNoAddress)
	require.Contains(t, i.log.heard(), "msg=address_lost network=ETH tenant="+i.tenant+" use=hot")
	require.Equal(t, had-1, rows())
	require.Equal(t, "500", i.chains["ETH"].Balance(chain.Address(p.Address), "USDTERC20").String(), "it is not forwarded")
	back()
	i.work(120)
	w, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status)
	require.Zero(t, i.chains["ETH"].Balance(chain.Address(p.Address), "USDTERC20").Sign())
	require.Equal(t, "[]", i.contradictions())
}

// The address of a payment is deleted from the directory: it is shown to nobody any more, and
// Verify names the payment and the number that the directory lacks. So it does for an address that
// nobody was given yet.
func TestFS02_DeletedAddressIsNotShown(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
	require.NoError(t, err)
	var free string
	require.NoError(t, i.db.Get(&free, "SELECT id FROM cryptopay_addresses WHERE tenant = '' ORDER BY seq LIMIT 1"))
	for _, address := range []string{p.Address, free} {
		var seq int64
		require.NoError(t, i.db.Get(&seq, "SELECT seq FROM cryptopay_addresses WHERE id = ?", address))
		back := i.deletes("addresses", "id = ?", address)
		require.Contains(t, i.contradictions(), fmt.Sprintf("{address ETH/%d ", seq))
		i.restart()
		got, err := i.app.Payments.Get(t.Context(), i.tenant, p.ID)
		if address == p.Address {
			require.ErrorIs(t, err, incoming.ErrNotDerived)
			require.Empty(t, got.Address)
			require.Contains(t, i.log.heard(), "payment_address_altered")
			i.named(p.ID)
		} else {
			require.NoError(t, err)
		}
		back()
		require.Equal(t, "[]", i.contradictions())
	}
}

// A permanent address is deleted. What comes to it is credited to nobody: it waits in suspense, the
// host is told, and a person gives it to the merchant. Verify names the address by the payments
// that were made at it.
func TestFS02_DeletedPermanentAddressIsNamed(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	var alerts []payment.Alert
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Payments.Notify = func(_ context.Context, a payment.Alert) { alerts = append(alerts, a) }
	}
	i.restart()
	ctx, world := t.Context(), i.chains["ETH"]
	a, made, err := i.app.Payments.PermanentAddress(ctx, i.tenant, payment.AddressInput{ExternalID: "ann", Currency: "USDTERC20"})
	require.NoError(t, err)
	require.True(t, made)
	pay := func() {
		_, err := world.Pay(chain.Address(a.Address), "USDTERC20", dec("200"))
		require.NoError(t, err)
		i.work(40)
	}
	balance := func() string {
		balances, err := i.app.Wallets.Balances(ctx, i.tenant, "")
		require.NoError(t, err)
		return fmt.Sprint(balances)
	}
	pay()
	i.sound()
	before := balance()
	i.deletes("permanent_addresses", "id = ?", a.ID)
	i.named(a.ID)
	pay()
	require.Equal(t, before, balance(), "credited to nobody")
	require.NotEmpty(t, alerts)
	require.Equal(t, payment.AlertSuspense, alerts[len(alerts)-1].Kind)
	again, made, err := i.app.Payments.PermanentAddress(ctx, i.tenant, payment.AddressInput{ExternalID: "ann", Currency: "USDTERC20"})
	require.NoError(t, err)
	require.True(t, made)
	require.NotEqual(t, a.Address, again.Address, "nobody is shown an address that was somebody's")
	i.named(a.ID)
}

// A sweep is deleted while it waits or is under way: nothing goes to anybody else. Its note is
// there, so Verify names it, and the log does once an hour, or when its transaction has landed.
func TestFS02_DeletedSweepIsNamed(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"waiting", "moving"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world := i.chains["ETH"]
			level := world.FeeLevel()
			if state == "waiting" {
				world.SetFeeLevel(1000 * level)
			}
			p := i.pays()
			sweep := ""
			for range 60 {
				i.work(1)
				if i.db.Get(&sweep, "SELECT id FROM cryptopay_sweeps WHERE address = ? AND state = ?", p.Address, state) == nil {
					break
				}
			}
			require.NotEmpty(t, sweep)
			i.sound()
			back := i.deletes("sweeps", "address = ? AND state = ?", p.Address, state)
			i.named(sweep)
			world.SetFeeLevel(level)
			i.work(60)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			if state == "waiting" {
				i.clock.Advance(time.Hour)
				i.work(2)
				require.Equal(t, "500", world.Balance(chain.Address(p.Address), "USDTERC20").String())
			}
			require.Contains(t, i.log.heard(), "msg=sweep_lost")
			i.named(sweep)
			back()
			for range 5 {
				i.clock.Advance(time.Hour)
				i.work(20)
			}
			got, err := i.app.Payments.Get(t.Context(), i.tenant, p.ID)
			require.NoError(t, err)
			require.Equal(t, payment.Completed, got.Status)
			require.Zero(t, world.Balance(chain.Address(p.Address), "USDTERC20").Sign())
			i.sound()
		})
	}
}

// The order of a sweep, or of its gas, is deleted before anything of it is signed: the sweep
// hands it over again, and the deposit is forwarded once.
func TestFS02_DeletedOrderOfASweepIsHandedOverAgain(t *testing.T) {
	t.Parallel()
	for _, purpose := range []string{"gas", "sweep"} {
		t.Run(purpose, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world := i.chains["ETH"]
			hot, err := i.app.Hot(t.Context(), "ETH", i.tenant)
			require.NoError(t, err)
			before := world.Balance(hot, "USDTERC20")
			p := i.pays()
			_, err = i.db.Exec(`CREATE TRIGGER at_once AFTER INSERT ON cryptopay_intents WHEN NEW.purpose = '` + purpose + `' BEGIN DELETE FROM cryptopay_intents WHERE part = NEW.part AND id = NEW.id; END`)
			require.NoError(t, err)
			i.work(60)
			require.Equal(t, "500", world.Balance(chain.Address(p.Address), "USDTERC20").String())
			_, err = i.db.Exec("DROP TRIGGER at_once")
			require.NoError(t, err)
			i.work(120)
			require.Zero(t, world.Balance(chain.Address(p.Address), "USDTERC20").Sign())
			require.Equal(t, before.Add(dec("500")).String(), world.Balance(hot, "USDTERC20").String())
			i.sound()
		})
	}
}

// What a currency's code stands for is deleted. Verify names it by the books. The next Open lists
// it again by the Registry, says so in the log, and nobody can tell any more that it stood for
// something else: so put back what the log names from a backup, or compare it.
func TestFS02_DeletedListingIsNamed(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	i.deletes("listings", "id = 'USDTERC20'")
	i.named("USDTERC20")
	w, got := i.supplierGets("supplier")
	require.Equal(t, withdrawal.Completed, w.Status, "a process that runs has read it")
	require.NotEqual(t, "0", got)
	require.NotContains(t, i.log.heard(), "currencies_listed")
	i.restart()
	require.Contains(t, i.log.heard(), "currencies_listed")
	require.Contains(t, i.log.heard(), "USDTERC20")
	i.sound()
}

// What an operator has halted is taken out of the database: the log says so within an hour, and Verify
// names it until it is halted again, or lifted.
func TestFS02_DeletedHaltIsNamed(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"deleted": "DELETE FROM cryptopay_halts WHERE part = 'network/ETH'", "emptied": "UPDATE cryptopay_halts SET halts = '[]' WHERE part = 'network/ETH'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			ctx, everything := t.Context(), cryptopay.HaltScope{}
			_, err := i.app.Operate.Halt(ctx, cryptopay.HaltScope{Tenant: i.tenant}, because("a look"))
			require.NoError(t, err)
			_, err = i.app.Operate.Halt(ctx, everything, because("keys may be stolen"))
			require.NoError(t, err)
			_, err = i.app.Operate.Lift(ctx, cryptopay.HaltScope{Tenant: i.tenant}, because("it is well"))
			require.NoError(t, err)
			require.NotContains(t, i.contradictions(), "halted")
			i.edit(edit)
			require.Contains(t, i.contradictions(), "keys may be stolen")
			require.NotContains(t, i.contradictions(), "a look")
			i.clock.Advance(time.Hour)
			i.work(2)
			require.Contains(t, i.log.heard(), "msg=halt_lost")
			_, err = i.app.Operate.Halt(ctx, everything, because("keys may be stolen"))
			require.NoError(t, err)
			require.NotContains(t, i.contradictions(), "halted")
			_, err = i.app.Operate.Lift(ctx, everything, because("keys are safe"))
			require.NoError(t, err)
			require.NotContains(t, i.contradictions(), "halted")
		})
	}
}

// A tenant's webhook settings are deleted: his webhooks go nowhere, and those with a URL of their
// own are signed with a secret that nobody has but we. The log says so when the first is due, and
// Verify names him by those that were delivered.
func TestFS02_DeletedWebhookSettingsAreNamed(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	hooks := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hooks++ }))
	t.Cleanup(receiver.Close)
	guard := webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Notifier, c.Callbacks = nil, guard
	}
	i.restart()
	url := strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1)
	_, _, err := i.app.Webhooks.Setup(t.Context(), i.tenant, url, webhook.By{})
	require.NoError(t, err)
	i.pays()
	i.work(40)
	require.Positive(t, hooks)
	i.sound()
	back := i.deletes("webhook_settings", "part = ?", "tenant/"+i.tenant)
	i.named(i.tenant)
	before := hooks
	i.pays()
	i.work(40)
	require.Equal(t, before, hooks)
	require.Contains(t, i.log.heard(), "msg=webhook_settings_lost tenant="+i.tenant)
	i.named(i.tenant)
	i.edit("DELETE FROM cryptopay_webhook_settings WHERE part = ?", "tenant/"+i.tenant)
	back()
	i.pays()
	i.work(40)
	require.Greater(t, hooks, before)
	i.sound()
}

// A fingerprint is deleted. It is written again where what is stored agrees with the key or the
// seed, so another one is refused as before; without the store's id no process starts.
func TestFS02_DeletedFingerprintAdmitsNoOtherKey(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx := t.Context()
	_, _, err := i.app.Webhooks.Setup(ctx, i.tenant, "https://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	i.deletes("fingerprints", "id = 'key'")
	other := i.compose(func(c *cryptopay.Config) {
		i.configure(c)
		c.Key, c.Keys = nil, [][]byte{bytes.Repeat([]byte{77}, 32)}
	})
	wrong := (*cryptopay.KeyError)(nil)
	require.ErrorAs(t, other.Open(ctx, keys.Tables()...), &wrong)
	require.Equal(t, "Key", wrong.Field)
	i.deletes("fingerprints", "id = 'addresses/ETH'")
	seed, err := keys.FromMnemonic("legal winner thank year wave sausage worth useful legal winner thank yellow", "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(chain.MainnetRegistry().Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": i.chains["ETH"].Client().AddressOf})
	require.NoError(t, err)
	other = i.compose(func(c *cryptopay.Config) {
		i.configure(c)
		c.Addresses = source
	})
	require.ErrorAs(t, other.Open(ctx, keys.Tables()...), &wrong)
	require.Equal(t, "Addresses", wrong.Field)

	i.restart()
	var n int
	require.NoError(t, i.db.Get(&n, "SELECT count(*) FROM cryptopay_fingerprints WHERE id IN ('key', 'addresses/ETH')"))
	require.Equal(t, 2, n, "they are written again")
	i.withdraw("USDTERC20", "100", i.chains["ETH"].Customer("supplier"))
	back := i.deletes("fingerprints", "id = 'store'")
	require.ErrorIs(t, i.compose(i.configure).Open(ctx, keys.Tables()...), cryptopay.ErrStoreID)
	i.work(40)
	require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
	back()
	i.restart()
	i.sound()
}

// A destination is deleted from a tenant's list: what would be paid there is refused or waits for a
// person, as an address that nobody listed. Nothing else goes out by it.
func TestFS02_DeletedDestinationIsPaidNothing(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	world := i.chains["ETH"]
	i.ruled(policy.Rule{Name: "known", Of: policy.KindDestination, Then: policy.Refuse})
	to := world.Customer("supplier")
	_, _, err := i.app.Operate.AllowDestination(t.Context(), i.tenant, "ETH", string(to), "", because("x"))
	require.NoError(t, err)
	w, got := i.supplierGets("supplier")
	require.Equal(t, withdrawal.Completed, w.Status)
	i.deletes("policy_destinations", "address = ?", string(to))
	w, again := i.supplierGets("supplier")
	require.Equal(t, withdrawal.Failed, w.Status)
	require.Contains(t, w.Reason, "known")
	require.Equal(t, got, again)
	require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
}
