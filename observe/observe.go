// Package observe names what an operator watches of an App, for whatever shows figures:
// observe/prometheus and observe/otel do. It promises that a name keeps its meaning, and
// that labels have few values: networks, currencies, statuses, reasons, workers and
// consumers, never a tenant or an object.
//
// Directory rules has alert rules for Prometheus and a board for Grafana.
package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Metric is one kind of figure.
type Metric struct {
	Name    string // "cryptopay_…"
	Help    string
	Counter bool // it only grows while the process lives; else it is a gauge
	Labels  []string
}

// Sample is one value of a Metric. Labels are in the order of the Metric's. Values are for
// looking at: an amount of money is rounded to what a float64 holds.
type Sample struct {
	*Metric
	Labels []string
	Value  float64
}

// Steps is the histogram of what an Observer hears: how long steps of workers took, in
// seconds, by worker. Buckets are its bounds.
const Steps = "cryptopay_worker_step_seconds"

// StepsHelp says what Steps is.
const StepsHelp = "How long steps of workers took, in this process."

// Buckets are the bounds of Steps, in seconds.
var Buckets = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// The metrics.
var (
	partStatus = gauge("cryptopay_part_status", "How a part is: 0 ok, 1 degraded, 2 down. See App.Health.", "part")
	clockSkew  = gauge("cryptopay_clock_skew_seconds", "How far this process's clock is at least from the store's.")
	ratesAge   = gauge("cryptopay_rates_age_seconds", "Age of the oldest price.")
	figuresUp  = gauge("cryptopay_figures_up", "1 where the figures of this scrape are all there is, 0 where reading some failed.")

	nodeTip         = gauge("cryptopay_node_tip_height", "The height that the node says.", "network")
	nodeRead        = gauge("cryptopay_node_read_height", "The height up to which the chain was read, by any process.", "network")
	nodeBehind      = gauge("cryptopay_node_behind_blocks", "Blocks that the node has and that were not read.", "network")
	nodeAge         = gauge("cryptopay_node_head_age_seconds", "Age of the newest block of the node; of the newest that was read where it does not answer.", "network")
	nodeHalted      = gauge("cryptopay_network_halted", "1 where a deep fork has halted the network.", "network")
	reorgs          = counter("cryptopay_reorgs_total", "How often this process found blocks replaced that it had read.", "network")
	reorgDepth      = gauge("cryptopay_reorg_depth_blocks", "How many blocks a reorg replaced at the most, as this process has seen.", "network")
	reconciled      = gauge("cryptopay_reconciled_timestamp_seconds", "When this process last compared what watched addresses hold with what is stored; 0 where it has not.", "network")
	nodeCalls       = counter("cryptopay_node_calls_total", "Calls of this process to one node.", "network", "node")
	nodeMost        = gauge("cryptopay_node_calls_most", "Calls in any minute that this process asks one node at the most; 0 = no bound.", "network", "node")
	nodeWaiting     = gauge("cryptopay_node_calls_waiting_seconds", "For how long calls have waited until the node may be asked more.", "network", "node")
	inFlight        = gauge("cryptopay_deposits_in_flight", "Deposits that are not final yet.", "network", "state")
	booksLooked     = gauge("cryptopay_books_looked_ratio", "The share of addresses whose balance was held against the books in the last day.", "network")
	booksAge        = gauge("cryptopay_books_oldest_seconds", "How long ago the address was looked at whose look is the longest ago.", "network")
	booksWaiting    = gauge("cryptopay_books_waiting", "Addresses that could not be looked at to the end, by the reason.", "network", "reason")
	booksWaitingAge = gauge("cryptopay_books_waiting_seconds", "How long the one has waited that waits the longest.", "network", "reason")
	booksDiffer     = gauge("cryptopay_books_differences", "Differences between the books and the chain that nothing explains; payouts of their currency and tenant are halted.", "network")
	sweeps          = gauge("cryptopay_sweeps", "Deposits on their way to hot addresses, by the reason for which they wait; at most 1000 of a network are looked at.", "network", "reason")
	sweepsAge       = gauge("cryptopay_sweeps_oldest_seconds", "How long the one has waited that waits the longest.", "network", "reason")
	forwardCost     = gauge("cryptopay_forward_cost", "What forwarding one deposit costs, in the network's gas coin.", "currency")
	minimum         = gauge("cryptopay_payment_minimum", "The least amount of a payment that what forwarding costs asks for, in the currency.", "currency")

	tenants     = gauge("cryptopay_tenants", "Tenants that there are.")
	tenantsSeen = gauge("cryptopay_tenants_seen", "Tenants that sums over tenants are of: this process has looked at them.")

	payments       = gauge("cryptopay_payments", "Payments by status, of all tenants.", "status")
	paymentsAge    = gauge("cryptopay_payments_oldest_seconds", "Age of the oldest payment of a status that is not final; 0 for the others.", "status")
	withdrawals    = gauge("cryptopay_withdrawals", "Withdrawals by status, of all tenants.", "status")
	withdrawalsAge = gauge("cryptopay_withdrawals_oldest_seconds", "Age of the oldest withdrawal of a status that is not final; 0 for the others.", "status")
	waiting        = gauge("cryptopay_withdrawals_waiting", "Withdrawals by the reason for which they wait; at most 1000 of a tenant and status are looked at.", "reason")
	waitingAge     = gauge("cryptopay_withdrawals_waiting_seconds", "How long the one has waited that waits the longest.", "reason")
	suspense       = gauge("cryptopay_suspense_deposits", "Deposits in suspense; at most 1000 of a tenant are counted.", "currency")
	suspenseSum    = gauge("cryptopay_suspense_amount", "What is in suspense, in whole coins.", "currency")
	funds          = gauge("cryptopay_funds", "The operator's own coins by the books, in whole coins.", "currency")
	fundsReserved  = gauge("cryptopay_funds_reserved", "What is set aside of them for transactions in flight.", "currency")
	fundsInFlight  = gauge("cryptopay_funds_in_flight", "Transactions that it is set aside for.", "currency")
	fundsShort     = gauge("cryptopay_funds_short_tenants", "Tenants whose operator's coins are all set aside.", "currency")
	feesPlatform   = gauge("cryptopay_fees_platform", "Fees that were earned, in whole coins.", "currency")
	feesNetwork    = gauge("cryptopay_fees_network", "Fees that were charged for networks, less what networks took.", "currency")

	consumerBehind  = gauge("cryptopay_consumer_behind_events", "Events that a consumer has not handled.", "consumer")
	consumerAge     = gauge("cryptopay_consumer_oldest_seconds", "Age of the oldest of them.", "consumer")
	consumerFailing = gauge("cryptopay_consumer_failing_streams", "Streams, of a tenant or a network, whose next event the consumer has failed.", "consumer")
	consumerDead    = gauge("cryptopay_consumer_dead_letters", "Events that a consumer did not handle, and handles no more by itself; at most 1000 of 1000 tenants are counted.", "consumer")

	workDue     = gauge("cryptopay_work_due_seconds", "For how long the oldest row of a worker has been due.", "worker")
	webhooks    = gauge("cryptopay_webhooks_undelivered", "Webhooks that were not delivered yet; at most 200 are looked at.")
	webhooksAge = gauge("cryptopay_webhooks_oldest_seconds", "Age of the oldest of them.")
	halts       = gauge("cryptopay_halts", "Halts of what is sent, by who set them.", "by")

	verified = gauge("cryptopay_verify_timestamp_seconds", "When App.Verify last ended in this process; 0 where it has not.")
	unsound  = gauge("cryptopay_verify_unsound_tenants", "Tenants whose books it found wrong.")

	alerts   = counter("cryptopay_alerts_total", "What this process told the Notify hooks, by kind.", "kind")
	steps    = counter("cryptopay_worker_steps_total", "Steps of a worker in this process.", "worker")
	failures = counter("cryptopay_worker_failures_total", "Steps that failed.", "worker")
	failing  = gauge("cryptopay_worker_failing_seconds", "For how long no step of a worker has succeeded.", "worker")
)

var all []*Metric

func gauge(name, help string, labels ...string) *Metric {
	m := &Metric{Name: name, Help: help, Labels: labels}
	all = append(all, m)
	return m
}

func counter(name, help string, labels ...string) *Metric {
	m := gauge(name, help, labels...)
	m.Counter = true
	return m
}

// Metrics lists all metrics, Steps left out.
func Metrics() []*Metric { return slices.Clone(all) }

// patience is how long Read waits for figures: a scrape has 10 seconds by default.
const patience = 5 * time.Second

// Read asks an App for its Health and its Figures, at once, and makes samples of them. It
// returns within about 5 seconds. What could not be read has no samples: cryptopay_figures_up
// is 0 then, and a part of Health says why.
func Read(ctx context.Context, app *cryptopay.App) []Sample {
	var h cryptopay.Health
	var f cryptopay.Figures
	var err error
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	figures := make(chan struct{})
	go func() { // a store may not heed its context
		defer close(figures)
		f, err = app.Figures(ctx)
	}()
	var asked sync.WaitGroup
	asked.Go(func() { h = app.Health(ctx) })
	asked.Wait()
	s := samples{now: h.At}
	s.health(&h)
	select {
	case <-figures:
		s.figures(&f, err == nil)
	case <-ctx.Done():
		s.add(figuresUp, 0)
	}
	return s.list
}

type samples struct {
	now  time.Time
	list []Sample
}

func (s *samples) add(m *Metric, value float64, labels ...string) {
	s.list = append(s.list, Sample{m, labels, value})
}

// age is how long ago something was; 0 for what never was.
func (s *samples) age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(s.now.Sub(at).Seconds(), 0)
}

func stamp(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *samples) health(h *cryptopay.Health) {
	for _, p := range h.Parts() {
		s.add(partStatus, map[cryptopay.State]float64{cryptopay.Degraded: 1, cryptopay.Down: 2}[p.State], p.Name)
	}
	s.add(clockSkew, h.Skew.Seconds())
	s.add(ratesAge, h.RatesAge.Seconds())
	for i := range h.Nodes {
		n, name := &h.Nodes[i], string(h.Nodes[i].Network)
		s.add(nodeTip, float64(n.Tip), name)
		s.add(nodeRead, float64(n.Head), name)
		s.add(nodeBehind, float64(n.Behind), name)
		s.add(nodeAge, n.HeadAge.Seconds(), name)
	}
}

// Reasons that always have a sample, so that a rule sees the first of them.
var (
	waitingReasons = []string{
		withdrawal.ShownApproval, withdrawal.ShownReview, withdrawal.ShownHalted, withdrawal.ShownHotShort, withdrawal.ShownGasShort,
		withdrawal.ShownFeeTooHigh, withdrawal.ShownConsolidating, withdrawal.ShownDeliveredLess, withdrawal.ShownBelowCost,
		withdrawal.ShownStuck, withdrawal.ShownReorged,
	}
	sweepReasons = []string{
		"", treasury.WaitBelowCost, treasury.WaitForMore, treasury.WaitNoPrice, treasury.WaitNoFee, treasury.WaitGasShort, treasury.WaitDailyCap,
		treasury.WaitRefused, treasury.WaitEmpty, treasury.WaitHalted, treasury.WaitTurn, treasury.WaitGasStays,
	}
)

func (s *samples) figures(f *cryptopay.Figures, whole bool) {
	s.add(figuresUp, truth(whole))
	for status, g := range f.Payments {
		s.group(payments, paymentsAge, g, string(status))
	}
	for status, g := range f.Withdrawals {
		s.group(withdrawals, withdrawalsAge, g, string(status))
	}
	for _, reason := range waitingReasons {
		s.group(waiting, waitingAge, f.Waiting[reason], reason)
	}
	s.add(tenants, float64(f.Tenants))
	s.add(tenantsSeen, float64(f.Seen))
	for code, v := range f.Suspense {
		s.add(suspense, float64(v.Count), code)
		s.add(suspenseSum, number(v.Amount), code)
	}
	for code, v := range f.Funds {
		s.add(funds, number(v.Equity), code)
		s.add(fundsReserved, number(v.Reserved), code)
		s.add(fundsInFlight, float64(v.InFlight), code)
		s.add(fundsShort, float64(v.Short), code)
		if _, ok := f.Suspense[code]; !ok {
			s.add(suspense, 0, code)
			s.add(suspenseSum, 0, code)
		}
		if _, ok := f.Fees[code]; !ok {
			s.add(feesPlatform, 0, code)
			s.add(feesNetwork, 0, code)
		}
	}
	for code, v := range f.Fees {
		s.add(feesPlatform, number(v.Platform), code)
		s.add(feesNetwork, number(v.Network), code)
	}
	for name, c := range f.Consumers {
		s.add(consumerBehind, float64(c.Behind), name)
		s.add(consumerAge, s.age(c.Oldest), name)
		s.add(consumerFailing, float64(c.Failing), name)
		s.add(consumerDead, float64(c.Dead), name)
	}
	for i := range f.Networks {
		s.network(&f.Networks[i])
	}
	for worker, at := range f.Due {
		s.add(workDue, s.age(at), worker)
	}
	s.group(webhooks, webhooksAge, f.Webhooks)
	operators, library := 0, 0
	for _, h := range f.Halts {
		if h.By == cryptopay.Library {
			library++
		} else {
			operators++
		}
	}
	s.add(halts, float64(operators), "operator")
	s.add(halts, float64(library), "library")
	s.add(verified, stamp(f.Verified.At))
	s.add(unsound, float64(f.Verified.Unsound))
	for kind, n := range f.Alerts {
		s.add(alerts, float64(n), kind)
	}
	for _, w := range f.Steps {
		s.add(steps, float64(w.Steps), w.Worker)
		s.add(failures, float64(w.Failures), w.Worker)
		s.add(failing, s.age(w.Failing), w.Worker)
	}
}

func (s *samples) group(count, age *Metric, g cryptopay.Group, label ...string) {
	s.add(count, float64(g.Count), label...)
	s.add(age, s.age(g.Oldest), label...)
}

func (s *samples) network(n *cryptopay.NetworkFigures) {
	name := string(n.Network)
	s.add(nodeHalted, truth(n.Halted != ""), name)
	s.add(reorgs, float64(n.Reorgs), name)
	s.add(reorgDepth, float64(n.Deepest), name)
	s.add(reconciled, stamp(n.Reconciled), name)
	for _, u := range n.Usage {
		s.add(nodeCalls, float64(u.Total), name, u.Node)
		s.add(nodeMost, float64(u.Most), name, u.Node)
		s.add(nodeWaiting, u.Waited.Seconds(), name, u.Node)
	}
	s.add(booksLooked, n.Books.Looked, name)
	s.add(booksAge, s.age(n.Books.Oldest), name)
	s.add(booksDiffer, float64(n.Books.Differences), name)
	for _, reason := range reconcile.Reasons() {
		w := n.Books.Waiting[reason]
		s.group(booksWaiting, booksWaitingAge, cryptopay.Group{Count: w.Count, Oldest: w.Since}, name, reason)
	}
	for _, state := range []incoming.State{incoming.Seen, incoming.Included} {
		s.add(inFlight, float64(n.Deposits[state]), name, string(state))
	}
	for reason, g := range n.Sweeps {
		s.group(sweeps, sweepsAge, g, name, reason)
	}
	for _, reason := range sweepReasons {
		if _, ok := n.Sweeps[reason]; !ok {
			s.group(sweeps, sweepsAge, cryptopay.Group{}, name, reason)
		}
	}
	for code, cost := range n.Costs {
		s.add(forwardCost, number(cost), code)
	}
	for code, least := range n.Minimums {
		s.add(minimum, number(least), code)
	}
}

func number(d decimal.Decimal) float64 { return d.InexactFloat64() }
