package keys

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Two transactions that pay one withdrawal must exclude each other, or it is paid twice. So a
// registry knows which of the transactions that it bound for a withdrawal may still be
// included in a block. Another one must spend the nonce, or an input, of each of them, unless
// an Ending shows that it is dead. An App makes Endings when it starts a withdrawal again. The
// rows of a database alone make none.

// signedOrder is what may still pay a withdrawal.
type signedOrder struct {
	Live []string `db:"live,json"` // attempts
}

// signedOrders is by withdrawal, in network partitions.
var signedOrders = storage.NewTable[signedOrder]("signed_orders")

// orders are the withdrawals of a binding as a registry has them, and the attempts that
// decide on it.
type orders struct {
	live     map[string][]string // by withdrawal; one that is not known has no entry
	attempts map[string]SignedAttempt
	slots    map[string]SignedSlot
}

// asked are the attempts that are read for b before its orders are known: its own, those that
// an earlier version can have bound for its orders, and those that Endings name as landed.
func asked(b *Binding) []string {
	ids := []string{b.Attempt}
	for _, order := range b.Orders {
		ids = append(ids, unlisted(order, b.Attempt)...)
	}
	for i := range b.Endings {
		if at := b.Endings[i].Landed.ID; at != "" {
			ids = append(ids, at)
		}
	}
	return ids
}

// unread are the live attempts of b's orders that were not read.
func (o *orders) unread(b *Binding) (ids []string) {
	for _, order := range b.Orders {
		for _, id := range o.live[order] {
			if _, read := o.attempts[id]; !read {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// leastUnlisted and mostUnlisted are how many attempts of an order are looked for that a
// registry bound before it listed them by order.
const leastUnlisted, mostUnlisted = 8, 100

// unlisted names the attempts that an earlier version can have bound for an order. The number
// of the new attempt is no more than a hint: whoever edits the App's database chooses it.
func unlisted(order, attempt string) (ids []string) {
	most := leastUnlisted
	if number, ok := strings.CutPrefix(attempt, order+"/"); ok {
		n, err := strconv.Atoi(number)
		if most = mostUnlisted; err == nil && n > 0 {
			most = min(max(n-1, leastUnlisted), mostUnlisted)
		}
	}
	for i := range most {
		ids = append(ids, order+"/"+strconv.Itoa(i+1))
	}
	return ids
}

// admit returns what may pay each withdrawal of a binding once it is bound, or refuses it.
func (o *orders) admit(b *Binding) (map[string][]string, error) {
	k := compared{orders: o, spends: map[string]string{}, shared: map[[2]string]bool{}}
	out := make(map[string][]string, len(b.Orders))
	for _, order := range b.Orders {
		live, known := o.live[order]
		if !known {
			live = unlisted(order, b.Attempt)
		}
		rest := make([]string, 0, len(live)+1)
		for _, id := range live {
			a, bound := o.attempts[id]
			switch {
			case !known && (!bound || len(a.Slots) > 0), k.dead(order, id, &a, b.Endings):
				continue // what this version has bound for an order is listed
			case !b.Unproved && !k.excludes(b, id, &a):
				return nil, refuse("withdrawal %s may still be paid by attempt %s: attempt %s would not exclude it, and nothing shows that it is dead", order, id, b.Attempt)
			}
			rest = append(rest, id)
		}
		out[order] = append(rest, b.Attempt)
	}
	return out, nil
}

// compared has what attempts of a binding's withdrawals spend, compared once for all of these:
// one transaction pays hundreds, and spends more.
type compared struct {
	*orders
	spends map[string]string  // SpendsOf, by attempt
	shared map[[2]string]bool // by two attempts
}

// excludes reports whether a binding and an attempt cannot both be included in a block.
func (k *compared) excludes(b *Binding, id string, a *SignedAttempt) bool {
	if len(a.Slots) == 0 { // of an earlier version: what it spends is bound to its intent
		return slices.ContainsFunc(b.Slots, func(s string) bool { return k.slots[s].Intent == a.Intent && a.Intent != "" })
	}
	return k.shares(id, a.Slots, b.Attempt, b.Slots)
}

// dead reports whether one of the Endings shows that an attempt can pay an order no more.
func (k *compared) dead(order, id string, a *SignedAttempt, endings []mandate.Ending) bool {
	return slices.ContainsFunc(endings, func(e mandate.Ending) bool {
		switch {
		case e.Order != order:
			return false
		case slices.ContainsFunc(e.Dead, func(m mandate.Attempt) bool { return k.is(id, a, m) }):
			return true
		case e.Landed.ID == "":
			return false
		case e.Landed.ID == id:
			return e.Reverted && k.is(id, a, e.Landed)
		}
		landed, bound := k.attempts[e.Landed.ID]
		if !bound || !k.is(e.Landed.ID, &landed, e.Landed) {
			return false
		}
		return len(a.Slots) == 0 || len(landed.Slots) == 0 || k.shares(id, a.Slots, e.Landed.ID, landed.Slots)
	})
}

// is compares an attempt with what an Ending says of one. An earlier version bound neither its
// hash nor what it spends.
func (k *compared) is(id string, a *SignedAttempt, m mandate.Attempt) bool {
	if m.ID != id || a.Tx != "" && m.Tx != a.Tx {
		return false
	}
	if len(a.Slots) == 0 {
		return true
	}
	if _, known := k.spends[id]; !known {
		k.spends[id] = mandate.SpendsOf(a.Slots)
	}
	return m.Spends == k.spends[id]
}

// shares reports whether two attempts spend a nonce or an input that is the same.
func (k *compared) shares(one string, a []string, other string, b []string) bool {
	pair := [2]string{one, other}
	if said, known := k.shared[pair]; known {
		return said
	}
	spent := make(map[string]bool, len(b))
	for _, s := range b {
		spent[s] = true
	}
	k.shared[pair] = slices.ContainsFunc(a, func(s string) bool { return spent[s] })
	return k.shared[pair]
}
