package world

import (
	"context"
	"fmt"
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

// compare holds what the library made of everything against what it must come
// to, from the chains and the requests alone.
func (r *run) compare() {
	for _, m := range r.tenants {
		r.payouts(m)
		r.wallets(m, r.deposits(m))
		r.delivered(m)
		r.gas(m)
	}
	for _, n := range r.chains {
		r.conserved(n)
	}
	if r.w.Check != nil && r.failure == nil {
		if err := r.w.Check(r.turn(&task{p: r.procs[0]}, r.tenants[0])); err != nil {
			r.fail("check", "%v", err)
		}
	}
}

// payouts is I7 in the end: paid exactly once, or not at all.
func (r *run) payouts(m *merchant) {
	for _, p := range m.payouts {
		v, ok := r.accepted(p)
		if !ok || p.shared {
			continue
		}
		got, want := r.network(p.c.Network).chain.Balance(p.to, p.c.Code), decimal.Decimal{}
		if v.Status == withdrawal.Completed {
			want = p.c.Decimal(v.Amount)
		}
		if !got.Equal(want) && !r.deep { // then only that it is never too much: see sent
			r.inside("I7", "withdrawal %s is %s and paid %s of %s", v.ID, v.Status, got, want)
		}
	}
}

// come is what the chain says has come to one payment in the end.
type come struct {
	wallet   map[balanceKey]ledger.Amount
	suspense map[ledger.Asset]ledger.Amount
	platform map[ledger.Asset]ledger.Amount
}

// deposits is I5 in the end: each transfer of the canonical chain to a payment's
// address is one deposit in its place, and each deposit that is booked is one
// such transfer.
func (r *run) deposits(m *merchant) come {
	part := storage.Tenant(m.id)
	out := come{map[balanceKey]ledger.Amount{}, map[ledger.Asset]ledger.Amount{}, map[ledger.Asset]ledger.Amount{}}
	rows := map[string]payment.Deposit{}
	for key, d := range r.truth.deposits {
		if p, id, _ := strings.Cut(key, "\x00"); p == string(part) {
			rows[id] = d
		}
	}
	for _, a := range m.payments {
		p := r.truth.payments[a.id]
		for _, x := range a.net.chain.Transfers(a.address) {
			id := fmt.Sprintf("%s/%s:%d", a.net.name, x.Tx, x.Ordinal)
			d, known := rows[id]
			delete(rows, id)
			if row, ours := r.truth.attempts[string(storage.Network(string(a.net.name)))+"\x00"+x.Tx]; ours && row.Purpose != chain.ForWithdrawal {
				if known && d.Booking != payment.Unbooked {
					r.inside("I5", "our own transaction %s is booked as a deposit: %s", x.Tx, d.Booking)
				}
				continue
			}
			r.place(a, &p, &x, &d, known)
		}
		r.outcome(a, &p)
		k := balanceKey{part, ledger.Wallet(p.Wallet), ledger.Asset(p.Currency)}
		out.wallet[k] += p.Net
		out.platform[ledger.Asset(p.Currency)] += p.Platform
	}
	for id, d := range r.truth.deposits {
		p, id, _ := strings.Cut(id, "\x00")
		if p != string(part) {
			continue
		}
		switch d.Booking {
		case payment.InSuspense:
			out.suspense[ledger.Asset(d.Currency)] += d.Amount
		case payment.Resolved:
			out.wallet[balanceKey{part, ledger.Wallet(d.Wallet), ledger.Asset(d.Currency)}] += d.Amount
		}
		if _, left := rows[id]; left && d.Booking != payment.Unbooked && d.Booking != payment.Reversed && d.Booking != payment.Written {
			if a := m.at(d.Address); a != nil { // else a payment whose creation nobody heard of
				r.inside("I5", "deposit %s of %d %s is booked as %s, and is not on the chain", id, d.Amount, d.Currency, d.Booking)
			}
		}
	}
	return out
}

func (m *merchant) at(address string) *asked {
	for _, a := range m.payments {
		if string(a.address) == address {
			return a
		}
	}
	return nil
}

// place says where one transfer belongs: decisions §3.
func (r *run) place(a *asked, p *payment.Payment, x *chain.Transfer, d *payment.Deposit, known bool) {
	if x.Currency == "" {
		if d.Booking != payment.Unbooked {
			r.inside("D03", "a transfer of the unlisted token %s is booked as %s", x.Contract, d.Booking)
		}
		return
	}
	c := currency(x.Currency)
	units := x.Amount.Shift(int32(c.Scale)).BigInt()
	wrong := func(want string) {
		r.inside("I5", "transfer %s:%d of %s %s to payment %s (%s, due %s, until %s), sent %s, mined %s: should be %s, is %q booked %q (row: %t)",
			x.Tx, x.Ordinal, x.Amount, x.Currency, a.id, p.Status, a.due, p.ExpiresAt.Format("02 15:04:05"),
			r.first[string(a.net.name)+x.Tx].Format("02 15:04:05"), x.Block.Time.Format("02 15:04:05"), want, d.Role, d.Booking, known)
	}
	if x.Amount.LessThan(c.Dust) || units.Sign() == 0 {
		if d.Booking != payment.Unbooked {
			wrong("dust")
		}
		return
	}
	if !known {
		wrong("known")
		return
	}
	if big64(d.Amount).Cmp(units) != 0 {
		wrong("of that amount")
	}
	inWallet := d.Booking == payment.InWallet
	aside := d.Booking == payment.InSuspense || d.Booking == payment.Resolved || d.Booking == payment.Refunded
	switch {
	case x.Currency != a.c.Code:
		if !aside {
			wrong("in suspense, being the wrong token")
		}
	case !inWallet && !aside:
		wrong("booked")
	case d.State != incoming.Final:
		wrong("final, and is " + string(d.State))
	case r.deep:
	case inWallet && !a.late[x.Tx].IsZero() && x.Block.Time.Equal(a.late[x.Tx]):
		wrong("in suspense: nobody saw it before its block, which is of after the end")
	case inWallet && !r.mayBeInTime(p, x):
		wrong("in suspense, being late")
	case !inWallet && r.mustBeInTime(a, p, x):
		wrong("credited, being in time")
	}
}

// mustBeInTime: it is in a block of before the end of the window, whoever's
// clock is asked.
func (r *run) mustBeInTime(a *asked, p *payment.Payment, x *chain.Transfer) bool {
	return !a.cancel && x.Block.Time.Before(p.ExpiresAt.Add(-r.skewed))
}

// mayBeInTime: it, or what it replaced, was sent before the end of the window,
// on somebody's clock.
func (r *run) mayBeInTime(p *payment.Payment, x *chain.Transfer) bool {
	sent, ok := r.first[p.Network+x.Tx]
	if !ok {
		return true // malleated, or ours: nobody knows when it was sent
	}
	return sent.Before(p.ExpiresAt.Add(r.skewed + time.Second))
}

// outcome is what a payment must have become, given what was credited to it.
func (r *run) outcome(a *asked, p *payment.Payment) {
	var received ledger.Amount
	for key, d := range r.truth.deposits {
		if strings.HasPrefix(key, string(storage.Tenant(a.m.id))+"\x00") && d.Payment == a.id && d.Booking == payment.InWallet {
			received += d.Amount
		}
	}
	if received != p.Received {
		r.inside("model", "payment %s has received %d, its deposits make %d", a.id, p.Received, received)
	}
	enough := p.Received >= p.Due-p.Tolerance
	switch {
	case r.deep:
	case enough && p.Status != payment.Completed:
		r.inside("model", "payment %s has %d of %d and is %s", a.id, p.Received, p.Due, p.Status)
	case !enough && p.Status == payment.Completed:
		r.inside("model", "payment %s has %d of %d and is completed", a.id, p.Received, p.Due)
	case enough && p.Received > p.Due && p.Type != payment.TypeOver, enough && p.Received <= p.Due && p.Type != payment.TypeFull,
		!enough && p.Received > 0 && p.Type != payment.TypePartial:
		r.inside("model", "payment %s has %d of %d and is called %q", a.id, p.Received, p.Due, p.Type)
	}
}

// wallets compares each balance with the sum of what must have moved it.
func (r *run) wallets(m *merchant, in come) {
	part := storage.Tenant(m.id)
	want := in.wallet
	for id, p := range r.truth.payments { // those whose creation nobody heard of
		if m.owns(part, id) && m.find(id) == nil {
			want[balanceKey{part, ledger.Wallet(p.Wallet), ledger.Asset(p.Currency)}] += p.Net
			in.platform[ledger.Asset(p.Currency)] += p.Platform
		}
	}
	for _, v := range r.truth.payouts {
		if v.Tenant == m.id && v.Status == withdrawal.Completed {
			want[balanceKey{part, ledger.Wallet(v.Wallet), ledger.Asset(v.Currency)}] -= v.Requested
			in.platform[ledger.Asset(v.Currency)] += v.PlatformFee
		}
	}
	for id, t := range r.truth.moves {
		if m.owns(part, id) && t.Status == wallet.TransferCompleted {
			source, target := wallet.Master, t.Wallet
			if t.Direction == wallet.ToMaster {
				source, target = target, source
			}
			want[balanceKey{part, ledger.Wallet(source), ledger.Asset(t.Currency)}] -= t.Amount
			want[balanceKey{part, ledger.Wallet(target), ledger.Asset(t.Currency)}] += t.Amount
		}
	}
	for k := range r.truth.balances { // what nothing must have moved is nothing
		_, wallet := k.account.WalletID()
		switch {
		case k.part != part:
		case wallet:
			want[k] += 0
		case k.account == ledger.FeesPlatform:
			in.platform[k.asset] += 0
		case k.account == ledger.Suspense:
			in.suspense[k.asset] += 0
		}
	}
	for k, w := range want {
		id, _ := k.account.WalletID()
		have := r.truth.balances[k].posted + r.truth.balances[balanceKey{part, ledger.Receivable(id), k.asset}].posted
		if have != w {
			r.inside("model", "wallet %q of %s has %d %s, should have %d", id, part, have, k.asset, w)
		}
		if held := r.truth.balances[k].held; held != 0 && !r.deep {
			r.inside("I9", "wallet %q of %s still holds %d %s for nobody", id, part, held, k.asset)
		}
	}
	for asset, w := range in.platform {
		if have := r.truth.balances[balanceKey{part, ledger.FeesPlatform, asset}].posted; have != w {
			r.inside("model", "the platform earned %d %s of %s, should be %d", have, asset, part, w)
		}
	}
	for asset, w := range in.suspense {
		if have := r.truth.balances[balanceKey{part, ledger.Suspense, asset}].posted; have != w {
			r.inside("model", "suspense of %s has %d %s, should be %d", part, have, asset, w)
		}
	}
}

func (m *merchant) find(id string) *asked {
	for _, a := range m.payments {
		if a.id == id {
			return a
		}
	}
	return nil
}

// owns reports whether an object was written in a tenant's partition.
func (m *merchant) owns(part storage.Partition, id string) bool {
	for _, t := range []*storage.Table{payment.Payments.Table, wallet.TransferRows.Table} {
		if m.r.truth.versions[rowKey{t, part, id}] > 0 {
			return true
		}
	}
	return false
}

// delivered is I12 in the end: each event has reached its receiver, or was tried
// to the end of the schedule, or waited for a day for a host that does not answer.
func (r *run) delivered(m *merchant) {
	prefix := string(storage.Tenant(m.id)) + "\x00"
	for key, e := range r.truth.outbox {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		_, got := r.inbox.bodies[key]
		switch {
		case e.Status == webhook.StatusDelivered && !got:
			r.inside("I12", "webhook %s is called delivered and never came", key)
		case e.Status == webhook.StatusFailed && e.Attempts != len(schedule)+1 && e.Done.Sub(e.Created) < 24*time.Hour-r.skewed:
			r.inside("I12", "webhook %s was given up after %d attempts", key, e.Attempts)
		case e.Status == webhook.StatusSkipped:
			r.inside("I12", "webhook %s was skipped", key)
		}
	}
}

// gas: what is set aside is the sum of what open reservations say, and each of
// them is for something that has not ended: a sweep may begin at the last moment.
func (r *run) gas(m *merchant) {
	if r.deep {
		return
	}
	reserved, count := map[string]ledger.Amount{}, map[string]int64{}
	for _, row := range r.find(treasury.Reservations.Table, storage.Tenant(m.id)) {
		res := treasury.Reservations.Value(row)
		if !res.Open {
			continue
		}
		reserved[res.Asset] += res.Amount
		count[res.Asset]++
		if !r.underWay(row.ID) {
			r.inside("I9", "%d %s of merchant %d are still set aside for %s, which has ended", res.Amount, res.Asset, m.n, row.ID)
		}
	}
	for _, row := range r.find(treasury.GasFloats.Table, storage.Tenant(m.id)) {
		if g := treasury.GasFloats.Value(row); g.Reserved != reserved[row.ID] || g.Count != count[row.ID] {
			r.inside("I9", "%d %s of merchant %d are set aside for %d, where %d are for %d",
				g.Reserved, g.Asset, m.n, g.Count, reserved[row.ID], count[row.ID])
		}
	}
}

// underWay reports whether some network has the intent and has not ended it, or
// whether it is of a sweep that still waits for its turn.
func (r *run) underWay(intent string) bool {
	ended := []outgoing.State{outgoing.Settled, outgoing.Failed, outgoing.Cancelled}
	sweep := intent[max(0, strings.Index(intent, "sweep/")):] // "gas/1/sweep/…" is its gas
	for _, n := range r.chains {
		p := storage.Network(string(n.name))
		in, _, ok, err := outgoing.Intents.One(context.Background(), r.truth, p, intent)
		if err != nil {
			r.fail("store", "%v", err)
		}
		if ok {
			return !slices.Contains(ended, in.State)
		}
		s, _, ok, err := treasury.Sweeps.One(context.Background(), r.truth, p, sweep)
		if err != nil {
			r.fail("store", "%v", err)
		}
		if ok {
			return s.State != treasury.SweepDone && s.State != treasury.SweepDeferred && s.State != treasury.SweepReplaced
		}
	}
	return false
}

// find reads all rows of a partition that the run has use for.
func (r *run) find(t *storage.Table, p storage.Partition) []storage.Row {
	rows, err := r.truth.Find(context.Background(), storage.Query{Table: t, Partition: p, Limit: 100_000})
	if err != nil {
		r.fail("store", "%v", err)
	}
	return rows
}

// conserved holds all addresses of ours against the books: what is there is what
// the ledger says is there, plus what operators said that they sent back.
func (r *run) conserved(n *network) {
	rows := r.find(incoming.Addresses.Table, storage.Network(string(n.name)))
	for _, code := range n.coins {
		c := currency(code)
		var held, books decimal.Decimal
		for _, row := range rows {
			if incoming.Addresses.Value(row).Tenant != "" {
				held = held.Add(n.chain.Balance(chain.Address(row.ID), code))
			}
		}
		for k, b := range r.truth.balances {
			if k.account == ledger.Chain(string(n.name)) && k.asset == c.Asset() {
				books = books.Sub(c.Decimal(b.posted))
			}
		}
		slack := decimal.New(1, -int32(c.Scale)).Mul(decimal.New(int64(len(r.truth.attempts)+len(r.truth.deposits)+1), 0))
		for _, d := range r.truth.deposits {
			if d.Booking == payment.Refunded && d.Currency == code {
				books = books.Add(c.Decimal(d.Amount)) // a person said that it was sent back, and did not
			}
			if d.Booking == payment.Unbooked && d.Currency == code && d.State != incoming.Gone {
				slack = slack.Add(d.Exact) // dust
			}
		}
		r.spendable(n, c, held, slack)
		if held.Sub(books).Abs().GreaterThan(slack) && !r.deep {
			r.inside("I4", "%s on %s: our addresses hold %s, the books say %s", code, n.name, held, books)
		}
	}
}

// spendable: where coins are outputs, each that is at an address of ours can be
// spent. One that nobody knows of is as good as lost.
func (r *run) spendable(n *network, c *chain.Currency, held, slack decimal.Decimal) {
	if n.chain.Family() != chain.UTXOFamily || r.deep {
		return
	}
	var coins decimal.Decimal
	for _, row := range r.find(outgoing.Coins.Table, storage.Network(string(n.name))) {
		if v := outgoing.Coins.Value(row); v.State == outgoing.CoinFree || v.State == outgoing.CoinReserved {
			coins = coins.Add(c.Decimal(v.Amount))
		}
	}
	if coins.Sub(held).Abs().GreaterThan(slack) {
		r.inside("I4", "%s on %s: our addresses hold %s, and outputs of %s can be spent", c.Code, n.name, held, coins)
	}
}
