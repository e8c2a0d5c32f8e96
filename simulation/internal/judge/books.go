package judge

import (
	"slices"
)

const master = "master"

// account is what a wallet should have of a coin.
type account struct{ amount, pending int64 }

// model adds up what each wallet of a shop should have: what payments left it, less
// what went out, and what came and went by transfers.
func model(shop *Shop) map[string]account {
	out := map[string]account{}
	add := func(wallet, coin string, amount, held int64) {
		a := out[wallet+"/"+coin]
		out[wallet+"/"+coin] = account{a.amount + amount, a.pending + held}
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		add(p.Wallet, p.Coin, p.Net, 0)
	}
	for i := range shop.Payouts {
		switch p := &shop.Payouts[i]; {
		case p.Status == completed:
			add(p.Wallet, p.Coin, -p.Requested, 0)
		case p.open():
			add(p.Wallet, p.Coin, 0, p.Requested)
		}
	}
	for i := range shop.Transfers {
		t := &shop.Transfers[i]
		from, to := master, t.Wallet
		if t.Direction == "to_master" {
			from, to = to, from
		}
		switch t.Status {
		case completed:
			add(from, t.Coin, -t.Amount, 0)
			add(to, t.Coin, t.Amount, 0)
		case pending:
			add(from, t.Coin, 0, t.Amount)
		}
	}
	return out
}

// balances holds what each wallet shows against the model: what a deep reorg took
// may stand as owed, and what people gave out of suspense is the master account's.
func (j *Judge) balances(s *Scene, shop *Shop) {
	want, have := model(shop), map[string]Balance{}
	for i := range shop.Wallets {
		for _, coin := range sorted(shop.Wallets[i].Balances) {
			b := shop.Wallets[i].Balances[coin]
			key := shop.Wallets[i].ID + "/" + coin
			have[key] = b
			j.ask("I3", true, b.Amount >= 0 && b.Pending >= 0 && b.Available >= 0 && b.Amount == b.Pending+b.Available,
				"%s of %s: %d = %d pending + %d available", key, shop.ID, b.Amount, b.Pending, b.Available)
			if _, ok := want[key]; !ok {
				want[key] = account{}
			}
		}
	}
	for _, key := range sorted(want) {
		wallet, coin := cut(key)
		b, w := have[key], want[key]
		var least, most int64
		if wallet == master {
			least, most = j.resolved(shop.ID, coin)
			if s.Weather.Deep {
				least = 0 // a reorg may have taken that away, too
			}
		}
		sum := b.Amount + shop.Owed[key]
		j.ask("balance", !s.Weather.Restored && (w.amount != 0 || b.Amount != 0), w.amount+least <= sum && sum <= w.amount+most,
			"%s of %s has %d and owes %d, and payments, withdrawals and transfers come to %d", key, shop.ID, b.Amount, -shop.Owed[key], w.amount)
		j.ask("I9", w.pending != 0 || b.Pending != 0, b.Pending == w.pending,
			"%s of %s has %d pending, and what is open holds %d", key, shop.ID, b.Pending, w.pending)
	}
	j.earned(shop)
}

// earned holds the platform's fees against what payments and withdrawals show.
func (j *Judge) earned(shop *Shop) {
	want := map[string]int64{}
	for i := range shop.Payments {
		want[shop.Payments[i].Coin] += shop.Payments[i].Platform
	}
	for i := range shop.Payouts {
		if p := &shop.Payouts[i]; p.Status == completed {
			want[p.Coin] += p.Platform
		}
	}
	for i := range shop.Taken {
		if t := &shop.Taken[i]; t.Status == completed {
			want[t.Coin] -= t.Amount
		}
	}
	for coin := range shop.Earned {
		want[coin] += 0
	}
	for _, coin := range sorted(want) {
		j.ask("platform-fees", want[coin] != 0, shop.Earned[coin] == want[coin],
			"%s shows %d %s of fees, and payments and withdrawals %d", shop.ID, shop.Earned[coin], coin, want[coin])
	}
}

// histories holds each wallet's history against its balances and the withdrawals.
func (j *Judge) histories(shop *Shop) {
	taken := map[string]int64{}
	for i := range shop.Wallets {
		w := &shop.Wallets[i]
		after, seen := map[string]int64{}, map[string]bool{}
		for _, e := range w.History { // newest first
			if !seen[e.Coin] {
				seen[e.Coin], after[e.Coin] = true, w.Balances[e.Coin].Amount
			}
			j.ask("history", true, e.After == after[e.Coin] && e.Amount != 0 && slices.Contains(historyKinds, e.Kind),
				"%s of %s: after a %s of %d %s it has %d, and the entry after it begins at %d", w.ID, shop.ID, e.Kind, e.Amount, e.Coin, e.After, after[e.Coin])
			after[e.Coin] = e.After - e.Amount
			if e.Kind == "withdrawal" {
				taken[e.Ref] += e.Amount
				j.ask("history-withdrawal", true, e.Amount == taken[e.Ref], "%s of %s: two entries for withdrawal %s", w.ID, shop.ID, e.Ref)
			}
		}
		for _, coin := range sorted(after) {
			j.ask("history", true, after[coin] == 0, "the history of %s of %s begins with %d %s", w.ID, shop.ID, after[coin], coin)
		}
		for _, coin := range sorted(w.Balances) {
			b := w.Balances[coin]
			j.ask("history", b.Amount != 0, seen[coin], "%s of %s has %d %s and no history", w.ID, shop.ID, b.Amount, coin)
		}
		j.ask("history", true, w.Count == int64(len(w.History)), "the history of %s of %s counts %d of %d", w.ID, shop.ID, w.Count, len(w.History))
	}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		want := int64(0)
		if p.Status == completed {
			want = -p.Requested
		}
		j.ask("history-withdrawal", want != 0 || taken[p.ID] != 0, taken[p.ID] == want,
			"withdrawal %s is %s of %d, and the history shows %d", p.ID, p.Status, p.Requested, taken[p.ID])
	}
}

// historyKinds are the types that a balance history has.
var historyKinds = []string{"deposit", "withdrawal", "transfer_in", "transfer_out", "fee", "refund", "adjustment"}

// cut takes "wallet/coin" apart.
func cut(key string) (wallet, coin string) {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return key, ""
}
