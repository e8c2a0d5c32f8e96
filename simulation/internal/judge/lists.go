package judge

import (
	"maps"
	"slices"
	"strings"
)

// aboutLists are promises about payouts that were asked for as one list.
var aboutLists = []Promise{
	{ID: "list-whole", Rule: "A list of payouts is made in one commit: all of its withdrawals are there, or none."},
	{ID: "list-shown", Rule: "A list shows its withdrawals in the order of the request, each as it is shown by itself, and counts them by status."},
	{ID: "list-wrong", Rule: "A list with wrong lines is refused. The refusal names the wrong field of each of them by its place, and no field that is right."},
	{ID: "list-key", Rule: "Another list under the key of one that was made is refused."},
	{ID: "list-once", Rule: "An address that several payouts go to gets each of them at most once, in its coin and amount, and none that has failed or was cancelled."},
	{ID: "list-paid", Rule: "Of such payouts each that is completed was paid by a transfer of its own, in the transaction that it names."},
}

// List is a list of payouts that a merchant asked for, made or not.
type List struct {
	Shop, Key string
	Orders    []string     // their keys, in the order of the request
	Wrong     string       // the field that is wrong in the lines of Bad, "" = in none
	Bad       map[int]bool // by place

	id      string
	ids     []string
	refused bool // every request for it
	lost    bool // a restore may have forgotten it
}

// Listing notes a list that a merchant is about to ask for.
func (j *Judge) Listing(l List) { j.lists[l.Key] = &l }

// Lists are the views of a shop's lists that were made, still to be read.
func (j *Judge) Lists(shop string) (out []Listed) {
	for _, key := range sorted(j.lists) {
		if l := j.lists[key]; l.Shop == shop && l.id != "" {
			out = append(out, Listed{ID: l.id})
		}
	}
	return out
}

// Listed notes that a list was made: its id, and the ids of its withdrawals. The same key has the
// same ids each time: I14.
func (j *Judge) Listed(key, id string, ids []string) {
	l := j.lists[key]
	j.ask("I14", l.id != "", l.id == id && slices.Equal(l.ids, ids), "the key %s made payouts %s and %s", key, l.id, id)
	j.ask("list-wrong", l.Wrong != "", false, "list %s was made, and in lines %v the %s is wrong", key, l.Bad, l.Wrong)
	j.ask("list-whole", true, len(ids) == len(l.Orders), "list %s of %d lines was answered with %d", key, len(l.Orders), len(ids))
	for i, id := range ids[:min(len(ids), len(l.Orders))] {
		j.Accepted(l.Orders[i], id)
	}
	l.id, l.ids = id, ids
}

// Unlisted notes that a list was refused, and the fields that the refusal names, by line. last: every
// request for the list was refused so far.
func (j *Judge) Unlisted(key string, named map[int][]string, last bool) {
	l := j.lists[key]
	l.refused = last
	j.ask("I14", l.id != "", false, "the key %s made payout %s, and is refused now", key, l.id)
	if named == nil && l.Wrong == "" {
		return
	}
	ok := true
	for i := range l.Orders {
		fields := slices.DeleteFunc(slices.Clone(named[i]), func(f string) bool { return f == "price_amount" || f == "amount" && (l.Wrong != "amount" || !l.Bad[i]) })
		want := l.Bad[i]
		ok = ok && want == slices.Equal(fields, []string{l.Wrong}) && (want || len(fields) == 0)
	}
	j.ask("list-wrong", true, ok, "list %s with a wrong %s in lines %v was refused for %v", key, l.Wrong, l.Bad, named)
}

// Reused notes whether the library refused another list under the key of one that it had made.
func (j *Judge) Reused(key string, refused bool) {
	l := j.lists[key]
	j.ask("list-key", !l.lost, refused, "another list was taken under the key %s", key)
}

// listed judges a shop's lists.
func (j *Judge) listed(s *Scene, shop *Shop) {
	of, byID := map[string]*Payout{}, map[string]*Payout{}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		of[p.CustomID], byID[p.ID] = p, p
	}
	for _, key := range sorted(j.lists) {
		l := j.lists[key]
		if l.Shop != shop.ID {
			continue
		}
		there := 0
		for _, o := range l.Orders {
			if of[o] != nil {
				there++
			}
		}
		all := len(l.Orders)
		made := l.id != "" && !l.lost
		ok := there == all || there == 0 && !made
		j.ask("list-whole", there > 0 || made, ok, "of the %d withdrawals of list %s %d are there", all, key, there)
		j.ask("list-whole", l.refused, there == 0, "list %s was refused, and %d of its withdrawals are there", key, there)
	}
	for i := range shop.Lists {
		j.shownAs(shop, &shop.Lists[i], byID)
	}
	j.several(s, shop)
}

// shownAs is that a list shows what its withdrawals show.
func (j *Judge) shownAs(shop *Shop, v *Listed, byID map[string]*Payout) {
	var l *List
	for _, x := range j.lists {
		if x.Shop == shop.ID && x.id == v.ID {
			l = x
		}
	}
	if l == nil || l.lost && v.Lines == nil {
		return
	}
	ok, count := len(v.Lines) == len(l.Orders), map[string]int{}
	for i := range v.Lines {
		p := byID[v.Lines[i].ID]
		if ok = ok && p != nil && v.Lines[i] == *p && p.CustomID == l.Orders[i]; ok {
			count[p.Status]++
		}
	}
	for status, n := range count {
		ok = ok && v.Count[status] == n
	}
	j.ask("list-shown", true, ok, "list %s shows %+v", l.Key, *v)
}

// paidTo is a coin and an amount at an address, with the transaction that it is of; "" = any.
type paidTo struct{ network, to, coin, amount, tx string }

func (p paidTo) String() string {
	return strings.Join([]string{p.network, p.to, p.coin, p.amount, p.tx}, " ")
}

// several judges addresses that several payouts of a shop go to, and nothing else does.
func (j *Judge) several(s *Scene, shop *Shop) {
	type place struct{ network, to string }
	places := map[place]bool{} // true = nothing of it is lost
	for _, key := range j.keys {
		if o := j.orders[key]; o.Several && o.Shop == shop.ID {
			at := place{j.coin(o.Coin).Network, o.To}
			known, seen := places[at]
			places[at] = (known || !seen) && !o.lost
		}
	}
	open, done := map[paidTo]int{}, map[paidTo]int{} // payouts that may have been paid, and that say so
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		coin := j.coin(p.Coin)
		if _, ok := places[place{coin.Network, p.Address}]; !ok {
			continue
		}
		w := paidTo{coin.Network, p.Address, p.Coin, coin.whole(p.Amount).String(), ""}
		if p.Status != failed && p.Status != cancelled || s.Weather.Deep {
			open[w]++
		}
		if w.tx = p.Tx; p.Status == completed && p.Reason == "" {
			done[w]++
		}
	}
	got := map[paidTo]int{}
	for i := range s.Chains {
		c := &s.Chains[i]
		for _, m := range c.Moves {
			if sure, ok := places[place{c.Network, m.To}]; ok {
				w := paidTo{c.Network, m.To, m.Coin, m.Amount.String(), m.Tx}
				got[w]++
				if w.tx = ""; sure && c.Undone < 2 && !s.Weather.Taxed[m.Coin] {
					got[w]++
				}
			}
		}
	}
	in := func(a, b paidTo) int { return strings.Compare(a.String(), b.String()) }
	for _, w := range slices.SortedFunc(maps.Keys(got), in) {
		j.ask("list-once", w.tx == "", got[w] <= open[w], "%s were paid %d times, and %d payouts may have been", w, got[w], open[w])
	}
	calm := s.End && !s.Weather.Restored && !s.Weather.Deep
	for _, w := range slices.SortedFunc(maps.Keys(done), in) {
		j.ask("list-paid", calm && !s.Weather.Taxed[w.coin], done[w] <= got[w], "%d payouts are completed by %s, which paid %d", done[w], w, got[w])
	}
}
