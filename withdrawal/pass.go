package withdrawal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// silences are the networks whose node did not answer when it was asked last, and the tenants
// about a recipient of whom it did not. Their withdrawals come after all others.
type silences struct {
	mu sync.Mutex
	at map[string]bool
}

// note keeps of a withdrawal's network, and of its tenant there, whether they failed.
func (s *silences) note(w *Withdrawal, node, recipient bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]bool{}
	}
	for key, silent := range map[string]bool{w.Network: node, ofTenant(w): recipient} {
		if silent {
			s.at[key] = true
		} else {
			delete(s.at, key)
		}
	}
}

func ofTenant(w *Withdrawal) string { return w.Network + "/" + w.Tenant }

// last puts the withdrawals of silent networks behind the others.
func (s *silences) last(rows []storage.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rank := func(r storage.Row) int {
		w := Withdrawals.Value(r)
		if s.at[w.Network] || s.at[ofTenant(&w)] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rows, func(a, b storage.Row) int { return cmp.Compare(rank(a), rank(b)) })
}

// pass is one Step: its withdrawals are handed over one after the other.
type pass struct {
	s      *Service
	until  time.Time        // after it nobody outside is asked
	silent map[string]error // by network: what its node said in the place of an answer
}

// late is why nobody outside is asked about a withdrawal any more; nil = somebody is.
func (p *pass) late(w *Withdrawal) error {
	switch {
	case !p.s.now().After(p.until):
		return nil
	case p.silent[w.Network] != nil:
		return p.silent[w.Network]
	}
	return errLate
}

// missed leaves a withdrawal to its next claim, or has it wait for a node that does not answer.
func (p *pass) missed(m *move, late error) (failure, err error) {
	if errors.Is(late, errLate) {
		return nil, late
	}
	m.wait(WaitingPayout, m.now.Add(p.s.c.RetryDelay))
	return late, nil
}

// maxCost asks for the most that the network may take. A node that does not answer is asked once.
func (p *pass) maxCost(ctx context.Context, w *Withdrawal) (ledger.Amount, error) {
	if err := p.silent[w.Network]; err != nil {
		return 0, err
	}
	cost, err := p.s.c.MaxCost(ctx, w.intent())
	node := errors.Is(err, chain.ErrNode)
	if node {
		p.silent[w.Network] = err
	}
	p.s.silences.note(w, node, err != nil && !node && !errors.Is(err, chain.ErrTooDear))
	return cost, err
}
