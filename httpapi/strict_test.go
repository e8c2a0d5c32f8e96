package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// TestI02_StrictJSON: what is not exactly one well-formed JSON object is 400 with
// the field at fault, and changes nothing.
func TestI02_StrictJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	good := `"amount":"5","currency":"USDTERC20"`
	for name, c := range map[string]struct{ body, field string }{
		"no body":                {"", "body"},
		"not JSON":               {"amount=5", "body"},
		"null":                   {"null", "body"},
		"an array":               {`[{` + good + `}]`, "body"},
		"a string":               {`"x"`, "body"},
		"a number":               {"7", "body"},
		"cut off":                {`{` + good, "body"},
		"trailing comma":         {`{` + good + `,}`, "body"},
		"trailing data":          {`{` + good + `}{}`, "body"},
		"trailing bracket":       {`{` + good + `}]`, "body"},
		"trailing NUL":           {`{` + good + `}` + "\x00", "body"},
		"a byte order mark":      {"\xef\xbb\xbf{" + good + "}", "body"},
		"comment":                {`{/**/` + good + `}`, "body"},
		"single quotes":          {`{'amount':'5'}`, "body"},
		"duplicate":              {`{` + good + `,"amount":"6"}`, "amount"},
		"duplicate by escape":    {`{` + good + `,"\u0061mount":"6"}`, "amount"},
		"duplicate unknown":      {`{` + good + `,"x":1,"x":1}`, "x"},
		"duplicate at depth":     {`{` + good + `,"x":{"y":[{"z":1,"z":2}]}}`, "z"},
		"other case":             {`{"Amount":"5","currency":"USDTERC20"}`, "Amount"},
		"both cases":             {`{` + good + `,"AMOUNT":"6"}`, "AMOUNT"},
		"invalid UTF-8":          {`{` + good + ",\"order_id\":\"\xff\"}", "body"},
		"overlong UTF-8":         {`{` + good + ",\"order_id\":\"\xc0\xaf\"}", "body"},
		"UTF-8 of a surrogate":   {`{` + good + ",\"order_id\":\"\xed\xa0\x80\"}", "body"},
		"lone surrogate":         {`{` + good + `,"order_id":"\ud800"}`, "body"},
		"surrogates turned":      {`{` + good + `,"order_id":"\udc00\ud800"}`, "body"},
		"lone surrogate, unused": {`{` + good + `,"x":["\ud83d"]}`, "body"},
		"NUL":                    {`{` + good + `,"order_id":"a\u0000b"}`, "body"},
		"NUL, unused":            {`{` + good + `,"x":{"\u0000":1}}`, "body"},
		"control character":      {`{` + good + `,"order_id":"a\u0007"}`, "order_id"},
		"raw control character":  {`{` + good + ",\"order_id\":\"a\x07\"}", "body"},
		"turned writing":         {`{` + good + `,"order_id":"\u202Egnp"}`, "order_id"},
		"string for boolean":     {`{` + good + `,"is_fixed_rate":"true"}`, "is_fixed_rate"},
		"number for boolean":     {`{` + good + `,"is_fixed_rate":1}`, "is_fixed_rate"},
		"number for string":      {`{` + good + `,"order_id":5}`, "order_id"},
		"object for string":      {`{` + good + `,"order_id":{}}`, "order_id"},
		"array for amount":       {`{"amount":["5"],"currency":"USDTERC20"}`, "amount"},
		"boolean for amount":     {`{"amount":true,"currency":"USDTERC20"}`, "amount"},
		"exponent":               {`{"amount":5e0,"currency":"USDTERC20"}`, "amount"},
		"big exponent":           {`{"amount":"1e10000000","currency":"USDTERC20"}`, "amount"},
		"41 digits":              {`{"amount":"` + strings.Repeat("1", 41) + `","currency":"USDTERC20"}`, "amount"},
		"a megabyte of digits":   {`{"amount":` + strings.Repeat("1", 1<<19) + `,"currency":"USDTERC20"}`, "amount"},
		"other minus":            {`{"amount":"−5","currency":"USDTERC20"}`, "amount"},
		"other digits":           {`{"amount":"٥","currency":"USDTERC20"}`, "amount"},
		"NaN":                    {`{"amount":NaN,"currency":"USDTERC20"}`, "body"},
		"NaN as text":            {`{"amount":"NaN","currency":"USDTERC20"}`, "amount"},
		"Infinity":               {`{"amount":"Infinity","currency":"USDTERC20"}`, "amount"},
		"hexadecimal":            {`{"amount":"0x5","currency":"USDTERC20"}`, "amount"},
		"leading plus":           {`{"amount":"+5","currency":"USDTERC20"}`, "amount"},
		"leading zeros, number":  {`{"amount":05,"currency":"USDTERC20"}`, "body"},
		"spaces":                 {`{"amount":" 5","currency":"USDTERC20"}`, "amount"},
		"integer with a point":   {`{` + good + `,"expiry_minutes":60.0}`, "expiry_minutes"},
		"integer as exponent":    {`{` + good + `,"expiry_minutes":6e1}`, "expiry_minutes"},
		"integer as text":        {`{` + good + `,"expiry_minutes":"60"}`, "expiry_minutes"},
		"huge integer":           {`{` + good + `,"expiry_minutes":99999999999999999999}`, "expiry_minutes"},
		"too deep":               {`{` + good + `,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "body"},
		"too deep, cut off":      {strings.Repeat(`{"a":`, 100_000), "body"},
	} {
		a := w.do("POST", "/payments/", c.body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", name, cut(a.Raw))
		require.Equal(t, "invalid_request", a.code(), name)
		require.Contains(t, a.at("error", "details"), c.field, name)
	}
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "GET", "/payments/", nil).Body["total"], "nothing was created")
	for name, body := range map[string]string{
		"as it is":          `{` + good + `}`,
		"with white space":  " \n\t\r{ " + good + " }\r\n ",
		"null is not given": `{` + good + `,"order_id":null,"expiry_minutes":null,"is_fixed_rate":null}`,
		"unknown fields":    `{` + good + `,"newer":{"a":[1,2,{"b":null}]},"another":1e999}`,
		"amount as number":  `{"amount":5.00,"currency":"USDTERC20"}`,
		"emoji by escape":   `{` + good + `,"order_id":"\ud83d\ude00"}`,
		"many fields":       `{` + good + manyMembers(40_000) + `}`,
	} {
		a := w.do("POST", "/payments/", body)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", name, a.Raw)
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	return b.String()
}

func cut(s string) string { return s[:min(len(s), 300)] }

// TestI02_MediaTypes: another type than the route's is 415, none is taken for it.
func TestI02_MediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	body := `{"amount":"5","currency":"USDTERC20"}`
	for media, status := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "APPLICATION/JSON; charset=UTF-8": 201,
		"application/json; charset=latin1": 415, "text/json": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x": 415, "application/jsonp": 415, ";": 415,
	} {
		require.Equal(t, status, w.do("POST", "/payments/", body, header("Content-Type", media)).Status, media)
	}
	a := w.do("POST", "/payments/", body, header("Content-Encoding", "gzip"))
	require.Equal(t, http.StatusUnsupportedMediaType, a.Status)
	require.Equal(t, http.StatusCreated, w.do("POST", "/payments/", body, func(r *http.Request) { r.Header.Del("Content-Type") }).Status)
	a = w.do("POST", "/o/token/", `{}`, nobody())
	require.Equal(t, http.StatusUnsupportedMediaType, a.Status)
	require.Equal(t, "invalid_request", a.Body["error"])
}

// TestI02_HostileQueries: a query is held to the same rules.
func TestI02_HostileQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=1e1": "limit", "limit=+5": "limit", "limit=5&limit=6": "limit", "limit=%00": "limit",
		"limit=99999999999999999999": "limit", "offset=-1": "offset", "status=partially_paid": "status", "status=%ff": "status",
		"currency=%27%20OR%201=1": "currency", "currency=usdterc20": "currency", "token=%25": "token", "blockchain=X": "blockchain", "%zz=1": "query", "a=1;b=2": "query",
	} {
		a := w.do("GET", "/payments/?"+query, nil)
		require.Equal(t, http.StatusBadRequest, a.Status, query)
		require.Contains(t, a.at("error", "details"), field, query)
	}
}

// TestO09_OutputFieldsAreNoInput: whatever an answer shows, put into the request
// it changes nothing: two worlds of the same seed give the same answers.
func TestO09_OutputFieldsAreNoInput(t *testing.T) {
	t.Parallel()
	honest, greedy := newWorld(t, unlimited), newWorld(t, unlimited)
	for _, w := range []*world{honest, greedy} {
		w.fund(w.tenant)
		w.token = w.newToken(w.admin, "")
		w.earn("USDTERC20", "100", "")
		w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "sub", "external_id": "sub"})
	}
	var names []string
	for name := range honest.contract.raw["components"].(map[string]any)["schemas"].(map[string]any) {
		for member := range honest.contract.members(name) {
			names = append(names, member)
		}
	}
	names = append(names, "tenant_id", "tenant", "user_id", "role", "scopes", "is_admin", "held", "posted", "version", "id")
	slices.Sort(names)
	names = slices.Compact(names)
	for _, r := range honest.routes() {
		if r.Method == http.MethodGet || r.Style == httpapi.OAuth || r.Method == http.MethodDelete {
			continue
		}
		plain := honest.sample(r)
		switch r.Name {
		case "createWallet":
			plain["external_id"] = "another"
		case "transferToWallet", "transferToMaster":
			plain["external_id"] = "sub"
		}
		stuffed := maps.Clone(plain)
		inputs := honest.contract.properties(r)
		if r.Writes {
			for _, name := range serversOwn {
				require.NotContains(t, inputs, name, "%s takes what only the service may say", r.Name)
			}
		}
		for _, name := range names {
			if _, taken := inputs[name]; !taken && !differsInCase(name, inputs) {
				stuffed[name] = "999999"
			}
		}
		path := place(r.Path, nil)
		a, b := honest.do(r.Method, path, plain), greedy.do(r.Method, path, stuffed)
		require.Equal(t, a.Status, b.Status, "%s: %s", r.Name, b.Raw)
		if a.Status < 500 {
			require.Equal(t, a.Raw, b.Raw, r.Name)
		}
	}
}

// serversOwn is what no request may set.
var serversOwn = []string{
	"status", "previous_status", "tenant", "tenant_id", "user_id", "role", "roles", "scope", "scopes", "client_id", "client_secret", "fee", "platform_fee", "network_fee",
	"fee_amount", "net_amount", "rate", "amount_crypto", "amount_usd", "requested_amount", "transaction_hash", "confirmations", "required_confirmations",
	"batch_id", "balance", "balances", "pending_amount", "available_balance", "created_at", "updated_at", "completed_at", "expiry_time", "transaction_fee", "secret",
}

func differsInCase(name string, inputs map[string]any) bool {
	for i := range inputs {
		if strings.EqualFold(i, name) {
			return true
		}
	}
	return false
}

// members are those of a component.
func (c *contract) members(component string) map[string]any {
	return c.resolve(map[string]any{"$ref": "/" + component})["properties"].(map[string]any)
}
