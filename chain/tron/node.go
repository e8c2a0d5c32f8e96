package tron

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// node speaks the HTTP API of one endpoint.
type node struct {
	transport.Endpoint
	transport.Trust
	url, solid string
}

func newNode(o *Options) *node {
	n := &node{
		Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody},
		url:      strings.TrimRight(o.URL, "/"), solid: strings.TrimRight(o.SolidURL, "/"),
	}
	n.Hide(o.URL)
	n.Hide(o.SolidURL)
	return n
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
	raw, err := n.Post(ctx, base+path, body)
	if err != nil {
		n.Broke()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, n.said(path, raw)
}

// said finds the error that an answer consists of.
func (n *node) said(path string, raw []byte) error {
	w := newWalk(raw)
	switch w.Peek() {
	case '{':
	case '[':
		return nil
	default:
		return n.refused(path, raw)
	}
	// The error is the first key of the object, or the second after a flag: what
	// carries data is not read twice for it.
	var found error
	for i := 0; i < 4 && w.More(i == 0); i++ {
		key := string(w.Key())
		switch strings.ToLower(key) {
		case "error":
			found = n.refused(path, w.Raw())
		case "success", "code", "statuscode":
			w.Skip()
			continue
		}
		break
	}
	return found
}

// refused is the error that the node itself answered with.
func (n *node) refused(path string, words []byte) error {
	if err := transport.Limited(words); err != nil {
		n.Budget.Heed(err)
		return fmt.Errorf("%s answered %q: %w", path, n.Redact(string(words)), err)
	}
	return &replyError{path, n.Redact(string(words))}
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
