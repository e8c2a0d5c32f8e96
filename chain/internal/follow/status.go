package follow

import (
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
)

// ErrTorn is chain.ErrNode, of a node that did answer and contradicts itself on one
// thing, or says of it what cannot be. It may be right on all others.
var ErrTorn error = torn{chain.ErrNode}

type torn struct{ error }

func (t torn) Unwrap() error { return t.error }

func (torn) Is(target error) bool { return target == ErrTorn }

// Torn makes an error, unless it is nil, one that is ErrTorn.
func Torn(err error) error {
	if err == nil {
		return nil
	}
	return torn{err}
}

// Statuses judges n attempts one by one. One whose judgement is ErrTorn is Unknown, and
// holds up no other; any other error is the whole call's.
func Statuses(n int, judge func(i int) (chain.Status, error)) ([]chain.Status, error) {
	out := make([]chain.Status, n)
	for i := range out {
		var err error
		if out[i], err = judge(i); errors.Is(err, ErrTorn) {
			out[i] = chain.Status{State: chain.Unknown}
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}
