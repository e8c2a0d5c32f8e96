package cryptopay_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// heard is what a consumer of the host's has written: into the host's own table where the
// store is a SQL database.
type heard struct {
	t     testing.TB
	store storage.Store
	name  string
	fail  func(stream.Event) error // nil = never

	mu   sync.Mutex
	list []line
}

type line struct {
	Partition storage.Partition
	Number    int64
	Kind      string
	Object    string
	Body      stream.Body
}

func listen(t testing.TB, store storage.Store, name string) *heard {
	t.Helper()
	h := &heard{t: t, store: store, name: name}
	if tx, ok := store.(storage.Transactor); ok {
		require.NoError(t, tx.InTx(t.Context(), storage.Tenant("x"), func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE heard_"+name+" (part varchar(100), number bigint, kind varchar(100), object varchar(200))")
			return err
		}))
	}
	return h
}

func (h *heard) consumer(tries int) stream.Consumer {
	return stream.Consumer{Name: h.name, Handle: h.handle, Tries: tries}
}

func (h *heard) handle(ctx context.Context, tx stream.Tx, e stream.Event) error {
	if tx.SQL != nil {
		text := fmt.Sprintf("INSERT INTO heard_%s VALUES ('%s', %d, '%s', '%s')", h.name, e.Partition, e.Number, e.Kind, e.Object)
		if _, err := tx.SQL.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if h.fail != nil {
		if err := h.fail(e); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, line{e.Partition, e.Number, e.Kind, e.Object, e.Body})
	return nil
}

// lines is what was handled of a partition, in the order in which it was.
func (h *heard) lines(p storage.Partition) []line {
	h.t.Helper()
	h.mu.Lock()
	list := slices.Clone(h.list)
	h.mu.Unlock()
	list = slices.DeleteFunc(list, func(l line) bool { return l.Partition != p })
	tx, ok := h.store.(storage.Transactor)
	if !ok || !strings.HasPrefix(string(p), string(storage.Tenant(""))) {
		return list // it had no transaction
	}
	bodies := map[int64]stream.Body{}
	for _, l := range list {
		bodies[l.Number] = l.Body
	}
	var out []line
	require.NoError(h.t, tx.InTx(h.t.Context(), p, func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT part, number, kind, object FROM heard_"+h.name+" ORDER BY number")
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // a test's end
		for rows.Next() {
			var l line
			if err := rows.Scan(&l.Partition, &l.Number, &l.Kind, &l.Object); err != nil {
				return err
			}
			if l.Body = bodies[l.Number]; l.Partition == p {
				out = append(out, l)
			}
		}
		return rows.Err()
	}))
	return out
}

// whole requires that each event of a partition was handled once.
func (h *heard) whole(p storage.Partition) []line {
	h.t.Helper()
	lines := h.lines(p)
	for i, l := range lines {
		require.EqualValues(h.t, i+1, l.Number, "%s: event %d of %s", h.name, i+1, p)
	}
	s, _, ok, err := storage.Streams.One(h.t.Context(), h.store, p, storage.StreamID)
	require.NoError(h.t, err)
	require.True(h.t, ok)
	require.Len(h.t, lines, int(s.Last), "%s has heard of all", h.name)
	return lines
}

// business is a payment that is paid, one that is paid too late, and a withdrawal.
func (h *host) business() (paid, late, payout string) {
	h.t.Helper()
	ctx := h.t.Context()
	c, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(h.t, err)
	minutes := 5
	ids := make([]string, 2)
	for i := range ids {
		p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}, OrderID: fmt.Sprint("order ", i), ExpiryMinutes: &minutes,
		})
		require.NoError(h.t, err)
		ids[i] = p.ID
	}
	_, err = h.chains["ETH"].Pay(chain.Address(h.payment(ids[0]).Address), "ETH", c.Decimal(h.payment(ids[0]).Due))
	require.NoError(h.t, err)
	h.mine(60)
	_, err = h.chains["ETH"].Pay(chain.Address(h.payment(ids[1]).Address), "ETH", c.Decimal(h.payment(ids[1]).Due))
	require.NoError(h.t, err)
	h.mine(40)
	w, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier"))},
	})
	require.NoError(h.t, err)
	h.mine(60)
	return ids[0], ids[1], w.ID
}

// onEveryStore runs a test on a store of each kind.
func onEveryStore(t *testing.T, test func(t *testing.T, store storage.Store)) {
	t.Helper()
	run := func(name string, server bool, open func(t *testing.T) storage.Store) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if server {
				skipServer(t)
			}
			store := open(t)
			t.Cleanup(func() { _ = store.Close() })
			test(t, store)
		})
	}
	run("memory", false, func(*testing.T) storage.Store { return memory.New() })
	run("sqlite", false, func(t *testing.T) storage.Store {
		store, _ := onSQLite(t)
		return store
	})
	run("postgres", true, func(t *testing.T) storage.Store {
		dsn := onPostgres(t)
		store, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		return store
	})
	run("mariadb", true, func(t *testing.T) storage.Store {
		dsn := onMariaDB(t)
		store, err := mysql.Open(dsn, mysql.Options{})
		require.NoError(t, err)
		return store
	})
	run("redis", true, func(t *testing.T) storage.Store {
		client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction").Address()})
		t.Cleanup(func() { _ = client.Close() })
		return redisstore.New(client, redisstore.Options{Prefix: "p"})
	})
}

// E01: a host hears of every change once and in order, also one that listens later, and
// what it hears is what is stored.
func TestFE01_HostHearsEveryChange(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h := newHostOn(t, store, 3, "ETH")
		orders, later := listen(t, store, "orders"), listen(t, store, "later")
		h.configure = func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{orders.consumer(0)} }
		h.restart()
		h.step()
		hot, err := h.app.Addresses.Hot(t.Context(), "ETH", h.tenant)
		require.NoError(t, err)
		_, err = h.chains["ETH"].Fund(hot.Address, "ETH", dec("1"))
		require.NoError(t, err)
		h.mine(40)
		paid, late, payout := h.business()
		w, err := h.app.Wallets.Create(t.Context(), h.tenant, wallet.CreateInput{Name: "sub", ExternalID: "sub-1"})
		require.NoError(t, err)
		_, err = h.app.Wallets.CreateTransfer(t.Context(), h.tenant, wallet.TransferInput{
			WalletID: w.ID, Direction: wallet.ToSub, Currency: "ETH", Amount: dec("0.01"),
		})
		require.NoError(t, err)
		h.step()

		tenant := storage.Tenant(h.tenant)
		lines := orders.whole(tenant)
		payments, deposits, withdrawals, transfers := map[string][]payment.Status{}, map[string]payment.DepositChanged{}, []withdrawal.Status{}, 0
		for _, l := range lines {
			switch b := l.Body.(type) {
			case payment.Changed:
				seen := payments[b.PaymentID]
				if b.From == "" {
					require.Empty(t, seen)
				} else {
					require.Equal(t, b.From, seen[len(seen)-1], "each change begins where the last ended")
				}
				payments[b.PaymentID] = append(seen, b.To)
				require.Equal(t, b.PaymentID, l.Object)
			case payment.DepositChanged:
				deposits[b.DepositID] = b
			case withdrawal.Changed:
				require.Equal(t, payout, b.WithdrawalID)
				withdrawals = append(withdrawals, b.To)
			case withdrawal.WaitChanged:
			case wallet.TransferChanged:
				transfers++
				require.Equal(t, "0.01", b.Amount)
			default:
				require.Failf(t, "an event without a body", "%+v", l)
			}
		}
		require.Equal(t, []payment.Status{payment.Waiting, payment.Confirming, payment.Confirmed, payment.Completed},
			slices.DeleteFunc(payments[paid], func(s payment.Status) bool { return s == payment.Sending }))
		require.Equal(t, []payment.Status{payment.Waiting, payment.Expired}, payments[late])
		require.Equal(t, []withdrawal.Status{withdrawal.Pending, withdrawal.Processing, withdrawal.Completed}, withdrawals)
		require.Equal(t, 1, transfers)
		suspense, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
		require.NoError(t, err)
		require.Len(t, suspense, 1, "what came late")
		told, ok := deposits[suspense[0].ID]
		require.True(t, ok, "I25: the host was told of it")
		require.Equal(t, payment.InSuspense, told.Booking)
		require.Equal(t, payment.RoleUnmatched, told.Role)
		require.Equal(t, suspense[0].Exact.String(), told.Amount)
		require.Equal(t, incoming.Final, told.State)

		h.configure = func(c *cryptopay.Config) {
			c.Consumers = []stream.Consumer{orders.consumer(0), later.consumer(0)}
		}
		h.restart()
		h.step()
		require.Len(t, later.whole(tenant), len(lines), "one that is new hears of everything")
		require.Len(t, orders.whole(tenant), len(lines), "one that is known hears nothing twice")
		states, err := h.app.Events.States(t.Context())
		require.NoError(t, err)
		require.Len(t, states, 2)
		for _, s := range states {
			require.Zero(t, s.Behind)
		}

		n := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range h.app.Subscribe(ctx, h.tenant, 2) {
			require.NoError(t, err)
			require.EqualValues(t, n+3, e.Number)
			require.Equal(t, lines[n+2].Body, e.Body)
			if n++; n == len(lines)-2 {
				cancel()
			}
		}
		h.sound()
	})
}

// E01: an event that a consumer cannot take holds up its object alone, is shown, and is
// handled once it can be.
func TestFE01_EventThatFails(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h := newHostOn(t, store, 4, "ETH")
		orders, crm := listen(t, store, "orders"), listen(t, store, "crm")
		h.configure = func(c *cryptopay.Config) {
			c.Consumers = []stream.Consumer{crm.consumer(3), orders.consumer(0)}
		}
		h.restart()
		h.step()
		hot, err := h.app.Addresses.Hot(t.Context(), "ETH", h.tenant)
		require.NoError(t, err)
		_, err = h.chains["ETH"].Fund(hot.Address, "ETH", dec("1"))
		require.NoError(t, err)
		h.mine(40)
		down, tried := true, 0
		poison := ""
		crm.fail = func(e stream.Event) error {
			b, ok := e.Body.(payment.Changed)
			if ok && b.OrderID == "order 0" && b.From == "" {
				poison = b.PaymentID
				return nil
			}
			if e.Object != poison || !down {
				return nil
			}
			if tried++; tried%2 == 0 {
				panic("crm")
			}
			return errors.New("crm: no such order")
		}
		paid, late, _ := h.business()
		tenant := storage.Tenant(h.tenant)
		all := orders.whole(tenant)
		require.Equal(t, 3, tried, "it was tried as often as it says")
		heardBy := func() (of map[string]int) {
			of = map[string]int{}
			for _, l := range crm.lines(tenant) {
				of[l.Object]++
			}
			return of
		}
		want := map[string]int{}
		for _, l := range all {
			want[l.Object]++
		}
		got := heardBy()
		require.Equal(t, 1, got[paid], "its creation")
		require.Equal(t, want[late], got[late], "others go on")
		dead, err := h.app.Events.Dead(t.Context(), tenant, "crm", 0, 100)
		require.NoError(t, err)
		require.Len(t, dead, want[paid]-1)
		require.True(t, slices.IsSortedFunc(dead, func(a, b stream.DeadLetter) int { return int(a.Number - b.Number) }))
		require.Contains(t, dead[0].Error, "crm")

		_, err = h.app.Events.Retry(t.Context(), tenant, "crm", paid)
		require.ErrorContains(t, err, "crm")
		down = false
		n, err := h.app.Events.Retry(t.Context(), tenant, "crm", paid)
		require.NoError(t, err)
		require.Equal(t, want[paid]-1, n)
		require.Equal(t, want, heardBy(), "each once")
		_, err = h.app.Events.Retry(t.Context(), tenant, "crm", paid)
		require.ErrorIs(t, err, stream.ErrNoLetter)
		h.sound()
	})
}

// E01: what all have handled is forgotten after its time, and nothing before; a consumer
// that is gone holds events until it is retired.
func TestFE01_EventsAreForgotten(t *testing.T) {
	t.Parallel()
	h := newHost(t, 5, "ETH")
	orders := listen(t, h.store, "orders")
	gone := stream.Consumer{Name: "gone", Handle: func(context.Context, stream.Tx, stream.Event) error { return nil }}
	h.configure = func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{orders.consumer(0), gone} }
	h.restart()
	h.configure = func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{orders.consumer(0)} }
	h.restart()
	tenant := storage.Tenant(h.tenant)
	_, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
	require.NoError(t, err)
	kept := func() int {
		rows, err := h.store.Find(t.Context(), storage.Query{Table: storage.Events.Table, Partition: tenant})
		require.NoError(t, err)
		return len(rows)
	}
	h.mine(1)
	h.clock.Advance(31 * 24 * time.Hour)
	h.mine(2)
	require.Equal(t, 2, kept(), "made and expired; one consumer has seen nothing")
	require.ErrorContains(t, h.app.Events.Retire(t.Context(), "orders"), "leave it out")
	require.NoError(t, h.app.Events.Retire(t.Context(), "gone"))
	h.clock.Advance(time.Hour)
	h.mine(1)
	require.Equal(t, 1, kept(), "the younger stays for its month")
	h.clock.Advance(31 * 24 * time.Hour)
	h.mine(1)
	require.Zero(t, kept())
	require.Len(t, orders.lines(tenant), 2)
	_, err = h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
	require.NoError(t, err)
	h.step()
	require.Len(t, orders.whole(tenant), 3, "numbers go on")
}

// E01, C01: two processes with the same consumer, and one without it, handle each event
// once on a SQL database, side by side.
func TestFE01_C01_ConsumersOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h := newHostOn(t, store, 6, "ETH")
		h.clock.Advance(time.Since(h.clock.Now())) // Run compares it with the database's
		orders := listen(t, store, "orders")
		listening := func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{orders.consumer(0)} }
		apps := []*cryptopay.App{h.beside(listening), h.beside(listening), h.app}
		var tenants []string
		for i := range 4 {
			name := fmt.Sprint("shop ", i)
			tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
			require.NoError(t, err)
			tenants = append(tenants, tenant.ID)
		}
		h.step()
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, app := range apps {
			all.Go(func() {
				if err := app.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		const each = 15
		for i := range each {
			for k, tenant := range tenants {
				_, err := apps[(i+k)%3].Payments.Create(ctx, tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
				require.NoError(t, err)
			}
		}
		require.Eventually(t, func() bool {
			h.clock.Advance(time.Since(h.clock.Now()))
			for _, tenant := range tenants {
				if len(orders.lines(storage.Tenant(tenant))) < each {
					return false
				}
			}
			return true
		}, 5*time.Minute, 50*time.Millisecond)
		stop()
		all.Wait()
		for _, tenant := range tenants {
			lines := orders.lines(storage.Tenant(tenant))
			if _, once := store.(storage.Transactor); once {
				require.Len(t, lines, each, "each once")
			}
			slices.SortStableFunc(lines, func(a, b line) int { return int(a.Number - b.Number) })
			lines = slices.CompactFunc(lines, func(a, b line) bool { return a.Number == b.Number })
			require.Len(t, lines, each)
		}
	})
}

// E01: on a database with one writer a consumer that writes through the App, and not through
// its transaction, would wait for itself. It fails at once, and is told what to do.
func TestFE01_ConsumerThatWouldWaitForItself(t *testing.T) {
	t.Parallel()
	store, _ := onSQLite(t)
	h := newHostOn(t, store, 8, "ETH")
	in := payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}}
	h.configure = func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{{Name: "again", Tries: 1, Handle: func(ctx context.Context, tx stream.Tx, e stream.Event) error {
			if b, made := e.Body.(payment.Changed); !made || b.From != "" {
				return nil
			}
			_, err := h.app.Payments.Create(ctx, h.tenant, in)
			return err
		}}}
	}
	h.restart()
	_, err := h.app.Payments.Create(t.Context(), h.tenant, in)
	require.NoError(t, err)
	began := time.Now()
	h.step()
	require.Less(t, time.Since(began), 10*time.Second)
	dead, err := h.app.Events.Dead(t.Context(), storage.Tenant(h.tenant), "again", 0, 100)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Contains(t, dead[0].Error, "use the transaction's own store")
	_, count, _, err := h.app.Payments.List(t.Context(), h.tenant, payment.Filter{})
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
}

// E01: who subscribes to what is not there, or goes on from a number whose next events are
// forgotten, is told so. It would else wait for ever, or go on as if nothing were missing.
func TestFE01_SubscribersThatWouldMissEvents(t *testing.T) {
	t.Parallel()
	h := newHost(t, 8, "ETH")
	first := func(events iter.Seq2[stream.Event, error]) (stream.Event, error) {
		for e, err := range events {
			return e, err
		}
		return stream.Event{}, errors.New("it has ended")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := first(h.app.Subscribe(ctx, "no-such", 0))
	require.ErrorIs(t, err, wallet.ErrNoTenant)
	_, err = first(h.app.Subscribe(ctx, h.tenant, 0, payment.Changed{}.EventKind(), "payment_changed"))
	require.ErrorContains(t, err, `no event is of kind "payment_changed"`)
	_, err = first(h.app.SubscribeNetwork(ctx, "ETHEREUM", 0))
	require.ErrorIs(t, err, chain.ErrCurrency)
	_, err = first(h.app.Subscribe(ctx, h.tenant, 1))
	require.ErrorIs(t, err, stream.ErrMissed)

	create := func() {
		_, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
		require.NoError(t, err)
	}
	for range 3 {
		create()
	}
	e, err := first(h.app.Subscribe(ctx, h.tenant, 1))
	require.NoError(t, err)
	require.EqualValues(t, 2, e.Number)
	h.clock.Advance(40 * 24 * time.Hour)
	h.mine(2)
	create()
	_, err = first(h.app.Subscribe(ctx, h.tenant, 1))
	require.ErrorIs(t, err, stream.ErrMissed)
	e, err = first(h.app.Subscribe(ctx, h.tenant, 0))
	require.NoError(t, err)
	require.Greater(t, e.Number, int64(3))
	_, err = first(h.app.Subscribe(ctx, h.tenant, e.Number-1))
	require.NoError(t, err)
}

func TestConsumersThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, 7, "ETH")
	take := func(context.Context, stream.Tx, stream.Event) error { return nil }
	for _, c := range []struct {
		list []stream.Consumer
		says string
	}{
		{[]stream.Consumer{{Name: "a"}}, `consumer "a" has no Handle`},
		{[]stream.Consumer{{Handle: take}}, "a Name has 1 to 60"},
		{[]stream.Consumer{{Name: strings.Repeat("x", 61), Handle: take}}, "a Name has 1 to 60"},
		{[]stream.Consumer{{Name: "a b", Handle: take}}, "a Name has 1 to 60"},
		{[]stream.Consumer{{Name: "a", Handle: take}, {Name: "a", Handle: take}}, `two consumers have the name "a"`},
		{[]stream.Consumer{{Name: "a", Handle: take, Tries: -1}}, "must not be negative"},
	} {
		cfg := h.app.Config()
		cfg.Key, cfg.Consumers = hostKey, c.list
		_, err := cryptopay.New(cfg)
		require.ErrorContains(t, err, c.says)
	}
}
