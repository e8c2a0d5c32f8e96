package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// onceRoute is an endpoint that takes an Idempotency-Key, with a good body,
// another good one, a bad one, and how many there are of what it makes.
type onceRoute struct {
	path             string
	good, other, bad string
	status           int
	count            func(*world) int
}

var once = []onceRoute{
	{
		"/payments/", `{"amount":"5","currency":"USDTERC20"}`, `{"amount":"6","currency":"USDTERC20"}`, `{"amount":"no"}`, http.StatusCreated,
		func(w *world) int { return w.countAt("GET", "/payments/", nil, "total") },
	},
	{
		"/withdrawal/", `{"amount":"20","currency":"USDTERC20","address":"ELSEWHERE"}`, `{"amount":"21","currency":"USDTERC20","address":"ELSEWHERE"}`, `{"amount":"no"}`, http.StatusCreated,
		func(w *world) int { return w.countAt("GET", "/withdrawal/", nil, "total") },
	},
	{
		"/wallets/", `{"name":"n","external_id":"once"}`, `{"name":"n","external_id":"twice"}`, `{"name":7}`, http.StatusCreated,
		func(w *world) int { return w.countAt("GET", "/wallets/", nil, "total") },
	},
	{
		"/wallets/transfer-to-user/", `{"external_id":"sub","currency":"USDTERC20","amount":"1"}`, `{"external_id":"sub","currency":"USDTERC20","amount":"2"}`, `{"amount":"no"}`, http.StatusAccepted,
		func(w *world) int {
			return w.countAt("POST", "/wallets/transfer-history/", "{}", "pagination", "total")
		},
	},
	{
		"/wallets/withdraw-to-master/", `{"external_id":"sub","currency":"USDTERC20","amount":"1"}`, `{"external_id":"sub","currency":"USDTERC20","amount":"2"}`, `{"amount":"no"}`, http.StatusAccepted,
		func(w *world) int {
			return w.countAt("POST", "/wallets/transfer-history/", "{}", "pagination", "total")
		},
	},
	{
		"/payments/{transaction_id}/refunds/", `{"amount":"5","address":"ELSEWHERE"}`, `{"amount":"6","address":"ELSEWHERE"}`, `{"amount":"no"}`, http.StatusCreated,
		func(w *world) int {
			_, n, err := w.app.Refunds.List(w.t.Context(), w.tenant, refund.Filter{})
			require.NoError(w.t, err)
			return int(n)
		},
	},
	{
		"/payouts/", `{"withdrawals":[{"amount":"5","currency":"USDTERC20","address":"ELSEWHERE"}]}`, `{"withdrawals":[{"amount":"6","currency":"USDTERC20","address":"ELSEWHERE"}]}`, `{"withdrawals":"no"}`, http.StatusCreated,
		func(w *world) int { return w.countAt("GET", "/withdrawal/", nil, "total") },
	},
}

func (w *world) countAt(method, path string, body any, at ...string) int {
	w.t.Helper()
	n, err := w.ok(http.StatusOK, method, path, body).at(at...).(json.Number).Int64()
	require.NoError(w.t, err)
	return int(n)
}

// rich is a world with money in the master account and in the wallet sub.
func rich(t *testing.T, with ...func(*setup)) *world {
	t.Helper()
	w := newWorld(t, append([]func(*setup){unlimited}, with...)...)
	w.fund(w.tenant)
	w.token = w.newToken(w.admin, "")
	w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "sub", "external_id": "sub"})
	w.earn("USDTERC20", "100", "")
	w.earn("USDTERC20", "50", "sub")
	return w
}

func onceKey(k string) with { return header("Idempotency-Key", k) }

// TestIdempotencyAtEveryEndpoint: one effect, the same answer again, a mismatch
// told before anything else, failures not kept.
func TestIdempotencyAtEveryEndpoint(t *testing.T) {
	t.Parallel()
	w := rich(t)
	for _, e := range once {
		good, other := w.filled(e.good), w.filled(e.other)
		before := e.count(w)
		// A failure is not kept: the key is free for a better request.
		a := w.do("POST", e.path, e.bad, onceKey("k"))
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", e.path, a.Raw)
		first := w.ok(e.status, "POST", e.path, good, onceKey("k"))
		require.Empty(t, first.Header.Get("Idempotent-Replayed"))
		w.clock.Advance(time.Minute)
		for _, path := range []string{e.path, strings.TrimSuffix(e.path, "/")} {
			again := w.ok(e.status, "POST", path, good, onceKey("k"))
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), path)
			require.Equal(t, first.Raw, again.Raw, path)
			require.Equal(t, first.Header.Get("Content-Type"), again.Header.Get("Content-Type"))
		}
		require.Equal(t, before+1, e.count(w), e.path)
		for _, body := range []string{other, e.bad, "no json", "", good + " "} {
			a = w.do("POST", e.path, body, onceKey("k"))
			require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s with %s: %s", e.path, body, a.Raw)
			require.Equal(t, "idempotency_mismatch", a.code())
		}
		require.Equal(t, before+1, e.count(w), e.path)
		// Another key is another request.
		w.ok(e.status, "POST", e.path, other, onceKey("K"))
		require.Equal(t, before+2, e.count(w), e.path)
		for _, key := range []string{" ", "a b", "ü", strings.Repeat("k", 129), "a\tb"} {
			a = w.do("POST", e.path, good, onceKey(key))
			require.Equal(t, http.StatusBadRequest, a.Status, "key %q", key)
			require.Contains(t, a.at("error", "details"), "Idempotency-Key")
		}
		a = w.do("POST", e.path, good, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} })
		require.Equal(t, http.StatusBadRequest, a.Status)
		require.Equal(t, before+2, e.count(w), e.path)
	}
	// Every route that takes a key is in the table above, and no other takes one.
	for _, r := range w.routes() {
		if r.Method == http.MethodPost {
			require.Equal(t, r.Once, slices.ContainsFunc(once, func(e onceRoute) bool { return e.path == r.Path }), r.Path)
		} else {
			require.False(t, r.Once, r.Path)
		}
	}
}

func (w *world) filled(body string) string {
	return strings.ReplaceAll(body, "ELSEWHERE", w.elsewhere())
}

// TestIdempotencyKeysBelong to a tenant and a route, for 24 hours.
func TestIdempotencyKeysBelong(t *testing.T) {
	t.Parallel()
	w := rich(t)
	body := once[0].good
	first := w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("same"))
	w.ok(http.StatusCreated, "POST", "/wallets/", once[2].good, onceKey("same"))
	theirs := bearer(w.newToken(w.newApp(w.newTenant("other"), auth.NoRole), ""))
	other := w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("same"), theirs)
	require.Empty(t, other.Header.Get("Idempotent-Replayed"), "another tenant's key")
	require.NotEqual(t, first.Body["transaction_id"], other.Body["transaction_id"])
	// Another application of the same tenant: the same account, the same key.
	colleague := bearer(w.newToken(w.newApp(w.tenant, auth.NoRole), ""))
	require.Equal(t, first.Raw, w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("same"), colleague).Raw)
	w.clock.Advance(24*time.Hour - time.Second)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, first.Raw, w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("same")).Raw)
	w.clock.Advance(time.Second)
	later := w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("same"))
	require.Empty(t, later.Header.Get("Idempotent-Replayed"))
	require.NotEqual(t, first.Body["transaction_id"], later.Body["transaction_id"])
}

// TestIdempotencyWhenTheStoreLosesAnswers: the effect happened but the answer of
// the commit was lost, for as long as the request lasts; sent again, the first
// effect is found.
func TestIdempotencyWhenTheStoreLosesAnswers(t *testing.T) {
	t.Parallel()
	f, with := newFaulty()
	w := rich(t, with)
	for _, e := range once {
		good, before := w.filled(e.good), e.count(w)
		lost := errors.New("connection reset")
		f.set(nil, func(string, []storage.Change) error { return lost })
		a := w.do("POST", e.path, good, onceKey("lost"))
		f.set(nil, nil)
		require.Contains(t, []int{http.StatusServiceUnavailable, e.status}, a.Status, "%s: %s", e.path, a.Raw)
		if a.Status == http.StatusServiceUnavailable {
			require.NotContains(t, a.Raw, "connection reset")
		}
		require.Equal(t, before+1, e.count(w), e.path)
		again := w.ok(e.status, "POST", e.path, good, onceKey("lost"))
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, before+1, e.count(w), e.path)
		// And where nothing was committed, nothing is found.
		f.set(func(call string, _ []storage.Change) error {
			if call == "Commit" {
				return lost
			}
			return nil
		}, nil)
		other := w.filled(e.other)
		a = w.do("POST", e.path, other, onceKey("never"))
		f.set(nil, nil)
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s: %s", e.path, a.Raw)
		require.Equal(t, before+1, e.count(w), e.path)
		again = w.ok(e.status, "POST", e.path, other, onceKey("never"))
		require.Empty(t, again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, before+2, e.count(w), e.path)
	}
}

// TestIdempotencyWhileTheFirstRuns: the second of two at the same time is told
// so, and its later try gets the first's answer.
func TestIdempotencyWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	f, with := newFaulty()
	w := rich(t, with)
	for _, e := range once {
		good, before := w.filled(e.good), e.count(w)
		var inner *answer
		f.set(func(call string, _ []storage.Change) error {
			if call == "Commit" && inner == nil {
				inner = &answer{}
				*inner = w.do("POST", e.path, good, onceKey("running"))
			}
			return nil
		}, nil)
		first := w.ok(e.status, "POST", e.path, good, onceKey("running"))
		f.set(nil, nil)
		require.NotNil(t, inner)
		require.Equal(t, http.StatusConflict, inner.Status, "%s: %s", e.path, inner.Raw)
		require.Equal(t, "idempotency_in_progress", inner.code())
		require.Equal(t, first.Raw, w.ok(e.status, "POST", e.path, good, onceKey("running")).Raw)
		require.Equal(t, before+1, e.count(w), e.path)
	}
}

// TestIdempotencyUnderLoad: many at once, one effect.
func TestIdempotencyUnderLoad(t *testing.T) {
	t.Parallel()
	w := rich(t)
	for _, e := range once {
		good, before := w.filled(e.good), e.count(w)
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			answers []answer
		)
		for range 8 {
			wg.Go(func() {
				a := w.do("POST", e.path, good, onceKey("many"))
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, a)
			})
		}
		wg.Wait()
		fresh := 0
		for _, a := range answers {
			require.Contains(t, []int{e.status, http.StatusConflict}, a.Status, a.Raw)
			if a.Status == e.status && a.Header.Get("Idempotent-Replayed") == "" {
				fresh++
			}
		}
		require.Equal(t, 1, fresh, fmt.Sprint(e.path))
		require.Equal(t, before+1, e.count(w), e.path)
	}
}

// onceReads counts how often the store is asked for the key of a request.
type onceReads struct {
	storage.Store
	n atomic.Int64
}

func (s *onceReads) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if t == storage.OnceTable.Table {
		s.n.Add(1)
	}
	return s.Store.Rows(ctx, t, keys...)
}

// A request asks the store for its key once, whether it is the first or the second.
func TestFP04_AKeyIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	s := &onceReads{Store: memory.New()}
	w := rich(t, func(o *setup) { o.store = s })
	for _, r := range once {
		for _, which := range []string{"first", "replay"} {
			s.n.Store(0)
			w.ok(r.status, "POST", r.path, w.filled(r.good), onceKey("counted"))
			require.Equal(t, int64(1), s.n.Load(), "%s %s", r.path, which)
		}
	}
}

// Keys of requests over HTTP are stored as every version stores them, so that one version
// finds the keys of another: by the route's name, with the digest of the body.
func TestIdempotencyKeysAreStoredAsBefore(t *testing.T) {
	t.Parallel()
	w := rich(t)
	for i, name := range []string{"createPayment", "createWithdrawal", "createWallet", "transferToWallet", "transferToMaster"} {
		body := w.filled(once[i].good)
		w.ok(once[i].status, "POST", once[i].path, body, onceKey("k"))
		v, _, ok, err := storage.OnceTable.One(t.Context(), w.store, storage.Tenant(w.tenant), name+"/k")
		require.NoError(t, err)
		require.True(t, ok, name)
		require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(body))), v.Fingerprint)
	}
}

// A first answer that was edited in the database does not send customers to a thief: where
// they pay is read from the payment, whose address is derived again.
func TestFS02_EditedFirstAnswerShowsNoOtherAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	body := map[string]any{"amount": "25", "currency": "USDTERC20"}
	first := w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("cart"))
	ours, thief := first.Body["address"].(string), string(w.chains["ETH"].Customer("thief"))
	rows, err := w.store.Find(t.Context(), storage.Query{Table: storage.OnceTable.Table, Partition: storage.Tenant(w.tenant)})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	v := storage.OnceTable.Value(rows[0])
	v.Response = []byte(strings.ReplaceAll(string(v.Response), ours, thief))
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "edit", Partition: rows[0].Partition, Put: []storage.Row{storage.OnceTable.Row(rows[0].ID, rows[0].Version, rows[0].Due, v)},
	}))
	again := w.ok(http.StatusCreated, "POST", "/payments/", body, onceKey("cart"))
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.NotContains(t, again.Raw, thief)
	require.Equal(t, first.Raw, again.Raw)
}
