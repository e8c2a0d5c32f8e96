package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// listening notes what is asked of a store, in order.
type listening struct {
	storage.Store
	mu    sync.Mutex
	calls []string
}

func (l *listening) note(call string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprintf(call, args...))
}

// heard are the calls since it was asked last.
func (l *listening) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

func (l *listening) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	l.note("rows %s %d", t.Name, len(keys))
	return l.Store.Rows(ctx, t, keys...)
}

// Ask answers several look-ups in one round trip, as a database does.
func (l *listening) Ask(ctx context.Context, asks ...storage.Ask) (found [][]storage.Row, err error) {
	var all []string
	for _, a := range asks {
		all = append(all, fmt.Sprintf("%s %d", a.Table.Name, len(a.Keys)))
		rows, err := l.Store.Rows(ctx, a.Table, a.Keys...)
		if err != nil {
			return nil, err
		}
		found = append(found, rows)
	}
	l.note("rows %s", strings.Join(all, ", "))
	return found, nil
}

func (l *listening) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	l.note("find %s", q.Table.Name)
	return l.Store.Find(ctx, q)
}

func (l *listening) Count(ctx context.Context, q storage.Query) (int64, error) {
	l.note("count %s", q.Table.Name)
	return l.Store.Count(ctx, q)
}

func (l *listening) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	l.note("claim %s", c.Table.Name)
	return l.Store.Claim(ctx, c)
}

func (l *listening) Commit(ctx context.Context, changes ...storage.Change) []error {
	for i := range changes {
		var tables []string
		for _, p := range changes[i].Put {
			tables = append(tables, p.Table.Name)
		}
		l.note("commit %s", strings.Join(tables, " "))
	}
	return l.Store.Commit(ctx, changes...)
}

// TestFP04_CallsOfRequests holds what each request asks of the store, in order, and what
// is asked in one round trip. The first request with a token that this process did not
// issue reads the token and its application one after the other.
func TestFP04_CallsOfRequests(t *testing.T) {
	t.Parallel()
	store := &listening{Store: memory.New()}
	w := rich(t, func(s *setup) { s.store = store })
	id := w.ok(http.StatusCreated, "POST", "/payments/", `{"amount":"5","currency":"USDTERC20"}`).Body["transaction_id"].(string)
	w.step()
	const who = "rows access_tokens 1, applications 1"
	for _, r := range []struct {
		name, method, path, body string
		status                   int
		want                     []string
	}{
		{"payment", "POST", "/payments/", `{"amount":"5","currency":"USDTERC20"}`, http.StatusCreated, []string{
			who + ", idempotency 1", "rows wallets 1, tenants 1, minimums 1", "commit payments activity idempotency",
		}},
		{"payment for a wallet", "POST", "/payments/", `{"amount":"5","currency":"USDTERC20","wallet_id":"sub"}`, http.StatusCreated, []string{
			who + ", idempotency 1", "rows wallets 2, tenants 1, minimums 1", "commit payments activity idempotency",
		}},
		{"transfer", "POST", "/wallets/transfer-to-user/", `{"external_id":"sub","currency":"USDTERC20","amount":"1"}`, http.StatusAccepted, []string{
			who + ", idempotency 1", "rows wallets 1", "commit transfers events idempotency",
		}},
		{"transfer by id", "POST", "/wallets/withdraw-to-master/", `{"wallet_id":"sub","currency":"USDTERC20","amount":"1"}`, http.StatusAccepted, []string{
			who + ", idempotency 1", "rows wallets 2", "commit transfers events idempotency",
		}},
		{"withdrawal", "POST", "/withdrawal/", `{"amount":"20","currency":"USDTERC20","address":"ELSEWHERE"}`, http.StatusCreated, []string{
			who + ", idempotency 1", "rows addresses 1, tenants 1, wallets 1", "commit withdrawals activity idempotency",
		}},
		{"status", "POST", "/payments/status/", `{"transaction_id":"` + id + `"}`, http.StatusOK, []string{
			who, "rows payments 1", "find deposits",
		}},
		{"list", "GET", "/payments/", "", http.StatusOK, []string{
			who, "find counters", "find payments", "find deposits", "rows cursors 1",
		}},
		{"withdrawals", "GET", "/withdrawal/", "", http.StatusOK, []string{who, "find counters", "find withdrawals"}},
	} {
		var body any
		var refine []with
		if r.body != "" {
			body = w.filled(r.body)
		}
		if r.status != http.StatusOK {
			refine = append(refine, onceKey(strings.ReplaceAll(r.name, " ", "-")))
		}
		store.heard()
		w.ok(r.status, r.method, r.path, body, refine...)
		require.Equal(t, r.want, store.heard(), r.name)
	}
}

// What is read beside a credential is of the tenant that it was of before. A token, an
// application and a key that are void open nothing, though they were right a moment ago.
func TestO08_WhatIsReadAheadOpensNothing(t *testing.T) {
	t.Parallel()
	store := &listening{Store: memory.New()}
	w := rich(t, func(s *setup) { s.store = store })
	transfer := func(status int, token string) {
		t.Helper()
		w.ok(status, "POST", "/wallets/transfer-to-user/", `{"external_id":"sub","currency":"USDTERC20","amount":"1"}`,
			bearer(token), onceKey("of-"+token[len(token)-8:]))
	}
	transfer(http.StatusAccepted, w.token)
	require.NoError(t, w.auth.Revoke(t.Context(), w.admin.id, w.admin.secret, w.token))
	transfer(http.StatusUnauthorized, w.token)

	mine := w.newApp(w.tenant, "", auth.Read, auth.Write)
	token := w.newToken(mine, "")
	transfer(http.StatusAccepted, token)
	apps, err := w.auth.Apps(t.Context(), w.tenant)
	require.NoError(t, err)
	for _, a := range apps {
		if a.ClientID == mine.id {
			require.NoError(t, w.auth.DeleteApp(t.Context(), w.tenant, a.ID, auth.By{}))
		}
	}
	transfer(http.StatusUnauthorized, token)
}
