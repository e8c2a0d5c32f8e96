package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/internal/manual"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Handler serves the interface. It may be used concurrently, and by any number
// of processes over one store.
type Handler struct {
	app    *cryptopay.App
	cfg    cryptopay.Config
	store  storage.Store // cfg's, joined
	o      Options
	routes []Route
	tree   node
	doc    []byte         // the OpenAPI document
	manual *manual.Manual // the same for people

	inFlight storage.InFlight
	reports  sync.Map // tenants that a report is made for now
}

// New makes a Handler of an App. It does no I/O and starts nothing.
func New(app *cryptopay.App, o Options) (*Handler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{app: app, cfg: app.Config(), o: o}
	h.store = storage.Joined(h.cfg.Store)
	table := h.table()
	if o.Auth == nil {
		table = slices.DeleteFunc(table, func(r Route) bool { return strings.HasPrefix(r.Path, "/o/") })
	}
	h.routes = slices.Concat(table, o.More)
	for i := range h.routes {
		r := &h.routes[i]
		if err := r.check(); err != nil {
			return nil, err
		}
		if err := h.tree.add(r); err != nil {
			return nil, err
		}
	}
	d, err := h.describe()
	if err != nil {
		return nil, err
	}
	if h.doc, err = d.document(h.server()); err != nil {
		return nil, err
	}
	h.manual, err = d.pages(h.server(), h.o.Limits)
	return h, err
}

// Routes lists the table, for documentation and tests.
func (h *Handler) Routes() []Route { return slices.Clone(h.routes) }

// check refuses a line of the table that leaves its policy open.
func (r *Route) check() error {
	switch {
	case r.Method == "" || !strings.HasPrefix(r.Path, "/") || r.Name == "" || r.About == "" || r.Group == "" || r.Status == 0 || r.do.call == nil:
		return fmt.Errorf("httpapi: route %s %s is not complete", r.Method, r.Path)
	case r.Access == "" || r.Limit == "" || r.Style == "":
		return fmt.Errorf("httpapi: route %s has no policy: Access, Limit and Style are required", r.Name)
	case (r.Access == Bearer || r.Access == BearerOrKey) && len(r.Scopes) == 0:
		return fmt.Errorf("httpapi: route %s needs a token but no scope", r.Name)
	case (r.Access == Public || r.Access == Client) && len(r.Scopes)+len(r.Roles) > 0:
		return fmt.Errorf("httpapi: route %s has scopes or roles but asks nobody who he is", r.Name)
	}
	return nil
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now() //nolint:forbidigo // how long an answer takes, and when a connection is dropped, the wall clock says
	seen := &recorder{ResponseWriter: w}
	c := &Call{Now: h.cfg.Clock.Now(), ID: h.requestID(r), header: w.Header(), base: r.Context()}
	h.headers(w, c)
	ctx, cancel := context.WithTimeout(r.Context(), h.o.Timeout)
	defer cancel()
	c.Request = r.WithContext(ctx)
	conn := http.NewResponseController(w)
	// Where the server does not support deadlines the context still ends.
	_ = conn.SetReadDeadline(start.Add(h.o.Timeout))
	_ = conn.SetWriteDeadline(start.Add(h.o.Timeout + writeGrace))
	defer func() {
		// The next request on this connection may be for another handler of the
		// host, and servers without a WriteTimeout never lift a deadline: the answer
		// goes out whole under ours, then it is lifted. (Reading deadlines are.)
		if seen.status != 0 {
			_ = conn.Flush()
			_ = conn.SetWriteDeadline(time.Time{})
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // a panic with this very value
				panic(p)
			}
			h.panicked(seen, c, p)
		}
		h.o.Observe(Observation{
			Route: c.routeName(), Method: r.Method, Path: h.observed(r.URL.Path), Status: seen.status, Limited: c.flood,
			Duration: time.Since(start), RequestID: c.ID, //nolint:forbidigo // as above
		})
	}()
	defer func() {
		if c.leave != nil {
			c.leave()
		}
	}()
	h.serve(seen, c)
}

// observed is a path as it may stand in a log: the token of a claim link is as good as money.
func (h *Handler) observed(path string) string {
	const claim = "/claim/"
	if strings.Contains(strings.ToLower(path), claim) { // a mistyped link has its token, too
		return h.o.Prefix + claim + "{token}/"
	}
	return path
}

// writeGrace is how long after its deadline an answer may still be written.
const writeGrace = 5 * time.Second

func (h *Handler) serve(w http.ResponseWriter, c *Call) {
	at, values, ok := h.route(c.Request)
	if !ok {
		h.refuse(w, c, fail(http.StatusNotFound, "not_found", "There is no such path.", nil))
		return
	}
	method := c.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if c.Route = at.methods[method]; c.Route == nil {
		w.Header().Set("Allow", at.allow())
		h.refuse(w, c, fail(http.StatusMethodNotAllowed, "method_not_allowed", "The path does not take this method.", map[string]any{"allow": strings.Split(at.allow(), ", ")}))
		return
	}
	c.values = values
	view, err := h.answer(w, c)
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	h.succeed(w, c, view)
}

// answer takes a request through the policy of its route to its endpoint.
func (h *Handler) answer(w http.ResponseWriter, c *Call) (any, error) {
	if err := h.admit(w, c); err != nil {
		return nil, err
	}
	b, err := h.read(w, c)
	if err != nil {
		return nil, err
	}
	leave, err := h.once(c, b.body)
	defer leave()
	if err != nil {
		return nil, err
	}
	ctx := c.Request.Context()
	if c.Key != "" {
		ctx = storage.WithOnce(ctx, &c.once)
	}
	view, err := c.Route.do.call(ctx, c, b)
	if err != nil && h.overtaken(c) {
		view, err = c.Route.do.call(ctx, c, b)
	}
	return view, err
}

// read takes in what an endpoint's input is bound from.
func (h *Handler) read(w http.ResponseWriter, c *Call) (*binder, error) {
	b := &binder{values: c.values}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, bad("query", "must be percent-encoded name=value pairs")
	}
	b.query = query
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return b, nil
	}
	c.Request.Body = http.MaxBytesReader(w, c.Request.Body, h.o.MaxBody)
	if c.Route.Style == OAuth {
		return b, nil // the endpoint reads its form
	}
	want := []string{mediaJSON}
	if c.Route.csv {
		want = append(want, mediaCSV)
	}
	var media string
	b.body, media, err = readBody(c.Request, want...)
	b.csv = media == mediaCSV
	return b, err
}

// route finds the line of the table for a request's path.
func (h *Handler) route(r *http.Request) (*node, []string, bool) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), h.o.Prefix)
	if !ok || path != "" && path[0] != '/' {
		return nil, nil, false
	}
	return h.tree.find(path)
}

// headers that every answer carries.
func (h *Handler) headers(w http.ResponseWriter, c *Call) {
	// The names are canonical; one array holds all values.
	v := [...]string{c.ID, "nosniff", "no-referrer", "DENY", "default-src 'none'; frame-ancestors 'none'", "no-store"}
	hd := w.Header()
	hd["X-Request-Id"] = v[0:1:1]
	hd["X-Content-Type-Options"] = v[1:2:2]
	hd["Referrer-Policy"] = v[2:3:3]
	hd["X-Frame-Options"] = v[3:4:4]
	hd["Content-Security-Policy"] = v[4:5:5]
	hd["Cache-Control"] = v[5:6:6]
}

// requestID is the caller's own where it is harmless, else a new one.
func (h *Handler) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 128 && !strings.ContainsFunc(id, strange) {
		return id
	}
	var raw [16]byte
	if _, err := io.ReadFull(h.o.Random, raw[:]); err != nil {
		panic("httpapi: no randomness for request ids")
	}
	return hex.EncodeToString(raw[:])
}

// strange is every character that does not belong into an id.
func strange(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.:/+=", r)
}

// panicked answers a request whose endpoint broke down: 500 with nothing inside.
func (h *Handler) panicked(w *recorder, c *Call, p any) {
	h.o.Log.ErrorContext(c.Request.Context(), "request_panicked", "route", c.routeName(), "request_id", c.ID,
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer is out: only the connection's end can tell
	}
	a := internal
	a.Details = map[string]any{"request_id": c.ID}
	h.write(w, c, a)
}

// recorder remembers the status that was written.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
