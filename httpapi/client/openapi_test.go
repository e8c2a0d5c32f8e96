package client_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// unserved are the operations that the Client does not call, and why.
var unserved = map[string]string{
	"getStatus": "for probes", "getMaintenance": "for probes", "getOpenAPI": "a document", "getDocs": "a document", "getDocsPage": "a document",
	"createToken": "each call does it where it has to", "revokeToken": "tokens end by themselves", "listApps": "of whoever sets the merchant up", "createApp": "of whoever sets the merchant up", "deleteApp": "of whoever sets the merchant up",
	"getWithdrawalStatus": "as getWithdrawal", "getWalletBalances": "as lookUpBalances", "calculateRate": "as getRate", "estimateWithdrawalFee": "as estimateWithdrawal",
	"listAvailableCurrencies": "as getBalances", "getCurrencyRates": "as getRate",
	"getTransactionStats": "a report for people", "exportTransactions": "a report for people", "getFees": "the operator's",
}

// unsent are parameters that the Client does not send, and why.
var unsent = map[string]string{
	"createPayment price_amount": "as amount", "createPayment pay_currency": "as currency", "estimatePayment price_amount": "as amount", "estimatePayment pay_currency": "as currency",
	"listWallets limit": "all are asked for", "listWallets offset": "all are asked for",
	"listCurrencies full": "codes alone", "listCurrencies min_max": "codes alone", "listCurrencies include_usd": "codes alone", "listCurrencies withdrawal": "codes alone",
	"updateWallet external_id":    "it is refused",
	"updateWebhooks callback_url": "as webhook_url",
	"validateAddress blockchain":  "as currency", "validateAddress type": "as currency", "validateAddress token": "as currency",
	"getWithdrawalMinimum blockchain": "as currency", "getWithdrawalMinimum token": "as currency",
}

// unread are members of answers that the Client's types leave out, and why.
var unread = map[string]string{
	"listTransactions confirmations": "in Metadata", "listTransactions custom_id": "in Metadata", "listTransactions network_fee": "in Metadata", "listTransactions order_id": "in Metadata",
	"resendDelivery delivery_id": "as it was asked", "resendDelivery status": "always the same",
	"listCurrencies": "codes alone",
}

// asked is what the Client has sent.
type asked struct {
	method, path string
	names        map[string]bool // of the query and of the body
}

// recorder answers each request with an empty object, and notes it.
type recorder struct{ seen []asked }

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	answer := `{}`
	if q.URL.Path == "/o/token/" {
		answer = `{"access_token":"t","token_type":"Bearer","expires_in":3600}`
	} else {
		a := asked{q.Method, q.URL.EscapedPath(), map[string]bool{}}
		for name := range q.URL.Query() {
			a.names[name] = true
		}
		if q.Body != nil {
			body := map[string]any{}
			raw, _ := io.ReadAll(q.Body)
			_ = json.Unmarshal(raw, &body)
			for name := range body {
				a.names[name] = true
			}
		}
		r.seen = append(r.seen, a)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// filled is a value of a type in which nothing is empty.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case v.CanInt():
		v.SetInt(7)
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem()))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem())))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type))
		}
	}
	return v
}

// members are the names that a type reads, down to the members of its members.
func members(t reflect.Type, into map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			into[name] = true
		}
		members(f.Type, into)
	}
}

// operation is one of the document.
type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties any `json:"additionalProperties"`
	AllOf, AnyOf, OneOf  []schema
}

// TestClientIsCompleteAgainstOpenAPI: each operation of the document is one that some method
// calls, with all its parameters and members, and what its answers have is read. What the
// Client leaves out is listed here, with the reason; what is listed and not left out fails, too.
func TestClientIsCompleteAgainstOpenAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]schema }
	}
	res, err := w.server.Client().Get(w.server.URL + "/openapi.json")
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // a test's end
	require.NoError(t, json.NewDecoder(res.Body).Decode(&document))

	calls := &recorder{}
	c, err := client.New(client.Options{BaseURL: "https://pay.example", ClientID: "id", ClientSecret: "secret", HTTP: &http.Client{Transport: calls}})
	require.NoError(t, err)
	reads := map[string]map[string]bool{} // what the answers of a request's method and path are read into
	for i := range reflect.TypeOf(c).NumMethod() {
		if reflect.TypeOf(c).Method(i).Name == "Call" { // it calls what it is told
			continue
		}
		method := reflect.ValueOf(c).Method(i)
		in := []reflect.Value{reflect.ValueOf(t.Context())}
		for n := 1; n < method.Type().NumIn(); n++ {
			in = append(in, filled(method.Type().In(n)))
		}
		before := len(calls.seen)
		out := method.Call(in)
		require.Nil(t, out[len(out)-1].Interface(), reflect.TypeOf(c).Method(i).Name)
		require.Greater(t, len(calls.seen), before, "it calls nothing: %s", reflect.TypeOf(c).Method(i).Name)
		for _, a := range calls.seen[before:] {
			if reads[a.method+a.path] == nil {
				reads[a.method+a.path] = map[string]bool{}
			}
			for n := range len(out) - 1 {
				members(method.Type().Out(n), reads[a.method+a.path])
			}
		}
	}

	resolved := func(s schema) schema {
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
			return document.Components.Schemas[name]
		}
		return s
	}
	var properties func(s schema, deep bool, into map[string]bool)
	properties = func(s schema, deep bool, into map[string]bool) {
		for name, p := range resolved(s).Properties {
			into[name] = true
			if deep {
				properties(p, deep, into)
			}
		}
		s = resolved(s)
		if s.Items != nil {
			properties(*s.Items, deep, into)
		}
		for _, other := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
			properties(other, deep, into)
		}
	}
	matches := func(pattern, path string) bool {
		have, want := strings.Split(path, "/"), strings.Split(pattern, "/")
		return slices.EqualFunc(have, want, func(h, w string) bool { return h == w || strings.HasPrefix(w, "{") && h != "" && h != "status" })
	}
	var missing []string
	used := map[string]bool{}
	left := func(list map[string]string, operation, member string) {
		what := strings.TrimSuffix(operation+" "+member, " ")
		if list[operation] != "" {
			what = operation // whatever member of it
		}
		if used[what] = true; list[what] == "" {
			missing = append(missing, what)
		}
	}
	served := map[string]bool{}
	for path, methods := range document.Paths {
		for method, op := range methods {
			if strings.HasPrefix(path, "/manage/") {
				continue // the operator's
			}
			sent, read := map[string]bool{}, map[string]bool{}
			found := false
			for _, a := range calls.seen {
				if strings.EqualFold(a.method, method) && (a.path == path || document.Paths[a.path] == nil && matches(path, a.path)) {
					found, served[a.method+a.path] = true, true
					maps.Copy(sent, a.names)
					maps.Copy(read, reads[a.method+a.path])
				}
			}
			if !found {
				left(unserved, op.OperationID, "")
				continue
			}
			want := map[string]bool{}
			for _, p := range op.Parameters {
				want[p.Name] = p.In == "query"
			}
			properties(op.RequestBody.Content["application/json"].Schema, false, want)
			for name, counts := range want {
				if counts && !sent[name] {
					left(unsent, op.OperationID, name)
				}
			}
			shown := map[string]bool{}
			for status, r := range op.Responses {
				if strings.HasPrefix(status, "2") {
					answer := r.Content["application/json"].Schema
					properties(answer, true, shown)
					for name, p := range resolved(answer).Properties {
						if p.Items != nil { // a list: methods return it, and its total
							delete(shown, name)
							delete(shown, "limit")
							delete(shown, "offset")
							delete(shown, "total")
						}
					}
				}
			}
			for name := range shown {
				if !read[name] {
					left(unread, op.OperationID, name)
				}
			}
		}
	}
	for _, a := range calls.seen {
		require.True(t, served[a.method+a.path], "the document has no %s %s", a.method, a.path)
	}
	slices.Sort(missing)
	require.Empty(t, missing, "in the document, and not in the Client")
	for _, list := range []map[string]string{unserved, unsent, unread} {
		for what := range list {
			if !used[what] {
				missing = append(missing, what)
			}
		}
	}
	require.Empty(t, missing, "listed here, and not left out")
}
