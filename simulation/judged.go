package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// outside is the judge that knows the library by its papers alone, and what it
// looks through: a process of its own, that asks and never works.
type outside struct {
	judge   *judge.Judge
	process *process
	opened  *witness                // the store that the process was started on
	own     map[string]bool         // by network and address
	coins   map[string]bool         // that came from outside to an address of ours, by network and outpoint
	fees    map[chain.Network][]fee // levels so far
	gone    map[string]time.Time    // those that a reorg has taken away, since when it was seen
	stepped time.Time               // when a process did all that was due, with nothing in its way
	struck  int                     // faults of the store so far
	trouble time.Time               // when the last of them struck
	calm    time.Time               // when all faults stopped; zero = not yet
	risen   map[string]bool         // withdrawals ordered after fees rose, a day and a half ago
	sieged  map[string]bool         // and those ordered just before
	// What the library found when it was asked to verify its books just now, by merchant.
	verified bool
	findings map[string][]string
}

func newOutside(open []string) *outside {
	all := map[string]judge.Coin{}
	for _, codes := range coins {
		for _, code := range codes {
			c := currency(code)
			all[code] = judge.Coin{
				Code: code, Token: c.Token, Network: string(c.Network), Scale: int32(c.Scale), Native: c.Native(), Dust: c.Dust, Confirmations: c.Confirmations, WaitFinal: c.WaitFinal,
			}
		}
	}
	j := judge.New(all)
	j.Hold(open...)
	return &outside{judge: j, own: map[string]bool{}, coins: map[string]bool{}, gone: map[string]time.Time{}, fees: map[chain.Network][]fee{}}
}

// paid tells the judge of a new payment.
func (o *outside) paid(m *merchant, in *payment.CreateInput, p payment.Payment) {
	a := judge.Ask{Shop: m.id, Coin: in.Currency, Price: in.Amount, Wallet: in.WalletID, Fixed: true, Window: time.Hour, Address: p.Address}
	if in.FixedRate != nil {
		a.Fixed = *in.FixedRate
	}
	if in.FeeByUser != nil {
		a.ByUser = *in.FeeByUser
	}
	if in.ExpiryMinutes != nil {
		a.Window = time.Duration(*in.ExpiryMinutes) * time.Minute
	}
	o.judge.Paid(p.ID, a)
}

// ordered tells the judge of a withdrawal that is about to be asked for.
func (o *outside) ordered(p *payout, in withdrawal.CreateInput) {
	order := judge.Order{Shop: p.m.id, Key: p.key, Coin: in.Currency, To: in.Address, Final: in.FinalAmount, Shared: p.shared, Several: p.several}
	if order.Priced = in.PriceAmount != nil; order.Priced {
		order.Figure = *in.PriceAmount
	} else {
		order.Figure = *in.Amount
	}
	o.judge.Ordered(order)
}

// did is excuse for who did all that was due: if nothing was in its way, what was
// due before is done.
func (r *run) did(t *task, err error) {
	r.excuse(t, err)
	o := r.outside
	o.watch(r)
	o.stepped = time.Time{} // what was disturbed proves nothing, nor what was before it
	if r.signing != "" && r.step < r.signs {
		o.trouble = r.now
	}
	if err != nil || t.struck || t.paused || r.unwell(t.p) || r.quote != "" || r.now.Sub(o.trouble) < leases {
		return
	}
	for _, p := range r.procs {
		if p != t.p && !p.free() {
			return
		}
	}
	o.stepped = t.began
}

// leases is how long a process that died may keep what it claimed from others.
const leases = 20 * time.Minute

// watch notes when the store's faults strike, and when all faults have stopped.
func (o *outside) watch(r *run) {
	if r.calm && o.calm.IsZero() {
		o.calm = r.now
	}
	for _, x := range r.chains {
		if x.sim != nil {
			o.fees[x.name] = charged(o.fees[x.name], r.now, x.sim.FeeLevel())
		}
	}
	n := 0
	for nemesis := range perPoint {
		n += r.struck[nemesis]
	}
	n += r.struck[Restores] + r.counts["restarts"]
	if n != o.struck || o.trouble.IsZero() {
		o.struck, o.trouble, o.stepped = n, r.now, time.Time{}
	}
}

// judged lets the judge look at the world as it is now.
func (r *run) judged(end bool) {
	if r.failure != nil || r.replaying {
		return
	}
	calls := r.calls // its own are no task's
	defer func() { r.calls = calls }()
	o := r.outside
	o.watch(r)
	if err := o.open(r); err != nil {
		r.fail("judge", "it has no App: %v", err)
		return
	}
	s, err := o.scene(r, end)
	if err != nil {
		r.fail("judge", "a view is not shown: %v", err)
		return
	}
	o.judge.Look(s)
	o.verified = false
	for _, b := range o.judge.Breaches() {
		r.fail(b.Promise, "%s", b.What)
	}
}

// open starts the judge's own process, and starts it again on another store.
func (o *outside) open(r *run) error {
	if o.process != nil && o.opened == r.truth {
		return nil
	}
	p := &process{r: r, n: -1, rolled: true, nodes: map[chain.Network]*sim.Node{}, sick: map[chain.Network]bool{}, again: map[Nemesis]int{}, random: rand.NewChaCha8([32]byte{1})}
	for _, n := range r.chains {
		if n.sim != nil {
			p.nodes[n.name] = n.sim.NewNode()
		}
	}
	o.process, o.opened = p, r.truth
	return p.start()
}

// scene is the world as the judge sees it.
func (o *outside) scene(r *run, end bool) (*judge.Scene, error) {
	s := &judge.Scene{
		Now: r.now, End: end, Stepped: o.stepped, Prices: r.prices, Quoted: r.quoted, Risen: o.risen, Sieged: o.sieged, Named: r.named,
		Weather: judge.Weather{Deep: r.deep, Restored: r.restored, Mistyped: r.rate[Mistakes] > 0, Deaf: r.rate[Receivers]+r.rate[Hangs] > 0, Lossy: r.lossy(), Purged: r.keep > 0, Thrift: r.rate[Thrift] > 0, Crumbs: r.rate[Crumbs] > 0, Fresh: r.fresh(), Taxed: r.taxed, Took: r.took, Aged: r.headAge() > 0 && r.steady(), Skew: r.skewed},
	}
	if !o.calm.IsZero() {
		s.Calm = r.now.Sub(o.calm)
	}
	for _, m := range r.tenants {
		shop := judge.Shop{ID: m.id, Fee: m.fee, OutFee: m.percent, Deaf: m.n == r.inbox.dead, Verified: o.verified, Findings: o.findings[m.id], Lists: o.judge.Lists(m.id)}
		if err := judge.Read(context.Background(), o.process.app, r.truth, r.now, &shop); err != nil {
			return nil, err
		}
		if err := o.rest(r, m, &shop); err != nil {
			return nil, err
		}
		r.honestly(&shop)
		s.Shops = append(s.Shops, shop)
	}
	halts, err := o.process.app.Operate.Halts(context.Background())
	if err != nil {
		return nil, err
	}
	s.Halted = map[string]bool{}
	for _, h := range halts {
		if h.By == cryptopay.Library {
			s.Halted[h.Currency] = true
		}
	}
	r.haltedCoins(s.Halted)
	s.Spared = map[string]bool{}
	for id := range r.truth.payouts {
		s.Spared[id] = r.spared(id)
	}
	if s.Edited, err = r.theft(end); err != nil {
		return nil, err
	}
	for _, n := range r.chains {
		c, err := o.look(r, n)
		if err != nil {
			return nil, err
		}
		s.Chains = append(s.Chains, c)
	}
	if end {
		s.Houses = append(s.Houses, r.house(storage.System))
		for _, n := range r.chains {
			s.Houses = append(s.Houses, r.house(storage.Network(string(n.name))))
		}
	}
	return s, nil
}

// house reads what a partition has that is of no merchant.
func (r *run) house(p storage.Partition) judge.House {
	h := judge.House{ID: string(p), States: map[string]string{}}
	for _, row := range r.find(outgoing.Halts.Table, p) {
		for _, halt := range outgoing.Halts.Value(row).Halts {
			h.States[operatorsHalt(halt.Currency, halt.Tenant)] = judge.Halted
		}
	}
	if p == storage.System {
		return h
	}
	for _, row := range r.find(treasury.Sweeps.Table, p) {
		h.States[row.ID] = string(treasury.Sweeps.Value(row).State)
	}
	for _, row := range r.find(outgoing.Intents.Table, p) {
		if v := outgoing.Intents.Value(row); v.Purpose == chain.ForGas || v.Purpose == chain.ForCancel {
			h.States[row.ID] = string(v.State)
		}
	}
	for _, row := range r.find(incoming.Cursors.Table, p) {
		if incoming.Cursors.Value(row).Halted != "" {
			h.States[ownHalt("")] = judge.Halted
		}
	}
	for _, row := range r.find(incoming.AssetHalts.Table, p) {
		h.States[ownHalt(row.ID)] = judge.Halted
	}
	return h
}

// rest reads which coins a merchant is told to wait on deposit addresses, and what its hot
// addresses hold.
func (o *outside) rest(r *run, m *merchant, shop *judge.Shop) error {
	shop.Hot = map[string]int64{}
	for _, n := range r.chains {
		for _, code := range n.coins {
			held, err := currency(code).Units(n.chain.Balance(m.hot[n.name], code), ledger.Down)
			if err != nil {
				return err
			}
			shop.Hot[code] = int64(held)
		}
		all, err := o.process.app.Treasury.Waiting(context.Background(), m.id, n.name, 1000, 0)
		if err != nil {
			return err
		}
		for i := range all {
			w := &all[i]
			shop.Resting = append(shop.Resting, judge.Resting{
				Address: string(w.Address), Coin: w.Currency.Code, Reason: w.Reason, Since: w.Since, Next: w.Next, Amount: int64(w.Amount), DueBelow: int64(w.DueBelow),
			})
		}
	}
	return nil
}

// transfer looks one up as its chain is now: see judge.Find.
func (r *run) transfer(network, tx string, ordinal int) (judge.Found, bool) {
	n := r.network(chain.Network(network))
	for _, t := range n.chain.Transfers("") {
		if t.Tx == tx && t.Ordinal == ordinal {
			return judge.Found{
				Move: judge.Move{Tx: tx, Ordinal: ordinal, From: string(t.From), To: string(t.To), Coin: t.Currency, Amount: t.Amount, Height: t.Block.Height, Time: t.Block.Time},
				Ours: slices.Contains(n.chain.Transactions(true), tx), Above: n.chain.Height() - t.Block.Height, Word: n.final,
			}, true
		}
	}
	return judge.Found{}, false
}

// look reads one network past the library.
func (o *outside) look(r *run, n *network) (judge.Chain, error) {
	c := judge.Chain{
		Network: string(n.name), Outputs: n.chain.Family() == chain.UTXOFamily, Height: n.chain.Height(), Undone: n.undone, Word: n.final, First: map[string]time.Time{},
		Unseen: map[string]bool{}, Own: map[string]bool{}, Hot: map[string]bool{}, Held: map[string]decimal.Decimal{}, Stuck: map[string]map[string]decimal.Decimal{},
	}
	for _, m := range r.tenants {
		c.Hot[string(m.hot[n.name])] = true
		for _, a := range m.payments {
			for tx, mined := range a.late {
				c.Unseen[tx] = !mined.Truncate(time.Second).Before(a.until) // as its block is dated
			}
		}
	}
	for _, t := range n.chain.Transfers("") {
		c.Moves = append(c.Moves, judge.Move{
			Tx: t.Tx, Ordinal: t.Ordinal, From: string(t.From), To: string(t.To), Coin: t.Currency, Amount: t.Amount, Height: t.Block.Height, Time: t.Block.Time,
		})
		if at, ok := r.first[string(n.name)+t.Tx]; ok {
			c.First[t.Tx] = at
		}
		if err := o.mine(n, &c, t.To); err != nil {
			return c, err
		}
	}
	if err := o.price(r, n, &c); err != nil {
		return c, err
	}
	if c.Outputs && r.deep {
		o.miss(n, &c, r.now)
	}
	for _, tx := range n.chain.Transactions(true) {
		if c.Blind = n.sim == nil; c.Blind {
			c.Sent = append(c.Sent, judge.Sent{Tx: tx, Executed: true})
			continue
		}
		if st, err := n.sim.Outcome(tx); err == nil && st.State == chain.Included {
			c.Sent = append(c.Sent, judge.Sent{Tx: tx, From: string(n.sim.Sender(tx)), Cost: int64(st.Cost), Executed: st.Executed})
		}
	}
	return c, nil
}

// price reads what forwarding each coin of an account network costs now, and whether
// fees are normal and the network is not halted.
func (o *outside) price(r *run, n *network, c *judge.Chain) error {
	c.Normal, c.Forward = normal(o.fees[n.name], r.now), map[string]decimal.Decimal{}
	if c.Outputs || !r.calm || n.sim == nil {
		c.Normal = c.Normal && n.sim != nil
		return nil
	}
	s, err := o.process.app.NetworkStatus(context.Background(), n.name)
	if err != nil {
		return err
	}
	c.Halted = s.Halted != ""
	gas := currency(n.coins[0])
	for _, code := range n.coins {
		purposes := []chain.Purpose{chain.ForSweep}
		if code != gas.Code { // gas for it, and some to spare
			purposes = append(purposes, chain.ForGas, chain.ForGas, chain.ForGas)
		}
		for _, p := range purposes {
			what := code
			if p == chain.ForGas {
				what = gas.Code
			}
			f, err := n.sim.Client().EstimateFee(context.Background(), chain.Intent{Purpose: p, Network: n.name, Currency: what, Amount: 1, All: p == chain.ForSweep})
			if err != nil {
				return err
			}
			c.Forward[code] = c.Forward[code].Add(gas.Decimal(f.Max))
		}
	}
	return nil
}

// miss notes which coins from outside are on the chain, and which a reorg took away.
func (o *outside) miss(n *network, c *judge.Chain, now time.Time) {
	there, prefix := map[string]bool{}, string(n.name)+"/"
	for i := range c.Moves {
		m := &c.Moves[i]
		id := prefix + m.Tx + ":" + strconv.Itoa(m.Ordinal)
		if there[id] = true; c.Own[m.To] && !c.Own[m.From] {
			o.coins[id] = true
		}
		delete(o.gone, id)
	}
	for _, hash := range n.chain.Transactions(true) { // ours come back: we send them again
		for id := range o.coins {
			if strings.HasPrefix(id, prefix+hash+":") {
				delete(o.coins, id)
			}
		}
	}
	for id := range o.coins {
		if _, known := o.gone[id]; strings.HasPrefix(id, prefix) && !there[id] && !known {
			o.gone[id] = now
		}
	}
}

// ways is what the judge asks a chain about what is signed.
func (o *outside) ways(r *run, n chain.Network) judge.Ways {
	return judge.Ways{
		Gone: func(outpoint string) bool {
			since, ok := o.gone[string(n)+"/"+outpoint]
			return ok && since.Before(o.stepped)
		},
		Free: func(outpoint string) bool {
			coin, _, known, err := outgoing.Coins.One(context.Background(), r.truth, storage.Network(string(n)), outpoint)
			return err == nil && known && coin.State == outgoing.CoinFree
		},
	}
}

// mine notes an address that is the library's, with what it holds.
func (o *outside) mine(n *network, c *judge.Chain, a chain.Address) error {
	key := string(n.name) + "/" + string(a)
	own, known := o.own[key]
	if !known {
		_, ok, err := o.process.app.KeyOf(context.Background(), n.name, a)
		if err != nil {
			return err
		}
		own, o.own[key] = ok, ok
	}
	if !own || c.Own[string(a)] {
		return nil
	}
	c.Own[string(a)] = true
	for _, code := range n.coins {
		held := n.chain.Balance(a, code)
		c.Held[code] = c.Held[code].Add(held)
		if c.Hot[string(a)] {
			continue
		}
		if c.Stuck[string(a)] == nil {
			c.Stuck[string(a)] = map[string]decimal.Decimal{}
		}
		c.Stuck[string(a)][code] = held
	}
	return nil
}
