package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
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

// behindServer makes a world behind a real server without any timeout of its own.
func behindServer(t *testing.T, timeout time.Duration) (*world, *httptest.Server) {
	t.Helper()
	w := newWorld(t, unlimited, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Timeout = timeout
		}
	})
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	return w, server
}

// raw speaks to a server by hand.
func raw(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func (w *world) head(path string, more ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.token + "\r\nContent-Type: application/json\r\n" + strings.Join(more, "\r\n") + "\r\n\r\n"
}

// TestI05_SlowBodiesEnd: a body that never comes ends the request at its
// deadline, on a server without timeouts.
func TestI05_SlowBodiesEnd(t *testing.T) {
	t.Parallel()
	w, server := behindServer(t, 150*time.Millisecond)
	for name, start := range map[string]string{
		"promised, never sent": w.head("/payments/", "Content-Length: 50"),
		"begun":                w.head("/payments/", "Content-Length: 50") + `{"amount":`,
		"chunk never ends":     w.head("/payments/", "Transfer-Encoding: chunked") + "5\r\n{\"am",
	} {
		t.Run(name, func(t *testing.T) {
			c := raw(t, server)
			_, err := io.WriteString(c, start)
			require.NoError(t, err)
			answer, err := io.ReadAll(c) // until the server closes
			require.NoError(t, err, "the connection was not closed")
			status, _, _ := strings.Cut(string(answer), "\r\n")
			require.Contains(t, []string{"HTTP/1.1 408 Request Timeout", "HTTP/1.1 503 Service Unavailable"}, status)
			require.NotContains(t, string(answer), "i/o timeout")
		})
	}
}

// TestI05_LargeBodies: 413 as soon as the limit is passed, however it is sent.
func TestI05_LargeBodies(t *testing.T) {
	t.Parallel()
	w, server := behindServer(t, 5*time.Second)
	t.Run("announced", func(t *testing.T) {
		c := raw(t, server)
		_, err := io.WriteString(c, w.head("/payments/", "Content-Length: 1048577"))
		require.NoError(t, err)
		go func() { _, _ = c.Write(bytes.Repeat([]byte(" "), 1048577)) }()
		require.Equal(t, http.StatusRequestEntityTooLarge, readStatus(t, c))
	})
	t.Run("chunked", func(t *testing.T) {
		c := raw(t, server)
		_, err := io.WriteString(c, w.head("/payments/", "Transfer-Encoding: chunked"))
		require.NoError(t, err)
		go func() {
			for range 40 {
				if _, err := fmt.Fprintf(c, "10000\r\n%s\r\n", bytes.Repeat([]byte(" "), 1<<16)); err != nil {
					return
				}
			}
		}()
		require.Equal(t, http.StatusRequestEntityTooLarge, readStatus(t, c))
	})
	// In the handler alone, with the form that the document promises.
	a := w.do("POST", "/payments/", `{"x":"`+strings.Repeat("a", 1<<20)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	require.Equal(t, "invalid_request", a.code())
	a = w.do("POST", "/o/token/", "grant_type="+strings.Repeat("a", 1<<20), nobody(), header("Content-Type", "application/x-www-form-urlencoded"))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
}

func readStatus(t *testing.T, c net.Conn) int {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	return res.StatusCode
}

// TestI05_DeadlinesStayOurs: on one connection, the deadlines of a request here
// do not cut a later answer of the host's own handler.
func TestI05_DeadlinesStayOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.options = func(o *httpapi.Options) { o.Timeout = time.Nanosecond } // and 5 s of grace to write
	})
	seen := &deadlines{}
	mux := http.NewServeMux()
	mux.Handle("/", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(seen.watch(rw), r)
	}))
	server := httptest.NewServer(mux)
	defer server.Close()
	res, err := server.Client().Get(server.URL + "/status/")
	require.NoError(t, err)
	res.Body.Close()
	require.NotEmpty(t, seen.write)
	require.True(t, seen.write[len(seen.write)-1].IsZero(), "the deadline to write is lifted at the end")
}

// deadlines remembers what was set on a connection.
type deadlines struct {
	http.ResponseWriter
	write []time.Time
}

func (d *deadlines) watch(w http.ResponseWriter) *deadlines { d.ResponseWriter = w; return d }

func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, at)
	return nil
}

// faulty is a store that breaks down on demand.
type faulty struct {
	storage.Store
	mu     sync.Mutex
	before func(call string, changes []storage.Change) error // asked before each call
	after  func(call string, changes []storage.Change) error // asked after a commit that happened
}

func (f *faulty) set(before, after func(string, []storage.Change) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) hooks() (before, after func(string, []storage.Change) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before, f.after
}

func (f *faulty) ask(call string, changes ...storage.Change) error {
	before, _ := f.hooks()
	if before == nil {
		return nil
	}
	return before(call, changes)
}

func (f *faulty) Commit(ctx context.Context, changes ...storage.Change) []error {
	if err := f.ask("Commit", changes...); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	out := f.Store.Commit(ctx, changes...)
	if _, after := f.hooks(); after != nil {
		if err := after("Commit", changes); err != nil {
			return slices.Repeat([]error{err}, len(changes))
		}
	}
	return out
}

func (f *faulty) Rows(ctx context.Context, t *storage.Table, p storage.Partition, ids ...string) ([]storage.Row, error) {
	if err := f.ask("Rows " + t.Name); err != nil {
		return nil, err
	}
	return f.Store.Rows(ctx, t, p, ids...)
}

func (f *faulty) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := f.ask("Find " + q.Table.Name); err != nil {
		return nil, err
	}
	return f.Store.Find(ctx, q)
}

func (f *faulty) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := f.ask("Count " + q.Table.Name); err != nil {
		return 0, err
	}
	return f.Store.Count(ctx, q)
}

func newFaulty() (*faulty, func(*setup)) {
	f := &faulty{Store: memory.New()}
	return f, func(s *setup) { s.store = f }
}

const canary = "pq: duplicate key in postgres://root:hunter2@10.0.0.7/db"

// TestI06_BreakdownsTellNothing: wherever the store panics or fails, the answer
// is 500 (or 503) with a request id and nothing of the cause, and the log has it.
func TestI06_BreakdownsTellNothing(t *testing.T) {
	t.Parallel()
	f, with := newFaulty()
	var log bytes.Buffer
	w := newWorld(t, unlimited, with, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
	})
	for _, r := range w.routes() {
		if r.Access == httpapi.Public {
			continue
		}
		for _, fault := range []struct {
			name string
			fail func() error
		}{
			{"panic", func() error { panic(canary) }},
			{"error", func() error { return errors.New(canary) }},
		} {
			body := any(w.sample(r))
			if r.Method == http.MethodGet {
				body = nil
			}
			if r.Style == httpapi.OAuth {
				form := tokenFor(w.admin)
				form.Set("token", "cpt_x")
				body = form
			}
			path := place(r.Path, nil) + w.contract.sampleQuery(r)
			// At the store's first call, and then at the second, and so on, until one
			// gets through.
			for depth := 0; depth < 12; depth++ {
				calls := 0
				f.set(func(string, []storage.Change) error {
					if calls++; calls > depth {
						return fault.fail()
					}
					return nil
				}, nil)
				log.Reset()
				a := w.do(r.Method, path, body, header("X-Request-Id", "the-request"))
				f.set(nil, nil)
				if calls <= depth {
					break
				}
				what := fmt.Sprintf("%s with %s at call %d: %s", r.Name, fault.name, depth, a.Raw)
				require.NotContains(t, a.Raw, "hunter2", what)
				require.NotContains(t, a.Raw, "goroutine", what)
				if a.Status < 500 {
					continue // it did without
				}
				require.Contains(t, []int{500, 503}, a.Status, what)
				if r.Style == httpapi.Standard || r.Style == httpapi.Classic {
					require.Equal(t, "the-request", a.at("error", "details", "request_id"), what)
				}
				require.Contains(t, log.String(), "the-request", what)
			}
		}
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
