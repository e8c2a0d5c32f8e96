package world

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// witness stands between all processes and the store and sees every Change that
// became true. It keeps books of its own from the legs alone and judges each
// Change when it happens: what is wrong for a moment is wrong.
type witness struct {
	storage.Store
	r        *run
	versions map[rowKey]int64
	changes  map[string]bool // applied, by partition and id
	posted   map[string]bool // ledger Txs, by partition and id
	balances map[balanceKey]balance
	payments map[string]payment.Payment // by id
	payouts  map[string]withdrawal.Withdrawal
	moves    map[string]wallet.Transfer
	events   map[string]int64 // last number, by tenant and object
	outbox   map[string]webhook.Event
	aside    map[string]ledger.Amount   // for gas, by tenant and asset
	merged   map[string]bool            // deposits of which it was told, by tenant and id
	deposits map[string]payment.Deposit // by tenant and id
	attempts map[string]outgoing.AttemptRow
	slots    map[string]string // nonce or outpoint → intent, by network
	sweeping map[string]string // address → sweep, by network
	taken    map[string]string // address → payment
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
		Store: s, r: r, versions: map[rowKey]int64{}, changes: map[string]bool{}, posted: map[string]bool{},
		balances: map[balanceKey]balance{}, payments: map[string]payment.Payment{}, payouts: map[string]withdrawal.Withdrawal{},
		moves: map[string]wallet.Transfer{}, events: map[string]int64{}, outbox: map[string]webhook.Event{}, merged: map[string]bool{}, aside: map[string]ledger.Amount{},
		deposits: map[string]payment.Deposit{}, attempts: map[string]outgoing.AttemptRow{},
		sweeping: map[string]string{}, slots: map[string]string{}, taken: map[string]string{}, due: map[rowKey]time.Time{},
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
	w.judge(&c)
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

// rows holds versions against those that were stored (I15: nobody writes on what
// he has not seen).
func (w *witness) rows(c *storage.Change) {
	for i := range c.Require {
		g := &c.Require[i]
		if have := w.versions[rowKey{g.Table, c.Partition, g.ID}]; have != g.Version {
			w.r.inside("I15", "change %s relied on %s %s at version %d, it stands at %d", c.ID, g.Table.Name, g.ID, g.Version, have)
		}
	}
	for i := range c.Drop {
		k := rowKey{c.Drop[i].Table, c.Partition, c.Drop[i].ID}
		delete(w.versions, k)
		delete(w.due, k)
	}
	for i := range c.Put {
		p := &c.Put[i]
		k := rowKey{p.Table, c.Partition, p.ID}
		if have := w.versions[k]; have != p.Version {
			w.r.inside("I15", "change %s wrote %s %s on version %d, it stood at %d", c.ID, p.Table.Name, p.ID, p.Version, have)
		}
		w.versions[k] = p.Version + 1
		w.dues(p, c.Partition)
	}
}

func (w *witness) claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	rows, err := w.Store.Claim(ctx, c)
	if len(rows) > 0 {
		w.remember(entry{claim: &c})
		w.r.outside.judge.Claimed(rows)
	}
	for i := range rows {
		k := rowKey{rows[i].Table, rows[i].Partition, rows[i].ID}
		if have := w.versions[k]; rows[i].Version != have+1 {
			w.r.inside("I15", "a claim of %s %s gave version %d after %d", k.table.Name, k.id, rows[i].Version, have)
		}
		w.versions[k] = rows[i].Version
		w.dues(&rows[i], rows[i].Partition)
	}
	return rows, err
}

// post keeps the books: I1, I3, and that no Tx is there twice.
func (w *witness) post(c *storage.Change) {
	for i := range c.Post {
		tx := &c.Post[i]
		key := string(c.Partition) + "\x00" + tx.ID
		if w.posted[key] {
			w.r.inside("I1", "posting %s of %s is there twice", tx.ID, c.Partition)
		}
		w.posted[key] = true
		sums := map[ledger.Asset]ledger.Amount{}
		for _, l := range tx.Legs {
			k := balanceKey{c.Partition, l.Account, l.Asset}
			b := w.balances[k]
			b.posted, b.held = b.posted+l.Delta, b.held+l.Hold
			w.balances[k] = b
			sums[l.Asset] += l.Delta
			if _, floor := l.Account.WalletID(); floor && (b.held < 0 || b.posted < b.held) {
				w.r.inside("I3", "%s left %s of %s at %d with %d held", tx.ID, l.Asset, l.Account, b.posted, b.held)
			}
			if l.Account == ledger.Suspense && b.posted < 0 {
				w.r.inside("I3", "%s left suspense of %s at %d", tx.ID, l.Asset, b.posted)
			}
		}
		for asset, sum := range sums {
			if sum != 0 {
				w.r.inside("I1", "%s does not balance: %d of %s", tx.ID, sum, asset)
			}
		}
		for _, l := range tx.Legs {
			w.solvent(c.Partition, l.Asset, tx.ID)
		}
	}
}

// equity is what the house has of an asset.
func (w *witness) equity(p storage.Partition, asset ledger.Asset) (sum ledger.Amount) {
	for _, a := range []ledger.Account{ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment} {
		sum += w.balances[balanceKey{p, a, asset}].posted
	}
	return sum
}

// solvent is I4: what is owed is covered, but for what a deep reorg took.
func (w *witness) solvent(p storage.Partition, asset ledger.Asset, tx string) {
	if equity := w.equity(p, asset); equity < 0 && !w.r.deep && w.r.native(asset) {
		w.r.inside("I4", "%s left the house of %s with %d of %s: gas spent merchants' coins", tx, p, equity, asset)
	}
}
