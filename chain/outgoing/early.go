package outgoing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Coins are also merged before a payout needs them, while fees are low: an early merge. It
// is a merge like those for payouts, in the name of a day of its tenant. It never waits: what
// cannot be signed at once ends, and is decided on again at a later time. It takes the smallest
// coins, and leaves those that payouts take.

// Merging says when coins of a tenant are merged before a payout needs them. A field that is
// zero has its default.
type Merging struct {
	Off bool // no coins are merged before a payout needs them
	// Below is how many percent of their average fees are at most, 1 to 100. Defaults to 80.
	Below int
	// Least is from how many free coins on some are merged, 2 to 500. Defaults to 100.
	Least int
	// Most is how many coins one merge spends at most. Defaults to Config.MaxInputs, which
	// bounds it.
	Most int
	// Share: a merge costs at most one part in Share of each coin that it spends, at least
	// 2. Defaults to 20.
	Share uint64
	// Portion: a merge spends at most one part in Portion of the value of the tenant's
	// free coins, at least 2. What it spends cannot be paid out before it is in a block,
	// and what it returns is a single coin. Defaults to 8.
	Portion uint64
}

// MergingOf says whose coins a Merging is for. An empty field stands for each tenant, or each
// currency. Of several, that which names both counts, else the tenant, else the currency.
type MergingOf struct{ Tenant, Currency string }

// check names the field that cannot be.
func (m Merging) check() error {
	switch {
	case m.Below < 0 || m.Below > 100:
		return errors.New("outgoing: Config.Merging: Below must be 1 to 100 percent")
	case m.Least < 0 || m.Least == 1 || m.Least > maxCandidates:
		return errors.New("outgoing: Config.Merging: Least must be 2 to 500 coins")
	case m.Most < 0 || m.Most == 1:
		return errors.New("outgoing: Config.Merging: Most must be at least 2 coins")
	case m.Share == 1:
		return errors.New("outgoing: Config.Merging: Share must be at least 2")
	case m.Portion == 1:
		return errors.New("outgoing: Config.Merging: Portion must be at least 2")
	}
	return nil
}

// mergingOf is the Merging of a tenant, complete.
func (n *Sender) mergingOf(tenant string) Merging {
	var m Merging
	for _, of := range []MergingOf{{tenant, n.gas.Code}, {Tenant: tenant}, {Currency: n.gas.Code}, {}} {
		if found, ok := n.Merging[of]; ok {
			m = found
			break
		}
	}
	m.Below, m.Least = orDefault(m.Below, 80), orDefault(m.Least, 100)
	m.Most = min(orDefault(m.Most, n.MaxInputs), n.MaxInputs)
	if m.Share == 0 {
		m.Share = 20
	}
	if m.Portion == 0 {
		m.Portion = 8
	}
	return m
}

const (
	earlyLeast = 8 // coins that an early merge is worth its while for
)

// Early is an early merge as it would be now. Amounts are units of the gas currency.
type Early struct {
	Coins int           // that it spends
	Value ledger.Amount // of those
	Cost  ledger.Amount // about
	Why   string        // none is made now; "" = one is
	Order string        // the id of the merge, where one was made
	Later bool          // none is made as many orders of the network are to be begun first
	free  []coin
}

func (e Early) not(format string, args ...any) Early {
	e.Why, e.free = fmt.Sprintf(format, args...), nil
	return e
}

// MergeEarly makes an early merge of a tenant's coins where Config.Merging wants one: average
// is what Typical was in the median of some days, in units of the gas currency. Where dry
// is set nothing is written. Safe for concurrent use, also by several processes: one merge
// is under way at a time.
func (n *Sender) MergeEarly(ctx context.Context, tenant string, average ledger.Amount, dry bool) (out Early, err error) {
	if n.info.Family != chain.UTXOFamily {
		return Early{}.not("its network has no coins to merge"), nil
	}
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		var guards []storage.Guard
		var in chain.Intent
		if out, in, guards, err = n.decideEarly(ctx, tenant, average); err != nil || out.Why != "" || dry {
			return storage.Change{}, err
		}
		change, err := n.ChangeAddress(ctx, tenant)
		if err != nil {
			return storage.Change{}, err
		}
		now := n.Now()
		count, _, err := n.had(ctx, earlyFor(tenant, now))
		if err != nil {
			return storage.Change{}, err
		}
		in.ID, in.To = ID{OrderMerge, earlyFor(tenant, now), count + 1}.String(), change.Address
		out.Order = in.ID
		// A coin is written as it is: of two processes one meets a conflict, also at midnight.
		c := storage.Change{ID: changeID("early", in.ID), Partition: n.part, Require: guards, Put: []storage.Row{
			Intents.Row(in.ID, 0, now, record(in, now)), out.free[0].row(),
		}}
		return c, n.tellMade(&c)
	})
	if err == nil && out.Order != "" {
		n.Log.Info("coins_are_merged", slog.String("intent", out.Order), slog.Int("coins", out.Coins), slog.Int64("cost", int64(out.Cost)))
	}
	return out, err
}

// Typical is what the fee of a usual transaction to ourselves is now, in units of the gas
// currency: the figure that MergeEarly compares.
func (n *Sender) Typical(ctx context.Context) (ledger.Amount, error) {
	f, err := n.Client.EstimateFee(ctx, n.mergeFor(&chain.Intent{Network: n.info.Code}, ""))
	return f.Cost, err
}

func (n *Sender) decideEarly(ctx context.Context, tenant string, average ledger.Amount) (out Early, in chain.Intent, guards []storage.Guard, err error) {
	m := n.mergingOf(tenant)
	in = n.mergeFor(&chain.Intent{Tenant: tenant, Network: n.info.Code}, "")
	in.ID = ID{OrderMerge, earlyFor(tenant, n.Now()), 0}.String()
	switch {
	case m.Off:
		return out.not("Config.Merging is off"), in, nil, nil
	case n.MaxInputs < 2 || !n.able(ctx, AbilityMerges) || !n.able(ctx, AbilityEarly):
		return out.not("a process of an older version may run: see App.Upgraded"), in, nil, nil
	case average <= 0:
		return out.not("the average of fees is not known yet"), in, nil, nil
	}
	fee, err := n.Client.EstimateFee(ctx, in)
	if err != nil {
		return out.not("fees are not known: %v", err), in, nil, nil
	}
	limit, err := average.MulDiv(uint64(m.Below), 100, ledger.Down)
	if err != nil {
		return out, in, nil, err
	}
	if fee.Cost > limit {
		return out.not("fees are %d, and at most %d is cheap", fee.Cost, limit), in, nil, nil
	}
	if guards, err = n.allowed(ctx, in); err != nil {
		return out.not("%v", err), in, nil, nil
	}
	if why, err := n.earlyTaken(ctx, tenant, ""); err != nil || why != "" {
		return out.not("%s", why), in, nil, err
	}
	if out, err = n.earlyCoins(ctx, m, &candidate{intent: in, fee: fee}); err != nil || out.Why != "" {
		return out, in, nil, err
	}
	most, err := max(out.Cost, fee.Max).MulDiv(roomNum, roomDen, ledger.Up)
	if err != nil {
		return out, in, nil, err
	}
	bound, err := out.Value.MulDiv(1, m.Share, ledger.Down)
	if in.MaxCost = min(most, bound); err == nil && in.MaxCost < fee.Max {
		return out.not("it costs %d of at most %d", fee.Max, bound), in, nil, nil
	}
	if err == nil && out.Why == "" {
		out.Later, err = n.busy(ctx)
	}
	if out.Later {
		return out.not("%d orders or more of its network are to be begun first", n.Batch), in, nil, err
	}
	return out, in, guards, err
}

// busy reports whether as many orders are to be begun as one Step claims: a merge that many
// tenants want when fees fall would have payouts wait behind it.
func (n *Sender) busy(ctx context.Context) (bool, error) {
	rows, err := n.Store.Find(ctx, storage.Query{Table: Intents.Table, Partition: n.part, Limit: n.Batch, IDs: true, Where: []storage.Cond{
		{Column: "state", Op: storage.Eq, Value: Queued},
	}})
	return len(rows) == n.Batch, err
}

// earlyTaken says why no early merge but one may be under way: a merge is, or a payout of the
// tenant waits, which takes its coins first.
func (n *Sender) earlyTaken(ctx context.Context, tenant, but string) (why string, err error) {
	rows, err := n.Store.Find(ctx, storage.Query{Table: Intents.Table, Partition: n.part, Limit: 1000, Where: []storage.Cond{
		{Column: "tenant", Op: storage.Eq, Value: tenant},
		{Column: "state", Op: storage.In, Value: []State{Queued, Waiting, Signed, Executed}},
	}})
	if len(rows) == 1000 {
		return "it has 1000 orders under way", err
	}
	for _, r := range rows {
		v := Intents.Value(r)
		switch {
		case r.ID != but && ParseID(r.ID).Kind == OrderMerge && v.State != Executed:
			return "the merge " + r.ID + " is under way", err
		case v.Purpose == chain.ForWithdrawal && v.idle():
			return "the payout " + r.ID + " waits", err
		}
	}
	return "", err
}

// earlyCoins chooses the smallest free coins that are worth merging at this fee.
func (n *Sender) earlyCoins(ctx context.Context, m Merging, d *candidate) (out Early, err error) {
	in := d.intent
	free, err := n.freeCoins(ctx, &in)
	if err != nil {
		return out, err
	}
	free = d.without(free)
	if len(free) < max(m.Least, 1) {
		return out.not("%d of %d coins are there", len(free), m.Least), nil
	}
	o := chain.Order{Intent: in, Fee: d.fee, Attempt: 1}
	o.Intent.To, o.Change = free[0].Address, free[0].Address // of the form of all of ours
	o.Intent.MaxCost = 0                                     // it may be of more coins than are merged
	for i := range min(m.Most, len(free)) {
		o.Coins = append(o.Coins, free[i].input())
	}
	u, err := n.Client.Build(ctx, o)
	if n.leaveOut(ctx, d, err) {
		return n.earlyCoins(ctx, m, d) // of the others
	}
	if err != nil {
		return out.not("%v", err), nil //nolint:nilerr // the same again later
	}
	perCoin, err := u.MaxCost.MulDiv(1, uint64(len(o.Coins)), ledger.Up)
	if err != nil {
		return out, err
	}
	least, err := perCoin.MulDiv(m.Share, 1, ledger.Up)
	if err != nil {
		return out, err
	}
	q := n.freeQuery(&in)
	q.Where = append(q.Where, storage.Cond{Column: "amount", Op: storage.Ge, Value: least})
	q.Order, q.Limit = []storage.Order{{Column: "amount"}}, m.Most
	rows, err := n.Store.Find(ctx, q)
	if err != nil {
		return out, err
	}
	fit, err := n.fit(ctx, in.Tenant, rows)
	if err != nil {
		return out, err
	}
	small := d.without(fit)
	demand := ledger.Amount(0)
	if n.Demand != nil {
		if demand, err = n.Demand(storage.Apart(ctx), in.Tenant); err != nil {
			return out.not("what was paid out is not known: %v", err), nil
		}
	}
	kept, err := keeps(free, m.Portion, demand, n.MaxInputs, small)
	if err != nil {
		return out, err
	}
	out.free, out.Coins = small[:kept], kept
	if kept < min(earlyLeast, m.Most) {
		return out.not("%d coins may be merged: those above %d each, but what payouts take", kept, least), nil
	}
	for i := range out.free {
		if out.Value, err = out.Value.Add(out.free[i].Amount); err != nil {
			return out, err
		}
	}
	out.Cost, err = perCoin.MulDiv(uint64(kept)+1, 1, ledger.Up)
	return out, err
}

// keeps says how many of the small coins, the smallest first, may be merged: at most one part
// in portion of the value of the free ones, and so that the largest coins that are left, of
// one transaction, pay what a day's payouts take and an eighth more.
func keeps(free []coin, portion uint64, demand ledger.Amount, most int, small []coin) (int, error) {
	var total ledger.Amount
	var err error
	for i := range free {
		if total, err = total.Add(free[i].Amount); err != nil {
			return 0, err
		}
	}
	room, err := total.MulDiv(1, portion, ledger.Down)
	if err != nil {
		return 0, err
	}
	need, err := demand.MulDiv(9, 8, ledger.Up)
	if err != nil {
		return 0, err
	}
	taken := map[string]bool{}
	count := 0
	for ; count < len(small) && small[count].Amount <= room; count++ {
		room -= small[count].Amount
		taken[small[count].outpoint] = true
	}
	for ; count > 0; count-- {
		var left ledger.Amount
		coins := 0
		for i := 0; i < len(free) && coins < most; i++ {
			if !taken[free[i].outpoint] {
				left, coins = left+free[i].Amount, coins+1
			}
		}
		if left >= need {
			break
		}
		delete(taken, small[count-1].outpoint)
	}
	return count, nil
}

// drawEarly takes the coins of an early merge, as they are now, and bounds it by what these are worth:
// they may be fewer than when it was decided on.
func (n *Sender) drawEarly(ctx context.Context, j *claimedIntent, d *candidate, s *transition) error {
	m := n.mergingOf(j.v.Tenant)
	m.Least = 0 // whether to merge was decided, maybe by a process that is configured in another way
	e, err := n.earlyCoins(ctx, m, d)
	if err != nil {
		return err
	}
	if e.Why != "" {
		return fmt.Errorf("%w: %s", errUnneeded, e.Why)
	}
	bound, err := e.Value.MulDiv(1, m.Share, ledger.Down)
	if err != nil {
		return err
	}
	d.intent.MaxCost = min(d.intent.MaxCost, bound)
	j.v.MaxCost = d.intent.MaxCost
	return n.mergeCoins(ctx, j, d, e.free, s)
}

// mergesMost is the part of what an early merge spends that it may cost at the most, whatever waits
// for it.
const mergesMost = 2

// spent is what the coins of a candidate come to.
func (d *candidate) spent() (value ledger.Amount, err error) {
	for _, c := range d.coins {
		if value, err = value.Add(c.Amount); err != nil {
			return 0, err
		}
	}
	return value, nil
}

// dearer bounds what an early merge may cost that is sent again at a higher fee: by its share of
// what it moves, or by half of that once a payout waits for what it returns. One that was not signed
// yet is decided on anew.
func (n *Sender) dearer(ctx context.Context, j *claimedIntent, most ledger.Amount) (ledger.Amount, error) {
	if j.v.idle() {
		return 0, nil
	}
	held, err := n.heldCoins(ctx, j.id)
	if err != nil || len(held) == 0 {
		return 0, err
	}
	coins, err := n.loadCoins(ctx, held...)
	if err != nil {
		return 0, err
	}
	var value ledger.Amount
	for i := range coins {
		if coins[i].State != CoinReserved {
			continue // a reorg took it away: it is not moved
		}
		if value, err = value.Add(coins[i].Amount); err != nil {
			return 0, err
		}
	}
	share := n.mergingOf(j.v.Tenant).Share
	needed, err := PayoutNeedsMerge(ctx, n.Store, n.info.Code, j.v.Tenant)
	if err != nil {
		return 0, err
	}
	if needed {
		share = mergesMost
	}
	bound, err := value.MulDiv(1, share, ledger.Down)
	return min(most, bound), err
}

// PayoutNeedsMerge reports whether a payout of a tenant waits for what merges of its coins on a
// network return. Safe for concurrent use.
func PayoutNeedsMerge(ctx context.Context, s storage.Store, network chain.Network, tenant string) (bool, error) {
	rows, err := s.Find(ctx, storage.Query{Table: Intents.Table, Partition: storage.Network(string(network)), Limit: 1, IDs: true, Where: []storage.Cond{
		{Column: "tenant", Op: storage.Eq, Value: tenant},
		{Column: "state", Op: storage.Eq, Value: Waiting},
		{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal},
		{Column: "reason", Op: storage.Eq, Value: ReasonConsolidating},
	}})
	return len(rows) > 0, err
}

// earlyUnderWay reports whether what a tenant's early merge returns is on its way.
func (n *Sender) earlyUnderWay(ctx context.Context, tenant string) (bool, error) {
	rows, err := n.merges(ctx, tenant)
	if err != nil {
		return false, err
	}
	spendable, err := n.coinsOf(ctx, rows)
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		if v := Intents.Value(r); ParseID(r.ID).Early() && !v.idle() && !spendable[mergedCoin(v.Tx)] {
			return true, nil
		}
	}
	return false, nil
}
