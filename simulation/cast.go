package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// What is paid with on each network: its own coin first.
var coins = map[chain.Network][]string{
	"ETH": {"ETH", "USDTERC20", "USDCERC20"}, "BSC": {"BNB", "USDTBSC"}, "AVAX": {"AVAX", "USDCAVAX"}, "TRX": {"TRX", "USDTTRC20"},
	"BTC": {"BTC"}, "LTC": {"LTC"}, "DOGE": {"DOGE"},
}

var quiet = map[string]string{
	"ETH": "2000", "BTC": "60000", "BNB": "600", "AVAX": "30", "TRX": "0.25", "LTC": "80", "DOGE": "0.2", "USDT": "1", "USDC": "1",
}

// cast draws who is in the play: chains, prices, processes, merchants.
func (r *run) cast() {
	r.swarm()
	accounts := []chain.Network{"ETH", "BSC", "AVAX", "TRX"}
	r.rng.Shuffle(len(accounts), func(i, j int) { accounts[i], accounts[j] = accounts[j], accounts[i] })
	names := accounts[:1+r.rng.IntN(5)/4]
	if r.rng.IntN(4) > 0 {
		names = append(names, pick(r.rng, []chain.Network{"BTC", "LTC", "DOGE"}))
	}
	if len(r.w.Nodes) > 0 {
		names = slices.Sorted(maps.Keys(r.w.Nodes))
	}
	for _, n := range names {
		x, err := r.newNetwork(n)
		if err != nil {
			r.fail("cast", "%s: %v", n, err)
			return
		}
		r.chains = append(r.chains, x)
		for _, code := range coins[n] {
			token := currency(code).Token
			if _, ok := r.prices[token]; !ok {
				r.setPrice(token, dec(quiet[token]))
			}
		}
	}
	r.newCurrency()
	if r.w.Seed%2 == 0 {
		r.keep = 36 * time.Hour
	}
	procs := 2 + r.rng.IntN(2)
	if r.struck[Crowd] = procs; r.rate[Crowd] == 0 {
		procs = 1
		delete(r.struck, Crowd)
	}
	for i := range procs {
		if !r.newProcess(i) {
			return
		}
	}
	for i := range 1 + r.rng.IntN(3) {
		if err := r.newMerchant(i); err != nil {
			r.fail("cast", "merchant %d: %v", i, err)
			return
		}
	}
	if dead := r.rng.IntN(3 * len(r.tenants)); r.rate[Receivers] > 0 && dead < len(r.tenants) {
		r.inbox.dead = dead
	}
	r.tell("chains %v, %d processes, %d merchants", names, procs, len(r.tenants))
	r.opening()
}

// opening is the day before: operators bring coins for gas, and each merchant has
// a customer or two who pay in full, so that there is something to lose.
func (r *run) opening() {
	app := r.procs[0].app
	for _, m := range r.tenants {
		for range 1 + r.rng.IntN(2) {
			c := r.coin()
			no := false
			in := payment.CreateInput{Pricing: payment.Pricing{Amount: "400", Currency: c.Code, FeeByUser: &no}}
			p, err := app.Payments.Create(context.Background(), m.id, in)
			if err != nil {
				r.fail("cast", "%v", err)
				return
			}
			m.accept(&in, p)
			a := m.payments[len(m.payments)-1]
			a.plan = nil
			a.send(sim.Tx{Payments: []sim.Payment{{To: a.address, Currency: c.Code, Amount: a.due}}})
		}
	}
	for range 4 { // blocks enough for all of it to be final, and forwarded
		r.now = r.now.Add(2 * time.Minute)
		for _, n := range r.chains {
			n.chain.Mine(5)
		}
		if err := app.Step(context.Background()); err != nil {
			r.fail("cast", "%v", err)
		}
	}
}

func (r *run) newProcess(i int) bool {
	var key [32]byte
	for b := range 8 {
		key[b] = byte(r.w.Seed >> (8 * b))
	}
	key[8] = byte(i)
	p := &process{r: r, n: i, nodes: map[chain.Network]*sim.Node{}, sick: map[chain.Network]bool{}, again: map[Nemesis]int{}, random: rand.NewChaCha8(key)}
	for _, n := range r.chains {
		if n.sim != nil {
			p.nodes[n.name] = n.sim.NewNode()
		}
	}
	r.procs = append(r.procs, p)
	if err := p.start(); err != nil {
		r.fail("cast", "%s does not start: %v", p, err)
		return false
	}
	return true
}

func (r *run) newMerchant(i int) error {
	ctx, app := context.Background(), r.procs[0].app
	m := &merchant{r: r, n: i, url: fmt.Sprintf("https://shop-%d.example/hook", i), hot: map[chain.Network]chain.Address{}, short: map[chain.Network]int{}}
	m.fee = pick(r.rng, []decimal.Decimal{{}, dec("0.5"), dec("1"), dec("2.75")})
	m.percent = pick(r.rng, []decimal.Decimal{{}, dec("0.5"), dec("1.25")})
	name, byUser := fmt.Sprint("shop ", i), r.rng.IntN(3) == 0
	t, err := app.Wallets.CreateTenant(ctx, wallet.NewTenant{
		ID:       fmt.Sprintf("merchant-%d", i),
		Settings: wallet.Settings{Name: &name, TransactionFee: &m.fee, FeePaidByUser: &byUser, WithdrawalPercent: &m.percent},
	})
	if err != nil {
		return err
	}
	m.id = t.ID
	if _, m.secret, err = app.Webhooks.Setup(ctx, m.id, m.url, webhook.By{}); err != nil {
		return err
	}
	every := webhook.EventTypes() // an empty list leaves withdrawal_waiting out
	if _, err = app.Webhooks.Edit(ctx, m.id, webhook.Patch{Events: &every}); err != nil {
		return err
	}
	r.tenants = append(r.tenants, m)
	for _, n := range r.chains {
		if m.hot[n.name], err = app.Hot(ctx, n.name, m.id); err != nil {
			return err
		}
		if rich := r.rng.IntN(4) > 0; rich && r.rate[Thrift] == 0 {
			m.topUp(n, false)
		} else if err := m.few(n); err != nil {
			return err
		}
	}
	return nil
}

// Tables lists everything that a world stores: for a store that has to be
// migrated before it is opened.
func Tables() []*storage.Table { return append(cryptopay.Tables(), keys.Tables()...) }
