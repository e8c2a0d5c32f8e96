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
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Somebody who can write to the database has nobody paid whom nobody ordered to pay: the
// order has a mandate. He must not have somebody paid twice either, by an order that is set
// back to its start, or by a transaction that lands beside another one of the same order.

// Refusals says of those orders what of them is not acted on, because their rows say that somebody
// edited them. One that is to start does not start: somebody set it back, or it is disputed, so that a
// transaction which is none of its own may have paid it. An outcome that is due is not told to the
// order's owner: nothing else says so, or a node contradicts it. Orders about which there is nothing to
// say, and those about which a node says nothing now, are not in the answer.
func (n *Sender) Refusals(ctx context.Context, ids ...string) (map[string]string, error) {
	rows, err := n.Store.Rows(ctx, Intents.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	orders := map[string]*IntentRow{}
	var start []string
	for _, r := range rows {
		if v := Intents.Value(r); v.State == Queued || v.State == Waiting {
			orders[r.ID], start = &v, append(start, r.ID)
		}
	}
	byIntent, err := n.attempts(ctx, start...)
	if err != nil {
		return nil, err
	}
	why, err := n.repeated(ctx, byIntent, start...)
	if err != nil {
		return nil, err
	}
	for _, id := range start {
		e, err := n.sealed(ctx, id, orders[id])
		if err != nil {
			return nil, err
		}
		if e.disputed != "" && why[id] == "" {
			why[id] = disputedBy(e.disputed)
		}
	}
	outcomes, err := n.Store.Rows(ctx, Outcomes.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	outcomes = slices.DeleteFunc(outcomes, func(r storage.Row) bool { return r.Due.IsZero() })
	untold, err := n.untrueEach(ctx, outcomes)
	if err != nil {
		return nil, err
	}
	maps.Copy(untold, why)
	maps.DeleteFunc(untold, func(_, why string) bool { return why == "" || why == unproven || why == putAnew })
	return untold, nil
}

// repeated says which of those orders, all to start, somebody set back. One that starts again has only
// attempts that are dead or have landed in vain, and its owner was told so.
func (n *Sender) repeated(ctx context.Context, byIntent map[string][]*attempt, ids ...string) (map[string]string, error) {
	why := map[string]string{}
	if len(ids) == 0 {
		return why, nil
	}
	rows, err := n.Store.Rows(ctx, Outcomes.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for _, r := range rows {
		told[r.ID] = true
		if s := Outcomes.Value(r).State; s != Queued && s != Waiting {
			why[r.ID] = "it is to start, and its owner was told that it is " + string(s)
		}
	}
	for id, atts := range byIntent {
		for _, a := range atts {
			if a.v.State == Open || a.v.State == AttemptFinal && !told[id] {
				why[id] = "it is to start, and its transaction " + a.tx + " is " + string(a.v.State)
			}
		}
	}
	return why, nil
}

// Uncalled reports whether an open attempt of an order says that it gives the order's nonce or
// inputs back, though the order was never taken back: what landed of it would pay, and its owner
// would have it again. So Config.Back is asked as well as the rows.
func (r *IntentRow) Uncalled(ctx context.Context, id, tx string, a *AttemptRow, back func(context.Context, string, []string, mandate.Attempt) (bool, error)) (bool, error) {
	if a.State != Open || a.Purpose != chain.ForCancel || r.Purpose == chain.ForCancel || helps(id) {
		return false, nil
	}
	if !r.Cancelling || back == nil || r.Purpose != chain.ForWithdrawal {
		return !r.Cancelling, nil
	}
	ok, err := back(ctx, id, r.Endings, a.Named(tx))
	return !ok, err
}

// setBack notes which of the jobs, all to start, somebody has set back.
func (n *Sender) setBack(ctx context.Context, all []*claimedIntent) ([]*claimedIntent, error) {
	jobs, byIntent, err := n.known(ctx, all)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id
	}
	why, err := n.repeated(ctx, byIntent, ids...)
	for _, j := range jobs {
		if j.edited = why[j.id]; j.edited != "" {
			continue
		}
		e, err := n.sealed(ctx, j.id, &j.v)
		if err != nil {
			return nil, err
		}
		if j.disputed = e.disputed != ""; j.disputed {
			j.edited = disputedBy(e.disputed)
		}
	}
	return jobs, err
}

// keepBack puts an order aside that somebody has set back, or that is disputed. The owner of one that was
// set back is told nothing: what he was told before is what shows it.
func (n *Sender) keepBack(ctx context.Context, j *claimedIntent) error {
	j.v.State, j.v.Reason, j.v.Tries = Waiting, ReasonAltered, j.v.Tries+1
	s := transition{op: onKeepBack, due: n.Now().Add(n.pause(j.v.Tries))}
	if j.disputed {
		s.due = n.Now().Add(disputedAgain)
		if j.waited != ReasonAltered {
			s.outcome = n.outcome(j)
		}
	}
	err := n.commit(ctx, j, s)
	if err == nil {
		n.altered(j, j.edited)
	}
	return err
}

// disputedAgain is how often the log says that a disputed order waits.
const disputedAgain = 6 * time.Hour

// truthful leaves out outcomes that somebody edited. One that says that nothing of an order
// lands any more has its owner release what is held for it, so the order's own row and its
// attempts must say so, too, and so must the node. What is left out is looked at again once a
// lease. One that says that it landed needs the order's own row to say so. Until then the order's owner
// is to hear what waits: the outcomes of refused say it.
func (n *Sender) truthful(ctx context.Context, rows []storage.Row) (out []storage.Row, refused []Outcome, err error) {
	why, err := n.untrueEach(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		switch why[r.ID] {
		case "":
			out = append(out, r)
			continue
		case putAnew:
			continue
		case unproven:
		default:
			n.Log.Error("order_altered", slog.String("tenant", Outcomes.Value(r).Tenant), slog.String("intent", r.ID), slog.String("reason", why[r.ID]))
		}
		if o, ok := n.refusedOutcome(r, why[r.ID]); ok {
			refused = append(refused, o)
		}
	}
	return out, refused, nil
}

// refusedOutcome is what the owner of a payout hears in the place of an outcome that is not told: it waits for
// the node, or for a person.
func (n *Sender) refusedOutcome(r storage.Row, why string) (o Outcome, ok bool) {
	v := Outcomes.Value(r)
	o = Outcome{Intent: r.ID, Purpose: v.Purpose, Tenant: v.Tenant, Network: v.Network, Currency: v.Currency, State: Waiting, Reason: ReasonAltered, At: v.At}
	if why == unproven {
		o.Reason = ReasonNode
	}
	if now := n.Now(); o.At.After(now) {
		o.At = now
	}
	return o, v.Purpose == chain.ForWithdrawal
}

// untrueEach is untrue of each row that can be read, and says why another cannot.
func (n *Sender) untrueEach(ctx context.Context, rows []storage.Row) (map[string]string, error) {
	why, err := n.untrue(ctx, rows)
	if broken := (*storage.RowError)(nil); errors.As(err, &broken) {
		why, err = map[string]string{}, nil
		for _, r := range rows {
			one, failed := n.untrue(ctx, []storage.Row{r})
			if errors.As(failed, &broken) {
				one, failed = map[string]string{r.ID: failed.Error()}, nil
			}
			if failed != nil {
				return nil, failed
			}
			maps.Copy(why, one)
		}
	}
	return why, errors.Join(err, n.movedOn(ctx, rows, why))
}

// movedOn finds outcomes of which why says something that were put anew after they were read: their
// order has moved on.
func (n *Sender) movedOn(ctx context.Context, rows []storage.Row, why map[string]string) error {
	read := map[string]int64{}
	for _, r := range rows {
		if why[r.ID] != "" {
			read[r.ID] = r.Version
		}
	}
	if len(read) == 0 {
		return nil
	}
	now, err := n.Store.Rows(ctx, Outcomes.Table, storage.Keys(n.part, slices.Sorted(maps.Keys(read))...)...)
	var unread storage.RowErrors // nothing has put those anew
	for _, r := range now {
		if r.Version != read[r.ID] {
			why[r.ID] = putAnew
		}
	}
	return unread.Take(err)
}

// putAnew is what untrueEach says of an outcome that another process has put in the meantime.
const putAnew = "put anew"

// unproven is what untrue says of an outcome while the node cannot tell whether it is true.
const unproven = "unproven"

// untrue says, by id, why an outcome is not to be told: this package has not stored it so, or the
// node contradicts it.
func (n *Sender) untrue(ctx context.Context, rows []storage.Row) (map[string]string, error) {
	why := map[string]string{}
	var ids []string
	for _, r := range rows {
		o := Outcomes.Value(r)
		switch {
		case o.Intent != r.ID:
			why[r.ID] = "its outcome names another order"
		case o.ends(), o.costs():
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return why, nil
	}
	orders, err := n.Store.Rows(ctx, Intents.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	said := make(map[string]*claimedIntent, len(ids)) // of each order that says so itself
	for _, r := range orders {
		said[r.ID] = &claimedIntent{id: r.ID, v: Intents.Value(r)}
	}
	if err := n.miscosted(ctx, rows, said, why); err != nil {
		return nil, err
	}
	for _, r := range rows {
		o, own := Outcomes.Value(r), said[r.ID]
		if o.Intent != r.ID || !o.ends() {
			delete(said, r.ID)
			continue
		}
		landed, agree := o.State.landed(), own != nil && own.v.State == o.State
		if own != nil && landed && own.v.State.landed() {
			agree = true // it became final meanwhile
		}
		switch {
		case !agree:
			why[r.ID] = "its outcome is " + string(o.State) + ", and it is not"
		case own.v.Purpose != o.Purpose || own.v.Tenant != o.Tenant || own.v.Currency != o.Currency || string(own.v.Network) != o.Network:
			why[r.ID] = "its outcome is another order's"
		case landed:
		default:
			continue
		}
		delete(said, r.ID)
	}
	if len(said) == 0 {
		return why, nil
	}
	return why, n.refuted(ctx, slices.Sorted(maps.Keys(said)), said, why)
}

// miscosted adds to why each outcome whose costs are not those of its order and its transactions: the house
// would book what no network took, or take back what one did.
func (n *Sender) miscosted(ctx context.Context, rows []storage.Row, orders map[string]*claimedIntent, why map[string]string) error {
	var ids []string
	for _, r := range rows {
		if o := Outcomes.Value(r); why[r.ID] == "" && o.costs() {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	byIntent, err := n.attempts(ctx, ids...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		o, order := Outcomes.Value(r), orders[r.ID]
		if why[r.ID] != "" || !o.costs() {
			continue
		}
		took := o.CostTx == "" || slices.ContainsFunc(byIntent[r.ID], func(a *attempt) bool {
			return a.v.State == AttemptFinal && (a.v.Cost == o.Cost || a.v.Cost == 0) // 0: an earlier version did not store it
		})
		if order == nil || !took || !slices.Equal(o.Undone, order.v.Undone) {
			why[r.ID] = "its outcome has other costs than its transactions"
			continue
		}
		if why[r.ID], err = n.misdelivered(ctx, order, &o, byIntent[r.ID]); err != nil {
			return err
		}
	}
	return nil
}

// misdelivered says why an outcome is not to be told by which the house would book another loss of a move between
// addresses of ours than its transaction had, "" = it is true.
func (n *Sender) misdelivered(ctx context.Context, order *claimedIntent, o *Outcome, atts []*attempt) (why string, err error) {
	less := o.Reason == ReasonDeliveredLess
	switch {
	case o.Purpose == chain.ForWithdrawal, o.State != Final, order.v.State != Final:
		return "", nil
	case less != (order.v.Reason == ReasonDeliveredLess):
		return "its outcome brought less and its order did not, or the other way round", nil
	case !less:
		return "", nil
	}
	if err := n.ask(ctx, atts); err != nil {
		return unproven, ctx.Err()
	}
	a := landed(atts) // nil where nodes keep no old ones: then the order's own word counts
	switch {
	case a == nil, o.Amount == order.paid(&a.v)-a.st.Shortfall:
		return "", nil
	case !n.final(order, &a.st): // a fork: another outcome takes its place
		return unproven, nil
	}
	return "its outcome brought another sum than its transaction", nil
}

// ends reports whether an outcome tells the owner of an order that it is paid, or will not be.
func (o *Outcome) ends() bool { return o.State != Queued && o.State != Waiting && o.State != Signed }

// costs reports whether an outcome has the owner of an order book something.
func (o *Outcome) costs() bool { return o.CostTx != "" || len(o.Undone) > 0 }

// landed reports whether this state tells the owner of an order that it is paid.
func (s State) landed() bool { return s == Executed || s == Final }

// refuted asks the node about the transactions of orders whose rows say that nothing pays them any
// more, and adds to why each order that one has paid, or may. Few payouts fail. Each is asked about
// by itself, so that what a node cannot say of one holds up no other.
func (n *Sender) refuted(ctx context.Context, ids []string, said map[string]*claimedIntent, why map[string]string) error {
	batches, err := n.Store.Rows(ctx, Batches.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return err
	}
	by := make(map[string][]string, len(ids)) // whose transactions pay an order
	for _, id := range ids {
		by[id] = []string{id}
	}
	all := slices.Clone(ids)
	for _, r := range batches {
		leader := Batches.Value(r).Leader
		by[r.ID], all = append(by[r.ID], leader), append(all, leader)
	}
	byIntent, err := n.attempts(ctx, slices.Compact(slices.Sorted(slices.Values(all)))...)
	if err != nil {
		return err
	}
	sealed := make(map[string]*endings, len(ids))
	for _, id := range ids {
		e, err := n.sealed(ctx, id, &said[id].v)
		if err != nil {
			return err
		}
		sealed[id] = &e
	}
	told, err := n.told(ctx, ids, said, sealed, why)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if why[id] != "" {
			continue
		}
		var atts []*attempt
		for _, of := range by[id] {
			atts = append(atts, byIntent[of]...)
		}
		if t := told[id]; t != nil && !slices.ContainsFunc(atts, func(a *attempt) bool { return a.tx == t.tx }) {
			atts = append(atts, t)
		}
		if why[id], err = n.mayPay(ctx, said[id], atts, sealed[id]); err != nil {
			n.Log.Warn("outcome_unproven", slog.String("intent", id), slog.String("cause", err.Error()))
			why[id] = unproven
		}
	}
	return nil
}

// told returns, by order, the transaction that the order's owner was told of. It adds to why each
// order that is not as its owner has ordered it, and each of which the row of that transaction is gone,
// or another's: without its bytes most nodes say nothing of it.
func (n *Sender) told(ctx context.Context, ids []string, said map[string]*claimedIntent, sealed map[string]*endings, why map[string]string) (map[string]*attempt, error) {
	if n.Told == nil {
		return nil, nil
	}
	var orders []chain.Intent
	for _, id := range ids {
		if said[id].v.Purpose == chain.ForWithdrawal {
			orders = append(orders, said[id].v.intent(id))
		}
	}
	txs, differ, err := n.Told(ctx, orders)
	if err != nil {
		return nil, err
	}
	for id, what := range differ {
		why[id] = "it is " + string(said[id].v.State) + ", and " + what
	}
	if len(txs) == 0 {
		return nil, nil
	}
	rows, err := n.Store.Rows(ctx, Attempts.Table, storage.Keys(n.part, slices.Compact(slices.Sorted(maps.Values(txs)))...)...)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*attempt, len(rows))
	for _, r := range rows {
		known[r.ID] = &attempt{tx: r.ID, v: Attempts.Value(r), version: r.Version}
	}
	out := make(map[string]*attempt, len(txs))
	for _, o := range orders {
		tx, there := txs[o.ID]
		a := known[tx]
		switch {
		case !there, why[o.ID] != "", sealed[o.ID].off:
		case a == nil:
			why[o.ID] = "it is " + string(said[o.ID].v.State) + ", and its owner was told of transaction " + tx + ", of which no row is left"
		case a.v.Intent == o.ID, a.v.pays(said[o.ID]):
			out[o.ID] = a
		default:
			if back, err := n.givesBack(ctx, tx, &a.v); err != nil {
				return nil, err
			} else if !back {
				why[o.ID] = "it is " + string(said[o.ID].v.State) + ", and its owner was told of transaction " + tx + ", which is another order's"
			}
		}
	}
	return out, nil
}

// mayPay asks the node about these transactions of an order, and says which has paid the order, or
// may; "" = none. The error says that the node cannot tell now.
func (n *Sender) mayPay(ctx context.Context, j *claimedIntent, atts []*attempt, e *endings) (why string, err error) {
	if len(atts) == 0 || j.v.Purpose != chain.ForWithdrawal {
		return "", nil
	}
	if at := slices.IndexFunc(atts, func(a *attempt) bool { return a.v.State == Open }); at >= 0 {
		return "it is " + string(j.v.State) + ", and its transaction " + atts[at].tx + " may land", nil
	}
	if err := n.ask(ctx, atts); err != nil {
		return "", err
	}
	if a := landed(atts); a != nil {
		return "it is " + string(j.v.State) + ", and its transaction " + a.tx + " has paid it", nil
	}
	if e.off { // a person knows more than the node, but not what the node still has
		for _, a := range atts {
			if a.st.State == chain.Pending && a.v.Purpose != chain.ForCancel {
				return "it is " + string(j.v.State) + ", and the node has its transaction " + a.tx, nil
			}
		}
		return "", nil
	}
	if tx, err := n.unsealedCancel(ctx, j, atts, e); tx != "" || err != nil {
		return "it is " + string(j.v.State) + ", and nobody has sealed that its transaction " + tx + " pays nobody", err
	}
	switch a, err := n.takenElsewhere(ctx, j, atts, e); {
	case err != nil:
		return "", err
	case a != nil:
		return "it is " + string(j.v.State) + ", and " + disputedBy(a.st.By), nil
	}
	for _, a := range atts {
		dead := a.st.State != chain.Pending && n.final(j, &a.st) || e.dead[a.v.Named(a.tx)]
		if !dead && a.v.Purpose != chain.ForCancel {
			return "", fmt.Errorf("outgoing: %s: transaction %s is %s", j.v.State, a.tx, a.st.State)
		}
	}
	return "", nil
}

// landed is the transaction, of those that the node was asked about, which is in a block and
// pays somebody, nil = there is none.
func landed(atts []*attempt) *attempt {
	for _, a := range atts {
		if a.st.State == chain.Included && a.st.Executed && a.v.Purpose != chain.ForCancel {
			return a
		}
	}
	return nil
}

// intact returns an error if the plan that is stored is not one that this package has
// stored. It is read back from what would be signed: it must spend what is reserved for the
// order, pay what the order says, and cost no more.
func (n *Sender) intact(ctx context.Context, j *claimedIntent, p *plan) error {
	wrong := func(what string) error {
		n.altered(j, "its stored plan has "+what)
		return fmt.Errorf("outgoing: the stored plan of %s has %s: %w", j.id, what, chain.ErrRefused)
	}
	u, err := n.Client.Inspect(p.Unsigned.Payload)
	if err != nil {
		return wrong("a payload that cannot be read")
	}
	own := j.intent()
	if p.Intent.Purpose == chain.ForCancel && !helps(j.id) {
		own = n.filling(j, p.Change)
	}
	d := candidate{intent: p.Intent, nonce: p.Nonce, coins: p.Coins, change: p.Change}
	d.intent.MaxCost = own.MaxCost
	for i := range p.Also {
		at := slices.IndexFunc(j.members, func(r *claimedIntent) bool { return r.id == p.Also[i].ID })
		if at < 0 {
			return wrong("a payment of an intent that is not in its batch")
		}
		d.members = append(d.members, j.members[at])
	}
	o := d.order()
	switch most, err := o.MaxCost(); {
	case err != nil || u.MaxCost > most:
		return wrong("a fee above its bound")
	case p.Nonce >= 0 && n.nonces != nil && !slices.Equal(u.Spends, []string{Slot(p.Intent.From, p.Nonce)}):
		return wrong("another nonce")
	}
	if err := n.verifyOutputs(&d, &u, wrong); err != nil {
		return err
	}
	if err := n.reserved(ctx, j, u.Spends, nil); errors.Is(err, errUnreserved) {
		return wrong("another nonce or input than is reserved")
	} else if err != nil {
		return err
	}
	if p.Intent.Purpose == chain.ForCancel || j.v.State == Queued || j.v.State == Waiting || n.lapses() {
		return nil
	}
	byIntent, err := n.attempts(ctx, j.id)
	if err == nil && !shares(byIntent[j.id], u.Spends) {
		return wrong("nothing in common with what it replaces")
	}
	return err
}

var errUnreserved = errors.New("outgoing: it would spend what is not reserved for it")

// reserved returns errUnreserved if a transaction would spend a nonce or an input that is
// neither reserved for the job nor about to be.
func (n *Sender) reserved(ctx context.Context, j *claimedIntent, spends []string, more []storage.Row) error {
	if n.lapses() {
		return nil
	}
	rows, err := n.Store.Rows(ctx, InputReservations.Table, storage.Keys(n.part, spends...)...)
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, r := range slices.Concat(rows, more) {
		if r.Table == InputReservations.Table && InputReservations.Value(r).Intent == j.id {
			own[r.ID] = true
		}
	}
	if slices.ContainsFunc(spends, func(s string) bool { return !own[s] }) {
		return errUnreserved
	}
	return nil
}

// shares reports whether spends have something in common with each open attempt, so that
// only one of them can land.
func shares(atts []*attempt, spends []string) bool {
	return !slices.ContainsFunc(atts, func(a *attempt) bool { return a.v.State == Open && !overlap(a.v.Spends, spends) })
}

// overlap reports whether two transactions spend the same nonce or coin.
func overlap(x, y []string) bool {
	return slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) })
}
