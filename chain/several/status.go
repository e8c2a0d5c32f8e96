package several

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Status tells that an attempt is in a block, or dead, where Agree nodes tell
// the same block and outcome; that it is final where all of those say so, with
// the fewest confirmations of theirs. What too few tell is Pending where every
// node that answered has at least heard of it, and else Unknown, which proves
// nothing. A node that cannot say what an attempt cost agrees with one that can, whose
// cost is taken. Where too few agree, and two tell of one block and contradict
// each other about what it did, that attempt alone is Unknown; who they are is logged.
func (c *client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	var answers [][]chain.Status
	var names []string
	var last error
	var out []chain.Status
	whole, torn := false, false
	for _, n := range c.usable() {
		s, err := n.Client.Status(ctx, attempts...)
		if told := c.note(ctx, n, err); err != nil {
			if told {
				return nil, err
			}
			last = named(n, err)
			continue
		}
		if len(s) != len(attempts) {
			last = named(n, chain.ErrNode)
			continue
		}
		answers, names = append(answers, s), append(names, n.Name)
		if out, whole, torn = c.judge(answers); whole {
			break
		}
	}
	if !whole && len(answers) < c.cfg.Agree {
		return nil, c.tooFew(len(answers), last)
	}
	if torn {
		c.shout("what became of a transaction", names)
	}
	return out, nil
}

// judge puts answers together. whole says that of each attempt enough nodes told
// the same, torn that of one two contradict each other.
func (c *client) judge(answers [][]chain.Status) (out []chain.Status, whole, torn bool) {
	whole = true
	for i := range answers[0] {
		var column []chain.Status
		for _, a := range answers {
			column = append(column, a[i])
		}
		s, ok := c.settled(column)
		if c.contradict(column) {
			if torn = true; !ok {
				s = chain.Status{State: chain.Unknown}
			}
		}
		out, whole = append(out, s), whole && ok
	}
	return out, whole, torn
}

// settled is what enough nodes tell of one attempt.
func (c *client) settled(column []chain.Status) (chain.Status, bool) {
	heard := true
	for _, s := range column {
		heard = heard && s.State != chain.Unknown
		votes, told := 0, s
		var finals int
		for _, o := range column {
			if s.Block.Hash != o.Block.Hash || !sameFate(s, o) || s.Cost != o.Cost && !c.silent(o) {
				continue
			}
			votes++
			told.Confirmations = min(told.Confirmations, o.Confirmations)
			if o.Final {
				finals++
			}
		}
		if votes >= c.cfg.Agree {
			told.Final = finals >= c.cfg.Agree
			return told, true
		}
	}
	if heard {
		return chain.Status{State: chain.Pending}, false
	}
	return chain.Status{State: chain.Unknown}, false
}

// contradict: two nodes tell of one block, and both cannot be right.
func (c *client) contradict(column []chain.Status) bool {
	for _, x := range column {
		for _, y := range column {
			same := sameFate(x, y) && (x.Cost == y.Cost || c.silent(x) || c.silent(y))
			if x.Block.Hash != "" && x.Block.Hash == y.Block.Hash && !same {
				return true
			}
		}
	}
	return false
}

// sameFate reports whether two statuses say the same of what a transaction did. What it cost is
// compared apart.
func sameFate(x, y chain.Status) bool {
	return x.State == y.State && x.Executed == y.Executed && x.Shortfall == y.Shortfall && x.By == y.By
}

// silent reports whether a node cannot say what a transaction cost. On Tron one may be free.
func (c *client) silent(s chain.Status) bool {
	return s.State == chain.Included && s.Cost == 0 && c.Network() != "TRX"
}
