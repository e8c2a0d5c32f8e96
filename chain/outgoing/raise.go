package outgoing

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Fees may rise after an order was handed over, and its coins may have become many small
// ones. Its bound then does not pay for it any more. The bound is raised in two commits:
// first the owner sets the difference aside (Config.Raise), then the order's row gets the
// new bound. A crash between them leaves too much set aside, never too little.

// Room of a raised bound above what is needed now, as a fraction: fees go on rising while
// it is sent.
const (
	roomNum = 5
	roomDen = 4
)

// raise gives an order a bound that it can be sent within, where cause says that it cannot
// be within its own, and its owner grants it. Then in has the new bound, too. The error is
// of a bound that is granted later, or of the store.
func (n *Sender) raise(ctx context.Context, j *claimedIntent, in *chain.Intent, cause error) (raised bool, err error) {
	var dear *chain.DearError
	if !errors.As(cause, &dear) || n.Raise == nil || n.MaxFee > 0 && dear.Need > n.MaxFee || ctx.Err() != nil {
		return false, nil //nolint:nilerr // a higher bound does not help against that cause
	}
	moves := j.v.Purpose == chain.ForGas || j.v.Purpose == chain.ForSweep
	if moves && !j.v.Cancelling && (j.v.State == Queued || j.v.State == Waiting) {
		return false, nil // nothing waits for its nonce: treasury calls a sweep back, and gas waits for lower fees
	}
	more, err := (dear.Need - dear.Most).MulDiv(roomNum, roomDen, ledger.Up)
	if err != nil {
		return false, err
	}
	least, err := j.v.MaxCost.Add(dear.Need - dear.Most)
	if err != nil {
		return false, err
	}
	most, err := j.v.MaxCost.Add(more)
	if err != nil {
		return false, err
	}
	if j.early() {
		if most, err = n.dearer(ctx, j, most); err != nil || most < least {
			return false, err
		}
	}
	asked := *in
	asked.MaxCost = j.v.MaxCost
	got, err := n.granted(ctx, j, asked, most)
	if err != nil && least < most { // without the room it may be borne
		got, err = n.granted(ctx, j, asked, least)
	}
	if err != nil {
		return false, err
	}
	if got < least {
		return false, nil
	}
	n.Log.Warn("bound_raised", slog.String("intent", j.id), slog.Int64("from", int64(j.v.MaxCost)), slog.Int64("to", int64(got)))
	levels, err := n.bounded(ctx, j, got-j.v.MaxCost)
	if err != nil {
		return false, err
	}
	before := j.v
	j.v.MaxCost = got
	err = n.commit(ctx, j, transition{op: onRaise, due: n.Now().Add(n.Lease), levels: levels})
	if err != nil {
		j.v = before
	}
	if full := (*storage.LevelError)(nil); errors.As(err, &full) {
		return false, nil //nolint:nilerr // all merges of its payout together would cost too much
	}
	if err != nil {
		return false, err
	}
	in.MaxCost += got - before.MaxCost
	return true, nil
}

// granted is the bound that an order has from now on, up to most. What a child may cost is
// set aside for its parent, beside what that costs, until the parent has landed.
func (n *Sender) granted(ctx context.Context, j *claimedIntent, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
	var of ledger.Amount // what the parent costs
	if j.child() {
		p, err := n.parentOf(ctx, j)
		if err != nil {
			return 0, err
		}
		if !p.landed {
			order, _, _, err := Intents.One(ctx, n.Store, n.part, p.v.Intent)
			if err != nil {
				return 0, err
			}
			in, of = order.intent(p.v.Intent), p.v.MaxCost
		}
	}
	most, err := most.Add(of)
	if err != nil {
		return 0, err
	}
	got, err := n.Raise(storage.Apart(ctx), in, most)
	if err != nil {
		return 0, &waitError{ReasonOperatorFunds, "a higher bound: " + err.Error()}
	}
	return got - of, nil
}

// priced is price, within a bound that is raised where it has to be.
func (n *Sender) priced(ctx context.Context, j *claimedIntent, in *chain.Intent, last *chain.Fee) (chain.Fee, error) {
	fee, err := n.price(ctx, j, *in, last)
	if raised, e := n.raise(ctx, j, in, err); raised {
		fee, err = n.price(ctx, j, *in, last)
	} else if e != nil {
		err = e
	}
	return fee, err
}

// waitOr puts the job aside because of err, but for an error of the store.
func (n *Sender) waitOr(ctx context.Context, j *claimedIntent, err error) error {
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrUnknown) {
		return err
	}
	return n.wait(ctx, j, err)
}

// blocks reports whether others of an address wait behind the nonce of a job.
func (n *Sender) blocks(ctx context.Context, j *claimedIntent) (bool, error) {
	if j.v.Nonce < 0 {
		return false, nil
	}
	for _, where := range [][]storage.Cond{
		{{Column: "state", Op: storage.In, Value: []State{Queued, Waiting}}},
		{{Column: "state", Op: storage.Eq, Value: Signed}, {Column: "nonce", Op: storage.Gt, Value: j.v.Nonce}},
	} {
		rows, err := n.Store.Find(ctx, storage.Query{
			Table: Intents.Table, Partition: n.part, Limit: 1, IDs: true,
			Where: append(where, storage.Cond{Column: "from_address", Op: storage.Eq, Value: j.v.From}),
		})
		if err != nil || len(rows) > 0 {
			return len(rows) > 0, err
		}
	}
	return false, nil
}
