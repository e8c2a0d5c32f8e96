package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// node speaks JSON-RPC to one endpoint.
type node struct {
	http    *http.Client
	url     string
	header  http.Header
	max     int64
	batch   int
	secrets []string
}

func newNode(o Options, u *url.URL) *node {
	n := &node{http: o.HTTP, url: o.URL, header: o.Header, max: o.MaxBody, batch: o.Batch}
	n.secrets = append(n.secrets, o.URL, u.Host, u.Hostname())
	if p, ok := u.User.Password(); ok {
		n.secrets = append(n.secrets, p)
	}
	n.secrets = append(n.secrets, u.User.Username(), u.RawQuery)
	for _, v := range u.Query() {
		n.secrets = append(n.secrets, v...)
	}
	n.secrets = append(n.secrets, strings.Split(u.Path, "/")...)
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
	return s
}

// call is one request, and after do its answer: out where err is nil.
type call struct {
	method string
	params []any
	out    []byte
	err    error
}

func newCall(method string, params ...any) *call { return &call{method: method, params: params} }

// replyError is what the node itself answered. It is no proof of anything.
type replyError struct {
	Method  string
	Code    int64
	Message string
}

func (e *replyError) Error() string {
	return fmt.Sprintf("%v: %s answered %d %q", chain.ErrNode, e.Method, e.Code, e.Message)
}

func (e *replyError) Unwrap() error { return chain.ErrNode }

// do sends calls in as few requests as Options.Batch allows. The error is of the
// transport; what the node refused is in each call. A call is never left without
// either.
func (n *node) do(ctx context.Context, calls ...*call) error {
	for len(calls) > 0 {
		part := calls[:min(len(calls), n.batch)]
		if err := n.post(ctx, part); err != nil {
			return err
		}
		calls = calls[len(part):]
	}
	return nil
}

type request struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func (n *node) post(ctx context.Context, calls []*call) error {
	requests := make([]request, len(calls))
	for i, k := range calls {
		requests[i] = request{"2.0", i + 1, k.method, k.params}
		if k.params == nil {
			requests[i].Params = []any{}
		}
		k.out, k.err = nil, nil
	}
	var payload any = requests
	if n.batch == 1 {
		payload = requests[0]
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("evm: request: %w", err)
	}
	answer, err := n.send(ctx, body)
	if err != nil {
		return err
	}
	return n.split(answer, calls)
}

func (n *node) send(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
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
		return nil, fmt.Errorf("%w: HTTP status %d", chain.ErrNode, resp.StatusCode)
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 && resp.ContentLength <= n.max {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	if _, err = buf.ReadFrom(io.LimitReader(resp.Body, n.max+1)); err != nil {
		return nil, n.transport(ctx, err)
	}
	if int64(buf.Len()) > n.max {
		return nil, fmt.Errorf("%w: answer is over %d bytes: lower Options.Group or Batch, or raise MaxBody", chain.ErrNode, n.max)
	}
	return buf.Bytes(), nil
}

// transport keeps the cause and drops the URL that net/http puts around it.
func (n *node) transport(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", chain.ErrNode, cause)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w: %s", chain.ErrNode, n.redact(err.Error()))
}

// split gives each call its answer. One that got none is an error of all: a node
// that answers in parts has not answered.
func (n *node) split(answer []byte, calls []*call) error {
	w := &walk{b: answer}
	seen := 0
	one := func() {
		id, k := int64(0), call{}
		w.object(func(key []byte) {
			switch string(key) {
			case "id":
				id = parseID(w.raw())
			case "result":
				k.out = w.raw()
			case "error":
				k.err = n.refusal(w.raw())
			default:
				w.skip(0)
			}
		})
		if w.bad {
			return
		}
		if id == 0 && k.err != nil {
			for _, c := range calls { // the whole batch was refused
				c.err = k.err
			}
			seen = len(calls)
			return
		}
		if id < 1 || id > int64(len(calls)) || calls[id-1].out != nil || calls[id-1].err != nil || k.out == nil && k.err == nil {
			w.fail()
			return
		}
		c := calls[id-1]
		if c.err = k.err; c.err == nil {
			c.out = k.out
		}
		seen++
	}
	if w.peek() == '[' {
		w.array(one)
	} else {
		one()
	}
	if err := w.end(); err != nil {
		return err
	}
	if seen != len(calls) {
		return fmt.Errorf("%w: %d of %d calls were answered", chain.ErrNode, seen, len(calls))
	}
	for _, c := range calls {
		var r *replyError
		if errors.As(c.err, &r) {
			r = &replyError{c.method, r.Code, r.Message}
			c.err = r
		}
	}
	return nil
}

func parseID(b []byte) int64 {
	var id int64
	for _, d := range bytes.Trim(b, `"`) {
		if d < '0' || d > '9' || id > 1<<20 {
			return 0
		}
		id = id*10 + int64(d-'0')
	}
	return id
}

func (n *node) refusal(raw []byte) error {
	if isNull(raw) {
		return nil
	}
	var e struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return &replyError{Message: "unreadable error"}
	}
	return &replyError{Code: e.Code, Message: n.redact(e.Message)}
}

// quantity is an answer that must be a number.
func (k *call) quantity() (*big.Int, error) {
	if k.err != nil {
		return nil, k.err
	}
	w := &walk{b: k.out}
	v := w.big()
	return v, w.end()
}

// word is an answer of eth_call that must be one uint256. A contract that is not
// there answers nothing, which is an error.
func (k *call) word() (*big.Int, error) {
	if k.err != nil {
		return nil, k.err
	}
	var b [32]byte
	w := &walk{b: k.out}
	w.fixed(b[:])
	if w.end() != nil {
		return nil, fmt.Errorf("%w: %s did not return a number: no such contract there?", chain.ErrNode, k.method)
	}
	return new(big.Int).SetBytes(b[:]), nil
}

func replied(err error, texts ...string) bool {
	var r *replyError
	if !errors.As(err, &r) {
		return false
	}
	m := strings.ToLower(r.Message)
	for _, t := range texts {
		if strings.Contains(m, t) {
			return true
		}
	}
	return false
}

// unknownBlock: the node says that it has no such block.
func unknownBlock(err error) bool {
	var r *replyError
	return errors.As(err, &r) && r.Code == -39001 ||
		replied(err, "unknown block", "block not found", tagFinal+" block not", "safe block not", "header not found")
}

// unsupported: the node does not offer the method.
func unsupported(err error) bool {
	var r *replyError
	return errors.As(err, &r) && (r.Code == -32601 || r.Code == -32004) ||
		replied(err, "method not found", "does not exist/is not available", "unsupported method", "not supported", "not available", "not whitelisted")
}

// stateGone: the node has thrown away the state of an old block.
func stateGone(err error) bool {
	return replied(err, "missing trie node", "state not available", "state is not available", "historical state", "pruned", "state histories", "state already discarded", "archive")
}
