package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListWithdrawals(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	w.earn("BTC", "60000.00", "")
	const step = time.Minute
	start := w.clock.Now()
	var ids []string
	for _, c := range []map[string]any{
		{"amount": "50", "custom_id": "a"},
		{"amount": "20", "custom_id": "b"},
		{"amount": "90", "custom_id": "a"},
		{"amount": "0.5", "currency": "BTC", "address": w.recipient("BTC")},
	} {
		ids = append(ids, w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(c)).Body["withdrawal_id"].(string))
		w.clock.Advance(step)
	}
	w.ok(http.StatusOK, "POST", "/withdrawal/"+ids[1]+"/cancel", nil)
	at := func(n int) string { return start.Add(time.Duration(n) * step).Format(time.RFC3339) }
	day := start.Format(time.DateOnly)
	for query, want := range map[string][]int{
		"":                                 {3, 2, 1, 0},
		"sort=created_desc":                {3, 2, 1, 0},
		"sort=created_asc":                 {0, 1, 2, 3},
		"sort=amount_desc":                 {2, 0, 1, 3},
		"sort=amount_asc":                  {3, 1, 0, 2},
		"status=pending":                   {3, 2, 0},
		"status=cancelled":                 {1},
		"status=failed":                    {},
		"blockchain=BTC":                   {3},
		"token=USDT":                       {2, 1, 0},
		"currency=USDTERC20":               {2, 1, 0},
		"blockchain=ETH&token=USDC":        {},
		"custom_id=a":                      {2, 0},
		"custom_id=A":                      {},
		"custom_id=%25":                    {},
		"custom_id=a&status=pending&sort=": {2, 0},
		"start_date=" + at(2):              {3, 2},
		"end_date=" + at(1):                {1, 0},
		"start_date=" + at(1) + "&end_date=" + at(2):   {2, 1},
		"start_date=" + at(3) + "&end_date=" + at(1):   {},
		"start_date=" + day + "&end_date=" + day:       {3, 2, 1, 0},
		"end_date=2026-01-01":                          {},
		"start_date=" + strings.TrimSuffix(at(3), "Z"): {3},
		"limit=2&offset=1":                             {2, 1},
		"limit=1":                                      {3},
		"limit=100":                                    {3, 2, 1, 0},
		"offset=4":                                     {},
	} {
		a := w.ok(http.StatusOK, "GET", "/withdrawal/?"+query, nil)
		got := []int{}
		for _, v := range a.Body["withdrawals"].([]any) {
			got = append(got, slices.Index(ids, v.(map[string]any)["withdrawal_id"].(string)))
		}
		require.Equal(t, want, got, query)
		if !strings.Contains(query, "limit") && !strings.Contains(query, "offset") {
			require.Equal(t, fmt.Sprint(len(want), " 20 0"), fmt.Sprint(a.Body["total"], " ", a.Body["limit"], " ", a.Body["offset"]), query)
		}
	}
	a := w.ok(http.StatusOK, "GET", "/withdrawal?limit=2&offset=1", nil)
	require.Equal(t, "4 2 1", fmt.Sprint(a.Body["total"], " ", a.Body["limit"], " ", a.Body["offset"]))
	require.Len(t, a.Body, 4)
	item := a.Body["withdrawals"].([]any)[0]
	hasExactly(t, a.Raw[strings.Index(a.Raw, "["):], item, withKinds(withdrawalFields, "memo", aNull, "callback_url", aNull)...)
	require.Equal(t, "0", fmt.Sprint(w.ok(http.StatusOK, "GET", "/withdrawal", nil, w.otherShop()).Body["total"]))
}

func TestListWithdrawalsRefusesFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, fields := range map[string][]string{
		"limit=0":                              {"limit"},
		"limit=101":                            {"limit"},
		"limit=x":                              {"limit"},
		"limit=1&limit=2":                      {"limit"},
		"offset=-1":                            {"offset"},
		"offset=1.0":                           {"offset"},
		"status=sent":                          {"status"},
		"status=PENDING":                       {"status"},
		"sort=amount":                          {"sort"},
		"sort=created_desc%3B--":               {"sort"},
		"blockchain=eth":                       {"blockchain"},
		"token=usdt":                           {"token"},
		"currency=NOPE":                        {"currency"},
		"start_date=yesterday":                 {"start_date"},
		"end_date=2026-02-30":                  {"end_date"},
		"custom_id=" + strings.Repeat("x", 65): {"custom_id"},
		"limit=0&status=x&blockchain=x&token=x&start_date=x&end_date=x&sort=x&offset=x": {
			"blockchain", "end_date", "limit", "offset", "sort", "start_date", "status", "token",
		},
	} {
		a := w.ok(http.StatusBadRequest, "GET", "/withdrawal/?"+query, nil)
		require.Equal(t, "invalid_request", a.code(), query)
		require.Equal(t, fields, fieldsOf(a.at("error", "details")), query)
	}
	w.ok(http.StatusOK, "GET", "/withdrawal/?blockchain=ETH&custom_id="+strings.Repeat("%C3%A9", 64), nil)
}
