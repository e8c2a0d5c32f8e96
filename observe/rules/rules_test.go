package rules_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/observe"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

var errSick = errors.New("it is sick")

// town is an App on a simulated chain, whose outside can be made sick, and the samples that a
// Prometheus would have taken of it.
type town struct {
	t      *testing.T
	clock  *cryptopay.ManualClock
	eth    *sim.Chain
	app    *cryptopay.App
	shop   string
	random *rand.ChaCha8

	store, rates, signer, receivers, consumer atomic.Bool   // sick
	skew                                      time.Duration // of the process's clock

	every  time.Duration
	taken  int
	series map[string][]string
}

// What stands outside of the App fails where the town says so.
type (
	townStore struct {
		storage.Store
		t *town
	}
	townSigner struct {
		chain.Signer
		t *town
	}
	townRates struct {
		rates.Rates
		t *town
	}
)

func (s townStore) Now(context.Context) (time.Time, error) { return s.t.clock.Now().Add(s.t.skew), nil }

func (s townStore) Rows(ctx context.Context, t *storage.Table, k ...storage.Key) ([]storage.Row, error) {
	if s.t.store.Load() {
		return nil, errSick
	}
	return s.Store.Rows(ctx, t, k...)
}

func (s townSigner) Ping(context.Context) error {
	if s.t.signer.Load() {
		return errSick
	}
	return nil
}

func (r townRates) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	if r.t.rates.Load() {
		return rates.Rate{}, fmt.Errorf("%w: %w", rates.ErrUnavailable, errSick)
	}
	return r.Rates.Rate(ctx, token, fiat)
}

// Notify implements webhook.Notifier.
func (w *town) Notify(_ context.Context, all []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(all))
	for i := range out {
		if out[i].Status = 200; w.receivers.Load() {
			out[i] = webhook.Result{Err: errSick}
		}
	}
	return out
}

func newTown(t *testing.T, every time.Duration) *town {
	t.Helper()
	ctx := t.Context()
	w := &town{t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), every: every, series: map[string][]string{}, random: rand.NewChaCha8([32]byte{1})}
	registry := chain.MainnetRegistry()
	w.eth = sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: w.clock.Now, Finality: 20})
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": w.eth.Client().AddressOf})
	require.NoError(t, err)
	store, key := townStore{memory.New(), w}, bytes.Repeat([]byte{7}, 32)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"ETH": w.eth.Client()}, Registry: keys.StoreRegistry{Store: store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return w.app.KeyOf(ctx, n, a)
		},
		Mandates: cryptopay.MandateKeys(key),
	})
	require.NoError(t, err)
	cfg := cryptopay.Config{
		Store: store, Chains: []chain.Client{w.eth.Client()}, Registry: registry, Addresses: source, Signer: townSigner{signer, w},
		Rates: townRates{rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1", "USDC": "1", "DAI": "1"}), w},
		Key:   key, Clock: w.clock, Random: w.random, Notifier: w, Log: slog.New(slog.DiscardHandler),
	}
	for name, tries := range map[string]int{"books": 100, "hasty": 3} {
		cfg.Consumers = append(cfg.Consumers, stream.Consumer{Name: name, Tries: tries, Handle: func(context.Context, stream.Tx, stream.Event) error {
			if w.consumer.Load() {
				return errSick
			}
			return nil
		}})
	}
	cfg.Withdrawals.Policy = func(_ context.Context, x withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
		if x.CustomID == "look" {
			return withdrawal.AskReview, "as asked", nil
		}
		return withdrawal.Allow, "", nil
	}
	cfg.HeadAge = 10 * time.Minute // as on a real network
	w.app, err = cryptopay.New(cfg)
	require.NoError(t, err)
	require.NoError(t, w.app.Open(ctx, keys.Tables()...))
	name := "shop"
	shop, err := w.app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	w.shop = shop.ID
	return w
}

// pass lets time pass: a block, all work, and a scrape, each time.
func (w *town) pass(times int) {
	w.t.Helper()
	for range times {
		w.clock.Advance(w.every)
		w.eth.Mine(1)
		_ = w.app.Step(w.t.Context()) // the sick make it fail
		w.scrape()
	}
}

func (w *town) scrape() {
	for _, s := range observe.Read(w.t.Context(), w.app) {
		labels := make([]string, len(s.Labels))
		for i := range labels {
			labels[i] = s.Metric.Labels[i] + "=" + strconv.Quote(s.Labels[i])
		}
		name := s.Name + "{" + strings.Join(labels, ",") + "}"
		for len(w.series[name]) < w.taken {
			w.series[name] = append(w.series[name], "_")
		}
		w.series[name] = append(w.series[name], strconv.FormatFloat(s.Value, 'f', -1, 64))
	}
	w.taken++
}

func (w *town) fund(amount string) {
	w.t.Helper()
	hot, err := w.app.Hot(w.t.Context(), "ETH", w.shop)
	require.NoError(w.t, err)
	_, err = w.eth.Fund(hot, "ETH", decimal.RequireFromString(amount))
	require.NoError(w.t, err)
}

func (w *town) payment(usd, currency string) payment.Payment {
	w.t.Helper()
	minutes := 10
	p, err := w.app.Payments.Create(w.t.Context(), w.shop, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: currency}, CallbackURL: "https://shop.example/hook", ExpiryMinutes: &minutes,
	})
	require.NoError(w.t, err)
	return p
}

func (w *town) pay(p payment.Payment) {
	w.t.Helper()
	c, err := chain.MainnetRegistry().Currency(p.Currency)
	require.NoError(w.t, err)
	_, err = w.eth.Pay(chain.Address(p.Address), p.Currency, c.Decimal(p.Due))
	require.NoError(w.t, err)
}

// paid is a payment that came in and was credited.
func (w *town) paid(usd, currency string) {
	w.t.Helper()
	w.pay(w.payment(usd, currency))
	w.pass(20)
}

func (w *town) withdraw(usd, currency, custom string) {
	w.t.Helper()
	amount := decimal.RequireFromString(usd)
	_, err := w.app.Withdrawals.Create(w.t.Context(), w.shop, withdrawal.CreateInput{
		Terms:    withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: string(w.eth.Customer("supplier"))},
		CustomID: custom,
	})
	require.NoError(w.t, err)
}

// story is something that goes wrong, and the alert that must tell of it.
type story struct {
	alert  string
	every  time.Duration // between two scrapes; 0 = a minute
	before func(*town)
	calm   int // scrapes before it begins
	strike func(*town)
	after  int // scrapes after it
}

var stories = map[simulation.Nemesis]story{
	simulation.Reorgs:      {alert: "CryptopayReorg", strike: func(w *town) { _, err := w.eth.Reorg(2); require.NoError(w.t, err) }, after: 3},
	simulation.DeepReorgs:  {alert: "CryptopayNetworkHalted", calm: 40, strike: func(w *town) { _, err := w.eth.Reorg(35); require.NoError(w.t, err) }, after: 3},
	simulation.FlipFlop:    {alert: "CryptopayReorg", strike: flipFlop, after: 3},
	simulation.Lag:         {alert: "CryptopayNodeDown", strike: func(w *town) { w.eth.Front().Freeze() }, after: 20},
	simulation.Amnesia:     {alert: "CryptopayNodeDown", strike: func(w *town) { w.eth.Front().Freeze() }, after: 20},
	simulation.NodeErrors:  {alert: "CryptopayNodeDown", strike: func(w *town) { w.eth.Front().FailRate(1000) }, after: 10},
	simulation.Partial:     {alert: "CryptopayWorkerFails", strike: func(w *town) { w.eth.Front().Partial(true) }, after: 10},
	simulation.FailedReads: {alert: "CryptopayStoreDown", strike: func(w *town) { w.store.Store(true) }, after: 5},
	simulation.Skew:        {alert: "CryptopayClockOff", strike: func(w *town) { w.skew = time.Minute }, after: 5},
	simulation.Jumps:       {alert: "CryptopayClockOff", strike: func(w *town) { w.skew = -time.Hour }, after: 5},
	simulation.Prices:      {alert: "CryptopayRatesDown", strike: func(w *town) { w.rates.Store(true) }, after: 8},
	simulation.Signers:     {alert: "CryptopaySignerDown", strike: func(w *town) { w.signer.Store(true) }, after: 5},
	simulation.Receivers: {alert: "CryptopayReceiversFail", strike: func(w *town) {
		w.receivers.Store(true)
		w.pay(w.payment("50", "ETH"))
	}, after: 25},
	simulation.Hangs: {alert: "CryptopayReceiversFail", strike: func(w *town) { // who takes all the time that there is has failed then
		w.receivers.Store(true)
		w.pay(w.payment("50", "ETH"))
	}, after: 25},
	simulation.Thrift: {alert: "CryptopayFundsShort", strike: func(w *town) { w.pay(w.payment("5000", "USDTERC20")) }, after: 40},
	simulation.Storms: {alert: "CryptopayFeesHigh", every: 5 * time.Minute, calm: 290, strike: func(w *town) { w.eth.SetFeeLevel(30 * w.eth.FeeLevel()) }, after: 12},
	simulation.Fees: {alert: "CryptopayWithdrawalWaiting", before: rich, strike: func(w *town) {
		w.withdraw("100", "ETH", "")
		require.NoError(w.t, w.app.Step(w.t.Context())) // it is sent
		w.eth.SetFeeLevel(1000 * w.eth.FeeLevel())
	}, after: 60},
	simulation.Halting: {alert: "CryptopayHalted", strike: func(w *town) {
		_, err := w.app.Operate.Halt(w.t.Context(), cryptopay.HaltScope{}, cryptopay.Call{By: "somebody", Reason: "a drill"})
		require.NoError(w.t, err)
	}, after: 8},
	simulation.Issuers: {alert: "CryptopayWithdrawalDeliveredLess", before: func(w *town) {
		w.fund("5")
		w.paid("5000", "USDTERC20")
		w.pass(30)
	}, strike: func(w *town) {
		c, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(w.t, err)
		w.eth.SetBehaviour(c.Contract, sim.Behaviour{FeeBasisPoints: 100})
		w.withdraw("1000", "USDTERC20", "")
	}, after: 40},
}

// own are stories that no nemesis of the simulator tells.
var own = map[string]story{
	"a consumer fails": {alert: "CryptopayConsumerBehind", strike: func(w *town) {
		w.consumer.Store(true)
		w.payment("50", "ETH")
	}, after: 10},
	"a consumer is retired too early": {alert: "CryptopayConsumerRetired", strike: func(w *town) {
		c := w.app.Config()
		c.Key, c.Consumers = bytes.Repeat([]byte{7}, 32), nil
		operator, err := cryptopay.New(c)
		require.NoError(w.t, err)
		require.NoError(w.t, operator.Events.Retire(w.t.Context(), "books"))
	}, after: 5},
	"an event dies": {alert: "CryptopayDeadLetters", strike: func(w *town) {
		w.consumer.Store(true)
		w.payment("50", "ETH")
	}, after: 10},
	"late money": {alert: "CryptopaySuspense", strike: func(w *town) {
		p := w.payment("50", "ETH")
		w.pass(20)
		w.pay(p)
	}, after: 40},
	"a sweep brings less": {alert: "CryptopayDeliveredLess", before: func(w *town) { w.fund("5") }, strike: func(w *town) {
		w.pay(w.payment("500", "USDTERC20"))
		w.eth.Mine(1)
		c, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(w.t, err)
		w.eth.SetBehaviour(c.Contract, sim.Behaviour{FeeBasisPoints: 100})
	}, after: 40},
	"a review":      {alert: "CryptopayWithdrawalReview", before: rich, strike: func(w *town) { w.withdraw("100", "ETH", "look") }, after: 5},
	"a wrong price": {alert: "CryptopayRatesMissing", strike: func(w *town) { w.rates.Store(true) }, after: 20},
}

// rich gives the shop coins.
func rich(w *town) {
	w.fund("5")
	w.paid("500", "ETH")
	w.pass(30)
}

func flipFlop(w *town) {
	old := w.eth.Head().Hash
	_, err := w.eth.Reorg(2)
	require.NoError(w.t, err)
	w.pass(1)
	_, err = w.eth.Switch(old)
	require.NoError(w.t, err)
}

// spared are the nemeses of which nobody needs to hear, and why.
var spared = map[simulation.Nemesis]string{
	simulation.Drops: "a customer's transaction that is gone costs the customer time", simulation.Revival: "what is sent again lands once",
	simulation.Malleation: "the payment is found under its other hash", simulation.Forgery: "as malleation", simulation.Crumbs: "small payments are business", simulation.Regulars: "as crumbs",
	"lists": "as crumbs", "savers": "who sets a policy knows it",
	simulation.Lies: "what one node says wrongly is refused, and shows as its errors", simulation.Nonces: "as lies", simulation.Broadcasts: "what was not taken is sent again; what lasts shows as a withdrawal that waits",
	simulation.Eviction: "as broadcasts", simulation.Crashes: "another process goes on", simulation.Pauses: "as crashes", simulation.Conflicts: "they are decided again",
	simulation.LostCommits: "they are sent again", simulation.Crowd: "several processes are the rule", simulation.Operators: "they are people, and recorded",
	simulation.Tokens: "what is refused waits, and shows as a sweep or a withdrawal that waits", simulation.Attackers: "what they send counts for nothing, or is in suspense",
	simulation.Restores: "who restores knows it", simulation.Mistakes: "a wrong price is refused, and shows as one that is missing", simulation.Absurd: "as mistakes",
	simulation.Thieves: "the kind withdrawal_altered, which TestE10_EachKindFires has", simulation.Rollouts: "who deploys knows it", simulation.Traitors: "the signer refuses, and its log tells",
}

// For every nemesis of the simulator the alert that must tell of it fires, and did not fire
// before; or there is a reason why nobody needs to hear.
func TestE10_EachNemesisFiresItsAlert(t *testing.T) {
	t.Parallel()
	promtool := testenv.Promtool(t)
	all := map[string]story{}
	maps.Copy(all, own)
	for _, n := range simulation.Nemeses() {
		s, told := stories[n]
		_, quiet := spared[n]
		require.NotEqual(t, told, quiet, "%s has either an alert or a reason to have none", n)
		if told {
			all[string(n)] = s
		}
	}
	require.Len(t, all, len(own)+len(stories))
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.every == 0 {
				s.every = time.Minute
			}
			w := newTown(t, s.every)
			if w.pass(2); s.before != nil {
				s.before(w)
			}
			w.pass(max(s.calm, 20))
			calm := w.taken - 1
			s.strike(w)
			w.pass(s.after)
			check(t, promtool, w, s.alert, calm)
		})
	}
}

// check asks promtool whether an alert fires at the end of what was scraped, and did not at
// the scrape calm.
func check(t *testing.T, promtool string, w *town, alert string, calm int) {
	t.Helper()
	rules, err := filepath.Abs("alerts.yml")
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: %s\ntests:\n  - interval: %s\n    input_series:\n", rules, w.every, w.every)
	for _, name := range slices.Sorted(maps.Keys(w.series)) {
		fmt.Fprintf(&b, "      - series: '%s'\n        values: '%s'\n", strings.ReplaceAll(name, "'", "''"), strings.Join(w.series[name], " "))
	}
	fmt.Fprintf(&b, "    promql_expr_test:\n")
	expr := fmt.Sprintf("count(ALERTS{alertname=%q,alertstate=\"firing\"}) > bool 0", alert)
	fmt.Fprintf(&b, "      - expr: '%s'\n        eval_time: %s\n        exp_samples: []\n", expr, time.Duration(calm)*w.every)
	fmt.Fprintf(&b, "      - expr: '%s'\n        eval_time: %s\n        exp_samples: [{labels: '{}', value: 1}]\n", expr, time.Duration(w.taken-1)*w.every)
	file := filepath.Join(t.TempDir(), "test.yml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", alert, out)
}

// alert is a rule of alerts.yml.
type alert struct {
	name, expr, runbook string
}

// rule finds them: the file is written so that it does.
var rule = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: '(.*)'\n(?:        for: \w+\n)?        labels:\n          severity: (?:page|ticket)\n        annotations:\n          summary: '.*'\n          runbook_url: (\S+)$`)

func alerts(t *testing.T) (out []alert) {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	for _, m := range rule.FindAllStringSubmatch(string(text), -1) {
		out = append(out, alert{m[1], strings.ReplaceAll(m[2], "''", "'"), m[3]})
	}
	require.Len(t, out, strings.Count(string(text), "- alert:"), "a rule is not written as the others are")
	return out
}

// panels are the expressions of the board.
func panels(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("board.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	for _, p := range board.Panels {
		require.True(t, p.Type == "row" || len(p.Targets) > 0)
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	require.Greater(t, len(out), 30)
	return out
}

const runbook = "https://github.com/cryptopay-go/cryptopay/blob/main/docs/operations.md#"

// Each kind of alert of the runbook has a rule, each rule links to a section that is there,
// and rules and board name metrics that there are: all of them, on the board.
func TestE10_RulesAndBoardAreOfTheRunbookAndTheMetrics(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	anchors, kinds := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			title = strings.TrimSpace(strings.TrimLeft(title, "#"))
			anchor := strings.ReplaceAll(strings.NewReplacer("`", "", "'", "", ",", "").Replace(strings.ToLower(title)), " ", "-")
			if anchors[anchor] = true; strings.HasPrefix(title, "`") {
				kinds[anchor] = false
			}
		}
	}
	require.Len(t, kinds, 20)
	names := map[string]bool{observe.Steps + "_bucket": true}
	for _, m := range observe.Metrics() {
		names[m.Name] = true
	}
	name := regexp.MustCompile(`cryptopay_\w+`)
	for _, a := range alerts(t) {
		section, ok := strings.CutPrefix(a.runbook, runbook)
		require.True(t, ok, a.name)
		require.True(t, anchors[section], "%s links to the section %s, which is not there", a.name, section)
		if _, ok := kinds[section]; ok {
			kinds[section] = true
		}
		found := name.FindAllString(a.expr, -1)
		require.NotEmpty(t, found, a.name)
		for _, n := range found {
			require.True(t, names[n], "%s: no metric %s", a.name, n)
		}
	}
	for kind, has := range kinds {
		require.True(t, has, "%s has no rule", kind)
	}
	shown := map[string]bool{}
	for _, expr := range panels(t) {
		for _, n := range name.FindAllString(expr, -1) {
			require.True(t, names[n], "the board: no metric %s", n)
			shown[n] = true
		}
	}
	for n := range names {
		if n != "cryptopay_worker_steps_total" && n != "cryptopay_worker_failing_seconds" {
			require.True(t, shown[n], "the board does not show %s", n)
		}
	}
}

// Each kind that is counted as it is told has a rule that fires when one is, and ends after
// a while.
func TestE10_EachKindFires(t *testing.T) {
	t.Parallel()
	promtool, counted := testenv.Promtool(t), 0
	kind := regexp.MustCompile(`alerts_total\{kind="(\w+)"\}`)
	for _, a := range alerts(t) {
		m := kind.FindStringSubmatch(a.expr)
		if m == nil {
			continue
		}
		counted++
		w := newTown(t, time.Minute)
		w.scrape()
		series := `cryptopay_alerts_total{kind="` + m[1] + `"}`
		require.Equal(t, []string{"0"}, w.series[series], "it is there before the first is told")
		quiet := slices.Repeat([]string{"0"}, 20)
		told := slices.Concat(quiet, slices.Repeat([]string{"1"}, 5))
		w.series = map[string][]string{series: told}
		w.taken = len(told)
		check(t, promtool, w, a.name, len(quiet)-1)
	}
	require.GreaterOrEqual(t, counted, 9)
}

// What the host hears by Notify is what is counted.
func TestE10_WhatIsToldIsCounted(t *testing.T) {
	t.Parallel()
	w := newTown(t, time.Minute)
	w.pass(2)
	p := w.payment("50", "ETH")
	w.pass(20)
	w.pay(p)
	w.pass(40)
	require.Equal(t, "0", w.series[`cryptopay_alerts_total{kind="suspense"}`][0])
	require.Equal(t, "1", w.series[`cryptopay_alerts_total{kind="suspense"}`][w.taken-1])
}

// Everything that rules and board ask of a Prometheus that scrapes the gateway has an answer,
// but for what the comparison of a rule leaves out.
func TestE10_APrometheusOfTheGatewayAnswersEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "gateway")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/gateway").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var said lockedBuffer
	gateway := exec.CommandContext(t.Context(), program, "-addr", "127.0.0.1:0", "-store", "memory", "-networks", "ETH", "-metrics-addr", "127.0.0.1:0")
	gateway.Dir, gateway.Stdout, gateway.Env = dir, &said, []string{"HOME=" + dir}
	require.NoError(t, gateway.Start())
	t.Cleanup(func() {
		_ = gateway.Process.Kill()
		_ = gateway.Wait()
	})
	at := regexp.MustCompile(`metrics are at http://(\S+)/metrics`)
	var target string
	require.Eventually(t, func() bool {
		if m := at.FindStringSubmatch(said.String()); m != nil {
			target = m[1]
		}
		return target != ""
	}, time.Minute, 50*time.Millisecond)
	file, err := filepath.Abs("alerts.yml")
	require.NoError(t, err)
	prometheus := testenv.Prometheus(t, target, file)

	left := regexp.MustCompile(` [<>] [0-9]+$`)
	ask := panels(t)
	for _, a := range alerts(t) {
		require.Regexp(t, left, a.expr, a.name)
		ask = append(ask, left.ReplaceAllString(a.expr, ""))
	}
	for _, expr := range ask {
		if strings.Contains(expr, "cryptopay_consumer_") || strings.Contains(expr, "consumer/") {
			continue // the gateway has no consumer; TestE10_EachNemesisFiresItsAlert has one
		}
		var said string
		require.Eventually(t, func() bool {
			var n int
			n, said = series(t, fmt.Sprintf("http://127.0.0.1:%d", prometheus.Port), expr)
			return n > 0
		}, 90*time.Second, 200*time.Millisecond, "%s has no answer: %s", expr, &said)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/api/v1/rules", prometheus.Port), nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NotContains(t, string(text), `"health":"err"`)
}

// series asks a Prometheus, and counts what it answers.
func series(t *testing.T, base, expr string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	var v struct {
		Data struct{ Result []json.RawMessage }
	}
	_ = json.Unmarshal(text, &v)
	return len(v.Data.Result), string(text)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
