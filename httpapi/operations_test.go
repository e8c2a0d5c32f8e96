package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
)

// TestFT06_OperationsOfAGlobalAdministrator: halts, and help for a payout that is stuck, by
// whoever has the role and gives a reason; a dry run does nothing.
func TestFT06_OperationsOfAGlobalAdministrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	w.earn("ETH", "300", "")
	w.mine(40)
	app := w.newApp(w.tenant, auth.GlobalAdmin, auth.Read, auth.Write)
	global := bearer(w.newToken(app, ""))
	const halts = "/manage/operations/halts/"
	post := func(status int, path string, body map[string]any, refine ...with) answer {
		return w.ok(status, "POST", path, body, append([]with{global}, refine...)...)
	}
	a := w.ok(http.StatusForbidden, "GET", halts, nil)
	require.Contains(t, a.Raw, "Only global administrators")
	post(http.StatusBadRequest, halts, map[string]any{"action": "halt"})
	post(http.StatusBadRequest, halts, map[string]any{"action": "stop", "reason": "x"})
	post(http.StatusBadRequest, halts, map[string]any{"action": "halt", "currency": "NONE", "reason": "x"})
	post(http.StatusNotFound, halts, map[string]any{"action": "halt", "for_tenant": w.tenant + "x", "reason": "a misspelt one stops nothing"})
	a = post(http.StatusOK, halts, map[string]any{"action": "halt", "blockchain": "ETH", "reason": "a look", "dry_run": true})
	require.Nil(t, a.Body["audit_id"])
	require.Empty(t, w.ok(http.StatusOK, "GET", halts, nil, global).Body["halts"])
	a = post(http.StatusOK, halts, map[string]any{"action": "halt", "blockchain": "ETH", "reason": "a look"})
	require.NotEmpty(t, a.Body["audit_id"])
	list := w.ok(http.StatusOK, "GET", halts, nil, global).Body["halts"].([]any)
	require.Len(t, list, 1)
	one := list[0].(map[string]any)
	require.Equal(t, []any{"ETH", nil, nil, false, "a look", app.id}, []any{one["blockchain"], one["currency"], one["tenant"], one["everywhere"], one["reason"], one["by"]})
	post(http.StatusOK, halts, map[string]any{"action": "lift", "blockchain": "ETH", "reason": "looked"})

	const log = "/manage/operations/audit/"
	w.ok(http.StatusForbidden, "GET", log, nil)
	w.ok(http.StatusBadRequest, "GET", log+"?after=-1", nil, global)
	w.ok(http.StatusBadRequest, "GET", log+"?blockchain=NONE", nil, global)
	w.ok(http.StatusBadRequest, "GET", log+"?blockchain=ETH&for_tenant="+w.tenant, nil, global)
	w.ok(http.StatusNotFound, "GET", log+"?for_tenant="+w.tenant+"x", nil, global)
	require.Empty(t, w.ok(http.StatusOK, "GET", log+"?for_tenant="+w.tenant, nil, global).Body["entries"])
	page := w.ok(http.StatusOK, "GET", log+"?blockchain=ETH&limit=1", nil, global).Body
	first := page["entries"].([]any)[0].(map[string]any)
	require.Equal(t, []any{json.Number("1"), "halt", "a look", app.id, "ETH", nil, "", json.Number("1"), a.Body["audit_id"]},
		[]any{first["number"], first["operation"], first["reason"], first["by"], first["blockchain"], first["tenant"], first["previous_hash"], page["next"], first["audit_id"]})
	page = w.ok(http.StatusOK, "GET", log+"?blockchain=ETH&after=1", nil, global).Body
	second := page["entries"].([]any)[0].(map[string]any)
	require.Equal(t, []any{json.Number("2"), "lift", first["hash"]}, []any{second["number"], second["operation"], second["previous_hash"]})
	require.Empty(t, w.ok(http.StatusOK, "GET", log+"?blockchain=ETH&after=2", nil, global).Body["entries"])

	made := w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{
		"amount": "0.01", "currency": "ETH", "address": string(w.chains["ETH"].Customer("supplier")),
	})
	id := made.Body["withdrawal_id"].(string)
	require.NoError(t, w.app.Step(t.Context()))
	w.chains["ETH"].SetFeeLevel(40 * w.chains["ETH"].FeeLevel())
	at := "/manage/operations/transactions/" + id
	post(http.StatusNotFound, "/manage/operations/transactions/none/cancel/", map[string]any{"blockchain": "ETH", "reason": "x"})
	post(http.StatusBadRequest, at+"/speed-up/", map[string]any{"blockchain": "ETH"})
	post(http.StatusConflict, at+"/speed-up/", map[string]any{"blockchain": "ETH", "max_cost": "1000", "reason": "more than there is"})
	a = post(http.StatusOK, at+"/speed-up/", map[string]any{"blockchain": "ETH", "max_cost": "0.1", "reason": "he waits"})
	effect := a.Body["effect"].(map[string]any)
	require.Equal(t, "0.10000000", effect["after"].(map[string]any)["max_cost"])
	require.NotEqual(t, effect["before"], effect["after"])
	a = post(http.StatusOK, at+"/cancel/", map[string]any{"blockchain": "ETH", "reason": "wrong shop"})
	require.Equal(t, true, a.Body["effect"].(map[string]any)["after"].(map[string]any)["cancelling"])
	post(http.StatusConflict, at+"/cancel/", map[string]any{"blockchain": "ETH", "reason": "again"})
	w.mine(60)
	require.Equal(t, "failed", w.ok(http.StatusOK, "GET", "/withdrawal/"+id+"/", nil).Body["status"])

	hot, err := w.app.Hot(t.Context(), "ETH", w.tenant)
	require.NoError(t, err)
	post(http.StatusConflict, "/manage/operations/nonces/fill/", map[string]any{"blockchain": "ETH", "address": string(hot), "nonce": 0, "reason": "x"})
	a = post(http.StatusOK, "/manage/operations/nonces/adopt/", map[string]any{"blockchain": "ETH", "reason": "x"})
	require.Empty(t, a.Body["effect"])
	const resume, recover = "/manage/operations/networks/resume/", "/manage/operations/deposits/recover/"
	post(http.StatusBadRequest, resume, map[string]any{"blockchain": "ETH", "reason": "x"})
	post(http.StatusConflict, resume, map[string]any{"blockchain": "ETH", "height": 1_000_000, "reason": "x"})
	require.Nil(t, post(http.StatusOK, resume, map[string]any{"blockchain": "ETH", "height": 20, "reason": "x", "dry_run": true}).Body["audit_id"])
	require.NotEmpty(t, post(http.StatusOK, resume, map[string]any{"blockchain": "ETH", "height": 20, "reason": "x"}).Body["audit_id"])
	w.mine(1)
	post(http.StatusNotFound, recover, map[string]any{"blockchain": "ETH", "address": string(w.chains["ETH"].Customer("stranger")), "from_height": 1, "reason": "x"})
	a = post(http.StatusOK, recover, map[string]any{"blockchain": "ETH", "address": string(hot), "from_height": 1, "reason": "x"})
	require.Equal(t, map[string]any{"found": json.Number("0")}, a.Body["effect"])
	post(http.StatusNotFound, "/manage/operations/sweeps/sweep%2FETH%2Fnone/retry/", map[string]any{"blockchain": "ETH", "reason": "x"})
}

// TestFA08_OperationsTakeTheNamesOfNetworks: TRON is Tron and MATIC is Polygon to operators, too,
// and answers show the networks' codes.
func TestFA08_OperationsTakeTheNamesOfNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) { s.networks = []chain.Network{"TRX", "POLYGON"} })
	global := bearer(w.newToken(w.newApp(w.tenant, auth.GlobalAdmin, auth.Read, auth.Write), ""))
	w.mine(3)
	const under = "/manage/operations/"
	for name, code := range map[string]string{"TRON": "TRX", "MATIC": "POLYGON"} {
		hot, err := w.app.Hot(t.Context(), chain.Network(code), w.tenant)
		require.NoError(t, err)
		halts := func() (out []any) {
			for _, h := range w.ok(http.StatusOK, "GET", under+"halts/", nil, global).Body["halts"].([]any) {
				out = append(out, h.(map[string]any)["blockchain"])
			}
			return out
		}
		a := w.ok(http.StatusOK, "POST", under+"halts/", map[string]any{"action": "halt", "blockchain": name, "reason": "a look"}, global)
		require.Equal(t, []any{code}, a.at("effect", "blockchains"))
		require.Equal(t, []any{code}, halts())
		w.ok(http.StatusOK, "POST", under+"halts/", map[string]any{"action": "lift", "blockchain": name, "reason": "looked"}, global)
		require.Empty(t, halts())
		require.Equal(t, code, w.ok(http.StatusOK, "GET", under+"audit/?blockchain="+name, nil, global).Body["entries"].([]any)[0].(map[string]any)["blockchain"])
		for path, body := range map[string]map[string]any{
			"transactions/none/speed-up/": {"max_cost": "1"},
			"transactions/none/cancel/":   {},
			"nonces/fill/":                {"address": string(hot), "nonce": 0},
			"nonces/adopt/":               {},
			"networks/resume/":            {"height": 1, "dry_run": true},
			"deposits/recover/":           {"address": string(hot), "from_height": 1},
			"sweeps/sweep%2Fnone/retry/":  {},
		} {
			body["reason"], body["blockchain"] = "a look", code
			want := w.do("POST", under+path, body, global)
			body["blockchain"] = name
			got := w.do("POST", under+path, body, global)
			require.NotEqual(t, http.StatusBadRequest, want.Status, "%s: %s", path, want.Raw)
			require.Equal(t, []any{want.Status, want.code()}, []any{got.Status, got.code()}, "%s of %s: %s", path, name, got.Raw)
			body["blockchain"] = name + "X"
			unknown := w.do("POST", under+path, body, global)
			require.Equal(t, []any{http.StatusBadRequest, "invalid_currency"}, []any{unknown.Status, unknown.code()}, "%s: %s", path, unknown.Raw)
		}
	}
}

// TestFA08_AdoptedNoncesAnswerTheirRecord: as every operation, with the id of what was recorded.
func TestFA08_AdoptedNoncesAnswerTheirRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	w.earn("ETH", "300", "")
	w.mine(40)
	global := bearer(w.newToken(w.newApp(w.tenant, auth.GlobalAdmin, auth.Read, auth.Write), ""))
	w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{
		"amount": "0.01", "currency": "ETH", "address": string(w.chains["ETH"].Customer("supplier")),
	})
	w.mine(40)
	adopt := func(body map[string]any) answer {
		body["blockchain"], body["reason"] = "ETH", "all are accounted for"
		return w.ok(http.StatusOK, "POST", "/manage/operations/nonces/adopt/", body, global)
	}
	none := adopt(map[string]any{})
	require.Contains(t, none.Body, "audit_id")
	require.Nil(t, none.Body["audit_id"])

	hot, err := w.app.Hot(t.Context(), "ETH", w.tenant)
	require.NoError(t, err)
	row, stored, ok, err := outgoing.Nonces.One(t.Context(), w.store, storage.Network("ETH"), string(hot))
	require.NoError(t, err)
	require.True(t, ok)
	after := row.Next
	row.Next = 0 // as after a restore from an older backup
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "restored", Partition: storage.Network("ETH"), Put: []storage.Row{outgoing.Nonces.Row(string(hot), stored.Version, time.Time{}, row)},
	}))
	of := func(a answer) map[string]any { return a.Body["effect"].([]any)[0].(map[string]any) }
	dry := adopt(map[string]any{"dry_run": true})
	require.Nil(t, dry.Body["audit_id"])
	require.Nil(t, of(dry)["audit_id"])
	done := adopt(map[string]any{})
	entries := w.ok(http.StatusOK, "GET", "/manage/operations/audit/?blockchain=ETH", nil, global).Body["entries"].([]any)
	recorded := entries[len(entries)-1].(map[string]any)
	require.Equal(t, "adopt_nonce", recorded["operation"])
	require.NotEmpty(t, recorded["audit_id"])
	require.Equal(t, recorded["audit_id"], done.Body["audit_id"])
	require.Equal(t, []any{recorded["audit_id"], string(hot), json.Number("0"), json.Number(fmt.Sprint(after))},
		[]any{of(done)["audit_id"], of(done)["address"], of(done)["own_nonce"], of(done)["chain_nonce"]})
}
