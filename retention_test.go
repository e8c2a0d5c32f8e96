package cryptopay_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// events counts a tenant's outbox by status.
func (h *host) events(tenant string) map[webhook.Status]int {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 5000})
	require.NoError(h.t, err)
	out := map[webhook.Status]int{}
	for _, r := range rows {
		out[webhook.Events.Value(r).Status]++
	}
	return out
}

// all counts the rows of every table but the outbox and first responses.
func (h *host) counts() map[string]int64 {
	h.t.Helper()
	out := map[string]int64{}
	for _, t := range cryptopay.Tables() {
		if t == webhook.Events.Table || t == storage.OnceTable.Table {
			continue
		}
		n, err := h.store.Count(h.t.Context(), storage.Query{Table: t})
		require.NoError(h.t, err)
		out[t.Name] = n
	}
	return out
}

// put writes an outbox row as a webhook left it.
func (h *host) put(tenant, object string, e webhook.Event) {
	h.t.Helper()
	e.Object, e.Seq = object, 1
	c := storage.Change{ID: "put " + object, Partition: storage.Tenant(tenant)}
	webhook.Put(&c, webhook.Events.Row(object+"/000001", 0, time.Time{}, e))
	require.NoError(h.t, h.store.Commit(h.t.Context(), c)[0])
}

// X03: years of webhooks go in bounded pieces, and nothing that lives goes with
// them; what is kept proves the books and lets a deep fork happen.
func TestX03_RetentionTouchesNothingThatLives(t *testing.T) {
	t.Parallel()
	h := newHost(t, 33, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Retention = cryptopay.Retention{Events: 30 * 24 * time.Hour, FailedEvents: 90 * 24 * time.Hour, Stream: -1}
	}
	h.restart()
	pay := func(reference string, late bool) payment.Payment {
		p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "50", Currency: "USDTERC20"}, OrderID: reference, CallbackURL: "https://shop.example/" + reference,
		})
		require.NoError(t, err)
		if !late {
			c, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", c.Decimal(p.Due))
			require.NoError(t, err)
		}
		return p
	}
	counts := func() map[string]int64 { // the sweep that waits is tried each hour, and tells of it; a day's webhooks have counters
		all := h.counts()
		require.Positive(t, all["stream_events"])
		delete(all, "stream_events")
		delete(all, "counters")
		return all
	}
	h.step()
	done := pay("done", false)
	h.mine(30)
	require.Equal(t, payment.Completed, h.payment(done.ID).Status, "its sweep waits for gas, and will still be told")
	delivered := h.events(h.tenant)[webhook.StatusDelivered]
	require.Positive(t, delivered)

	h.inbox.fail = func(d webhook.Delivery) bool { return d.URL == "https://shop.example/deaf" }
	pay("deaf", false)
	h.mine(3)
	h.clock.Advance(6 * time.Hour)
	for range 10 {
		h.clock.Advance(5 * time.Hour)
		h.step()
	}
	failed := h.events(h.tenant)[webhook.StatusFailed]
	require.Positive(t, failed)
	before := counts()

	// Not old enough yet.
	h.clock.Advance(20 * 24 * time.Hour)
	h.step()
	require.GreaterOrEqual(t, h.events(h.tenant)[webhook.StatusDelivered], delivered)
	require.Equal(t, before, counts())

	// One that is young, one that is old and was delivered late, one that waits.
	now := h.clock.Now()
	h.put(h.tenant, "late", webhook.Event{Status: webhook.StatusDelivered, Created: now.Add(-400 * 24 * time.Hour), Done: now})
	h.put(h.tenant, "waits", webhook.Event{Status: webhook.StatusPending, Created: now.Add(-400 * 24 * time.Hour)})
	for i := range 1200 { // more than one piece
		h.put(h.tenant, fmt.Sprint("many", i), webhook.Event{Status: webhook.StatusDelivered, Created: now.Add(-20 * 24 * time.Hour), Done: now.Add(-20 * 24 * time.Hour)})
	}
	h.clock.Advance(11 * 24 * time.Hour)
	h.step()
	got := h.events(h.tenant)
	require.Equal(t, 1, got[webhook.StatusDelivered], "the one that was delivered late")
	require.Equal(t, 1, got[webhook.StatusPending])
	require.Equal(t, failed, got[webhook.StatusFailed], "failed ones are kept longer")
	require.Equal(t, before, counts())
	h.sound()

	h.clock.Advance(70 * 24 * time.Hour)
	h.step()
	require.Zero(t, h.events(h.tenant)[webhook.StatusFailed])
	require.Zero(t, h.events(h.tenant)[webhook.StatusDelivered])
	require.Equal(t, 1, h.events(h.tenant)[webhook.StatusPending], "what waits is never forgotten")
	require.Equal(t, before, counts())
	h.sound()

	// The payment whose webhooks are gone goes on, and tells what is new.
	hot, err := h.app.Addresses.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	_, err = h.chains["ETH"].Fund(hot.Address, "ETH", dec("1"))
	require.NoError(t, err)
	h.mine(30) // the gas has arrived
	h.clock.Advance(time.Hour)
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(done.ID).Status)
	require.Positive(t, h.events(h.tenant)[webhook.StatusDelivered])
	h.sound()
}

// X03: by default nothing is forgotten, and less than a day is refused.
func TestX03_RetentionIsOffByDefault(t *testing.T) {
	t.Parallel()
	h := newHost(t, 34, "ETH")
	old := h.clock.Now().Add(-10 * 365 * 24 * time.Hour)
	h.put(h.tenant, "old", webhook.Event{Status: webhook.StatusDelivered, Created: old, Done: old})
	h.clock.Advance(10 * 365 * 24 * time.Hour)
	h.step()
	require.Equal(t, 1, h.events(h.tenant)[webhook.StatusDelivered])
	for _, w := range h.app.Workers() {
		require.NotEqual(t, "retention", w.Name)
	}
	cfg := h.app.Config()
	cfg.Key, cfg.Retention = make([]byte, 32), cryptopay.Retention{Events: time.Hour}
	_, err := cryptopay.New(cfg)
	require.ErrorContains(t, err, "Retention")
}

// X03: every tenant's turn comes, a piece at a time, and a row that is in use
// again between reading and dropping stays.
func TestX03_RetentionIsBounded(t *testing.T) {
	t.Parallel()
	h := newHost(t, 35, "ETH")
	h.configure = func(c *cryptopay.Config) { c.Retention.Events = 24 * time.Hour }
	h.restart()
	old := h.clock.Now().Add(-48 * time.Hour)
	var tenants []string
	for i := range 450 {
		name := fmt.Sprint("t", i)
		tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
		require.NoError(t, err)
		tenants = append(tenants, tenant.ID)
		for k := range 3 {
			h.put(tenant.ID, fmt.Sprint("e", k), webhook.Event{Status: webhook.StatusSkipped, Created: old, Done: old})
		}
	}
	for k := range 1200 {
		h.put(tenants[7], fmt.Sprint("many", k), webhook.Event{Status: webhook.StatusSkipped, Created: old, Done: old})
	}
	var worker cryptopay.Worker
	for _, w := range h.app.Workers() {
		if w.Name == "retention" {
			worker = w
		}
	}
	left, steps := 3*len(tenants)+1200, 0
	for ; ; steps++ {
		n, err := worker.Step(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, n, 2*500)
		if n == 0 {
			break
		}
		left -= n
	}
	require.Zero(t, left)
	require.GreaterOrEqual(t, steps, 3)
	for _, tenant := range tenants {
		require.Empty(t, h.events(tenant))
	}
}

// raced is a store where somebody acts between what retention read and what it
// drops.
type raced struct {
	storage.Store
	act func()
}

func (r *raced) Commit(ctx context.Context, changes ...storage.Change) []error {
	if act := r.act; act != nil && len(changes) > 0 && strings.HasPrefix(changes[0].ID, "retain/") {
		r.act = nil
		act()
	}
	return r.Store.Commit(ctx, changes...)
}

// X03: a webhook that is replayed while its row is being purged stays, and is
// delivered.
func TestX03_RetentionLosesToAReplay(t *testing.T) {
	t.Parallel()
	h := newHost(t, 36, "ETH")
	r := &raced{}
	h.configure = func(c *cryptopay.Config) {
		c.Retention.FailedEvents = 24 * time.Hour
		r.Store, c.Store = c.Store, r
	}
	h.restart()
	old := h.clock.Now().Add(-48 * time.Hour)
	h.put(h.tenant, "again", webhook.Event{
		Status: webhook.StatusFailed, Created: old, Done: old, URL: "https://shop.example/hook", Body: "{}",
	})
	r.act = func() {
		ok, err := h.app.Webhooks.Replay(t.Context(), h.tenant, "again/000001")
		require.NoError(t, err)
		require.True(t, ok)
	}
	h.step()
	require.Nil(t, r.act)
	require.Equal(t, map[webhook.Status]int{webhook.StatusDelivered: 1}, h.events(h.tenant))
}

// TestFP01_TenantsArePurgedAndSealedTogether: what is dropped, and what is sealed, is committed
// for many tenants at once.
func TestFP01_TenantsArePurgedAndSealedTogether(t *testing.T) {
	t.Parallel()
	commits := map[int]int{}
	for _, n := range []int{1, 60} {
		h := newHost(t, 38, "ETH")
		counts := &failing.Store{Counts: func(c failing.Call) bool { return c.Changes != nil }}
		h.configure = func(c *cryptopay.Config) {
			c.Retention.Events = 24 * time.Hour
			counts.Store, c.Store = c.Store, counts
		}
		h.restart()
		h.step()
		old := h.clock.Now().Add(-48 * time.Hour)
		var ids []string
		for i := range n {
			name := fmt.Sprint("t", i)
			tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
			require.NoError(t, err)
			ids = append(ids, tenant.ID)
			h.put(tenant.ID, "e", webhook.Event{Status: webhook.StatusSkipped, Created: old, Done: old})
			h.give(tenant.ID)
		}
		h.clock.Advance(2 * time.Hour)
		for _, w := range h.app.Workers() {
			if w.Name != "retention" && w.Name != "seals" {
				continue
			}
			counts.Calls = 0
			for worked := 1; worked > 0; {
				var err error
				worked, err = w.Step(t.Context())
				require.NoError(t, err)
			}
			commits[n] += counts.Calls
		}
		for _, id := range ids {
			require.Empty(t, h.events(id))
			s, ok, err := h.app.Seal(t.Context(), id, 0)
			require.NoError(t, err)
			require.True(t, ok)
			require.EqualValues(t, 1, s.Number)
		}
	}
	require.LessOrEqual(t, commits[60], commits[1]+8, "commits: %v", commits)
}

// lockedFor is a store in which another process has one partition locked: what does not wait
// is told so.
type lockedFor struct {
	storage.Store
	p storage.Partition
}

func (l *lockedFor) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		if errs[i] = storage.ErrBusy; !c.NoWait || c.Partition != l.p {
			errs[i] = l.Store.Commit(ctx, c)[0]
		}
	}
	return errs
}

// TestFP01_LockedTenantIsSealedWithTheOthers: a tenant whose partition another process has
// locked is waited for, and the others are sealed before him or after him.
func TestFP01_LockedTenantIsSealedWithTheOthers(t *testing.T) {
	t.Parallel()
	h := newHost(t, 39, "ETH")
	locked, said := &lockedFor{}, &alarms{}
	h.configure = func(c *cryptopay.Config) {
		locked.Store, c.Store = c.Store, locked
		c.Log = slog.New(slog.NewTextHandler(said, nil))
	}
	h.restart()
	h.step()
	var ids []string
	for i := range 9 {
		name := fmt.Sprint("t", i)
		tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
		require.NoError(t, err)
		ids = append(ids, tenant.ID)
		h.give(tenant.ID)
	}
	locked.p = storage.Tenant(ids[4])
	h.clock.Advance(2 * time.Hour)
	for _, w := range h.app.Workers() {
		for worked := 1; w.Name == "seals" && worked > 0; {
			var err error
			worked, err = w.Step(t.Context())
			require.NoError(t, err)
		}
	}
	for _, id := range ids {
		s, ok, err := h.app.Seal(t.Context(), id, 0)
		require.NoError(t, err)
		require.True(t, ok, id)
		require.EqualValues(t, 1, s.Number)
		require.Contains(t, said.heard(), fmt.Sprintf("hash=%x", s.Hash))
	}
	require.Equal(t, len(ids), strings.Count(said.heard(), "journal_sealed"), "what is logged is sealed: the log is proof of it")
}

// give posts something to a tenant's journal.
func (h *host) give(tenant string) {
	h.t.Helper()
	require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{ID: "give", Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
		ID: "give", Kind: ledger.KindAdjustment, At: h.clock.Now(), Legs: []ledger.Leg{
			{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -100}, {Account: ledger.Wallet(wallet.Master), Asset: "ETH", Delta: 100},
		},
	}}}))
}
