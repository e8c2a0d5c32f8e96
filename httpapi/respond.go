package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stream is a view that is written while it is made: an export.
type stream struct {
	contentType string
	filename    string
	write       func(ctx context.Context, w io.Writer) error
}

// page is a view that is ready bytes: a document.
type page struct {
	contentType string
	body        []byte
}

// succeed writes the view of a request that went well.
func (h *Handler) succeed(w http.ResponseWriter, c *Call, view any) {
	if c.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	switch v := view.(type) {
	case none:
		w.WriteHeader(c.Route.Status)
	case *page:
		w.Header().Set("Content-Type", v.contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(v.body)))
		w.WriteHeader(c.Route.Status)
		_, _ = w.Write(v.body)
	case *stream:
		h.stream(w, c, v)
	default:
		status := c.Route.Status
		if c.Existed && c.Route.Also != 0 {
			status = c.Route.Also
		}
		h.json(w, status, view)
	}
}

// longer gives the rest of a request streamTimes its time, as the answer grows
// with what it tells. It still ends when the client goes away.
func (h *Handler) longer(w http.ResponseWriter, c *Call) (context.Context, context.CancelFunc) {
	wait := streamTimes * h.o.Timeout
	end := time.Now().Add(wait + writeGrace) //nolint:forbidigo // when a connection is dropped, the wall clock says
	conn := http.NewResponseController(w)
	// The server reads on to notice that the client goes away: a deadline for
	// reading that passes would count as that.
	_, _ = conn.SetReadDeadline(end), conn.SetWriteDeadline(end)
	return context.WithTimeout(c.base, wait)
}

// streamTimes is how many times longer than other requests an export may take.
const streamTimes = 10

// stream writes a file while it is made. What fails before the first byte is
// out is answered like any failure; later only the connection's end can tell.
func (h *Handler) stream(w http.ResponseWriter, c *Call, v *stream) {
	out := &lazy{ResponseWriter: w, begin: func() {
		w.Header().Set("Content-Type", v.contentType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+v.filename+`"`)
		w.WriteHeader(c.Route.Status)
	}}
	ctx, cancel := h.longer(w, c)
	defer cancel()
	err := v.write(ctx, out)
	switch {
	case err != nil && !out.begun:
		h.refuse(w, c, err)
	case err != nil:
		h.o.Log.ErrorContext(c.Request.Context(), "export_broke_off", "route", c.Route.Name, "request_id", c.ID, "error", err)
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	case !out.begun:
		out.begin()
	}
}

// lazy begins an answer at its first byte.
type lazy struct {
	http.ResponseWriter
	begin func()
	begun bool
}

func (l *lazy) Write(b []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.begin()
	}
	return l.ResponseWriter.Write(b)
}

// json writes a value. It is encoded whole before the first byte goes out.
func (h *Handler) json(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a view that cannot be encoded is a mistake of ours
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}

// errorBody is the standard form.
type errorBody struct {
	Error errorContent `json:"error"`
}

type errorContent struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// oauthError is the form of the OAuth endpoints (RFC 6749 §5.2).
type oauthError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// detailError is the form of the /manage/users/ endpoints.
type detailError struct {
	Detail string `json:"detail"`
}

// refuse writes an answer in the route's style. An internal error's cause goes
// to the log, with the id that the caller is told.
func (h *Handler) refuse(w http.ResponseWriter, c *Call, err error) {
	a, known := toAnswer(err)
	if !known && c.Request.Context().Err() == context.Canceled {
		// Hardly anybody is there to read it, but who closed only his half of the
		// connection must not take silence for success.
		a, known = leftEarly, true
	}
	if !known || a.Status >= http.StatusInternalServerError && !as[*failure](err) && !errors.Is(err, context.Canceled) {
		h.o.Log.ErrorContext(c.Request.Context(), "request_failed", "method", c.Request.Method, "route", c.routeName(), "request_id", c.ID, "error", err)
	}
	if a.Status >= http.StatusInternalServerError {
		details := map[string]any{"request_id": c.ID}
		for k, v := range a.Details {
			details[k] = v
		}
		a.Details = details
	}
	if a.Status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "5")
	}
	h.write(w, c, a)
}

func (h *Handler) write(w http.ResponseWriter, c *Call, a answer) {
	style := Standard
	if c.Route != nil {
		style = c.Route.Style
	}
	switch style {
	case OAuth:
		h.json(w, a.Status, oauthError{a.Code, a.Message})
	case Detail:
		h.json(w, a.Status, detailError{a.sentence()})
	default:
		if style == Classic {
			a.Code = classic(a)
		}
		h.json(w, a.Status, errorBody{errorContent{a.Code, a.Message, a.Details}})
	}
}

// sentence is all that a style without details can say of bad fields.
func (a *answer) sentence() string {
	var all []string
	for _, field := range slices.Sorted(maps.Keys(a.Details)) {
		if messages, ok := a.Details[field].([]string); ok {
			all = append(all, field+" "+strings.Join(messages, ", "))
		}
	}
	if len(all) == 0 {
		return a.Message
	}
	return a.Message + " " + strings.Join(all, "; ") + "."
}

// classic are the codes that the pages of fee-estimate and wallet balances use.
func classic(a answer) string {
	switch a.Status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "forbidden"
	}
	return a.Code
}

func (c *Call) routeName() string {
	if c.Route == nil {
		return ""
	}
	return c.Route.Name
}

// stamp is a time as every view shows it: RFC 3339, UTC, milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// maybeStamp is a time that may not have come yet: null then.
func maybeStamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// orNull is a text that is null where there is none.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
