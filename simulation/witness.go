package simulation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// witness stands between all processes and the store, and tells the judge of every Change
// that became true. It keeps what the world itself has to know: what is open and when it
// is due, so that time can pass; what merchants have, so that they can spend it; and the
// log from which a store is put back. It judges nothing.
type witness struct {
	storage.Store
	r        *run
	versions map[rowKey]int64
	changes  map[string]bool // applied, by partition and id
	balances map[balanceKey]balance
	payments map[string]payment.Payment // by id
	payouts  map[string]withdrawal.Withdrawal
	moves    map[string]wallet.Transfer
	outbox   map[string]webhook.Event
	attempts map[string]outgoing.AttemptRow
	sweeping map[string]map[string]bool // by network and address: sweeps that are under way
	due      map[rowKey]time.Time
	log      []entry
}

type rowKey struct {
	table *storage.Table
	part  storage.Partition
	id    string
}

type balanceKey struct {
	part    storage.Partition
	account ledger.Account
	asset   ledger.Asset
}

type balance struct{ posted, held ledger.Amount }

func newWitness(r *run, s storage.Store) *witness {
	r.outside.judge.Reopened()
	return &witness{
		Store: s, r: r, versions: map[rowKey]int64{}, changes: map[string]bool{}, balances: map[balanceKey]balance{},
		payments: map[string]payment.Payment{}, payouts: map[string]withdrawal.Withdrawal{}, moves: map[string]wallet.Transfer{},
		outbox: map[string]webhook.Event{}, attempts: map[string]outgoing.AttemptRow{}, due: map[rowKey]time.Time{}, sweeping: map[string]map[string]bool{},
	}
}

// commit commits one Change and looks at it if it was not true before.
func (w *witness) commit(ctx context.Context, c storage.Change) error {
	err := w.Store.Commit(ctx, c)[0]
	if err != nil {
		return err
	}
	key := string(c.Partition) + "\x00" + c.ID
	if w.again(&c, key) {
		return nil
	}
	w.changes[key] = true
	w.remember(entry{change: &c})
	w.r.outside.judge.Committed(&c, w.r.deep, w.r.transfer)
	w.rows(&c)
	w.post(&c)
	w.r.note("commit", string(c.Partition), c.ID)
	return nil
}

// again reports whether a Change was there already: nothing of it is news.
func (w *witness) again(c *storage.Change, key string) bool {
	if !w.changes[key] {
		return false
	}
	for i := range c.Put {
		if k := (rowKey{c.Put[i].Table, c.Partition, c.Put[i].ID}); w.versions[k] != c.Put[i].Version {
			return true
		}
	}
	return len(c.Put) == 0 // else the id was used before, for something else
}

// rows keeps what the rows of a Change say.
func (w *witness) rows(c *storage.Change) {
	for i := range c.Drop {
		k := rowKey{c.Drop[i].Table, c.Partition, c.Drop[i].ID}
		delete(w.versions, k)
		delete(w.due, k)
	}
	if len(c.Tell) > 0 {
		w.versions[rowKey{storage.Streams.Table, c.Partition, storage.StreamID}]++
	}
	for i := range c.Put {
		p := &c.Put[i]
		w.versions[rowKey{p.Table, c.Partition, p.ID}] = p.Version + 1
		w.dues(p, c.Partition)
		key := string(c.Partition) + "\x00" + p.ID
		switch p.Table {
		case payment.Payments.Table:
			w.payments[p.ID] = payment.Payments.Value(*p)
		case withdrawal.Withdrawals.Table:
			w.payouts[p.ID] = withdrawal.Withdrawals.Value(*p)
		case wallet.TransferRows.Table:
			w.moves[p.ID] = wallet.TransferRows.Value(*p)
		case webhook.Events.Table:
			w.outbox[key] = webhook.Events.Value(*p)
		case outgoing.Attempts.Table:
			w.attempts[key] = outgoing.Attempts.Value(*p)
		case treasury.GasFloats.Table:
			g, t := treasury.GasFloats.Value(*p), w.r.current
			shop := strings.TrimPrefix(string(c.Partition), string(storage.Tenant("")))
			again := strings.HasPrefix(c.ID, "reserve-again/") // of a transaction that had landed: see docs/treasury.md
			w.r.outside.judge.SetAside(shop, g.Asset, int64(g.Reserved), t == nil || t.paused || w.r.deep || again)
		case treasury.Sweeps.Table:
			w.sweep(c.Partition, p.ID, treasury.Sweeps.Value(*p))
		case outgoing.Batches.Table:
			w.r.counts["carried"]++
		}
	}
}

// sweep keeps which sweeps of an address are under way.
func (w *witness) sweep(part storage.Partition, id string, s treasury.Sweep) {
	at := string(part) + "/" + s.Address
	if w.sweeping[at] == nil {
		w.sweeping[at] = map[string]bool{}
	}
	delete(w.sweeping[at], id)
	if s.State == treasury.SweepFunding || s.State == treasury.SweepMoving || s.State == treasury.SweepNew && s.Fundings > 0 {
		w.sweeping[at][id] = true
	}
	if w.r.deep { // one that was done may be under way again
		return
	}
	w.r.outside.judge.Sweeping(at, slices.Sorted(maps.Keys(w.sweeping[at])))
}

func (w *witness) claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	rows, err := w.Store.Claim(ctx, c)
	if len(rows) > 0 {
		w.remember(entry{claim: &c})
		w.r.outside.judge.Claimed(rows)
	}
	for i := range rows {
		w.versions[rowKey{rows[i].Table, rows[i].Partition, rows[i].ID}] = rows[i].Version
		w.dues(&rows[i], rows[i].Partition)
	}
	return rows, err
}

// post keeps what accounts have.
func (w *witness) post(c *storage.Change) {
	for i := range c.Post {
		for _, l := range c.Post[i].Legs {
			k := balanceKey{c.Partition, l.Account, l.Asset}
			b := w.balances[k]
			w.balances[k] = balance{b.posted + l.Delta, b.held + l.Hold}
		}
	}
}

// payer is the order whose transactions pay an order: its own, or the one that
// carries it.
func (w *witness) payer(p storage.Partition, intent string) string {
	ride, _, carried, err := outgoing.Batches.One(context.Background(), w.Store, p, intent)
	if err == nil && carried {
		return ride.Leader
	}
	return intent
}

// find reads all rows of a partition that the run has use for.
func (r *run) find(t *storage.Table, p storage.Partition) []storage.Row {
	rows, err := r.truth.Find(context.Background(), storage.Query{Table: t, Partition: p, Limit: 100_000})
	if err != nil {
		r.fail("store", "%v", err)
	}
	return rows
}
