package world

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// errHeld is told to who asks for a signature on a network that operators keep
// without a Signer, errAway to who asks one that is out of reach.
var (
	errHeld = errors.New("world: there is no signer on this network")
	errAway = errors.New("world: the signer does not answer")
)

// signer is the processes' own, where operators and the nemesis let it.
type signer struct {
	chain.Signer
	r *run
}

func (s signer) Sign(ctx context.Context, q chain.SignRequest) ([]chain.Signature, error) {
	s.r.outside.judge.Asked(&q)
	if s.r.held[q.Intent.Network] {
		return nil, errHeld
	}
	mood := s.r.signing
	if s.r.step >= s.r.signs || s.r.calm {
		mood = ""
	}
	switch mood {
	case "away":
		return nil, errAway
	case "refuses":
		s.r.outside.judge.Refusing()
		return nil, fmt.Errorf("%w: a rule of its own", chain.ErrRefused)
	}
	out, err := s.Signer.Sign(ctx, q)
	if err == nil {
		s.betray(ctx, q)
		s.r.outside.judge.Signed(&q, s.r.outside.ways(s.r, q.Intent.Network))
	}
	if mood == "mute" {
		return nil, errAway
	}
	return out, err
}

// unsign lets the signer be out of reach, lose its answers, or refuse, for a while.
func (r *run) unsign() string {
	r.signing = pick(r.rng, []string{"away", "mute", "refuses"})
	r.signs = r.step + 1 + r.rng.IntN(12)
	return fmt.Sprintf("%s for %d steps", r.signing, r.signs-r.step)
}
