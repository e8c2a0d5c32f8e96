package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// Breach is a promise that was not kept.
type Breach struct {
	Promise string
	What    string
}

// Judge remembers what it saw and was told, and judges what comes next.
type Judge struct {
	coins    map[string]Coin
	tally    Tally
	open     map[string]bool
	breaches []Breach

	asks        map[string]Ask               // by payment
	lost        map[string]bool              // payments and permanent addresses that a restore may have forgotten
	given       map[string]Address           // permanent addresses that merchants were given, by id
	orders      map[string]*Order            // by key
	keys        []string                     // of orders, as they came
	lists       map[string]*List             // of payouts, by key
	saves       map[string][]*savings        // by shop, as they came
	states      map[string]string            // of each object, as last seen
	where       map[string]string            // address → the payment it was given to
	letters     map[string]*letter           // webhooks by shop and id
	merges      map[string]string            // by deposit: the event that told of its merge
	hosts       map[string]*heard            // by shop: what its host's consumer heard
	alerts      map[string]bool              // deposits in suspense that the host was alerted of, by shop and id
	steps       map[string]*depositTold      // by deposit
	waits       map[string]waitTold          // by withdrawal
	trouble     map[string]time.Time         // by shop: when its receiver last answered badly
	looked      map[string]time.Time         // by withdrawal that says nothing: when a process first did all that was due
	reasons     map[string]time.Time         // by withdrawal: when it last showed a reason
	edges       map[string][]edge            // by object: the changes that were told
	says        map[string]map[string]string // what all its webhooks say alike
	restated    map[string]bool              // payments of which two webhooks say different amounts
	claims      map[string]string            // by object: to whom it was told
	transferred map[string]string            // by key
	deposits    map[string]int               // by payment: how many were told
	settled     map[string]*verdict          // by deposit: what a person decided on suspense
	spent       map[slot]string              // by nonce or coin: the order that it was first signed for
	refusing    bool                         // a signer or a token has refused something, or may: a policy
	frozen      map[string]bool              // withdrawals that an operator holds
	record      *record                      // what the store was told
}

// edge is a change of state that a webhook told.
type edge struct{ from, to string }

// Ask is a payment that a merchant asked for and got.
type Ask struct {
	Shop, Coin, Price string
	Wallet            string
	ByUser, Fixed     bool
	Window            time.Duration
	Address           string
}

// Address is a permanent address.
type Address struct {
	Shop, ID, Network, Address, ExternalID string
	Wallet                                 string // that is credited, as the view has it
}

// Order is a withdrawal that a merchant asked for, accepted or not.
type Order struct {
	Shop, Key, Coin, To string
	Figure              decimal.Decimal
	Priced              bool // the figure is in USD
	Final               bool // the figure is what the recipient gets
	Shared              bool // the address gets other money too
	Several             bool // that is of such orders of the shop alone
	ID                  string
	lost                bool // a restore may have forgotten it
}

// New is a judge of a world with these coins.
func New(coins map[string]Coin) *Judge {
	j := &Judge{coins: coins, tally: Tally{}, open: map[string]bool{}, record: newRecord(), orders: map[string]*Order{}, lists: map[string]*List{}, saves: map[string][]*savings{}, where: map[string]string{}, asks: map[string]Ask{}, lost: map[string]bool{}, given: map[string]Address{}, alerts: map[string]bool{}}
	for _, p := range Table() {
		if p.Open != "" {
			j.open[p.ID] = true
		}
	}
	j.forget()
	return j
}

// Hold makes open promises fail what breaks them.
func (j *Judge) Hold(ids ...string) {
	for _, id := range ids {
		delete(j.open, id)
	}
}

// Forget is told when the store was put back: what was told before is not held
// against what comes after. What was paid is, and who was alerted knows.
func (j *Judge) Forget() {
	j.forget()
	for _, o := range j.orders {
		o.lost = true
	}
	for _, l := range j.lists {
		l.lost = true
	}
	for id := range j.asks {
		j.lost[id] = true
	}
	for id := range j.given {
		j.lost[id] = true
	}
}

func (j *Judge) forget() {
	j.states, j.letters, j.edges = map[string]string{}, map[string]*letter{}, map[string][]edge{}
	j.says, j.claims = map[string]map[string]string{}, map[string]string{}
	j.restated = map[string]bool{}
	j.deposits, j.merges, j.trouble = map[string]int{}, map[string]string{}, map[string]time.Time{}
	j.frozen, j.transferred, j.reasons = map[string]bool{}, map[string]string{}, map[string]time.Time{}
	j.settled, j.steps, j.spent = map[string]*verdict{}, map[string]*depositTold{}, map[slot]string{}
	j.waits, j.hosts, j.looked = map[string]waitTold{}, map[string]*heard{}, map[string]time.Time{}
}

// Tally is what was counted so far.
func (j *Judge) Tally() Tally { return j.tally }

// Breaches takes what was broken since it was asked last; of open promises none.
func (j *Judge) Breaches() []Breach {
	out := j.breaches
	j.breaches = nil
	return out
}

// ask counts one question. able is its premise.
func (j *Judge) ask(id string, able, kept bool, format string, args ...any) {
	c := j.tally[id]
	c.Asked++
	if able {
		c.Able++
		if !kept {
			c.Broken++
			if !j.open[id] {
				j.breaches = append(j.breaches, Breach{id, fmt.Sprintf(format, args...)})
			}
		}
	}
	j.tally[id] = c
}

// Look judges a scene.
func (j *Judge) Look(s *Scene) {
	for i := range s.Shops {
		shop := &s.Shops[i]
		j.payments(s, shop)
		j.counted(s, shop)
		j.payouts(s, shop)
		j.listed(s, shop)
		j.transfers(shop)
		j.balances(s, shop)
		j.histories(shop)
		j.views(shop)
		j.agrees(s, shop)
		j.outbox(s, shop)
		j.firsts(s, shop)
		j.resting(s, shop)
		j.saved(s, shop)
		j.dearer(s, shop)
		j.unread(s, shop)
		j.theft(s, shop)
		j.less(s, shop)
		j.stored(shop)
		j.verified(shop)
	}
	j.chains(s)
	if s.End {
		j.ends(s)
		j.hard(s)
	}
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// coin is a listed coin.
func (j *Judge) coin(code string) Coin { return j.coins[code] }

// chain is the network with this code.
func (s *Scene) chain(network string) *Chain {
	for i := range s.Chains {
		if s.Chains[i].Network == network {
			return &s.Chains[i]
		}
	}
	return &Chain{}
}
