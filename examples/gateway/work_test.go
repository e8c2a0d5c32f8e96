package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// request is one thing that a merchant asked for, under one idempotency key.
type request struct {
	kind     string // payment, withdrawal or transfer
	key      string
	body     body
	currency string
	amount   decimal.Decimal // asked for, in coins; of a payment what is due
	to       chain.Address   // where a withdrawal goes, or a payment is paid
	id       string          // "" = no answer came: it happened whole, or not at all
	paid     bool            // the customer paid the payment
}

// merchant uses the interface as anybody would who has idempotency keys: what
// has no answer is asked again, or given up and looked up in the end.
type merchant struct {
	w    *town
	seed uint64

	client string // of its application; its secret is testSecret

	mu       sync.Mutex
	live     []*process // that serve
	changed  chan struct{}
	token    string
	all      map[string]*request
	unknown  int // requests without an answer, each time
	answered int
	faults   []string
}

func newMerchant(w *town, seed uint64) *merchant {
	return &merchant{w: w, seed: seed, client: testClient, changed: make(chan struct{}), all: map[string]*request{}}
}

// use names the processes that serve now.
func (m *merchant) use(live ...*process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = live
	close(m.changed)
	m.changed = make(chan struct{})
}

// leave takes a process out that does not serve any more.
func (m *merchant) leave(p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = slices.DeleteFunc(slices.Clone(m.live), func(x *process) bool { return x == p })
}

func (m *merchant) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// pick is any process that serves; it waits until there is one.
func (m *merchant) pick(ctx context.Context, r *rand.Rand) (*process, error) {
	for {
		m.mu.Lock()
		live, changed := m.live, m.changed
		m.mu.Unlock()
		if len(live) > 0 {
			return live[r.IntN(len(live))], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var httpClient = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// try sends one request; the error says that the outcome is unknown.
func (m *merchant) try(ctx context.Context, p *process, method, path, key string, in any) (int, body, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	m.mu.Lock()
	r.Header.Set("Authorization", "Bearer "+m.token)
	m.mu.Unlock()
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := httpClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	var v body
	err = json.NewDecoder(res.Body).Decode(&v)
	return res.StatusCode, v, err
}

func (m *merchant) login(ctx context.Context, p *process) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/o/token/", strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return err
	}
	r.SetBasicAuth(m.client, testSecret)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := httpClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var v struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		return err
	}
	if v.AccessToken == "" {
		return fmt.Errorf("no token: status %d", res.StatusCode)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.token = v.AccessToken
	return nil
}

// errGivenUp: no answer came, and the merchant asks no more.
var errGivenUp = errors.New("given up")

// ask repeats a request, with its key, until there is an answer, or gives up
// after one that was lost, by chance of so many per cent.
func (m *merchant) ask(ctx context.Context, r *rand.Rand, method, path, key string, in any, giveUp int) (int, body, error) {
	for {
		p, err := m.pick(ctx, r)
		if err != nil {
			return 0, nil, err
		}
		status, v, err := m.try(ctx, p, method, path, key, in)
		switch {
		case err == nil && status == http.StatusUnauthorized:
			_ = m.login(ctx, p) // where it fails, the next try does
			continue
		case err == nil && status < http.StatusInternalServerError && status != http.StatusConflict:
			return status, v, nil
		case ctx.Err() != nil:
			return 0, nil, ctx.Err()
		}
		m.mu.Lock()
		m.unknown++
		m.mu.Unlock()
		if r.IntN(100) < giveUp {
			return 0, nil, errGivenUp
		}
		if err := (fast{}).Wait(ctx, time.Second); err != nil {
			return 0, nil, err
		}
	}
}

// currencies that the merchant deals in, with the most of one withdrawal.
var currencies = []struct {
	code, price string
	network     chain.Network
}{{"USDTAVAX", "1", "AVAX"}, {"AVAX", "25", "AVAX"}, {"BTC", "60000", "BTC"}}

// request makes one at random.
func (m *merchant) request(r *rand.Rand, key string) *request {
	c := currencies[r.IntN(len(currencies))]
	dollars := decimal.New(1000+r.Int64N(1500), -2) // 10 to 25
	coins := dollars.DivRound(decimal.RequireFromString(c.price), 6)
	q := &request{key: key, currency: c.code, amount: coins}
	switch n := r.IntN(100); {
	case n < 20:
		q.kind = "payment"
		q.body = body{"amount": dollars.StringFixed(2), "currency": c.code, "order_id": key}
		if r.IntN(2) == 0 {
			q.body["wallet_id"] = "sub"
		}
	case n < 40:
		q.kind, q.to = "withdrawal", m.w.sims[c.network].Customer(key)
		q.body = body{"amount": coins.String(), "currency": c.code, "address": q.to, "custom_id": key, "final_amount": true}
	default:
		q.kind = "transfer"
		q.body = body{"amount": coins.String(), "currency": c.code, "wallet_id": "sub", "callback_url": m.w.hook + "/?key=" + key}
	}
	return q
}

var paths = map[string]string{"payment": "/payments/", "withdrawal": "/withdrawal/", "transfer": "/wallets/transfer-to-user/"}

// do sends a request to its end and notes what came of it.
func (m *merchant) do(ctx context.Context, r *rand.Rand, q *request, giveUp int) error {
	status, v, err := m.ask(ctx, r, http.MethodPost, paths[q.kind], q.key, q.body, giveUp)
	if errors.Is(err, errGivenUp) {
		m.note(q)
		return nil
	}
	if err != nil {
		return err
	}
	if status >= http.StatusMultipleChoices {
		m.fault("%s %s: %d %v", q.kind, q.key, status, v)
		return nil
	}
	for _, name := range []string{"transaction_id", "withdrawal_id", "transfer_id"} {
		if id, ok := v[name].(string); ok {
			q.id = id
		}
	}
	if q.kind == "payment" {
		q.to = chain.Address(v["address"].(string))
		q.amount = decimal.RequireFromString(v["amount_crypto"].(string))
		if err := m.pay(r, q); err != nil {
			return err
		}
	}
	m.note(q)
	return nil
}

// pay is the customer, who does not care whether we live.
func (m *merchant) pay(r *rand.Rand, q *request) error {
	c := m.w.sims["AVAX"]
	if q.currency == "BTC" {
		c = m.w.sims["BTC"]
	}
	rest := q.amount
	if r.IntN(4) == 0 { // in two pieces
		part := rest.DivRound(decimal.NewFromInt(3), 6)
		rest = rest.Sub(part)
		if _, err := c.Pay(q.to, q.currency, part); err != nil {
			return err
		}
	}
	_, err := c.Pay(q.to, q.currency, rest)
	q.paid = err == nil
	return err
}

func (m *merchant) note(q *request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[q.key] = q
	if q.id != "" {
		m.answered++
	}
}

// work makes requests from several goroutines until ctx ends; the returned
// function waits until each has its answer.
func (m *merchant) work(ctx context.Context, workers int, pause time.Duration) (finish func()) {
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Minute)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			r := newRandom(m.seed + uint64(i) + 1)
			for n := 0; ctx.Err() == nil; n++ {
				if r.IntN(10) == 0 {
					m.look(patience, r)
					continue
				}
				if err := m.do(patience, r, m.request(r, fmt.Sprintf("w%d-%d", i, n)), 20); err != nil {
					m.fault("worker %d: %v", i, err)
					return
				}
				_ = (fast{}).Wait(ctx, pause*speed)
			}
		})
	}
	return func() { wg.Wait(); cancel() }
}

// look reads balances: none is ever below zero.
func (m *merchant) look(ctx context.Context, r *rand.Rand) {
	_, v, err := m.ask(ctx, r, http.MethodGet, "/user/balances/", "", nil, 0)
	if err != nil {
		m.fault("balances: %v", err)
		return
	}
	account, _ := v["account"].(body)
	for code, b := range account {
		for field, figure := range b.(body) {
			if text, ok := figure.(string); ok && strings.HasPrefix(text, "-") {
				m.fault("%s of %s below zero: %s", field, code, text)
			}
		}
	}
}

// open prepares the account: webhooks, a wallet, and something to spend.
func (m *merchant) open(ctx context.Context) error {
	r := newRandom(m.seed)
	_, v, err := m.ask(ctx, r, http.MethodPost, "/user/webhooks/", "", body{"callback_url": m.w.hook}, 0)
	if err != nil {
		return err
	}
	secret, _ := v["secret"].(string)
	if secret == "" {
		return fmt.Errorf("no webhook secret: %v", v)
	}
	m.w.box.open(secret)
	if _, _, err := m.ask(ctx, r, http.MethodPost, "/wallets/", "sub", body{"name": "sub", "external_id": "sub"}, 0); err != nil {
		return err
	}
	for _, c := range currencies {
		q := &request{kind: "payment", key: "first-" + c.code, currency: c.code, body: body{"amount": "500000", "currency": c.code, "order_id": "first-" + c.code}}
		if err := m.do(ctx, r, q, 0); err != nil {
			return err
		}
	}
	return nil
}
