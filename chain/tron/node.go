package tron

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/chain"
)

// node speaks the HTTP API of one endpoint.
type node struct {
	http       *http.Client
	url, solid string
	header     http.Header
	max        int64
	secrets    []string
	broke      atomic.Bool // it may be another node that answers from now on
}

func newNode(o *Options) *node {
	n := &node{http: o.HTTP, url: strings.TrimRight(o.URL, "/"), solid: strings.TrimRight(o.SolidURL, "/"), header: o.Header, max: o.MaxBody}
	for _, s := range []string{o.URL, o.SolidURL} {
		u, err := url.Parse(s)
		if err != nil {
			continue // New has checked it
		}
		n.secrets = append(n.secrets, s, u.Host, u.Hostname(), u.User.Username())
		if p, ok := u.User.Password(); ok {
			n.secrets = append(n.secrets, p)
		}
		n.secrets = append(n.secrets, strings.Split(u.Path, "/")...)
	}
	for _, v := range o.Header {
		n.secrets = append(n.secrets, v...)
	}
	return n
}

// redact takes whatever identifies the endpoint or pays for it out of a text.
func (n *node) redact(s string) string {
	for _, secret := range n.secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "…")
		}
	}
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// replyError is what the node itself answered in the place of an answer. It is
// no proof of anything.
type replyError struct{ Path, Message string }

func (e *replyError) Error() string {
	return fmt.Sprintf("%v: %s answered %q", chain.ErrNode, e.Path, e.Message)
}

func (e *replyError) Unwrap() error { return chain.ErrNode }

// post sends one question and returns the JSON of the answer. Everything but
// HTTP 200 with one JSON value is an error, and so is an object that names an
// error: nodes and gateways put those into HTTP 200.
func (n *node) post(ctx context.Context, path string, ask map[string]any) ([]byte, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, fmt.Errorf("tron: request: %w", err)
	}
	base := n.url
	if strings.HasPrefix(path, "/walletsolidity/") {
		base = n.solid
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: bad request", chain.ErrNode)
	}
	for k, v := range n.header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.http.Do(req)
	if err != nil {
		return nil, n.transport(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
		n.broke.Store(true)
		return nil, fmt.Errorf("%w: %s: HTTP status %d", chain.ErrNode, path, resp.StatusCode)
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 && resp.ContentLength <= n.max {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	if _, err = buf.ReadFrom(io.LimitReader(resp.Body, n.max+1)); err != nil {
		return nil, n.transport(ctx, err)
	}
	if int64(buf.Len()) > n.max {
		return nil, fmt.Errorf("%w: answer is over %d bytes: lower Options.Group, or raise MaxBody", chain.ErrNode, n.max)
	}
	return buf.Bytes(), n.said(path, buf.Bytes())
}

// said finds the error that an answer consists of.
func (n *node) said(path string, raw []byte) error {
	w := &walk{b: raw}
	switch w.peek() {
	case '{':
	case '[':
		return nil
	default:
		return &replyError{path, n.redact(string(raw))}
	}
	// The error is the first key of the object, or the second after a flag: what
	// carries data is not read twice for it.
	var found error
	for i := 0; i < 4 && w.more(i == 0); i++ {
		key := string(w.key())
		switch strings.ToLower(key) {
		case "error":
			found = &replyError{path, n.redact(string(w.raw()))}
		case "success", "code", "statuscode":
			w.skip(0)
			continue
		}
		break
	}
	return found
}

// transport keeps the cause and drops the URL that net/http puts around it.
func (n *node) transport(ctx context.Context, err error) error {
	n.broke.Store(true)
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", chain.ErrNode, cause)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w: %s", chain.ErrNode, n.redact(err.Error()))
}

// ask decodes a small answer. The decoder is strict about the shape that v
// gives, not about fields beyond it.
func (n *node) ask(ctx context.Context, path string, params map[string]any, v any) error {
	raw, err := n.post(ctx, path, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %s: its answer is not the JSON expected", chain.ErrNode, path)
	}
	return nil
}
