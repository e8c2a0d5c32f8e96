package solana

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// payment is a message of ours, read back.
type payment struct {
	*message_
	priority int64 // lamports
	height   int64 // of the block whose hash it carries
	memo     string
	cur      *chain.Currency
	program  key // of a token
	from, to key
	amount   uint64
	closes   bool
	used     map[byte]bool
}

// Inspect tells what a payload does, from its bytes and the Registry alone: a plain
// transfer of SOL or of a registered token, in the one shape that Build gives it.
// Whatever else it might do is refused with ErrRejected. Amounts are rounded down to
// ledger units. MaxCost holds the rent of the account that a recipient of tokens may
// not have yet.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	p, err := c.readPayment(payload)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("%w: %w", chain.ErrRejected, err)
	}
	units, err := p.cur.Units(whole(p.amount, p.cur.Decimals), ledger.Down)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("%w: its amount: %w", chain.ErrRejected, err)
	}
	most := c.network(p.signers, p.priority)
	if !p.cur.Native() {
		most += rent(p.program)
	}
	cost, err := c.cost(most)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("%w: its cost: %w", chain.ErrRejected, err)
	}
	u := chain.Unsigned{
		Network: c.o.Network, Payload: payload, Spends: []string{spend(payload)}, Memo: p.memo, MaxCost: cost,
		Outputs: []chain.Output{{To: p.to.text(), Currency: p.cur.Code, Amount: units}},
	}
	for _, k := range p.keys[:p.signers] {
		u.Digests = append(u.Digests, chain.Digest{Hash: sha256.Sum256(payload), From: k.text(), Whole: true})
	}
	return u, nil
}

// readPayment reads a message in the shape that Build gives it.
func (c *Client) readPayment(payload []byte) (*payment, error) {
	m, err := readMessage(payload)
	if err != nil {
		return nil, err
	}
	p := &payment{message_: m, used: map[byte]bool{}}
	if m.version == 0 || m.signers > 2 || m.readSigned > m.signers-1 {
		return nil, errNotPlain
	}
	rest, err := p.budget(m.calls)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 && p.is(&rest[0], systemProgram) || len(rest) > 1 && p.is(&rest[0], memoProgram) {
		err = p.coins(c, rest)
	} else {
		err = p.tokens(c, rest)
	}
	if err != nil {
		return nil, err
	}
	signs := m.keys[0] == p.from || m.signers == 2 && m.keys[1] == p.from
	if !signs || m.signers == 2 && m.keys[0] == p.from || len(p.used) != len(m.keys) || p.amount == 0 || p.from == p.to {
		return nil, errNotPlain
	}
	p.used = nil
	return p, nil
}

// is reports whether an instruction is a program's, and notes that its key has a use.
func (p *payment) is(x *call, program key) bool {
	if p.keys[x.program] != program {
		return false
	}
	p.used[byte(x.program)] = true
	return true
}

// at is the account that an instruction has in a place.
func (p *payment) at(x *call, i int) key {
	p.used[x.accounts[i]] = true
	return p.keys[x.accounts[i]]
}

// budget reads what the transaction asks for: in instructions, or of version 1 in its
// settings. It returns the instructions that are left.
func (p *payment) budget(calls []call) ([]call, error) {
	p.used[0] = true // who pays
	if p.version == 1 {
		sum, units, until, ok := p.config.ours()
		if !ok || units > mostUnits || sum > uint64(priority(mostUnits, maxPrice)) || until < deadline {
			return nil, errNotPlain
		}
		p.priority, p.height = int64(sum), int64(until-deadline)
		return calls, nil
	}
	if len(calls) < 4 {
		return nil, errNotPlain
	}
	for i, size := range []int{5, 9, 5} {
		x := &calls[i]
		if !p.is(x, budgetProgram) || len(x.accounts) != 0 || len(x.data) != size || x.data[0] != byte(budgetUnits+i) {
			return nil, errNotPlain
		}
	}
	units, until := binary.LittleEndian.Uint32(calls[0].data[1:]), binary.LittleEndian.Uint32(calls[2].data[1:])
	unit := binary.LittleEndian.Uint64(calls[1].data[1:])
	if units > mostUnits || unit > maxPrice || until < deadline {
		return nil, errNotPlain
	}
	p.priority, p.height = priority(units, int64(unit)), int64(until-deadline)
	return calls[3:], nil
}

// mostUnits is how many compute units the network gives one transaction.
const mostUnits = 1_400_000

// note reads a memo, if that is what comes next.
func (p *payment) note(rest []call) ([]call, error) {
	if len(rest) == 0 || p.keys[rest[0].program] != memoProgram {
		return rest, nil
	}
	x := &rest[0]
	if !p.is(x, memoProgram) || len(x.accounts) != 0 || len(x.data) == 0 || !utf8.Valid(x.data) {
		return nil, errNotPlain
	}
	p.memo = string(x.data)
	return rest[1:], nil
}

func (p *payment) coins(c *Client, rest []call) error {
	rest, err := p.note(rest)
	if err != nil || len(rest) != 1 {
		return errNotPlain
	}
	x := &rest[0]
	if !p.is(x, systemProgram) || len(x.accounts) != 2 || len(x.data) != 12 || binary.LittleEndian.Uint32(x.data) != sysTransfer {
		return errNotPlain
	}
	p.cur, p.from, p.to, p.amount = c.native, p.at(x, 0), p.at(x, 1), binary.LittleEndian.Uint64(x.data[4:])
	return nil
}

// tokens reads: the recipient's account made where it is missing, a memo or none, the
// transfer, and for a sweep that somebody else pays, the sender's account closed.
func (p *payment) tokens(c *Client, rest []call) error {
	if len(rest) < 2 {
		return errNotPlain
	}
	open := &rest[0]
	if !p.is(open, ataProgram) || len(open.accounts) != 6 || len(open.data) != 1 || open.data[0] != ataCreateIdempotent {
		return errNotPlain
	}
	payer, target, owner, mint := p.at(open, 0), p.at(open, 1), p.at(open, 2), p.at(open, 3)
	p.program = p.at(open, 5)
	t := c.tokens[mint]
	if t == nil || payer != p.keys[0] || p.at(open, 4) != systemProgram || p.program != tokenProgram && p.program != token2022 ||
		t.program() != (key{}) && t.program() != p.program || target != associated(owner, p.program, mint) {
		return errNotPlain
	}
	rest, err := p.note(rest[1:])
	if err != nil || len(rest) == 0 || len(rest) > 2 {
		return errNotPlain
	}
	x := &rest[0]
	if !p.is(x, p.program) || len(x.accounts) != 4 || len(x.data) != 10 || x.data[0] != tokTransferChecked || x.data[9] != t.Decimals {
		return errNotPlain
	}
	source := p.at(x, 0)
	p.cur, p.from, p.to, p.amount = t.Currency, p.at(x, 3), owner, binary.LittleEndian.Uint64(x.data[1:])
	if p.at(x, 1) != mint || p.at(x, 2) != target || source != associated(p.from, p.program, mint) {
		return errNotPlain
	}
	if len(rest) == 1 {
		return nil
	}
	x = &rest[1]
	p.closes = true
	if !p.is(x, p.program) || len(x.accounts) != 3 || len(x.data) != 1 || x.data[0] != tokClose ||
		p.at(x, 0) != source || p.at(x, 1) != payer || p.at(x, 2) != p.from || payer == p.from {
		return errNotPlain
	}
	return nil
}
