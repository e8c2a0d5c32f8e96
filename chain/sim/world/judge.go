package world

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

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
			w.distance(c.Partition, p, e)
			w.outbox[string(c.Partition)+"\x00"+p.ID] = e
		}
	}
	for i := range c.Drop {
		if d := &c.Drop[i]; d.Table == webhook.Events.Table {
			w.purged(string(c.Partition)+"\x00"+d.ID, d.ID)
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
		case outgoing.Rides.Table:
			w.ride(c.Partition, p.ID, outgoing.Rides.Value(*p).Carrier)
		case treasury.Sweeps.Table:
			w.sweep(c, p.ID, treasury.Sweeps.Value(*p), p.Version == 0)
		case treasury.GasFloats.Table:
			w.setAside(c, treasury.GasFloats.Value(*p))
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
		w.r.inside("I12", "event %s of %s has number %d, %d was next", id, e.Object, e.Seq, w.events[k])
	}
	if !strings.Contains(e.Body, e.Object) {
		w.r.inside("I12", "event %s does not name %s", id, e.Object)
	}
	if e.Type != webhook.DepositMerged {
		return
	}
	var body struct {
		Data struct {
			Deposit string `json:"deposit_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil || w.merged[string(c.Partition)+"\x00"+body.Data.Deposit] {
		w.r.inside("I12", "event %s tells again that deposit %s was merged: %v", id, body.Data.Deposit, err)
	}
	w.merged[string(c.Partition)+"\x00"+body.Data.Deposit] = true
}

// longestPause is how long a host that does not answer is left alone at a time.
const longestPause = 5 * time.Minute

// distance is H08: after a failed attempt the next one is due as long after it as
// the schedule says. One that was only put off counts no attempt, and is due at once,
// or at most a few minutes later where its host does not answer.
func (w *witness) distance(part storage.Partition, p *storage.Row, e webhook.Event) {
	if p.Version == 0 || e.Status != webhook.StatusPending || w.r.current == nil {
		return
	}
	if old := w.outbox[string(part)+"\x00"+p.ID]; old.Attempts == e.Attempts {
		most := w.r.skewed
		if strings.Contains(e.Error, "the host does not answer") {
			most += longestPause
		}
		if p.Due.After(w.r.now.Add(most)) {
			w.r.inside("H08", "event %s is put off until %s, and still has %d attempts", p.ID, p.Due, e.Attempts)
		}
		return
	}
	wait := schedule[min(e.Attempts, len(schedule))-1]
	early, late := w.r.current.began.Add(wait-w.r.skewed), w.r.now.Add(wait+w.r.skewed)
	if p.Due.Before(early) || p.Due.After(late) {
		w.r.inside("H08", "event %s is due at %s after attempt %d, should be %s later than that", p.ID, p.Due, e.Attempts, wait)
	}
}

// purged is retention: only what has ended, and long enough ago, may go.
func (w *witness) purged(key, id string) {
	e := w.outbox[key]
	if keep := w.r.keep; e.Status == webhook.StatusPending || keep == 0 || w.r.now.Add(w.r.skewed).Sub(e.Done) < keep {
		w.r.inside("X03", "event %s, %s since %s, was purged", id, e.Status, e.Done)
	}
}

// told is I12: a change of status has its events in the same Change, one per
// step, and they lead from the one to the other.
func (w *witness) told(c *storage.Change, id, from, to string, sent []webhook.Event) {
	at := from
	for _, e := range sent {
		var body struct {
			Data struct {
				Status   string `json:"status"`
				Previous string `json:"previous_status"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
			w.r.inside("I12", "event of %s is no JSON: %v", id, err)
		}
		if body.Data.Previous == at && body.Data.Status != "" {
			at = body.Data.Status
		}
	}
	if at != to {
		w.r.inside("I12", "change %s moved %s from %s to %s and tells of %s", c.ID, id, from, to, at)
	}
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

func (w *witness) payment(c *storage.Change, id string, p payment.Payment, sent []webhook.Event) {
	old, known := w.payments[id]
	w.payments[id] = p
	if !known {
		key := p.Network + "\x00" + p.Address
		if other := w.taken[key]; other != "" {
			w.r.inside("I11", "payments %s and %s have the same address %s", other, id, p.Address)
		}
		w.taken[key] = id
		if p.Status != payment.Waiting || len(sent) > 0 {
			w.r.inside("I13", "payment %s begins as %s with %d events", id, p.Status, len(sent))
		}
		return
	}
	if old.Due != p.Due || old.Address != p.Address || old.Wallet != p.Wallet || old.FeePercent.Cmp(p.FeePercent) != 0 {
		w.r.inside("I13", "what payment %s asks for has changed", id)
	}
	if old.Status != p.Status {
		// One Change may take several steps: the first and the last are told.
		if !reachable(paymentMoves, string(old.Status), string(p.Status)) {
			w.r.inside("I13", "payment %s went from %s to %s", id, old.Status, p.Status)
		}
	}
	if early := p.ExpiresAt.Add(-w.r.skewed); p.Status == payment.Expired && old.Status != p.Status && !p.Cancelled && w.r.now.Before(early) {
		w.r.inside("I13", "payment %s has expired before %s", id, p.ExpiresAt)
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
		w.r.inside("I5", "change %s credits %d for payment %s, whose net moves from %d to %d", c.ID, posted, id, old.Net, p.Net)
	}
	net, platform, network := divide(&p)
	if p.Net != net || p.Platform != platform || p.NetworkTaken != network {
		w.r.inside("model", "payment %s received %d: has %d+%d+%d, should be %d+%d+%d", id, p.Received, p.Net, p.Platform, p.NetworkTaken, net, platform, network)
	}
	if old.Status != p.Status {
		w.told(c, id, string(old.Status), string(p.Status), sent)
	}
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
	if d.Booking == payment.InWallet && d.Booking != old.Booking && old.Owed > 0 && d.Net > 0 && d.Owed >= old.Owed {
		w.r.inside("I5", "deposit %s is back with %d, and its wallet still owes %d for it", id, d.Net, d.Owed)
	}
	if d.Booking == old.Booking || d.Booking != payment.InWallet && d.Booking != payment.InSuspense || w.r.deep {
		return
	}
	c0, net := currency(d.Currency), w.r.network(chain.Network(d.Network))
	above := c0.Confirmations - 1 // so many blocks at least
	if c0.WaitFinal {
		above = max(above, net.final)
	}
	for _, x := range net.chain.Transfers(chain.Address(d.Address)) {
		if x.Tx == d.Tx && x.Ordinal == d.Ordinal && net.chain.Height()-x.Block.Height >= above {
			return
		}
	}
	w.r.inside("I5", "%s of %s %s was booked as %s, and its chain does not have it with %d blocks above it",
		c0.Decimal(d.Amount), d.Currency, id, d.Booking, above)
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
			w.r.inside("I13", "withdrawal %s begins as %s", id, v.Status)
		}
		if v.Requested != v.Amount+v.PlatformFee+v.NetworkFee || v.Amount <= 0 || v.NetworkFee < 0 || v.PlatformFee < 0 {
			w.r.inside("model", "withdrawal %s: %d ≠ %d+%d+%d", id, v.Requested, v.Amount, v.PlatformFee, v.NetworkFee)
		}
		move(ledger.Wallet(v.Wallet), 0, v.Requested)
	case old.Requested != v.Requested || old.Amount != v.Amount || old.Address != v.Address || old.Currency != v.Currency || old.Wallet != v.Wallet:
		w.r.inside("I7", "withdrawal %s has changed after it was accepted", id)
	case old.Status == v.Status:
	default:
		if old.Frozen && v.Status == withdrawal.Processing {
			w.r.inside("I13", "withdrawal %s goes out although it is frozen", id)
		}
		if !reachable(payoutMoves, string(old.Status), string(v.Status)) {
			w.r.inside("I13", "withdrawal %s went from %s to %s", id, old.Status, v.Status)
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
		w.r.inside("I13", "transfer %s went from %s to %s", id, old.Status, t.Status)
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
		w.r.inside("I9", "change %s of %s posts %v, should post %v", c.ID, what, have, want)
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
	if other := w.apart(c.Partition, a); other != 0 {
		w.r.inside("I10", "attempts %d and %d of %s share nothing, and both may land", other, a.Number, a.Intent)
	}
	w.attempts[key] = a
	for _, s := range a.Spends {
		slot := string(c.Partition) + "\x00" + s
		if other := w.slots[slot]; other != "" && other != a.Intent {
			w.r.inside("I11", "%s is spent by %s and by %s", s, other, a.Intent)
		}
		w.slots[slot] = a.Intent
		coin, _, known, err := outgoing.Coins.One(context.Background(), w.Store, c.Partition, s)
		if err != nil || known && coin.State == outgoing.CoinFree {
			w.r.inside("I11", "%s is spent by %s and is free for others: %v", s, a.Intent, err)
		}
		if known && coin.State != outgoing.CoinGone && w.gone(c.Partition, s) {
			w.r.inside("R03", "%s is spent by %s as if it were there, and was said to be gone", s, a.Intent)
		}
	}
}

// ride is for the other orders of one merchant: its coins pay nobody else's.
func (w *witness) ride(p storage.Partition, intent, carrier string) {
	w.r.counts["carried"]++
	a, _, known, err := outgoing.Intents.One(context.Background(), w.Store, p, intent)
	b, _, also, wrong := outgoing.Intents.One(context.Background(), w.Store, p, carrier)
	if err != nil || wrong != nil || !known || !also || a.Tenant != b.Tenant {
		w.r.inside("I4", "order %s of %q is paid by order %s of %q: %v", intent, a.Tenant, carrier, b.Tenant, errors.Join(err, wrong))
	}
}

// payer is the order whose transactions pay an order: its own, or the one that
// carries it.
func (w *witness) payer(p storage.Partition, intent string) string {
	ride, _, carried, err := outgoing.Rides.One(context.Background(), w.Store, p, intent)
	if err == nil && carried {
		return ride.Carrier
	}
	return intent
}

// gone says that a coin which somebody sent us was taken away by a reorg, of which
// everybody has been told. Our own change comes back: we send it again.
func (w *witness) gone(p storage.Partition, outpoint string) bool {
	s, row, known, err := incoming.Sightings.One(context.Background(), w.Store, p, outpoint)
	return err == nil && known && s.State == incoming.Gone && !s.Internal && row.Due.IsZero()
}

// apart is the number of an attempt before that may land beside this one: it is open,
// and spends nothing that this one spends; 0 = none.
func (w *witness) apart(p storage.Partition, a outgoing.AttemptRow) int {
	for key, old := range w.attempts {
		part, _, _ := strings.Cut(key, "\x00")
		if part == string(p) && old.Intent == a.Intent && old.Fate == outgoing.Open &&
			!slices.ContainsFunc(old.Spends, func(s string) bool { return slices.Contains(a.Spends, s) }) {
			return old.Number
		}
	}
	return 0
}

// sweep: of one address there is one under way at a time, and none is of what we
// sent there ourselves.
func (w *witness) sweep(c *storage.Change, id string, s treasury.Sweep, fresh bool) {
	at := string(c.Partition) + "\x00" + s.Address
	active := s.State == treasury.SweepFunding || s.State == treasury.SweepMoving || s.State == treasury.SweepNew && s.Fundings > 0
	switch other := w.sweeping[at]; {
	case active && other != "" && other != id:
		w.r.inside("I11", "%s and %s are under way at once", other, id)
	case active:
		w.sweeping[at] = id
	case other == id:
		delete(w.sweeping, at)
	}
	if s.State == treasury.SweepDeferred && strings.Contains(s.Reason, "costs more than") {
		w.abandoned(id, s)
	}
	for _, key := range s.Deposits {
		tx, _, _ := strings.Cut(key, ":")
		if a, ours := w.attempts[string(c.Partition)+"\x00"+tx]; fresh && ours && a.Purpose != chain.ForWithdrawal {
			w.r.inside("I5", "%s is of our own transaction %s", id, tx)
		}
	}
}

// abandoned: coins are left where they are only if they are few, as nodes say that are
// where they say they are.
func (w *witness) abandoned(id string, s treasury.Sweep) {
	n := w.r.network(chain.Network(s.Network))
	if n.sim == nil || w.r.deep || w.r.rate[Lies] > 0 || w.r.rate[Mistakes] > 0 || w.r.rate[Prices] > 0 {
		return // else a false price makes the coins few, until it is put right
	}
	var came decimal.Decimal
	for _, key := range s.Deposits {
		d, _, _, err := incoming.Sightings.One(context.Background(), w.Store, storage.Network(s.Network), key)
		if err != nil {
			w.r.fail("store", "%v", err)
		}
		came = came.Add(d.Exact)
	}
	left := decimal.Min(came, n.sim.Balance(chain.Address(s.Address), s.Currency)).Mul(w.r.prices[currency(s.Currency).Token])
	if left.GreaterThan(decimal.New(100, 0)) {
		w.r.inside("I19", "%s is given up, %q, and %s has %s USD of it", id, s.Reason, s.Address, left)
	}
}

// setAside is I4 before it happens: what is set aside for gas is there. A cost
// that is booked meanwhile is set aside still.
func (w *witness) setAside(c *storage.Change, g treasury.GasFloat) {
	k := string(c.Partition) + "\x00" + g.Asset
	more := g.Reserved > w.aside[k]
	w.aside[k] = g.Reserved
	if t := w.r.current; more && t != nil && !t.paused && g.Reserved > w.equity(c.Partition, ledger.Asset(g.Asset)) {
		w.r.inside("I4", "%s sets %d %s aside for gas, and has %d", c.Partition, g.Reserved, g.Asset, w.equity(c.Partition, ledger.Asset(g.Asset)))
	}
}

func (w *witness) address(c *storage.Change, id string) {
	key := "address\x00" + string(c.Partition) + "\x00" + id
	if w.posted[key] {
		w.r.inside("I11", "address %s was derived twice", id)
	}
	w.posted[key] = true
}
