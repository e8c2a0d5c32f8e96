package stellar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// node speaks the REST API of one Horizon.
type node struct {
	transport.Endpoint
	transport.Trust
	url string
}

// replyError is the problem (RFC 7807) that Horizon answered with. It is no proof of
// anything.
type replyError struct {
	Path, Title, Detail string
	Status              int64
}

func (e *replyError) Error() string {
	return fmt.Sprintf("%v: %s answered %d %q %q", chain.ErrNode, e.Path, e.Status, e.Title, e.Detail)
}

func (e *replyError) Unwrap() error { return chain.ErrNode }

// missing reports whether Horizon answered that there is no such thing.
func missing(err error) bool {
	var r *replyError
	return errors.As(err, &r) && r.Status == 404
}

// get asks one path and returns the JSON of the answer.
func (n *node) get(ctx context.Context, path string) ([]byte, error) {
	raw, err := n.Get(ctx, n.url+path)
	return n.answered(path, raw, err)
}

// dated is get of something of the newest ledger, and Horizon's word on which that was.
func (n *node) dated(ctx context.Context, path string) (raw []byte, latest string, err error) {
	raw, latest, err = n.GetNoting(ctx, n.url+path, "Latest-Ledger")
	raw, err = n.answered(path, raw, err)
	return raw, latest, err
}

func (n *node) post(ctx context.Context, path string, form url.Values) ([]byte, error) {
	raw, err := n.PostForm(ctx, n.url+path, form)
	return n.answered(path, raw, err)
}

// answered finds the problem that an answer consists of.
func (n *node) answered(path string, raw []byte, err error) ([]byte, error) {
	if err != nil {
		n.Broke()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w := newWalk(raw)
	p := replyError{Path: path}
	w.Object(func(key []byte) {
		switch string(key) {
		case "status":
			p.Status = w.number()
		case "title":
			p.Title = n.Redact(string(w.Raw()))
		case "detail":
			p.Detail = n.Redact(string(w.Raw()))
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.Status != 0 {
		return raw, &p
	}
	return raw, nil
}

// ask decodes a small answer.
func (n *node) ask(ctx context.Context, path string, v any) error {
	raw, err := n.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %s: its answer is not the JSON expected", chain.ErrNode, path)
	}
	return nil
}
