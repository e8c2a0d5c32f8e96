package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/safehttp"
)

// ErrTooLong is of an answer that was longer than Endpoint.Max.
var ErrTooLong = errors.New("the answer is too long")

// Endpoint posts JSON to a node. Its fields are set before it is used.
type Endpoint struct {
	HTTP   *http.Client // a request that it does not bound takes at most a minute
	Header http.Header
	User   *url.Userinfo // sent as Basic credentials; nil = none
	Max    int64         // bytes of an answer
	// Refusals are statuses beside 200 whose body is read like an answer.
	Refusals []int
	Budget   *Budget // nil = none

	secrets []string
}

// Hide keeps a URL, each part of it that may identify or pay for the endpoint,
// and the values of Header and User out of errors.
func (e *Endpoint) Hide(raw string) {
	e.secrets = append(e.secrets, raw)
	for _, v := range e.Header {
		e.secrets = append(e.secrets, v...)
	}
	e.hideUser(e.User)
	u, err := url.Parse(raw)
	if err != nil {
		return // it was hidden as a whole
	}
	e.hideUser(u.User)
	e.secrets = append(e.secrets, u.Host, u.Hostname(), u.RawQuery)
	for _, v := range u.Query() {
		e.secrets = append(e.secrets, v...)
	}
	e.secrets = append(e.secrets, strings.Split(u.Path, "/")...)
	u.User = nil
	e.secrets = append(e.secrets, u.String())
}

func (e *Endpoint) hideUser(u *url.Userinfo) {
	p, _ := u.Password()
	e.secrets = append(e.secrets, u.Username(), p)
}

// What a text of a node may be like in an error.
const (
	shortestSecret = 4 // shorter ones are found in any text
	longestText    = 300
)

// Redact takes whatever identifies the endpoint or pays for it out of a text,
// and shortens it.
func (e *Endpoint) Redact(s string) string {
	for _, secret := range e.secrets {
		if len(secret) >= shortestSecret {
			s = strings.ReplaceAll(s, secret, "…")
		}
	}
	if len(s) > longestText {
		s = s[:longestText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// NewHTTP is the client that Endpoints default to: see safehttp.NewClient.
func NewHTTP(conns int, timeout time.Duration) *http.Client {
	return safehttp.NewClient(conns, timeout)
}

// longest bounds a request of a client that a host gave without a Timeout.
const longest = time.Minute

// Post sends a body of JSON to a URL and returns the whole answer. Errors wrap
// chain.ErrNode; that of a node which was asked too often is a *chain.LimitedError.
func (e *Endpoint) Post(ctx context.Context, to string, body []byte) ([]byte, error) {
	return e.send(ctx, 1, http.MethodPost, to, "application/json", body)
}

// PostForm is Post of a form.
func (e *Endpoint) PostForm(ctx context.Context, to string, form url.Values) ([]byte, error) {
	return e.send(ctx, 1, http.MethodPost, to, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

// PostKind is Post of a body of another kind.
func (e *Endpoint) PostKind(ctx context.Context, to, kind string, body []byte) ([]byte, error) {
	return e.send(ctx, 1, http.MethodPost, to, kind, body)
}

// Get asks a URL, and returns the whole answer as Post does.
func (e *Endpoint) Get(ctx context.Context, from string) ([]byte, error) {
	return e.send(ctx, 1, http.MethodGet, from, "application/json", nil)
}

// GetNoting is Get that also returns a header of the answer, "" where it has none.
func (e *Endpoint) GetNoting(ctx context.Context, from, header string) (answer []byte, value string, err error) {
	answer, headers, err := e.exchange(ctx, 1, http.MethodGet, from, "application/json", nil)
	return answer, headers.Get(header), err
}

func (e *Endpoint) send(ctx context.Context, calls int, method, to, kind string, body []byte) ([]byte, error) {
	answer, _, err := e.exchange(ctx, calls, method, to, kind, body)
	return answer, err
}

// exchange is one request, which the node counts as so many calls.
func (e *Endpoint) exchange(ctx context.Context, calls int, method, to, kind string, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: bad request", chain.ErrNode)
	}
	for k, v := range e.Header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", kind)
	if e.User != nil {
		p, _ := e.User.Password()
		req.SetBasicAuth(e.User.Username(), p)
	}
	if err := e.Budget.enter(ctx, calls); err != nil {
		return nil, nil, err
	}
	defer e.Budget.leave(calls)
	resp, err := safehttp.Client(e.HTTP, longest).Do(req)
	if err != nil {
		return nil, nil, e.transport(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && !e.refusal(resp.StatusCode) {
		beginning, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if err := limited(resp, beginning); err != nil {
			e.Budget.Heed(err)
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%w: HTTP status %d", chain.ErrNode, resp.StatusCode)
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 && resp.ContentLength <= e.Max {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	if _, err = buf.ReadFrom(io.LimitReader(resp.Body, e.Max+1)); err != nil {
		return nil, nil, e.transport(ctx, err)
	}
	if int64(buf.Len()) > e.Max {
		return nil, nil, fmt.Errorf("%w: %w: over %d bytes: lower Options.Group or Batch, or raise MaxBody", chain.ErrNode, ErrTooLong, e.Max)
	}
	if resp.StatusCode != http.StatusOK && !bytes.HasPrefix(buf.Bytes(), []byte("{")) && !bytes.HasPrefix(buf.Bytes(), []byte("[")) {
		if err := limited(resp, buf.Bytes()); err != nil {
			e.Budget.Heed(err)
			return nil, nil, err // words in the place of JSON
		}
	}
	return buf.Bytes(), resp.Header, nil
}

func (e *Endpoint) refusal(status int) bool {
	for _, s := range e.Refusals {
		if s == status {
			return true
		}
	}
	return false
}

// transport keeps the cause and drops the URL that net/http puts around it.
func (e *Endpoint) transport(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", chain.ErrNode, cause)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w: %s", chain.ErrNode, e.Redact(err.Error()))
}
