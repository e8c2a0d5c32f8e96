package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Group is how many things there are, and since when the oldest is among them; zero where
// there is none, or where that is not known.
type Group struct {
	Count  int64
	Oldest time.Time
}

func (g *Group) add(n int64, oldest time.Time) {
	g.Count, g.Oldest = g.Count+n, earliest(g.Oldest, oldest)
}

// Figures are what an operator watches, over all tenants. What is keyed by a currency has
// amounts in whole coins of it.
type Figures struct {
	At time.Time // when they were asked for
	// Tenants is how many there are, and Seen how many of them were looked at at least once
	// since this process began; sums are of these. Oldest is the time of the oldest of the last
	// looks at each.
	Tenants, Seen int
	Oldest        time.Time

	Payments    map[payment.Status]Group    // as shown, each status; of those that are over only the count
	Withdrawals map[withdrawal.Status]Group // the same
	Waiting     map[string]Group            // withdrawals by the reason for which they wait
	Suspense    map[string]Suspense         // by currency
	Funds       map[string]Funds            // the operator's own coins, by gas currency
	Fees        map[string]Fees             // what was earned and spent, by currency
	Consumers   map[string]ConsumerFigures  // by name

	Networks []NetworkFigures     // of this process, in the order of Config.Chains
	Webhooks Group                // not delivered yet: of the 200 that are tried next, the oldest by when it happened
	Due      map[string]time.Time // since when the oldest row of a worker is due, by its name; zero where none is
	Halts    []Halted
	Verified Verified         // of this process
	Alerts   map[string]int64 // what the Notify hooks heard in this process, by kind
	Steps    []StepFigures    // of this process, by worker
}

// Suspense is money that counts for no payment yet.
type Suspense struct {
	Count  int64 // deposits
	Amount decimal.Decimal
}

// Funds are coins of the operator's that pay for sending.
type Funds struct {
	Equity   decimal.Decimal // what the books say is the house's
	Reserved decimal.Decimal // set aside of it for what is in flight
	InFlight int64           // transactions that it is set aside for
	Short    int             // tenants that have set aside all there is, or more
}

// Fees are the house's accounts of fees.
type Fees struct {
	Platform decimal.Decimal // earned
	Network  decimal.Decimal // charged for networks, less what networks took
}

// ConsumerFigures say how far a consumer is behind.
type ConsumerFigures struct {
	Here    bool      // this process lists it
	Behind  int64     // events that it has not handled
	Oldest  time.Time // when the oldest of them happened; zero where there is none
	Failing int       // streams, of a tenant or a network, whose next event has failed
	Dead    int64     // dead letters: what it did not handle, and does not by itself; at most 1000 of 1000 tenants are counted
}

// NetworkFigures say how one network is read, and what is under way on it.
type NetworkFigures struct {
	incoming.Status
	Deposits map[incoming.State]int64 // seen and included: not final yet
	Sweeps   map[string]Group         // by the reason for which they wait, "" = under way; at most 1000 are looked at
	// Costs is what forwarding one deposit cost when that was last estimated, in whole gas
	// coins, and Minimums what a payment is at least, in whole coins: by currency.
	Costs, Minimums map[string]decimal.Decimal
	// Books says how far the books were held against the network.
	Books reconcile.Figures
}

// figuring keeps what was seen of tenants.
type figuring struct {
	turn    chan struct{} // holds one while somebody figures
	tenants map[string]*tenantFigures

	mu   sync.Mutex
	last Figures // that were read without an error
}

// recent is the last Figures while they are fresh. Who scrapes reads them once for Health, too.
func (f *figuring) recent(now time.Time) Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.last.At); age < 0 || age > figuresFresh {
		return Figures{}
	}
	return f.last
}

func (f *figuring) keep(last Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = last
}

// tenantFigures are one tenant's part of Figures.
type tenantFigures struct {
	at      time.Time // of the last look; zero = none yet
	version int64     // of its stream's row then
	part    Figures

	moved     int64 // version of its stream's row now
	consumers map[string]ConsumerFigures
	places    map[string]int64 // versions of the places of consumers when their dead letters were counted
}

func newFiguring() *figuring {
	return &figuring{turn: make(chan struct{}, 1), tenants: map[string]*tenantFigures{}}
}

const (
	figuresFresh  = time.Minute      // for so long Health takes what was read for a scrape
	figuresEvery  = 10 * time.Minute // a tenant of whom nothing is told is looked at again
	figuresAtOnce = 500              // tenants that one call looks at, those first whose look is the longest ago
	figuresFor    = time.Second      // for so long one call looks at tenants: a scrape wants all else, too
	figuresMany   = 1000             // rows of one kind of a tenant or network that are looked at
)

// Figures reads what an operator watches. It is for a scrape each few seconds, and reads
// no row of a payment or withdrawal that has ended. It reads a few rows of each tenant by
// their keys. Of at most 500 tenants, and for at most a second, it reads the counters and what
// they have open: of those that have changed meanwhile, or were looked at 10 minutes ago. So
// with many tenants, or a slow store, the first calls have the sums of some tenants only: see
// Seen. Callers wait for each other. Beside an error it returns what it has.
func (a *App) Figures(ctx context.Context) (Figures, error) {
	f := newFigures()
	for _, status := range paymentStatuses { // also those that no payment has
		f.Payments[status] = Group{}
	}
	for _, status := range withdrawalStatuses {
		f.Withdrawals[status] = Group{}
	}
	f.At, f.Verified, f.Alerts, f.Steps = a.cfg.Clock.Now(), a.record.lastVerify(), a.record.alerted(), a.record.worked()
	select {
	case a.figures.turn <- struct{}{}:
		defer func() { <-a.figures.turn }()
	case <-ctx.Done():
		return f, ctx.Err()
	}
	var failed error
	for _, read := range []func(context.Context, *Figures) error{a.figureTenants, a.figureNetworks, a.figureQueues, a.figureWebhooks} {
		failed = errors.Join(failed, read(ctx, &f))
	}
	if failed == nil {
		a.figures.keep(Figures{At: f.At, Funds: maps.Clone(f.Funds), Networks: slices.Clone(f.Networks), Consumers: maps.Clone(f.Consumers)})
	}
	return f, failed
}

func newFigures() Figures {
	return Figures{
		Payments: map[payment.Status]Group{}, Withdrawals: map[withdrawal.Status]Group{}, Waiting: map[string]Group{},
		Suspense: map[string]Suspense{}, Funds: map[string]Funds{}, Fees: map[string]Fees{}, Consumers: map[string]ConsumerFigures{},
		Due: map[string]time.Time{},
	}
}

// figureTenants looks at tenants that have changed, and adds all up.
func (a *App) figureTenants(ctx context.Context, f *Figures) error {
	names, err := a.Events.Names(ctx)
	if err != nil {
		return err
	}
	failed := a.lookAtTenants(ctx, f.At, names)
	f.Tenants = len(a.figures.tenants)
	for _, name := range names {
		f.Consumers[name] = ConsumerFigures{Here: a.Events.Here(name)}
	}
	house, err := a.houseFigures(ctx, names)
	failed = errors.Join(failed, err)
	for _, p := range house {
		f.lag(p)
	}
	for _, t := range a.figures.tenants {
		f.lag(t)
		if !t.at.IsZero() {
			f.Seen++
			f.Oldest = earliest(f.Oldest, t.at)
			f.add(&t.part)
		}
	}
	return failed
}

// lag adds how far consumers are behind in one stream.
func (f *Figures) lag(t *tenantFigures) {
	for name, c := range t.consumers {
		sum := f.Consumers[name]
		sum.Behind, sum.Failing, sum.Dead = sum.Behind+c.Behind, sum.Failing+c.Failing, sum.Dead+c.Dead
		sum.Oldest = earliest(sum.Oldest, c.Oldest)
		f.Consumers[name] = sum
	}
}

// houseFigures reads how far consumers are in the streams that are of no tenant.
func (a *App) houseFigures(ctx context.Context, names []string) (map[storage.Partition]*tenantFigures, error) {
	parts, err := a.house(ctx)
	if err != nil {
		return nil, err
	}
	out := map[storage.Partition]*tenantFigures{}
	for _, p := range parts {
		out[p] = &tenantFigures{}
	}
	return out, a.moved(ctx, names, out)
}

// earliest is the earlier of two times that are not zero.
func earliest(x, y time.Time) time.Time {
	if x.IsZero() || !y.IsZero() && y.Before(x) {
		return y
	}
	return x
}

// add adds a tenant's part.
func (f *Figures) add(t *Figures) {
	groups(f.Payments, t.Payments)
	groups(f.Withdrawals, t.Withdrawals)
	groups(f.Waiting, t.Waiting)
	for code, s := range t.Suspense {
		sum := f.Suspense[code]
		f.Suspense[code] = Suspense{sum.Count + s.Count, sum.Amount.Add(s.Amount)}
	}
	for code, s := range t.Funds {
		sum := f.Funds[code]
		f.Funds[code] = Funds{sum.Equity.Add(s.Equity), sum.Reserved.Add(s.Reserved), sum.InFlight + s.InFlight, sum.Short + s.Short}
	}
	for code, s := range t.Fees {
		sum := f.Fees[code]
		f.Fees[code] = Fees{sum.Platform.Add(s.Platform), sum.Network.Add(s.Network)}
	}
}

func groups[K comparable](to, from map[K]Group) {
	for k, g := range from {
		sum := to[k]
		sum.add(g.Count, g.Oldest)
		to[k] = sum
	}
}

// lookAtTenants looks at those that have changed since the last look.
func (a *App) lookAtTenants(ctx context.Context, now time.Time, names []string) error {
	var changed []string
	known := map[string]*tenantFigures{}
	err := storage.Pages(ctx, a.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System, Limit: page, IDs: true}, func(rows []storage.Row) error {
		of := map[storage.Partition]*tenantFigures{}
		for _, r := range rows {
			t := a.figures.tenants[r.ID]
			if t == nil {
				t = &tenantFigures{}
			}
			known[r.ID], of[storage.Tenant(r.ID)] = t, t
		}
		if err := a.moved(ctx, names, of); err != nil {
			return err
		}
		for _, r := range rows {
			if t := known[r.ID]; t.at.IsZero() || t.moved != t.version || now.Sub(t.at) >= figuresEvery {
				changed = append(changed, r.ID)
			}
		}
		return nil
	})
	var unread storage.RowErrors
	if other := unread.Take(err); other != nil {
		return other
	}
	a.figures.tenants = known
	slices.SortStableFunc(changed, func(x, y string) int { return known[x].at.Compare(known[y].at) })
	failed := unread.With(nil)
	looking, cancel := context.WithTimeout(ctx, figuresFor)
	defer cancel()
	for _, id := range changed[:min(figuresAtOnce, len(changed))] {
		t := known[id]
		part, err := a.figureTenant(looking, storage.Tenant(id))
		if looking.Err() != nil { // the others have their turn next time
			return errors.Join(failed, ctx.Err())
		}
		if t.at = now; err != nil { // its figures stay as they were
			failed = errors.Join(failed, fmt.Errorf("cryptopay: figures of tenant %s: %w", id, err))
			continue
		}
		t.part, t.version = part, t.moved
	}
	return failed
}

// moved reads how far the streams of some partitions are, and their consumers.
func (a *App) moved(ctx context.Context, names []string, of map[storage.Partition]*tenantFigures) error {
	var streams, places []storage.Key
	was := map[storage.Partition]map[string]ConsumerFigures{}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		was[p], of[p].consumers = of[p].consumers, map[string]ConsumerFigures{}
		streams = append(streams, storage.Keys(p, storage.StreamID)...)
		places = append(places, storage.Keys(p, names...)...)
	}
	rows, err := byKeys(ctx, a.cfg.Store, storage.Streams.Table, streams)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return err
	}
	last := map[storage.Partition]int64{}
	for _, r := range rows {
		of[r.Partition].moved, last[r.Partition] = r.Version, storage.Streams.Value(r).Last
	}
	if rows, err = byKeys(ctx, a.cfg.Store, stream.Places.Table, places); unread.Take(err) != nil {
		return err
	}
	type next struct {
		p      storage.Partition
		number string
	}
	waiting := map[next][]string{} // consumers, by the event that is their next
	var keys []storage.Key
	for _, r := range rows {
		v, c := stream.Places.Value(r), ConsumerFigures{Dead: was[r.Partition][r.ID].Dead}
		if c.Behind = last[r.Partition] - v.Seen; c.Behind > 0 {
			n := next{r.Partition, storage.EventID(v.Seen + 1)}
			if waiting[n] == nil {
				keys = append(keys, storage.Key{Partition: n.p, ID: n.number})
			}
			waiting[n] = append(waiting[n], r.ID)
		}
		if v.Tries > 0 {
			c.Failing = 1
		}
		of[r.Partition].consumers[r.ID] = c
	}
	if err = unread.Take(a.countDead(ctx, rows, of)); err != nil {
		return err
	}
	if rows, err = byKeys(ctx, a.cfg.Store, storage.Events.Table, keys); unread.Take(err) != nil {
		return err
	}
	for _, r := range rows {
		for _, name := range waiting[next{r.Partition, r.ID}] {
			c := of[r.Partition].consumers[name]
			c.Oldest = storage.Events.Value(r).At
			of[r.Partition].consumers[name] = c
		}
	}
	return unread.With(nil)
}

// countDead counts the dead letters of those places that were written since the last look:
// a letter is put aside, handled and discarded in a Change that writes the place.
func (a *App) countDead(ctx context.Context, places []storage.Row, of map[storage.Partition]*tenantFigures) error {
	written := map[string][]storage.Partition{} // by consumer
	for _, r := range places {
		if t := of[r.Partition]; t.places[r.ID] != r.Version {
			written[r.ID] = append(written[r.ID], r.Partition)
		}
	}
	var unread storage.RowErrors
	for _, name := range slices.Sorted(maps.Keys(written)) {
		parts := written[name]
		letters, err := a.cfg.Store.Find(ctx, storage.Query{
			Table: stream.Letters.Table, Partitions: parts, Limit: figuresMany, IDs: true,
			Where: []storage.Cond{{Column: "consumer", Op: storage.Eq, Value: name}},
		})
		if err = unread.Take(err); err != nil {
			return err
		}
		dead := map[storage.Partition]int64{}
		for _, l := range letters {
			dead[l.Partition]++
		}
		for _, p := range parts {
			c := of[p].consumers[name]
			c.Dead = dead[p]
			of[p].consumers[name] = c
		}
	}
	for _, r := range places {
		t := of[r.Partition]
		if t.places == nil {
			t.places = map[string]int64{}
		}
		t.places[r.ID] = r.Version
	}
	return unread.With(nil)
}

// figureTenant reads one tenant's part.
func (a *App) figureTenant(ctx context.Context, p storage.Partition) (Figures, error) {
	f := newFigures()
	for _, read := range []func(context.Context, storage.Partition, *Figures) error{a.figurePayments, a.figureWithdrawals, a.figureMoney} {
		if err := read(ctx, p, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// paymentStatuses and withdrawalStatuses are all that are shown.
var (
	openPaymentStatuses = []payment.Status{payment.Waiting, payment.Confirming, payment.Confirmed, payment.Sending}
	paymentStatuses     = append(slices.Clip(openPaymentStatuses), payment.Completed, payment.Expired, payment.Failed)
	openWithdrawals     = []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}
	withdrawalStatuses  = append(slices.Clip(openWithdrawals), withdrawal.Completed, withdrawal.Failed, withdrawal.Cancelled)
)

// totals are how many rows of a Tally have each status. Where no counters hold yet, only
// those of open are counted.
func totals[S ~string](ctx context.Context, s storage.Store, p storage.Partition, t *tally.Tally, all, open []S) (map[S]int64, error) {
	matches := make([]tally.Match, len(all))
	for i := range all {
		matches[i] = tally.Match{tally.Is(string(all[i]))}
	}
	counts, ok, err := t.Totals(ctx, s, p, matches...)
	out := map[S]int64{}
	for i := range counts {
		out[all[i]] = counts[i]
	}
	if ok || err != nil {
		return out, err
	}
	for _, status := range open {
		if out[status], err = s.Count(ctx, storage.Query{Table: t.Table, Partition: p, Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}}}); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (a *App) figurePayments(ctx context.Context, p storage.Partition, f *Figures) error {
	counts, err := totals(ctx, a.cfg.Store, p, payment.Tally, paymentStatuses, openPaymentStatuses)
	if err != nil {
		return err
	}
	for status, n := range counts {
		g := Group{Count: n}
		if n > 0 && slices.Contains(openPaymentStatuses, status) {
			stored := []payment.Status{status}
			if status == payment.Waiting { // as it is shown
				stored = append(stored, payment.PartiallyPaid)
			}
			for _, s := range stored {
				rows, _, err := storage.Others(ctx, a.cfg.Store, storage.Query{
					Table: payment.Payments.Table, Partition: p, Limit: 1, Order: []storage.Order{{Column: "created_at"}},
					Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: s}},
				})
				if err != nil {
					return err
				}
				for _, r := range rows {
					g.add(0, payment.Payments.Value(r).CreatedAt)
				}
			}
		}
		f.Payments[status] = g
	}
	return nil
}

func (a *App) figureWithdrawals(ctx context.Context, p storage.Partition, f *Figures) error {
	counts, err := totals(ctx, a.cfg.Store, p, withdrawal.Tally, withdrawalStatuses, openWithdrawals)
	if err != nil {
		return err
	}
	for status, n := range counts {
		g := Group{Count: n}
		if n > 0 && slices.Contains(openWithdrawals, status) {
			rows, _, err := storage.Others(ctx, a.cfg.Store, storage.Query{
				Table: withdrawal.Withdrawals.Table, Partition: p, Limit: figuresMany, Order: []storage.Order{{Column: "created_at"}},
				Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}},
			})
			if err != nil {
				return err
			}
			for _, r := range rows {
				w := withdrawal.Withdrawals.Value(r)
				g.add(0, w.CreatedAt)
				if reason := w.WaitingReason(); reason != "" {
					of := f.Waiting[reason]
					of.add(1, w.WaitingSince)
					f.Waiting[reason] = of
				}
			}
		}
		f.Withdrawals[status] = g
	}
	return nil
}

// figureMoney reads the house's accounts, and what is in suspense.
func (a *App) figureMoney(ctx context.Context, p storage.Partition, f *Figures) error {
	balances, err := a.cfg.Store.Balances(ctx, p, ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment, ledger.Suspense)
	if err != nil {
		return err
	}
	equity := map[string]decimal.Decimal{}
	suspended := false
	for _, b := range balances {
		code := string(b.Asset)
		scale, err := a.Scale(code)
		if err != nil {
			continue // no process lists it any more
		}
		amount := b.Posted.Decimal(scale)
		fees := f.Fees[code]
		switch b.Account {
		case ledger.Suspense:
			if suspended = suspended || b.Posted != 0; b.Posted != 0 {
				f.Suspense[code] = Suspense{Amount: amount}
			}
			continue
		case ledger.FeesPlatform:
			fees.Platform = amount
		case ledger.FeesNetwork:
			fees.Network = amount
		}
		f.Fees[code], equity[code] = fees, equity[code].Add(amount)
	}
	if suspended {
		if err := a.figureSuspense(ctx, p, f); err != nil {
			return err
		}
	}
	floats, _, err := storage.Others(ctx, a.cfg.Store, storage.Query{Table: treasury.GasFloats.Table, Partition: p, Limit: figuresMany})
	if err != nil {
		return err
	}
	reserved := map[string]treasury.GasFloat{}
	for _, r := range floats {
		reserved[r.ID] = treasury.GasFloats.Value(r)
	}
	for _, n := range a.networks {
		gas, err := a.cfg.Registry.Gas(n.name)
		if err != nil {
			return err
		}
		own := Funds{Equity: equity[gas.Code], Reserved: gas.Decimal(reserved[gas.Code].Reserved), InFlight: reserved[gas.Code].Count}
		if _, used := reserved[gas.Code]; used && own.Reserved.GreaterThanOrEqual(own.Equity) {
			own.Short = 1
		}
		f.Funds[gas.Code] = own
	}
	return nil
}

// figureSuspense counts what is in suspense; of more than figuresMany no more are counted.
func (a *App) figureSuspense(ctx context.Context, p storage.Partition, f *Figures) error {
	rows, _, err := storage.Others(ctx, a.cfg.Store, storage.Query{
		Table: payment.Deposits.Table, Partition: p, Limit: figuresMany, Order: []storage.Order{{Column: "created_at"}},
		Where: []storage.Cond{{Column: "booking", Op: storage.Eq, Value: payment.InSuspense}},
	})
	for _, r := range rows {
		code := payment.Deposits.Value(r).Currency
		s := f.Suspense[code]
		s.Count++
		f.Suspense[code] = s
	}
	return err
}

// figureNetworks reads how networks are read, and what is under way on each.
func (a *App) figureNetworks(ctx context.Context, f *Figures) (failed error) {
	least, err := byKeys(ctx, a.cfg.Store, Minimums.Table, storage.Keys(storage.System, a.networkNames()...))
	var unread storage.RowErrors
	if failed = unread.Take(err); failed != nil {
		return failed
	}
	minimums := map[string]Minimum{}
	for _, r := range least {
		minimums[r.ID] = Minimums.Value(r)
	}
	for _, n := range a.networks {
		one := NetworkFigures{Deposits: map[incoming.State]int64{}, Sweeps: map[string]Group{}, Costs: map[string]decimal.Decimal{}, Minimums: map[string]decimal.Decimal{}}
		if one.Status, err = n.in.Status(ctx); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		one.Network = n.name
		books, err := n.books.Figures(ctx)
		one.Books = books
		failed = errors.Join(failed, err, a.figureMoves(ctx, n, &one))
		m := minimums[string(n.name)]
		for _, c := range a.cfg.Registry.On(n.name) {
			if amount, ok := m.Least[c.Code]; ok {
				one.Minimums[c.Code] = c.Decimal(amount)
			}
			if gas, err := a.cfg.Registry.Gas(n.name); err == nil && len(m.Samples[c.Code]) > 0 {
				one.Costs[c.Code] = gas.Decimal(m.Samples[c.Code][len(m.Samples[c.Code])-1].Cost)
			}
		}
		f.Networks = append(f.Networks, one)
	}
	f.Halts, err = a.Operate.Halts(ctx)
	return errors.Join(failed, err, unread.With(nil))
}

func (a *App) networkNames() []string {
	names := make([]string, len(a.networks))
	for i, n := range a.networks {
		names[i] = string(n.name)
	}
	return names
}

// figureMoves counts deposits that are not final, and the reasons why sweeps wait.
func (a *App) figureMoves(ctx context.Context, n *network, f *NetworkFigures) error {
	part := storage.Network(string(n.name))
	for _, state := range []incoming.State{incoming.Seen, incoming.Included} {
		count, err := a.cfg.Store.Count(ctx, storage.Query{
			Table: incoming.Sightings.Table, Partition: part, Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: state}},
		})
		if err != nil {
			return err
		}
		f.Deposits[state] = count
	}
	sweeps, _, err := storage.Others(ctx, a.cfg.Store, storage.Query{
		Table: treasury.Sweeps.Table, Partition: part, Limit: figuresMany,
		Where: []storage.Cond{{Column: "state", Op: storage.In, Value: []treasury.SweepState{treasury.SweepNew, treasury.SweepFunding, treasury.SweepMoving, treasury.SweepDeferred}}},
	})
	if err != nil || len(sweeps) == 0 {
		return err
	}
	keys := make([]storage.Key, len(sweeps))
	for i, s := range sweeps {
		keys[i] = storage.Key{Partition: part, ID: s.ID}
	}
	notes, err := byKeys(ctx, a.cfg.Store, treasury.SweepNotes.Table, keys)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return err
	}
	for _, r := range notes {
		v := treasury.SweepNotes.Value(r)
		g := f.Sweeps[v.Waiting]
		g.add(1, v.Since)
		f.Sweeps[v.Waiting] = g
	}
	return nil
}

// figureQueues reads since when the oldest row is due, by kind.
func (a *App) figureQueues(ctx context.Context, f *Figures) (failed error) {
	for _, q := range a.queues() {
		oldest, err := a.oldest(ctx, q, f.At)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		f.Due[q.kind] = earliest(f.Due[q.kind], oldest)
	}
	return failed
}

// figureWebhooks reads those that are tried next, or again.
func (a *App) figureWebhooks(ctx context.Context, f *Figures) error {
	rows, err := storage.Peek(ctx, a.cfg.Store, storage.Claim{Table: webhook.Events.Table, Now: f.At.Add(outboxAhead), Max: outboxRows})
	for _, r := range rows {
		f.Webhooks.add(1, webhook.Events.Value(r).Created)
	}
	var unread storage.RowErrors
	return unread.Take(err)
}

const (
	outboxAhead = 30 * 24 * time.Hour // beyond every schedule of tries
	outboxRows  = 200
)

// queue is a table in which due rows wait for a worker.
type queue struct {
	kind  string // the worker's name
	claim storage.Claim
}

// queues are all of them, as the workers of this App claim them.
func (a *App) queues() []queue {
	listed := func(codes []string) []storage.Cond {
		return []storage.Cond{{Column: "currency", Op: storage.In, Value: codes}}
	}
	codes := a.cfg.Registry.Codes()
	all := []queue{
		{"payments", storage.Claim{Table: payment.Payments.Table, Where: listed(codes)}},
		{"withdrawals", storage.Claim{Table: withdrawal.Withdrawals.Table, Where: listed(slices.Concat(codes, a.cfg.Retire))}},
		{"waiting withdrawals", storage.Claim{Table: withdrawal.Waits.Table}},
		{"transfers", storage.Claim{Table: wallet.TransferRows.Table, Where: listed(codes)}},
		{"webhooks", storage.Claim{Table: webhook.Events.Table}},
		{"consumers", storage.Claim{Table: storage.Streams.Table}},
		{"consumers", storage.Claim{Table: stream.Places.Table}},
	}
	for _, n := range a.networks {
		part := storage.Network(string(n.name))
		var here []string
		for _, c := range a.cfg.Registry.On(n.name) {
			here = append(here, c.Code)
		}
		all = append(all,
			queue{"incoming/" + string(n.name), storage.Claim{Table: incoming.Sightings.Table, Partition: part, Where: listed(here)}},
			queue{"forks/" + string(n.name), storage.Claim{Table: incoming.Forks.Table, Partition: part}},
			queue{"treasury/" + string(n.name), storage.Claim{Table: treasury.Sweeps.Table, Partition: part, Where: listed(append(slices.Clip(here), ""))}},
			queue{"outgoing/" + string(n.name), storage.Claim{Table: outgoing.Intents.Table, Partition: part, Where: listed(here)}},
			queue{"outgoing/" + string(n.name), storage.Claim{Table: outgoing.Outcomes.Table, Partition: part, Where: listed(here)}},
		)
	}
	return all
}

// oldest is since when the oldest row of a queue is due; zero where none is.
func (a *App) oldest(ctx context.Context, q queue, now time.Time) (time.Time, error) {
	q.claim.Now, q.claim.Max = now, 1
	rows, err := storage.Peek(ctx, a.cfg.Store, q.claim)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return time.Time{}, fmt.Errorf("cryptopay: looking for what is due of %s: %w", q.kind, err)
	}
	if len(rows) == 0 {
		return time.Time{}, nil
	}
	return rows[0].Due, nil
}
