package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
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
	deposits map[string]payment.Deposit // by tenant and id
	attempts map[string]outgoing.AttemptRow
	slots    map[string]string          // nonce or outpoint → intent, by network
	spends   map[string]map[string]bool // intent → slots that all of its attempts share
	taken    map[string]string          // address → payment
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
	return &witness{
		Store: s, r: r, versions: map[rowKey]int64{}, changes: map[string]bool{}, posted: map[string]bool{},
		balances: map[balanceKey]balance{}, payments: map[string]payment.Payment{}, payouts: map[string]withdrawal.Withdrawal{},
		moves: map[string]wallet.Transfer{}, events: map[string]int64{}, outbox: map[string]webhook.Event{},
		deposits: map[string]payment.Deposit{}, attempts: map[string]outgoing.AttemptRow{},
		slots: map[string]string{}, spends: map[string]map[string]bool{}, taken: map[string]string{},
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
		if k := (rowKey{c.Put[i].Table, c.Partition, c.Put[i].ID}); w.versions[k] == c.Put[i].Version {
			return false // the id was used before, for something else
		}
	}
	return true
}

// rows holds versions against those that were stored (I15: nobody writes on what
// he has not seen).
func (w *witness) rows(c *storage.Change) {
	for i := range c.Require {
		g := &c.Require[i]
		if have := w.versions[rowKey{g.Table, c.Partition, g.ID}]; have != g.Version {
			w.r.fail("I15", "change %s relied on %s %s at version %d, it stands at %d", c.ID, g.Table.Name, g.ID, g.Version, have)
		}
	}
	for i := range c.Drop {
		delete(w.versions, rowKey{c.Drop[i].Table, c.Partition, c.Drop[i].ID})
	}
	for i := range c.Put {
		p := &c.Put[i]
		k := rowKey{p.Table, c.Partition, p.ID}
		if have := w.versions[k]; have != p.Version {
			w.r.fail("I15", "change %s wrote %s %s on version %d, it stood at %d", c.ID, p.Table.Name, p.ID, p.Version, have)
		}
		w.versions[k] = p.Version + 1
	}
}

func (w *witness) claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	rows, err := w.Store.Claim(ctx, c)
	for i := range rows {
		k := rowKey{rows[i].Table, rows[i].Partition, rows[i].ID}
		if have := w.versions[k]; rows[i].Version != have+1 {
			w.r.fail("I15", "a claim of %s %s gave version %d after %d", k.table.Name, k.id, rows[i].Version, have)
		}
		w.versions[k] = rows[i].Version
	}
	return rows, err
}

// post keeps the books: I1, I3, and that no Tx is there twice.
func (w *witness) post(c *storage.Change) {
	for i := range c.Post {
		tx := &c.Post[i]
		key := string(c.Partition) + "\x00" + tx.ID
		if w.posted[key] {
			w.r.fail("I1", "posting %s of %s is there twice", tx.ID, c.Partition)
		}
		w.posted[key] = true
		sums := map[ledger.Asset]ledger.Amount{}
		for _, l := range tx.Legs {
			k := balanceKey{c.Partition, l.Account, l.Asset}
			b := w.balances[k]
			b.posted, b.held = b.posted+l.Delta, b.held+l.Hold
			w.balances[k] = b
			sums[l.Asset] += l.Delta
			if l.Account.Floored() && (b.held < 0 || b.posted < b.held) {
				w.r.fail("I3", "%s left %s of %s at %d with %d held", tx.ID, l.Asset, l.Account, b.posted, b.held)
			}
			if l.Account == ledger.Suspense && b.posted < 0 {
				w.r.fail("I3", "%s left suspense of %s at %d", tx.ID, l.Asset, b.posted)
			}
		}
		for asset, sum := range sums {
			if sum != 0 {
				w.r.fail("I1", "%s does not balance: %d of %s", tx.ID, sum, asset)
			}
		}
		for _, l := range tx.Legs {
			w.solvent(c.Partition, l.Asset, tx.ID)
		}
	}
}

// solvent is I4: what is owed is covered, but for what a deep reorg took.
func (w *witness) solvent(p storage.Partition, asset ledger.Asset, tx string) {
	var equity ledger.Amount
	for _, a := range []ledger.Account{ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment} {
		equity += w.balances[balanceKey{p, a, asset}].posted
	}
	if equity < 0 && !w.r.deep && w.r.native(asset) {
		w.r.fail("I4", "%s left the house of %s with %d of %s: gas spent merchants' coins", tx, p, equity, asset)
	}
}

// judge holds a Change against what the specification says of it.
func (w *witness) judge(c *storage.Change) {
	sent := map[string][]webhook.Event{}
	for i := range c.Put {
		if p := &c.Put[i]; p.Table == webhook.Events.Table {
			e := webhook.Events.Value(*p)
			if p.Version == 0 {
				w.newEvent(c, p.ID, e)
				sent[e.Object] = append(sent[e.Object], e)
			}
			w.outbox[string(c.Partition)+"\x00"+p.ID] = e
		}
	}
	for i := range c.Put {
		p := &c.Put[i]
		switch p.Table {
		case payment.Payments.Table:
			w.payment(c, p.ID, payment.Payments.Value(*p), sent[p.ID])
		case payment.Deposits.Table:
			w.deposit(c, p.ID, payment.Deposits.Value(*p))
		case withdrawal.Withdrawals.Table:
			w.payout(c, p.ID, withdrawal.Withdrawals.Value(*p), sent[p.ID])
		case wallet.TransferRows.Table:
			w.transfer(c, p.ID, wallet.TransferRows.Value(*p), sent[p.ID])
		case outgoing.Attempts.Table:
			w.attempt(c, p.ID, outgoing.Attempts.Value(*p), p.Version == 0)
		case incoming.Addresses.Table:
			if p.Version == 0 {
				w.address(c, p.ID)
			}
		}
	}
}

// newEvent is I12: numbers without a gap.
func (w *witness) newEvent(c *storage.Change, id string, e webhook.Event) {
	k := string(c.Partition) + "\x00" + e.Object
	if w.events[k]++; e.Seq != w.events[k] {
		w.r.fail("I12", "event %s of %s has number %d, %d was next", id, e.Object, e.Seq, w.events[k])
	}
	if !strings.Contains(e.Body, e.Object) {
		w.r.fail("I12", "event %s does not name %s", id, e.Object)
	}
}

// told is I12: a change of status has its event in the same Change, and says so.
func (w *witness) told(c *storage.Change, id, from, to string, sent []webhook.Event) {
	for _, e := range sent {
		if strings.Contains(e.Body, `"status":"`+to+`"`) && strings.Contains(e.Body, `"previous_status":"`+from+`"`) {
			return
		}
	}
	w.r.fail("I12", "change %s moved %s from %s to %s and tells nobody", c.ID, id, from, to)
}

// The moves that decisions §3 and §4 allow: I13.
var paymentMoves = map[string]string{
	"waiting":        "confirming partially_paid expired failed",
	"partially_paid": "confirming waiting failed expired",
	"confirming":     "confirmed partially_paid waiting failed",
	"confirmed":      "sending completed",
	"sending":        "completed",
	"expired":        "confirming",
	"failed":         "confirming",
}

var payoutMoves = map[string]string{
	"pending":    "cancelled failed processing",
	"processing": "completed failed",
}

func allowed(moves map[string]string, from, to string) bool {
	return slices.Contains(strings.Fields(moves[from]), to)
}

func (w *witness) payment(c *storage.Change, id string, p payment.Payment, sent []webhook.Event) {
	old, known := w.payments[id]
	w.payments[id] = p
	if !known {
		key := p.Network + "\x00" + p.Address
		if other := w.taken[key]; other != "" {
			w.r.fail("I11", "payments %s and %s have the same address %s", other, id, p.Address)
		}
		w.taken[key] = id
		if p.Status != payment.Waiting || len(sent) > 0 {
			w.r.fail("I13", "payment %s begins as %s with %d events", id, p.Status, len(sent))
		}
		return
	}
	if old.Due != p.Due || old.Address != p.Address || old.Wallet != p.Wallet || old.FeePercent.Cmp(p.FeePercent) != 0 {
		w.r.fail("I13", "what payment %s asks for has changed", id)
	}
	if old.Status != p.Status {
		// One Change may take several steps: the first and the last are told.
		if !reachable(paymentMoves, string(old.Status), string(p.Status)) {
			w.r.fail("I13", "payment %s went from %s to %s", id, old.Status, p.Status)
		}
	}
	var posted ledger.Amount
	for i := range c.Post {
		for _, l := range c.Post[i].Legs {
			_, isWallet := l.Account.WalletID()
			if what, _, _ := strings.Cut(c.Post[i].ID, "/"); (isWallet || l.Account.Owed()) && c.Post[i].Ref == id && what != "resolve" {
				posted += l.Delta
			}
		}
	}
	if posted != p.Net-old.Net {
		w.r.fail("I5", "change %s credits %d for payment %s, whose net moves from %d to %d", c.ID, posted, id, old.Net, p.Net)
	}
	net, platform, network := divide(&p)
	if p.Net != net || p.Platform != platform || p.NetworkTaken != network {
		w.r.fail("model", "payment %s received %d: has %d+%d+%d, should be %d+%d+%d", id, p.Received, p.Net, p.Platform, p.NetworkTaken, net, platform, network)
	}
	if old.Status != p.Status && !w.steps(old.Status, p.Status, sent) {
		w.told(c, id, string(old.Status), string(p.Status), sent)
	}
}

// steps reports whether events lead from one status to another.
func (w *witness) steps(from, to payment.Status, sent []webhook.Event) bool {
	at := string(from)
	for _, e := range sent {
		if e.Type != webhook.PaymentStatusUpdate || !strings.Contains(e.Body, `"previous_status":"`+at+`"`) {
			continue
		}
		for _, s := range payment.Machine.States {
			if strings.Contains(e.Body, `"status":"`+string(s)+`"`) {
				at = string(s)
				break
			}
		}
	}
	return at == string(to)
}

// reachable reports whether some moves lead from one status to another.
func reachable(moves map[string]string, from, to string) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, s := range strings.Fields(moves[at]) {
			if s == to {
				return true
			}
			if !seen[s] {
				seen[s] = true
				next = append(next, s)
			}
		}
	}
	return false
}

// deposit is I5 when it happens: money is booked only for a transfer that the
// chain has, that deep.
func (w *witness) deposit(c *storage.Change, id string, d payment.Deposit) {
	k := string(c.Partition) + "\x00" + id
	old := w.deposits[k]
	w.deposits[k] = d
	if d.Booking == old.Booking || d.Booking != payment.InWallet && d.Booking != payment.InSuspense || w.r.deep {
		return
	}
	net := w.r.network(chain.Network(d.Network))
	s, err := net.chain.Outcome(d.Tx)
	cur, _ := registry().Currency(d.Currency)
	if err != nil || s.State != chain.Included || !s.Executed || s.Confirmations < cur.Confirmations {
		w.r.fail("I5", "%s of %s %s was booked as %s while its transaction %s is %s with %d confirmations of %d",
			cur.Decimal(d.Amount), d.Currency, id, d.Booking, d.Tx, s.State, s.Confirmations, cur.Confirmations)
	}
}

func (w *witness) payout(c *storage.Change, id string, v withdrawal.Withdrawal, sent []webhook.Event) {
	old, known := w.payouts[id]
	w.payouts[id] = v
	want := map[balanceKey]balance{}
	move := func(a ledger.Account, delta, hold ledger.Amount) {
		if delta != 0 || hold != 0 {
			want[balanceKey{c.Partition, a, ledger.Asset(v.Currency)}] = balance{delta, hold}
		}
	}
	switch {
	case !known:
		if v.Status != withdrawal.Pending {
			w.r.fail("I13", "withdrawal %s begins as %s", id, v.Status)
		}
		if v.Requested != v.Amount+v.PlatformFee+v.NetworkFee || v.Amount <= 0 || v.NetworkFee < 0 || v.PlatformFee < 0 {
			w.r.fail("model", "withdrawal %s: %d ≠ %d+%d+%d", id, v.Requested, v.Amount, v.PlatformFee, v.NetworkFee)
		}
		move(ledger.Wallet(v.Wallet), 0, v.Requested)
	case old.Requested != v.Requested || old.Amount != v.Amount || old.Address != v.Address || old.Currency != v.Currency || old.Wallet != v.Wallet:
		w.r.fail("I7", "withdrawal %s has changed after it was accepted", id)
	case old.Status == v.Status:
	default:
		if !allowed(payoutMoves, string(old.Status), string(v.Status)) {
			w.r.fail("I13", "withdrawal %s went from %s to %s", id, old.Status, v.Status)
		}
		w.told(c, id, string(old.Status), string(v.Status), sent)
		switch v.Status {
		case withdrawal.Completed:
			move(ledger.Wallet(v.Wallet), -v.Requested, -v.Requested)
			move(ledger.Chain(v.Network), v.Amount, 0)
			move(ledger.FeesPlatform, v.PlatformFee, 0)
			move(ledger.FeesNetwork, v.NetworkFee, 0)
		case withdrawal.Failed, withdrawal.Cancelled:
			move(ledger.Wallet(v.Wallet), 0, -v.Requested)
		}
	}
	w.legs(c, "withdrawal "+id, want)
}

func (w *witness) transfer(c *storage.Change, id string, t wallet.Transfer, sent []webhook.Event) {
	old, known := w.moves[id]
	w.moves[id] = t
	want := map[balanceKey]balance{}
	source, target := wallet.Master, t.Wallet
	if t.Direction == wallet.ToMaster {
		source, target = target, source
	}
	move := func(id string, delta, hold ledger.Amount) {
		want[balanceKey{c.Partition, ledger.Wallet(id), ledger.Asset(t.Currency)}] = balance{delta, hold}
	}
	switch {
	case !known:
		move(source, 0, t.Amount)
	case old.Status == t.Status:
	case old.Status != wallet.TransferPending:
		w.r.fail("I13", "transfer %s went from %s to %s", id, old.Status, t.Status)
	case t.Status == wallet.TransferCompleted:
		move(source, -t.Amount, -t.Amount)
		move(target, t.Amount, 0)
		w.told(c, id, string(old.Status), string(t.Status), sent)
	default:
		move(source, 0, -t.Amount)
		w.told(c, id, string(old.Status), string(t.Status), sent)
	}
	w.legs(c, "transfer "+id, want)
}

// legs holds what a Change posts against what spec/ledger.md says: I9.
func (w *witness) legs(c *storage.Change, what string, want map[balanceKey]balance) {
	have := map[balanceKey]balance{}
	for i := range c.Post {
		for _, l := range c.Post[i].Legs {
			k := balanceKey{c.Partition, l.Account, l.Asset}
			have[k] = balance{have[k].posted + l.Delta, have[k].held + l.Hold}
		}
	}
	if !maps.Equal(have, want) {
		w.r.fail("I9", "change %s of %s posts %v, should post %v", c.ID, what, have, want)
	}
}

// attempt is I10 and I11: attempts of one intent share a nonce or an input, those
// of two never do.
func (w *witness) attempt(c *storage.Change, tx string, a outgoing.AttemptRow, fresh bool) {
	key := string(c.Partition) + "\x00" + tx
	if !fresh {
		w.attempts[key] = a
		return
	}
	w.attempts[key] = a
	intent := string(c.Partition) + "\x00" + a.Intent
	shared := map[string]bool{}
	for _, s := range a.Spends {
		slot := string(c.Partition) + "\x00" + s
		if other := w.slots[slot]; other != "" && other != a.Intent {
			w.r.fail("I11", "%s is spent by %s and by %s", s, other, a.Intent)
		}
		w.slots[slot] = a.Intent
		if old := w.spends[intent]; old == nil || old[s] {
			shared[s] = true
		}
	}
	if w.spends[intent] != nil && len(shared) == 0 && !w.superseded(c.Partition, a) {
		w.r.fail("I10", "attempt %d of %s shares nothing with all those before", a.Number, a.Intent)
	}
	w.spends[intent] = shared
}

// superseded reports whether all attempts before are dead with proof: then
// another one need not conflict with them.
func (w *witness) superseded(p storage.Partition, a outgoing.AttemptRow) bool {
	for key, old := range w.attempts {
		part, _, _ := strings.Cut(key, "\x00")
		if part == string(p) && old.Intent == a.Intent && old.Number < a.Number && old.Fate == outgoing.Open {
			return false
		}
	}
	return true
}

func (w *witness) address(c *storage.Change, id string) {
	key := "address\x00" + string(c.Partition) + "\x00" + id
	if w.posted[key] {
		w.r.fail("I11", "address %s was derived twice", id)
	}
	w.posted[key] = true
}

// divide splits what a payment received as decisions §3 says: N = min(n, R); F by
// merchant min(⌊R·f⌋, R−N), by user ⌊(R−N)·f/(1+f)⌋; the wallet gets the rest.
func divide(p *payment.Payment) (net, platform, network ledger.Amount) {
	const million = 1_000_000
	f := p.FeePercent.Shift(6).BigInt() // percent · 10^6
	r := big64(p.Received)
	network = min(p.NetworkFee, p.Received)
	rest := p.Received - network
	if p.FeeByUser {
		platform = floorDiv(big64(rest), f, 100*million, f)
	} else {
		platform = min(floorDiv(r, f, 100*million, nil), rest)
	}
	return rest - platform, platform, network
}

func (w *witness) String() string { return fmt.Sprintf("%d changes", len(w.changes)) }
