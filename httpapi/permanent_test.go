package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFA08_PermanentAddressOverREST: made once, returned again, listed; each deposit is a
// payment that names the address; what is too little waits in suspense with its reason.
func TestFA08_PermanentAddressOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	body := map[string]any{"blockchain": "ETH", "token": "USDT", "external_id": "ann", "callback_url": "https://shop.example/ann"}
	made := w.ok(http.StatusCreated, "POST", "/addresses/", body).Body
	require.Equal(t, []any{"ETH", "ann", nil, nil, nil, "https://shop.example/ann", nil},
		[]any{made["blockchain"], made["external_id"], made["memo"], made["memo_address"], made["wallet_id"], made["callback_url"], made["retired_at"]})
	again := w.ok(http.StatusOK, "POST", "/addresses", map[string]any{"currency": "USDCERC20", "external_id": "ann"}).Body
	require.Equal(t, made, again, "of another currency of the network")
	w.ok(http.StatusCreated, "POST", "/addresses/", map[string]any{"currency": "USDTERC20", "external_id": "bob"})

	address := made["address"].(string)
	w.transfer("USDTERC20", address, "25")
	w.transfer("USDCERC20", address, "30")
	w.transfer("USDTERC20", address, "0.4")
	w.step()
	page := w.ok(http.StatusOK, "GET", "/payments/", nil)
	payments := list(t, page, "results")
	require.Len(t, payments, 2)
	for _, p := range payments {
		require.Equal(t, []any{made["address_id"], address, "confirming", ""}, []any{p["address_id"], p["address"], p["status"], p["order_id"]})
		shown := w.paid(p["transaction_id"].(string))
		require.Equal(t, []any{p["amount_crypto"], p["amount_crypto"], "0.00000000", false, made["address_id"], []any{}},
			[]any{shown["amount_pending"], shown["amount_crypto"], shown["amount_missing"], shown["is_fixed_rate"], shown["address_id"], shown["suspense"]})
	}
	w.mine(30)
	for _, p := range payments {
		require.Equal(t, "completed", w.paid(p["transaction_id"].(string))["status"])
	}
	waiting := list(t, w.ok(http.StatusOK, "GET", "/suspense/?reason=below_minimum", nil), "suspense")
	require.Len(t, waiting, 1)
	require.Equal(t, []any{"0.40000000", "below_minimum", "open", nil, address},
		[]any{waiting[0]["amount"], waiting[0]["reason"], waiting[0]["status"], waiting[0]["transaction_id"], waiting[0]["address"]})
	w.transfer("USDTERC20", address, "0.7")
	w.mine(30)
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "GET", "/suspense/", nil).Body["total"])
	first := list(t, w.ok(http.StatusOK, "GET", "/payments/?limit=1", nil), "results")[0]
	require.Equal(t, []any{"1.10000000", "completed"}, []any{first["amount_crypto"], first["status"]})
	require.Len(t, list(t, w.ok(http.StatusOK, "GET", "/payments/"+first["transaction_id"].(string)+"/deposits/", nil), "deposits"), 2)

	listed := w.ok(http.StatusOK, "GET", "/addresses/?external_id=ann", nil)
	require.Equal(t, []any{json.Number("1"), json.Number("20"), json.Number("0")}, []any{listed.Body["total"], listed.Body["limit"], listed.Body["offset"]})
	require.Equal(t, made, list(t, listed, "addresses")[0])
	require.Equal(t, json.Number("2"), w.ok(http.StatusOK, "GET", "/addresses/?limit=1", nil).Body["total"])
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "GET", "/addresses/?external_id=Ann", nil).Body["total"])

	retired := w.ok(http.StatusOK, "POST", "/addresses/"+made["address_id"].(string)+"/retire/", nil).Body
	require.NotNil(t, retired["retired_at"])
	require.Equal(t, retired, w.ok(http.StatusOK, "POST", "/addresses/"+made["address_id"].(string)+"/retire", nil).Body, "asked again")
	require.Equal(t, retired, list(t, w.ok(http.StatusOK, "GET", "/addresses/?external_id=ann", nil), "addresses")[0])
	w.step()
	w.transfer("USDTERC20", address, "40")
	w.mine(30)
	late := list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense")
	require.Len(t, late, 1)
	require.Equal(t, []any{"40.00000000", "late"}, []any{late[0]["amount"], late[0]["reason"]})
	require.Equal(t, json.Number("3"), w.ok(http.StatusOK, "GET", "/payments/", nil).Body["total"], "no payment of it")
	require.Equal(t, made, w.ok(http.StatusOK, "POST", "/addresses/", body).Body, "in use again")
	require.Equal(t, http.StatusNotFound, w.do("POST", "/addresses/"+nothing+"/retire/", nil).Status)
	w.sound()
}

// TestFA08_PermanentAddressRefusals: as decided: 400 with every field, 404 for the wallet, 422
// for the currency.
func TestFA08_PermanentAddressRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	bad := w.do("POST", "/addresses/", map[string]any{"callback_url": "ftp://x", "wallet_id": strings.Repeat("w", 65)})
	require.Equal(t, http.StatusBadRequest, bad.Status)
	for _, field := range []string{"external_id", "currency", "callback_url", "wallet_id"} {
		require.NotNil(t, bad.at("error", "details", field), "%s: %s", field, bad.Raw)
	}
	for status, body := range map[int]map[string]any{
		http.StatusNotFound:            {"currency": "USDTERC20", "external_id": "ann", "wallet_id": "nobody's"},
		http.StatusUnprocessableEntity: {"currency": "NOPE", "external_id": "ann"},
		http.StatusBadRequest:          {"currency": "USDTERC20", "external_id": strings.Repeat("a", 65)},
	} {
		a := w.do("POST", "/addresses/", body)
		require.Equal(t, status, a.Status, a.Raw)
	}
	require.Equal(t, "invalid_currency", w.do("POST", "/addresses/", map[string]any{"blockchain": "ETH", "token": "NOPE", "external_id": "ann"}).at("error", "code"))
	require.Equal(t, http.StatusBadRequest, w.do("GET", "/addresses/?limit=101", nil).Status)
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "GET", "/addresses/", nil).Body["total"])
}

// TestI02_NoRequestNamesTheMasterAccount: "" is the master account. Its id is none of a wallet, for
// payments, permanent addresses and suspense as for every other request.
func TestI02_NoRequestNamesTheMasterAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.otherwise()
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?reason=late", nil), "suspense")[0]["suspense_id"].(string)
	for path, body := range map[string]map[string]any{
		"/payments/":                    {"amount": "25", "currency": "USDTERC20"},
		"/addresses/":                   {"currency": "USDTERC20", "external_id": "ann"},
		"/suspense/" + id + "/resolve/": {"action": "credit", "reason": "r"},
		"/withdrawal/":                  {"amount": "5", "currency": "USDTERC20", "address": w.elsewhere(), "account_id": "master"},
		"/wallets/transfer-to-user/":    {"amount": "5", "currency": "USDTERC20"},
	} {
		if body["account_id"] == nil {
			body["wallet_id"] = "master"
		}
		a := w.do("POST", path, body)
		require.Equal(t, []any{http.StatusNotFound, "not_found"}, []any{a.Status, a.code()}, "%s: %s", path, a.Raw)
	}
}
