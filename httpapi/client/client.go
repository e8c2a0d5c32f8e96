package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/safehttp"
)

// Options of a Client. BaseURL, ClientID and ClientSecret are required.
type Options struct {
	// BaseURL is where the interface is, such as https://pay.example.com/pay.
	BaseURL      string
	ClientID     string
	ClientSecret string
	// Scope is asked for with each token, separated by spaces. Defaults to all
	// that the application has.
	Scope string
	// HTTP sends the requests. Defaults to a client of this package's own, with
	// timeouts; never to http.DefaultClient. Redirects are not followed.
	HTTP *http.Client
	// Now defaults to the system's clock, Wait to a timer that ends early with
	// the context.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	// Random makes idempotency keys. Defaults to crypto/rand.
	Random io.Reader
	// Attempts is how often one call is sent at most. Defaults to 4.
	Attempts int
	// Backoff is the wait before the second attempt; each next one waits twice as
	// long. Defaults to 250 ms.
	Backoff time.Duration
	// MaxWait is the longest Retry-After that is waited for: a longer one is told
	// to the caller, in Error.RetryAfter. Defaults to 30 seconds.
	MaxWait time.Duration
}

// Client calls one service as one application.
type Client struct {
	o      Options
	base   string
	http   *http.Client
	tokens tokens
}

const (
	requestTimeout = 60 * time.Second
	maxAnswer      = 64 << 20
)

// New checks the Options. It does no I/O.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, errors.New("client: Options.BaseURL must be an absolute http or https URL")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("client: Options.BaseURL must have no user, query or fragment")
	case o.ClientID == "" || o.ClientSecret == "":
		return nil, errors.New("client: Options.ClientID and ClientSecret are required: they come from POST /o/apps/ or the operator")
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: requestTimeout, Transport: newTransport()}
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // a client program has no clock to inject unless it says so
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Random == nil {
		o.Random = rand.Reader //nolint:forbidigo // unless Options say otherwise
	}
	if o.Attempts <= 0 {
		o.Attempts = 4
	}
	if o.Backoff <= 0 {
		o.Backoff = 250 * time.Millisecond
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 30 * time.Second
	}
	own := *safehttp.Client(o.HTTP, requestTimeout) // the caller's keeps following redirects elsewhere
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{o: o, base: strings.TrimSuffix(o.BaseURL, "/"), http: &own}, nil
}

// newTransport is of the default's kind, but nobody else's settings reach it.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 32,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: requestTimeout,
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d) //nolint:forbidigo // Options.Wait is for tests
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// call is one request of the interface.
type call struct {
	method, path string
	query        url.Values
	body         any    // nil = none
	key          string // Idempotency-Key
	// again says that sending it twice does no more than sending it once.
	again bool
}

// do sends a call until it has an answer that is final, and decodes it into out
// unless out is nil.
func (c *Client) do(ctx context.Context, k call, out any) error {
	var body []byte
	if k.body != nil {
		var err error
		if body, err = json.Marshal(k.body); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	renewed := false
	for attempt := 1; ; attempt++ {
		token, err := c.token(ctx)
		if err != nil {
			return err
		}
		raw, err := c.send(ctx, k, body, token)
		var refused *Error
		switch {
		case err == nil:
			return decode(raw, out)
		case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && !renewed:
			renewed = true
			attempt-- // it never reached the endpoint
			c.tokens.forget(token)
			continue
		}
		after, ok := c.retry(ctx, err, k.again, attempt)
		if !ok {
			return err
		}
		if err := c.o.Wait(ctx, after); err != nil {
			return err
		}
	}
}

// retry says whether and after what wait a failed call may be sent again.
func (c *Client) retry(ctx context.Context, err error, again bool, attempt int) (time.Duration, bool) {
	if attempt >= c.o.Attempts || ctx.Err() != nil {
		return 0, false
	}
	after := c.o.Backoff << (attempt - 1)
	var refused *Error
	if !errors.As(err, &refused) {
		return after, again // no answer: who knows what happened
	}
	switch {
	case refused.Status == http.StatusTooManyRequests: // refused before anything was done
	case refused.Status == http.StatusConflict && refused.Code == "idempotency_in_progress" && again:
	case (refused.Status >= 500 || refused.Status == http.StatusRequestTimeout) && again:
	default:
		return 0, false
	}
	if refused.RetryAfter > c.o.MaxWait {
		return 0, false
	}
	return max(after, refused.RetryAfter), true
}

// send sends a call once. Its error is an *Error where there was an answer.
func (c *Client) send(ctx context.Context, k call, body []byte, token string) ([]byte, error) {
	address := c.base + k.path
	if len(k.query) > 0 {
		address += "?" + k.query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, k.method, address, reader)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	if k.key != "" {
		r.Header.Set("Idempotency-Key", k.key)
	}
	return c.exchange(r)
}

// exchange sends a request and reads the answer whole.
func (c *Client) exchange(r *http.Request) ([]byte, error) {
	res, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: reading the answer: %w", err)
	case len(raw) > maxAnswer:
		return nil, errors.New("client: the answer is too large")
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, c.refusal(res, raw)
	}
	return raw, nil
}

func decode(raw []byte, out any) error {
	if out == nil || len(raw) == 0 {
		return nil
	}
	if whole, ok := out.(*[]byte); ok {
		*whole = raw
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("client: the answer is not what the interface promises: %w", err)
	}
	return nil
}

// newKey makes an idempotency key.
func (c *Client) newKey(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	var raw [16]byte
	if _, err := io.ReadFull(c.o.Random, raw[:]); err != nil {
		return "", fmt.Errorf("client: no randomness for an idempotency key: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}

// create sends a call that creates something: under one key, so that it may be
// sent again.
func (c *Client) create(ctx context.Context, path, key string, body, out any) error {
	key, err := c.newKey(key)
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodPost, path: path, body: body, key: key, again: true}, out)
}

// get reads.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.do(ctx, call{method: http.MethodGet, path: path, query: query, again: true}, out)
}

// ask posts what only reads.
func (c *Client) ask(ctx context.Context, path string, body, out any) error {
	return c.do(ctx, call{method: http.MethodPost, path: path, body: body, again: true}, out)
}

// query collects the parameters that are given.
type query url.Values

func (q query) text(name, value string) query {
	if value != "" {
		url.Values(q).Set(name, value)
	}
	return q
}

func (q query) number(name string, value int) query {
	if value != 0 {
		url.Values(q).Set(name, strconv.Itoa(value))
	}
	return q
}

func (q query) flag(name string, on bool) query {
	if on {
		url.Values(q).Set(name, "true")
	}
	return q
}
