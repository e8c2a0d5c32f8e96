package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// errHeld is told to who asks for a signature on a network that operators keep
// without a Signer, errAway to who asks one that is out of reach.
var (
	errHeld = errors.New("simulation: there is no signer on this network")
	errAway = errors.New("simulation: the signer does not answer")
)

// signer is the processes' own, where operators and the nemesis let it.
type signer struct {
	chain.ManySigner
	r *run
}

func (s signer) Sign(ctx context.Context, q chain.SignRequest) ([]chain.Signature, error) {
	out, errs := s.SignMany(ctx, []chain.SignRequest{q})
	return out[0], errs[0]
}

func (s signer) SignMany(ctx context.Context, qs []chain.SignRequest) ([][]chain.Signature, []error) {
	out, errs := make([][]chain.Signature, len(qs)), make([]error, len(qs))
	var asked []chain.SignRequest
	var of []int
	for i := range qs {
		s.r.outside.judge.Asked(&qs[i])
		if errs[i] = s.shut(qs[i].Intent.Network); errs[i] == nil {
			asked, of = append(asked, qs[i]), append(of, i)
		}
	}
	if len(asked) == 0 {
		return out, errs
	}
	signed, refused := s.ManySigner.SignMany(ctx, asked)
	for n, i := range of {
		if out[i], errs[i] = signed[n], refused[n]; errs[i] == nil {
			s.betray(ctx, qs[i])
			s.r.outside.judge.Signed(&qs[i], s.r.outside.ways(s.r, qs[i].Intent.Network))
		}
		if s.mood() == "mute" {
			out[i], errs[i] = nil, errAway
		}
	}
	return out, errs
}

// shut is why nothing is signed for a network now.
func (s signer) shut(n chain.Network) error {
	if s.r.held[n] {
		return errHeld
	}
	switch s.mood() {
	case "away":
		return errAway
	case "refuses":
		s.r.outside.judge.Refusing()
		return fmt.Errorf("%w: a rule of its own", chain.ErrRefused)
	}
	return nil
}

func (s signer) mood() string {
	if s.r.step >= s.r.signs || s.r.calm {
		return ""
	}
	return s.r.signing
}

// unsign lets the signer be out of reach, lose its answers, or refuse, for a while.
func (r *run) unsign() string {
	r.signing = pick(r.rng, []string{"away", "mute", "refuses"})
	r.signs = r.step + 1 + r.rng.IntN(12)
	return fmt.Sprintf("%s for %d steps", r.signing, r.signs-r.step)
}
