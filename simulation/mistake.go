package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
)

// mistype is an operator who errs: he lists a currency as what it is not, or moves the point of a price, and puts it right later.
// What was sold at it was sold; all books must still be right.
func (r *run) mistype() string {
	if r.rng.IntN(4) == 0 {
		return r.mislist()
	}
	if len(r.typed) > 0 {
		r.typed = nil
		return "a price is put right"
	}
	token := pick(r.rng, slices.Sorted(maps.Keys(r.prices)))
	places := pick(r.rng, []int32{-6, -3, -2, -1, 1, 2, 3, 6})
	price := r.prices[token].Shift(places)
	r.typed = map[string]decimal.Decimal{token: price}
	r.quoted[token] = append(r.quoted[token], price)
	return fmt.Sprintf("%s is typed as %s", token, price)
}

// mislist is an operator who starts a process with the contract or the units of a
// currency mistaken. It must not start, and does once that is put right.
func (r *run) mislist() string {
	p := pick(r.rng, r.procs)
	listed := registry().On(pick(r.rng, r.chains).name)
	c, field := listed[r.rng.IntN(len(listed))], pick(r.rng, []string{"contract", "decimals", "scale"})
	code := c.Code
	if !p.free() || c.Native() || r.rollout != nil && code == r.rollout.code { // a process may not list that one yet
		return "nothing"
	}
	p.kill()
	p.listed = mistaken(code, field)
	err := p.start()
	var wrong *cryptopay.ListingError
	refused := errors.As(err, &wrong) && wrong.Currency == code && wrong.Field == field
	r.outside.judge.Mistaken(field+" of "+code, refused, err)
	p.kill()
	p.listed = nil
	if err := p.startAgain(); err != nil {
		r.fail("start", "%s does not start after the %s of %s was put right: %v", p, field, code, err)
	}
	return fmt.Sprintf("the %s of %s is mistaken, %s does not start until it is put right", field, code, p)
}

// mistaken is the registry with one field of one currency wrong.
func mistaken(code, field string) *chain.Registry {
	var all []chain.Currency
	for _, k := range registry().Codes() {
		c := *currency(k)
		switch {
		case k != code:
		case field == "contract":
			c.Contract += "0"
		case field == "decimals":
			c.Decimals++
		case field == "scale":
			c.Scale--
		}
		all = append(all, c)
	}
	out, err := chain.NewRegistry(registry().Networks(), all)
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return out
}
