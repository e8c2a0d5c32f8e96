package utxo

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

func newNode(o Options, u *url.URL) *transport.RPC {
	bare := *u
	bare.User = nil
	n := &transport.RPC{Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody, User: u.User}, URL: bare.String(), Batch: o.Batch}
	if u.User == nil && o.User != "" {
		n.User = url.UserPassword(o.User, o.Password)
	}
	if o.Batch == 1 { // Core answers a refused call that comes alone so, with a body
		n.Refusals = []int{http.StatusInternalServerError, http.StatusNotFound}
	}
	n.Hide(o.URL)
	return n
}

// hashOf is an answer that must be 32 bytes of lower-case hex.
func hashOf(k *transport.Call) (string, error) {
	s, err := k.Text()
	if err == nil && !isHash(s) {
		err = fmt.Errorf("%w: %s did not answer with a hash", chain.ErrNode, k.Method)
	}
	return s, err
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// bytesOf is an answer that must be hex.
func bytesOf(k *transport.Call) ([]byte, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	if len(k.Out) < 2 || k.Out[0] != '"' {
		return nil, fmt.Errorf("%w: %s did not answer with hex", chain.ErrNode, k.Method)
	}
	text := k.Out[1 : len(k.Out)-1]
	raw := make([]byte, len(text)/2)
	if _, err := hex.Decode(raw, text); err != nil {
		return nil, fmt.Errorf("%w: %s did not answer with hex", chain.ErrNode, k.Method)
	}
	return raw, nil
}

// outOfRange: there is no block at that height.
func outOfRange(err error) bool { return transport.Replied(err, "out of range") }

// unsupported: the node does not offer the method.
func unsupported(err error) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && (r.Code == -32601 || r.Code == -1 && transport.Replied(err, "unimplemented")) ||
		transport.Replied(err, "method not found", "command unimplemented")
}

// noIndex: the node says that it keeps no index of transactions.
func noIndex(err error) bool { return transport.Replied(err, "txindex", "transaction index") }

// dropped: the node is pruned, and keeps the block no more.
func dropped(err error) bool { return transport.Replied(err, "pruned data") }

// unknownTx: the node knows no such transaction, and would if there were one.
func unknownTx(err error) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && r.Code == -5 && !noIndex(err)
}
