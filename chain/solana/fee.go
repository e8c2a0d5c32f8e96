package solana

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// price is what Fee.Params holds.
type price struct {
	Unit int64 `json:"unit"` // for one compute unit, in millionths of a lamport
}

// Compute units that a transaction asks for: well above what its instructions were
// seen to take.
const (
	unitsCoins = 1_000
	unitsToken = 110_000 // with the recipient's token account being made
	unitsClose = 10_000
	unitsMemo  = 40_000
	unitsByte  = 500 // of a memo
	salts      = 4096
)

// Rent, which an account must hold for ever: what the network has asked since its
// beginning. Where it comes to ask less, this is merely more careful.
const (
	rentByte     = 6960
	rentHead     = 128
	ataSize      = 165
	ata2022Size  = 170 // with the extension that keeps its owner
	leastBalance = rentHead * rentByte
)

func rent(program key) int64 {
	if program == token2022 {
		return (rentHead + ata2022Size) * rentByte
	}
	return (rentHead + ataSize) * rentByte
}

// sending is an intent in the terms of the chain.
type sending struct {
	cur             *chain.Currency
	token           *token // nil = lamports
	from, to, payer key
	known           bool // from is known
	typical         bool // to is not
	all             bool
	memo            string
	amount          uint64 // smallest units; of All what the address holds, once read
	salt            uint32
	version1        bool // the form of the transaction
}

func (s *sending) sponsored() bool { return s.payer != s.from }

// source and target are the token accounts.
func (s *sending) source() key { return associated(s.from, s.token.program(), s.token.mint) }
func (s *sending) target() key { return associated(s.to, s.token.program(), s.token.mint) }

// units that the transaction asks for.
func (s *sending) units() uint32 {
	n := uint32(unitsCoins)
	if s.token != nil {
		n = unitsToken
		if s.closes() {
			n += unitsClose
		}
	}
	if s.memo != "" {
		n += unitsMemo + unitsByte*uint32(len(s.memo))
	}
	return n + s.salt
}

// closes says that the sender's token account is given up, and its rent goes to who
// pays the network: a sweep that leaves nothing.
func (s *sending) closes() bool { return s.token != nil && s.all && s.sponsored() }

// Sponsored reports whether another can pay for an intent: a sweep of tokens, so that
// no coins need be sent to the address that it empties.
func (c *Client) Sponsored(in chain.Intent) bool {
	cur, err := c.currency(in.Currency)
	return err == nil && !cur.Native() && in.Purpose == chain.ForSweep
}

const longestMemo = 400 // bytes; the whole transaction has room for 1232

// sending checks an intent. Errors wrap ErrRejected.
func (c *Client) sending(in *chain.Intent, needFrom bool) (*sending, error) {
	reject := func(err error) (*sending, error) { return nil, fmt.Errorf("%w: %w", chain.ErrRejected, err) }
	if in.Network != c.o.Network {
		return reject(fmt.Errorf("the intent is for %s, this is %s", in.Network, c.o.Network))
	}
	if len(in.Memo) > longestMemo {
		return reject(fmt.Errorf("a memo on %s has at most %d bytes", c.o.Network, longestMemo))
	}
	cur, err := c.currency(in.Currency)
	if err != nil {
		return reject(err)
	}
	s := &sending{cur: cur, token: c.tokenOf(cur), typical: in.To == "" && !needFrom, all: in.All, memo: in.Memo}
	if !s.typical {
		if s.to, err = c.anyKey(in.To); err != nil {
			return reject(err)
		}
	}
	if in.From != "" || needFrom {
		if s.from, err = c.own(in.From); err != nil {
			return reject(fmt.Errorf("sender: %w", err))
		}
		s.known = true
	}
	s.payer = s.from
	if in.Payer != "" {
		if s.payer, err = c.own(in.Payer); err != nil {
			return reject(fmt.Errorf("who pays the network: %w", err))
		}
	}
	if s.known && !s.typical && s.from == s.to {
		return reject(errors.New("paying oneself moves nothing"))
	}
	if in.All {
		return s, nil
	}
	if in.Amount <= 0 {
		return reject(errors.New("the amount must be positive"))
	}
	exp := big.NewInt(int64(cur.Decimals) - int64(cur.Scale))
	amount := new(big.Int).Mul(big.NewInt(int64(in.Amount)), exp.Exp(big.NewInt(10), exp, nil))
	if !amount.IsUint64() {
		return reject(errors.New("the amount is beyond what the chain can hold"))
	}
	s.amount = amount.Uint64()
	return s, nil
}

// network is what the network takes for signatures and for priority, in lamports.
func (c *Client) network(signers int, priority int64) int64 {
	return int64(signers)*c.o.SignatureFee + priority
}

// priority is what the compute units cost, in lamports.
func priority(units uint32, unit int64) int64 {
	const millionth = 1_000_000
	return (int64(units)*unit + millionth - 1) / millionth
}

func (s *sending) signers() int {
	if s.sponsored() {
		return 2
	}
	return 1
}

// EstimateFee asks the node what others pay for compute units, takes the upper
// quartile of it within Options.MinPrice and MaxPrice, and adds the price of the
// signatures. Tokens may have to open an account for the recipient: Max holds its rent,
// Cost where it is not there yet. The error wraps ErrTooDear above Options.MaxFee.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	s, err := c.sending(&in, false)
	if err != nil {
		return chain.Fee{}, err
	}
	if err := c.ready(ctx); err != nil {
		return chain.Fee{}, err
	}
	unit, err := c.unitPrice(ctx, s)
	if err != nil {
		return chain.Fee{}, err
	}
	s.salt = salts
	most := c.network(s.signers(), priority(s.units(), unit))
	cost := most
	if s.token != nil {
		most += rent(s.token.program())
		missing := s.typical
		if !missing {
			there, err := c.accounts(ctx, confirmed, s.target())
			if err != nil {
				return chain.Fee{}, err
			}
			missing = !there[0].exists()
		}
		if missing {
			cost = most
		}
	}
	if most > c.o.MaxFee {
		return chain.Fee{}, c.tooDear(most)
	}
	expected, err := c.cost(cost)
	if err != nil {
		return chain.Fee{}, err
	}
	highest, err := c.cost(most)
	if err != nil {
		return chain.Fee{}, err
	}
	params, err := json.Marshal(price{unit})
	return chain.Fee{Currency: c.native.Code, Cost: expected, Max: highest, Params: params}, err
}

func (c *Client) tooDear(lamports int64) error {
	return fmt.Errorf("%w: it may take %d lamports, Options.MaxFee is %d", chain.ErrTooDear, lamports, c.o.MaxFee)
}

// cost turns lamports into units of the gas currency, rounded up.
func (c *Client) cost(lamports int64) (ledger.Amount, error) {
	d := whole(uint64(max(lamports, -lamports)), c.native.Decimals)
	if lamports < 0 {
		a, err := c.native.Units(d, ledger.Down)
		return -a, err
	}
	return c.native.Units(d, ledger.Up)
}

// unitPrice is the upper quartile of what was paid lately where the same accounts
// were written to.
func (c *Client) unitPrice(ctx context.Context, s *sending) (int64, error) {
	var writes []chain.Address
	if s.known {
		writes = append(writes, s.from.text())
	}
	if !s.typical {
		writes = append(writes, s.to.text())
	}
	if writes == nil {
		writes = []chain.Address{}
	}
	var answer []struct {
		Fee uint64 `json:"prioritizationFee"` // somebody else's price, of any height
	}
	if err := c.node.ask(ctx, &answer, "getRecentPrioritizationFees", writes); err != nil {
		return 0, err
	}
	var all []int64
	for _, a := range answer {
		all = append(all, int64(min(a.Fee, uint64(c.o.MaxPrice))))
	}
	slices.Sort(all)
	unit := c.o.MinPrice
	if len(all) > 0 {
		unit = max(unit, all[len(all)*3/4])
	}
	return unit, nil
}

// saltOf is what keeps two orders of the same payment from being the same bytes, of
// which the network would take one.
func saltOf(o *chain.Order) uint32 {
	who := sha256.Sum256(fmt.Appendf(nil, "%q/%d/%d", o.Intent.ID, o.Attempt, o.Nonce))
	return binary.BigEndian.Uint32(who[:]) % salts
}
