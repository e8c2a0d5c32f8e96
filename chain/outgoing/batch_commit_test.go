package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// meet has orders meet with trouble, once.
func (w *world) meet(trouble string) {
	refused := fmt.Errorf("%w: limit", chain.ErrRefused)
	switch trouble {
	case "refused":
		w.signer.fail = []error{refused}
	case "refused later":
		w.signer.fail = []error{errAway, refused}
	case "rejected":
		w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
	case "replaced":
		w.run(1)
		w.stick()
	}
}

// deafStore loses one Change, or the answer to it, however often it is sent.
type deafStore struct {
	storage.Store
	at, seen int
	does     bool
	lost     string
}

func (s *deafStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		errs[i] = s.one(ctx, changes[i])
	}
	return errs
}

func (s *deafStore) one(ctx context.Context, c storage.Change) error {
	id := c.ID
	if s.lost == "" {
		if s.seen++; s.seen == s.at {
			s.lost = id
		}
	}
	if id != s.lost {
		return s.Store.Commit(ctx, c)[0]
	}
	if s.does {
		s.Store.Commit(ctx, c)
	}
	return errors.New("no answer")
}

// A process that goes on after a Change of which it heard nothing.
func TestW02_UnheardCommitPaysOnce(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		for n, trouble := range []string{"", "refused", "refused later", "rejected", "replaced", "", "refused", "refused later", "rejected", "replaced"} {
			does := n >= 5
			t.Run(fmt.Sprint(family, " ", trouble, " ", does), func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at += stride() {
					deaf := &deafStore{at: at, does: does}
					w := funded(t, setup{family: family, change: func(c *outgoing.Config) {
						if deaf.Store == nil {
							deaf.Store = c.Store
						}
						c.Store = deaf
					}})
					deaf.seen = 0
					var in []chain.Intent
					for i, id := range []string{"a", "b", "c"} {
						x := w.intent(id, ledger.Amount(i+1)*coin)
						for w.Net.Submit(w.ctx, x) != nil {
							deaf.at, deaf.lost = 0, ""
						}
						in = append(in, x)
					}
					w.meet(trouble)
					w.run(40)
					for _, x := range in {
						if family == chain.AccountFamily && w.state(x.ID) == outgoing.Failed && trouble != "" {
							w.unpaid(x) // what a signer or a node refuses alone fails
							continue
						}
						w.each(x)
					}
					w.sound()
					if t.Failed() || deaf.lost == "" && deaf.at > 0 {
						return
					}
				}
			})
		}
	}
}

// meddledStore lets another process write an outcome right before every Change that
// writes it.
type meddledStore struct {
	storage.Store
	done map[string]bool
}

func (s *meddledStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		errs[i] = s.one(ctx, changes[i])
	}
	return errs
}

func (s *meddledStore) one(ctx context.Context, c storage.Change) error {
	first := fmt.Sprint(c.Put[0].ID, "/", c.Put[0].Version)
	for _, p := range c.Put[1:] { // the first is the order, or the outcome that is delivered
		if p.Table != outgoing.Outcomes.Table || p.Version == 0 || s.done[first] {
			continue
		}
		rows, err := s.Store.Rows(ctx, p.Table, storage.Keys(c.Partition, p.ID)...)
		if err != nil {
			return err
		}
		id := fmt.Sprint("meddled/", p.ID, rows[0].Version)
		s.done[first] = true
		err = storage.CommitOne(ctx, s.Store, storage.Change{ID: id, Partition: c.Partition, Put: rows})
		if err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, c)[0]
}

// What an owner is told is written by others too: a Change is then made again.
func TestC01_OutcomesDeliveredMeanwhile(t *testing.T) {
	t.Parallel()
	for _, trouble := range []string{"", "refused", "refused later", "rejected", "replaced"} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
				c.Store = &meddledStore{c.Store, map[string]bool{}}
			}})
			in := three(w)
			w.meet(trouble)
			w.run(40)
			w.each(in...)
		})
	}
}

// Two processes on one store.
func TestC01_TwoProcessesPayTogetherOnce(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	var in []chain.Intent
	for i := range 12 {
		in = append(in, w.submit(w.intent(fmt.Sprint("n", i), coin/4)))
	}
	other := w.process()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			_, _ = other.Step(w.ctx)
		}
	}()
	for range 20 {
		_, _ = w.Net.Step(w.ctx)
	}
	<-done
	w.advance(2 * time.Minute)
	w.run(16)
	w.each(in...)
}
