package outgoing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// An operator can help an intent that is stuck. Each call changes the stored intent and
// makes it due; the next Step of any process with a signer acts on it, under the same
// rules and halts as ever.

// ErrHelp reports that an intent, or a nonce, is not in a state in which the call helps.
var ErrHelp = errors.New("outgoing: it cannot be helped in this way")

// errCancelled is why a plan is not signed any more that pays somebody.
var errCancelled = errors.New("outgoing: an operator has cancelled the transaction")

func noHelp(id, why string) error { return fmt.Errorf("%w: intent %s: %s", ErrHelp, id, why) }

// Help is what a call changes of an intent, as its Operation shows it.
type Help struct {
	State      State         `json:"state"`
	Reason     Reason        `json:"reason,omitempty"`
	Tx         string        `json:"tx,omitempty"`
	MaxCost    ledger.Amount `json:"max_cost"`
	Cancelling bool          `json:"cancelling,omitempty"`
}

func (j *claimedIntent) shown() Help {
	return Help{State: j.v.State, Reason: j.v.Reason, Tx: j.v.Tx, MaxCost: j.v.MaxCost, Cancelling: j.v.Cancelling && !helps(j.id)}
}

// SpeedUp has an intent looked at now: one that is signed is replaced by a transaction with
// a higher fee, one that waits is tried again. Where maxCost is above its bound, the bound
// is raised to it; what that may cost must be set aside before. Without by nothing is
// written, and what would be is returned. The error wraps ErrHelp where the intent
// has ended, is in a block, is paid by another one's transaction, has Config.MaxAttempts
// transactions already, or where nodes keep the transaction and take no other. One whose
// address has an earlier nonce open waits for that: of it the bound alone is raised, and
// without a higher one the error names the first.
func (n *Sender) SpeedUp(ctx context.Context, id string, maxCost ledger.Amount, by *Recorded) (before, after Help, err error) {
	return n.intervene(ctx, id, by, func(j *claimedIntent) error {
		in, err := n.inBlock(ctx, j)
		switch {
		case err != nil:
			return err
		case j.v.ended():
			return noHelp(id, "it is "+string(j.v.State))
		case in:
			return noHelp(id, "it is in a block")
		case j.v.Cancelling && !helps(id):
			return noHelp(id, "it is being cancelled")
		case j.booked():
			return noHelp(id, "a fork undid it before every process knew how to take its cost back: the same transaction is sent again until it lands (App.Upgraded)")
		case j.v.Reason == ReasonOccupied:
			return noHelp(id, "nodes keep its earlier transaction and take no other")
		case slices.Contains(sent, j.v.State) && n.lapses():
			return noHelp(id, "its network replaces no transaction; it is signed anew when its time is over")
		}
		if n.MaxFee > 0 && maxCost > n.MaxFee {
			return noHelp(id, fmt.Sprintf("Config.MaxFee allows %d", n.MaxFee))
		}
		byIntent, err := n.attempts(ctx, id)
		if err != nil {
			return err
		}
		if open := slices.DeleteFunc(byIntent[id], func(a *attempt) bool { return a.v.State != Open }); len(open) >= n.MaxAttempts && !j.v.ExecutedReported {
			return noHelp(id, fmt.Sprintf("it has %d transactions, and Config.MaxAttempts allows no more: it can be cancelled", len(open)))
		}
		first, err := n.first(ctx, j)
		if err != nil {
			return err
		}
		if first != "" && slices.Contains(sent, j.v.State) && maxCost <= j.v.MaxCost {
			return noHelp(id, "it waits for the transaction before it: help intent "+first+" instead")
		}
		j.v.MaxCost = max(j.v.MaxCost, maxCost)
		j.v.BumpAt = n.Now()
		return nil
	})
}

// inBlock reports whether a block has the payment of an executed order. Where its owner asked for no
// confirmations it may be in none: the node is asked.
func (n *Sender) inBlock(ctx context.Context, j *claimedIntent) (bool, error) {
	if j.v.State != Executed || j.v.Confirmations > 0 {
		return j.v.State == Executed, nil
	}
	byIntent, err := n.attempts(ctx, j.id)
	if err != nil {
		return false, err
	}
	open := slices.DeleteFunc(byIntent[j.id], func(a *attempt) bool { return a.v.State != Open })
	if err := n.ask(ctx, open); err != nil {
		return false, err
	}
	return landed(open) != nil, nil
}

// CancelTransaction sees to it that an intent pays nobody: one of which nothing was signed
// is cancelled at once; of one that was signed a transaction to ourselves takes the nonce
// or the coins, at a higher fee. Which of the two lands is the network's decision: the
// intent fails with ReasonCancelled or settles. Those that were paid in the same transaction
// start again. A disputed intent waits because a transaction that is none of its own may have paid it:
// the call says that this transaction has not paid it, and the intent fails. Of one that has failed or was
// cancelled, and whose owner does not hear it because the App is not sure, the call says the same.
// Without by nothing is written. The error wraps ErrHelp where the owner was told that it is executed,
// as it is then sent until it lands, where another one's transaction pays it, where the network replaces
// no transaction, and where the node has a transaction that has paid an ended one, or may.
func (n *Sender) CancelTransaction(ctx context.Context, id string, by *Recorded) (before, after Help, err error) {
	return n.intervene(ctx, id, by, func(j *claimedIntent) error {
		switch {
		case j.v.ended():
			return n.releaseEnded(ctx, j)
		case helps(id):
			return noHelp(id, "it helps another, and ends with that one")
		case j.v.ExecutedReported:
			return noHelp(id, "its owner was told that it is executed: it is sent until it lands")
		case j.v.State == Executed:
			return noHelp(id, "it is in a block")
		case j.v.Cancelling && !j.v.aside():
			off, err := n.cancelled(ctx, id)
			if err == nil && off {
				err = noHelp(id, "it is being cancelled")
			}
			return err // else nodes or a signer refused it: from now on it does not start again with others
		case j.v.idle():
			return n.cancelIdle(ctx, j)
		case n.lapses() && j.v.State == Signed:
			return noHelp(id, "its network replaces no transaction")
		}
		j.v.Cancelling, j.v.BumpAt = true, n.Now()
		if j.v.aside() {
			j.v.Reason = ""
		}
		return nil
	})
}

// cancelIdle ends an order of which nothing can land. One that was signed before has failed: its owner
// knows it as signed, and takes no Cancelled.
func (n *Sender) cancelIdle(ctx context.Context, j *claimedIntent) error {
	e, err := n.sealed(ctx, j.id, &j.v)
	if err == nil && e.disputed != "" {
		err = n.seal(ctx, j.id, &j.v, &mandate.Ending{Off: true})
	}
	if err != nil {
		return err
	}
	j.v.State, j.v.Reason = Cancelled, ""
	if j.v.Attempts > 0 && j.v.Purpose == chain.ForWithdrawal {
		j.v.State, j.v.Reason = Failed, ReasonCancelled
	}
	return nil
}

// intervene changes an intent that has not ended and makes it due.
func (n *Sender) intervene(ctx context.Context, id string, by *Recorded, edit func(j *claimedIntent) error) (before, after Help, err error) {
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q", ErrNoIntent, id)
		}
		if err != nil {
			return storage.Change{}, err
		}
		batch, _, isMember, err := Batches.One(ctx, n.Store, n.part, id)
		switch {
		case err != nil:
			return storage.Change{}, err
		case isMember && !v.ended():
			return storage.Change{}, noHelp(id, "the transaction of intent "+batch.Leader+" pays it: help that one")
		}
		j := &claimedIntent{id: id, v: v}
		before = j.shown()
		if err := edit(j); err != nil {
			return storage.Change{}, err
		}
		if after = j.shown(); by == nil {
			return storage.Change{}, nil
		}
		j.v.Updated = n.Now()
		due := n.Now()
		if v.ended() {
			due = row.Due
		}
		c := storage.Change{ID: changeID("help/"+by.ID, id, row.Version), Partition: n.part}
		if more := j.v.MaxCost - v.MaxCost; more > 0 && j.merge() && !j.early() {
			c.Level = boundsOf(ParseID(id).For, more, math.MaxInt64) // the operator's word goes before what the payout allows
		}
		if c.Put, c.Tell, err = by.Rows(before, after); err != nil {
			return storage.Change{}, err
		}
		if j.v.ended() && !v.ended() {
			op := onCancel
			if j.v.State == Failed {
				op = onFail
			}
			if err := machine.Move(v.State, op, j.v.State); err != nil {
				return storage.Change{}, err
			}
			ending, err := n.ending(ctx, j)
			if err != nil {
				return storage.Change{}, err
			}
			due = time.Time{}
			c.Put = append(c.Put, ending)
		}
		c.Put = append(c.Put, Intents.Row(id, row.Version, due, j.v))
		return c, n.tell(&c, id, v.State, v.Reason, &j.v, nil)
	})
	return before, after, err
}

// Nonce is what the chain and the store know of an address of ours.
type Nonce struct {
	Address chain.Address
	Ours    int64  // the next one, by the store
	Chain   uint64 // the next one, by the chain
	// Operation is the id of the record of its adoption, "" = it was not adopted.
	Operation string
}

// Beyond lists the addresses of which the chain knows more transactions than the store, by
// address: after a restore from an older backup, or where somebody else has the key. Such
// an address sends nothing until its nonce is adopted. It asks the node once for each
// address that was ever sent from.
func (n *Sender) Beyond(ctx context.Context) ([]Nonce, error) {
	if n.nonces == nil {
		return nil, nil
	}
	known := map[chain.Address]int64{}
	for r, err := range storage.All(ctx, n.Store, storage.Query{Table: Nonces.Table, Partition: n.part}) {
		if err != nil {
			return nil, err
		}
		known[chain.Address(r.ID)] = Nonces.Value(r).Next
	}
	for r, err := range storage.All(ctx, n.Store, storage.Query{ // addresses without a nonce yet, from which something is to be sent
		Table: Intents.Table, Partition: n.part, Where: []storage.Cond{{Column: "state", Op: storage.In, Value: []State{Queued, Waiting}}},
	}) {
		if err != nil {
			return nil, err
		}
		from := Intents.Value(r).From
		if _, ok := known[from]; !ok && from != "" {
			known[from] = 0
		}
	}
	var out []Nonce
	for a, next := range known {
		out = append(out, Nonce{Address: a, Ours: next})
	}
	slices.SortFunc(out, func(a, b Nonce) int { return cmp.Compare(a.Address, b.Address) })
	beyond := out[:0]
	for _, o := range out {
		at, err := n.nonces.Nonce(ctx, o.Address)
		if err != nil {
			return nil, err
		}
		if at > uint64(max(o.Ours, 0)) {
			o.Chain = at
			beyond = append(beyond, o)
		}
	}
	return beyond, nil
}

// FillNonce fills a nonce of an address that others wait behind: the transaction of ours
// that had it is sent again, or where there was none an intent that pays nobody uses it up.
// like is the order that would pay for it: From, FromKey, Tenant and MaxCost. The error
// wraps ErrHelp where an open intent has the nonce, the chain is past it, or nothing of the
// address was sent after it. It is recorded before it is done.
func (n *Sender) FillNonce(ctx context.Context, like chain.Intent, nonce int64, by *Recorded) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: nonce %d of %s: %s", ErrHelp, nonce, like.From, why)
	}
	if n.nonces == nil {
		return bad("its network has no nonces")
	}
	at, err := n.nonces.Nonce(ctx, like.From)
	if err != nil {
		return err
	}
	row, err := n.loadNonce(ctx, like.From)
	if err != nil {
		return err
	}
	switch {
	case nonce < 0 || uint64(nonce) < at:
		return bad(fmt.Sprintf("the chain is at %d", at))
	case nonce >= row.Next:
		return bad(fmt.Sprintf("the next one is %d: nothing waits behind it", row.Next))
	}
	held, err := n.bound(ctx, like.From, storage.Cond{Column: "nonce", Op: storage.Eq, Value: nonce})
	if err != nil {
		return err
	}
	for _, r := range held {
		if v := Intents.Value(r); !v.ended() {
			return bad("intent " + r.ID + " has it")
		}
	}
	if by == nil {
		return nil
	}
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		if _, _, done, err := Operations.One(ctx, n.Store, n.part, by.ID); err != nil || done {
			return storage.Change{}, err
		}
		c := storage.Change{ID: changeID("help/"+by.ID, ""), Partition: n.part}
		c.Put, c.Tell, err = by.Rows(Nonce{Address: like.From, Ours: row.Next, Chain: at}, nonce)
		return c, err
	})
	if err != nil {
		return err
	}
	stuck := &claimedIntent{id: by.ID, v: record(like, n.Now())}
	if len(held) == 0 {
		return n.fillUnused(ctx, stuck, nonce)
	}
	for _, r := range held {
		v := Intents.Value(r)
		if err := n.rebroadcastSettled(ctx, r.ID, &v, nonce); err != nil {
			return err
		}
	}
	return nil
}
