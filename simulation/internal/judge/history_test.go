package judge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// history is a small world made by hand: what was asked, told and shown.
type history struct {
	paid     map[string]Ask
	orders   []Order
	accepted [][2]string
	hooks    []Hook
	slipped  []string        // orders that were sent under a halt
	betrayed map[string]bool // what a traitor asked for → it was refused
	changes  []storage.Change
	claims   []storage.Row
	signed   []chain.SignRequest
	gone     string   // a coin that a reorg took away
	free     string   // a coin that the store still offers
	aside    int64    // for gas
	sweeps   []string // of one address, at once
	alerts   []string
	deaf     bool              // its host heard of nothing
	wrong    string            // with the source of prices
	objects  map[string]string // of webhooks
	named    int               // the line that a refusal names
	reused   bool              // the key of a list was taken for another
	scene    Scene
}

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

var coins = map[string]Coin{
	"USDTX": {Code: "USDTX", Token: "USDT", Network: "X", Scale: 6, Dust: dec("0.01"), Confirmations: 3},
	"X":     {Code: "X", Token: "X", Network: "X", Scale: 8, Native: true, Dust: dec("0.0001"), Confirmations: 3},
}

// play lets a judge see all of a history, twice at its end.
func (h *history) play() *Judge {
	j := New(coins)
	for id, a := range h.paid {
		j.Paid(id, a)
	}
	j.Given(Address{Shop: "a", ID: "a5", Network: "X", Address: "d5", ExternalID: "ann"})
	for _, o := range h.orders {
		j.Ordered(o)
	}
	for _, a := range h.accepted {
		j.Accepted(a[0], a[1])
	}
	h.list(j)
	j.Saves("a", at(-5), []Saving{{Coin: "USDTX", Multiple: 10, Wait: 2 * time.Hour}})(at(-5))
	for _, id := range h.alerts {
		j.Alerted("a", id)
	}
	if !h.deaf {
		h.hear(j)
	}
	j.Frozen("w2", true) // it was cancelled then
	for _, hook := range h.hooks {
		j.Received(hook)
	}
	j.UnderHalt(true, h.slipped)
	for what, refused := range h.betrayed {
		j.Betrayed(what, refused)
	}
	for i := range h.changes {
		j.Committed(&h.changes[i], h.scene.Weather.Deep, h.find)
	}
	j.Claimed(h.claims)
	if j.Unpriced("silent"); h.wrong != "" {
		j.Priced("payment p1", h.wrong)
	}
	for i := range h.signed {
		j.Asked(&h.signed[i])
		j.Signed(&h.signed[i], Ways{
			Gone: func(outpoint string) bool { return outpoint == h.gone },
			Free: func(outpoint string) bool { return outpoint == h.free },
		})
	}
	j.SetAside("a", "X", h.aside, false)
	j.Sweeping("d1", h.sweeps)
	j.Look(&h.scene)
	return j
}

// list has the shop ask for its first and last withdrawals as one list, and for two that are
// refused: one with a wrong line, and another under the key of the first.
func (h *history) list(j *Judge) {
	j.Listing(List{Shop: "a", Key: "l1", Orders: []string{"k1", "k3"}})
	j.Listed("l1", "L1", []string{"w1", "w3"})
	j.Listing(List{Shop: "a", Key: "l2", Orders: []string{"k4", "k5"}, Wrong: "address", Bad: map[int]bool{1: true}})
	j.Unlisted("l2", map[int][]string{h.named: {"address"}}, true)
	j.Reused("l1", !h.reused)
}

// find looks at the history's own chain.
func (h *history) find(_, tx string, ordinal int) (Found, bool) {
	c := h.chain()
	for _, m := range c.Moves {
		if m.Tx == tx && m.Ordinal == ordinal {
			return Found{Move: m, Ours: c.ours(tx), Above: c.Height - m.Height}, true
		}
	}
	return Found{}, false
}

// post adds a Change with one Tx: its legs are account, coin, delta and hold.
func (h *history) post(id string, kind ledger.Kind, legs ...ledger.Leg) {
	h.changes = append(h.changes, storage.Change{
		ID: id, Partition: storage.Tenant("a"), Post: []ledger.Tx{{ID: id, Kind: kind, Legs: legs}},
		Put: []storage.Row{{Table: rows, ID: id}},
	})
	books := h.shop().Books
	for _, l := range legs {
		at := string(l.Account) + "/" + string(l.Asset)
		books[at] = Booked{books[at].Posted + int64(l.Delta), books[at].Held + int64(l.Hold)}
	}
}

// rows is a table for rows that nobody reads.
var rows = &storage.Table{Name: "rows"}

// goodBooks posts what the ledger's page says of the good history.
func (h *history) goodBooks() {
	h.shop().Books = map[string]Booked{}
	leg := func(account ledger.Account, delta, hold int64) ledger.Leg {
		return ledger.Leg{Account: account, Asset: "USDTX", Delta: ledger.Amount(delta), Hold: ledger.Amount(hold)}
	}
	gas := func(account ledger.Account, delta int64) ledger.Leg {
		return ledger.Leg{Account: account, Asset: "X", Delta: ledger.Amount(delta)}
	}
	w, sub, c, owes := ledger.Wallet(master), ledger.Wallet("s1"), ledger.Chain("X"), ledger.Receivable("s1")
	h.post("topup/X/t0:0/1", ledger.KindAdjustment, gas(c, -100_000_000), gas(ledger.Float, 100_000_000))
	h.post("credit/X/t1:0/1", ledger.KindDeposit, leg(c, -100_000_000, 0), leg(w, 99_000_000, 0), leg(ledger.FeesPlatform, 1_000_000, 0))
	h.post("credit/X/t2:0/1", ledger.KindDeposit, leg(c, -20_000_000, 0), leg(sub, 19_801_981, 0), leg(ledger.FeesPlatform, 198_019, 0))
	h.post("credit/X/t4:0/1", ledger.KindDeposit, leg(c, -3_000_000, 0), leg(ledger.Suspense, 3_000_000, 0))
	h.post("credit/X/t11:0/1", ledger.KindDeposit, leg(c, -500_000, 0), leg(ledger.Suspense, 500_000, 0))
	h.post("hold/w1", ledger.KindWithdrawal, leg(w, 0, 10_000_000))
	h.post("settle/w1", ledger.KindWithdrawal, leg(w, -10_000_000, -10_000_000), leg(c, 9_750_000, 0), leg(ledger.FeesPlatform, 50_000, 0), leg(ledger.FeesNetwork, 200_000, 0))
	h.post("hold/m1", ledger.KindTransfer, leg(w, 0, 5_000_000))
	h.post("settle/m1", ledger.KindTransfer, leg(w, -5_000_000, -5_000_000), leg(sub, 5_000_000, 0))
	h.post("hold/w3", ledger.KindWithdrawal, leg(w, 0, 7_000_000))
	for _, t := range h.chain().Sent {
		h.post("cost/X/"+t.Tx, ledger.KindFee, gas(ledger.FeesNetwork, -t.Cost), gas(c, t.Cost))
	}
	taken := []ledger.Leg{leg(ledger.FeesNetwork, -10_000, 0), leg(c, 10_000, 0)}
	h.post("less/X/t5", ledger.KindFee, taken...)
	h.post("undone/less/X/t5", ledger.KindFee, leg(ledger.FeesNetwork, 10_000, 0), leg(c, -10_000, 0))
	h.aside = 1000
	// A reorg takes a deposit away that is partly spent, and it is mined again.
	h.post("reverse/X/t2:0/1", ledger.KindAdjustment, leg(c, 20_000_000, 0), leg(sub, -14_801_981, 0), leg(owes, -5_000_000, 0), leg(ledger.FeesPlatform, -198_019, 0))
	h.post("credit/X/t2:0/2", ledger.KindDeposit, leg(c, -20_000_000, 0), leg(sub, 19_801_981, 0), leg(ledger.FeesPlatform, 198_019, 0))
	h.post("recover/X/t2:0/2", ledger.KindAdjustment, leg(sub, -5_000_000, 0), leg(owes, 5_000_000, 0))
	n := len(h.changes)
	h.changes[n-2].Post = append(h.changes[n-2].Post, h.changes[n-1].Post...)
	h.changes = h.changes[:n-1]
	h.claims = []storage.Row{{Table: rows, Partition: storage.Tenant("a"), ID: "hold/w3", Version: 2}}
	order := func(id, spends string) chain.SignRequest {
		return chain.SignRequest{
			Intent: chain.Intent{ID: id, Tenant: "a", Network: "X"}, Also: []chain.Intent{{ID: id + "-too", Tenant: "a", Network: "X"}},
			Unsigned: chain.Unsigned{Spends: []string{spends}},
		}
	}
	h.signed = []chain.SignRequest{order("w1", "t1:0"), order("w1", "t1:0"), order("w3", "t2:0")}
	h.sweeps = []string{"one"}
	h.alerts = []string{"t4", "t11"}
}

func (h *history) shop() *Shop   { return &h.scene.Shops[0] }
func (h *history) chain() *Chain { return &h.scene.Chains[0] }

// good is a history in which every promise was kept.
func good() *history {
	h := &history{paid: map[string]Ask{}, betrayed: map[string]bool{"": true, "a second payout": true}, named: 1}
	h.scene = Scene{
		Houses: []House{{ID: "network/X", States: map[string]string{"s1": "done"}}},
		Now:    at(3000), End: true, Calm: 25 * time.Hour, Stepped: at(2999), Weather: Weather{Thrift: true, Crumbs: true, Aged: true, Fresh: "USDTX"},
		Prices: map[string]decimal.Decimal{"USDT": dec("1"), "X": dec("2")},
		Quoted: map[string][]decimal.Decimal{"USDT": {dec("1")}, "X": {dec("2")}},
		Risen:  map[string]bool{"w1": true}, Sieged: map[string]bool{"w3": true}, Edited: map[string]Edit{"w3": {Thief: "thief", Named: true}},
		Shops:  []Shop{goodShop(), {ID: "b", Aside: map[string]int64{"X": 0}, Outbox: []Letter{{ID: "other", Object: "other", Body: `{"event":"x","data":{"transfer_id":"other"}}`, Attempts: 2, Created: at(2998)}}, Wallets: []Wallet{{ID: master}}}},
		Chains: []Chain{goodChain()},
	}
	for _, p := range h.shop().Payments {
		if p.AddressID != "" {
			continue
		}
		a := Ask{Shop: "a", Coin: p.Coin, Price: p.Price.String(), ByUser: p.ByUser, Fixed: p.Fixed, Window: time.Hour, Address: p.Address}
		if p.Wallet != master {
			a.Wallet = p.Wallet
		}
		h.paid[p.ID] = a
	}
	h.orders = []Order{
		{Shop: "a", Key: "k1", Coin: "USDTX", To: "o1", Figure: dec("10"), Several: true},
		{Shop: "a", Key: "k2", Coin: "USDTX", To: "o2", Figure: dec("5"), Priced: true, Final: true},
		{Shop: "a", Key: "k3", Coin: "USDTX", To: "o3", Figure: dec("7")},
		{Shop: "a", Key: "k4", Coin: "USDTX", To: "o4", Figure: dec("7")}, // nobody accepted it
	}
	h.accepted = [][2]string{{"k1", "w1"}, {"k1", "w1"}, {"k2", "w2"}, {"k3", "w3"}}
	h.goodHooks()
	h.goodBooks()
	return h
}

func goodShop() Shop {
	pay := func(id, status, due, received, net, platform, value string, byUser bool) Payment {
		n := func(s string) int64 { return dec(s).Shift(6).IntPart() }
		p := Payment{
			ID: id, Status: status, Coin: "USDTX", Address: "d" + id[1:], Wallet: master, Due: n(due), Received: n(received), Net: n(net), Platform: n(platform),
			Rate: dec("1"), Percent: dec("1"), Price: dec(due), ByUser: byUser, Fixed: true, Value: value, Created: start, Expires: at(60),
			ShownReceived: n(received),
		}
		if byUser {
			p.Price = dec("50")
		}
		if p.Received < p.Due {
			p.ShownShort = p.Due - p.Received
		}
		return p
	}
	out := func(id, status, requested, amount, platform string) Payout {
		n := func(s string) int64 { return dec(s).Shift(6).IntPart() }
		return Payout{
			ID: id, Status: status, Coin: "USDTX", Address: "o" + id[1:], CustomID: "k" + id[1:], Wallet: master,
			Requested: n(requested), Amount: n(amount), Platform: n(platform), Network: 200_000, Created: at(100),
		}
	}
	s := Shop{
		ID: "a", Fee: dec("1"), OutFee: dec("0.5"),
		Payments: []Payment{
			pay("p1", completed, "100", "100", "99", "1", "99.00", false),
			pay("p2", expired, "50.5", "20", "19.801981", "0.198019", "19.80", true),
			pay("p3", expired, "10", "0", "0", "0", "0.00", false),
			pay("p4", expired, "10", "0", "0", "0", "0.00", false),
			pay("p5", failed, "10", "0", "0", "0", "0.00", false), // at a permanent address, and gone
		},
		Payouts: []Payout{
			out("w1", completed, "10", "9.75", "0.05"),
			out("w2", cancelled, "5.225", "5", "0.025"),
			out("w3", processing, "7", "6.765", "0.035"),
		},
		Transfers: []Transfer{{ID: "m1", Status: completed, Direction: "to_sub", Wallet: "s1", Coin: "USDTX", Amount: 5_000_000}},
		Wallets: []Wallet{
			{ID: master, Balances: map[string]Balance{"USDTX": {84_000_000, 7_000_000, 77_000_000}}, Count: 3, History: []Entry{
				{"USDTX", "transfer_out", "m1", -5_000_000, 84_000_000}, {"USDTX", "withdrawal", "w1", -10_000_000, 89_000_000}, {"USDTX", "deposit", "p1", 99_000_000, 99_000_000},
			}},
			{ID: "s1", Balances: map[string]Balance{"USDTX": {24_801_981, 0, 24_801_981}}, Count: 2, History: []Entry{
				{"USDTX", "transfer_in", "m1", 5_000_000, 24_801_981}, {"USDTX", "deposit", "p2", 19_801_981, 19_801_981},
			}},
		},
		Overview: map[string]Total{"USDTX": {24_801_981, 0}},
		Counts: Counts{
			Payments: 5, Payouts: 3, Lines: 8, Deposits: 1, Withdrawals: 1, SubWallet: 1,
			StatPayments: map[string]int64{completed: 1, expired: 3, failed: 1}, StatPayouts: map[string]int64{completed: 1, cancelled: 1, processing: 1},
		},
		Earned: map[string]int64{"USDTX": 1_248_019},
		Taken:  []Taken{{ID: "h1", Status: processing, Coin: "USDTX", Address: "own", Amount: 1_000_000}},
		Suspense: []Suspended{
			{ID: "t4", Coin: "USDTX", Address: "d4", Reason: "late", Tx: "t4", Amount: 3_000_000},
			{ID: "t11", Coin: "USDTX", Address: "d5", Reason: "below_minimum", Tx: "t11", Amount: 500_000},
		},
		Resting: []Resting{{Address: "d4", Coin: "USDTX", Reason: "below_cost", Since: at(90), Amount: 3_000_000, DueBelow: 5}, {Address: "d6", Coin: "USDTX", Reason: "waits_for_more", Since: at(2900), Next: at(3015), Amount: 1_000_000}},
		Hot:     map[string]int64{"USDTX": 110_250_000},
		Outbox: []Letter{
			{ID: "lost", Object: "p4", Attempts: 6, Failed: true, Created: at(70), Ended: at(400)},
			{ID: "new", Object: "w3", Created: at(3000)},
			{ID: "held", Object: "p3", Attempts: 6, Failed: true, Created: at(70), Ended: at(70 + 24*60)},
		},
		Held: map[string]int64{"X/USDTX": 113_750_000, "X/X": 99_996_000},
	}
	s.Addresses = []Address{{Shop: "a", ID: "a5", Network: "X", Address: "d5", ExternalID: "ann", Wallet: master}}
	regular := &s.Payments[4]
	regular.AddressID, regular.Fixed, regular.Expires = "a5", false, start.Add(24*time.Hour)
	s.Payments[1].Wallet = "s1"
	s.Payments[2].Cancelled = true
	s.Payments[0].Deposits = []Deposit{{ID: "X/t1:0", Tx: "t1", Amount: 100_000_000, Net: 99_000_000, Final: true, Credited: true}}
	s.Payments[1].Deposits = []Deposit{{ID: "X/t2:0", Tx: "t2", Amount: 20_000_000, Net: 19_801_981, Final: true, Credited: true}}
	s.Payouts[0].Tx = "t3"
	s.Payouts[2].Reason, s.Payouts[2].Since, s.Payouts[2].Created = "stuck", at(2910), at(2900)
	s.Lists = []Listed{{ID: "L1", Lines: []Payout{s.Payouts[0], s.Payouts[2]}, Count: map[string]int{completed: 1, processing: 1}}}
	for i, kind := range []string{"full", "partial", "", ""} {
		s.Payments[i].Type, s.Payments[i].Tolerance = kind, s.Payments[i].Due/200
	}
	for _, p := range s.Payments {
		l := Line{ID: p.ID, Kind: "payment", Status: p.Status, Coin: p.Coin, Amount: p.Received, Fee: p.Platform, Net: p.Net}
		if p.Received == 0 {
			l.Amount, l.Net = p.Due, p.Due
		}
		s.Lines = append(s.Lines, l)
	}
	for _, p := range s.Payouts {
		s.Lines = append(s.Lines, Line{
			ID: p.ID, Kind: "withdrawal", Status: p.Status, Coin: p.Coin, Reference: p.CustomID, Amount: p.Requested, Fee: p.Requested - p.Amount, Net: p.Amount,
		})
	}
	return s
}

func goodChain() Chain {
	move := func(tx, from, to, coin, amount string, height int64, minute int) Move {
		return Move{Tx: tx, From: from, To: to, Coin: coin, Amount: dec(amount), Height: height, Time: at(minute)}
	}
	return Chain{
		Network: "X", Height: 50, Normal: true, Forward: map[string]decimal.Decimal{"X": dec("0.001"), "USDTX": dec("1")},
		Moves: []Move{
			move("t0", "bank", "hot", "X", "1", 1, 0), move("t1", "c1", "d1", "USDTX", "100", 10, 10), move("t2", "c2", "d2", "USDTX", "20", 11, 20),
			move("t3", "hot", "o1", "USDTX", "9.75", 12, 120), move("t4", "c4", "d4", "USDTX", "3", 13, 90), move("t6", "hot", "d1", "X", "0.001", 13, 30),
			move("t5", "d1", "hot", "USDTX", "100", 14, 40), move("t7", "d2", "hot", "USDTX", "20", 15, 80),
			move("t11", "c5", "d5", "USDTX", "0.5", 13, 95),
		},
		Sent:  []Sent{{"t3", 1000, true, "hot"}, {"t5", 1000, true, "d1"}, {"t6", 1000, true, "hot"}, {"t7", 1000, true, "d2"}},
		First: map[string]time.Time{"t1": at(5), "t2": at(15), "t4": at(85)},
		Own:   map[string]bool{"hot": true, "d1": true, "d2": true, "d3": true, "d4": true, "d5": true},
		Hot:   map[string]bool{"hot": true},
		Held:  map[string]decimal.Decimal{"USDTX": dec("113.75"), "X": dec("0.99996")},
		Stuck: map[string]map[string]decimal.Decimal{"d1": {"X": dec("0.00099")}, "d2": {}, "d4": {"USDTX": dec("3")}, "d5": {"USDTX": dec("0.5")}},
	}
}

// goodHooks tells every change of the good shop, one of them twice.
func (h *history) goodHooks() {
	path := func(event, object string, states ...string) {
		for i := 1; i < len(states); i++ {
			more := map[string]any{"previous_status": states[i-1], "status": states[i]}
			if paid(states[i]) && event == "payment_status_update" {
				more["payment_type"] = "full"
			}
			h.hook(event, object, more)
		}
	}
	path("payment_status_update", "p1", waiting, confirming, confirmed, sending, completed)
	path("payment_status_update", "p2", waiting, partly, expired)
	path("payment_status_update", "p3", waiting, expired)
	path("payment_status_update", "p5", waiting, confirming, failed)
	path("withdrawal_status_update", "w1", pending, processing, completed)
	path("withdrawal_status_update", "w2", pending, cancelled)
	path("transfer_status_update", "m1", pending, completed)
	deposit := func(object, id, before, status, role string) {
		h.hook("payment_deposit", object, map[string]any{"deposit_id": id, "previous_status": before, "status": status, "role": role})
	}
	deposit("p1", "X/t1:0", "", "seen", "counted")
	deposit("p1", "X/t1:0", "seen", "final", "counted")
	deposit("p2", "X/t2:0", "", "final", "counted")
	deposit("p3", "t4", "", "final", "late")
	deposit("p3", "t11", "", "final", "unmatched")
	h.hook("withdrawal_waiting", "w3", map[string]any{"waiting_reason": "stuck"})
	h.hook("deposit_merged", "p1", map[string]any{"deposit_id": "X/t1:0"})
	h.hook("deposit_received", "p1", nil)
	h.hook("deposit_received", "p2", nil)
	again := h.hooks[0]
	again.Header = again.Header.Clone()
	again.Header.Set("X-Webhook-Attempt", "2")
	again.At = again.At.Add(time.Minute)
	h.hooks = append(h.hooks, again)
	shop := h.shop()
	seq := map[string]int64{}
	for _, hook := range h.hooks[:len(h.hooks)-1] {
		id := hook.Header.Get("X-Webhook-Id")
		object := h.objects[id]
		seq[object]++
		shop.Sent = append(shop.Sent, Letter{ID: id, Object: object, Body: string(hook.Body), Seq: seq[object], Done: true, Created: at(4)})
	}
	shop.Verified = true
	h.hook("payment_status_update", "p4", map[string]any{"previous_status": waiting, "status": expired})
	h.hook("withdrawal_status_update", "w3", map[string]any{"previous_status": pending, "status": processing})
	h.hook("deposit_received", "p3", nil)
	for i := range 3 { // these have come to nobody
		shop.Outbox[i].Body, shop.Outbox[i].Seq = string(h.hooks[len(h.hooks)-3+i].Body), seq[shop.Outbox[i].Object]+1
	}
	h.hooks = h.hooks[:len(h.hooks)-3]
}

// withhold takes the webhooks of one event away.
func (h *history) withhold(event string) {
	is := func(body string) bool { return strings.Contains(body, `"event":"`+event+`"`) }
	h.hooks = slices.DeleteFunc(h.hooks, func(x Hook) bool { return is(string(x.Body)) })
	h.shop().Sent = slices.DeleteFunc(h.shop().Sent, func(l Letter) bool { return is(l.Body) })
}

// says is what every event of one object says alike.
func (h *history) says(object string) map[string]any {
	for _, p := range h.shop().Payments {
		if p.ID == object {
			return map[string]any{"transaction_id": object, "pay_amount": decimal.New(p.Due, -6).StringFixed(8), "pay_currency": p.Coin, "blockchain_address": p.Address}
		}
	}
	for _, p := range h.shop().Payouts {
		if p.ID == object {
			return map[string]any{
				"withdrawal_id": object, "amount": decimal.New(p.Amount, -6).StringFixed(8), "currency": p.Coin, "address": p.Address,
				"custom_id": p.CustomID, "network_fee": "0.20000000",
			}
		}
	}
	return map[string]any{"transfer_id": object, "amount": "5.00000000", "currency": "USDTX", "transfer_type": "to_sub", "wallet_id": "s1"}
}

// hook adds a webhook to shop a, with every documented field.
func (h *history) hook(event, object string, more map[string]any) {
	data := map[string]any{}
	says := h.says(object)
	maps.Copy(says, more)
	for _, field := range hookFields[event] {
		data[field] = says[field]
	}
	maps.Copy(data, more)
	body, _ := json.Marshal(map[string]any{"event": event, "data": data, "timestamp": "2026-01-02T03:04:05.000Z"})
	id := fmt.Sprintf("id-%d", len(h.hooks))
	if h.objects == nil {
		h.objects = map[string]string{}
	}
	h.objects[id] = object
	h.hooks = append(h.hooks, seal(id, body, 1))
}

// seal signs a body as the documents say it.
func seal(id string, body []byte, attempt int) Hook {
	sum := func(b []byte) []byte {
		mac := hmac.New(sha256.New, []byte("secret"))
		mac.Write(b)
		return mac.Sum(nil)
	}
	header := http.Header{}
	header.Set("X-Webhook-Id", id)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", "1767323045")
	header.Set("X-Webhook-Attempt", strconv.Itoa(attempt))
	header.Set("X-Signature", hex.EncodeToString(sum(body)))
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(bytes.Join([][]byte{[]byte(id), []byte("1767323045"), body}, []byte(".")))))
	return Hook{Shop: "a", Secret: "secret", Header: header, Body: body, At: at(5)}
}

// hear has the host hear how each object of the shop stands.
func (h *history) hear(j *Judge) {
	n := int64(0)
	told := func(id, state string) {
		n++
		j.Heard(Told{Shop: h.shop().ID, Number: n, Object: id, To: state})
	}
	for _, p := range h.shop().Payments {
		told(p.ID, p.Status)
	}
	for _, p := range h.shop().Payouts {
		told(p.ID, p.Status)
	}
	for _, t := range h.shop().Transfers {
		told(t.ID, t.Status)
	}
	j.Heard(Told{Shop: "network/X", Number: 1, Object: "s1", To: "new"})
	j.Heard(Told{Shop: "network/X", Number: 2, Object: "s1", From: "new", To: "done"})
	j.Heard(Told{Shop: "network/X", Number: 3, Object: "halt", To: Halted, Halt: true})
	j.Heard(Told{Shop: "network/X", Number: 4, Object: "halt", To: Lifted, Halt: true})
}
