package follow

import "github.com/cryptopay-go/cryptopay/chain"

// Contest judges attempts of a network where those of one place (an account's sequence
// number) exclude each other. landed says of one whether a block has it, rest judges one
// that no block is known to have. Where a block has one of a place, it is what took the
// place from the others, so rest need not search for it. place has ok false for what is not
// understood, which is Unknown. Errors are those of Statuses.
func Contest[P comparable](
	attempts []chain.Attempt, place func(i int) (p P, ok bool),
	landed func(i int) (s chain.Status, found bool, err error), rest func(i int) (chain.Status, error),
) ([]chain.Status, error) {
	type winner struct {
		tx string
		chain.Status
	}
	won := map[P]winner{}
	decided := make([]bool, len(attempts))
	first, err := Statuses(len(attempts), func(i int) (chain.Status, error) {
		p, ok := place(i)
		if decided[i] = !ok; !ok {
			return chain.Status{State: chain.Unknown}, nil
		}
		s, found, err := landed(i)
		if decided[i] = found || err != nil; err == nil && s.State == chain.Included {
			won[p] = winner{attempts[i].Tx, s}
		}
		return s, err
	})
	if err != nil {
		return nil, err
	}
	return Statuses(len(attempts), func(i int) (chain.Status, error) {
		p, _ := place(i)
		w, taken := won[p]
		switch {
		case decided[i]:
			return first[i], nil
		case taken:
			return chain.Status{State: chain.Conflicted, By: w.tx, Block: w.Block, Confirmations: w.Confirmations, Final: w.Final}, nil
		}
		return rest(i)
	})
}
