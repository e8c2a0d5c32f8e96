package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// RPC speaks JSON-RPC 2.0 to one endpoint.
type RPC struct {
	Endpoint
	URL   string
	Batch int // calls in one request; 1 sends no arrays
}

// Call is one request, and after Do its answer: Out where Err is nil.
type Call struct {
	Method string
	Params []any
	Out    []byte // JSON; "null" where the node has nothing
	Err    error
}

// NewCall makes a Call.
func NewCall(method string, params ...any) *Call { return &Call{Method: method, Params: params} }

// Null reports whether the node has nothing.
func (k *Call) Null() bool { return k.Err == nil && Null(k.Out) }

// Integer is an answer that must be a whole number not below 0.
func (k *Call) Integer() (int64, error) {
	if k.Err != nil {
		return 0, k.Err
	}
	n, err := strconv.ParseInt(string(k.Out), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s did not answer with a number", chain.ErrNode, k.Method)
	}
	return n, nil
}

// Text is an answer that must be a string of printable letters.
func (k *Call) Text() (string, error) {
	if k.Err != nil {
		return "", k.Err
	}
	if len(k.Out) < 2 || k.Out[0] != '"' || bytes.IndexByte(k.Out, '\\') >= 0 {
		return "", fmt.Errorf("%w: %s did not answer with a text", chain.ErrNode, k.Method)
	}
	return string(k.Out[1 : len(k.Out)-1]), nil
}

// Into decodes an answer that must be what v is.
func (k *Call) Into(v any) error {
	if k.Err != nil {
		return k.Err
	}
	if Null(k.Out) || json.Unmarshal(k.Out, v) != nil {
		return fmt.Errorf("%w: %s answered something else", chain.ErrNode, k.Method)
	}
	return nil
}

// ReplyError is what the node itself answered. It is no proof of anything.
type ReplyError struct {
	Method  string
	Code    int64
	Message string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("%v: %s answered %d %q", chain.ErrNode, e.Method, e.Code, e.Message)
}

// Unwrap makes it chain.ErrNode.
func (e *ReplyError) Unwrap() error { return chain.ErrNode }

// Replied reports whether the node itself answered with one of these texts, in
// lower case.
func Replied(err error, texts ...string) bool {
	var r *ReplyError
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

// Do sends calls in as few requests as Batch allows. The error is of the
// transport; what the node refused is in each call. A call is never left without
// either.
func (n *RPC) Do(ctx context.Context, calls ...*Call) error {
	for len(calls) > 0 {
		part := calls[:min(len(calls), n.Budget.most(n.Batch))]
		if err := n.post(ctx, part); err != nil {
			return err
		}
		calls = calls[len(part):]
	}
	return nil
}

// Request is a call as it goes over the wire.
type Request struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func (n *RPC) post(ctx context.Context, calls []*Call) error {
	requests := make([]Request, len(calls))
	for i, k := range calls {
		requests[i] = Request{"2.0", i + 1, k.Method, k.Params}
		if k.Params == nil {
			requests[i].Params = []any{}
		}
		k.Out, k.Err = nil, nil
	}
	var payload any = requests
	if n.Batch == 1 {
		payload = requests[0]
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("chain: request: %w", err)
	}
	answer, err := n.send(ctx, len(calls), http.MethodPost, n.URL, "application/json", body)
	if err != nil {
		return err
	}
	return n.Split(answer, calls)
}

// Split gives each call its answer. One that got none is an error of all: a node
// that answers in parts has not answered.
func (n *RPC) Split(answer []byte, calls []*Call) error {
	w := NewWalk(answer)
	seen := 0
	one := func() {
		id, k := n.reply(w)
		switch {
		case w.Bad:
		case id == 0 && k.Err != nil:
			for _, c := range calls { // the whole batch was refused
				c.Err = k.Err
			}
			seen = len(calls)
		case id < 1 || id > len(calls) || calls[id-1].Out != nil || calls[id-1].Err != nil || k.Out == nil && k.Err == nil:
			w.Fail()
		default:
			if calls[id-1].Err = k.Err; k.Err == nil {
				calls[id-1].Out = k.Out
			}
			seen++
		}
	}
	if w.Peek() == '[' {
		w.Array(one)
	} else {
		one()
	}
	if err := w.End(); err != nil {
		return err
	}
	if seen != len(calls) {
		return fmt.Errorf("%w: %d of %d calls were answered", chain.ErrNode, seen, len(calls))
	}
	for _, c := range calls {
		var r *ReplyError
		if errors.As(c.Err, &r) {
			c.Err = &ReplyError{c.Method, r.Code, r.Message}
		}
	}
	return nil
}

// reply reads one answer and the number of the call that it is of, 0 = none.
func (n *RPC) reply(w *Walk) (id int, k Call) {
	w.Object(func(key []byte) {
		switch string(key) {
		case "id":
			id, _ = strconv.Atoi(string(bytes.Trim(w.Raw(), `"`))) // what is no number is of no call
		case "result":
			k.Out = w.Raw()
		case "error":
			k.Err = n.refused(w.Raw())
		default:
			w.Skip()
		}
	})
	return id, k
}

func (n *RPC) refused(raw []byte) error {
	if Null(raw) {
		return nil
	}
	var e struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return &ReplyError{Message: "unreadable error"}
	}
	if err := Limited(raw); err != nil {
		n.Budget.Heed(err)
		return fmt.Errorf("%d %q: %w", e.Code, n.Redact(e.Message), err)
	}
	return &ReplyError{Code: e.Code, Message: n.Redact(e.Message)}
}
