package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/internal/restore"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// office is a service on two networks whose store can be copied, and the command over it.
type office struct {
	t      testing.TB
	clock  *cryptopay.ManualClock
	chains map[chain.Network]*sim.Chain
	open   func(ctx context.Context, name string, create bool) (storage.Store, error)
	store  storage.Store
	app    *cryptopay.App
	log    bytes.Buffer
}

// offices runs a test on SQLite and on Postgres.
func offices(t *testing.T, test func(t *testing.T, o *office)) {
	t.Helper()
	for name, stores := range map[string]func(*testing.T) func(context.Context, string, bool) (storage.Store, error){"sqlite": files, "postgres": databases} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "postgres" {
				if testing.Short() {
					t.Skip("a server of its own takes seconds")
				}
				testenv.Draw(t, 3)
			}
			test(t, newOffice(t, stores(t)))
		})
	}
}

func newOffice(t *testing.T, open func(context.Context, string, bool) (storage.Store, error)) *office {
	o := &office{t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), chains: map[chain.Network]*sim.Chain{}, open: open}
	for _, n := range []chain.Network{"BTC", "ETH"} {
		o.chains[n] = sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: 7, Now: o.clock.Now, Finality: 20})
	}
	return o
}

func everyTable() []*storage.Table { return append(tables(), move.Positions.Table) }

// files are stores on SQLite.
func files(t *testing.T) func(context.Context, string, bool) (storage.Store, error) {
	dir := t.TempDir()
	return func(ctx context.Context, name string, create bool) (storage.Store, error) {
		file := filepath.Join(dir, name+".db")
		if create {
			if err := sqlite.Migrate(ctx, file, everyTable()...); err != nil {
				return nil, err
			}
		} else if _, missing := os.Stat(file); missing != nil {
			return nil, nil //nolint:nilerr // there is no such store
		}
		s, err := sqlite.Open(file, sqlite.Options{})
		if err == nil {
			err = s.Open(ctx, everyTable()...)
		}
		return s, err
	}
}

// databases are stores on one Postgres.
func databases(t *testing.T) func(context.Context, string, bool) (storage.Store, error) {
	server := testenv.Postgres(t)
	db, err := sqlx.Open("pgx", server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	made := map[string]bool{}
	return func(ctx context.Context, name string, create bool) (storage.Store, error) {
		if !made[name] {
			if !create {
				return nil, nil
			}
			if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
				return nil, err
			}
			made[name] = true
		}
		if create {
			if err := postgres.Migrate(ctx, server.DSN(name), postgres.Options{}, everyTable()...); err != nil {
				return nil, err
			}
		}
		s, err := postgres.Open(server.DSN(name), postgres.Options{})
		if err == nil {
			err = s.Open(ctx, everyTable()...)
		}
		return s, err
	}
}

// on has the service work on a store, as a process that starts there.
func (o *office) on(name string) {
	o.t.Helper()
	if o.store != nil {
		require.NoError(o.t, o.store.Close())
	}
	var err error
	o.store, err = o.open(o.t.Context(), name, true)
	require.NoError(o.t, err)
	store := o.store
	o.t.Cleanup(func() { _ = store.Close() })
	cfg, err := cryptopaytest.Parts{
		Store: o.store, Clock: o.clock, Chains: o.chains, App: func() *cryptopay.App { return o.app }, Mandates: cryptopay.MandateKeys(cryptopaytest.Key()),
	}.Config()
	require.NoError(o.t, err)
	cfg.Log = slog.New(slog.NewTextHandler(&o.log, nil))
	o.app, err = cryptopay.New(cfg)
	require.NoError(o.t, err)
	require.NoError(o.t, o.app.Open(o.t.Context(), tables()...))
}

func (o *office) run(args ...string) (out string, err error) {
	o.t.Helper()
	var stdout bytes.Buffer
	cmd := operator.Command(func(context.Context) (*operator.House, error) {
		return &operator.House{App: o.app, Tables: tables(), OpenStore: o.open, Keep: []string{"the key file"}}, nil
	})
	cmd.Writer, cmd.ErrWriter = &stdout, &o.log
	err = cmd.Run(o.t.Context(), append([]string{"operator"}, args...))
	return stdout.String(), err
}

func (o *office) ok(args ...string) string {
	o.t.Helper()
	out, err := o.run(args...)
	require.NoError(o.t, err, "%v: %s", args, out)
	return out
}

// says is an answer in JSON.
func says[T any](o *office, want error, args ...string) (v T) {
	o.t.Helper()
	out, err := o.run(append(args, "-json")...)
	require.ErrorIs(o.t, err, want, "%v: %s", args, out)
	require.NoError(o.t, json.Unmarshal([]byte(out), &v), "%s", out)
	return v
}

func (o *office) mine(n int) {
	o.t.Helper()
	for range n {
		o.clock.Advance(time.Minute)
		for _, c := range o.chains {
			c.Mine(1)
		}
		require.NoError(o.t, o.app.Step(o.t.Context()))
	}
}

func (o *office) currency(code string) *chain.Currency {
	c, err := chain.MainnetRegistry().Currency(code)
	require.NoError(o.t, err)
	return c
}

func (o *office) payment(code string) payment.Payment {
	o.t.Helper()
	p, err := o.app.Payments.Create(o.t.Context(), "shop", payment.CreateInput{Pricing: payment.Pricing{Amount: "3000", Currency: code}})
	require.NoError(o.t, err)
	return p
}

func (o *office) pay(p payment.Payment) {
	o.t.Helper()
	_, err := o.chains[chain.Network(p.Currency)].Pay(chain.Address(p.Address), p.Currency, o.currency(p.Currency).Decimal(p.Due))
	require.NoError(o.t, err)
}

func (o *office) withdraw(code, amount, to string) string {
	o.t.Helper()
	d := decimal.RequireFromString(amount)
	w, err := o.app.Withdrawals.Create(o.t.Context(), "shop", withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &d, Currency: code, Address: string(o.chains[chain.Network(code)].Customer(to))},
	})
	require.NoError(o.t, err)
	return w.ID
}

// got is what a customer of a chain has been sent.
func (o *office) got(code, who string) string {
	o.t.Helper()
	c := o.chains[chain.Network(code)]
	d, err := c.Client().(chain.Balancer).Balance(o.t.Context(), code, c.Customer(who))
	require.NoError(o.t, err)
	return d.String()
}

// balances are those of a tenant in whole coins, by account and asset.
func (o *office) balances(tenant string) map[string]decimal.Decimal {
	o.t.Helper()
	all, err := o.store.Balances(o.t.Context(), storage.Tenant(tenant))
	require.NoError(o.t, err)
	out := map[string]decimal.Decimal{}
	for _, b := range all {
		if !b.Zero() {
			out[string(b.Account)+" "+string(b.Asset)] = b.Posted.Decimal(8)
			require.Zero(o.t, b.Held, b.Account)
		}
	}
	return out
}

// trade has a shop with some money on both networks.
func (o *office) trade() {
	o.t.Helper()
	ctx := o.t.Context()
	name := "Shop"
	_, err := o.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: "shop", Settings: wallet.Settings{Name: &name}})
	require.NoError(o.t, err)
	o.mine(1)
	for n, c := range o.chains {
		hot, err := o.app.Hot(ctx, n, "shop")
		require.NoError(o.t, err)
		_, err = c.Fund(hot, string(n), decimal.NewFromInt(1))
		require.NoError(o.t, err)
		o.pay(o.payment(string(n)))
	}
	o.mine(30)
}

// TestL14_RestoreFromAnOldBackup: after a backup payments came in, withdrawals were paid,
// others were accepted and paid, and deposits were forwarded. The backup is restored. Nothing
// is paid twice, what came in is found again, what a person must decide is shown, and in the
// end the books are those that were lost, less what only the lost store knew.
func TestL14_RestoreFromAnOldBackup(t *testing.T) {
	t.Parallel()
	offices(t, func(t *testing.T, o *office) {
		ctx := t.Context()
		o.on("one")
		o.trade()
		o.withdraw("ETH", "0.05", "first")
		o.mine(30)
		due := map[string]string{"ETH": o.withdraw("ETH", "0.1", "supplier"), "BTC": o.withdraw("BTC", "0.01", "supplier")}
		open := map[string]payment.Payment{"ETH": o.payment("ETH"), "BTC": o.payment("BTC")}
		receipt := filepath.Join(t.TempDir(), "receipt")
		o.ok("copy", "-to", "backup", "-reason", "nightly")

		// All of this is lost with the store.
		for _, p := range open {
			o.pay(p)
		}
		o.mine(30)
		paidAfter := []string{o.withdraw("ETH", "0.2", "carrier"), o.withdraw("BTC", "0.02", "carrier")}
		var lost payment.Payment
		for range 20 { // more than are leased at a time
			lost = o.payment("ETH")
		}
		o.pay(lost)
		o.mine(60) // also its forwarding is final
		for _, id := range append(slices.Collect(maps.Values(due)), paidAfter...) {
			w, err := o.app.Withdrawals.Get(ctx, "shop", id)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status, id)
		}
		free := map[string]decimal.Decimal{} // fees of withdrawals that only the lost store knew
		for _, id := range paidAfter {
			w, err := o.app.Withdrawals.Get(ctx, "shop", id)
			require.NoError(t, err)
			free[w.Currency] = w.Fee().Decimal(8)
		}
		lost, err := o.app.Payments.Get(ctx, "shop", lost.ID)
		require.NoError(t, err)
		require.Equal(t, payment.Completed, lost.Status)
		sent := func() []string {
			return []string{o.got("ETH", "supplier"), o.got("BTC", "supplier"), o.got("ETH", "carrier"), o.got("BTC", "carrier")}
		}
		before := sent()
		require.NotContains(t, before, "0")
		o.clock.Advance(2 * time.Hour)
		o.mine(1)
		want := o.balances("shop")
		o.ok("verify")
		o.ok("backup", "check", "-o", receipt)

		o.on("backup")
		var older object
		out, err := o.run("restore", "check", "-receipt", receipt, "-json")
		require.ErrorContains(t, err, "begin a restore")
		require.NoError(t, json.Unmarshal([]byte(out), &older))
		kinds := map[string]bool{}
		for _, f := range older["findings"].([]any) {
			kinds[f.(object)["kind"].(string)] = true
		}
		require.Equal(t, map[string]bool{"nonce": true, "seal": true, "addresses": true, "head": true}, kinds)

		_, err = o.run("restore", "unknown")
		require.ErrorIs(t, err, restore.ErrNoRestore)
		o.ok("restore", "begin", "-reason", "the disk broke", "-dry-run")
		_, ok, err := restore.New(o.app).Restoring(ctx)
		require.NoError(t, err)
		require.False(t, ok)
		o.ok("restore", "begin", "-reason", "the disk broke", "-by", "ann")
		first, _, err := restore.New(o.app).Restoring(ctx)
		require.NoError(t, err)
		o.ok("restore", "withhold", "-count", "40", "-reason", "the disk broke")
		o.on("backup") // all processes start, and send nothing
		o.mine(28)
		require.Equal(t, before, sent())
		o.ok("restore", "begin", "-reason", "again", "-by", "bob")
		again, _, err := restore.New(o.app).Restoring(ctx)
		require.NoError(t, err)
		require.Equal(t, first, again, "it is the same restore")
		for code, p := range open {
			p, err := o.app.Payments.Get(ctx, "shop", p.ID)
			require.NoError(t, err)
			require.Contains(t, []payment.Status{payment.Completed, payment.Confirmed, payment.Sending}, p.Status, code)
		}
		stray := says[list](o, nil, "suspense", "list", "-tenant", "restored")
		require.Len(t, stray, 1, "what came to an address that only the lost store had shown")
		require.Equal(t, lost.Address, stray[0]["address"])

		unknown := says[list](o, nil, "restore", "unknown")
		purposes := map[string]int{}
		for _, u := range unknown {
			require.Equal(t, []any{true, false}, []any{u["final"], u["taken"]}, u)
			require.Contains(t, []any{"shop", "restored"}, u["tenant"], "the tenant of a sweep is who has the address now: %v", u)
			for _, m := range u["moves"].([]any) {
				purposes[m.(object)["for"].(string)]++
			}
		}
		require.Equal(t, 2, purposes["withdrawal"])
		require.Equal(t, 2, purposes["unknown"])
		require.Positive(t, purposes["to ourselves"], "change, and sweeps")

		end := says[object](o, restore.ErrRestoreOpen, "restore", "end", "-reason", "done")
		require.Equal(t, false, end["ended"])
		rows := o.rows()
		_, err = o.run("restore", "take", "-reason", "seen", "-dry-run")
		require.ErrorIs(t, err, restore.ErrUndecided)
		require.Equal(t, rows, o.rows())
		taken := says[list](o, restore.ErrUndecided, "restore", "take", "-reason", "seen", "-by", "ann")
		left := 0
		for _, one := range taken {
			if one["result"] == "left" {
				left++
				require.Contains(t, one["why"], "name the wallet")
				o.ok("restore", "take", "-network", one["network"].(string), "-tx", one["tx"].(string), "-wallet", "master", "-reason", "the merchant says so")
			}
		}
		require.Equal(t, 2, left)
		for _, id := range due {
			w, err := o.app.Withdrawals.Get(ctx, "shop", id)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status)
			require.NotEmpty(t, w.Tx)
		}
		rows = o.rows()
		require.Empty(t, says[list](o, nil, "restore", "take", "-reason", "again"), "nothing is left to take")
		require.Equal(t, rows, o.rows())

		require.Equal(t, true, says[object](o, nil, "restore", "end", "-reason", "done", "-by", "ann")["ended"])
		_, err = o.run("restore", "end", "-reason", "done")
		require.ErrorIs(t, err, restore.ErrNoRestore)
		o.mine(30)
		require.Equal(t, before, sent(), "nothing is paid twice")
		o.ok("verify")
		for code, p := range open {
			p, err := o.app.Payments.Get(ctx, "shop", p.ID)
			require.NoError(t, err)
			require.Equal(t, payment.Completed, p.Status, code)
		}
		for _, n := range []string{"ETH", "BTC"} {
			require.Empty(t, says[list](o, nil, "sweeps", "list", "-network", n, "-tenant", "shop"))
			require.Empty(t, says[list](o, nil, "nonces", "beyond", "-network", n))
		}
		o.clock.Advance(2 * time.Hour)
		o.mine(1)
		// Fees of withdrawals that only the lost store knew stay with the merchant. The deposit
		// that only it knew is in suspense.
		move := func(asset, from, to string, amount decimal.Decimal) {
			want[from+" "+asset], want[to+" "+asset] = want[from+" "+asset].Sub(amount), want[to+" "+asset].Add(amount)
		}
		for asset, fee := range free {
			move(asset, "fees/network", "wallet/master", fee)
		}
		move("ETH", "wallet/master", "chain/ETH", lost.Net.Decimal(8))
		require.Equal(t, texts(want), texts(o.balances("shop")))
		require.Equal(t, map[string]string{"chain/ETH ETH": "-" + lost.Net.Decimal(8).String(), "suspense ETH": lost.Net.Decimal(8).String()}, texts(o.balances("restored")))

		o.withdraw("ETH", "0.3", "carrier")
		o.withdraw("BTC", "0.03", "carrier")
		o.mine(30)
		for i, after := range sent() {
			require.Equal(t, i < 2, before[i] == after, "what is ordered now is paid")
		}
		o.ok("verify")
		var done []string
		for _, op := range says[list](o, nil, "operations") {
			done = append(done, op["kind"].(string))
		}
		for _, kind := range []outgoing.OperationKind{restore.OpBegin, outgoing.OpHalt, restore.OpWithhold, restore.OpTake, outgoing.OpAdoptNonce, outgoing.OpLift, restore.OpEnd} {
			require.Contains(t, done, string(kind))
		}
	})
}

func texts(of map[string]decimal.Decimal) map[string]string {
	out := map[string]string{}
	for account, d := range of {
		out[account] = d.String()
	}
	return out
}

// rows is all that the store holds.
func (o *office) rows() string {
	o.t.Helper()
	var b strings.Builder
	for _, table := range tables() {
		rows, err := o.store.Find(o.t.Context(), storage.Query{Table: table, Limit: 10_000})
		require.NoError(o.t, err)
		for _, r := range rows {
			_, _ = fmt.Fprintf(&b, "%s %s %s %d\n", table.Name, r.Partition, r.ID, r.Version)
		}
	}
	return b.String()
}

// TestCopy: a copy says first what it would bring over, refuses a target that is not empty, is
// equal, and the service goes on there.
func TestCopy(t *testing.T) {
	t.Parallel()
	o := newOffice(t, files(t))
	o.on("one")
	o.trade()
	id := o.withdraw("ETH", "0.1", "supplier")
	_, err := o.run("copy", "-to", "two")
	require.ErrorContains(t, err, "-reason is required")
	would := says[object](o, nil, "copy", "-to", "two", "-reason", "a larger machine", "-dry-run")
	require.Greater(t, would["rows"], 100.0)
	require.Equal(t, false, would["goes_on"])
	two, err := o.open(t.Context(), "two", false)
	require.NoError(t, err)
	require.Nil(t, two, "a dry run makes nothing")

	ctx, cancel := context.WithCancel(t.Context())
	cmd := operator.Command(func(context.Context) (*operator.House, error) {
		return &operator.House{App: o.app, Tables: tables(), OpenStore: func(_ context.Context, name string, create bool) (storage.Store, error) {
			s, err := o.open(t.Context(), name, create)
			return dies{s, cancel}, err
		}}, nil
	})
	cmd.Writer, cmd.ErrWriter = &o.log, &o.log
	require.ErrorContains(t, cmd.Run(ctx, []string{"operator", "copy", "-to", "two", "-reason", "a larger machine"}), "interrupted")

	done := says[object](o, nil, "copy", "-to", "two", "-reason", "a larger machine")
	require.Equal(t, []any{true, true}, []any{done["equal"], done["sound"]})
	require.Contains(t, o.log.String(), "operator_commanded")
	require.Contains(t, o.log.String(), "proving the target: ", "it says how far it is")
	require.Equal(t, true, says[object](o, nil, "copy", "-to", "two", "-reason", "a larger machine")["equal"], "again changes nothing")
	full, err := o.open(t.Context(), "other", true)
	require.NoError(t, err)
	require.NoError(t, storage.CommitOne(t.Context(), full, storage.Change{ID: "x", Partition: storage.System, Put: []storage.Row{
		wallet.TenantRows.Row("someone", 0, time.Time{}, wallet.Tenant{Name: "Someone"}),
	}}))
	require.NoError(t, full.Close())
	for _, more := range [][]string{{"-dry-run"}, nil} {
		_, err = o.run(append([]string{"copy", "-to", "other", "-reason", "x"}, more...)...)
		require.ErrorIs(t, err, move.ErrNotEmpty)
	}
	o.on("two")
	o.mine(28)
	w, err := o.app.Withdrawals.Get(t.Context(), "shop", id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status)
	require.Equal(t, w.Amount.Decimal(8).String(), o.got("ETH", "supplier"))
	o.ok("verify")
}

// dies ends a process after its first commit of records.
type dies struct {
	storage.Store
	cancel context.CancelFunc
}

func (d dies) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := d.Store.Commit(context.WithoutCancel(ctx), changes...)
	if len(changes) > 1 {
		d.cancel()
	}
	return errs
}

// TestL14_TakenBeforeItIsRead: an operator takes what our keys have sent before a process has read
// those blocks. The change that came back is no top-up then: it was in the books.
func TestL14_TakenBeforeItIsRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, files(t))
	o.on("one")
	o.trade()
	o.ok("copy", "-to", "backup", "-reason", "nightly")
	o.withdraw("BTC", "0.02", "carrier")
	o.mine(60)
	o.ok("verify")

	o.on("backup")
	o.ok("restore", "begin", "-reason", "the disk broke")
	o.ok("restore", "withhold", "-count", "40", "-reason", "the disk broke")
	unknown := says[list](o, nil, "restore", "unknown", "-network", "BTC")
	require.NotEmpty(t, unknown)
	for _, u := range unknown {
		o.ok("restore", "take", "-network", "BTC", "-tx", u["tx"].(string), "-wallet", "master", "-reason", "the merchant says so")
	}
	books := func() (out []map[string]string) {
		for _, tenant := range []string{"shop", "restored"} {
			of := o.balances(tenant)
			maps.DeleteFunc(of, func(name string, _ decimal.Decimal) bool { return !strings.HasSuffix(name, " BTC") })
			out = append(out, texts(of))
		}
		return out
	}
	want := books()
	o.mine(30)
	require.Equal(t, want, books(), "reading the blocks books nothing more")
	require.Equal(t, true, says[object](o, nil, "restore", "end", "-reason", "done", "-despite")["ended"])
	o.mine(30)
	o.ok("verify")
	require.Equal(t, want, books())
}

// TestL14_AnotherTenantsOrder: what one tenant's hot address has paid is not another tenant's
// withdrawal, though recipient and amount are the same.
func TestL14_AnotherTenantsOrder(t *testing.T) {
	t.Parallel()
	o := newOffice(t, files(t))
	ctx := t.Context()
	o.on("one")
	o.trade()
	name := "Other"
	_, err := o.app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: "other", Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	order := func(tenant, code string) string {
		amount := decimal.RequireFromString("0.01")
		w, err := o.app.Withdrawals.Create(ctx, tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: code, Address: string(o.chains[chain.Network(code)].Customer("exchange"))},
		})
		require.NoError(t, err)
		return w.ID
	}
	held := map[string]string{}
	for _, n := range []string{"ETH", "BTC"} {
		_, err := o.app.Hot(ctx, chain.Network(n), "other")
		require.NoError(t, err)
		p, err := o.app.Payments.Create(ctx, "other", payment.CreateInput{Pricing: payment.Pricing{Amount: "3000", Currency: n}})
		require.NoError(t, err)
		o.pay(p)
	}
	o.mine(30)
	for _, n := range []string{"ETH", "BTC"} {
		held[n] = order("other", n)
		_, err := o.app.Withdrawals.Hold(ctx, "other", held[n], "ann", "asked")
		require.NoError(t, err)
	}
	o.ok("copy", "-to", "backup", "-reason", "nightly")
	for _, n := range []string{"ETH", "BTC"} {
		order("shop", n)
	}
	o.mine(60)

	o.on("backup")
	o.ok("restore", "begin", "-reason", "the disk broke")
	o.ok("restore", "withhold", "-count", "40", "-reason", "the disk broke")
	o.mine(30)
	paid := 0
	for _, u := range says[list](o, nil, "restore", "unknown") {
		for _, m := range u["moves"].([]any) {
			require.Empty(t, m.(object)["withdrawal"], "%v", u)
			if m.(object)["for"] == "unknown" {
				paid++
			}
		}
	}
	require.Equal(t, 2, paid)
	_, err = o.run("restore", "take", "-reason", "seen")
	require.ErrorIs(t, err, restore.ErrUndecided)
	for n, id := range held {
		w, err := o.app.Withdrawals.Get(ctx, "other", id)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Pending, w.Status, n)
	}

	// Two operators read the list at the same moment, and name wallets of two tenants.
	steps, call := restore.New(o.app), cryptopay.Call{By: "ann", Reason: "the merchant says so"}
	unknown, err := steps.Unknown(ctx, "ETH", nil)
	require.NoError(t, err)
	i := slices.IndexFunc(unknown, func(u restore.Tx) bool {
		return slices.ContainsFunc(u.Moves, func(m restore.Move) bool { return !m.Ours })
	})
	has := func(tenant string) string {
		all, err := o.app.Wallets.Balances(ctx, tenant, wallet.Master)
		require.NoError(t, err)
		return fmt.Sprint(all)
	}
	other := has("other")
	require.NoError(t, steps.Take(ctx, unknown[i], restore.Bearer{Tenant: "shop", Wallet: "master"}, call))
	shop := has("shop")
	require.ErrorContains(t, steps.Take(ctx, unknown[i], restore.Bearer{Tenant: "other", Wallet: "master"}, call), "wallet master of shop")
	require.Equal(t, []string{shop, other}, []string{has("shop"), has("other")}, "it is booked for one of them")
}

// TestL14_NotOlder: a restore of a store that lacks nothing lists nothing, also where somebody
// gave one of our transactions another hash, and ends as it began.
func TestL14_NotOlder(t *testing.T) {
	t.Parallel()
	o := newOffice(t, files(t))
	o.on("one")
	o.trade()
	id := o.withdraw("BTC", "0.02", "carrier")
	btc := o.chains["BTC"]
	for range 20 {
		o.clock.Advance(time.Minute)
		require.NoError(t, o.app.Step(t.Context()))
		if len(btc.Mempool()) > 0 {
			break
		}
	}
	require.NotEmpty(t, btc.Mempool())
	hash, err := btc.Malleate(btc.Mempool()[0])
	require.NoError(t, err)
	o.mine(60)
	w, err := o.app.Withdrawals.Get(t.Context(), "shop", id)
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Completed, hash}, []any{w.Status, w.Tx})
	want := o.balances("shop")

	o.ok("restore", "begin", "-reason", "a drill")
	require.Empty(t, says[list](o, nil, "restore", "unknown"))
	o.ok("restore", "withhold", "-count", "0", "-reason", "a drill")
	require.Empty(t, says[list](o, nil, "restore", "take", "-reason", "a drill"))
	end := says[object](o, nil, "restore", "end", "-reason", "a drill")
	require.Equal(t, []any{true, []any{}, []any{}}, []any{end["ended"], end["left"], end["nonces_adopted"]})
	o.mine(30)
	require.Equal(t, texts(want), texts(o.balances("shop")))
	o.ok("verify")
}
