package cryptopay_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// insider is somebody who can write to the database of a host, and nothing else.
type insider struct {
	*host
	db    *sqlx.DB
	thief chain.Address
	log   *alarms
	told  map[string]bool // kinds of notices, and ids of withdrawals that they are about
	slow  bool            // the store takes much longer for everything

	attacked []withdrawal.Withdrawal // on their way
}

// alarms keeps the events that were logged as errors.
type alarms struct {
	slog.Handler
	mu     sync.Mutex
	errors strings.Builder
}

func (a *alarms) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.errors.Write(p)
}

func (a *alarms) heard() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.errors.String()
}

// newInsider gives the merchant deposits of 1,000 in a currency, and the operator gas.
func newInsider(t *testing.T, currency string) *insider {
	t.Helper()
	store, dsn := onSQLite(t)
	return newInsiderOn(t, currency, store, "sqlite", dsn)
}

// newInsiderOn is newInsider on a store, which the driver opens at dsn.
func newInsiderOn(t *testing.T, currency string, store storage.Store, driver, dsn string) *insider {
	t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(t, err)
	i := &insider{host: newHostOn(t, store, 9, c.Network), log: &alarms{}, told: map[string]bool{}}
	i.configure = func(cfg *cryptopay.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(i.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		cfg.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) { i.told[n.Kind], i.told[n.Withdrawal] = true, true }
	}
	i.restart()
	i.step()
	world := i.chains[c.Network]
	hot, err := i.app.Hot(t.Context(), c.Network, i.tenant)
	require.NoError(t, err)
	gas, err := chain.MainnetRegistry().Gas(c.Network)
	require.NoError(t, err)
	_, err = world.Fund(hot, gas.Code, dec("2"))
	require.NoError(t, err)
	i.mine(int(gas.Confirmations))
	for range 2 {
		p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "1000", Currency: currency}})
		require.NoError(t, err)
		_, err = world.Pay(chain.Address(p.Address), currency, c.Decimal(p.Due))
		require.NoError(t, err)
	}
	i.mine(int(c.Confirmations) + 20)
	i.sound()
	i.thief = world.Customer("thief")
	if driver != "" {
		i.db = sqlx.MustOpen(driver, dsn)
		t.Cleanup(func() { _ = i.db.Close() })
	}
	return i
}

// edit writes to the database; false: the database itself refuses.
func (i *insider) edit(query string, args ...any) bool {
	i.t.Helper()
	r, err := i.db.Exec(i.db.Rebind(query), args...)
	if err != nil {
		require.ErrorContains(i.t, err, "cryptopay_withdrawals_sum")
		return false
	}
	n, err := r.RowsAffected()
	require.NoError(i.t, err)
	require.EqualValues(i.t, 1, n, query)
	return true
}

// countsAltered counts the notices of altered withdrawals that the host gets from now on.
func (i *insider) countsAltered() *int {
	i.t.Helper()
	notices := new(int)
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) {
			if n.Kind == withdrawal.NoticeAltered {
				*notices++
			}
		}
	}
	i.restart()
	return notices
}

// work lets workers meet errors: those of rows that were edited.
func (i *insider) work(blocks int) {
	for range blocks {
		i.blocks(1)
	}
}

// blocks lets workers act once after some blocks.
func (i *insider) blocks(n int) {
	i.clock.Advance(time.Duration(n) * 16 * time.Second)
	for _, c := range i.chains {
		c.Mine(n)
	}
	if err := i.app.Step(i.t.Context()); err != nil { // as Run logs it
		_, _ = fmt.Fprintln(i.log, err)
	}
}

// until works until something is so, or a number of blocks is mined. It acts after the first block, the
// second, the fourth and so on: mostly time goes by.
func (i *insider) until(blocks int, done func() bool) bool {
	for n, more := 0, 1; n < blocks; more = n {
		if done() {
			return true
		}
		i.blocks(more)
		n += more
	}
	return done()
}

func (i *insider) withdraw(currency, amount string, to chain.Address) withdrawal.Withdrawal {
	i.t.Helper()
	w, err := i.app.Withdrawals.Create(i.t.Context(), i.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec(amount)), Currency: currency, Address: string(to)},
	})
	require.NoError(i.t, err)
	return w
}

// named says that Verify finds an object.
func (i *insider) named(id string) {
	i.t.Helper()
	r, err := i.app.VerifyTenant(i.t.Context(), i.tenant)
	require.NoError(i.t, err)
	require.False(i.t, r.Sound())
	require.Contains(i.t, fmt.Sprint(r.Contradictions, r.Unexplained), id)
}

// One UPDATE of a withdrawal that waits, whatever column it raises or redirects, is not
// paid: it waits with a reason, the host is told, and Verify names it.
func TestFS02_EditedWithdrawalIsNotPaid(t *testing.T) {
	t.Parallel()
	const where = " WHERE id = ?"
	for name, set := range map[string]string{
		"amount":                    "amount = amount + 50000000000",
		"amount and requested":      "amount = amount + 50000000000, requested = requested + 50000000000",
		"amount and network fee":    "amount = amount + network_fee, network_fee = 0",
		"amount and a negative fee": "amount = amount + 500, platform_fee = platform_fee - 500",
		"address":                   "address = 'THIEF'",
		"currency":                  "currency = 'ETH'",
		"status":                    "status = 'processing'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			other := i.withdraw("USDTERC20", "100", world.Customer("another"))
			require.NotEmpty(t, other.ID)
			w := i.withdraw("USDTERC20", "100", to)
			require.Positive(t, w.NetworkFee)
			before := world.Balance(to, "ETH")
			edited := i.edit("UPDATE cryptopay_withdrawals SET "+strings.ReplaceAll(set, "THIEF", string(i.thief))+where, w.ID)
			if edited {
				i.named(w.ID)
			}
			i.work(30)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.True(t, world.Balance(to, "ETH").Equal(before))
			if !edited { // and it is paid as it was ordered
				require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String())
				i.sound()
				return
			}
			require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			if name != "status" {
				require.Equal(t, withdrawal.Pending, got.Status)
			}
			require.Equal(t, withdrawal.WaitingAltered, got.Waiting)
			require.NotEmpty(t, got.Reason)
			require.True(t, i.told[withdrawal.NoticeAltered])
			i.named(w.ID)
		})
	}
}

// A row that no process takes any more, as somebody wrote a currency into it that none lists, and
// one that says that it is under way or has ended: the host hears of it, once, and put right it
// is paid as it was ordered.
func TestFS02_EditedRowThatNobodyTakesIsHeardAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		set, back string
		event     string
	}{
		"withdrawal's currency": {"withdrawals SET currency = 'USDX'", "withdrawals SET currency = 'USDTERC20'", "order_altered"},
		"withdrawal's status":   {"withdrawals SET status = 'cancelled'", "withdrawals SET status = 'pending'", ""},
		"order's currency":      {"intents SET currency = 'USDX'", "intents SET currency = 'USDTERC20'", "order_altered"},
		"outcome's currency":    {"outcomes SET currency = 'USDX'", "outcomes SET currency = 'USDTERC20'", "order_altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			notices := i.countsAltered()
			w := i.withdraw("USDTERC20", "100", to)
			if !strings.HasPrefix(name, "withdrawal") {
				_, err := i.app.Withdrawals.Step(t.Context())
				require.NoError(t, err)
			}
			if strings.HasPrefix(name, "outcome") {
				_, err := i.db.Exec(`CREATE TRIGGER at_once AFTER UPDATE ON cryptopay_outcomes WHEN NEW.currency <> 'USDX' BEGIN UPDATE cryptopay_outcomes SET currency = 'USDX' WHERE part = NEW.part AND id = NEW.id; END`)
				require.NoError(t, err)
				_, err = i.db.Exec(`CREATE TRIGGER at_first AFTER INSERT ON cryptopay_outcomes BEGIN UPDATE cryptopay_outcomes SET currency = 'USDX' WHERE part = NEW.part AND id = NEW.id; END`)
				require.NoError(t, err)
			} else {
				i.edit("UPDATE cryptopay_"+of.set+" WHERE id = ?", w.ID)
			}
			i.work(120)
			require.Equal(t, 1, *notices, "the host is told once")
			require.Contains(t, i.log.heard(), of.event)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			if strings.HasPrefix(name, "outcome") {
				for _, trigger := range []string{"at_once", "at_first"} {
					_, err := i.db.Exec("DROP TRIGGER " + trigger)
					require.NoError(t, err)
				}
			} else {
				require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			}
			i.edit("UPDATE cryptopay_"+of.back+" WHERE id = ?", w.ID)
			i.work(60)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, got.Status)
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String(), "once")
			i.sound()
		})
	}
}

// What was ordered is paid once: an order that was cancelled or completed is not paid by
// being set to pending, though another withdrawal of the wallet holds as much.
func TestFS02_EndedWithdrawalSetToPendingIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	for _, end := range []withdrawal.Status{withdrawal.Cancelled, withdrawal.Completed} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			if end == withdrawal.Cancelled {
				_, err := i.app.Withdrawals.Cancel(t.Context(), i.tenant, w.ID)
				require.NoError(t, err)
			} else {
				i.mine(40)
			}
			paid := world.Balance(to, "USDTERC20")
			held := i.withdraw("USDTERC20", "300", world.Customer("another"))
			_, err := i.app.Withdrawals.Hold(t.Context(), i.tenant, held.ID, "ann", "a test")
			require.NoError(t, err)
			i.sound()
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, end, got.Status)

			i.edit("UPDATE cryptopay_withdrawals SET status = 'pending', stage = '', tx = '', due = ? WHERE id = ?", i.clock.Now().UnixMicro(), w.ID)
			i.work(30)
			require.Equal(t, paid.String(), world.Balance(to, "USDTERC20").String())
			got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.WaitingAltered, got.Waiting)
			require.True(t, i.told[withdrawal.NoticeAltered])
			i.named(w.ID)
			_, err = i.app.Withdrawals.Cancel(t.Context(), i.tenant, w.ID)
			require.ErrorIs(t, err, withdrawal.ErrAltered, "and no hold is released twice")
		})
	}
}

// The order as the payout side has it is not another one than the withdrawal: one that
// was edited, or that nobody ordered, waits and is reported.
func TestFS02_EditedOrderIsNotSigned(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"address": "UPDATE cryptopay_intents SET to_address = 'THIEF' WHERE purpose = 'withdrawal'",
		"amount":  "UPDATE cryptopay_intents SET amount = amount + 50000000000 WHERE purpose = 'withdrawal'",
		"made up": `INSERT INTO cryptopay_intents SELECT part, 'made-up', 1, 'x', due, purpose, tenant, network, currency, from_address, from_key,
			'THIEF', memo, amount, all_funds, max_cost, confirmations, state, reason, attempts, tx, nonce, plan, filling, reached, reserved, tries, bump_at, created_at, updated_at, lease, claims, mandate, endings, undone
			FROM cryptopay_intents WHERE purpose = 'withdrawal'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			_, err := i.app.Withdrawals.Step(t.Context()) // handed over, and nothing signed yet
			require.NoError(t, err)
			i.edit(strings.ReplaceAll(edit, "THIEF", string(i.thief)))
			i.work(30)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.Contains(t, i.log.heard(), "order_altered")
			var reason string
			require.NoError(t, i.db.Get(&reason, "SELECT reason FROM cryptopay_intents WHERE id = ? OR id = 'made-up' ORDER BY reason DESC", w.ID))
			require.Equal(t, string(outgoing.ReasonAltered), reason)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			if name == "made up" {
				require.Equal(t, withdrawal.Completed, got.Status)
				return
			}
			require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			require.Equal(t, string(outgoing.ReasonAltered), got.Waiting)
		})
	}
}

// What is settled or released is what was held: a withdrawal whose figures were made
// smaller after it was signed does not leave the merchant what has left the chain.
func TestFS02_EditedFiguresAreNotSettled(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w := i.withdraw("USDTERC20", "100", i.chains["ETH"].Customer("supplier"))
	for range 20 {
		i.mine(1)
		if got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID); err == nil && got.Status == withdrawal.Processing {
			break
		}
	}
	require.True(t, i.edit("UPDATE cryptopay_withdrawals SET amount = 1, platform_fee = 0, network_fee = 0, requested = 1 WHERE id = ?", w.ID))
	i.work(40)
	got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Processing, got.Status)
	require.True(t, i.told[withdrawal.NoticeAltered])
	i.named(w.ID)
}

// Deposits are forwarded to an address that our keys give. A hot address that was edited
// in the directory, or the destination of a sweep, gets nothing.
func TestFS02_EditedHotAddressGetsNothing(t *testing.T) {
	t.Parallel()
	const hot = "UPDATE cryptopay_addresses SET id = 'THIEF' WHERE use_for = 'hot' AND part = 'network/ETH'"
	for name, edit := range map[string]string{
		"id": hot,
		"a second row": `INSERT INTO cryptopay_addresses SELECT part, 'THIEF', 1, 'x', 0, (SELECT max(seq)+1 FROM cryptopay_addresses WHERE part = 'network/ETH'), key_index, key_ref, tenant, use_for, created_at, watch_until, lease, claims
			FROM cryptopay_addresses WHERE use_for = 'hot' AND part = 'network/ETH'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world := i.chains["ETH"]
			p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
			require.NoError(t, err)
			_, err = world.Pay(chain.Address(p.Address), "USDTERC20", dec("500"))
			require.NoError(t, err)
			if name != "id" { // so that the new row is found, and not the old one
				i.edit("UPDATE cryptopay_addresses SET tenant = 'gone' WHERE use_for = 'hot' AND part = 'network/ETH'")
				edit = strings.Replace(edit, "key_ref, tenant", "key_ref, '"+i.tenant+"'", 1)
			}
			i.edit(strings.ReplaceAll(edit, "THIEF", string(i.thief)))
			i.work(60)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.Zero(t, world.Balance(i.thief, "ETH").Sign())
			_, err = i.app.Hot(t.Context(), "ETH", i.tenant)
			require.ErrorIs(t, err, incoming.ErrNotDerived, "the operator is not told to send coins there")
			require.Contains(t, i.log.heard(), string(i.thief))
			i.named(string(i.thief))
		})
	}
}

// The destination of a sweep, of gas and of change is checked by the signer, with keys of
// its own: what the database says of an address proves nothing.
func TestFS02_EditedSweepIsNotSigned(t *testing.T) {
	t.Parallel()
	for name, withRow := range map[string]bool{"gas": false, "sweep": false, "gas in the directory": true, "sweep in the directory": true} {
		purpose, _, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world := i.chains["ETH"]
			p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
			require.NoError(t, err)
			_, err = world.Pay(chain.Address(p.Address), "USDTERC20", dec("500"))
			require.NoError(t, err)
			if withRow { // the directory says that it is ours, with a key of ours
				i.edit(`INSERT INTO cryptopay_addresses SELECT part, ?, 1, 'x', 0, (SELECT max(seq)+1 FROM cryptopay_addresses WHERE part = 'network/ETH'),
					key_index, key_ref, tenant, 'change', created_at, watch_until, lease, claims FROM cryptopay_addresses WHERE use_for = 'hot' AND part = 'network/ETH'`, i.thief)
			}
			_, err = i.db.Exec(`CREATE TRIGGER at_once AFTER INSERT ON cryptopay_intents WHEN NEW.purpose = '` + purpose + `'
				BEGIN UPDATE cryptopay_intents SET to_address = '` + string(i.thief) + `' WHERE part = NEW.part AND id = NEW.id; END`)
			require.NoError(t, err)
			i.work(60)
			var edited int
			require.NoError(t, i.db.Get(&edited, "SELECT count(*) FROM cryptopay_intents WHERE to_address = ? AND attempts > 0", i.thief))
			require.Positive(t, edited)
			require.Contains(t, i.log.heard(), "signer_refuses")
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.Zero(t, world.Balance(i.thief, "ETH").Sign())
		})
	}
}

// No customer is shown an address that our keys do not give: not one of the directory
// that was edited before it was handed out, nor one of a payment that was edited since.
func TestFS02_EditedAddressIsNotShown(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	input := payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}}
	p, err := i.app.Payments.Create(t.Context(), i.tenant, input)
	require.NoError(t, err)
	i.edit("UPDATE cryptopay_payments SET address = ? WHERE id = ?", i.thief, p.ID)
	got, err := i.app.Payments.Get(t.Context(), i.tenant, p.ID)
	require.ErrorIs(t, err, incoming.ErrNotDerived)
	require.Empty(t, got.Address)
	require.Contains(t, i.log.heard(), "payment_address_altered")
	i.named(p.ID)

	other, err := i.app.Payments.Create(t.Context(), i.tenant, input)
	require.NoError(t, err)
	listed := func() map[string]string {
		page, _, _, err := i.app.Payments.List(t.Context(), i.tenant, payment.Filter{})
		require.NoError(t, err)
		out := map[string]string{}
		for _, p := range page {
			out[p.ID] = p.Address
		}
		return out
	}
	require.Empty(t, listed()[p.ID], "a list shows it without an address")
	require.Equal(t, other.Address, listed()[other.ID])

	// Who edits until when an address is watched, too, hides nothing while the payment waits.
	both, err := i.app.Payments.Create(t.Context(), i.tenant, input)
	require.NoError(t, err)
	i.edit("UPDATE cryptopay_payments SET address = ?, watched_until = created_at WHERE id = ?", string(i.thief)+"3", both.ID)
	_, err = i.app.Payments.Get(t.Context(), i.tenant, both.ID)
	require.ErrorIs(t, err, incoming.ErrNotDerived)
	require.Empty(t, listed()[both.ID])
	i.named(both.ID)

	// What comes after its time is over is credited, too.
	i.clock.Advance(25 * time.Hour)
	i.work(3)
	late, err := i.app.Payments.Get(t.Context(), i.tenant, other.ID)
	require.NoError(t, err)
	require.Equal(t, payment.Expired, late.Status)
	i.edit("UPDATE cryptopay_payments SET address = ? WHERE id = ?", string(i.thief)+"2", other.ID)
	_, err = i.app.Payments.Get(t.Context(), i.tenant, other.ID)
	require.ErrorIs(t, err, incoming.ErrNotDerived)
	require.Empty(t, listed()[other.ID])
	i.named(other.ID)

	i.edit("UPDATE cryptopay_addresses SET id = ?, due = 1 WHERE seq = (SELECT min(seq) FROM cryptopay_addresses WHERE tenant = '') AND part = 'network/ETH'", i.thief)
	i.restart() // what it had leased is gone, too
	for range 20 {
		p, err := i.app.Payments.Create(t.Context(), i.tenant, input)
		require.NoError(t, err)
		require.NotEqual(t, string(i.thief), p.Address)
	}
	require.Contains(t, i.log.heard(), "msg=address_altered")

	var free, key string
	require.NoError(t, i.db.QueryRow("SELECT id, key_ref FROM cryptopay_addresses WHERE tenant = '' AND due > 0 ORDER BY seq LIMIT 1").Scan(&free, &key))
	i.edit("UPDATE cryptopay_addresses SET key_ref = 'm/44''/60''/0''/0/0', due = 1 WHERE id = ?", free)
	i.restart()
	for range 20 {
		p, err := i.app.Payments.Create(t.Context(), i.tenant, input)
		require.NoError(t, err)
		require.NotEqual(t, free, p.Address, "nothing could spend what is paid there")
	}
}

// A payment that somebody has edited so that it cannot be read costs that one: the others
// expire, and the operator hears which it is.
func TestFS02_PaymentThatCannotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	var ids []string
	for range 3 {
		p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
		require.NoError(t, err)
		ids = append(ids, p.ID)
	}
	i.edit("UPDATE cryptopay_payments SET price_amount = 'x' WHERE id = ?", ids[0])
	i.clock.Advance(25 * time.Hour)
	i.work(3)
	for _, id := range ids[1:] {
		p, err := i.app.Payments.Get(t.Context(), i.tenant, id)
		require.NoError(t, err)
		require.Equal(t, payment.Expired, p.Status)
	}
	require.Contains(t, i.log.heard(), "row_unreadable")
	require.Contains(t, i.log.heard(), ids[0])
	r, err := i.app.VerifyTenant(t.Context(), i.tenant)
	require.NoError(t, err)
	require.False(t, r.Sound())
	require.True(t, r.Unreadable.Has(ids[0]))
	i.edit("UPDATE cryptopay_payments SET price_amount = '500' WHERE id = ?", ids[0])
	i.clock.Advance(5 * time.Minute)
	i.work(3)
	p, err := i.app.Payments.Get(t.Context(), i.tenant, ids[0])
	require.NoError(t, err)
	require.Equal(t, payment.Expired, p.Status)
}

// An order is paid from the hot address of its own tenant. Somebody who writes another merchant's
// hot address and its key into it has nobody paid with that merchant's coins.
func TestFS02_OrderIsNotPaidFromAnothersAddress(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	name := "other"
	_, err := i.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{ID: name, Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	i.work(2)
	hot, err := i.app.Addresses.Hot(t.Context(), "ETH", name)
	require.NoError(t, err)
	world := i.chains["ETH"]
	for _, code := range []string{"ETH", "USDTERC20"} {
		_, err = world.Fund(hot.Address, code, dec("100"))
		require.NoError(t, err)
	}
	i.work(30)
	was := world.Balance(hot.Address, "USDTERC20")
	for _, both := range []bool{false, true} {
		to := world.Customer(fmt.Sprint("supplier ", both))
		w := i.withdraw("USDTERC20", "10", to)
		_, err = i.app.Withdrawals.Step(t.Context())
		require.NoError(t, err)
		undo := i.rowOf("intents", w.ID)
		if both {
			i.edit("UPDATE cryptopay_intents SET from_address = ?, from_key = ? WHERE id = ?", string(hot.Address), string(hot.Key), w.ID)
		} else {
			i.edit("UPDATE cryptopay_intents SET from_key = ? WHERE id = ?", string(hot.Key), w.ID)
		}
		i.work(20)
		require.True(t, world.Balance(to, "USDTERC20").IsZero())
		require.Equal(t, was.String(), world.Balance(hot.Address, "USDTERC20").String())
		require.True(t, i.finds(w.ID))
		require.Contains(t, i.log.heard(), "msg=order_altered")
		undo()
		i.work(40)
		require.False(t, world.Balance(to, "USDTERC20").IsZero(), "put right, it is paid")
		require.Equal(t, was.String(), world.Balance(hot.Address, "USDTERC20").String())
	}
}

// A coin is spent for the merchant at whose address it lies, whatever its row says of its owner.
func TestFS02_CoinOfAnotherIsNotSpent(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "BTC")
	name, world := "other", i.chains["BTC"]
	_, err := i.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{ID: name, Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	p, err := i.app.Payments.Create(t.Context(), name, payment.CreateInput{Pricing: payment.Pricing{Amount: "5000", Currency: "BTC"}})
	require.NoError(t, err)
	btc, err := chain.MainnetRegistry().Currency("BTC")
	require.NoError(t, err)
	_, err = world.Pay(chain.Address(p.Address), "BTC", btc.Decimal(p.Due))
	require.NoError(t, err)
	i.work(20)
	i.edit("UPDATE cryptopay_coins SET tenant = ? WHERE tenant = ?", i.tenant, name)
	require.Contains(t, i.contradictions(), "{coin ")
	to := world.Customer("supplier")
	w := i.withdraw("BTC", "0.001", to)
	i.work(40)
	require.Equal(t, btc.Decimal(w.Amount).String(), world.Balance(to, "BTC").String(), "it is paid with his own")
	var state string
	require.NoError(t, i.db.Get(&state, "SELECT state FROM cryptopay_coins WHERE address = ?", p.Address))
	require.Equal(t, "free", state)
	require.Contains(t, i.log.heard(), "msg=coin_altered")
	require.Equal(t, btc.Decimal(p.Due).String(), world.Balance(chain.Address(p.Address), "BTC").String())
}
