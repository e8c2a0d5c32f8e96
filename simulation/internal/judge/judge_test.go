package judge

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// deep makes a history one of a world whose final blocks may be taken back.
func deep(h *history) { h.scene.Weather.Deep = true }

// breaks says of each promise how the good history breaks it.
var breaks = map[string]func(h *history){
	"I11":          func(h *history) { h.shop().Payments[2].Address = "d1"; h.shop().Payments[2].Coin = "USDTX" },
	"asked":        func(h *history) { h.shop().Payments[1].Wallet = master },
	"rate":         func(h *history) { h.scene.Quoted["USDT"] = nil },
	"due":          func(h *history) { h.shop().Payments[1].Due-- },
	"window":       func(h *history) { h.shop().Payments[0].Expires = at(61) },
	"fees":         func(h *history) { h.shop().Payments[1].Platform++ },
	"received-usd": func(h *history) { h.shop().Payments[0].Value = "100.00" },
	"missing":      func(h *history) { h.shop().Payments[1].ShownShort = 0 },
	"expiry":       func(h *history) { h.scene.Now = at(59) },
	"I5":           func(h *history) { h.chain().Moves[1].Height = 48 + 1 },
	"enough":       func(h *history) { h.chain().Moves[1].Amount = dec("99.4") },
	"I13": func(h *history) {
		h.hook("payment_status_update", "p3", map[string]any{"previous_status": completed, "status": waiting})
	},
	"I5-once":         func(h *history) { h.shop().Payments[1].Deposits[0].Tx = "t1" },
	"deposits":        func(h *history) { h.shop().Payments[0].Deposits = nil },
	"cancelled":       func(h *history) { h.shop().Payments[2].Received = 1 },
	"permanent":       func(h *history) { h.shop().Payments[4].Fixed = true },
	"permanent-due":   func(h *history) { h.shop().Payments[4].Price = dec("9.99") },
	"permanent-small": func(h *history) { h.shop().Suspense[1].Reason = "wrong_asset" },
	"suspense-reason": func(h *history) { h.shop().Suspense[0].Reason = "wrong_asset" },
	"payment-type": func(h *history) {
		h.hook("payment_status_update", "p1", map[string]any{"previous_status": confirmed, "status": sending, "payment_type": "partial"})
	},
	"ordered": func(h *history) { h.shop().Payouts[2].Address = "elsewhere" },
	"I14":     func(h *history) { h.accepted = append(h.accepted, [2]string{"k1", "w9"}) },
	"kept":    func(h *history) { h.shop().Payouts = h.shop().Payouts[:2] },
	"refused": func(h *history) {
		h.hook("withdrawal_status_update", "w2", map[string]any{"previous_status": pending, "status": failed})
	},
	"frozen": func(h *history) {
		h.hook("withdrawal_status_update", "w2", map[string]any{"previous_status": pending, "status": processing})
	},
	"list-whole":  func(h *history) { h.shop().Payouts = h.shop().Payouts[:2] },
	"list-shown":  func(h *history) { slices.Reverse(h.shop().Lists[0].Lines) },
	"list-wrong":  func(h *history) { h.named = 0 },
	"list-key":    func(h *history) { h.reused = true },
	"list-once":   func(h *history) { h.chain().Moves = append(h.chain().Moves, h.chain().Moves[3]) },
	"list-paid":   func(h *history) { h.shop().Payouts[0].Tx = "t9" },
	"saving-ends": func(h *history) { h.shop().Resting[1].Next = at(3021) },
	"saving-needed": func(h *history) {
		h.shop().Payouts[2].Reason, h.shop().Hot["USDTX"] = "hot_short", 6_000_000
	},
	"saving-kept": func(h *history) { h.chain().Sent[1].Cost = 10_00000000 },
	"charged":     func(h *history) { h.shop().Payouts[1].Platform++ },
	"reason":      func(h *history) { h.shop().Payouts[2].Since = time.Time{} },
	"I7":          func(h *history) { h.chain().Moves = append(h.chain().Moves, h.chain().Moves[3]) },
	"I8":          func(h *history) { h.chain().Moves[3].To = "o2"; h.chain().Moves[3].Amount = dec("5") },
	"I3":          func(h *history) { h.shop().Wallets[1].Balances["USDTX"] = Balance{24_801_981, -1, 24_801_982} },
	"balance":     func(h *history) { h.shop().Wallets[0].Balances["USDTX"] = Balance{84_000_001, 7_000_000, 77_000_001} },
	"I9":          func(h *history) { h.shop().Payouts[2].Status = failed },
	"I9-gas":      func(h *history) { h.scene.Shops[1].Aside["X"] = 1 },
	"W18":         func(h *history) { h.wrong = "stale" },
	"taken": func(h *history) {
		twice := h.chain().Moves[0] // of a bank's
		twice.To, twice.Coin, twice.Amount, twice.Ordinal = "own", "USDTX", dec("1.000001"), 1
		h.chain().Moves = append(h.chain().Moves, twice)
	},
	"platform-fees":      func(h *history) { h.shop().Earned["USDTX"]++ },
	"history":            func(h *history) { h.shop().Wallets[0].History[1].After++ },
	"history-withdrawal": func(h *history) { h.shop().Wallets[0].History[1].Ref = "w2" },
	"I29":                func(h *history) { h.shop().Lines[0].Status = waiting },
	"total-deposits":     func(h *history) { h.shop().Counts.Deposits = 2 },
	"H06":                func(h *history) { h.hooks[0].Secret = "another" },
	"I12": func(h *history) {
		last := &h.hooks[len(h.hooks)-1]
		*last = seal(last.Header.Get("X-Webhook-Id"), bytes.Replace(last.Body, []byte("2026"), []byte("2027"), 1), 2)
	},
	"H08": func(h *history) { h.hooks[len(h.hooks)-1].Header.Set("X-Webhook-Attempt", "7") },
	"six": func(h *history) { h.shop().Outbox[0].Attempts = 5 },
	"envelope": func(h *history) {
		h.hooks[1] = seal("id-1", bytes.Replace(h.hooks[1].Body, []byte("05.000Z"), []byte("05Z"), 1), 1)
	},
	"fields":       func(h *history) { h.hook("deposit_received", "p1", map[string]any{"more": 1}) },
	"I16":          func(h *history) { h.hooks[0].Shop = "b" },
	"I27":          func(h *history) { h.shop().Sent[1].Seq = 3 },
	"I27-host":     func(h *history) { h.deaf = true },
	"I27-house":    func(h *history) { h.scene.Houses[0].States["halt"] = Halted },
	"I27-waiting":  func(h *history) { h.withhold("withdrawal_waiting") },
	"I27-deposits": func(h *history) { h.withhold("payment_deposit") },
	"merged": func(h *history) {
		h.hook("deposit_merged", "p1", map[string]any{"deposit_id": "X/t1:0", "wallet_id": "w"})
	},
	"tolerance": func(h *history) { h.shop().Payments[0].Tolerance *= 2 },
	"type":      func(h *history) { h.shop().Payments[0].Type = "over" },
	"I1":        func(h *history) { h.changes[1].Post[0].Legs[0].Delta++ },
	"I2":        func(h *history) { h.shop().Books["wallet/master/USDTX"] = Booked{} },
	"verify":    func(h *history) { h.shop().Findings = []string{"a hold"} },
	"I15":       func(h *history) { h.claims[0].Version = 1 },
	"cost":      func(h *history) { h.chain().Sent[1].Cost++ },
	"loss": func(h *history) {
		c := ledger.Leg{Account: ledger.Chain("X"), Asset: "USDTX", Delta: -10_000}
		h.post("undone/less/X/t5/1", ledger.KindFee, c, ledger.Leg{Account: ledger.FeesNetwork, Asset: "USDTX", Delta: 10_000})
	},
	"I4-aside": func(h *history) { h.aside = 100_000_001 },
	"repaid":   func(h *history) { h.changes[len(h.changes)-1].Post = h.changes[len(h.changes)-1].Post[:1] },
	"I4-house": func(h *history) {
		h.post("gift", ledger.KindAdjustment, ledger.Leg{Account: ledger.Float, Asset: "X", Delta: -100_000_000})
	},
	"I5-own":     func(h *history) { h.changes[0].Post[0].ID = "topup/X/t5:0/1" },
	"I6":         func(h *history) { h.changes = slices.Delete(h.changes, 3, 4) },
	"I11-spends": func(h *history) { h.signed[2].Unsigned.Spends[0] = "t1:0" },
	"I11-free":   func(h *history) { h.free = "t2:0" },
	"I4-tenants": func(h *history) { h.signed[0].Also[0].Tenant = "b" },
	"I24-once":   func(h *history) { h.sweeps = []string{"one", "two"} },
	"R03":        func(h *history) { h.gone = "t2:0" },
	"I23":        func(h *history) { h.chain().Stuck["d1"]["USDTX"] = dec("50") },
	"I23-taxed": func(h *history) {
		h.scene.Weather.Taxed = map[string]bool{"USDTX": true}
		h.chain().Stuck["d1"]["USDTX"] = dec("50")
	},
	"I25":       func(h *history) { h.shop().Suspense = nil },
	"I25-alert": func(h *history) { h.alerts = nil },
	"deposit-told": func(h *history) {
		h.hooks = h.hooks[:len(h.hooks)-2]
		h.shop().Sent = h.shop().Sent[:len(h.shop().Sent)-1]
	},
	"I4":  func(h *history) { h.chain().Held["USDTX"] = dec("100") },
	"I24": func(h *history) { h.chain().Sent[2].Cost = 50_00000000 },
	"I28": func(h *history) { h.shop().Outbox[1].Created = at(2990) },
	"I19": func(h *history) { h.shop().Payouts[2].Created = at(100) },
	"I19-restored": func(h *history) {
		h.scene.Weather.Restored = true
		h.shop().Payouts[2].Created = at(100)
		h.shop().Payouts[2].Reason = ""
	},
	"full":           func(h *history) { h.shop().Payments[0].Status = expired },
	"partial":        func(h *history) { h.shop().Payments[1].Received = 0 },
	"empty":          func(h *history) { h.shop().Payments[2].Status = failed; h.shop().Payments[2].Received = 1 },
	"paid":           func(h *history) { h.shop().Payouts[0].Tx = "t9" },
	"complete":       func(h *history) { h.shop().Suspense = nil },
	"I26-named-deep": func(h *history) { deep(h); h.scene.Named = []Named{{"USDTX", "surplus"}} },
	"I26-named":      func(h *history) { h.scene.Named = []Named{{"USDTX", "surplus"}} },
	"I26":            func(h *history) { h.shop().Held["X/USDTX"]-- },
	"deposits-deep":  func(h *history) { deep(h); h.shop().Payments[0].Deposits = nil },
	"I26-deep":       func(h *history) { deep(h); h.shop().Held["X/X"] -= 5 },
	"resting":        func(h *history) { h.shop().Resting[0].Reason = "" },
	"resting-ends":   func(h *history) { h.shop().Resting[0].DueBelow = -1 },
	"at-rest":        func(h *history) { h.chain().Stuck["d2"]["USDTX"] = dec("20") },
	"many-coins":     func(h *history) { h.shop().Payouts[2].Reason = "fee_too_high" },
	"below-cost-shown": func(h *history) {
		h.shop().Payouts[2].Reason, h.shop().Resting[0].Coin, h.shop().Hot["USDTX"] = "hot_short", h.shop().Payouts[2].Coin, 4_000_000
	},
	"gas-left": func(h *history) {
		h.shop().Payouts[2].Reason, h.shop().Payouts[2].Coin = "hot_short", "X"
	},
	"fees-rose":       func(h *history) { h.scene.Risen["w3"] = true },
	"fees-rose-shown": func(h *history) { h.shop().Payouts[2].Since = time.Time{} },
	"unread":          func(h *history) { h.scene.End = false; h.shop().Payments[0].Status = expired },
	"theft":           func(h *history) { h.scene.Edited["w3"] = Edit{Thief: "thief"} },
	"rollout":         func(h *history) { h.shop().Payments[1].Received = 0 },
	"taxed": func(h *history) {
		h.scene.Weather.Taxed = map[string]bool{"USDTX": true}
		h.chain().Held["USDTX"] = dec("113")
	},
	"delivered-less": func(h *history) {
		h.scene.Weather.Taxed = map[string]bool{"USDTX": true}
		h.chain().Moves[3].Amount = dec("9.7")
	},
	"traitor":      func(h *history) { h.betrayed["a second payout"] = false },
	"halted":       func(h *history) { h.slipped = []string{"w1"} },
	"traitor-new":  func(h *history) { h.betrayed[""] = false },
	"thrift":       func(h *history) { h.shop().Payouts[2].Reason = "gas_short" },
	"at-rest-deep": func(h *history) { deep(h); h.chain().Stuck["d2"]["USDTX"] = dec("20") },
}

// TestPromises: each promise is asked and kept on a history that keeps it, and is
// seen to break on one that does not.
func TestPromises(t *testing.T) {
	t.Parallel()
	kept, below, back := good().play(), good(), good()
	deep(below)
	back.scene.Weather.Restored = true
	require.Empty(t, kept.Breaches())
	tally := kept.Tally()
	deeply := below.play()
	require.Empty(t, deeply.Breaches())
	tally.Add(deeply.Tally())
	tally.Add(back.play().Tally())
	taxed := good()
	taxed.scene.Weather.Taxed, taxed.scene.Weather.Took = map[string]bool{"USDTX": true}, map[string]bool{"w1": true}
	taxed.scene.Halted = map[string]bool{"USDTX": true}
	taxed.chain().Held["USDTX"], taxed.chain().Moves[3].Amount = dec("113.5"), dec("9.7")
	fee := taxed.play()
	require.Empty(t, fee.Breaches())
	tally.Add(fee.Tally())
	midst := good()
	midst.scene.End = false
	tally.Add(midst.play().Tally())
	require.Empty(t, tally.Idle())
	for _, p := range Table() {
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, p.Rule)
			if p.Open == p.ID { // nothing of it is written yet
				return
			}
			require.Positive(t, tally[p.ID].Able)
			require.Zero(t, tally[p.ID].Broken)
			h := good()
			require.NotNil(t, breaks[p.ID])
			breaks[p.ID](h)
			j := h.play()
			require.Positive(t, j.Tally()[p.ID].Broken)
			told := slices.ContainsFunc(j.Breaches(), func(b Breach) bool { return b.Promise == p.ID })
			require.Equal(t, p.Open == "", told, "an open promise is counted, and fails nothing")
			require.Equal(t, p.Open != "", p.Why != "")
		})
	}
}

// TestGasThatIsLeft: of what lies on a deposit address, gas that the library brought is not the
// payment's; coins of the same kind that a customer sent are.
func TestGasThatIsLeft(t *testing.T) {
	t.Parallel()
	for tx, broken := range map[string]bool{"t6": false, "t10": true} { // the library sent t6
		h := good()
		h.shop().Payments[0].Coin, h.shop().Payments[0].Received = "X", 100
		gas := &h.chain().Moves[5]
		require.Equal(t, "d1", gas.To)
		gas.Tx = tx
		if broken {
			gas.From = "c9"
		}
		require.Equal(t, broken, h.play().Tally()["at-rest"].Broken > 0, tx)
	}
}

// TestBelowCost: a payout may say that its coins cost too much to bring where they cover what
// its hot address lacks, and not where they are a unit too few.
func TestBelowCost(t *testing.T) {
	t.Parallel()
	for _, few := range []int64{0, 1} {
		h := good()
		shop := h.shop()
		shop.Payouts[2].Reason, shop.Hot["USDTX"] = "below_cost", shop.Payouts[2].Amount-shop.Resting[0].Amount-shop.Resting[1].Amount-few
		j := h.play()
		require.Equal(t, few > 0, j.Tally()["below-cost-shown"].Broken > 0)
	}
}

// TestDearCoinsForAWithdrawal: coins that cost more than they bring are moved only where a
// withdrawal lacks them that is worth it.
func TestDearCoinsForAWithdrawal(t *testing.T) {
	t.Parallel()
	lacks := func(h *history) { h.shop().Payouts[2].Amount = 111_000_000 }
	for name, c := range map[string]struct {
		cost   int64 // of the gas transfer
		change func(h *history)
		kept   bool
	}{
		"Lacked":     {cost: 2_50000000, change: lacks, kept: true}, // 5 USD for 3 USD, and for 111
		"AlreadyHot": {cost: 2_50000000, change: func(*history) {}},
		"TooDear":    {cost: 59_00000000, change: lacks}, // of 111 and 5
		"OrderedLater": {cost: 2_50000000, change: func(h *history) {
			lacks(h)
			h.shop().Payouts[2].Created = at(2930)
		}},
		"PaidBefore": {cost: 2_50000000, change: func(h *history) {
			lacks(h)
			c := h.chain()
			c.Moves = slices.Insert(c.Moves, 0, Move{Tx: "t10", From: "hot", To: "o3", Coin: "USDTX", Amount: dec("111")})
		}},
		"OfAnother": {cost: 2_50000000, change: func(h *history) {
			lacks(h)
			a, b := &h.scene.Shops[0], &h.scene.Shops[1]
			a.Payouts, b.Payouts = a.Payouts[:2], a.Payouts[2:]
		}},
		"OfAnotherCoin": {cost: 2_50000000, change: func(h *history) {
			lacks(h)
			h.shop().Payouts[2].Coin = "X"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			chain := h.chain()
			chain.Moves = append(chain.Moves,
				Move{Tx: "t8", From: "hot", To: "d4", Coin: "X", Amount: dec("0.001"), Height: 16, Time: at(2910)},
				Move{Tx: "t9", From: "d4", To: "hot", Coin: "USDTX", Amount: dec("3"), Height: 17, Time: at(2920)})
			chain.Sent = append(chain.Sent, Sent{"t8", c.cost, true, "hot"}, Sent{"t9", 1000, true, "d4"})
			c.change(h)
			require.Equal(t, c.kept, h.play().Tally()["I24"].Broken == 0)
		})
	}
}

// TestLate: what nobody saw before it was mined at the very end counts for nothing.
func TestLate(t *testing.T) {
	t.Parallel()
	h := good()
	h.chain().Moves[1].Time = h.shop().Payments[0].Expires
	require.Empty(t, h.play().Breaches()) // somebody may have seen it in time
	h.chain().Unseen = map[string]bool{"t1": true}
	require.Positive(t, h.play().Tally()["I5"].Broken)
}

// TestForget: what a store that was put back has forgotten is not missed, and what it
// paid is not forgotten.
func TestForget(t *testing.T) {
	t.Parallel()
	h := good()
	j := h.play()
	require.Empty(t, j.Breaches())
	j.Reopened()
	j.Forget()
	h.scene.Weather = Weather{Deep: true, Restored: true}
	h.scene.End = false
	shop := h.shop()
	*shop = Shop{ID: "a", Wallets: []Wallet{{ID: master}}}
	j.Look(&h.scene)
	require.Empty(t, j.Breaches())
	h.chain().Moves = append(h.chain().Moves, h.chain().Moves[3])
	j.Look(&h.scene)
	require.Equal(t, "I7", j.Breaches()[0].Promise)
}

// TestHold: an open promise fails what breaks it where it is held.
func TestHold(t *testing.T) {
	t.Parallel()
	h := good()
	breaks["deposits-deep"](h)
	j := New(coins)
	j.Hold("deposits-deep")
	j.Look(&h.scene)
	require.True(t, slices.ContainsFunc(j.Breaches(), func(b Breach) bool { return b.Promise == "deposits-deep" }))
}

// TestTally: the table has a line per promise, and says what could not have failed.
func TestTally(t *testing.T) {
	t.Parallel()
	j := New(coins)
	j.ask("I7", true, false, "")
	j.ask("deposits-deep", false, false, "")
	text := j.Tally().String()
	require.Contains(t, text, "I7 ")
	require.Contains(t, text, "rounding-after-deep-reorg")
	require.NotContains(t, j.Tally().Idle(), "I7")
	require.Contains(t, j.Tally().Idle(), "I8")
	require.Equal(t, Count{Asked: 1, Able: 1, Broken: 1}, j.Tally()["I7"])
}
