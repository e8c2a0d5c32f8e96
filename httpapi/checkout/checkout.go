package checkout

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi/internal/look"
)

// Handler serves the pages. It may be used concurrently, and by any number of processes
// over one store.
type Handler struct {
	app       *cryptopay.App
	registry  *chain.Registry
	now       func() time.Time
	o         Options
	host      string
	links     sealer
	languages languages
	pages     *template.Template
	assets    assets
	files     map[string]look.File
	live      *hub
}

// New makes a Handler of an App. It does no I/O and starts nothing.
func New(app *cryptopay.App, o Options) (*Handler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg := app.Config()
	h := &Handler{app: app, registry: cfg.Registry, now: cfg.Clock.Now, o: o}
	if u, err := url.Parse(o.BaseURL); err == nil {
		h.host = u.Hostname()
	}
	h.links = newSealer(app.DeriveKeys("checkout link mac"), app.DeriveKeys("checkout link cipher"))
	if h.languages, err = speak(o.Texts, o.Language); err != nil {
		return nil, err
	}
	if h.pages, err = templates(); err != nil {
		return nil, err
	}
	if h.assets, h.files, err = loadAssets(o.Prefix); err != nil {
		return nil, err
	}
	h.live = newHub(h)
	return h, nil
}

// URL is the link to the page of a tenant's payment. It reads nothing: the link of a payment
// that does not exist leads nowhere.
func (h *Handler) URL(tenant, paymentID string) string {
	return h.o.BaseURL + h.o.Prefix + "/" + h.links.token(ref{tenant, paymentID})
}

// Close ends every live stream, and none begins after it: for http.Server.RegisterOnShutdown,
// as a server does not end what it still answers.
func (h *Handler) Close() { h.live.close() }

// ServeHTTP answers one request. It changes nothing.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	bound := func() { // of a stranger who sends no more, or takes nothing
		now := time.Now() //nolint:forbidigo // of a connection, by the wall's clock
		_ = conn.SetReadDeadline(now.Add(readTimeout))
		_ = conn.SetWriteDeadline(now.Add(readTimeout + writeTimeout))
	}
	bound()
	defer func() {
		// The answer goes out under the deadline. Then that is lifted: the next request on
		// the connection may be for another handler of the host. (Reading ones are.)
		bound()
		_ = conn.Flush()
		_ = conn.SetWriteDeadline(time.Time{})
	}()
	h.headers(w)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, h.o.Prefix+"/")
	if !ok {
		h.unknown(w, r)
		return
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(path, "/"), "/")
	switch first {
	case "assets":
		h.asset(w, r, rest)
		return
	case "theme":
		h.theme(w, r, rest)
		return
	}
	of, ok := h.links.open(first)
	if !ok {
		h.unknown(w, r)
		return
	}
	if rest == "events" {
		h.stream(w, r, of, first)
		return
	}
	f, err := h.read(r.Context(), of)
	if err != nil {
		h.refuse(w, r, of, err)
		return
	}
	v := h.view(first, f, h.language(r))
	switch {
	case rest == "":
		v.Update, v.Stream = v.Live && r.URL.Query().Has("update"), true
		h.page(w, r, "page.html", v, http.StatusOK)
	case rest == "receipt":
		h.page(w, r, "receipt.html", v, http.StatusOK)
	case rest == "part":
		h.part(w, r, v)
	case v.QR != "" && v.Self+"/"+rest == v.QR:
		h.picture(w, r, "image/svg+xml", qrSVG(string(v.URI)))
	case oldCode.MatchString(rest):
		// The payment changed after the page was drawn. The change is on its way to the page; until
		// then it has an empty picture, not a broken one.
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1" width="8" height="8"/>`)
	case f.logo != "" && v.Self+"/"+rest == v.Logo:
		h.picture(w, r, f.logo, f.merchant.Logo)
	default:
		h.unknown(w, r)
	}
}

var oldCode = regexp.MustCompile(`^qr-[0-9a-f]{16}\.svg$`)

// language is the one that a request is answered in.
func (h *Handler) language(r *http.Request) *texts {
	return h.languages.choose(r.URL.Query().Get("lang"), r.Header.Get("Accept-Language"))
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers that every answer carries.
func (h *Handler) headers(w http.ResponseWriter) {
	hd := w.Header()
	hd.Set("Content-Security-Policy", policy)
	hd.Set("X-Content-Type-Options", "nosniff")
	hd.Set("Referrer-Policy", "no-referrer")
	hd.Set("X-Frame-Options", "DENY")
	hd.Set("Cross-Origin-Opener-Policy", "same-origin")
	hd.Set("Cross-Origin-Resource-Policy", "same-origin")
	hd.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)")
	hd.Set("X-Robots-Tag", "noindex, nofollow")
	hd.Set("Cache-Control", "no-store")
	if strings.HasPrefix(h.o.BaseURL, "https:") {
		hd.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// page renders whole before it answers: half a page about money is none.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, name string, v *view, status int) {
	var b bytes.Buffer
	if err := h.pages.ExecuteTemplate(&b, name, v); err != nil {
		h.o.Log.ErrorContext(r.Context(), "checkout_page_failed", slog.String("page", name), slog.Any("error", err))
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", v.W.code)
	w.Header().Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = w.Write(tidy(b.Bytes()))
}

// render is the part of a page that changes.
func (h *Handler) render(v *view) ([]byte, error) {
	var b bytes.Buffer
	err := h.pages.ExecuteTemplate(&b, "part.html", v)
	return tidy(b.Bytes()), err
}

// tidy leaves out the templates' indentation and empty lines.
func tidy(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(append(out, line...), '\n')
		}
	}
	return out
}

// part answers who asks again with what is new, or with 304.
func (h *Handler) part(w http.ResponseWriter, r *http.Request, v *view) {
	tag := `"` + v.Version + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	b, err := h.render(v)
	if err != nil {
		h.o.Log.ErrorContext(r.Context(), "checkout_page_failed", slog.String("page", "part.html"), slog.Any("error", err))
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(b)
}

// refuse answers a link that leads to nothing, or to what may not be shown now.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, of ref, err error) {
	if errors.Is(err, errUnknown) {
		h.unknown(w, r)
		return
	}
	if r.Context().Err() == nil {
		h.o.Log.LogAttrs(r.Context(), slog.LevelError, "checkout_read_failed", slog.String("tenant", of.tenant), slog.String("payment", of.payment), slog.Any("error", err))
	}
	w.Header().Set("Retry-After", "5")
	h.plain(w, r, "unavailable", http.StatusServiceUnavailable)
}

// unknown is the one answer to every link that leads nowhere.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	h.plain(w, r, "unknown", http.StatusNotFound)
}

// plain is a page that says one thing.
func (h *Handler) plain(w http.ResponseWriter, r *http.Request, state string, status int) {
	v := &view{W: h.language(r), Base: h.o.Prefix, All: h.languages, Assets: h.assets, State: state, Tone: "end"}
	h.page(w, r, "plain.html", v, status)
}

const forever = "public, max-age=31536000, immutable"

func (h *Handler) asset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := h.files[name]
	if !ok {
		h.unknown(w, r)
		return
	}
	w.Header().Set("Cache-Control", forever)
	w.Header().Set("Content-Type", a.Media)
	_, _ = w.Write(a.Body)
}

// theme is the style sheet of a colour: /theme/rrggbb.css.
func (h *Handler) theme(w http.ResponseWriter, r *http.Request, name string) {
	hex, ok := strings.CutSuffix(name, ".css")
	c, valid := parseColour("#" + hex)
	if !ok || !valid {
		h.unknown(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(theme(c))
}

// picture is an image of one payment, with its content in its name.
func (h *Handler) picture(w http.ResponseWriter, _ *http.Request, media string, b []byte) {
	w.Header().Set("Cache-Control", "private, max-age=86400, immutable")
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(b)
}

// detached is a context that outlives a request, with an end of its own.
func detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), readTimeout)
}
