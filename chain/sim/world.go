package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Effect says how a payment of an outside customer ends.
type Effect string

// The effects. All but Plain exist on account networks alone.
const (
	// Plain moves what it says.
	Plain Effect = ""
	// Reverted makes the whole transaction fail in its block. The fee is taken.
	Reverted Effect = "reverted"
	// ReturnsFalse succeeds, moves nothing and logs nothing: a token's transfer
	// that returned false.
	ReturnsFalse Effect = "returns_false"
	// InnerReverted succeeds, but the inner call that pays failed.
	InnerReverted Effect = "inner_reverted"
	// Internal pays by a call inside a contract's transaction. It is not seen in
	// the mempool, and not by a node without traces.
	Internal Effect = "internal"
)

// Payment is one movement that an outside customer orders.
type Payment struct {
	To       chain.Address
	Currency string // code; "" with no Contract is the native coin
	Contract string // in the place of Currency: any contract, registered or not
	Amount   decimal.Decimal
	Effect   Effect
}

// Tx is a transaction of an outside customer, who always has the coins.
type Tx struct {
	// From names the customer, the same name the same address. Defaults to
	// somebody new.
	From     string
	Payments []Payment
	// Spends are outputs of From's that it spends, "txid:n", where coins are outputs. What is
	// left goes back. Defaults to coins that came from nowhere.
	Spends []string
	Memo   string
	// Fee is the price per gas or byte, see SetFeeLevel. Defaults to what is
	// mined at the present level, or what Replaces needs.
	Fee int64
	// Replaces is the hash of an earlier one of the same customer: it takes the
	// same nonce or inputs, and its place in the mempool if it pays enough.
	Replaces string
	// Immature makes it a coinbase: in a block at once, by itself, and with so
	// many confirmations needed at least.
	Immature int64
}

// Behaviour is how a token contract treats its holders. The zero value is an
// honest token; whether it returns a value makes no difference here.
type Behaviour struct {
	FeeBasisPoints int64           // taken from what is delivered
	Paused         bool            // every transfer reverts
	ReturnsFalse   bool            // transfers do nothing, and succeed
	Blocked        []chain.Address // transfers from and to these revert
	Overstates     int64           // transfers log so many times what they move; 0 = what they move
}

// SetBehaviour changes a contract from now on, registered or not.
func (c *Chain) SetBehaviour(contract string, b Behaviour) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.Blocked = slices.Clone(b.Blocked)
	if asset, err := c.asset("", contract); err == nil {
		c.contracts[asset] = b
	}
}

// Rebase takes a share of what every holder has of a token away, in 10^-4, in a block of
// its own, as an issuer can who changes the unit that balances are counted in. Below 0 it
// gives.
func (c *Chain) Rebase(contract string, basisPoints int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asset, err := c.asset("", contract)
	if err != nil || asset == "" {
		return
	}
	parent := c.head()
	b := &block{Height: parent.Height + 1, Parent: parent.Hash, Time: c.timeAfter(parent)}
	s := newStep(func(k string) string { return c.kv[k] })
	prefix := balanceKey(asset, "")
	for k, v := range c.kv {
		if holder, ok := strings.CutPrefix(k, prefix); ok {
			d := amountOf(v).Mul(decimal.New(basisPoints, -4)).Truncate(c.decimals(asset))
			if d.IsNegative() {
				s.mint(asset, chain.Address(holder), d.Neg())
			} else {
				s.burn(asset, chain.Address(holder), d)
			}
		}
	}
	b.Hash = digestHex("rebase", b.Parent, strconv.FormatUint(c.next(), 10))
	c.push(b, s)
	c.sweepPool()
}

// LookAlike is the contract of a worthless token that calls itself like a
// registered currency.
func (c *Chain) LookAlike(currency string) string {
	return "lookalike" + digestHex("lookalike", string(c.opt.Network), currency)[:bodyDigits]
}

// Customer is the address of a named customer.
func (c *Chain) Customer(name string) chain.Address {
	return c.opt.addressOf("customer/" + name)
}

// Pay sends a payment of somebody new to the mempool and returns the
// transaction's hash.
func (c *Chain) Pay(to chain.Address, currency string, amount decimal.Decimal) (string, error) {
	return c.Send(Tx{Payments: []Payment{{To: to, Currency: currency, Amount: amount}}})
}

// Send sends a customer's transaction to the mempool and returns its hash.
// Errors: ErrUnderpriced, ErrNonceTooLow and ErrSpent for a replacement that is
// not accepted, a *chain.AddressError, or what is wrong with the amount.
func (c *Chain) Send(s Tx) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.outside(s)
	if err != nil {
		return "", err
	}
	if s.Immature > 0 {
		c.remember(t)
		c.mine([]*tx{t})
		return t.Hash, nil
	}
	if err := c.admit(t, false); err != nil {
		return "", err
	}
	c.remember(t)
	return t.Hash, nil
}

// Fund brings coins to an address in a block of their own and returns the
// transaction's hash.
func (c *Chain) Fund(to chain.Address, currency string, amount decimal.Decimal) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.outside(Tx{Payments: []Payment{{To: to, Currency: currency, Amount: amount}}})
	if err != nil {
		return "", err
	}
	c.remember(t)
	c.mine([]*tx{t})
	return t.Hash, nil
}

func (c *Chain) remember(t *tx) {
	if c.txs[t.Hash] == nil {
		c.txs[t.Hash], c.made = t, append(c.made, t.Hash)
	}
}

// outside builds a customer's transaction.
func (c *Chain) outside(s Tx) (*tx, error) {
	b := body{Network: c.opt.Network, Chain: c.genesis, Memo: s.Memo, Immature: s.Immature}
	if len(s.Payments) == 0 {
		return nil, errors.New("sim: a transaction needs a payment")
	}
	for _, p := range s.Payments {
		o, err := c.payment(p)
		if err != nil {
			return nil, err
		}
		if account, memo, tagged := c.untag(o.To); tagged { // a transaction has one memo
			if b.Memo != "" && b.Memo != memo {
				return nil, errors.New("sim: the address carries another memo than the transaction")
			}
			o.To, b.Memo = account, memo
		}
		b.Outputs, b.Gas = append(b.Outputs, o), b.Gas+gasOf(o.Asset)
	}
	number := c.next()
	if s.From == "" {
		s.From = "stranger " + strconv.FormatUint(number, 10)
	}
	if err := c.source(&b, s, number); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(envelope{Body: payload, Outside: number})
	if err != nil {
		return nil, err
	}
	return newTx(raw, number)
}

func (c *Chain) payment(p Payment) (output, error) {
	asset, err := c.asset(p.Currency, p.Contract)
	if err != nil {
		return output{}, err
	}
	to, err := c.opt.Addresses.Parse(string(p.To))
	switch {
	case err != nil:
		return output{}, err
	case c.utxo() && (asset != "" || p.Effect != Plain):
		return output{}, errors.New("sim: a UTXO network has its native coin alone, and nothing fails on it")
	case p.Amount.IsNegative() || !p.Amount.Equal(p.Amount.Truncate(c.decimals(asset))):
		return output{}, fmt.Errorf("sim: an amount of this asset is ≥ 0 and has at most %d decimals", c.decimals(asset))
	}
	return output{To: to, Asset: asset, Amount: text(p.Amount), Effect: p.Effect}, nil
}

// source fills in where a customer's coins come from and what he pays for them.
func (c *Chain) source(b *body, s Tx, number uint64) error {
	from, fee := c.Customer(s.From), s.Fee
	var old *tx
	if s.Replaces != "" {
		if old = c.txs[s.Replaces]; old == nil || !old.outside {
			return fmt.Errorf("%w: %s is none of a customer", ErrUnknownTx, s.Replaces)
		}
		from = old.body.sender()
	}
	if c.utxo() {
		in := input{Outpoint: fmt.Sprintf("%s:0", digestHex("outside", string(from), fmt.Sprint(number))), Address: from}
		if old != nil {
			in.Outpoint = old.body.Inputs[0].Outpoint
		}
		if len(s.Spends) > 0 {
			return c.spendsOwn(b, s, from)
		}
		switch {
		case fee == 0 && old != nil:
			fee = max(c.level, raise(c.price(&old.body)+1, 2))
		case fee == 0:
			fee = c.level
		}
		b.Gas, b.Inputs = 0, []input{in}
		b.Inputs[0].Amount = text(b.outputSum().Add(c.cost(bytesOf(b), fee)))
		return nil
	}
	b.From, b.Nonce = from, c.pendingNonce(from)
	b.Max, b.Tip = fee, fee
	if fee == 0 {
		b.Max, b.Tip = 2*c.level+defaultGasTip, defaultGasTip
	}
	if old != nil {
		b.Nonce = old.body.Nonce
		if s.Fee == 0 {
			b.Max, b.Tip = max(b.Max, raise(old.body.Max, 2)), raise(old.body.Tip, 2)
		}
	}
	return nil
}

// spendsOwn has a customer's transaction spend outputs that it has.
func (c *Chain) spendsOwn(b *body, s Tx, from chain.Address) error {
	for _, o := range s.Spends {
		owner, amount, _ := strings.Cut(c.kv["u/"+o], " ")
		if chain.Address(owner) != from {
			return fmt.Errorf("sim: %s is no unspent output of %s", o, from)
		}
		b.Inputs = append(b.Inputs, input{Outpoint: o, Address: from, Amount: amount})
	}
	b.Outputs = append(b.Outputs, output{To: from, Amount: "0"})
	rest := b.inputSum().Sub(b.outputSum()).Sub(c.cost(bytesOf(b), max(s.Fee, c.level)))
	if !rest.IsPositive() {
		return errors.New("sim: what is spent does not cover the payments and the fee")
	}
	b.Outputs[len(b.Outputs)-1].Amount = text(rest)
	return nil
}

// pendingNonce is the first nonce that neither a block nor the mempool has.
func (c *Chain) pendingNonce(a chain.Address) uint64 {
	n := nonceOf(c.kv["n/"+string(a)])
	for c.pool.spends[fmt.Sprintf("%s/%d", a, n)] != "" {
		n++
	}
	return n
}
