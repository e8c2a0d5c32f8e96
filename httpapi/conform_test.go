package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// conform holds one answer to what every answer promises, and to the OpenAPI
// document that its handler serves: its status must be documented for the
// operation, its body must have exactly the documented fields and types, and the
// headers that the document requires must be there.
func conform(t testing.TB, c *contract, r *http.Request, a answer) {
	t.Helper()
	require.NotEmpty(t, a.Header.Get("X-Request-Id"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	if !strings.Contains(r.URL.Path, "/docs/") || !strings.Contains(r.URL.Path, ".") { // not a file whose name changes with its content
		require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	}
	if a.Status >= http.StatusBadRequest {
		require.NotNil(t, a.Body, "%s %s: %s", r.Method, r.URL, a.Raw)
	}
	if a.Status == http.StatusUnauthorized {
		require.NotEmpty(t, a.Header.Get("WWW-Authenticate"))
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		require.NotEmpty(t, a.Header.Get("Retry-After"))
	}
	require.NoError(t, c.check(r, a), "%s %s → %d: %s", r.Method, r.URL, a.Status, a.Raw)
}

// contract is one OpenAPI document, with the schemas that were used compiled.
type contract struct {
	raw      map[string]any
	base     string
	paths    map[string]map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

// contracts are those of all documents of this test run: handlers with the same
// document share one.
var contracts sync.Map

func contractOf(t testing.TB, api http.Handler) *contract {
	t.Helper()
	raw := documentOf(api)
	sum := sha256.Sum256(raw)
	if c, ok := contracts.Load(sum); ok {
		return c.(*contract)
	}
	c, err := parseContract(raw)
	require.NoError(t, err)
	made, _ := contracts.LoadOrStore(sum, c)
	return made.(*contract)
}

// documentOf asks a handler for its document, wherever it is mounted.
func documentOf(api http.Handler) []byte {
	for _, prefix := range []string{"", "/pay", "/a/b"} {
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, prefix+"/openapi.json", nil))
		if rec.Code == http.StatusOK {
			return rec.Body.Bytes()
		}
	}
	return nil
}

func parseContract(raw []byte) (*contract, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the document is no JSON: %w", err)
	}
	c := &contract{raw: doc.(map[string]any), schemas: map[string]*jsonschema.Schema{}, paths: map[string]map[string]any{}}
	server, err := url.Parse(c.raw["servers"].([]any)[0].(map[string]any)["url"].(string))
	if err != nil {
		return nil, err
	}
	c.base = strings.TrimSuffix(server.Path, "/")
	for path, item := range c.raw["paths"].(map[string]any) {
		c.paths[path] = item.(map[string]any)
	}
	closed := closeObjects(c.raw["components"]) // no undocumented field may be in an answer
	strict := map[string]any{"components": closed, "paths": closeObjects(c.raw["paths"])}
	c.compiler = jsonschema.NewCompiler()
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource("doc.json", strict)
}

// closeObjects forbids other members wherever members are listed.
func closeObjects(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = closeObjects(x)
		}
		_, lists := v["properties"].(map[string]any)
		_, says := v["additionalProperties"]
		if lists && !says && v["type"] == "object" {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = closeObjects(x)
		}
		return out
	}
	return v
}

// operation finds what a request is of; path is as in the document.
func (c *contract) operation(r *http.Request) (path string, item, op map[string]any) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), c.base)
	if !ok {
		return "", nil, nil
	}
	asked := split(rest)
	fixed := -1
	for p, i := range c.paths {
		if n, ok := fits(split(p), asked); ok && n > fixed {
			path, item, fixed = p, i, n
		}
	}
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	op, _ = item[method].(map[string]any)
	return path, item, op
}

func split(path string) []string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// fits says whether a path is of a pattern, and how much of the pattern is
// fixed: what has more wins, earlier segments first.
func fits(pattern, path []string) (fixed int, ok bool) {
	if len(pattern) != len(path) {
		return 0, false
	}
	for i, seg := range pattern {
		fixed <<= 1
		switch {
		case seg == path[i]:
			fixed++
		case !strings.HasPrefix(seg, "{") || path[i] == "":
			return 0, false
		}
	}
	return fixed, true
}

// check is nil where the document allows the answer.
func (c *contract) check(r *http.Request, a answer) error {
	path, item, op := c.operation(r)
	if op == nil {
		return c.unlisted(a, item)
	}
	if r.Method == http.MethodHead && a.Raw == "" {
		return nil
	}
	where := []string{"paths", path, strings.ToLower(r.Method), "responses", strconv.Itoa(a.Status)}
	if r.Method == http.MethodHead {
		where[2] = "get"
	}
	response, ok := op["responses"].(map[string]any)[strconv.Itoa(a.Status)].(map[string]any)
	if !ok {
		return fmt.Errorf("status %d is not documented for %s %s", a.Status, r.Method, path)
	}
	if ref, ok := response["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/responses/")
		where = []string{"components", "responses", name}
		response = c.raw["components"].(map[string]any)["responses"].(map[string]any)[name].(map[string]any)
	}
	if err := c.headers(response, a); err != nil {
		return err
	}
	contents, _ := response["content"].(map[string]any)
	if contents == nil {
		if a.Raw != "" {
			return fmt.Errorf("a body is not documented: %s", a.Raw)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if contents[media] == nil {
		return fmt.Errorf("content type %s is not documented", media)
	}
	if media != "application/json" {
		return nil
	}
	return c.validate(append(where, "content", media, "schema"), a.Raw)
}

// unlisted are the answers of what is no operation.
func (c *contract) unlisted(a answer, item map[string]any) error {
	switch {
	case item == nil && a.Status == http.StatusNotFound && a.code() == "not_found":
		return nil
	case item != nil && a.Status == http.StatusMethodNotAllowed && a.code() == "method_not_allowed" && a.Header.Get("Allow") != "":
		return nil
	}
	return fmt.Errorf("is no documented operation")
}

// headers checks those that the document requires.
func (c *contract) headers(response map[string]any, a answer) error {
	all := c.raw["components"].(map[string]any)["headers"].(map[string]any)
	names, _ := response["headers"].(map[string]any)
	for name := range names {
		h, ok := all[name].(map[string]any)
		if !ok {
			return fmt.Errorf("header %s is not described", name)
		}
		value := a.Header.Get(name)
		if value == "" {
			if h["required"] == true {
				return fmt.Errorf("header %s is missing", name)
			}
			continue
		}
		if h["schema"].(map[string]any)["type"] == "integer" {
			if _, err := strconv.Atoi(value); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
	}
	return nil
}

// validate holds a JSON text to the schema at a place of the document.
func (c *contract) validate(where []string, text string) error {
	s, err := c.schema(where)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func (c *contract) schema(where []string) (*jsonschema.Schema, error) {
	pointer := "doc.json#"
	for _, w := range where {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(w))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[pointer]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(pointer)
	if err == nil {
		c.schemas[pointer] = s
	}
	return s, err
}

// TestI08_DocumentIsValidOpenAPI loads the document with a library that knows
// the specification.
func TestI08_DocumentIsValidOpenAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := documentOf(w.api)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(raw)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	require.True(t, doc.IsOpenAPI31OrLater())
	require.Equal(t, raw, documentOf(newWorld(t).api), "two handlers write the same bytes")
}

// TestI08_EveryRouteIsDocumented also compiles every schema of the document.
func TestI08_EveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.contract
	n := 0
	for _, r := range w.routes() {
		op, ok := c.paths[r.Path][strings.ToLower(r.Method)].(map[string]any)
		require.True(t, ok, "%s %s", r.Method, r.Path)
		require.Equal(t, r.Name, op["operationId"])
		require.Contains(t, op["responses"], strconv.Itoa(r.Status))
		for _, f := range r.Errors {
			require.Contains(t, op["responses"], strconv.Itoa(f.Status), "%s: %s", r.Name, f.Code)
		}
		n++
	}
	for _, item := range c.paths {
		n -= len(item)
	}
	require.Zero(t, n)
	for name := range c.raw["components"].(map[string]any)["schemas"].(map[string]any) {
		_, err := c.schema([]string{"components", "schemas", name})
		require.NoError(t, err, name)
	}
}

// TestI08_ConformNotices is the test of the checker: answers that differ from
// the document in one thing.
func TestI08_ConformNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.contract
	const path = "/payments/"
	r := httptest.NewRequest(http.MethodPost, path, nil)
	good := w.ok(http.StatusCreated, http.MethodPost, path, map[string]any{"amount": "5", "currency": "USDTERC20"})
	require.NoError(t, c.check(r, good))
	for name, spoil := range map[string]func(map[string]any){
		"another type":      func(m map[string]any) { m["is_fixed_rate"] = "true" },
		"number for string": func(m map[string]any) { m["amount_usd"] = 5 },
		"a missing field":   func(m map[string]any) { delete(m, "transaction_hash") },
		"one field more":    func(m map[string]any) { m["secret"] = "x" },
		"another status":    func(m map[string]any) { m["status"] = "partially_paid" },
		"no null":           func(m map[string]any) { m["address"] = nil },
		"no uuid":           func(m map[string]any) { m["transaction_id"] = "7" },
		"no time":           func(m map[string]any) { m["created_at"] = "yesterday" },
		"an exponent":       func(m map[string]any) { m["amount_crypto"] = "5e3" },
	} {
		body := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(good.Raw), &body))
		spoil(body)
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		bad := good
		bad.Raw = string(raw)
		require.Error(t, c.check(r, bad), name)
	}
	bad := good
	bad.Status = http.StatusAccepted
	require.Error(t, c.check(r, bad), "an undocumented status")
	bad = good
	bad.Header = good.Header.Clone()
	bad.Header.Set("Content-Type", "text/plain")
	require.Error(t, c.check(r, bad), "another content type")
	missing := answer{Status: http.StatusBadRequest, Header: good.Header, Raw: `{"error":{"code":"not_found","message":"x"}}`}
	require.Error(t, c.check(r, missing), "a code that this status does not have")
}

// routes is the table of the world's handler.
func (w *world) routes() []httpapi.Route { return w.api.(*httpapi.Handler).Routes() }
