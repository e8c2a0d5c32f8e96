package simulation

import (
	"math/rand/v2"
	"slices"
)

// The hard nemeses strike beside the deck, with dice of their own: what one of them
// does changes no other die of the same seed, and a world that draws none of them is
// the world that its seed has always played.

// The hard nemeses.
const (
	Thrift   Nemesis = "thrift"   // operators bring little, and only what a shown reason asks for
	Crumbs   Nemesis = "crumbs"   // merchants who live on small payments in many pieces, and pay out all that they have
	Storms   Nemesis = "storms"   // fees ten and thirty times as high for days
	Amnesia  Nemesis = "amnesia"  // nodes stand still, forget old receipts, and tell finality late or ahead of their heads
	Hangs    Nemesis = "hangs"    // receivers that take all the time that they are given
	Absurd   Nemesis = "absurd"   // prices a hundred times and more too high or too low
	Thieves  Nemesis = "thieves"  // somebody edits a row of a payout in the database
	Rollouts Nemesis = "rollouts" // a currency and confirmations that change between restarts, process by process
	Issuers  Nemesis = "issuers"  // tokens that begin to take a fee, freeze an address, pause, rebase
	Halting  Nemesis = "halting"  // operators halt networks, currencies and merchants, and lift it
	Traitors Nemesis = "traitors" // a process asks the signer for more than was decided
	Regulars Nemesis = "regulars" // customers who pay to permanent addresses again and again, much or too little

	lists  Nemesis = "lists"  // merchants who send lists of payouts, and cancel some of them
	savers Nemesis = "savers" // merchants and processes that move coins of deposit addresses later
)

// hardship is a hard nemesis.
type hardship struct {
	nemesis Nemesis
	odds    int // of 100 worlds
	chance  int // of 100 steps, times the rate from 1 to 4
	strike  func(*run) string
}

// hardships lists the hard nemeses in the order in which they strike.
func hardships() []hardship {
	return []hardship{
		{Thrift, 15, 4, (*run).lookAfter},
		{Crumbs, 12, 5, (*run).crumb},
		{Storms, 12, 1, (*run).storm},
		{Amnesia, 18, 3, (*run).amnesia},
		{Hangs, 12, 2, (*run).hang},
		{Absurd, 12, 4, (*run).wilder},
		{Thieves, 12, 4, (*run).steal},
		{Rollouts, 12, 2, (*run).deploy},
		{Issuers, 12, 2, (*run).issue},
		{Traitors, 10, 0, nil},
		{Halting, 15, 3, (*run).halting},
		{Regulars, 15, 8, (*run).regular},
		{lists, 15, 2, (*run).list},
		{savers, 15, 8, (*run).save},
	}
}

func hardNemeses() (out []Nemesis) {
	for _, h := range hardships() {
		out = append(out, h.nemesis)
	}
	return out
}

// harden draws which hard nemeses may strike in this run, and how hard.
func (r *run) harden() {
	dice := rand.New(rand.NewPCG(r.w.Seed^hardSeed, 0))
	for _, h := range hardships() {
		active := dice.IntN(100) < h.odds
		rate := 1 + dice.IntN(4)
		if r.w.Nemeses != nil {
			active = slices.Contains(r.w.Nemeses, h.nemesis)
		}
		if (h.nemesis == Thieves || h.nemesis == Halting) && r.rate[Restores] > 0 {
			active = false // a store that is put back is made of what the library wrote, and has forgotten halts
		}
		if active && r.w.able(h.nemesis) {
			r.rate[h.nemesis], r.struck[h.nemesis] = rate, 0
		}
	}
}

// hardSeed sets the dice of the hard nemeses apart from all others of a seed.
const hardSeed = 0x68617264

// harder lets the hard nemeses strike after a step.
func (r *run) harder() {
	own := r.rng
	defer func() { r.rng = own }()
	for i, h := range hardships() {
		if r.rate[h.nemesis] == 0 || h.strike == nil || r.failure != nil {
			continue
		}
		r.rng = rand.New(rand.NewPCG(r.w.Seed^hardSeed, uint64(r.step)<<8|uint64(i+1)))
		if r.rng.IntN(100) >= h.chance*r.rate[h.nemesis] {
			continue
		}
		if what := h.strike(r); what != "" {
			r.struck[h.nemesis]++
			r.tell("%s: %s", h.nemesis, what)
		}
	}
}
