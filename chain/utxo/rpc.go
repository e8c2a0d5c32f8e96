package utxo

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// node speaks JSON-RPC to one endpoint.
type node struct {
	http    *http.Client
	url     string
	user    *url.Userinfo
	header  http.Header
	max     int64
	batch   int
	secrets []string
}

func newNode(o Options, u *url.URL) *node {
	n := &node{http: o.HTTP, header: o.Header, max: o.MaxBody, batch: o.Batch, user: u.User}
	if u.User == nil && o.User != "" {
		n.user = url.UserPassword(o.User, o.Password)
	}
	bare := *u
	bare.User = nil
	n.url = bare.String()
	n.secrets = append(n.secrets, o.URL, n.url, u.Host, u.Hostname(), u.RawQuery)
	if p, ok := n.user.Password(); ok {
		n.secrets = append(n.secrets, p)
	}
	n.secrets = append(n.secrets, n.user.Username())
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
	out    []byte // JSON; "null" where the node has nothing
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
		return fmt.Errorf("utxo: request: %w", err)
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
	if n.user != nil {
		p, _ := n.user.Password()
		req.SetBasicAuth(n.user.Username(), p)
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return nil, n.transport(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	// Core answers a refused call that comes alone with 500 or 404 and a body.
	alone := n.batch == 1 && (resp.StatusCode == http.StatusInternalServerError || resp.StatusCode == http.StatusNotFound)
	if resp.StatusCode != http.StatusOK && !alone {
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
		var id int
		var k call
		w.object(func(key []byte) {
			switch string(key) {
			case "id":
				id, _ = strconv.Atoi(string(bytes.Trim(w.value(), `"`)))
			case "result":
				k.out = w.value()
			case "error":
				k.err = n.refusal(w.value())
			default:
				w.value()
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
		if id < 1 || id > len(calls) || calls[id-1].out != nil || calls[id-1].err != nil || k.out == nil && k.err == nil {
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
	if w.peek() != 0 || w.bad {
		return fmt.Errorf("%w: its answer is not understood", chain.ErrNode)
	}
	if seen != len(calls) {
		return fmt.Errorf("%w: %d of %d calls were answered", chain.ErrNode, seen, len(calls))
	}
	for _, c := range calls {
		var r *replyError
		if errors.As(c.err, &r) {
			c.err = &replyError{c.method, r.Code, r.Message}
		}
	}
	return nil
}

func (n *node) refusal(raw []byte) error {
	if string(raw) == "null" {
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

func (k *call) null() bool { return k.err == nil && string(k.out) == "null" }

// integer is an answer that must be a whole number not below 0.
func (k *call) integer() (int64, error) {
	if k.err != nil {
		return 0, k.err
	}
	n, err := strconv.ParseInt(string(k.out), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s did not answer with a number", chain.ErrNode, k.method)
	}
	return n, nil
}

// text is an answer that must be a string of printable letters.
func (k *call) text() (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if len(k.out) < 2 || k.out[0] != '"' || bytes.IndexByte(k.out, '\\') >= 0 {
		return "", fmt.Errorf("%w: %s did not answer with a text", chain.ErrNode, k.method)
	}
	return string(k.out[1 : len(k.out)-1]), nil
}

// hash is an answer that must be 32 bytes of lower-case hex.
func (k *call) hash() (string, error) {
	s, err := k.text()
	if err == nil && !isHash(s) {
		err = fmt.Errorf("%w: %s did not answer with a hash", chain.ErrNode, k.method)
	}
	return s, err
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// bytes is an answer that must be hex.
func (k *call) bytes() ([]byte, error) {
	if k.err != nil {
		return nil, k.err
	}
	if len(k.out) < 2 || k.out[0] != '"' {
		return nil, fmt.Errorf("%w: %s did not answer with hex", chain.ErrNode, k.method)
	}
	text := k.out[1 : len(k.out)-1]
	raw := make([]byte, len(text)/2)
	if _, err := hex.Decode(raw, text); err != nil {
		return nil, fmt.Errorf("%w: %s did not answer with hex", chain.ErrNode, k.method)
	}
	return raw, nil
}

// into decodes an answer that must be an object.
func (k *call) into(v any) error {
	if k.err != nil {
		return k.err
	}
	if json.Unmarshal(k.out, v) != nil || string(k.out) == "null" {
		return fmt.Errorf("%w: %s answered something else", chain.ErrNode, k.method)
	}
	return nil
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

// outOfRange: there is no block at that height.
func outOfRange(err error) bool { return replied(err, "out of range") }

// unsupported: the node does not offer the method.
func unsupported(err error) bool {
	var r *replyError
	return errors.As(err, &r) && (r.Code == -32601 || r.Code == -1 && replied(err, "unimplemented")) ||
		replied(err, "method not found", "command unimplemented")
}

// noIndex: the node says that it keeps no index of transactions.
func noIndex(err error) bool { return replied(err, "txindex", "transaction index") }

// unknownTx: the node knows no such transaction, and would if there were one.
func unknownTx(err error) bool {
	var r *replyError
	return errors.As(err, &r) && r.Code == -5 && !noIndex(err)
}
