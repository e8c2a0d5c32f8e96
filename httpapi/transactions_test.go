package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// lines puts n payments into the shop's history, a second after one another.
func (w *world) lines(prefix string, n int, refine func(i int, a *storage.Activity)) {
	w.t.Helper()
	c := storage.Change{ID: "lines/" + prefix, Partition: storage.Tenant(w.tenant)}
	for i := range n {
		a := storage.Activity{
			Kind: storage.ActivityPayment, Status: "completed", Currency: "USDTERC20", Amount: 1_000_000, Fee: 10_000, Net: 990_000,
			Address: "0xabc", CreatedAt: w.clock.Now().Add(time.Duration(i-n) * time.Second), UpdatedAt: w.clock.Now(),
		}
		if refine != nil {
			refine(i, &a)
		}
		id, of := fmt.Sprintf("00000000-0000-7000-8000-%s%08d", prefix, i), payment.Tally
		row := payment.Payments.Row(id, 0, time.Time{}, payment.Payment{
			Status: payment.Status(a.Status), Currency: string(a.Currency), Address: id, Live: a.Amount, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
		})
		if a.Kind == storage.ActivityWithdrawal {
			of = withdrawal.Tally
			row = withdrawal.Withdrawals.Row(id, 0, time.Time{}, withdrawal.Withdrawal{
				Status: withdrawal.Status(a.Status), Currency: string(a.Currency), Requested: a.Amount, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
			})
		}
		item := of.Of(row)
		c.Count = append(c.Count, of.Moved(nil, &item)...)
		c.Put = append(c.Put, row, storage.Activities.Row(id, 0, time.Time{}, a))
	}
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, c))
}

const (
	paymentLine    = "id string, type string, transaction_id string, "
	withdrawalLine = "id string, type string, withdrawal_id string, "
	restOfLine     = "amount string, currency string, status string, created_at string, updated_at string, reference %s, blockchain_address string, transaction_hash %s, fee_amount string, net_amount string, metadata object"
)

func TestTransactionItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(w.tenant)
	w.earn("USDTERC20", "25", "")
	w.clock.Advance(time.Second)
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "7", "currency": "USDTERC20"})
	w.clock.Advance(time.Second)
	partly := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "8", "currency": "USDTERC20", "order_id": "o-8"})
	_, err := w.chains["ETH"].Pay(chain.Address(partly.Body["address"].(string)), "USDTERC20", decimal.New(3, 0))
	require.NoError(t, err)
	w.mine(1)

	a := w.ok(http.StatusOK, "GET", "/transactions/transactions/", nil)
	require.Equal(t, "count number, next null, previous null, results array", members(t, a.Raw))
	require.Equal(t, "3", a.Body["count"].(json.Number).String())
	results := a.Body["results"].([]any)
	require.Equal(t, paymentLine+fmt.Sprintf(restOfLine, "string", "string"), members(t, inside(t, a.Raw, "results", "0")))
	for i, want := range []string{"3.00000000 waiting o-8", "7.00000000 waiting <nil>", "25.00000000 completed earned"} {
		m := results[i].(map[string]any)
		require.Equal(t, want, fmt.Sprint(m["amount"], " ", m["status"], " ", m["reference"]))
		require.Equal(t, m["id"], m["transaction_id"])
		require.Equal(t, m["amount"], m["net_amount"])
		require.Equal(t, "0.00000000", m["fee_amount"])
		meta := m["metadata"].(map[string]any)
		require.Len(t, meta, 2)
		require.IsType(t, "", meta["order_id"])
		require.IsType(t, json.Number(""), meta["confirmations"])
	}
	second := results[1].(map[string]any)
	require.Equal(t, p.Body["transaction_id"], second["id"])
	require.Equal(t, p.Body["address"], second["blockchain_address"])
	require.Nil(t, second["transaction_hash"])
	require.Equal(t, p.Body["created_at"], second["created_at"])

	// A withdrawal's line, as withdrawals write it.
	w.lines("aaaa", 1, func(_ int, a *storage.Activity) {
		*a = storage.Activity{
			Kind: storage.ActivityWithdrawal, Status: "pending", Currency: "USDTERC20", Amount: 5_000_000, Fee: 1_250_000, Net: 3_750_000, Address: "0xdef",
			CreatedAt: w.clock.Now().Add(time.Second), UpdatedAt: w.clock.Now(), Metadata: json.RawMessage(`{"custom_id":null,"network_fee":"1.25000000"}`),
		}
	})
	a = w.ok(http.StatusOK, "GET", "/transactions/transactions?type=withdrawal", nil)
	require.Equal(t, withdrawalLine+fmt.Sprintf(restOfLine, "null", "null"), members(t, inside(t, a.Raw, "results", "0")))
	m := a.Body["results"].([]any)[0].(map[string]any)
	require.Equal(t, m["id"], m["withdrawal_id"])
	require.Equal(t, "5.00000000 1.25000000 3.75000000", fmt.Sprint(m["amount"], " ", m["fee_amount"], " ", m["net_amount"]))
	require.Equal(t, map[string]any{"custom_id": nil, "network_fee": "1.25000000"}, m["metadata"])
}

func TestTransactionFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	at := w.clock.Now().Add(-45 * time.Second) // of the first line
	w.lines("aaaa", 45, func(i int, a *storage.Activity) {
		if i%3 == 0 {
			a.Kind, a.Status, a.Currency = storage.ActivityWithdrawal, "pending", "ETH"
		}
	})
	stamp := func(second int) string {
		return url.QueryEscape(at.Add(time.Duration(second) * time.Second).Format(time.RFC3339))
	}
	reading := bearer(w.newToken(w.newApp(w.tenant, "", auth.Read), ""))
	for query, want := range map[string]string{ // count, results
		"":                                 "45 20",
		"page=1":                           "45 20",
		"page=2":                           "45 20",
		"page=3":                           "45 5",
		"page=4":                           "45 0",
		"page=999999999999999999":          "45 0",
		"page_size=1":                      "45 1",
		"page_size=100":                    "45 45",
		"page_size=100&page=2":             "45 0",
		"page=2&page_size=44":              "45 1",
		"type=payment":                     "30 20",
		"type=withdrawal":                  "15 15",
		"status=pending":                   "15 15",
		"status=completed":                 "30 20",
		"status=waiting":                   "0 0",
		"status=cancelled&type=payment":    "0 0",
		"currency=ETH":                     "15 15",
		"currency=BTC":                     "0 0",
		"date_from=" + stamp(40):           "5 5",
		"date_to=" + stamp(4):              "5 5",
		"date_from=2026-01-02":             "45 20",
		"date_from=2026-01-03":             "0 0",
		"date_to=2026-01-02":               "45 20",
		"date_to=2026-01-01":               "0 0",
		"date_to=2026-01-02T03:03:20":      "1 1",
		"date_to=2026-01-02T03:03:19.999Z": "0 0",
		"date_from=" + stamp(5) + "&date_to=" + stamp(4):                     "0 0",
		"date_from=2026-01-02T04:03:20%2B01:00&date_to=2026-01-02T03:03:20Z": "1 1",
		"type=withdrawal&status=pending&currency=ETH&date_from=" + stamp(1):  "14 14",
		"limit=0&unknown=x": "45 20",
	} {
		a := w.ok(http.StatusOK, "GET", "/transactions/transactions/?"+query, nil, reading)
		require.Equal(t, want, fmt.Sprint(a.Body["count"], " ", len(a.Body["results"].([]any))), query)
	}
	for query, blamed := range map[string][]string{
		"page=0": {"page"}, "page=-1": {"page"}, "page=x": {"page"}, "page=1.0": {"page"}, "page=9999999999999999999": {"page"}, "page=1&page=2": {"page"},
		"page_size=0": {"page_size"}, "page_size=101": {"page_size"}, "page_size=": nil,
		"type=deposit": {"type"}, "status=partially_paid": {"status"}, "status=Completed": {"status"}, "currency=usdterc20": {"currency"}, "currency=XYZ": {"currency"},
		"date_from=yesterday": {"date_from"}, "date_to=2026-02-30": {"date_to"}, "date_from=1767322800": {"date_from"},
		"page=0&page_size=101&type=a&status=b&currency=c&date_from=d&date_to=e": {"page", "page_size", "type", "status", "currency", "date_from", "date_to"},
		"currency=c&date_from=d&date_to=e":                                      {"currency", "date_from", "date_to"},
	} {
		a := w.do("GET", "/transactions/transactions/?"+query, nil)
		if blamed == nil {
			require.Equal(t, http.StatusOK, a.Status, query)
			continue
		}
		require.Equal(t, http.StatusBadRequest, a.Status, query)
		require.Equal(t, "invalid_request", a.code())
		require.ElementsMatch(t, blamed, a.blamed(), query)
	}
	for _, status := range report.Statuses() {
		w.ok(http.StatusOK, "GET", "/transactions/transactions/?status="+status, nil)
		w.ok(http.StatusOK, "POST", "/transactions/export/", map[string]any{"status": status})
	}
	other := w.ok(http.StatusOK, "GET", "/transactions/transactions/", nil, w.anotherTenant())
	require.JSONEq(t, `{"count":0,"next":null,"previous":null,"results":[]}`, other.Raw)
	writing := bearer(w.newToken(w.newApp(w.tenant, "", auth.Write), ""))
	require.Equal(t, "permission_denied", w.ok(http.StatusForbidden, "GET", "/transactions/transactions/", nil, writing).code())
	require.Equal(t, "authentication_failed", w.ok(http.StatusUnauthorized, "GET", "/transactions/transactions/", nil, nobody()).code())
	_, key, err := w.auth.CreateKey(t.Context(), auth.NewKey{Tenant: w.tenant, Name: "key"})
	require.NoError(t, err)
	w.ok(http.StatusUnauthorized, "GET", "/transactions/transactions/", nil, nobody(), apiKey(key))
}

// TestFS12_TransactionLinks: next and previous lead through the whole history,
// wherever the handler is mounted, and never to a host that a request names.
func TestFS12_TransactionLinks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prefix, base string
		strip        string // that the host takes away
		refine       with
		origin       string
	}{
		"plain":           {},
		"prefix":          {prefix: "/pay", origin: "/pay"},
		"stripped":        {strip: "/v1", origin: "/v1"},
		"stripped inside": {prefix: "/pay", strip: "/outer", origin: "/outer/pay"},
		"base":            {base: "https://api.shop.example", origin: "https://api.shop.example"},
		"base, prefix":    {prefix: "/pay", base: "https://api.shop.example/", origin: "https://api.shop.example/pay"},
		"base, stripped":  {strip: "/v1", base: "https://api.shop.example/crypto", origin: "https://api.shop.example/crypto"},
		"host":            {refine: func(r *http.Request) { r.Host = "thief.example" }},
		"host, base":      {refine: func(r *http.Request) { r.Host = "thief.example" }, base: "https://api.shop.example", origin: "https://api.shop.example"},
		"proxy":           {refine: header("X-Forwarded-Host", "thief.example")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *setup) {
				s.options = func(o *httpapi.Options) { o.Prefix, o.BaseURL = row.prefix, row.base }
			})
			w.lines("aaaa", 7, nil)
			api := http.StripPrefix(row.strip, w.api)
			const filters = "?type=payment&status=completed&date_from=2026-01-02T00%3A00%3A00%2B00%3A00&page_size=3"
			at := row.strip + row.prefix + "/transactions/transactions/" + filters
			type page struct {
				Next, Previous *string
				Results        []struct{ ID string }
			}
			get := func(target string) page {
				r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
				r.Header.Set("Authorization", "Bearer "+w.token)
				if row.refine != nil {
					row.refine(r)
				}
				rec := httptest.NewRecorder()
				api.ServeHTTP(rec, r)
				require.Equal(t, http.StatusOK, rec.Code, rec.Body)
				var p page
				require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &p))
				return p
			}
			local := func(link *string) string { // as the host's proxy forwards it
				require.NotNil(t, link)
				rest, ok := strings.CutPrefix(*link, row.origin+"/transactions/transactions/")
				require.True(t, ok, *link)
				return row.strip + row.prefix + "/transactions/transactions/" + rest
			}
			var ids []string
			first := get(at)
			require.Nil(t, first.Previous)
			last := first
			for p := first; ; p = last {
				for _, r := range p.Results {
					ids = append(ids, r.ID)
				}
				if p.Next == nil {
					break
				}
				last = get(local(p.Next))
			}
			require.Len(t, ids, 7)
			require.True(t, slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }))
			back := get(local(last.Previous))
			require.Len(t, back.Results, 3)
			require.Equal(t, first, get(local(back.Previous)))
			behind := get(at + "&page=50")
			require.Nil(t, behind.Next)
			require.Equal(t, last.Results, get(local(behind.Previous)).Results, "the last page is before one that is not there")
		})
	}
}

func TestTransactionRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 100 {
		w.ok(http.StatusOK, "GET", "/transactions/transactions/", nil)
	}
	a := w.ok(http.StatusTooManyRequests, "GET", "/transactions/transactions/", nil)
	require.Equal(t, "100", a.Header.Get("X-RateLimit-Limit"))
	w.ok(http.StatusOK, "GET", "/user/balances/", nil)
	w.clock.Advance(time.Minute)
	w.ok(http.StatusOK, "GET", "/transactions/transactions/", nil)
}

func TestTransactionStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	empty := w.ok(http.StatusOK, "GET", "/transactions/stats", nil)
	require.JSONEq(t, `{"period":{"date_from":"2025-12-03T03:04:05.000Z","date_to":"2026-01-02T03:04:05.000Z"},
		"payments":{"count":0,"volume_usd":"0.00","by_status":{}},"withdrawals":{"count":0,"volume_usd":"0.00","by_status":{}},"by_currency":[]}`, empty.Raw)
	w.fund(w.tenant)
	w.earn("USDTERC20", "25", "")
	w.earn("ETH", "20.50", "")
	w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "9", "currency": "ETH"})
	w.lines("aaaa", 3, func(i int, a *storage.Activity) {
		a.Kind, a.Status, a.Currency = storage.ActivityWithdrawal, []string{"completed", "cancelled", "failed"}[i], "USDTERC20"
		a.CreatedAt = w.clock.Now()
	})
	s := w.ok(http.StatusOK, "GET", "/transactions/stats/", nil)
	require.Equal(t, "period object, payments object, withdrawals object, by_currency array", members(t, s.Raw))
	require.JSONEq(t, `{"count":3,"volume_usd":"45.50","by_status":{"completed":{"count":2,"volume":"45.50"},"waiting":{"count":1,"volume":"0.00"}}}`, inside(t, s.Raw, "payments"))
	require.JSONEq(t, `{"count":3,"volume_usd":"1.00","by_status":{"completed":{"count":1,"volume":"1.00"},"cancelled":{"count":1,"volume":"0.00"},"failed":{"count":1,"volume":"0.00"}}}`, inside(t, s.Raw, "withdrawals"))
	require.JSONEq(t, `[
		{"currency":"ETH","count":2,"volume":"0.01025000","payments":{"count":2,"volume":"0.01025000","volume_usd":"20.50"},"withdrawals":{"count":0,"volume":"0.00000000","volume_usd":"0.00"}},
		{"currency":"USDTERC20","count":4,"volume":"26.00000000","payments":{"count":1,"volume":"25.00000000","volume_usd":"25.00"},"withdrawals":{"count":3,"volume":"1.00000000","volume_usd":"1.00"}}]`,
		inside(t, s.Raw, "by_currency"))
	require.Equal(t, "date_from string, date_to string", members(t, inside(t, s.Raw, "period")))

	count := func(query string) string {
		return w.ok(http.StatusOK, "GET", "/transactions/stats/?"+query, nil).at("payments", "count").(json.Number).String()
	}
	require.Equal(t, "2", count("currency=ETH"))
	require.Equal(t, "3", count("date_from=2026-01-02"))
	require.Equal(t, "0", count("date_to=2026-01-01"))
	require.Equal(t, "0", count("date_from=2026-01-03&date_to=2026-01-01"))
	old := w.ok(http.StatusOK, "GET", "/transactions/stats/?date_to=2025-06-30", nil)
	require.JSONEq(t, `{"date_from":"2025-06-01T00:00:00.000Z","date_to":"2025-06-30T23:59:59.999Z"}`, inside(t, old.Raw, "period"))
	for query, blamed := range map[string][]string{
		"date_from=x": {"date_from"}, "currency=x": {"currency"}, "date_from=x&date_to=y&currency=z": {"date_from", "date_to", "currency"},
	} {
		require.ElementsMatch(t, blamed, w.ok(http.StatusBadRequest, "GET", "/transactions/stats/?"+query, nil).blamed())
	}
	require.Equal(t, "0", w.ok(http.StatusOK, "GET", "/transactions/stats/", nil, w.anotherTenant()).at("payments", "count").(json.Number).String())
	// Without a rate there is no sum.
	w.lines("bbbb", 1, func(_ int, a *storage.Activity) {
		a.Kind, a.Currency = storage.ActivityWithdrawal, "XRP"
	})
	require.Nil(t, w.ok(http.StatusOK, "GET", "/transactions/stats/", nil).at("withdrawals", "volume_usd"))
}

// hostile are references that a spreadsheet might take for more than text, with
// what a CSV export makes of them.
var hostile = map[string]string{
	`=1+1`: `'=1+1`, `=cmd|'/C calc'!A0`: `'=cmd|'/C calc'!A0`, `+1+1`: `'+1+1`, `-2+3`: `'-2+3`, `@SUM(A1)`: `'@SUM(A1)`,
	"\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", `＝1`: `'＝1`, `=`: `'=`, `-`: `'-`, `+.5`: `'+.5`, `-1e5`: `'-1e5`, `--1`: `'--1`,
	`-5`: `-5`, `+49.30`: `+49.30`, `17`: `17`, `a=b`: `a=b`, `say "hi", ok`: `say "hi", ok`, "two\r\nlines": "two\r\nlines", "two\nlines": "two\nlines",
	` =1`: ` =1`, `'=1`: `'=1`, `äöü, €`: `äöü, €`, `=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`,
}

// TestExport: the file has every line of the list, the same in both formats.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	references := []string{}
	for r := range hostile {
		references = append(references, r)
	}
	slices.Sort(references)
	w.lines("aaaa", len(references), func(i int, a *storage.Activity) {
		a.Reference, a.Metadata = references[i], json.RawMessage(`{"order_id":"x\"y","confirmations":3}`)
		if i%2 == 0 {
			a.Kind, a.Status, a.TxHash = storage.ActivityWithdrawal, "failed", "0x12"
		}
	})
	list := w.ok(http.StatusOK, "GET", "/transactions/transactions/?page_size=100", nil)
	want := inside(t, list.Raw, "results")

	j := w.ok(http.StatusOK, "POST", "/transactions/export/", `{"format":"json"}`)
	require.JSONEq(t, want, j.Raw)
	require.Equal(t, "application/json", j.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="transactions-20260102T030405Z.json"`, j.Header.Get("Content-Disposition"))

	for _, body := range []string{`{}`, `{"format":"csv","page":5}`} {
		c := w.ok(http.StatusOK, "POST", "/transactions/export", body)
		require.Contains(t, c.Header.Get("Content-Type"), "text/csv; charset=utf-8")
		require.Equal(t, `attachment; filename="transactions-20260102T030405Z.csv"`, c.Header.Get("Content-Disposition"))
		require.True(t, strings.HasPrefix(c.Raw, "id,type,transaction_id,withdrawal_id,amount,currency,status,created_at,updated_at,reference,blockchain_address,transaction_hash,fee_amount,net_amount,metadata\r\n"))
		records := parseCSV(t, c.Raw)
		items := list.Body["results"].([]any)
		require.Len(t, records, len(items)+1)
		for i, item := range items {
			m := item.(map[string]any)
			for k, name := range records[0] {
				cell := records[i+1][k]
				switch name {
				case "reference":
					require.Equal(t, hostile[m["reference"].(string)], cell)
				case "metadata":
					require.JSONEq(t, `{"order_id":"x\"y","confirmations":3}`, cell)
				default:
					text, _ := m[name].(string)
					require.Equal(t, text, cell, name)
				}
			}
		}
		first, _, _ := strings.Cut(c.Raw[strings.Index(c.Raw, "\r\n")+2:], "\r\n")
		require.Contains(t, first, ",1.00000000,USDTERC20,", "amounts stay numbers, without quotes")
	}
	for body, n := range map[string]int{
		`{"type":"payment","format":"json"}`: len(references) / 2, `{"status":"failed","format":"json"}`: (len(references) + 1) / 2, `{"currency":"ETH","format":"json"}`: 0,
		`{"date_from":"2026-01-03","format":"json"}`: 0, `{"date_to":"2026-01-02","format":"json"}`: len(references),
	} {
		var got []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(w.ok(http.StatusOK, "POST", "/transactions/export/", body).Raw), &got))
		require.Len(t, got, n, body)
	}
	for body, blamed := range map[string][]string{
		`{"format":"xlsx"}`: {"format"}, `{"format":1}`: {"format"}, `{"type":"x"}`: {"type"}, `{"date_from":5}`: {"date_from"}, ``: {"body"}, `[]`: {"body"},
		`{"format":"x","type":"x","status":"x","currency":"x","date_from":"x","date_to":"x"}`: {"format", "type", "status", "currency", "date_from", "date_to"},
		`{"currency":"x","date_from":"x","date_to":"x"}`:                                      {"currency", "date_from", "date_to"},
	} {
		require.ElementsMatch(t, blamed, w.ok(http.StatusBadRequest, "POST", "/transactions/export/", body).blamed(), body)
	}
	other := w.anotherTenant()
	require.JSONEq(t, `[]`, w.ok(http.StatusOK, "POST", "/transactions/export/", `{"format":"json"}`, other).Raw)
	require.Len(t, parseCSV(t, w.ok(http.StatusOK, "POST", "/transactions/export/", `{}`, other).Raw), 1)
}

// parseCSV reads RFC 4180 strictly: the standard library is milder, and turns CRLF
// inside quotes into LF.
func parseCSV(t testing.TB, s string) [][]string {
	t.Helper()
	var out [][]string
	for s != "" {
		var line []string
		for {
			var cell string
			if strings.HasPrefix(s, `"`) {
				var b strings.Builder
				s = s[1:]
				for {
					i := strings.IndexByte(s, '"')
					require.GreaterOrEqual(t, i, 0, "a quote is not closed")
					b.WriteString(s[:i])
					if s = s[i+1:]; !strings.HasPrefix(s, `"`) {
						break
					}
					b.WriteByte('"')
					s = s[1:]
				}
				cell = b.String()
			} else {
				i := strings.IndexAny(s, ",\r\n\"")
				require.GreaterOrEqual(t, i, 0)
				cell, s = s[:i], s[i:]
			}
			line = append(line, cell)
			if !strings.HasPrefix(s, ",") {
				break
			}
			s = s[1:]
		}
		require.True(t, strings.HasPrefix(s, "\r\n"), "a line ends with CRLF: %q", s)
		s = s[2:]
		out = append(out, line)
	}
	return out
}

// slowStore waits before every later page of the history.
type slowStore struct {
	storage.Store
	wait  time.Duration
	finds atomic.Int64
	most  atomic.Int64 // rows in one answer
	fail  int64        // at this question, 0 = never
}

func (s *slowStore) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if q.Table != storage.Activities.Table {
		return s.Store.Find(ctx, q)
	}
	if n := s.finds.Add(1); n == s.fail {
		return nil, fmt.Errorf("the disk is gone: %w", io.ErrUnexpectedEOF)
	} else if n > 1 && s.wait > 0 {
		select {
		case <-time.After(s.wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	rows, err := s.Store.Find(ctx, q)
	s.most.Store(max(s.most.Load(), int64(len(rows))))
	return rows, err
}

// TestExportTakesItsTime: an export is streamed in pages, may take longer than
// other requests, and one that breaks off does not look like a whole file.
func TestExportTakesItsTime(t *testing.T) {
	t.Parallel()
	slow := &slowStore{Store: memory.New()}
	w := newWorld(t, unlimited, func(s *setup) {
		s.store = slow
		s.options = func(o *httpapi.Options) { o.Limits, o.Timeout = &httpapi.Limits{}, 600*time.Millisecond }
	})
	for i := range 4 {
		w.lines(fmt.Sprintf("%04d", i), 400, nil)
	}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	export := func() (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/transactions/export/", strings.NewReader(`{}`))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+w.token)
		answer, err := server.Client().Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.EqualValues(t, -1, answer.ContentLength, "streamed")
		n, lines := 0, bufio.NewScanner(answer.Body)
		for lines.Scan() {
			n++
		}
		return n, lines.Err()
	}
	slow.finds.Store(0)
	slow.wait = 150 * time.Millisecond
	n, err := export()
	require.NoError(t, err)
	require.Equal(t, 1601, n)
	require.GreaterOrEqual(t, slow.finds.Load(), int64(4), "each waited; together more than the timeout")
	require.LessOrEqual(t, slow.most.Load(), int64(500))

	slow.finds.Store(0)
	slow.wait, slow.fail = 0, 4
	n, err = export()
	require.Error(t, err, "half a file")
	require.Less(t, n, 1601)
}
