package xrp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// node speaks the JSON-RPC API of one endpoint, which is not JSON-RPC 2.0: a
// method with one object of parameters, and a result that is an error itself
// where its status says so.
type node struct {
	transport.Endpoint
	transport.Trust
	url string
}

// replyError is what the node itself answered in the place of an answer. It is
// no proof of anything.
type replyError struct{ Method, Code, Message string }

func (e *replyError) Error() string {
	return fmt.Sprintf("%v: %s answered %s %q", chain.ErrNode, e.Method, e.Code, e.Message)
}

func (e *replyError) Unwrap() error { return chain.ErrNode }

// said reports whether the node itself answered with this code.
func said(err error, code string) bool {
	var r *replyError
	return errors.As(err, &r) && r.Code == code
}

type params map[string]any

// call asks one question and returns the JSON of its result.
func (n *node) call(ctx context.Context, method string, p params) ([]byte, error) {
	ask := params{"api_version": 1} // the shape that both rippled and Clio give without being asked
	for k, v := range p {
		ask[k] = v
	}
	body, err := json.Marshal(map[string]any{"method": method, "params": []any{ask}})
	if err != nil {
		return nil, fmt.Errorf("xrp: request: %w", err)
	}
	raw, err := n.Post(ctx, n.url, body)
	if err != nil {
		n.Broke()
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	w := transport.NewWalk(raw)
	var result []byte
	w.Object(func(key []byte) {
		if string(key) == "result" {
			result = w.Raw()
			return
		}
		w.Skip()
	})
	if err := w.End(); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return result, n.refused(method, result)
}

// refused finds the error that a result consists of.
func (n *node) refused(method string, result []byte) error {
	w := transport.NewWalk(result)
	var status, code, message string
	w.Object(func(key []byte) {
		switch string(key) {
		case "status":
			status = string(w.Text())
		case "error":
			code = n.Redact(string(w.Text()))
		case "error_message":
			message = n.Redact(string(w.Text()))
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if status != "success" || code != "" {
		if err := transport.Limited([]byte(code)); err != nil {
			n.Budget.Heed(err)
			return fmt.Errorf("%s answered %s %q: %w", method, code, message, err)
		}
		return &replyError{method, code, message}
	}
	return nil
}

// ask decodes a small answer.
func (n *node) ask(ctx context.Context, method string, p params, v any) error {
	raw, err := n.call(ctx, method, p)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %s: its answer is not the JSON expected", chain.ErrNode, method)
	}
	return nil
}
