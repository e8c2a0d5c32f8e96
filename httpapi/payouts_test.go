package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// salaries is a request for n withdrawals of an amount each.
func (w *world) salaries(n int, amount string) map[string]any {
	list := make([]map[string]any, n)
	for i := range list {
		list[i] = w.wd(map[string]any{"amount": amount, "custom_id": fmt.Sprint("pay-", i), "address": string(w.chains["ETH"].Customer(fmt.Sprint("worker", i)))})
	}
	return map[string]any{"withdrawals": list}
}

// of is one of a request's withdrawals.
func of(request map[string]any, i int) map[string]any {
	return request["withdrawals"].([]map[string]any)[i]
}

// details are those of a refusal.
func details(a answer) map[string]any {
	d, _ := a.at("error", "details").(map[string]any)
	return d
}

func csvOf(w *world, status int, body string, refine ...with) answer {
	w.t.Helper()
	return w.ok(status, "POST", "/payouts/", body, append([]with{header("Content-Type", "text/csv; charset=utf-8")}, refine...)...)
}

func TestPayouts_AreMadeAndShown(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		in := w.salaries(4, "50")
		of(in, 1)["address"], of(in, 3)["amount"] = of(in, 0)["address"], 60.5
		a := w.ok(http.StatusCreated, "POST", "/payouts/", in)
		require.Equal(t, json.Number("4"), a.Body["count"])
		require.Len(t, a.Body, 3)
		made := list(t, a, "withdrawals")
		require.Len(t, made, 4)
		for i, v := range made {
			require.Equal(t, fmt.Sprint("pay-", i), v["custom_id"])
			require.Equal(t, of(in, i)["address"], v["address"])
			require.Equal(t, []any{"pending", w.admin.id}, []any{v["status"], v["requested_by"]})
			one := w.ok(http.StatusOK, "GET", "/withdrawal/"+v["withdrawal_id"].(string)+"/", nil)
			require.Equal(t, v, one.Body)
		}
		_, held := w.held("USDTERC20")
		require.Equal(t, "210.500000", held)
		path := "/payouts/" + a.Body["payout_id"].(string) + "/"
		w.ok(http.StatusOK, "POST", "/withdrawal/"+made[2]["withdrawal_id"].(string)+"/cancel/", nil)
		w.mine(40)
		a = w.ok(http.StatusOK, "GET", path, nil)
		require.Len(t, a.Body, 3)
		require.Equal(t, map[string]any{
			"pending": json.Number("0"), "processing": json.Number("0"), "completed": json.Number("3"), "failed": json.Number("0"), "cancelled": json.Number("1"),
		}, a.Body["counts"])
		for i, v := range list(t, a, "withdrawals") {
			require.Equal(t, made[i]["withdrawal_id"], v["withdrawal_id"])
		}
		for _, p := range []string{path, "/payouts/" + nothing + "/", "/payouts/" + made[0]["withdrawal_id"].(string) + "/"} {
			refine := []with{}
			if p == path {
				refine = append(refine, w.otherShop())
			}
			require.Equal(t, "not_found", w.ok(http.StatusNotFound, "GET", p, nil, refine...).code(), p)
		}
		w.booksHold()
	})
}

// Each field that is wrong is named with the withdrawal that it is of, and nothing is made.
func TestPayouts_NameEachThatIsWrong(t *testing.T) {
	t.Parallel()
	w := newPayer(t, unlimited)
	refused := func(change func(in map[string]any)) map[string]any {
		t.Helper()
		in := w.salaries(5, "50")
		change(in)
		a := w.ok(http.StatusBadRequest, "POST", "/payouts/", in)
		require.Equal(t, "invalid_request", a.code(), a.Raw)
		return details(a)
	}
	keys := func(d map[string]any) (out []string) {
		for k := range d {
			out = append(out, k)
		}
		return out
	}
	require.ElementsMatch(t, []string{"withdrawals[1].address", "withdrawals[3].amount", "withdrawals[4].final_amount"}, keys(refused(func(in map[string]any) {
		delete(of(in, 1), "address")
		of(in, 3)["amount"], of(in, 4)["final_amount"] = "1e5", "yes"
	})), "what cannot be read")
	require.ElementsMatch(t, []string{"withdrawals[0].amount", "withdrawals[1].address", "withdrawals[2].price_currency"}, keys(refused(func(in map[string]any) {
		delete(of(in, 0), "amount")
		delete(of(in, 1), "address")
		of(in, 2)["price_currency"] = "XYZ"
	})), "and what is read and wrong")
	require.Equal(t, []string{"withdrawals[3].address"}, keys(refused(func(in map[string]any) { of(in, 3)["address"] = "nonsense" })))
	require.ElementsMatch(t, []string{"withdrawals[2].currency"}, keys(refused(func(in map[string]any) { of(in, 2)["currency"] = "NONE" })))
	require.ElementsMatch(t, []string{"withdrawals[2].account_id", "withdrawals[4].address"}, keys(refused(func(in map[string]any) {
		of(in, 2)["account_id"], of(in, 4)["address"] = "nobody", "0x000000000000000000000000000000000000dEaD"
	})))
	require.ElementsMatch(t, []string{"withdrawals[0].amount", "withdrawals[2].account_id", "withdrawals[2].address"}, keys(refused(func(in map[string]any) {
		delete(of(in, 0), "amount")
		of(in, 2)["account_id"], of(in, 2)["address"] = "nobody", "nonsense"
	})), "whatever finds it, and two of one withdrawal")
	require.Equal(t, []string{"withdrawals[4].amount"}, keys(refused(func(in map[string]any) { of(in, 4)["amount"] = "0.11" })))
	require.Equal(t, []string{"withdrawals[1].Amount"}, keys(refused(func(in map[string]any) { of(in, 1)["Amount"] = "7" })))
	for _, body := range []string{`{}`, `{"withdrawals":[]}`, `{"withdrawals":null}`, `{"withdrawals":{}}`, `{"withdrawals":"x"}`} {
		a := w.ok(http.StatusBadRequest, "POST", "/payouts/", body)
		require.Equal(t, []string{"withdrawals"}, keys(details(a)), body)
	}
	require.Equal(t, []string{"withdrawals[0]"}, keys(details(w.ok(http.StatusBadRequest, "POST", "/payouts/", `{"withdrawals":[null]}`))))
	for _, body := range []string{`[`, `{"withdrawals":[{"a":1,"a":2}]}`, `{"withdrawals":[{"memo":"\u0000"}]}`, `{"withdrawals":[1}`, "amount\n5"} {
		require.Equal(t, "invalid_request", w.ok(http.StatusBadRequest, "POST", "/payouts/", body).code(), body)
	}
	a := w.ok(http.StatusBadRequest, "POST", "/payouts/", w.salaries(3, "400"))
	require.Equal(t, "insufficient_balance", a.code())
	require.Equal(t, map[string]any{"available": "1000.00000000", "requested": "1200.00000000", "currency": "USDTERC20"}, details(a))
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "GET", "/withdrawal/", nil).Body["total"])
	w.booksHold()
}

func TestPayouts_TooManyAreTooLarge(t *testing.T) {
	t.Parallel()
	w := newPayer(t, unlimited)
	a := w.ok(http.StatusRequestEntityTooLarge, "POST", "/payouts/", w.salaries(1001, "0.001"))
	require.Equal(t, []any{"must have 1 to 1000 entries"}, details(a)["withdrawals"])
	rows := strings.Repeat("5,USDTERC20,"+w.recipient("ETH")+"\n", 1001)
	a = csvOf(w, http.StatusRequestEntityTooLarge, "amount,currency,address\n"+rows)
	require.Equal(t, []any{"must have 1 to 1000 entries"}, details(a)["withdrawals"])
	in := w.salaries(2, "5")
	of(in, 1)["unknown"] = strings.Repeat("x", 1<<20)
	require.Equal(t, "invalid_request", w.ok(http.StatusRequestEntityTooLarge, "POST", "/payouts/", in).code())
	csvOf(w, http.StatusRequestEntityTooLarge, "amount\n"+strings.Repeat("x", 1<<20))
}

func TestPayouts_AsATable(t *testing.T) {
	t.Parallel()
	w := newPayer(t, unlimited)
	to := w.recipient("ETH")
	a := csvOf(w, http.StatusCreated, "\ufeffcustom_id,amount,currency,address,memo,final_amount\r\n"+
		"a,50,USDTERC20,"+to+",,\r\n"+
		"\"b, and more\",60.5,USDTERC20,"+to+",\"two\nlines\",true\r\n\r\n"+
		"c,7,USDTERC20,"+to+",,false")
	made := list(t, a, "withdrawals")
	require.Len(t, made, 3)
	require.Equal(t, []any{"a", nil, "50.00000000"}, []any{made[0]["custom_id"], made[0]["memo"], made[0]["requested_amount"]})
	require.Equal(t, []any{"b, and more", "two\nlines", "60.50000000"}, []any{made[1]["custom_id"], made[1]["memo"], made[1]["amount"]})

	refused := func(body string) map[string]any {
		t.Helper()
		a := csvOf(w, http.StatusBadRequest, body)
		require.Equal(t, "invalid_request", a.code())
		return details(a)
	}
	row := ",USDTERC20," + to + "\n"
	const head = "amount,currency,address\n"
	require.Equal(t, map[string]any{"withdrawals[1].amount": []any{"must be a decimal: at most 40 digits with at most one point, no exponent (line 4)"}}, refused(head+"5"+row+"\n1e3"+row))
	require.Equal(t, map[string]any{"withdrawals[0].address": []any{"is required (line 2)"}}, refused(head+"5,USDTERC20,\n"))
	require.Contains(t, refused(head + "5" + row + "0.11" + row)["withdrawals[1].amount"].([]any)[0], "(line 3)")
	require.Contains(t, refused(head + "5" + row + "5,USDTERC20,nonsense\n")["withdrawals[1].address"].([]any)[0], "(line 3)")
	require.Contains(t, refused(head + "5" + row + "5,NONE," + to)["withdrawals[1].currency"].([]any)[0], "(line 3)")
	for body, want := range map[string]string{
		"amount,address,currancy\n5":       "\"currancy\" is not a column (line 1); columns are amount, price_amount, price_currency, final_amount, currency, blockchain, token, address, memo, custom_id, callback_url, account_id",
		"Amount,currency\n5,USDTERC20":     "\"Amount\" is not a column (line 1); amount is",
		"amount,amount\n5,5":               "amount is a column twice (line 1)",
		"amount;currency;address\n5":       "\"amount;currency;address\" is not a column",
		"":                                 "must be a CSV with the names of its columns in the first line",
		head + "5" + row + "5,USDTERC20\n": "must have as many cells in each line as there are columns, 3 (line 3)",
		head + "5" + row + "\"5" + row:     "must be a CSV: a quote is wrong (line 3)",
		head + "5,USDTERC20,\xff":          "must be a CSV in UTF-8",
		head + "5,USDTERC20,\x00":          "must be a CSV in UTF-8",
		strings.Repeat("é", 50) + "\n5":    "\"" + strings.Repeat("é", 40) + "…\" is not a column",
	} {
		require.Contains(t, refused(body)["body"].([]any)[0], want, body)
	}
	require.Equal(t, map[string]any{"withdrawals": []any{"must have 1 to 1000 entries"}}, refused(head))

	// Only this route takes a table.
	for _, path := range []string{"/withdrawal/", "/payments/"} {
		w.ok(http.StatusUnsupportedMediaType, "POST", path, head, header("Content-Type", "text/csv"))
	}
	a = w.ok(http.StatusUnsupportedMediaType, "POST", "/payouts/", head, header("Content-Type", "text/plain"))
	require.Equal(t, []any{"must be application/json or text/csv"}, details(a)["content_type"])
	csvOf(w, http.StatusUnsupportedMediaType, head, header("Content-Type", "text/csv; charset=latin1"))
}

func TestPayouts_Once(t *testing.T) {
	onStores(t, func(t *testing.T, w *world) {
		key := func(k string) with { return header("Idempotency-Key", k) }
		in := w.salaries(3, "50")
		first := w.ok(http.StatusCreated, "POST", "/payouts/", in, key("march"))
		id := list(t, first, "withdrawals")[0]["withdrawal_id"].(string)
		w.ok(http.StatusOK, "POST", "/withdrawal/"+id+"/cancel/", nil)
		again := w.ok(http.StatusCreated, "POST", "/payouts/", in, key("march"))
		require.Equal(t, first.Raw, again.Raw, "the first answer, whatever has happened since")
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, "idempotency_mismatch", w.ok(http.StatusUnprocessableEntity, "POST", "/payouts/", w.salaries(3, "51"), key("march")).code())
		require.Equal(t, "idempotency_mismatch", w.ok(http.StatusUnprocessableEntity, "POST", "/payouts/", `{`, key("march")).code(), "judged before validation")
		w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(nil), key("march")) // a key is its route's
		ids := map[any]bool{}
		for _, a := range atOnce(16, func(int) answer { return w.do("POST", "/payouts/", w.salaries(2, "50"), key("april")) }) {
			if a.Status != http.StatusConflict {
				require.Equal(t, http.StatusCreated, a.Status, a.Raw)
				ids[a.Body["payout_id"]] = true
			}
		}
		require.Len(t, ids, 1)
		_, held := w.held("USDTERC20")
		require.Equal(t, "300.000000", held)
		w.booksHold()
	})
}

func TestPayouts_AreLimited(t *testing.T) {
	t.Parallel()
	w := newPayer(t, limits(func(l *httpapi.Limits) { l.PayoutsPerHour = 2 }))
	for range 2 {
		w.ok(http.StatusCreated, "POST", "/payouts/", w.salaries(1, "5"))
	}
	requireLimited(t, w, w.do("POST", "/payouts/", w.salaries(1, "5")), 2, time.Hour)
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(nil))
	require.Equal(t, 100, httpapi.DefaultLimits().PayoutsPerHour)
}

// A price that is missing is answered as for one withdrawal. A wrong field is named first.
func TestPayouts_WithoutAPrice(t *testing.T) {
	t.Parallel()
	w := newPayer(t, unlimited)
	w.rates.Set("USDT", "USD", decimal.NewFromInt(9)) // no price that a dollar has
	in := w.salaries(2, "50")
	delete(of(in, 1), "amount")
	of(in, 1)["price_amount"] = "50"
	a := w.ok(http.StatusServiceUnavailable, "POST", "/payouts/", in)
	require.Equal(t, "server_error", a.code())
	delete(of(in, 0), "amount")
	a = w.ok(http.StatusBadRequest, "POST", "/payouts/", in)
	require.Len(t, details(a), 1)
	require.Contains(t, details(a), "withdrawals[0].amount")
}

// TestPayouts_AFaultOfOursBesideThoseOfTheRequest: the answer names what is wrong with the request. A fault of ours that was
// met beside it stands in the log, once for all withdrawals that met it.
func TestPayouts_AFaultOfOursBesideThoseOfTheRequest(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := newPayer(t, unlimited, func(s *setup) {
		s.options = func(o *httpapi.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	})
	w.rates.Set("USDT", "USD", decimal.NewFromInt(9)) // no price that a dollar has
	in := w.salaries(3, "50")
	for i := range 2 {
		delete(of(in, i), "amount")
		of(in, i)["price_amount"] = "50"
	}
	w.ok(http.StatusServiceUnavailable, "POST", "/payouts/", in)
	require.Equal(t, []int{1, 0}, []int{strings.Count(log.String(), "msg=request_failed"), strings.Count(log.String(), "msg=payout_fault_unanswered")})
	delete(of(in, 2), "amount")
	a := w.ok(http.StatusBadRequest, "POST", "/payouts/", in)
	require.Equal(t, "withdrawals[2].amount", slices.Collect(maps.Keys(details(a)))[0])
	require.Len(t, details(a), 1)
	require.Equal(t, 1, strings.Count(log.String(), "msg=payout_fault_unanswered"), log.String())
	line := log.String()[strings.Index(log.String(), "level=WARN msg=payout_fault_unanswered"):]
	require.Contains(t, line, "tenant="+w.tenant)
	require.Contains(t, line, "request_id=")
	require.Contains(t, line, "rates: ", "why")
	w.ok(http.StatusBadRequest, "POST", "/payouts/", in)
	require.Equal(t, 2, strings.Count(log.String(), "msg=payout_fault_unanswered"), "each refusal says it")
	delete(of(in, 0), "price_amount")
	delete(of(in, 1), "price_amount")
	w.ok(http.StatusBadRequest, "POST", "/payouts/", in)
	require.Equal(t, 2, strings.Count(log.String(), "msg=payout_fault_unanswered"), "where there is no fault of ours, nothing is said")
}

// FuzzTable: whatever is sent as a table, the answer is documented and no fault of ours, and no
// line is passed over.
func FuzzTable(f *testing.F) {
	w := newWorld(f, unlimited, quiet)
	for _, body := range []string{
		"amount,currency,address\n5,USDTERC20,0x1", "\ufeffamount\r\n5\r\n", "amount,amount\n1,2", "\"amount\n\"\n", "amount\n\"5", "a;b\n1;2", "", "\n\n", "amount,memo\n1,\"a\nb\"\n\n2,c",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payouts/", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "text/csv")
		r.Header.Set("Authorization", "Bearer "+w.token)
		a := w.on(t).send(r)
		require.Less(t, a.Status, 500, a.Raw)
		require.NotEqual(t, http.StatusCreated, a.Status, "the shop has no money")
	})
}
