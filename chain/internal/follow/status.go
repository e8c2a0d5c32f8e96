package follow

import (
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
)

// ErrTorn is chain.ErrNode, of a node that did answer and contradicts itself, or tells
// what cannot be. Its word on that one thing is worth nothing; it may be right on others.
var ErrTorn error = torn{}

type torn struct{}

func (torn) Error() string { return chain.ErrNode.Error() }
func (torn) Unwrap() error { return chain.ErrNode }

// Statuses reads and judges attempts one by one. One that is not understood is Unknown,
// and so is one whose judgement is ErrTorn: that holds up no other. Any other error
// is the whole call's.
func Statuses[T any](attempts []chain.Attempt, read func(tx string, raw []byte) (T, error), judge func(i int, t T) (chain.Status, error)) ([]chain.Status, error) {
	out := make([]chain.Status, len(attempts))
	for i, a := range attempts {
		out[i].State = chain.Unknown
		t, err := read(a.Tx, a.Raw)
		if err != nil {
			continue
		}
		st, err := judge(i, t)
		switch {
		case err == nil:
			out[i] = st
		case !errors.Is(err, ErrTorn):
			return nil, err
		}
	}
	return out, nil
}
