package trontest

import "math/big"

// Pay is one movement of somebody outside.
type Pay struct {
	To     Account
	Amount *big.Int // smallest units
	// Contract of the token; zero for TRX.
	Contract Account
}

// The ways in which a payment can come out otherwise.
const (
	Plain         = ""
	Reverted      = "reverted"
	Strange       = "strange" // ends with a result of a name that is not known
	ReturnsFalse  = "returns_false"
	InnerReverted = "inner_reverted"
	Internal      = "internal"
	Asset         = "asset" // a TRC-10 token
)

// Send puts a transaction of the outside customer with these payments into the
// pool and returns its id.
func (n *Node) Send(effect string, pays ...Pay) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counter++
	p, far := pays[0], n.head().millis+12*3600*1000
	trigger := func(contract Account, data []byte, run func(*state) receipt) string {
		value := join(field(1, n.Payer.full()), field(2, contract.full()), field(4, data))
		return n.add(&tx{raw: rawOf(31, value, far, n.counter), expiration: far, run: run})
	}
	token := p.Contract != Account{}
	switch {
	case effect == Asset:
		value := join(field(1, []byte("1000001")), field(2, n.Payer.full()), field(3, p.To.full()), num(4, p.Amount.Int64()))
		return n.add(&tx{raw: rawOf(2, value, far, n.counter), expiration: far, run: func(*state) receipt { return receipt{} }})
	case effect == Internal || effect == InnerReverted:
		return trigger(n.Batcher, []byte("pay!"), func(s *state) receipt {
			r := receipt{ret: "SUCCESS", energy: 1000, inner: []inner{{n.Batcher, p.To, p.Amount.Int64(), effect == InnerReverted}}}
			if effect == Internal {
				s.sun[p.To] += p.Amount.Int64()
			}
			return r
		})
	case len(pays) > 1:
		return trigger(n.Batcher, []byte("many"), func(s *state) receipt {
			r := receipt{ret: "SUCCESS", energy: 1000}
			for _, x := range pays {
				s.moveToken(x.Contract, n.Payer, x.To, x.Amount)
				r.logs = append(r.logs, transferLog(x.Contract, n.Payer, x.To, x.Amount))
				r.inner = append(r.inner, inner{n.Batcher, x.Contract, 0, false})
			}
			return r
		})
	case token:
		return trigger(p.Contract, transferData(p.To, p.Amount), func(s *state) receipt {
			switch effect {
			case Reverted, Strange: // the log is there to tempt
				return receipt{ret: result(effect), failed: true, energy: 1000, logs: []logEntry{transferLog(p.Contract, n.Payer, p.To, p.Amount)}}
			case ReturnsFalse:
				return receipt{ret: "SUCCESS", energy: 1000, returned: word(nil)}
			}
			return n.call(s, n.Payer, p.Contract, p.To, p.Amount, 300, MaxFeeLimit)
		})
	}
	value := join(field(1, n.Payer.full()), field(2, p.To.full()), num(3, p.Amount.Int64()))
	return n.add(&tx{raw: rawOf(1, value, far, n.counter), expiration: far, run: func(s *state) receipt {
		if effect != Plain {
			return receipt{ret: result(effect), failed: true}
		}
		return n.transfer(s, n.Payer, p.To, p.Amount.Int64(), 268)
	}})
}

func result(effect string) string {
	if effect == Strange {
		return "HALF_DONE"
	}
	return "REVERT"
}

// Drain takes the tokens of an address away, in the head's own state: as if
// something else had happened before the next block.
func (n *Node) Drain(a, contract Account) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.head().after.tokens[contract], a)
}

// Strange puts bytes into the pool that are somehow a transaction which does
// nothing.
func (n *Node) Strange(raw []byte) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.add(&tx{raw: raw, expiration: n.head().millis + 12*3600*1000, run: func(*state) receipt { return receipt{} }})
}
