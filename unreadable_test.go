package cryptopay_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// spoil makes a stored row unreadable, and returns what puts it right. ok is false where
// the database keeps nothing of the table that could be unreadable.
type spoil func(t *storage.Table, r storage.Row) (undo func(), ok bool)

// spoilable are insiders of every database that others can write to.
func spoilable(t *testing.T, f func(t *testing.T, i *insider, s spoil)) {
	t.Parallel()
	sql := func(i *insider) spoil {
		return func(table *storage.Table, r storage.Row) (undo func(), ok bool) {
			for _, c := range table.Columns {
				if c.Kind != storage.Decimal && c.Kind != storage.JSON {
					continue
				}
				const where = " WHERE part = ? AND id = ?"
				name := "cryptopay_" + table.Name
				var was string
				require.NoError(t, i.db.Get(&was, i.db.Rebind("SELECT "+c.Name+" FROM "+name+where), string(r.Partition), r.ID))
				i.edit("UPDATE "+name+" SET "+c.Name+" = '{x'"+where, string(r.Partition), r.ID)
				return func() { i.edit("UPDATE "+name+" SET "+c.Name+" = ?"+where, was, string(r.Partition), r.ID) }, true
			}
			return nil, false
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		i := newInsider(t, "USDTERC20")
		f(t, i, sql(i))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		dsn := onPostgres(t)
		store, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		i := newInsiderOn(t, "USDTERC20", store, "pgx", dsn)
		f(t, i, sql(i))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		dsn := onMariaDB(t)
		store, err := mysql.Open(dsn, mysql.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		i := newInsiderOn(t, "USDTERC20", store, "mysql", dsn)
		f(t, i, sql(i))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		server := testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
		client := redis.NewClient(&redis.Options{Addr: server.Address()})
		t.Cleanup(func() { _ = client.Close() })
		f(t, newInsiderOn(t, "USDTERC20", redisstore.New(client, redisstore.Options{Prefix: "p"}), "", ""), func(table *storage.Table, r storage.Row) (undo func(), ok bool) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(r.Partition))
			key := fmt.Sprintf("p:{%d}:row:%s:%s", h.Sum32()%64, table.Name, r.Partition)
			was, err := client.HGet(t.Context(), key, r.ID).Result()
			require.NoError(t, err)
			require.NoError(t, client.HSet(t.Context(), key, r.ID, was[:len(was)-1]).Err())
			return func() { require.NoError(t, client.HSet(t.Context(), key, r.ID, was).Err()) }, true
		})
	})
}

// skipServer leaves most tests on a server out. They take seconds, and the same is tried on a
// store that needs none.
func skipServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	testenv.Draw(t, 3)
}

// Verify goes on past a row that cannot be read, whatever it is of, and names it. It finds
// what it found before, and takes nothing else for wrong that the row would explain.
func TestFS02_VerifyGoesOnPastUnreadableRows(t *testing.T) {
	spoilable(t, func(t *testing.T, i *insider, s spoil) {
		world, ctx := i.chains["ETH"], t.Context()
		require.NoError(t, i.app.Upgraded(ctx))
		i.withdraw("USDTERC20", "100", world.Customer("supplier"))
		i.work(60)
		i.clock.Advance(2 * time.Hour)
		i.work(1) // seals the journal again
		i.withdraw("USDTERC20", "50", world.Customer("another"))
		_, err := i.app.Withdrawals.Step(ctx)
		require.NoError(t, err)
		_, err = i.app.Payments.Create(ctx, i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
		require.NoError(t, err)
		p, master := storage.Tenant(i.tenant), ledger.Wallet(wallet.Master)
		require.NoError(t, storage.CommitOne(ctx, i.store, storage.Change{ID: "stranger", Partition: p, Post: []ledger.Tx{{
			ID: "settle/stranger", Kind: ledger.KindWithdrawal, Ref: "stranger", At: i.clock.Now(),
			Legs: []ledger.Leg{{Account: master, Asset: "USDTERC20", Delta: -30}, {Account: ledger.Chain("ETH"), Asset: "USDTERC20", Delta: 30}},
		}}}))
		_, err = i.app.Recount(ctx, i.tenant) // nobody counted the stranger's entry
		require.NoError(t, err)
		verify := func() cryptopay.Report {
			reports, err := i.app.Verify(ctx)
			require.NoError(t, err)
			require.Len(t, reports, 1)
			return reports[0]
		}
		for _, name := range []string{payment.Tally.Name, withdrawal.Tally.Name} { // a group behind all others
			require.NoError(t, storage.CommitOne(ctx, i.store, storage.Change{ID: "far " + name, Partition: p, Put: []storage.Row{
				storage.Counters.Row(name+".by/20300101/x", 0, time.Time{}, storage.Counter{Value: 5}),
			}}))
		}
		before := verify()
		require.Len(t, before.Counters, 4, "both groups, and the totals")
		require.Empty(t, before.Unreadable)
		require.Equal(t, []cryptopay.Unexplained{{Kind: "withdrawal", ID: "stranger", Posted: -30}}, before.Unexplained)

		network := storage.Network("ETH")
		sealTables := seal.Tables()
		named := map[string]bool{}
		for _, of := range []struct {
			table *storage.Table
			part  storage.Partition
		}{
			{wallet.TenantRows.Table, storage.System},
			{payment.Payments.Table, p},
			{payment.Deposits.Table, p},
			{withdrawal.Withdrawals.Table, p},
			{storage.Activities.Table, p},
			{treasury.GasFloats.Table, p},
			{treasury.Reservations.Table, p},
			{storage.Counters.Table, p},
			{seal.Seals.Table, p},
			{sealTables[len(sealTables)-1], p}, // the heights
			{outgoing.Intents.Table, network},
			{outgoing.Attempts.Table, network},
		} {
			rows, err := i.store.Find(ctx, storage.Query{Table: of.table, Partition: of.part, Limit: 1000})
			require.NoError(t, err)
			require.NotEmpty(t, rows, of.table.Name)
			for _, r := range append(rows[:min(4, len(rows)-1)], rows[len(rows)-1]) {
				undo, ok := s(of.table, r)
				if !ok {
					break
				}
				got := verify()
				for _, u := range got.Unreadable {
					named[u.Table] = true
					require.Equal(t, []string{of.table.Name, string(of.part), r.ID}, []string{u.Table, string(u.Partition), u.ID})
					require.False(t, got.Sound())
				}
				require.LessOrEqual(t, len(got.Unreadable), 1)
				require.Equal(t, before.Ledger, got.Ledger, "%s %s", of.table.Name, r.ID)
				require.Equal(t, before.Unexplained, got.Unexplained, "%s %s", of.table.Name, r.ID)
				require.Equal(t, before.Contradictions, got.Contradictions, "%s %s", of.table.Name, r.ID)
				if of.table != storage.Counters.Table {
					require.Equal(t, before.Counters, got.Counters, "%s %s", of.table.Name, r.ID)
				}
				undo()
				require.Equal(t, before, verify(), "%s %s", of.table.Name, r.ID)
			}
		}
		want := []string{"activity", "deposits", "intents", "payments", "seals", "tenants", "withdrawals"}
		if i.db == nil { // on Redis any row can be
			want = []string{"activity", "counters", "deposits", "gas_floats", "gas_reservations", "intents", "payments", "seal_heights", "seals", "tenants", "withdrawals"}
		}
		require.Equal(t, want, slices.Sorted(maps.Keys(named)))

		rows, err := i.store.Find(ctx, storage.Query{Table: payment.Payments.Table, Partition: p})
		require.NoError(t, err)
		undo, _ := s(payment.Payments.Table, rows[0])
		found, err := i.app.Recount(ctx, i.tenant)
		require.Len(t, found, 4, "it mends the others")
		var unread storage.RowErrors
		require.NoError(t, unread.Take(err))
		require.Len(t, unread, 1)
		require.Equal(t, rows[0].ID, unread[0].ID)
		undo()
		require.Empty(t, verify().Counters, "the row's own group was left as it was")
	})
}

// A payment and a withdrawal that cannot be read cost only themselves. They are logged once
// a lease, and the host hears of each once.
func TestFS02_HostHearsOfAnUnreadableRowOnce(t *testing.T) {
	spoilable(t, func(t *testing.T, i *insider, s spoil) {
		var heard []string
		configure := i.configure
		i.configure = func(c *cryptopay.Config) {
			configure(c)
			c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) {
				if n.Kind == withdrawal.NoticeUnreadable {
					heard = append(heard, n.Tenant+" "+n.Withdrawal)
				}
			}
			c.Payments.Notify = func(_ context.Context, a payment.Alert) { heard = append(heard, a.Tenant+" "+a.Payment) }
		}
		i.restart()
		world, p := i.chains["ETH"], storage.Tenant(i.tenant)
		create := func() payment.Payment {
			p, err := i.app.Payments.Create(t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
			require.NoError(t, err)
			return p
		}
		w, other := i.withdraw("USDTERC20", "100", world.Customer("supplier")), i.withdraw("USDTERC20", "200", world.Customer("another"))
		first, second := create(), create()
		undoW, ok := s(withdrawal.Withdrawals.Table, storage.Row{Partition: p, ID: w.ID})
		undoP, _ := s(payment.Payments.Table, storage.Row{Partition: p, ID: first.ID})
		i.work(60)
		i.clock.Advance(25 * time.Hour)
		i.work(20)
		require.ElementsMatch(t, heard, map[bool][]string{true: {i.tenant + " " + w.ID, i.tenant + " " + first.ID}, false: {i.tenant + " " + first.ID}}[ok])
		for _, id := range []string{w.ID, first.ID} {
			times := 0
			for _, line := range strings.Split(i.log.heard(), "\n") {
				if strings.Contains(line, "row_unreadable") && strings.Contains(line, "id="+id) {
					times++
				}
			}
			if id == first.ID || ok {
				require.Greater(t, times, 1, "it is told again")
				require.LessOrEqual(t, times, 25, "once a lease")
			}
		}
		got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, other.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, got.Status)
		open, err := i.app.Payments.Get(t.Context(), i.tenant, second.ID)
		require.NoError(t, err)
		require.Equal(t, payment.Expired, open.Status)

		if undoP(); ok {
			undoW()
		}
		i.clock.Advance(5 * time.Minute)
		i.work(60)
		got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, got.Status)
		open, err = i.app.Payments.Get(t.Context(), i.tenant, first.ID)
		require.NoError(t, err)
		require.Equal(t, payment.Expired, open.Status)
	})
}
