package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/recall"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// list is a payout: withdrawals that a merchant asks for in one call.
type list struct {
	m       *merchant
	key     string
	in      []withdrawal.CreateInput
	lines   []*payout
	wrong   string       // the field that is wrong in the lines of bad, "" = in none
	bad     map[int]bool // by place
	asked   int          // how often
	refused int          // how often the answer was that it is not made
	made    bool         // an answer said that it is
	until   time.Time    // its key is known
}

// list sends a new list, or does something with an old one.
func (r *run) list() string {
	var made []*list
	for _, l := range r.lists {
		if l.made && r.now.Before(l.until) {
			made = append(made, l)
		}
	}
	if len(made) > 0 && r.rng.IntN(3) == 0 {
		l := pick(r.rng, made)
		if r.rng.IntN(2) == 0 {
			return l.cancel()
		}
		return l.reuse()
	}
	l := r.newList()
	r.lists = append(r.lists, l)
	for i, p := range l.lines {
		l.m.payouts = append(l.m.payouts, p)
		r.outside.ordered(p, l.in[i])
	}
	l.tell()
	said, again := "not heard", &request{made: r.now}
	again.do = func(t *task) { said = l.request(t, again) }
	if !r.ask("payout list", again.do) {
		return "all busy"
	}
	r.backup(true)
	if r.rng.IntN(3) == 0 { // somebody presses the button twice
		r.ask("payout list", again.do)
	}
	what := fmt.Sprintf("merchant %d sends %s, %d lines", l.m.n, l.key, len(l.lines))
	if l.wrong != "" {
		what += fmt.Sprintf(" of which %v have a wrong %s", slices.Sorted(maps.Keys(l.bad)), l.wrong)
	}
	what += ": " + said
	if l.made && r.rng.IntN(4) == 0 {
		what += "; " + l.cancel()
	}
	if l.made && r.rng.IntN(6) == 0 {
		what += "; " + l.reuse()
	}
	return what
}

// newList draws a list: mostly of few lines, out of up to three coins and accounts.
func (r *run) newList() *list {
	r.requests++
	l := &list{m: r.anyMerchant(), key: fmt.Sprintf("list-%d", r.requests), until: r.now.Add(storage.OnceFor - 4*time.Hour), bad: map[int]bool{}}
	lines := 2 + r.rng.IntN(7)
	if r.rng.IntN(5) == 0 {
		lines = 2 + r.rng.IntN(39)
	}
	sources := 1 + r.rng.IntN(3)
	part := pick(r.rng, []int64{10, 30, 60, 80, 95, 130}) // of 100 that there are
	for s := range sources {
		n := lines / sources
		if s == 0 {
			n += lines % sources
		}
		l.draw(n, part)
	}
	r.rng.Shuffle(len(l.in), func(i, j int) {
		l.in[i], l.in[j] = l.in[j], l.in[i]
		l.lines[i], l.lines[j] = l.lines[j], l.lines[i]
	})
	if r.rng.IntN(5) == 0 {
		l.spoil()
	}
	return l
}

// draw adds lines that one account pays in one coin, out of a part of what it has: mostly only so
// many that each is worth its fee.
func (l *list) draw(lines int, part int64) {
	r := l.m.r
	c, account := l.m.rich()
	if slices.ContainsFunc(l.in, func(in withdrawal.CreateInput) bool { return in.Currency == c.Code && in.AccountID == account }) {
		return
	}
	from := wallet.Master
	if account != "" {
		from = account
	}
	b := r.truth.balances[balanceKey{storage.Tenant(l.m.id), ledger.Wallet(from), c.Asset()}]
	sum := c.Decimal(max(0, b.posted-b.held)).Mul(decimal.New(part, -2))
	if !sum.IsPositive() {
		if len(l.in) > 0 {
			return
		}
		sum = decimal.New(100, 0).Div(r.prices[c.Token])
	}
	if r.rng.IntN(5) > 0 {
		least := decimal.Max(c.MinWithdrawal.Mul(decimal.New(2, 0)), decimal.New(5, 0).Div(r.prices[c.Token]))
		lines = max(1, min(lines, int(sum.Div(least).IntPart())))
	}
	weights, total := make([]int64, lines), int64(0)
	for i := range weights {
		weights[i] = 1 + int64(r.rng.IntN(10))
		if r.rng.IntN(8) == 0 {
			weights[i] *= 10 // a dear one
		}
		total += weights[i]
	}
	for _, w := range weights {
		amount := sum.Mul(decimal.New(w, 0)).Div(decimal.New(total, 0)).Truncate(int32(c.Scale))
		amount = decimal.Max(amount, c.MinWithdrawal)
		l.add(c, account, amount)
	}
}

// add adds a line. Its recipient is one of some that are paid again and again, also twice in one
// list.
func (l *list) add(c *chain.Currency, account string, amount decimal.Decimal) {
	r := l.m.r
	p := &payout{m: l.m, c: c, key: fmt.Sprintf("%s/%d", l.key, len(l.in)), shared: true, several: true}
	p.to = r.network(c.Network).chain.Customer(fmt.Sprintf("staff %d of %s", r.rng.IntN(12), l.m.id))
	terms := withdrawal.Terms{Currency: c.Code, Address: string(p.to), FinalAmount: r.rng.IntN(4) == 0}
	if r.rng.IntN(5) == 0 {
		usd := amount.Mul(r.prices[c.Token]).Truncate(2)
		terms.PriceAmount = &usd
	} else {
		terms.Amount = &amount
	}
	l.in = append(l.in, withdrawal.CreateInput{Terms: terms, CustomID: p.key, AccountID: account})
	l.lines = append(l.lines, p)
}

// spoil makes some lines wrong, all in the same way.
func (l *list) spoil() {
	r := l.m.r
	how := r.rng.IntN(5)
	l.wrong = []string{"address", "address", "amount", "account_id", "currency"}[how]
	for range 1 + r.rng.IntN(min(3, len(l.in))) {
		i := r.rng.IntN(len(l.in))
		l.bad[i], l.lines[i].several = true, false
		switch in := &l.in[i]; how {
		case 0:
			in.Address = "nowhere"
		case 1:
			in.Address = string(l.m.hot[l.lines[i].c.Network])
		case 2:
			in.Amount, in.PriceAmount = &decimal.Decimal{}, nil
		case 3:
			in.AccountID = "of-nobody"
		case 4:
			in.Currency = "NONE"
		}
	}
}

// tell lets the judge know of a list that is about to be asked for.
func (l *list) tell() {
	told := judge.List{Shop: l.m.id, Key: l.key, Wrong: l.wrong, Bad: l.bad}
	for _, p := range l.lines {
		told.Orders = append(told.Orders, p.key)
	}
	l.m.r.outside.judge.Listing(told)
}

// request asks for it, for the first time or again.
func (l *list) request(t *task, again *request) string {
	r := l.m.r
	answered := l.m.await(t, again)
	l.asked++
	p, err := t.p.app.Withdrawals.CreatePayout(recall.OneByOne(context.Background()), l.m.id, l.key, l.in)
	answered()
	if unknown := errors.Is(err, chain.ErrCurrency); err != nil {
		if unknown && l.wrong != "currency" || !unknown && !verdict(err) {
			l.m.heard(t, err, again)
			return "a fault"
		}
		l.refused++
		r.outside.judge.Unlisted(l.key, named(err), l.asked == l.refused)
		return "refused: " + refusal(err)
	}
	var ids []string
	for i := range p.Withdrawals {
		ids = append(ids, p.Withdrawals[i].ID)
		if l.lines[min(i, len(l.lines)-1)].id = p.Withdrawals[i].ID; !l.made {
			r.counts["withdrawals"]++
		}
	}
	if r.outside.judge.Listed(l.key, p.ID, ids); !l.made {
		r.counts["lists"]++
		l.m.keep(l.key, again)
	}
	l.made = true
	return "payout " + short(p.ID)
}

func refusal(err error) string {
	var short *withdrawal.InsufficientError
	var refused *withdrawal.PayoutError
	switch {
	case errors.As(err, &short):
		return fmt.Sprintf("%s of %s %s", short.Requested, short.Available, short.Currency)
	case errors.As(err, &refused):
		return fmt.Sprintf("%d lines", len(refused.Items))
	}
	return kind(err)
}

// named are the fields that a refusal names, by the place of their line; nil = it names no line.
func named(err error) map[int][]string {
	var refused *withdrawal.PayoutError
	if !errors.As(err, &refused) {
		return nil
	}
	out := map[int][]string{}
	for i, errs := range refused.Items {
		for _, err := range errs {
			var invalid *withdrawal.InvalidError
			var address *chain.AddressError
			switch {
			case errors.As(err, &invalid):
				out[i] = append(out[i], slices.Sorted(maps.Keys(invalid.Fields))...)
			case errors.As(err, &address):
				out[i] = append(out[i], "address")
			case errors.Is(err, wallet.ErrNotFound):
				out[i] = append(out[i], "account_id")
			case errors.Is(err, chain.ErrCurrency):
				out[i] = append(out[i], "currency")
			}
		}
	}
	return out
}

// cancel cancels some of its lines.
func (l *list) cancel() string {
	r := l.m.r
	said := "cancels of " + l.key
	for range 1 + r.rng.IntN(len(l.lines)) {
		if p := pick(r.rng, l.lines); p.id != "" && r.unended(p) {
			said += " " + r.cancelWithdrawal(p)
		}
	}
	return said
}

// reuse sends another list under the same key.
func (l *list) reuse() string {
	r := l.m.r
	other := slices.Clone(l.in)
	switch r.rng.IntN(3) {
	case 0:
		other = other[1:]
	case 1:
		other[0].Address = string(r.network(l.lines[0].c.Network).chain.Customer("somebody else"))
	default:
		other = append(other, other[0])
	}
	said := "not heard"
	r.ask("payout list", func(t *task) {
		_, err := t.p.app.Withdrawals.CreatePayout(recall.OneByOne(context.Background()), l.m.id, l.key, other)
		if mismatch := errors.Is(err, storage.ErrIdempotencyMismatch); mismatch || err == nil {
			r.outside.judge.Reused(l.key, mismatch)
			said = fmt.Sprint(mismatch)
			return
		}
		l.m.heard(t, err, nil)
	})
	return fmt.Sprintf("another list under %s is refused: %s", l.key, said)
}
