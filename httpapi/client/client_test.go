package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/client"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// TestEveryCall goes through all methods against the real service: a merchant's
// whole day.
func TestEveryCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ctx := w.client, t.Context()

	me, err := c.Me(ctx)
	require.NoError(t, err)
	require.Equal(t, "shop", me.Name)
	codes, err := c.Currencies(ctx)
	require.NoError(t, err)
	require.Contains(t, codes, "USDTERC20")
	rate, err := c.Rate(ctx, client.RateQuery{To: "ETH", Amount: "100", Full: true})
	require.NoError(t, err)
	require.Equal(t, json.Number("0.05"), rate.EstimatedAmount)
	require.NotNil(t, rate.Timestamp)

	setup, err := c.SetUpWebhooks(ctx, "https://shop.example/hook")
	require.NoError(t, err)
	require.NotEmpty(t, setup.Secret)
	edited, err := c.EditWebhooks(ctx, client.UpdateWebhooks{EnabledEvents: &[]string{"payment_status_update", "withdrawal_status_update"}})
	require.NoError(t, err)
	require.Len(t, edited.EnabledEvents, 2)
	hooks, err := c.Webhooks(ctx)
	require.NoError(t, err)
	require.Equal(t, edited, hooks)
	test, err := c.TestWebhook(ctx, "payment_status_update")
	require.NoError(t, err)
	require.Equal(t, "delivered", test.Status)

	quote, err := c.EstimatePayment(ctx, client.CreatePayment{Amount: "100", Currency: "USDTERC20"})
	require.NoError(t, err)
	require.Equal(t, "100.00000000", quote.AmountCrypto)
	p, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "100", Currency: "USDTERC20", OrderID: "1001"})
	require.NoError(t, err)
	order := "1002"
	p, err = c.UpdatePayment(ctx, p.TransactionID, client.UpdatePayment{OrderID: &order})
	require.NoError(t, err)
	require.Equal(t, "1002", p.OrderID)
	w.pay(p.Address, "USDTERC20", p.AmountCrypto)
	p, err = c.Payment(ctx, p.TransactionID)
	require.NoError(t, err)
	require.Contains(t, []string{"confirmed", "sending", "completed"}, p.Status)
	require.NotNil(t, p.TransactionHash)
	other, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "5", Blockchain: "ETH", Token: "USDT"})
	require.NoError(t, err)
	other, err = c.CancelPayment(ctx, other.TransactionID)
	require.NoError(t, err)
	require.Equal(t, "expired", other.Status)
	page, err := c.Payments(ctx, client.PaymentFilter{Status: "expired", Limit: 5})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, []int64{page.Count, page.Total})

	sub, err := c.CreateWallet(ctx, client.CreateWallet{Name: "anna", ExternalID: "user-7"})
	require.NoError(t, err)
	sub, err = c.RenameWallet(ctx, sub.WalletID, "Anna")
	require.NoError(t, err)
	same, err := c.WalletByNumber(ctx, sub.ID)
	require.NoError(t, err)
	require.Equal(t, sub, same)
	moved, err := c.TransferToWallet(ctx, client.CreateTransfer{ExternalID: "user-7", Currency: "USDTERC20", Amount: "30"})
	require.NoError(t, err)
	require.Equal(t, "accepted", moved.Status)
	w.mine(1)
	_, err = c.TransferToMaster(ctx, client.CreateTransfer{WalletID: sub.WalletID, Currency: "USDTERC20", Amount: "10"})
	require.NoError(t, err)
	w.mine(1)
	transfers, err := c.Transfers(ctx, client.TransferFilter{Status: "completed"})
	require.NoError(t, err)
	require.Equal(t, int64(2), transfers.Pagination.Total)
	balances, err := c.WalletBalances(ctx, "", "user-7")
	require.NoError(t, err)
	require.Equal(t, "20.00000000", balances.Balances[0].Amount)
	all, err := c.Wallets(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(1), all.Total)
	empty, err := c.CreateWallet(ctx, client.CreateWallet{Name: "e", ExternalID: "e"})
	require.NoError(t, err)
	require.NoError(t, c.DeleteWallet(ctx, empty.WalletID))

	terms := client.WithdrawalTerms{Amount: "20", Currency: "USDTERC20", Address: p.Address}
	estimate, err := c.EstimateWithdrawal(ctx, terms)
	require.NoError(t, err)
	require.Equal(t, "20.00000000", estimate.RequestedAmount)
	check, err := c.ValidateAddress(ctx, "nonsense", "USDTERC20", "")
	require.NoError(t, err)
	require.False(t, check.IsValid)
	least, err := c.WithdrawalMinimum(ctx, "USDTERC20")
	require.NoError(t, err)
	require.NotEmpty(t, least.MinAmount)
	v, err := c.CreateWithdrawal(ctx, client.CreateWithdrawal{WithdrawalTerms: terms, CustomID: "w-1"})
	require.NoError(t, err)
	require.Equal(t, "pending", v.Status)
	v, err = c.CancelWithdrawal(ctx, v.WithdrawalID)
	require.NoError(t, err)
	require.Equal(t, "cancelled", v.Status)
	again, err := c.Withdrawal(ctx, v.WithdrawalID)
	require.NoError(t, err)
	require.Equal(t, v, again)
	list, err := c.Withdrawals(ctx, client.WithdrawalFilter{CustomID: "w-1", Sort: "amount_asc"})
	require.NoError(t, err)
	require.Equal(t, []client.Withdrawal{v}, list.Withdrawals)

	overview, err := c.Balances(ctx)
	require.NoError(t, err)
	require.Equal(t, "80.00000000", overview.Account["USDTERC20"].Amount)
	require.Equal(t, "20.00000000", overview.SubAccounts["USDTERC20"].TotalAmount)
	history, err := c.BalanceHistory(ctx, client.BalanceHistoryFilter{Currency: "USDTERC20"})
	require.NoError(t, err)
	require.Equal(t, "80.00000000", history.History[0].BalanceAfter)
	history, err = c.BalanceHistory(ctx, client.BalanceHistoryFilter{WalletID: sub.WalletID})
	require.NoError(t, err)
	require.Equal(t, "20.00000000", history.History[0].BalanceAfter)
	transactions, err := c.Transactions(ctx, client.TransactionFilter{Type: "payment", From: p.CreatedAt, PageSize: 1})
	require.NoError(t, err)
	require.Equal(t, int64(2), transactions.Count)
	require.NotNil(t, transactions.Next)
	seen, _ := w.faults.requests()
	require.Equal(t, "POST /o/token/", seen[0])
	require.Equal(t, 1, count(seen, "POST /o/token/"), "one token for all of it")

	// What was delivered meanwhile is what ReadEvent verifies.
	w.hook.mu.Lock()
	delivered := w.hook.got
	w.hook.mu.Unlock()
	require.NotEmpty(t, delivered)
	for _, d := range delivered {
		r := httptest.NewRequest(http.MethodPost, "/hook", bytes.NewReader(d.Body))
		r.Header = d.Header
		unix, err := strconv.ParseInt(d.Header.Get(webhook.HeaderTimestamp), 10, 64)
		require.NoError(t, err)
		e, err := client.ReadEvent(r, time.Unix(unix, 0), setup.Secret)
		require.NoError(t, err)
		require.NotEmpty(t, e.ID)
		var data struct {
			Status string `json:"status"`
		}
		require.NoError(t, e.Decode(&data))
	}
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// Who asked for a withdrawal does not decide about it: another client, with the role approver, does.
func TestApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p, err := w.client.CreatePayment(ctx, client.CreatePayment{Amount: "100", Currency: "USDTERC20"})
	require.NoError(t, err)
	w.pay(p.Address, "USDTERC20", p.AmountCrypto)
	app, secret, err := w.auth.CreateApp(ctx, auth.NewApp{Tenant: w.tenant, Name: "approver", Role: auth.Approver})
	require.NoError(t, err)
	approver := w.newClient(func(o *client.Options) { o.ClientID, o.ClientSecret = app.ClientID, secret })
	ask := func(custom string) string {
		terms := client.WithdrawalTerms{Amount: "20", Currency: "USDTERC20", Address: p.Address}
		v, err := w.client.CreateWithdrawal(ctx, client.CreateWithdrawal{WithdrawalTerms: terms, CustomID: custom})
		require.NoError(t, err)
		w.mine(1)
		return v.WithdrawalID
	}
	first, second := ask("ask-1"), ask("ask-2")
	_, err = w.client.ApproveWithdrawal(ctx, first, "mine")
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusForbidden, refused.Status)
	for range 2 { // the same answer again is no error
		v, err := approver.ApproveWithdrawal(ctx, first, "an invoice")
		require.NoError(t, err)
		require.Len(t, v.Approvals, 1)
		require.Equal(t, []string{app.ClientID, "approved"}, []string{v.Approvals[0].By, v.Approvals[0].Decision})
	}
	v, err := approver.RefuseWithdrawal(ctx, second, "no invoice")
	require.NoError(t, err)
	require.Equal(t, "failed", v.Status)
}

// TestNothingIsLost: the structs have every field of the service's answers.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client = w.newClient(func(o *client.Options) { o.HTTP = &http.Client{Transport: strict{t, w.server.Client().Transport}} })
	c, ctx := w.client, t.Context()
	p, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "100", Currency: "USDTERC20", CustomerEmail: "a@example.com"})
	require.NoError(t, err)
	w.pay(p.Address, "USDTERC20", p.AmountCrypto)
	_, err = c.CreateWallet(ctx, client.CreateWallet{Name: "sub", ExternalID: "sub"})
	require.NoError(t, err)
	_, err = c.TransferToWallet(ctx, client.CreateTransfer{ExternalID: "sub", Currency: "USDTERC20", Amount: "5"})
	require.NoError(t, err)
	w.mine(1)
	_, err = c.CreateWithdrawal(ctx, client.CreateWithdrawal{WithdrawalTerms: client.WithdrawalTerms{Amount: "20", Currency: "USDTERC20", Address: p.Address}})
	require.NoError(t, err)
	for _, read := range []func() error{
		func() error { _, err := c.Payment(ctx, p.TransactionID); return err },
		func() error { _, err := c.Payments(ctx, client.PaymentFilter{}); return err },
		func() error { _, err := c.Wallets(ctx); return err },
		func() error { _, err := c.WalletBalances(ctx, "", "sub"); return err },
		func() error { _, err := c.Transfers(ctx, client.TransferFilter{WalletID: "sub"}); return err },
		func() error { _, err := c.Withdrawals(ctx, client.WithdrawalFilter{}); return err },
		func() error { _, err := c.Balances(ctx); return err },
		func() error { _, err := c.BalanceHistory(ctx, client.BalanceHistoryFilter{}); return err },
		func() error { _, err := c.Transactions(ctx, client.TransactionFilter{}); return err },
		func() error { _, err := c.Rate(ctx, client.RateQuery{To: "ETH", Full: true}); return err },
		func() error { _, err := c.Me(ctx); return err },
		func() error { _, err := c.Webhooks(ctx); return err },
		func() error { _, err := c.WithdrawalMinimum(ctx, "USDTERC20"); return err },
		func() error { _, err := c.ValidateAddress(ctx, "x", "USDTERC20", ""); return err },
	} {
		require.NoError(t, read())
	}
}

// strict decodes each answer into its struct without leave to skip a field.
type strict struct {
	t    *testing.T
	next http.RoundTripper
}

func (s strict) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.next.RoundTrip(r)
	if err != nil || r.URL.Path == "/o/token/" {
		return res, err
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	into, known := map[string]any{
		"POST /payments/": &client.Payment{}, "GET /payments/": &client.Payments{}, "POST /payments/status/": &client.Payment{},
		"POST /wallets/": &client.Wallet{}, "GET /wallets/": &client.Wallets{}, "POST /wallets/balances/": &client.WalletBalances{},
		"POST /wallets/transfer-to-user/": &client.TransferAccepted{}, "POST /wallets/transfer-history/": &client.Transfers{},
		"POST /withdrawal/": &client.Withdrawal{}, "GET /withdrawal/": &client.Withdrawals{}, "POST /withdrawal/min-amount/": &client.WithdrawalMinimum{},
		"POST /withdrawal/validate-address/": &client.AddressCheck{}, "GET /user/balances/": &client.Balances{}, "GET /user/balances/history/": &client.BalanceHistory{},
		"GET /transactions/transactions/": &client.Transactions{}, "GET /rates/": &client.Rate{}, "GET /user/me/": &client.Tenant{}, "GET /user/webhooks/": &client.Webhooks{},
	}[r.Method+" "+r.URL.Path]
	require.True(s.t, known, r.URL.Path)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(s.t, d.Decode(into), "%s", raw)
	return res, nil
}

func answerWith(status int, header map[string]string, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// lost does the work and cuts the connection instead of answering.
func lost(_ http.ResponseWriter, r *http.Request, api http.Handler) {
	api.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// never cuts the connection before anything is done.
func never(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// TestCreatingCallsTakeEffectOnce: whatever happens to the answer, one payment.
func TestCreatingCallsTakeEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	busy := answerWith(http.StatusServiceUnavailable, nil, "upstream")
	for name, plan := range map[string][]func(http.ResponseWriter, *http.Request, http.Handler){
		"answer lost":         {lost},
		"answer lost twice":   {lost, lost},
		"never arrived":       {never, never, never},
		"gateway errors":      {busy, lost, busy},
		"internal error":      {answerWith(500, nil, `{"error":{"code":"server_error","message":"x"}}`)},
		"still running":       {answerWith(409, nil, `{"error":{"code":"idempotency_in_progress","message":"x"}}`)},
		"answer is no answer": {answerWith(502, nil, "<html>")},
	} {
		before, err := w.client.Payments(ctx, client.PaymentFilter{})
		require.NoError(t, err)
		w.faults.plan(plan...)
		p, err := w.client.CreatePayment(ctx, client.CreatePayment{Amount: "5", Currency: "USDTERC20"})
		require.NoError(t, err, name)
		require.NotEmpty(t, p.Address, name)
		seen, keys := w.faults.requests()
		require.Len(t, seen, len(plan)+1, name)
		for _, k := range keys {
			require.Len(t, k, 32)
			require.Equal(t, keys[0], k, "%s: the same key each time", name)
		}
		after, err := w.client.Payments(ctx, client.PaymentFilter{})
		require.NoError(t, err)
		require.Equal(t, before.Total+1, after.Total, name)
	}
	// A key of the caller's own is used, and found again by another client.
	first, err := w.client.CreatePayment(ctx, client.CreatePayment{Amount: "5", Currency: "USDTERC20", IdempotencyKey: "order-9"})
	require.NoError(t, err)
	second, err := w.newClient().CreatePayment(ctx, client.CreatePayment{Amount: "5", Currency: "USDTERC20", IdempotencyKey: "order-9"})
	require.NoError(t, err)
	require.Equal(t, first, second)
	_, err = w.client.CreatePayment(ctx, client.CreatePayment{Amount: "6", Currency: "USDTERC20", IdempotencyKey: "order-9"})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "idempotency_mismatch", refused.Code)
}

// TestRetries: how often, how long between, and what is never sent twice.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Config.SetKeepAlivesEnabled(false) // else net/http itself sends some of them again
	ctx := t.Context()
	_, err := w.client.Me(ctx)
	require.NoError(t, err)
	busy := answerWith(http.StatusServiceUnavailable, nil, "")
	limited := func(after string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return answerWith(http.StatusTooManyRequests, map[string]string{"Retry-After": after}, `{"error":{"code":"rate_limit_exceeded","message":"slow down","details":{"retry_after":7}}}`)
	}
	get := func() error { _, err := w.client.Payments(ctx, client.PaymentFilter{}); return err }
	cancel := func() error { _, err := w.client.CancelPayment(ctx, "x"); return err }
	for name, c := range map[string]struct {
		plan   []func(http.ResponseWriter, *http.Request, http.Handler)
		do     func() error
		status int // 0 = no error, -1 = no answer
		waits  []time.Duration
	}{
		"backoff doubles":                {[]func(http.ResponseWriter, *http.Request, http.Handler){busy, busy, busy}, get, 0, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}},
		"four attempts":                  {[]func(http.ResponseWriter, *http.Request, http.Handler){busy, busy, busy, busy, busy}, get, 503, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}},
		"Retry-After":                    {[]func(http.ResponseWriter, *http.Request, http.Handler){limited("7")}, get, 0, []time.Duration{7 * time.Second}},
		"Retry-After as a time":          {[]func(http.ResponseWriter, *http.Request, http.Handler){limited(w.clock.Now().Add(9 * time.Hour).Format(http.TimeFormat))}, get, 429, nil},
		"Retry-After of nonsense":        {[]func(http.ResponseWriter, *http.Request, http.Handler){limited("soon")}, get, 0, []time.Duration{250 * time.Millisecond}},
		"too long a Retry-After":         {[]func(http.ResponseWriter, *http.Request, http.Handler){limited("31")}, get, 429, nil},
		"429 repeats what is not safe":   {[]func(http.ResponseWriter, *http.Request, http.Handler){limited("1"), answerWith(404, nil, `{"error":{"code":"not_found","message":"x"}}`)}, cancel, 404, []time.Duration{time.Second}},
		"503 does not":                   {[]func(http.ResponseWriter, *http.Request, http.Handler){busy}, cancel, 503, nil},
		"nor does silence":               {[]func(http.ResponseWriter, *http.Request, http.Handler){never}, cancel, -1, nil},
		"400 is final":                   {[]func(http.ResponseWriter, *http.Request, http.Handler){answerWith(400, nil, `{"error":{"code":"invalid_request","message":"x"}}`)}, get, 400, nil},
		"a redirect is not followed":     {[]func(http.ResponseWriter, *http.Request, http.Handler){answerWith(307, map[string]string{"Location": "http://127.0.0.1:1/"}, "")}, get, 307, nil},
		"silence, for what only reads":   {[]func(http.ResponseWriter, *http.Request, http.Handler){never}, get, 0, []time.Duration{250 * time.Millisecond}},
		"a success that is not JSON":     {[]func(http.ResponseWriter, *http.Request, http.Handler){answerWith(200, nil, "<html>")}, get, -1, nil},
		"request timeout is tried again": {[]func(http.ResponseWriter, *http.Request, http.Handler){answerWith(408, nil, "")}, get, 0, []time.Duration{250 * time.Millisecond}},
	} {
		w.waits = nil
		w.faults.plan(c.plan...)
		err := c.do()
		var refused *client.Error
		switch {
		case c.status == 0:
			require.NoError(t, err, name)
		case c.status > 0:
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, c.status, refused.Status, name)
		default:
			require.Error(t, err, name)
			require.NotErrorAs(t, err, &refused, name)
		}
		require.Equal(t, c.waits, w.waits, name)
		w.faults.plan()
	}
}

// TestTokens: asked for once by however many, renewed a minute early, and once
// more where it was refused.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := w.client.Me(ctx)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	seen, _ := w.faults.requests()
	require.Equal(t, 1, count(seen, "POST /o/token/"), "one of sixteen asked")
	asked := func(do func()) int {
		w.faults.plan()
		do()
		seen, _ := w.faults.requests()
		return count(seen, "POST /o/token/")
	}
	me := func() { _, err := w.client.Me(ctx); require.NoError(t, err) }
	w.clock.Advance(time.Hour - 61*time.Second)
	require.Equal(t, 0, asked(me))
	w.clock.Advance(time.Second)
	require.Equal(t, 1, asked(me), "a minute before its end")
	// Void on the service's side: one renewal, unseen by the caller.
	require.NoError(t, w.auth.DeleteApp(ctx, w.tenant, 1, auth.By{}))
	w.faults.plan()
	_, err := w.client.Me(ctx)
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []any{401, "invalid_client"}, []any{refused.Status, refused.Code})
	require.NotContains(t, err.Error(), w.secret)

	w = newWorld(t)
	me = func() { _, err := w.client.Me(ctx); require.NoError(t, err) }
	me()
	unauthorized := answerWith(401, nil, `{"error":{"code":"authentication_failed","message":"x"}}`)
	w.faults.plan(unauthorized)
	me()
	seen, _ = w.faults.requests()
	require.Equal(t, []string{"GET /user/me/", "POST /o/token/", "GET /user/me/"}, seen)
	w.faults.plan(unauthorized, unauthorized, unauthorized)
	_, err = w.client.Me(ctx)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 401, refused.Status)
	seen, _ = w.faults.requests()
	require.Len(t, seen, 3, "one renewal, not more")
}

// TestTokenRenewalSurvivesItsCaller: the one who asks for all gives up; another
// one asks.
func TestTokenRenewalSurvivesItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, first := make(chan struct{}), true
	var mu sync.Mutex
	slow := w.newClient(func(o *client.Options) {
		o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			hold := first && strings.HasSuffix(r.URL.Path, "/o/token/")
			first = false
			mu.Unlock()
			if hold {
				close(began)
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return w.server.Client().Transport.RoundTrip(r)
		})}
	})
	leader, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := slow.Me(leader)
		require.ErrorIs(t, err, context.Canceled)
	})
	<-began
	wg.Go(func() {
		_, err := slow.Me(t.Context())
		require.NoError(t, err)
	})
	cancel()
	wg.Wait()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestErrors: every form of an error, and its parts.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	_, err := w.client.CreatePayment(ctx, client.CreatePayment{Amount: "1e5", Currency: "USDTERC20", ExpiryMinutes: 5000})
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []any{400, "invalid_request"}, []any{e.Status, e.Code})
	require.NotEmpty(t, e.Field("amount"))
	require.Equal(t, []string{"must be from 1 to 1440"}, e.Field("expiry_minutes"))
	require.Nil(t, e.Field("currency"))
	require.NotEmpty(t, e.RequestID)
	require.Contains(t, err.Error(), e.RequestID)
	_, err = w.client.CreateWithdrawal(ctx, client.CreateWithdrawal{WithdrawalTerms: client.WithdrawalTerms{Amount: "50", Currency: "USDTERC20", Address: "x"}})
	require.ErrorAs(t, err, &e)
	require.Equal(t, "invalid_address", e.Code)
	_, err = w.client.Payment(ctx, "00000000-0000-7000-8000-000000000000")
	require.ErrorAs(t, err, &e)
	require.Equal(t, []any{404, "not_found"}, []any{e.Status, e.Code})
	// Ids cannot leave their place in a path.
	_, err = w.client.Withdrawal(ctx, "../payments")
	require.ErrorAs(t, err, &e)
	require.Equal(t, 404, e.Status)
	wrong := w.newClient(func(o *client.Options) { o.ClientSecret = "wrong-secret-canary" })
	_, err = wrong.Me(ctx)
	require.ErrorAs(t, err, &e)
	require.Equal(t, []any{401, "invalid_grant"}, []any{e.Status, e.Code})
	require.NotContains(t, err.Error(), "canary")
	for body, code := range map[string]string{`{"detail":"no"}`: "bad_request", `{"error":"invalid_scope","error_description":"x"}`: "invalid_scope", "<html>": "bad_request", `{"error":7}`: "bad_request", "": "bad_request"} {
		w.faults.plan(answerWith(400, nil, body))
		_, err = w.client.Me(ctx)
		require.ErrorAs(t, err, &e)
		require.Equal(t, code, e.Code, body)
	}
}

// TestReadEvent: what is not the service's is refused.
func TestReadEvent(t *testing.T) {
	t.Parallel()
	const secret = "sender-and-receiver-share-this"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	body := `{"event":"deposit_received","data":{"amount":"5.00000000"},"timestamp":"2026-01-02T03:04:05.000Z"}`
	request := func(body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		webhook.Headers(r.Header, webhook.NewSigner([]byte(secret)), nil, "id-1", 1, at, []byte(body))
		return r
	}
	e, err := client.ReadEvent(request(body), at.Add(time.Minute), "another", secret)
	require.NoError(t, err)
	require.Equal(t, "deposit_received", e.Event)
	require.Equal(t, "id-1", e.ID)
	require.Equal(t, at, e.Timestamp)
	_, err = client.ReadEvent(request(body), at, "another")
	require.ErrorIs(t, err, client.ErrSignature)
	_, err = client.ReadEvent(request(body), at.Add(time.Hour), secret)
	require.ErrorIs(t, err, client.ErrStale)
	tampered := request(body)
	tampered.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "5.0", "9.0", 1)))
	_, err = client.ReadEvent(tampered, at, secret)
	require.ErrorIs(t, err, client.ErrSignature)
	_, err = client.ReadEvent(request(strings.Repeat(" ", 1<<20)+body), at, secret)
	require.Error(t, err)
	_, err = client.ReadEvent(request("[]"), at, secret)
	require.Error(t, err)
}

// TestOptions: what New refuses, and that nobody else's settings reach it.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []client.Options{
		{},
		{BaseURL: "https://x"},
		{BaseURL: "x", ClientID: "a", ClientSecret: "b"},
		{BaseURL: "ftp://x", ClientID: "a", ClientSecret: "b"},
		{BaseURL: "https://u:p@x", ClientID: "a", ClientSecret: "b"},
		{BaseURL: "https://x?a=b", ClientID: "a", ClientSecret: "b"},
	} {
		_, err := client.New(o)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "p@")
	}
	w := newWorld(t, func(o *httpapi.Options) { o.Prefix = "/pay" })
	mine := &http.Client{}
	prefixed := w.newClient(func(o *client.Options) { o.BaseURL += "/pay/"; o.HTTP = mine })
	_, err := prefixed.Me(t.Context())
	require.NoError(t, err)
	require.Nil(t, mine.CheckRedirect, "the caller's client is left as it was")
	own := w.newClient(func(o *client.Options) { o.BaseURL += "/pay"; o.HTTP = nil })
	_, err = own.Me(t.Context())
	require.NoError(t, err)
}

// TestContextsEnd: waiting ends with the context.
func TestContextsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.newClient(func(o *client.Options) { o.Wait, o.Now, o.Backoff = nil, nil, time.Hour })
	_, err := c.Me(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.faults.plan(func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.WriteHeader(http.StatusServiceUnavailable)
		time.AfterFunc(20*time.Millisecond, cancel)
	})
	_, err = c.Payments(ctx, client.PaymentFilter{})
	require.ErrorIs(t, err, context.Canceled)
	// Nobody listens there.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	dead := w.newClient(func(o *client.Options) { o.BaseURL = "http://" + address })
	_, err = dead.Me(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), w.secret)
}
