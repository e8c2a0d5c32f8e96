package withdrawal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/internal/recall"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// maxPayout is how many withdrawals a payout may have.
const maxPayout = 1000

// maxAsked is how many recipients nodes are asked about at once.
const maxAsked = 16

// Payout is a list of withdrawals that were made and held in one Change. Each of them goes its
// own way afterwards, as one that was made alone.
type Payout struct {
	ID          string
	Replayed    bool `json:"-"` // CreatePayout answered from an earlier request with the same key
	CreatedAt   time.Time
	Withdrawals []Withdrawal // in the order of the request
}

// Counts are how many of the withdrawals have each status.
func (p *Payout) Counts() map[Status]int {
	out := map[Status]int{}
	for i := range p.Withdrawals {
		out[p.Withdrawals[i].Status]++
	}
	return out
}

// payoutRow is a Payout as it is stored.
type payoutRow struct {
	Withdrawals []string  `db:"withdrawals,json"` // ids
	CreatedAt   time.Time `db:"created_at"`
}

var payoutRows = storage.NewTable[payoutRow]("payouts")

// PayoutError names the withdrawals of a payout that cannot be made, by their place in the
// request, from 0. Their errors are those of Create. Nothing was made.
type PayoutError struct {
	Items map[int][]error
	Other error // a fault that is none of the request's and kept the rest from being looked at; nil = there was none
}

func (e *PayoutError) Error() string {
	const most = 5
	var out []string
	places := slices.Sorted(maps.Keys(e.Items))
	for _, i := range places[:min(most, len(places))] {
		for _, err := range e.Items[i] {
			out = append(out, place(i)+": "+err.Error())
		}
	}
	if len(places) > most {
		out = append(out, fmt.Sprintf("and %d more", len(places)-most))
	}
	if e.Other != nil {
		out = append(out, "the rest was not looked at: "+e.Other.Error())
	}
	return "withdrawal: a payout was refused: " + strings.Join(out, "; ")
}

// Unwrap returns the errors in the order of the request, and Other after them.
func (e *PayoutError) Unwrap() []error {
	var out []error
	for _, i := range slices.Sorted(maps.Keys(e.Items)) {
		out = append(out, e.Items[i]...)
	}
	if e.Other != nil {
		out = append(out, e.Other)
	}
	return out
}

// add notes what is wrong with a withdrawal, if anything is.
func (e *PayoutError) add(i int, errs ...error) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		if e.Items == nil {
			e.Items = map[int][]error{}
		}
		e.Items[i] = append(e.Items[i], err)
	}
}

func (e *PayoutError) err() error {
	if len(e.Items) == 0 {
		return nil
	}
	return e
}

// place names a withdrawal of a request.
func place(i int) string { return "withdrawals[" + strconv.Itoa(i) + "]" }

// CreatePayout accepts all withdrawals of a list, 1 to 1,000 of them, and holds their whole cost in
// one Change, or does nothing. The same address may be there several times: each is a withdrawal of
// its own. Limits of a day and balances bound their sum. Policy judges each when its turn comes, as
// it judges one that was made alone. key is of the whole list, as CreateInput.Key is of one; those
// of the list have none. Errors are those of Create: what concerns single withdrawals is in a
// *PayoutError, *InsufficientError is of all that a wallet would pay in a currency, and
// *InvalidError is of the list.
func (s *Service) CreatePayout(ctx context.Context, tenant, key string, list []CreateInput) (Payout, error) {
	p := storage.Tenant(tenant)
	asked := slices.Clone(list)
	for i := range asked {
		asked[i].By = ""
	}
	once, err := storage.OnceOf(ctx, key, asked)
	if err != nil {
		return Payout{}, err
	}
	leave, err := s.inFlight.Enter(p, once)
	defer leave()
	if err != nil {
		return Payout{}, err
	}
	if first, replay, err := once.Find(ctx, s.c.Store, p, s.c.Now()); err != nil || replay {
		return replayedPayout(once, first, err)
	}
	d, err := s.draftPayout(ctx, tenant, list)
	if err != nil {
		return Payout{}, err
	}
	return s.commitPayout(ctx, d, once)
}

// CheckPayout says what is wrong with a list by itself: *InvalidError where that is its length,
// else a *PayoutError with every wrong field of every withdrawal.
func (s *Service) CheckPayout(list []CreateInput) error {
	_, err := s.checkPayout(slices.Clone(list))
	return err
}

// checkPayout returns the currencies of the withdrawals. It brings their addresses into one writing.
func (s *Service) checkPayout(list []CreateInput) ([]*chain.Currency, error) {
	if n := len(list); n < 1 || n > maxPayout {
		return nil, fault.Invalid("withdrawals", fmt.Sprintf("must have 1 to %d entries", maxPayout))
	}
	currencies := make([]*chain.Currency, len(list))
	wrong := &PayoutError{}
	for i := range list {
		var err error
		if currencies[i], err = s.validate(&list[i]); list[i].Key != "" {
			err = fault.Invalid("key", "is the payout's")
		}
		if err != nil {
			wrong.add(i, err)
		}
	}
	return currencies, wrong.err()
}

// found is an answer to a question that several withdrawals of a payout have.
type found[T any] struct {
	value T
	err   error
}

// payoutDraft is a payout that was checked and priced, and is not made yet.
type payoutDraft struct {
	Payout
	tenant     string
	accounts   []string          // by withdrawal, as the request names them
	currencies []*chain.Currency // by withdrawal
	payers     map[string]*found[payer]
}

// draftPayout validates and prices; it writes nothing. What is the same for several withdrawals
// is asked once.
func (s *Service) draftPayout(ctx context.Context, tenant string, list []CreateInput) (*payoutDraft, error) {
	list = slices.Clone(list)
	wrong := &PayoutError{}
	currencies, err := s.checkPayout(list)
	if err != nil && !errors.As(err, &wrong) {
		return nil, err
	}
	d := &payoutDraft{tenant: tenant, currencies: currencies, accounts: make([]string, len(list))}
	d.ID = s.c.NewID()
	pricing := &pricing{s: s, tenant: tenant, in: list, c: currencies, out: make([]Withdrawal, len(list)), wrong: wrong}
	for i := range list {
		d.accounts[i] = list[i].AccountID
	}
	if d.payers, err = pricing.read(ctx); err != nil {
		wrong.Other = err // what is wrong with the request stays so
		return nil, cmp.Or(wrong.err(), err)
	}
	if err := pricing.price(recall.Within(ctx)); err != nil {
		return nil, err
	}
	d.Withdrawals = pricing.out
	for i := range d.Withdrawals {
		d.Withdrawals[i].ID = s.c.NewID()
	}
	return d, nil
}

// pricing makes the withdrawals of a request, apart from what committing them adds.
type pricing struct {
	s      *Service
	tenant string
	in     []CreateInput
	c      []*chain.Currency // by withdrawal
	out    []Withdrawal

	to    []*found[chain.Address] // by withdrawal
	fees  map[string]*tenantFee   // by currency
	asked []ledger.Amount         // by withdrawal
	wrong *PayoutError            // withdrawals that cannot be made: nothing more is asked of them

	down atomic.Bool // a quote cannot be had: nobody else is asked
}

// read asks the store what all withdrawals need of it, side by side.
func (p *pricing) read(ctx context.Context) (map[string]*found[payer], error) {
	s := p.s
	var reads []func(context.Context) error
	type destination struct {
		network chain.Network
		address string
	}
	destinations, payers := map[destination]*found[chain.Address]{}, map[string]*found[payer]{}
	p.fees, p.to = map[string]*tenantFee{}, make([]*found[chain.Address], len(p.in))
	for i := range p.in {
		if p.wrong.Items[i] != nil {
			continue
		}
		c, account := p.c[i], p.in[i].AccountID
		at := destination{c.Network, p.in[i].Address}
		if p.to[i] = destinations[at]; p.to[i] == nil {
			f := &found[chain.Address]{}
			p.to[i], destinations[at] = f, f
			reads = append(reads, func(ctx context.Context) error {
				f.value, f.err = s.destination(ctx, p.tenant, at.network, at.address)
				return nil
			})
		}
		if p.fees[c.Code] == nil {
			f := &tenantFee{}
			p.fees[c.Code] = f
			reads = append(reads, func(ctx context.Context) error {
				*f = s.tenantFee(ctx, p.tenant, c)
				return nil
			})
		}
		if payers[account] == nil {
			f := &found[payer]{}
			payers[account] = f
			reads = append(reads, func(ctx context.Context) error {
				f.value = s.payer(ctx, p.tenant, account)
				return nil
			})
		}
	}
	if err := storage.SideBySide(ctx, s.c.Store, reads...); err != nil {
		return nil, err
	}
	for i := range p.in {
		if p.wrong.Items[i] != nil {
			continue
		}
		if err := p.fees[p.c[i].Code].err; err != nil {
			return nil, err
		}
		p.wrong.add(i, p.to[i].err, payers[p.in[i].AccountID].value.err)
	}
	return payers, nil
}

// question is what the network's quote of a withdrawal depends on.
type question struct {
	currency string
	to       chain.Address
	asked    ledger.Amount
}

// price asks for the rates, and for the network's quotes unless something is wrong without them.
func (p *pricing) price(ctx context.Context) error {
	p.asked = make([]ledger.Amount, len(p.in))
	rates := map[[2]string]*found[decimal.Decimal]{}
	rate := func(ctx context.Context, token, fiat string) (decimal.Decimal, error) {
		f := rates[[2]string{token, fiat}]
		if f == nil {
			f = &found[decimal.Decimal]{}
			rates[[2]string{token, fiat}] = f
			f.value, f.err = p.s.rate(ctx, token, fiat)
		}
		return f.value, f.err
	}
	var order []question
	same := map[question][]int{} // withdrawals with the same quote
	for i := range p.in {
		if p.wrong.Items[i] != nil {
			continue
		}
		var err error
		if p.asked[i], err = p.s.asked(ctx, p.c[i], p.in[i].Terms, rate); err != nil {
			p.wrong.add(i, err)
			continue
		}
		q := question{p.c[i].Code, p.to[i].value, p.asked[i]}
		if same[q] == nil {
			order = append(order, q)
		}
		same[q] = append(same[q], i)
	}
	if err := p.wrong.err(); err != nil {
		return err
	}
	errs := make([]error, len(p.in))
	if err := p.quotes(ctx, order, same, errs); err != nil {
		return err
	}
	worth := p.worths()
	for i, err := range errs {
		if err != nil {
			p.wrong.add(i, err)
			continue
		}
		p.out[i].Required = p.s.required(ctx, p.c[i], p.out[i].Amount, worth)
	}
	return p.wrong.err()
}

// worths asks for the price of each currency once.
func (p *pricing) worths() worthSource {
	type price struct {
		usd   decimal.Decimal
		known bool
	}
	prices := map[string]price{}
	return func(ctx context.Context, c *chain.Currency) (decimal.Decimal, bool) {
		v, asked := prices[c.Code]
		if !asked {
			v.usd, v.known = p.s.worth(ctx, c)
			prices[c.Code] = v
		}
		return v.usd, v.known
	}
}

// quotes prices the withdrawals of each question. Where a quote depends on the coins that are
// free these are read once for all; elsewhere nodes are asked about several recipients at once. What
// is wrong with a withdrawal is in its place in errs.
func (p *pricing) quotes(ctx context.Context, order []question, same map[question][]int, errs []error) error {
	var coins, accounts []question
	for _, q := range order {
		n, err := p.s.c.Registry.Network(string(p.c[same[q][0]].Network))
		if err == nil && n.Family == chain.UTXOFamily {
			coins = append(coins, q)
		} else {
			accounts = append(accounts, q)
		}
	}
	var reads []func(context.Context) error
	for _, q := range coins {
		reads = append(reads, func(ctx context.Context) error {
			p.quote(ctx, same[q], errs)
			return nil
		})
	}
	if err := storage.SideBySide(ctx, p.s.c.Store, reads...); err != nil {
		return err // not all were asked
	}
	ctx = storage.Apart(ctx)
	atOnce(ctx, len(accounts), func(n int) { p.quote(ctx, same[accounts[n]], errs) })
	return nil
}

// quote prices withdrawals of one figure to one address. Each has its own place in errs.
func (p *pricing) quote(ctx context.Context, places []int, errs []error) {
	if p.down.Load() {
		return
	}
	first := places[0]
	network, err := p.s.quote(ctx, p.tenant, p.c[first], p.to[first].value, p.asked[first])
	if errors.Is(err, ErrFee) {
		p.down.Store(true)
	}
	for _, i := range places {
		if errs[i] = err; err != nil {
			continue
		}
		c := p.c[i]
		price, bad := p.s.priced(c, &p.in[i].Terms, p.asked[i], *p.fees[c.Code], network)
		if bad == nil {
			p.out[i], bad = p.s.written(ctx, p.tenant, p.in[i], c, p.to[i].value, price)
		}
		errs[i] = bad
	}
}

// atOnce calls f for 0 to n-1, for some of them at the same time unless the context is one of
// recall.OneByOne. What panics in f panics here.
func atOnce(ctx context.Context, n int, f func(i int)) {
	if recall.IsOneByOne(ctx) {
		for i := range n {
			f(i)
		}
		return
	}
	var g errgroup.Group
	g.SetLimit(maxAsked)
	var once sync.Once
	var broken any
	for i := range n {
		g.Go(func() error {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { broken = p })
				}
			}()
			f(i)
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	if broken != nil {
		panic(broken)
	}
}

// commitPayout makes all withdrawals and their holds true at once.
func (s *Service) commitPayout(ctx context.Context, d *payoutDraft, once *storage.Once) (Payout, error) {
	p := storage.Tenant(d.tenant)
	result, first := d.Payout, true
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !first {
			if stored, err := s.Payout(ctx, d.tenant, d.ID); !errors.Is(err, ErrNotFound) {
				result = stored
				return storage.Change{}, err
			}
			if err := s.resolveAgain(ctx, d); err != nil {
				return storage.Change{}, err
			}
		}
		first = false
		now := s.now()
		response, replay, err := once.Find(ctx, s.c.Store, p, now)
		if err != nil || replay {
			if err == nil {
				result, err = replayedPayout(once, response, nil)
			}
			return storage.Change{}, err
		}
		change, made, err := s.payoutChange(ctx, d, now)
		if err != nil {
			return storage.Change{}, err
		}
		result = made
		return change, once.AddTo(&change, now, made)
	})
	return result, s.explainPayout(err)
}

// resolveAgain reads the wallets that pay anew.
func (s *Service) resolveAgain(ctx context.Context, d *payoutDraft) error {
	var reads []func(context.Context) error
	for account, f := range d.payers {
		reads = append(reads, func(ctx context.Context) error {
			f.value = s.payer(ctx, d.tenant, account)
			return nil
		})
	}
	if err := storage.SideBySide(ctx, s.c.Store, reads...); err != nil {
		return err
	}
	wrong := &PayoutError{}
	for i, account := range d.accounts {
		if err := d.payers[account].value.err; err != nil {
			wrong.add(i, err)
		}
	}
	return wrong.err()
}

// payoutChange is the Change that accepts a payout.
func (s *Service) payoutChange(ctx context.Context, d *payoutDraft, now time.Time) (storage.Change, Payout, error) {
	made := d.Payout
	made.CreatedAt, made.Withdrawals = now, slices.Clone(d.Withdrawals)
	change := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(d.tenant)}
	sums, wrong := payoutSums{}, &PayoutError{}
	ceilings := map[string]Ceiling{}
	row := payoutRow{CreatedAt: now}
	for i := range made.Withdrawals {
		w, c := &made.Withdrawals[i], d.currencies[i]
		ceiling, known := ceilings[c.Code]
		if !known {
			var err error
			if ceiling, err = s.c.Ceilings(ctx, d.tenant, c.Code); err != nil {
				return change, made, err
			}
			ceilings[c.Code] = ceiling
		}
		err := s.accept(&change, w, d.payers[d.accounts[i]].value, c, ceiling, now)
		if err == nil {
			err = sums.add(w, d.payers[d.accounts[i]].value.open, ceiling)
		}
		if err != nil {
			wrong.add(i, err)
		}
		row.Withdrawals = append(row.Withdrawals, w.ID)
	}
	change.Put = append(change.Put, payoutRows.Row(d.ID, 0, time.Time{}, row))
	change.Post = []ledger.Tx{{ID: "hold/" + d.ID, Kind: ledger.KindWithdrawal, Ref: d.ID, At: now, Legs: sums.legs}}
	change.Level, change.Require = sums.levels, sums.open
	return change, made, wrong.err()
}

// payoutSums are what the withdrawals of a payout take together. The ledger and the counters of
// days judge a sum once, so that the last of many is not let through by what the first left.
type payoutSums struct {
	legs   []ledger.Leg    // one for each wallet and currency
	levels []storage.Level // one for each currency with a limit of the day
	open   []storage.Guard // one for each wallet
}

func (x *payoutSums) add(w *Withdrawal, open storage.Guard, ceiling Ceiling) error {
	from, asset := ledger.Wallet(w.Wallet), ledger.Asset(w.Currency)
	at := slices.IndexFunc(x.legs, func(l ledger.Leg) bool { return l.Account == from && l.Asset == asset })
	if at < 0 {
		at, x.legs = len(x.legs), append(x.legs, ledger.Leg{Account: from, Asset: asset})
	}
	sum, err := x.legs[at].Hold.Add(w.Requested)
	if err != nil {
		return fault.Invalid("amount", "is too large together with those before it")
	}
	x.legs[at].Hold = sum
	if open.Table != nil && !slices.Contains(x.open, open) {
		x.open = append(x.open, open)
	}
	if w.Counter == "" {
		return nil
	}
	at = slices.IndexFunc(x.levels, func(l storage.Level) bool { return l.Name == w.Counter })
	if at < 0 {
		at, x.levels = len(x.levels), append(x.levels, storage.Level{Name: w.Counter, Max: int64(ceiling.Daily)})
	}
	day, err := ledger.Amount(x.levels[at].Delta).Add(w.Requested)
	if err != nil {
		return fault.Invalid("amount", "is too large together with those before it")
	}
	x.levels[at].Delta = int64(day)
	return nil
}

// explainPayout turns a verdict of the store into what the merchant should know.
func (s *Service) explainPayout(err error) error {
	var funds *ledger.InsufficientFundsError
	var level *storage.LevelError
	var code string
	switch {
	case errors.As(err, &funds):
		code = string(funds.Asset)
	case errors.As(err, &level) && strings.HasPrefix(level.Name, dayPrefix):
		code, _, _ = strings.Cut(strings.TrimPrefix(level.Name, dayPrefix), "/")
	default:
		return err
	}
	c, unknown := s.c.Registry.Currency(code)
	if unknown != nil {
		return err
	}
	if err = explain(err, c); funds == nil {
		left := ledger.Amount(max(0, level.Max-level.Value))
		err = fault.Invalid("withdrawals", "those of "+c.Code+" are together above what is left of today's limit: "+coins(c, left))
	}
	return err
}

// replayedPayout is the Payout that a first request was answered with.
func replayedPayout(once *storage.Once, response []byte, err error) (Payout, error) {
	var p Payout
	if err == nil {
		err = once.Decode(response, &p)
	}
	p.Replayed = err == nil
	return p, err
}

// Payout returns one of the tenant's payouts, with its withdrawals as they are now: ErrNotFound
// where there is none.
func (s *Service) Payout(ctx context.Context, tenant, id string) (Payout, error) {
	if id == "" || len(id) > maxRef {
		return Payout{}, ErrNotFound
	}
	p := storage.Tenant(tenant)
	row, _, ok, err := payoutRows.One(ctx, s.c.Store, p, id)
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return Payout{}, err
	}
	rows, err := s.c.Store.Rows(ctx, Withdrawals.Table, storage.Keys(p, row.Withdrawals...)...)
	if err == nil && len(rows) != len(row.Withdrawals) {
		err = fmt.Errorf("%w: payout %s has %d withdrawals, and %d are stored", ErrAltered, id, len(row.Withdrawals), len(rows))
	}
	if err != nil {
		return Payout{}, err
	}
	out := Payout{ID: id, CreatedAt: row.CreatedAt, Withdrawals: make([]Withdrawal, len(rows))}
	for i, r := range rows {
		out.Withdrawals[i] = Withdrawals.Value(r)
		out.Withdrawals[i].ID = r.ID
	}
	return out, nil
}
