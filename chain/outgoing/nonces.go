package outgoing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// addressNonce is the row of an address in the table Nonces as it was loaded. Its methods
// alone write that table, under the version that was loaded: of two Changes that decide on
// the same row, one meets a conflict.
type addressNonce struct {
	NonceRow
	address chain.Address
	version int64 // 0 = the address has no row yet
}

func (n *Sender) loadNonce(ctx context.Context, a chain.Address) (addressNonce, error) {
	v, row, _, err := Nonces.One(ctx, n.Store, n.part, string(a))
	return addressNonce{NonceRow: v, address: a, version: row.Version}, err
}

func (a *addressNonce) row() storage.Row {
	return Nonces.Row(string(a.address), a.version, time.Time{}, a.NonceRow)
}

// heldByOther reports whether another intent's transaction with the next nonce is being signed.
func (a *addressNonce) heldByOther(intent string) bool { return a.Holder != "" && a.Holder != intent }

// reserve binds the next nonce to an intent. The row does not move on: its holder either
// uses the nonce or gives it back.
func (a *addressNonce) reserve(intent string, at time.Time, s *transition) error {
	if a.heldByOther(intent) {
		return errBusy
	}
	a.Holder = intent
	s.with = append(s.with, a.row())
	return unbound(Slot(a.address, a.Next)).bind(intent, at, s)
}

// giveBack makes the nonce of a plan that was never signed the next one again. A row that
// the intent does not hold stays as it is.
func (a *addressNonce) giveBack(intent string, s *transition) {
	if a.Holder == intent {
		a.Holder = ""
		s.with = append(s.with, a.row())
	}
}

// use moves the row on, in the Change that stores the attempt with its nonce. It refuses an
// attempt of another intent than the holder's, and another nonce.
func (a *addressNonce) use(by *AttemptRow, s *transition) (ok bool) {
	if a.Holder != by.Intent || a.Next != by.Nonce {
		return false
	}
	a.Holder, a.Next = "", a.Next+1
	s.with = append(s.with, a.row())
	return true
}

// adopt sets the next nonce to what the chain knows. It reports whether that changes the row.
func (a *addressNonce) adopt(next uint64) (changed bool, err error) {
	switch {
	case a.Holder != "":
		return false, fmt.Errorf("outgoing: intent %s is being signed for %s: try again", a.Holder, a.address)
	case next > 1<<62 || int64(next) < a.Next:
		return false, fmt.Errorf("outgoing: nonce of %s cannot go back from %d to %d", a.address, a.Next, next)
	}
	changed = int64(next) != a.Next || a.version == 0
	a.Next = int64(next)
	return changed, nil
}

// drawNonce takes the address's next nonce. One transaction per address is
// signed at a time: a nonce that was given up is then the next one again, and
// nothing behind it hangs in the air.
func (n *Sender) drawNonce(ctx context.Context, j *claimedIntent, d *candidate, s *transition) error {
	if j.isGapFill() {
		held, err := n.loadBinding(ctx, Slot(j.v.From, j.v.Nonce))
		if err == nil {
			err = held.bind(j.id, n.Now(), s)
		}
		if err != nil {
			return err
		}
	}
	if d.nonce >= 0 { // a replacement, or a hole
		return n.build(ctx, d)
	}
	next, err := n.nonce(ctx, d.intent.From, d.intent.Purpose)
	if err != nil {
		return err
	}
	if next.heldByOther(j.id) {
		return cmp.Or(n.setAside(ctx, next.Holder), error(errBusy))
	}
	d.nonce, d.first = next.Next, true
	if err := n.covered(ctx, d); err != nil {
		return err
	}
	if err := n.build(ctx, d); err != nil {
		return n.short(ctx, d, err)
	}
	return next.reserve(j.id, n.Now(), s)
}

// nonce reads the address's row, or what its first will be. A chain that knows
// more transactions of the address than we do means that the store was set back
// or somebody else holds the key: nothing is sent from it until AdoptNonce.
func (n *Sender) nonce(ctx context.Context, a chain.Address, purpose chain.Purpose) (addressNonce, error) {
	next, err := n.loadNonce(ctx, a)
	if err != nil {
		return next, err
	}
	n.mu.Lock()
	checked := n.checked[a]
	n.mu.Unlock()
	stored := next.version > 0
	if stored && checked {
		return next, nil
	}
	at, err := n.nonces.Nonce(ctx, a)
	switch {
	case err != nil:
		return next, err
	case at > 1<<62:
		return next, fmt.Errorf("%w: nonce %d", chain.ErrNode, at)
	case !stored && at > 0 && purpose == chain.ForSweep && !n.sure(a, at):
		return next, &waitError{ReasonNode, fmt.Sprintf("the node says that an address never sent from is at nonce %d: asked again later", at)}
	case !stored:
		next.Next = int64(at)
	case int64(at) > next.Next:
		n.Log.Error("unknown_transactions", slog.String("address", string(a)), slog.Uint64("chain_nonce", at), slog.Int64("own_nonce", next.Next))
		return next, &waitError{ReasonHalted, "the chain knows transactions of this address that the store does not: reconcile, then AdoptNonce"}
	}
	n.mu.Lock()
	n.checked[a] = true
	n.mu.Unlock()
	return next, nil
}

// AdoptNonce goes on with next as the nonce of an address, after a person has
// reconciled transactions that were sent past this store. It never goes back,
// and refuses while a transaction of the address is being signed. The record of who does
// so is in the same Change; without one everything is checked and nothing is done. made is
// false where nothing was: on a check, and where next is the nonce already.
func (n *Sender) AdoptNonce(ctx context.Context, a chain.Address, next uint64, by *Recorded) (made bool, err error) {
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		made = false
		own, err := n.loadNonce(ctx, a)
		if err != nil {
			return storage.Change{}, err
		}
		before := own.Next
		changed, err := own.adopt(next)
		if err != nil || !changed || by == nil {
			return storage.Change{}, err
		}
		rows, tell, err := by.Rows(before, own.Next)
		made = true
		return storage.Change{
			ID: changeID("adopt/"+by.ID, string(a), own.version), Partition: n.part, Put: append(rows, own.row()), Tell: tell,
		}, err
	})
	return made && err == nil, err
}
