package outgoing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// drawCoins takes free coins of the tenant, and more of them until the
// transaction can be built. A replacement has its coins already, and takes more
// only in the place of those that are gone.
func (n *Sender) drawCoins(ctx context.Context, j *claimedIntent, d *candidate, s *transition) error {
	if len(d.coins) > 0 {
		return n.build(ctx, d)
	}
	free, err := n.freeCoins(ctx, &d.intent)
	if err != nil {
		return err
	}
	every := free
	free = d.without(slices.Clone(free))
	if d.change.Address == "" {
		if d.change, err = n.ChangeAddress(ctx, d.intent.Tenant); err != nil {
			return fmt.Errorf("%w: no change address: %w", chain.ErrNode, err)
		}
	}
	if j.merge() && len(d.kept) == 0 {
		return n.drawMerge(ctx, j, d, free, s)
	}
	all := free
	free, take, err := n.choose(d, free)
	if err != nil {
		return n.lacks(ctx, d, all, every, err)
	}
	for ; ; take++ {
		d.coins = slices.Clone(d.kept)
		for i := range take {
			d.coins = append(d.coins, free[i].input())
		}
		if err = n.build(ctx, d); err == nil {
			break
		}
		if !errors.Is(err, chain.ErrShort) || take >= len(free) {
			return n.lacks(ctx, d, all, every, err)
		}
	}
	d.first = len(d.kept) == 0
	if !d.first {
		for i := range take {
			d.extra = append(d.extra, free[i].outpoint)
		}
	}
	return n.take(j, free[:take], s)
}

// take reserves coins.
func (n *Sender) take(j *claimedIntent, coins []coin, s *transition) error {
	for i := range coins {
		if err := coins[i].reserve(j.id, n.Now(), s); err != nil {
			return err
		}
	}
	return nil
}

// lacks tells why the coins of one transaction are too few for a candidate: coins are being
// merged, they have to be, or there are none. every are the free ones with those that are left out.
func (n *Sender) lacks(ctx context.Context, d *candidate, free, every []coin, cause error) error {
	if u := (*chain.UnfitError)(nil); errors.As(cause, &u) {
		return cause
	}
	if !errors.Is(cause, chain.ErrShort) || d.intent.Purpose != chain.ForWithdrawal || len(d.members) > 0 {
		return n.lacksFee(d, every, cause)
	}
	why, err := n.merging(ctx, d.intent.ID, d.intent.Tenant)
	switch {
	case err != nil:
		return err
	case why != "":
		return &waitError{why, "coins of its tenant are merged"}
	case !n.able(ctx, AbilityMerges):
		return n.lacksFee(d, every, cause)
	}
	err = n.crowded(ctx, d, free, cause)
	if more := (*crowd)(nil); errors.As(err, &more) {
		return n.lacksFee(d, every, err)
	}
	if on, e := n.earlyUnderWay(ctx, d.intent.Tenant); e != nil {
		return e
	} else if on {
		return &waitError{ReasonConsolidating, "what an early merge of its tenant returns is in no block yet"}
	}
	return n.lacksFee(d, every, err)
}

// lacksFee tells a missing fee from a missing amount. Where the largest coins that one
// transaction may spend cover the amount, only the fee is missing: the order waits with
// ReasonOperatorFunds, which asks the operator for coins.
func (n *Sender) lacksFee(d *candidate, free []coin, err error) error {
	more, left := (*crowd)(nil), (*chain.UnfitError)(nil)
	if !errors.Is(err, chain.ErrShort) || d.intent.All || errors.As(err, &more) || errors.As(err, &left) {
		return err
	}
	o := d.order()
	amount, e := o.Amount()
	var sum ledger.Amount
	for _, c := range d.kept {
		if e == nil {
			sum, e = sum.Add(c.Amount)
		}
	}
	for i := range min(len(free), max(n.MaxInputs-len(d.kept), 0)) {
		if e == nil {
			sum, e = sum.Add(free[i].Amount)
		}
	}
	if e != nil || sum < amount {
		return err
	}
	return &waitError{ReasonOperatorFunds, err.Error()}
}

// freeCoins reads what may be spent, largest first, then by outpoint: the same
// choice for the same coins everywhere.
func (n *Sender) freeCoins(ctx context.Context, in *chain.Intent) ([]coin, error) {
	rows, err := n.Store.Find(ctx, n.freeQuery(in))
	if err != nil {
		return nil, err
	}
	return n.fit(ctx, in.Tenant, rows)
}

// fit are the coins of rows that are not left out at present. A coin at an address that is none of the
// tenant's is left out, too: somebody has written the tenant into its row.
func (n *Sender) fit(ctx context.Context, tenant string, rows []storage.Row) ([]coin, error) {
	coins, _ := coinsIn(rows, nil)
	n.mu.Lock()
	coins = slices.DeleteFunc(coins, func(c coin) bool { return n.Now().Before(n.unfit[c.outpoint]) })
	var ask []chain.Coin
	for i := range coins {
		if c := &coins[i]; n.Foreign != nil && !n.owned[owned{tenant, c.outpoint}] {
			ask = append(ask, chain.Coin{Outpoint: c.outpoint, Address: c.Address, Key: c.Key, Amount: c.Amount})
		}
	}
	n.mu.Unlock()
	if len(ask) == 0 {
		return coins, nil
	}
	foreign, err := n.Foreign(ctx, tenant, ask...)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.owned) > mostOwned {
		clear(n.owned)
	}
	for i := range ask {
		if !slices.Contains(foreign, ask[i].Outpoint) {
			n.owned[owned{tenant, ask[i].Outpoint}] = true
		}
	}
	return slices.DeleteFunc(coins, func(c coin) bool {
		bad := slices.Contains(foreign, c.outpoint)
		if bad {
			n.unfit[c.outpoint] = n.Now().Add(unfitFor)
			n.Log.Error("coin_altered", slog.String("coin", c.outpoint), slog.String("tenant", tenant), slog.String("address", string(c.Address)))
		}
		return bad
	}), nil
}

// owned is a coin that was found to be a tenant's.
type owned struct{ tenant, outpoint string }

// mostOwned is how many of them a process remembers.
const mostOwned = 10_000

// without are those of the coins that are not left out of a candidate.
func (d *candidate) without(coins []coin) []coin {
	return slices.DeleteFunc(coins, func(c coin) bool { return d.left[c.outpoint] })
}

// unfitFor is how long coins that no transaction can spend are left out, before a client is asked
// again.
const unfitFor = time.Hour

// leaveOut leaves the coins that an error names out of a candidate, and out of all where no
// transaction can spend them. It reports whether some were not yet.
func (n *Sender) leaveOut(ctx context.Context, d *candidate, err error) (some bool) {
	var u *chain.UnfitError
	if ctx.Err() != nil || !errors.As(err, &u) {
		return false
	}
	if d.left == nil {
		d.left = map[string]bool{}
	}
	now := n.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.unfit, func(_ string, until time.Time) bool { return !now.Before(until) })
	for _, c := range u.Outpoints {
		some, d.left[c] = some || !d.left[c], true
		if _, already := n.unfit[c]; u.Ever && !already {
			n.unfit[c] = now.Add(unfitFor)
			n.Log.Warn("coin_left_out", slog.String("coin", c), slog.String("cause", u.Err.Error()))
		}
	}
	return some
}

func (n *Sender) freeQuery(in *chain.Intent) storage.Query {
	q := storage.Query{
		Table: Coins.Table, Partition: n.part, Limit: max(n.MaxInputs, maxCandidates),
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: in.Tenant},
			{Column: "state", Op: storage.Eq, Value: CoinFree},
		},
		Order: []storage.Order{{Column: "amount", Desc: true}},
	}
	if in.From != "" {
		q.Where = append(q.Where, storage.Cond{Column: "address", Op: storage.Eq, Value: in.From})
	}
	return q
}

// enough says with how many of the free coins to try first, at least one where
// none is kept.
func enough(d *candidate, free []coin) (int, error) {
	o := d.order()
	need, err := o.Amount()
	if err == nil {
		need, err = need.Add(d.fee.Cost)
	}
	if err != nil {
		return 0, err
	}
	var sum ledger.Amount
	for _, c := range d.kept {
		if sum, err = sum.Add(c.Amount); err != nil {
			return 0, err
		}
	}
	if len(d.kept) > 0 && (sum >= need || d.intent.All) {
		return 0, nil
	}
	for i := range free {
		if sum, err = sum.Add(free[i].Amount); err != nil {
			return 0, err
		}
		if sum >= need && !d.intent.All {
			return i + 1, nil
		}
	}
	if len(free) == 0 || sum < need {
		return 0, fmt.Errorf("%w: coins for %d of %d", chain.ErrShort, sum, need)
	}
	return len(free), nil
}

// giveBack adds to a step what frees the reservations that a plan made for
// itself. Nothing of it was stored, so nothing of it was ever sent. What a
// replacement reserved stays the intent's where a signer may have seen it.
func (n *Sender) giveBack(ctx context.Context, p *plan, fresh bool, s *transition) error {
	if !p.First && !fresh {
		return nil
	}
	if !p.First {
		return n.giveCoins(ctx, p.Extra, p, s)
	}
	var bound []string
	if p.Nonce >= 0 {
		from := p.Intent.From
		own, err := n.loadNonce(ctx, from)
		if err != nil {
			return err
		}
		own.giveBack(p.Intent.ID, s)
		bound = append(bound, Slot(from, p.Nonce))
	}
	for _, c := range p.Coins {
		bound = append(bound, c.Outpoint)
	}
	return n.giveCoins(ctx, bound, p, s)
}

func (n *Sender) giveCoins(ctx context.Context, bound []string, p *plan, s *transition) error {
	if err := n.unbind(ctx, bound, p.Intent.ID, s); err != nil {
		return err
	}
	return n.moveCoins(ctx, bound, p.Intent.ID, s, func(string) CoinState { return CoinFree })
}
