package httpapi_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// onStores runs a test on memory and on SQLite.
func onStores(t *testing.T, f func(t *testing.T, w *world)) {
	t.Parallel()
	unlimited := func(s *setup) { s.options = func(o *httpapi.Options) { o.Limits = &httpapi.Limits{} } }
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		f(t, newPayer(t, unlimited))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, newPayer(t, unlimited, func(s *setup) { s.store = onSQLite(t) }))
	})
}

func onSQLite(t testing.TB) storage.Store {
	t.Helper()
	testenv.SQLiteApp(t)
	path := filepath.Join(t.TempDir(), "store.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path, slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())...))
	s, err := sqlite.Open(path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// atOnce sends n requests, numbered, and returns the answers.
func atOnce(n int, send func(i int) answer) []answer {
	out := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = send(i) })
	}
	wg.Wait()
	return out
}

// W11: fifty withdrawals at once from a balance that covers ten.
func TestW11_ConcurrentWithdrawals(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		made := 0
		for _, a := range atOnce(50, func(int) answer { return w.do("POST", "/withdrawal/", w.wd(nil)) }) {
			if a.Status == http.StatusCreated {
				made++
				continue
			}
			require.Equal(t, http.StatusBadRequest, a.Status, a.Raw)
			require.Equal(t, "insufficient_balance", a.code())
			require.Equal(t, "100.00000000", a.at("error", "details", "requested"))
		}
		require.Equal(t, 10, made)
		total, held := w.held("USDTERC20")
		require.Equal(t, "1000.000000 1000.000000", total+" "+held)
		require.Equal(t, "10", fmt.Sprint(w.ok(http.StatusOK, "GET", "/withdrawal/", nil).Body["total"]))
		w.booksHold()
	})
}

// W12: one key from 32 callers: one withdrawal, and one answer for all.
func TestW12_OneKeyConcurrently(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		oneEffect(t, w, func(int) *world { return w })
	})
}

// W12: the same where two processes share the store: neither knows what runs in
// the other.
func TestW12_OneKeyInTwoProcesses(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		second := *w
		second.app = w.compose(setup{}, w.app.Config().Random)
		require.NoError(t, second.app.Open(t.Context(), append(keys.Tables(), auth.Tables()...)...))
		var err error
		second.api, err = httpapi.New(second.app, httpapi.Options{Auth: w.auth, Limits: &httpapi.Limits{}})
		require.NoError(t, err)
		oneEffect(t, w, func(i int) *world { return []*world{w, &second}[i%2] })
	})
}

func oneEffect(t *testing.T, w *world, by func(i int) *world) {
	t.Helper()
	raws, firsts := map[string]bool{}, 0
	send := func(i int) answer { return by(i).do("POST", "/withdrawal/", w.wd(nil), header("Idempotency-Key", "k")) }
	for i, a := range atOnce(32, send) {
		if a.Status == http.StatusConflict {
			require.Equal(t, "idempotency_in_progress", a.code())
			a = send(i)
			require.Equal(t, "true", a.Header.Get("Idempotent-Replayed"))
		}
		require.Equal(t, http.StatusCreated, a.Status, a.Raw)
		if a.Header.Get("Idempotent-Replayed") == "" {
			firsts++
		}
		raws[a.Raw] = true
	}
	require.Len(t, raws, 1, "the same body for all")
	require.Equal(t, 1, firsts)
	require.Equal(t, "1", fmt.Sprint(w.ok(http.StatusOK, "GET", "/withdrawal/", nil).Body["total"]))
	_, held := w.held("USDTERC20")
	require.Equal(t, "100.000000", held)
	w.booksHold()
}

func TestW12_WithdrawalOnce(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	key := func(k string) with { return header("Idempotency-Key", k) }
	post := func(status int, body any, refine ...with) answer {
		return w.ok(status, "POST", "/withdrawal/", body, refine...)
	}
	first := post(http.StatusCreated, w.wd(nil), key("a"))
	require.Empty(t, first.Header.Get("Idempotent-Replayed"))
	id := first.Body["withdrawal_id"].(string)
	w.ok(http.StatusOK, "POST", "/withdrawal/"+id+"/cancel/", nil)
	again := post(http.StatusCreated, w.wd(nil), key("a"))
	require.Equal(t, first.Raw, again.Raw, "the first answer, whatever has happened since")
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))

	require.Equal(t, "idempotency_mismatch", post(http.StatusUnprocessableEntity, w.wd(map[string]any{"amount": "99"}), key("a")).code())
	require.Equal(t, "idempotency_mismatch", post(http.StatusUnprocessableEntity, `{"amount":"x"}`, key("a")).code(), "judged before validation")
	require.NotEqual(t, id, post(http.StatusCreated, w.wd(nil), key("b")).Body["withdrawal_id"])
	require.NotEqual(t, id, post(http.StatusCreated, w.wd(nil)).Body["withdrawal_id"])

	// A refusal is not kept.
	post(http.StatusBadRequest, w.wd(map[string]any{"amount": "900"}), key("c"))
	w.earn("USDTERC20", "500.00", "")
	post(http.StatusCreated, w.wd(map[string]any{"amount": "900"}), key("c"))

	// A key is its tenant's and its route's.
	a := post(http.StatusBadRequest, w.wd(nil), key("a"), w.otherShop())
	require.Equal(t, "insufficient_balance", a.code())
	for _, bad := range []string{" ", "é", "a b"} {
		require.Equal(t, "invalid_request", post(http.StatusBadRequest, w.wd(nil), key(bad)).code())
	}

	w.clock.Advance(storage.OnceFor)
	w.token = w.newToken(w.admin, "")
	later := post(http.StatusCreated, w.wd(nil), key("a"))
	require.NotEqual(t, id, later.Body["withdrawal_id"])
	require.Empty(t, later.Header.Get("Idempotent-Replayed"))
}
