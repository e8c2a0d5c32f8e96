package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A thief who can write to the database edits one row of a payout that is not signed yet:
// whom it pays, or how much. Nobody may pay him, and what he did not touch goes on. Or he writes that
// a payout on its way has failed: its owner would have the amount again, and it goes on as before.

// edited is a withdrawal that a thief has edited, or whose order he has.
type edited struct {
	was   withdrawal.Withdrawal
	order bool // the payout side's row was edited, and not the withdrawal's
}

// thiefAt is the address of the thief.
func (n *network) thiefAt() chain.Address { return n.chain.Customer("thief") }

// steal edits a row.
func (r *run) steal() string {
	var able []*payout
	for _, p := range r.withdrawals() {
		if _, done := r.edits[p.id]; !done && !p.shared && r.truth.payouts[p.id].Status == withdrawal.Pending && !r.taken(p) {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return r.callOff()
	}
	p := pick(r.rng, able)
	n := r.network(p.c.Network)
	tenant, network := storage.Tenant(p.m.id), storage.Network(string(n.name))
	was := r.truth.payouts[p.id]
	now, e := was, edited{was: was}
	var what string
	switch r.rng.IntN(3) {
	case 0:
		what, now.Address = "address", string(n.thiefAt())
	case 1:
		// Once it was handed over the order pays what was ordered, and its figures in the books
		// are those of the edited row: Verify names it (S02), and the world keeps to before.
		_, _, given, err := outgoing.Intents.One(context.Background(), r.truth.Store, network, p.id)
		if was.PlatformFee+was.NetworkFee == 0 || given || err != nil {
			return ""
		}
		what, now.Address = "address and amount", string(n.thiefAt())
		now.Amount, now.PlatformFee, now.NetworkFee = was.Requested, 0, 0
	default:
		in, row, ok, err := outgoing.Intents.One(context.Background(), r.truth.Store, network, p.id)
		if err != nil || !ok || in.State != outgoing.Queued && in.State != outgoing.Waiting {
			return ""
		}
		in.To = n.thiefAt()
		e.order = true
		if !r.edit(network, outgoing.Intents.Row(p.id, row.Version, row.Due, in)) {
			return ""
		}
		r.edits[p.id] = e
		return "edits the order of " + short(p.id)
	}
	_, row, ok, err := withdrawal.Withdrawals.One(context.Background(), r.truth.Store, tenant, p.id)
	if err != nil || !ok || !r.edit(tenant, withdrawal.Withdrawals.Row(p.id, row.Version, row.Due, now)) {
		return ""
	}
	r.truth.payouts[p.id], r.edits[p.id] = now, e
	return fmt.Sprintf("edits the %s of %s", what, short(p.id))
}

// callOff writes that a payout on its way has failed.
func (r *run) callOff() string {
	ctx := context.Background()
	var able []*payout
	for _, p := range r.withdrawals() {
		if !r.calledOff[p.id] && r.truth.payouts[p.id].Status == withdrawal.Processing {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return ""
	}
	p := pick(r.rng, able)
	network := storage.Network(string(p.c.Network))
	o, row, ok, err := outgoing.Outcomes.One(ctx, r.truth.Store, network, p.id)
	if err != nil || !ok || o.State != outgoing.Signed {
		return ""
	}
	o.State = outgoing.Failed
	if !r.edit(network, outgoing.Outcomes.Row(p.id, row.Version, r.now, o)) {
		return ""
	}
	r.calledOff[p.id] = true
	return "writes that " + short(p.id) + " has failed"
}

// taken reports whether the payout side has chosen a transaction for a withdrawal.
func (r *run) taken(p *payout) bool {
	part := storage.Network(string(p.c.Network))
	in, _, ok, err := outgoing.Intents.One(context.Background(), r.truth.Store, part, p.id)
	_, _, carried, failed := outgoing.Batches.One(context.Background(), r.truth.Store, part, p.id)
	return err != nil || failed != nil || carried || ok && (in.Attempts > 0 || len(in.Plan) > 0)
}

// edit writes a row past the library.
func (r *run) edit(part storage.Partition, row storage.Row) bool {
	r.requests++
	err := r.truth.Store.Commit(context.Background(), storage.Change{
		ID: fmt.Sprintf("edit/%d", r.requests), Partition: part, Put: []storage.Row{row},
	})[0]
	if err != nil {
		r.fail("world", "editing: %v", err)
		return false
	}
	r.truth.versions[rowKey{row.Table, part, row.ID}] = row.Version + 1
	row.Partition = part
	r.outside.judge.Edited(&row, row.Version+1)
	return true
}

// noticed reports whether an error says that a row was edited, where one was.
func (r *run) noticed(err error) bool {
	return len(r.edits) > 0 && errors.Is(err, withdrawal.ErrAltered)
}

// honestly shows the outside judge the withdrawals that were edited as they were, so that
// every rule about them is asked as ever.
func (r *run) honestly(shop *judge.Shop) {
	views := [][]judge.Payout{shop.Payouts}
	for _, l := range shop.Lists {
		views = append(views, l.Lines)
	}
	for _, payouts := range views {
		for i := range payouts {
			p := &payouts[i]
			if e, ok := r.edits[p.ID]; ok {
				p.Address, p.Amount, p.Platform, p.Network = e.was.Address, int64(e.was.Amount), int64(e.was.PlatformFee), int64(e.was.NetworkFee)
			}
		}
	}
}

// theft is what the outside judge is told of thieves: the edited withdrawals, and of each
// whether Verify names it, once a world ends.
func (r *run) theft(end bool) (map[string]judge.Edit, error) {
	if len(r.edits) == 0 {
		return nil, nil
	}
	named := map[string]bool{}
	if end {
		reports, err := r.outside.process.app.Verify(context.Background())
		if err != nil {
			return nil, err
		}
		for i := range reports {
			for _, c := range reports[i].Contradictions {
				named[c.ID] = true
			}
		}
	}
	out := map[string]judge.Edit{}
	for _, id := range slices.Sorted(maps.Keys(r.edits)) {
		e := r.edits[id]
		out[id] = judge.Edit{Thief: string(r.network(chain.Network(e.was.Network)).thiefAt()), Named: named[id] || e.order}
	}
	return out, nil
}
