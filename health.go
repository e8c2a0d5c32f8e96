package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// State says how a part is.
type State string

// The states.
const (
	OK       State = "ok"
	Degraded State = "degraded" // it works, and a person should look
	Down     State = "down"     // it does not work
)

// Part is one thing that an App stands on, or does.
type Part struct {
	Name   string // "store", "clock", "signer", "rates", "node/ETH", "worker/payments", "halts", "funds", "consumer/books", "webhooks"
	State  State
	Reason string    // in words; may be said of a part that is OK, too
	Since  time.Time // since when this process has found it in this State
}

// NodeHealth is one network's node.
type NodeHealth struct {
	Part
	Network chain.Network
	Tip     int64         // the height that the node says; 0 = it did not answer
	Head    int64         // the height up to which the chain was read, by any process
	Behind  int64         // blocks that are there and were not read
	HeadAge time.Duration // of the node's newest block; of the newest that was read where the node did not answer
}

// WorkerHealth is one kind of work.
type WorkerHealth struct {
	Part
	Due time.Time // since when the oldest row is due; zero where none is
}

// Health says how an App is, as this process sees it.
type Health struct {
	At        time.Time
	Store     Part
	Clock     Part
	Skew      time.Duration // how far this process's clock is at least from the store's
	Nodes     []NodeHealth  // in the order of Config.Chains
	Signer    Part
	Rates     Part
	RatesAge  time.Duration // of the oldest price
	Workers   []WorkerHealth
	Halts     Part
	Funds     Part
	Consumers []Part
	Webhooks  Part

	opened bool
}

// Parts lists everything, always in the same order.
func (h *Health) Parts() []Part {
	out := []Part{h.Store, h.Clock}
	for i := range h.Nodes {
		out = append(out, h.Nodes[i].Part)
	}
	out = append(out, h.Signer, h.Rates)
	for i := range h.Workers {
		out = append(out, h.Workers[i].Part)
	}
	return append(append(out, h.Halts, h.Funds, h.Webhooks), h.Consumers...)
}

// State is the worst of all parts.
func (h *Health) State() State {
	worst := OK
	for _, p := range h.Parts() {
		switch {
		case p.State == Down:
			return Down
		case p.State == Degraded:
			worst = Degraded
		}
	}
	return worst
}

// Ready reports whether this process can serve requests: it was opened, its store answers,
// and its clock is right. A node, a signer or a source of prices that is down stops some
// requests only, in every process alike, and takes none out of service.
func (h *Health) Ready() bool {
	return h.opened && h.Store.State != Down && h.Clock.State != Down
}

// Ready is nil where this process can serve requests, as Health.Ready says it, and says else
// why it cannot. It asks the store and compares the clocks, and asks nothing outside: a path
// that anybody may call can stand on it.
func (a *App) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	h := Health{opened: a.opened.Load()}
	var all sync.WaitGroup
	all.Go(func() { h.Store = a.storeHealth(ctx) })
	all.Go(func() { h.Clock, _ = a.clockHealth(ctx) })
	all.Wait()
	switch {
	case h.Ready():
		return nil
	case !h.opened:
		return errors.New("cryptopay: not ready: App.Open has not succeeded")
	case h.Store.State == Down:
		return fmt.Errorf("cryptopay: not ready: %s", h.Store.Reason)
	}
	return fmt.Errorf("cryptopay: not ready: %s", h.Clock.Reason)
}

const (
	// probeFor is how long Health waits. All parts are asked at once, and have askFor.
	probeFor = 2 * time.Second
	askFor   = probeFor * 9 / 10
	// dueLong is for how long something may be due before a person should look.
	dueLong = 5 * time.Minute
	// behindLong is for how long a chain may not be read up to its tip, beside the time between two polls.
	behindLong = 5 * time.Minute
)

// Health asks everything that the App stands on how it is. It returns after about 2 seconds
// whatever hangs: what has not answered by then is said to be so, and is not asked again
// before it has. Two callers at once hear the same answers. What it asks the store does not grow with what was ever done. It asks
// each node for its tip and each token for its price, so each few seconds are often enough.
// Before Open only the store is told of.
func (a *App) Health(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	h := Health{At: a.cfg.Clock.Now(), opened: a.opened.Load()}
	h.Nodes = make([]NodeHealth, len(a.networks))
	looks := []func(){
		func() { h.Store = a.storeHealth(ctx) },
		func() { h.Clock, h.Skew = a.clockHealth(ctx) },
		func() { h.Signer = a.signerHealth(ctx) },
		func() { h.Rates, h.RatesAge = a.ratesHealth(ctx) },
		func() { h.Workers = a.workersHealth(ctx) },
		func() { h.Halts = a.haltsHealth(ctx) },
		func() { h.Funds = a.fundsHealth(ctx) },
		func() { h.Consumers = a.consumersHealth(ctx) },
		func() { h.Webhooks = a.webhooksHealth(ctx) },
	}
	for i, n := range a.networks {
		looks = append(looks, func() { h.Nodes[i] = a.nodeHealth(ctx, n) })
	}
	var all sync.WaitGroup
	for _, look := range looks {
		all.Go(look)
	}
	all.Wait()
	return h
}

// silentError says that a probe has not answered.
type silentError struct{ since time.Time }

func (e *silentError) Error() string {
	return "has not answered since " + e.since.UTC().Format(time.RFC3339)
}

// probe asks something that may hang. Whoever asks while it is being asked waits for the same
// answer; what should have answered by now is not asked again before it has.
func probe[T any](ctx context.Context, a *App, name string, ask func(context.Context) (T, error)) (T, error) {
	var none T
	r, now := a.record, a.cfg.Clock.Now()
	if since := r.asked(name); !since.IsZero() && now.Sub(since) >= askFor {
		return none, &silentError{since}
	}
	answers := r.probes.DoChan(name, func() (answer any, err error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		r.asks(name, now)
		defer r.asks(name, time.Time{})
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panicked: %v", p)
			}
		}()
		return ask(asking)
	})
	select {
	case got := <-answers:
		if v, ok := got.Val.(T); ok {
			return v, got.Err
		}
		return none, got.Err
	case <-ctx.Done():
		if since := r.asked(name); !since.IsZero() {
			now = since
		}
		return none, &silentError{now}
	}
}

// asks notes since when a probe is being asked; zero = it is not.
func (r *record) asks(name string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since.IsZero() {
		delete(r.probing, name)
		return
	}
	r.probing[name] = since
}

func (r *record) asked(name string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probing[name]
}

// part is how a part is, and since when.
func (a *App) part(name string, state State, format string, args ...any) Part {
	p := Part{Name: name, State: state, Reason: fmt.Sprintf(format, args...), Since: a.cfg.Clock.Now()}
	r := a.record
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.parts[name]; ok && was.State == state {
		p.Since = was.Since
	}
	r.parts[name] = p
	return p
}

func (a *App) storeHealth(ctx context.Context) Part {
	_, err := probe(ctx, a, "store", func(ctx context.Context) (struct{}, error) {
		_, err := a.cfg.Store.Rows(ctx, Abilities.Table, storage.Keys(storage.System, string(abilityCounters))...)
		return struct{}{}, err
	})
	if err != nil {
		return a.part("store", Down, "the store: %v", err)
	}
	return a.part("store", OK, "")
}

func (a *App) clockHealth(ctx context.Context) (Part, time.Duration) {
	const name = "clock"
	s := a.skew
	if s.store == nil {
		return a.part(name, OK, "the store has no clock to compare with"), 0
	}
	off, err := probe(ctx, a, name, func(ctx context.Context) (time.Duration, error) {
		before := s.clock.Now()
		theirs, err := s.store.Now(ctx)
		return outside(theirs, before, s.clock.Now()), err
	})
	switch {
	case err != nil:
		return a.part(name, Degraded, "the store does not tell the time: %v", err), 0
	case off >= s.most:
		return a.part(name, Down, "this process's clock differs from the store's by %s: nothing is worked on until it is set", off), off
	case off >= s.most/2:
		return a.part(name, Degraded, "this process's clock differs from the store's by %s; from %s on nothing is worked on", off, s.most), off
	}
	return a.part(name, OK, ""), off
}

func (a *App) signerHealth(ctx context.Context) Part {
	const name = "signer"
	p, able := a.cfg.Signer.(chain.Pinger)
	switch {
	case a.cfg.Signer == nil:
		return a.part(name, OK, "this process signs nothing")
	case !able:
		return a.part(name, OK, "it is in this process")
	}
	_, err := probe(ctx, a, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Ping(ctx) })
	if err != nil {
		return a.part(name, Down, "nothing is paid out or forwarded: %v", err)
	}
	return a.part(name, OK, "")
}

// ratesHealth asks for the price of each token in USD.
func (a *App) ratesHealth(ctx context.Context) (Part, time.Duration) {
	const name = "rates"
	if a.cfg.Rates == noRates("") {
		return a.part(name, OK, "this process prices nothing"), 0
	}
	type prices struct {
		tokens  int
		missing []string
		why     error // of the last of them
		oldest  time.Time
	}
	got, err := probe(ctx, a, name, func(ctx context.Context) (p prices, err error) {
		seen := map[string]bool{}
		for _, code := range a.cfg.Registry.Codes() {
			c, err := a.cfg.Registry.Currency(code)
			if err != nil || seen[c.Token] {
				continue
			}
			seen[c.Token] = true
			p.tokens++
			r, err := a.cfg.Rates.Rate(ctx, c.Token, "USD")
			if ctx.Err() != nil {
				return p, ctx.Err()
			}
			if err != nil {
				p.missing, p.why = append(p.missing, c.Token), err
				continue
			}
			p.oldest = earliest(p.oldest, r.At)
		}
		return p, nil
	})
	age := time.Duration(0)
	if !got.oldest.IsZero() {
		age = a.cfg.Clock.Now().Sub(got.oldest)
	}
	switch {
	case err != nil:
		return a.part(name, Down, "the sources of prices: %v", err), age
	case len(got.missing) == got.tokens:
		return a.part(name, Down, "nothing has a price, so no payment can be made: %v", got.why), age
	case len(got.missing) > 0:
		return a.part(name, Degraded, "no price of %s: %v", strings.Join(got.missing, ", "), got.why), age
	}
	return a.part(name, OK, ""), age
}

func (a *App) nodeHealth(ctx context.Context, n *network) NodeHealth {
	name := "node/" + string(n.name)
	out := NodeHealth{Network: n.name}
	tip, err := probe(ctx, a, name, n.client.Tip)
	st, storeErr := probe(ctx, a, "cursor/"+string(n.name), n.in.Status)
	now, newest := a.cfg.Clock.Now(), st.HeadTime
	out.Head = st.Head
	if err == nil {
		out.Tip = tip.Head.Height
		out.Behind = max(out.Tip-out.Head, 0)
		if newest = tip.Head.Time; storeErr != nil || st.Head == 0 {
			out.Behind = 0
		}
	}
	if !newest.IsZero() {
		out.HeadAge = max(now.Sub(newest), 0)
	}
	crowd := st.Waits()
	why := ""
	if crowd != "" {
		why = ": " + crowd
	}
	behind := behindLong + a.cfg.pollOn(n.name)
	limit, waits := a.cfg.headAge(n.client), !a.cfg.onDemand(n.client)
	switch {
	case storeErr == nil && st.Halted != "":
		out.Part = a.part(name, Down, "the network is halted, an operator must look: %s", st.Halted)
	case err != nil && crowd != "" && now.Sub(st.TipRead) < behind: // it was read a short time ago
		out.Part = a.part(name, Degraded, "%s", crowd)
	case err != nil:
		out.Part = a.part(name, Down, "the node: %v%s", err, why)
	case limit > 0 && out.HeadAge >= limit:
		out.Part = a.part(name, Down, "the node stands still: its newest block is %s old", out.HeadAge.Round(time.Second))
	case storeErr != nil:
		out.Part = a.part(name, Degraded, "how far it was read is not known: %v", storeErr)
	case st.Head == 0:
		out.Part = a.part(name, Degraded, "it was not read yet")
	case waits && now.Sub(st.TipRead) >= behind:
		out.Part = a.part(name, Degraded, "it was last read up to its tip %s ago, and is %d blocks behind%s", now.Sub(st.TipRead).Round(time.Second), out.Behind, why)
	default:
		out.Part = a.part(name, OK, "")
	}
	return out
}

// workersHealth says of each kind of work since when the oldest row is due, and why steps
// of this process fail.
func (a *App) workersHealth(ctx context.Context) []WorkerHealth {
	now := a.cfg.Clock.Now()
	due, err := probe(ctx, a, "workers", func(ctx context.Context) (map[string]time.Time, error) {
		f := Figures{At: now, Due: map[string]time.Time{}}
		err := a.figureQueues(ctx, &f)
		return f.Due, err
	})
	failing := map[string]StepFigures{}
	for _, s := range a.record.worked() {
		if !s.Failing.IsZero() {
			failing[s.Worker] = s
		}
	}
	out := make([]WorkerHealth, 0, len(a.workers))
	for _, w := range a.workers {
		name, since := "worker/"+w.Name, due[w.Name]
		h := WorkerHealth{Due: since}
		f, fails := failing[w.Name]
		switch {
		case fails && now.Sub(f.Failing) >= dueLong:
			h.Part = a.part(name, Down, "its steps have failed since %s: %s", f.Failing.UTC().Format(time.RFC3339), f.Error)
		case !since.IsZero() && now.Sub(since) >= dueLong:
			h.Part = a.part(name, Degraded, "work has waited since %s", since.UTC().Format(time.RFC3339))
		case fails:
			h.Part = a.part(name, Degraded, "its last step failed: %s", f.Error)
		case err != nil && slices.ContainsFunc(a.queues(), func(q queue) bool { return q.kind == w.Name }):
			h.Part = a.part(name, Degraded, "what is due is not known: %v", err)
		default:
			h.Part = a.part(name, OK, "")
		}
		out = append(out, h)
	}
	return out
}

func (a *App) haltsHealth(ctx context.Context) Part {
	const name = "halts"
	halts, err := probe(ctx, a, name, a.Operate.Halts)
	switch {
	case err != nil:
		return a.part(name, Degraded, "what is halted is not known: %v", err)
	case len(halts) == 0:
		return a.part(name, OK, "")
	}
	texts := make([]string, len(halts))
	for i, h := range halts {
		s := HaltScope{Network: h.Network, Currency: h.Currency, Tenant: h.Tenant}
		texts[i] = fmt.Sprintf("%s by %s since %s: %s", s, h.By, h.Since.UTC().Format(time.RFC3339), h.Reason)
	}
	return a.part(name, Degraded, "halted: %s", strings.Join(texts, "; "))
}

// fundsHealth says where the operator's own coins do not pay for sending any more.
func (a *App) fundsHealth(ctx context.Context) Part {
	const name = "funds"
	f, err := a.recentFigures(ctx)
	var short []string
	for code, own := range f.Funds {
		if own.Short > 0 {
			short = append(short, fmt.Sprintf("all %s of %d tenants is set aside", code, own.Short))
		}
	}
	for i := range f.Networks {
		if g := f.Networks[i].Sweeps[treasury.WaitGasShort]; g.Count > 0 {
			short = append(short, fmt.Sprintf("%d sweeps on %s", g.Count, f.Networks[i].Network))
		}
	}
	switch slices.Sort(short); {
	case len(short) > 0:
		return a.part(name, Degraded, "the operator's coins do not pay for sending: %s", strings.Join(short, ", "))
	case errors.Is(err, context.DeadlineExceeded) && f.Seen > 0:
		return a.part(name, OK, "%d of %d tenants were looked at so far", f.Seen, f.Tenants)
	case err != nil:
		return a.part(name, Degraded, "what there is is not known: %v", err)
	}
	return a.part(name, OK, "")
}

// recentFigures are those of the last scrape, or else those of now.
func (a *App) recentFigures(ctx context.Context) (Figures, error) {
	if f := a.figures.recent(a.cfg.Clock.Now()); !f.At.IsZero() {
		return f, nil
	}
	return probe(ctx, a, "figures", a.Figures)
}

// placesLooked is how many places of a consumer are looked at, those first that are due first.
const placesLooked = 20

func (a *App) consumersHealth(ctx context.Context) []Part {
	names, err := probe(ctx, a, "consumers", a.Events.Names)
	if err != nil {
		return []Part{a.part("consumers", Degraded, "which there are is not known: %v", err)}
	}
	known := make([]Part, len(names))
	var all sync.WaitGroup
	for i, consumer := range names {
		all.Go(func() { known[i] = a.consumerHealth(ctx, consumer) })
	}
	all.Wait()
	out := slices.Clip(known)
	for i := range a.cfg.Consumers {
		if name := a.cfg.Consumers[i].Name; a.opened.Load() && !slices.Contains(names, name) {
			out = append(out, a.part("consumer/"+name, Down, "it was retired and this process lists it: it hears nothing. Leave it out, or start the process again, and it hears all that is kept"))
		}
	}
	return out
}

func (a *App) consumerHealth(ctx context.Context, consumer string) Part {
	name, now := "consumer/"+consumer, a.cfg.Clock.Now()
	rows, err := probe(ctx, a, name, func(ctx context.Context) ([]storage.Row, error) {
		return storage.Peek(ctx, a.cfg.Store, storage.Claim{
			Table: stream.Places.Table, Now: now.Add(24 * time.Hour), Max: placesLooked, // also those that are tried again later
			Where: []storage.Cond{{Column: "consumer", Op: storage.Eq, Value: consumer}},
		})
	})
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return a.part(name, Degraded, "how far it is is not known: %v", err)
	}
	for _, r := range rows {
		if v := stream.Places.Value(r); v.Tries > 0 {
			return a.part(name, Degraded, "event %d of %s has failed %d times: %s", v.Seen+1, r.Partition, v.Tries, v.Error)
		}
	}
	if len(rows) > 0 && now.Sub(rows[0].Due) >= dueLong {
		return a.part(name, Degraded, "events have waited since %s", rows[0].Due.UTC().Format(time.RFC3339))
	}
	if f, _ := a.recentFigures(ctx); f.Consumers[consumer].Dead > 0 { // without figures there is no reason to report
		return a.part(name, Degraded, "%d events are dead letters: they are not handled until an operator has them handled again", f.Consumers[consumer].Dead)
	}
	return a.part(name, OK, "")
}

func (a *App) webhooksHealth(ctx context.Context) Part {
	const name = "webhooks"
	now := a.cfg.Clock.Now()
	i := slices.IndexFunc(a.queues(), func(q queue) bool { return q.kind == name })
	oldest, err := probe(ctx, a, name, func(ctx context.Context) (time.Time, error) { return a.oldest(ctx, a.queues()[i], now) })
	switch {
	case err != nil:
		return a.part(name, Degraded, "what waits is not known: %v", err)
	case !oldest.IsZero() && now.Sub(oldest) >= dueLong:
		return a.part(name, Degraded, "one has waited since %s", oldest.UTC().Format(time.RFC3339))
	}
	return a.part(name, OK, "")
}
