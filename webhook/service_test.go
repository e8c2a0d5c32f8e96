package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// TestH08_Schedule walks minute by minute, a new process each minute.
func TestH08_Schedule(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		sec := w.setup("a")
		row := w.emit("a", "p1", 1, "", map[string]int{"n": 1})
		w.answer = fails
		var at []int
		for minute := range 400 {
			w.now = start.Add(time.Duration(minute) * time.Minute)
			if minute%7 == 0 {
				w.restart()
			}
			before := len(w.sent)
			w.step()
			if len(w.sent) > before {
				at = append(at, minute)
				d := w.sent[len(w.sent)-1]
				require.Equal(t, fmt.Sprint(len(at)), d.Header.Get(webhook.HeaderAttempt))
				require.Equal(t, row.ID, d.Header.Get(webhook.HeaderID))
				require.Equal(t, fmt.Sprint(w.now.Unix()), d.Header.Get(webhook.HeaderTimestamp))
				require.Equal(t, w.sent[0].Body, d.Body)
				require.True(t, w.verifies(d, sec))
			}
		}
		require.Equal(t, []int{0, 1, 6, 21, 81, 321}, at)
		e := w.event("a", row.ID)
		require.Equal(t, webhook.StatusFailed, e.Status)
		require.Equal(t, 6, e.Attempts)
		require.Equal(t, 500, e.Response)
		require.Equal(t, start.Add(321*time.Minute), e.Done)
		require.Equal(t, 1, strings.Count(w.logs.String(), "webhook_failed_for_good"))

		// It then stays, until it is replayed: the whole schedule again.
		w.now = w.now.AddDate(1, 0, 0)
		require.Zero(t, w.step())
		found, err := w.svc.Replay(t.Context(), "a", row.ID)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 1, w.step())
		require.Equal(t, "1", w.sent[len(w.sent)-1].Header.Get(webhook.HeaderAttempt))
		w.now, w.answer = w.now.Add(time.Minute), nil
		require.Equal(t, 1, w.step())
		require.Equal(t, webhook.StatusDelivered, w.event("a", row.ID).Status)
		for _, tenant := range []string{"a", "b"} {
			found, err = w.svc.Replay(t.Context(), tenant, "no/000001")
			require.NoError(t, err)
			require.False(t, found)
		}
		found, err = w.svc.Replay(t.Context(), "b", row.ID)
		require.NoError(t, err)
		require.False(t, found, "another tenant's event does not exist")
	})
}

func TestH08_ClockJumps(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		row := w.emit("a", "p1", 1, "", 1)
		w.answer = fails
		w.step()
		w.now = start.Add(-10 * time.Hour) // back: it waits for the time that was stored
		w.restart()
		require.Zero(t, w.step())
		w.now = start.Add(59 * time.Second)
		require.Zero(t, w.step())
		w.now = start.Add(240 * time.Hour) // forward: one attempt, and from here on as usual
		require.Equal(t, 1, w.step())
		require.Zero(t, w.step())
		require.Len(t, w.sent, 2)
		w.now = w.now.Add(5*time.Minute - time.Second)
		require.Zero(t, w.step())
		w.now = w.now.Add(time.Second)
		w.restart()
		require.Equal(t, 1, w.step())
		require.Equal(t, 3, w.event("a", row.ID).Attempts)
		w.answer = nil
		w.now = w.now.Add(15 * time.Minute)
		w.step()
		e := w.event("a", row.ID)
		require.Equal(t, webhook.StatusDelivered, e.Status)
		require.Empty(t, e.Error)
		require.Equal(t, 200, e.Response)
	})
}

// lossy answers a Commit with an error, after it happened or instead.
type lossy struct {
	storage.Store
	drop, hide bool
}

var errGone = errors.New("connection reset")

func (l *lossy) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	if !l.drop {
		errs = l.Store.Commit(ctx, changes...)
	}
	for i := range errs {
		if l.drop || l.hide {
			errs[i] = errGone
		}
	}
	return errs
}

// TestH01_CrashBetweenAckAndRecord: delivered again, never lost.
func TestH01_CrashBetweenAckAndRecord(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		row := w.emit("a", "p1", 1, "", 1)
		w.serve(&lossy{Store: w.store, drop: true})
		_, err := w.svc.Step(t.Context())
		require.ErrorIs(t, err, errGone)
		require.Len(t, w.sent, 1)
		w.restart()
		require.Equal(t, webhook.StatusPending, w.event("a", row.ID).Status)
		require.Zero(t, w.step(), "not while the lease stands")
		w.now = w.now.Add(5 * time.Minute)
		require.Equal(t, 1, w.step())
		require.Len(t, w.sent, 2)
		require.Equal(t, w.sent[0].Body, w.sent[1].Body)
		require.Equal(t, w.sent[0].Header.Get(webhook.HeaderID), w.sent[1].Header.Get(webhook.HeaderID))
		require.Equal(t, webhook.StatusDelivered, w.event("a", row.ID).Status)

		// Recorded, but the answer was lost: it is not sent again.
		row = w.emit("a", "p2", 1, "", 1)
		w.serve(&lossy{Store: w.store, hide: true})
		_, err = w.svc.Step(t.Context())
		require.ErrorIs(t, err, errGone)
		w.restart()
		w.now = w.now.Add(time.Hour)
		require.Zero(t, w.step())
		require.Equal(t, webhook.StatusDelivered, w.event("a", row.ID).Status)
	})
}

// TestH01_StoppedMeanwhile: told to stop during a delivery, the service records
// what was acknowledged and gives what was cut off no attempt.
func TestH01_StoppedMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		done, cut := w.emit("a", "p1", 1, "", 1), w.emit("a", "p2", 1, "", 1)
		ctx, cancel := context.WithCancel(t.Context())
		w.answer = func(d webhook.Delivery) webhook.Result {
			cancel()
			if d.Header.Get(webhook.HeaderID) == cut.ID {
				return webhook.Result{Err: context.Canceled}
			}
			return webhook.Result{Status: 200}
		}
		_, err := w.svc.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, webhook.StatusDelivered, w.event("a", done.ID).Status)
		e := w.event("a", cut.ID)
		require.Equal(t, webhook.StatusPending, e.Status)
		require.Zero(t, e.Attempts)
	})
}

// TestH01_EventAndChangeAreOne: no event without its change, no change without
// its event, and one number for one event.
func TestH01_EventAndChangeAreOne(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, "p1", 1, "", 1, w.now)
		require.NoError(t, err)
		refused := storage.Change{
			ID: "x", Partition: storage.Tenant("a"), Put: []storage.Row{row},
			Require: []storage.Guard{webhook.SettingsTable.Guard("settings", 77)},
		}
		require.ErrorIs(t, w.store.Commit(t.Context(), refused)[0], storage.ErrConflict)
		require.Zero(t, w.step())
		require.Empty(t, w.sent)
		require.Equal(t, row.ID, w.emit("a", "p1", 1, "", 1).ID)
		// The same number again, from another process a moment later or under
		// another id: what it comes with does not happen either.
		later, err := webhook.NewEvent(webhook.PaymentStatusUpdate, "p1", 1, "", 1, w.now.Add(time.Second))
		require.NoError(t, err)
		elsewhere := webhook.Events.Row("elsewhere", 0, w.now, webhook.Events.Value(row))
		for i, again := range []storage.Row{row, later, elsewhere} {
			with := webhook.Events.Row("p2/000001", 0, w.now, webhook.Event{Object: "p2", Seq: 1})
			err := w.store.Commit(t.Context(), storage.Change{
				ID: fmt.Sprint("again-", i), Partition: storage.Tenant("a"), Put: []storage.Row{with, again},
			})[0]
			if i < 2 {
				require.ErrorIs(t, err, storage.ErrConflict)
			} else {
				var taken *storage.DuplicateError
				require.ErrorAs(t, err, &taken)
			}
			_, _, there, err := webhook.Events.One(t.Context(), w.store, storage.Tenant("a"), with.ID)
			require.NoError(t, err)
			require.False(t, there)
		}
		require.Equal(t, 1, w.step())
		require.Len(t, w.sent, 1)
	})
}

// TestTwoProcesses: what one has under its lease the other leaves alone; a
// lease that was lost records nothing over the other's outcome.
func TestTwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.setup("a")
		row := w.emit("a", "p1", 1, "", 1)
		inner := 0
		w.answer = func(d webhook.Delivery) webhook.Result {
			if inner++; inner > 1 {
				return webhook.Result{Status: 200}
			}
			w.mu.Unlock() // another process, while this one waits for its receiver
			require.Zero(t, w.step())
			w.now = w.now.Add(6 * time.Minute)
			require.Equal(t, 1, w.step())
			w.mu.Lock()
			return fails(d)
		}
		w.step()
		e := w.event("a", row.ID)
		require.Equal(t, webhook.StatusDelivered, e.Status)
		require.Equal(t, 1, e.Attempts)
	})
}

func TestK01_SettingsSwappedBetweenTenants(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		secrets := map[string]string{"a": w.setup("a"), "b": w.setup("b"), "c": w.setup("c")}
		a, ra, _, err := webhook.SettingsTable.One(ctx, w.store, storage.Tenant("a"), "settings")
		require.NoError(t, err)
		b, rb, _, err := webhook.SettingsTable.One(ctx, w.store, storage.Tenant("b"), "settings")
		require.NoError(t, err)
		for _, s := range secrets {
			require.NotContains(t, string(a.Sealed)+string(b.Sealed), s)
		}
		put := func(tenant string, version int64, v webhook.SettingsRow) {
			w.ids++
			require.NoError(t, storage.CommitOne(ctx, w.store, storage.Change{
				ID: fmt.Sprintf("swap-%d", w.ids), Partition: storage.Tenant(tenant),
				Put: []storage.Row{webhook.SettingsTable.Row("settings", version, time.Time{}, v)},
			}))
		}
		put("a", ra.Version, b)
		put("b", rb.Version, a)
		for _, tenant := range []string{"a", "b", "c"} {
			w.emit(tenant, "p1", 1, "", 1)
		}
		_, err = w.svc.Step(ctx)
		require.ErrorIs(t, err, secret.ErrSealed)
		require.Len(t, w.sent, 1, "nothing is signed with another tenant's secret")
		require.True(t, w.verifies(w.sent[0], secrets["c"]), "and nobody else waits for it")
		_, _, err = w.svc.Test(ctx, "a", webhook.DepositReceived, 1)
		require.ErrorIs(t, err, secret.ErrSealed)
		require.Zero(t, w.event("a", "p1/000001").Attempts)

		// A row of an older version does not open under a newer one either.
		c, rc, _, err := webhook.SettingsTable.One(ctx, w.store, storage.Tenant("c"), "settings")
		require.NoError(t, err)
		older := c
		older.Generation++
		put("c", rc.Version, older)
		_, _, err = w.svc.Test(ctx, "c", webhook.DepositReceived, 1)
		require.ErrorIs(t, err, secret.ErrSealed)

		// A new secret mends it.
		fresh := "mended-secret-000"
		_, err = w.svc.Edit(ctx, "a", webhook.Patch{Secret: &fresh, URL: ptr("https://a.example.com/hook")})
		require.NoError(t, err)
		w.now = w.now.Add(5 * time.Minute)
		_, err = w.svc.Step(ctx)
		require.Error(t, err) // b is still broken
		d := w.sent[len(w.sent)-1]
		require.Equal(t, "https://a.example.com/hook", d.URL)
		require.True(t, w.verifies(d, fresh))
	})
}

func ptr[T any](v T) *T { return &v }

// TestH07_Rotation: whoever holds the current secret can verify, always; whoever
// holds the one before can, for a day; nobody else can.
func TestH07_Rotation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := onMemory(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		current, previous, older := w.setup("a"), "", []string{}
		var end time.Time
		for i := range 40 {
			w.now = w.now.Add(time.Duration(rng.IntN(20)) * time.Hour)
			if rng.IntN(3) == 0 {
				next := fmt.Sprintf("secret-of-%d-number-%04d", seed, i)
				calls := 1 + rng.IntN(2) // a call that is repeated changes nothing
				for range calls {
					_, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Secret: &next})
					require.NoError(t, err)
				}
				older = append(older, previous)
				current, previous, end = next, current, w.now.Add(24*time.Hour)
			}
			if rng.IntN(4) == 0 { // an edit of anything else touches no secret
				_, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Events: &[]string{webhook.PaymentStatusUpdate}})
				require.NoError(t, err)
			}
			w.emit("a", "p1", int64(i+1), "", i)
			require.Equal(t, 1, w.step())
			d := w.sent[len(w.sent)-1]
			overlap := previous != "" && w.now.Before(end)
			require.True(t, w.verifies(d, current), "seed %d", seed)
			require.NoError(t, webhook.VerifyBody(d.Header, d.Body, current))
			require.Equal(t, overlap, previous != "" && w.verifies(d, previous), "seed %d", seed)
			require.Equal(t, overlap, d.Header.Get(webhook.HeaderSignaturePrevious) != "", "seed %d", seed)
			for _, s := range older {
				require.False(t, s != "" && w.verifies(d, s), "seed %d", seed)
			}
		}
	}
}

var hostileTexts = []string{
	"\u2028\u2029", "\x00\x01\x1f\x7f", "\xff\xfe\xc3(", "\"},{\"event\":\"deposit_received\"", "</script><!--", "\r\nX-Injected: 1", "\\u0000\\",
	"\ud7ff\U0010ffff\ufeff\u202e", "a\u0300", "💸", "'; DROP TABLE events; --", string(bytes.Repeat([]byte{0xf0}, 3000)), "${jndi:ldap://x}", "%00%n%s",
}

func TestSettings(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		v, err := w.svc.Get(ctx, "a")
		require.NoError(t, err)
		require.Zero(t, v)
		_, _, err = w.svc.Setup(ctx, "a", "https://127.0.0.1/", webhook.By{})
		require.ErrorIs(t, err, webhook.ErrURL)
		v, full, err := w.svc.Setup(ctx, "a", "https://a.example.com/1", webhook.By{})
		require.NoError(t, err)
		require.Len(t, full, 43)
		require.Equal(t, "****"+full[39:], v.MaskedSecret)
		require.Equal(t, start, v.Created)
		w.now = w.now.Add(time.Hour)
		v, again, err := w.svc.Setup(ctx, "a", "https://a.example.com/2", webhook.By{})
		require.NoError(t, err)
		require.Empty(t, again, "in full once")
		require.Equal(t, "****"+full[39:], v.MaskedSecret)
		require.Equal(t, start, v.Created)
		require.Equal(t, w.now, v.Updated)

		for _, p := range []webhook.Patch{
			{Secret: ptr("short")},
			{Secret: ptr(string(bytes.Repeat([]byte("x"), 129)))},
			{Secret: ptr("with a space 0000000")},
			{Secret: ptr("with\x00nul00000000000")},
			{Secret: ptr("nön-ascii-00000000")},
			{URL: ptr("")},
			{URL: ptr("http://a.example.com/")},
			{Events: &[]string{"unknown"}},
			{URL: ptr("https://b.example.com"), Secret: ptr("x")},
		} {
			got, err := w.svc.Edit(ctx, "a", p)
			require.Error(t, err)
			require.Zero(t, got)
		}
		now, err := w.svc.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, v, now)
		id, r, err := w.svc.Test(ctx, "a", webhook.DepositReceived, map[string]bool{"test": true})
		require.NoError(t, err)
		require.Equal(t, 200, r.Status)
		require.Equal(t, id, w.sent[0].Header.Get(webhook.HeaderID))
		require.True(t, w.verifies(w.sent[0], full))
		require.JSONEq(t, `{"event":"deposit_received","data":{"test":true},"timestamp":"`+webhook.Timestamp(w.now)+`"}`, string(w.sent[0].Body))
		_, _, err = w.svc.Test(ctx, "a", "nonsense", nil)
		require.ErrorIs(t, err, webhook.ErrEventType)
		_, _, err = w.svc.Test(ctx, "b", webhook.DepositReceived, nil)
		require.ErrorIs(t, err, webhook.ErrURL)
		require.NotContains(t, w.logs.String(), full)
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := webhook.New(webhook.Config{})
	require.Error(t, err)
	require.Equal(t, "2026-11-20T12:00:00.000Z", webhook.Timestamp(start.In(time.FixedZone("x", 3600))))
	_, err = webhook.NewEvent(webhook.DepositReceived, "p", 1, "", func() {}, start)
	require.Error(t, err)
	canonical := http.CanonicalHeaderKey(webhook.HeaderID)
	require.Equal(t, webhook.HeaderID, canonical)
}

// An object's events that are due together are sent one after the other.
func TestEventsOfAnObjectKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	_, _, err := w.svc.Setup(t.Context(), "t", "https://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	var rows []storage.Row
	for _, seq := range []int64{3, 1, 11, 5, 10, 2, 4, 9, 8, 7, 6} { // more than go in one Step
		for _, object := range []string{"b", "a"} {
			row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, object, seq, "", map[string]any{"object": object, "seq": seq}, w.now)
			require.NoError(t, err)
			rows = append(rows, row)
		}
	}
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "c", Partition: storage.Tenant("t"), Put: rows}))
	for {
		n, err := w.svc.Step(t.Context())
		require.NoError(t, err)
		if n == 0 {
			break
		}
	}
	seen := map[string][]int64{}
	for _, d := range w.sent {
		var e struct {
			Data struct {
				Object string `json:"object"`
				Seq    int64  `json:"seq"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(d.Body, &e))
		seen[e.Data.Object] = append(seen[e.Data.Object], e.Data.Seq)
	}
	all := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	require.Equal(t, map[string][]int64{"a": all, "b": all}, seen)
}

// Over the network, too: a later event of an object does not overtake one whose
// receiver is slow, while other objects' go on.
func TestNotifyKeepsTheOrderOfAnObject(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	other := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "a1" {
			<-other // the first is slow until the other object's was here
		}
		mu.Lock()
		got = append(got, string(body))
		mu.Unlock()
		if string(body) == "b1" {
			close(other)
		}
	}))
	defer server.Close()
	n := webhook.NewHTTP(webhook.HTTPOptions{Guard: webhook.Guard{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	defer n.Close()
	var all []webhook.Delivery
	for _, body := range []string{"a1", "a2", "a3", "b1"} {
		all = append(all, webhook.Delivery{Object: body[:1], URL: server.URL, Body: []byte(body)})
	}
	for _, r := range n.Notify(t.Context(), all) {
		require.NoError(t, r.Err)
	}
	require.Equal(t, []string{"b1", "a1", "a2", "a3"}, got)
}

// TestFP03_SettingsAreReadTogether: one look-up reads the settings of all tenants of which
// something was claimed, and each event goes to the URL of its own.
func TestFP03_SettingsAreReadTogether(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	const tenants = 20
	for i := range tenants {
		name := fmt.Sprint("t", i)
		w.setup(name)
		w.emit(name, "p", 1, "", 1)
	}
	store := &failing.Store{Store: w.store, Counts: func(c failing.Call) bool { return c.Table == webhook.SettingsTable.Table }}
	w.serve(store)
	require.Equal(t, tenants, w.step())
	require.Equal(t, 1, store.Calls)
	require.Len(t, w.sent, tenants)
	for _, d := range w.sent {
		require.Equal(t, "https://"+d.Tenant+".example.com/hook", d.URL)
	}
}
