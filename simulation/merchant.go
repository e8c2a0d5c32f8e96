package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// merchant is a tenant and what it knows of its own.
type merchant struct {
	r        *run
	n        int
	id       string
	url      string
	secret   string
	hot      map[chain.Network]chain.Address
	wallets  []string
	payments []*asked
	payouts  []*payout
	lost     []func(t *task)       // requests whose answer was never heard, to be made again
	answered []answered            // those that were, the first time
	percent  decimal.Decimal       // platform fee of withdrawals
	fee      decimal.Decimal       // of payments
	short    map[chain.Network]int // how often in a row its operator was asked for coins for fees
}

// payout is a withdrawal that was asked for.
type payout struct {
	m      *merchant
	id     string // "" = nobody has said that it was accepted
	c      *chain.Currency
	to     chain.Address
	shared bool // the address is one of ours, and gets other money too
	// The address is one to which several payouts of the merchant go, and nothing else.
	several bool
	key     string
}

func (r *run) anyMerchant() *merchant { return pick(r.rng, r.tenants) }

// coin picks something that is paid with in this world.
func (r *run) coin() *chain.Currency {
	return currency(pick(r.rng, r.anyNet().coins))
}

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

// verdict reports whether an error is the library's answer to what was asked.
func verdict(err error) bool {
	var (
		short   *withdrawal.InsufficientError
		state   *withdrawal.StateError
		pay     *payment.StateError
		missing *payment.NotFoundError
		invalid *payment.InvalidError
		address *chain.AddressError
	)
	return errors.As(err, &short) || errors.As(err, &state) || errors.As(err, &pay) || errors.As(err, &missing) ||
		errors.As(err, &invalid) || errors.As(err, &address) || errors.Is(err, withdrawal.ErrNotFound) || errors.Is(err, withdrawal.ErrHandingOver) ||
		errors.Is(err, wallet.ErrNotFound) || errors.Is(err, wallet.ErrNotEmpty)
}

// heard takes the answer to a request. What was not heard is asked again later,
// as clients do, under the same key.
func (m *merchant) heard(t *task, err error, again *request) bool {
	switch {
	case err == nil:
		return true
	case verdict(err):
		return false
	}
	m.r.excuse(t, err)
	if again != nil {
		m.later(again)
	}
	return false
}

// await notes a request that its process may not survive; answered says that
// it did.
func (m *merchant) await(t *task, again *request) (answered func()) {
	u := &unheard{t: t, m: m, again: again}
	m.r.unheard = append(m.r.unheard, u)
	return func() { u.answered = true }
}

// unheard is a request that was made and not answered yet.
type unheard struct {
	t        *task
	m        *merchant
	answered bool
	again    *request
}

// request is what is asked under a key, and asked again until it is heard.
type request struct {
	made  time.Time // for the first time
	quote string    // what was wrong with the source of prices then
	do    func(t *task)
}

// collect hands requests of dead processes back to their merchants.
func (r *run) collect() {
	r.unheard = slices.DeleteFunc(r.unheard, func(u *unheard) bool {
		sleeps := u.t.p.task == u.t
		if !u.answered && !sleeps {
			u.m.later(u.again)
		}
		return !sleeps
	})
}

// later keeps a request to be made again, for as long as its key is known.
func (m *merchant) later(again *request) {
	until := again.made.Add(storage.OnceFor - 4*time.Hour)
	m.lost = append(m.lost, func(t *task) {
		if m.r.now.Before(until) {
			again.do(t)
		}
	})
}

func (r *run) retry() string {
	r.collect()
	m := r.anyMerchant()
	if len(m.lost) == 0 {
		return m.repeat()
	}
	again := m.lost[0]
	if !r.ask("retry", func(t *task) { again(t) }) {
		return "all busy"
	}
	m.lost = m.lost[1:]
	return fmt.Sprint("merchant ", m.n)
}

// repeat makes a request again that was answered: a button that is pressed twice.
func (m *merchant) repeat() string {
	m.answered = slices.DeleteFunc(m.answered, func(a answered) bool { return !m.r.now.Before(a.until) })
	if len(m.answered) == 0 {
		return "nothing"
	}
	a := pick(m.r.rng, m.answered)
	ok := m.r.ask("repeat", func(t *task) { a.again(t) })
	return fmt.Sprintf("merchant %d repeats %s: %t", m.n, a.key, ok)
}

// answered is a request whose answer was heard, and until when its key is known.
type answered struct {
	key   string
	until time.Time
	again func(t *task)
}

// keep remembers a request that was answered. Its key is known from when it was first made,
// or a little later.
func (m *merchant) keep(key string, again *request) {
	m.answered = append(m.answered, answered{key, again.made.Add(storage.OnceFor - 4*time.Hour), again.do})
}

func (r *run) askWithdrawal() string {
	m := r.anyMerchant()
	c, account := m.rich()
	said := r.order(m, c, account)
	if r.network(c.Network).chain.Family() == chain.UTXOFamily { // where one transaction can pay them all
		for range 1 + r.rng.IntN(5) {
			if r.rng.IntN(3) == 0 { // several merchants' can be due at once
				m, account = r.anyMerchant(), ""
			}
			said += "; " + r.order(m, c, account)
		}
	}
	return said
}

// order asks for a withdrawal from an account.
func (r *run) order(m *merchant, c *chain.Currency, account string) string {
	r.requests++
	net := r.network(c.Network)
	p := &payout{m: m, c: c, key: fmt.Sprintf("withdrawal-%d", r.requests)}
	p.to = net.chain.Customer("supplier " + p.key)
	if a := r.anyPayment(); a != nil && a.net == net && r.rng.IntN(10) == 0 {
		p.to, p.shared = a.address, true
	}
	terms := withdrawal.Terms{Currency: c.Code, Address: string(p.to), FinalAmount: r.rng.IntN(2) == 0}
	figure := decimal.New(int64(5+r.rng.IntN(60)), 0)
	if r.rng.IntN(2) == 0 {
		terms.PriceAmount = &figure
	} else {
		figure = figure.Div(r.prices[c.Token]).Truncate(int32(c.Scale))
		if c.Stable {
			figure = figure.Add(decimal.New(int64(r.rng.IntN(1_000_000)), -6))
		}
		terms.Amount = &figure
	}
	said, ok := p.order(withdrawal.CreateInput{Terms: terms, CustomID: p.key, AccountID: account})
	if !ok {
		return said
	}
	r.backup(true)
	return fmt.Sprintf("merchant %d, %s %s: %s", m.n, figure, c.Code, said)
}

// order asks some process for it.
func (p *payout) order(in withdrawal.CreateInput) (said string, ok bool) {
	r := p.m.r
	p.m.payouts = append(p.m.payouts, p)
	r.outside.ordered(p, in)
	said = "not heard"
	again := &request{made: r.now, quote: r.quote}
	again.do = func(t *task) { said = p.request(t, in, again) }
	if !r.ask("create withdrawal", again.do) {
		return "all busy", false
	}
	return said, true
}

// withdraw orders so much from an account, to a supplier of its own.
func (r *run) withdraw(m *merchant, c *chain.Currency, account string, amount decimal.Decimal) string {
	r.requests++
	p := &payout{m: m, c: c, key: fmt.Sprintf("withdrawal-%d", r.requests)}
	p.to = r.network(c.Network).chain.Customer("supplier " + p.key)
	said, _ := p.order(withdrawal.CreateInput{
		Terms: withdrawal.Terms{Currency: c.Code, Address: string(p.to), Amount: &amount}, CustomID: p.key, AccountID: account,
	})
	return said
}

// accepted finds what was stored for a request.
func (r *run) accepted(p *payout) (withdrawal.Withdrawal, bool) {
	if p.id == "" {
		for id, v := range r.truth.payouts {
			if v.Tenant == p.m.id && v.CustomID == p.key {
				p.id = id
			}
		}
	}
	v, ok := r.truth.payouts[p.id]
	v.ID = p.id
	return v, ok
}

// rich picks a wallet and a currency to pay with: mostly ones that have
// something.
func (m *merchant) rich() (c *chain.Currency, account string) {
	r := m.r
	var funded []balanceKey
	for k, b := range r.truth.balances {
		if _, ok := k.account.WalletID(); ok && k.part == storage.Tenant(m.id) && b.posted > b.held {
			funded = append(funded, k)
		}
	}
	if len(funded) == 0 || r.rng.IntN(6) == 0 {
		return r.coin(), ""
	}
	slices.SortFunc(funded, func(a, b balanceKey) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.asset, b.asset))
	})
	k := pick(r.rng, funded)
	account, _ = k.account.WalletID()
	if account == wallet.Master {
		account = ""
	}
	return currency(string(k.asset)), account
}

// request asks for a withdrawal, for the first time or again.
func (p *payout) request(t *task, in withdrawal.CreateInput, again *request) string {
	answered, quote := p.m.await(t, again), p.m.r.quote
	in.Key = p.key
	v, err := t.p.app.Withdrawals.Create(context.Background(), p.m.id, in)
	answered()
	priced := in.PriceAmount != nil && p.id == ""
	if err != nil {
		if priced {
			p.m.r.outside.judge.Unpriced(quote)
		}
		p.m.heard(t, err, again)
		return "refused: " + kind(err)
	}
	if priced && again.made.Equal(p.m.r.now) && again.quote == quote && quote == p.m.r.quote && !t.paused && len(p.m.r.typed) == 0 {
		p.m.r.outside.judge.Priced("withdrawal "+v.ID, quote)
	}
	if p.id == "" {
		p.m.r.counts["withdrawals"]++
		p.m.keep(p.key, again)
	}
	p.id = v.ID
	p.m.r.outside.judge.Accepted(p.key, v.ID)
	return "withdrawal " + short(v.ID)
}

func kind(err error) string {
	if verdict(err) {
		return fmt.Sprintf("%T", err)
	}
	return "a fault"
}

func (r *run) cancelWithdrawal(p *payout) string {
	if p == nil {
		return "nothing"
	}
	said := "not heard"
	r.ask("cancel withdrawal", func(t *task) {
		_, err := t.p.app.Withdrawals.Cancel(context.Background(), p.m.id, p.id)
		said = fmt.Sprint(p.m.heard(t, err, nil))
	})
	return short(p.id) + " " + said
}

// regret cancels a withdrawal, at times with all else that its merchant pays the
// same coin with.
func (r *run) regret(p *payout) string {
	said := r.cancelWithdrawal(p)
	if p == nil || r.rng.IntN(2) == 0 {
		return said
	}
	for _, x := range p.m.payouts {
		if x != p && x.c == p.c && r.unended(x) {
			said += "; " + r.cancelWithdrawal(x)
		}
	}
	return said
}

// unended reports whether a withdrawal was heard of and has not ended.
func (r *run) unended(p *payout) bool {
	s := r.truth.payouts[p.id].Status
	return p.id != "" && (s == withdrawal.Pending || s == withdrawal.Processing)
}

// withdrawals are those that somebody heard of.
func (r *run) withdrawals() (all []*payout) {
	for _, m := range r.tenants {
		for _, p := range m.payouts {
			if p.id != "" {
				all = append(all, p)
			}
		}
	}
	return all
}

// anyPayout is a withdrawal, mostly one that has not ended; nil = there is none.
func (r *run) anyPayout() *payout {
	all := r.withdrawals()
	open := slices.DeleteFunc(slices.Clone(all), func(p *payout) bool { return !r.unended(p) })
	if len(open) > 0 && r.rng.IntN(4) > 0 {
		all = open
	}
	if len(all) == 0 {
		return nil
	}
	return pick(r.rng, all)
}

func (r *run) askWallet() string {
	m := r.anyMerchant()
	if len(m.wallets) > 2 || len(m.wallets) > 0 && r.rng.IntN(2) == 0 {
		return m.rename()
	}
	r.requests++
	name := fmt.Sprintf("sub-%d", r.requests)
	ok := r.ask("create wallet", func(t *task) {
		v, err := t.p.app.Wallets.Create(context.Background(), m.id, wallet.CreateInput{Name: name, ExternalID: name})
		if m.heard(t, err, nil) {
			m.wallets = append(m.wallets, v.ID)
		}
	})
	return fmt.Sprint(name, ok)
}

// rename gives a wallet another name, which moves no money and must keep nobody
// who does from it.
func (m *merchant) rename() string {
	id := pick(m.r.rng, m.wallets)
	ok := m.r.ask("rename wallet", func(t *task) {
		_, err := t.p.app.Wallets.Rename(context.Background(), m.id, id, fmt.Sprint("step ", m.r.step))
		m.heard(t, err, nil)
	})
	return fmt.Sprintf("renames %s: %t", short(id), ok)
}

func (r *run) askTransfer() string {
	m := r.anyMerchant()
	if len(m.wallets) == 0 {
		return "nobody"
	}
	c, from := m.rich()
	way, sub := wallet.ToSub, pick(r.rng, m.wallets)
	if from != "" {
		way, sub = wallet.ToMaster, from
	}
	amount := decimal.New(int64(1+r.rng.IntN(30)), 0).Div(r.prices[c.Token]).Truncate(int32(c.Scale))
	in := wallet.TransferInput{Direction: way, WalletID: sub, Currency: c.Code, Amount: amount}
	r.requests++
	in.Key = fmt.Sprintf("transfer-%d", r.requests)
	id, said := "", "not heard"
	again := &request{made: r.now}
	again.do = func(t *task) {
		answered := m.await(t, again)
		v, err := t.p.app.Wallets.CreateTransfer(context.Background(), m.id, in)
		answered()
		if said = fmt.Sprint(err == nil); !m.heard(t, err, again) {
			return
		}
		r.outside.judge.Transferred(in.Key, v.ID)
		if id == "" {
			m.keep(in.Key, again)
			r.counts["transfers"]++
		}
		id = v.ID
	}
	r.ask("create transfer", again.do)
	return fmt.Sprintf("%s %s %s: %s", way, amount, c.Code, said)
}
