package tron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/recall"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// The selectors of the calls that we make or sign.
var (
	selTransfer  = [4]byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	selBalanceOf = [4]byte{0x70, 0xa0, 0x82, 0x31} // balanceOf(address)
	selDecimals  = [4]byte{0x31, 0x3c, 0xe5, 0x67} // decimals()
)

// price is what Fee.Params holds. All in sun, but for Energy.
type price struct {
	Byte     int64 `json:"byte"`     // for one byte of bandwidth
	Activate int64 `json:"activate"` // to make the recipient's account, 0 where it is there
	NewBytes int64 `json:"newBytes"` // for the bandwidth of a transaction that makes an account
	Unit     int64 `json:"unit"`     // for one energy
	Energy   int64 `json:"energy"`   // that the call may take, with the margin; 0 for TRX
	Limit    int64 `json:"limit"`    // the most that a fee_limit can be
	Guess    bool  `json:"guess"`    // the energy could not be tried yet: Build must
}

// maxPrice bounds what a node may say of a price: beyond it sums could overflow.
const maxPrice = 1_000_000 * trx

// feeLimit is the fee_limit of the transaction.
func (p *price) feeLimit() int64 { return min(p.Energy, maxPrice/max(p.Unit, 1)) * p.Unit }

// most is the most that a transaction of a size can take.
func (p *price) most(size int64) int64 {
	net := size * p.Byte
	if p.Activate > 0 {
		net = max(net, p.NewBytes)
	}
	return net + p.Activate + p.feeLimit()
}

// sending is an intent in the terms of the chain.
type sending struct {
	cur      *chain.Currency
	contract account
	from, to account
	known    bool // from is known
	typical  bool // to is not
	all      bool
	amount   *big.Int // smallest units; of All what the address holds, once read
}

func (s *sending) native() bool { return s.cur.Native() }

// data is the call of a token transfer.
func (s *sending) data() []byte {
	data := make([]byte, 68)
	copy(data, selTransfer[:])
	copy(data[16:], s.to[:])
	s.amount.FillBytes(data[36:])
	return data
}

// someone stands for a recipient of tokens that is not known yet: one that holds
// none, so that the dearer case is estimated.
var someone = account{0x70, 0x79, 19: 1}

// sending checks an intent. Errors wrap ErrRejected.
func (c *Client) sending(in *chain.Intent, needFrom bool) (*sending, error) {
	reject := func(err error) (*sending, error) { return nil, fmt.Errorf("%w: %w", chain.ErrRejected, err) }
	if in.Network != c.o.Network {
		return reject(fmt.Errorf("the intent is for %s, this is %s", in.Network, c.o.Network))
	}
	if in.Memo != "" {
		return reject(fmt.Errorf("no memos are sent on %s", c.o.Network))
	}
	cur, err := c.currency(in.Currency)
	if err != nil {
		return reject(err)
	}
	s := &sending{cur: cur, to: someone, typical: in.To == "" && !needFrom, all: in.All, amount: new(big.Int)}
	if !cur.Native() {
		if s.contract, err = c.own(chain.Address(cur.Contract)); err != nil {
			return reject(err)
		}
	}
	if !s.typical {
		if s.to, err = c.own(in.To); err != nil {
			return reject(err)
		}
	}
	if in.From != "" || needFrom {
		if s.from, err = c.own(in.From); err != nil {
			return reject(fmt.Errorf("sender: %w", err))
		}
		s.known = true
	}
	if s.known && !s.typical && s.from == s.to {
		return reject(errors.New("an account cannot pay itself on Tron"))
	}
	if in.All {
		return s, nil
	}
	if in.Amount <= 0 {
		return reject(errors.New("the amount must be positive"))
	}
	exp := big.NewInt(int64(cur.Decimals) - int64(cur.Scale))
	s.amount.Mul(big.NewInt(int64(in.Amount)), exp.Exp(big.NewInt(10), exp, nil))
	if s.amount.BitLen() > 256 || cur.Native() && !s.amount.IsInt64() {
		return reject(errors.New("the amount is beyond what the chain can hold"))
	}
	return s, nil
}

// EstimateFee asks the node for its prices, for what bandwidth and energy the
// sender has for nothing, whether a recipient of TRX must be activated, and tries
// a token transfer for its energy. Cost takes what is free as free; Max does not,
// as others of the sender's transactions can use it up before. Where the sender
// is not known or does not hold enough, the energy is Options.QuoteEnergy, and
// Build tries again. The error wraps ErrTooDear above Options.MaxFee.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	s, err := c.sending(&in, false)
	if err != nil {
		return chain.Fee{}, err
	}
	if err := c.rightChain(ctx); err != nil {
		return chain.Fee{}, err
	}
	if s.all && s.known && !s.native() {
		if s.amount, err = c.holds(ctx, s.cur, s.from); err != nil {
			return chain.Fee{}, err
		}
	}
	p, err := c.price(ctx, s)
	if err != nil {
		return chain.Fee{}, err
	}
	if !s.native() {
		if err := c.energy(ctx, s, p); err != nil {
			var refused *refusedError
			if !errors.As(err, &refused) {
				return chain.Fee{}, err
			}
			p.Guess, p.Energy = true, c.o.QuoteEnergy
		}
	}
	return c.fee(ctx, s, p)
}

// fee writes a price in units of the gas currency, rounded up.
func (c *Client) fee(ctx context.Context, s *sending, p *price) (chain.Fee, error) {
	size := c.size(s)
	free, err := c.resources(ctx, s)
	if err != nil {
		return chain.Fee{}, err
	}
	cost, used := p.most(size)-p.feeLimit(), p.Energy
	if p.Activate > 0 {
		if cost = p.Activate + p.NewBytes; free.staked >= size {
			cost = p.Activate
		}
	} else if free.staked >= size || free.free >= size {
		cost = 0
	}
	if !p.Guess {
		used = p.Energy * 100 / (100 + c.o.EnergyMargin)
	}
	cost += min(p.feeLimit(), max(0, used-free.energy)*p.Unit)
	expected, err := c.cost(cost)
	if err != nil {
		return chain.Fee{}, err
	}
	most, err := c.cost(p.most(size))
	if err != nil {
		return chain.Fee{}, err
	}
	if p.most(size) > c.o.MaxFee {
		return chain.Fee{}, c.tooDear(p.most(size))
	}
	params, err := json.Marshal(p)
	return chain.Fee{Currency: c.native.Code, Cost: expected, Max: most, Params: params}, err
}

func (c *Client) tooDear(sun int64) error {
	return fmt.Errorf("%w: it may take %d sun, Options.MaxFee is %d", chain.ErrTooDear, sun, c.o.MaxFee)
}

// cost turns sun into units of the gas currency, rounded up.
func (c *Client) cost(sun int64) (ledger.Amount, error) {
	return c.native.Units(coins(big.NewInt(sun), c.native.Decimals), ledger.Up)
}

// parametersOf is the question for the chain's parameters.
type parametersOf struct{ c *Client }

// parameters are those of the chain.
func (c *Client) parameters(ctx context.Context) (map[string]int64, error) {
	var answer struct {
		Parameters []struct {
			Key   string `json:"key"`
			Value int64  `json:"value"`
		} `json:"chainParameter"`
	}
	if err := c.node.ask(ctx, "/wallet/getchainparameters", nil, &answer); err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for _, p := range answer.Parameters {
		found[p.Key] = p.Value
	}
	return found, nil
}

// price reads the chain's parameters and whether the recipient must be activated.
func (c *Client) price(ctx context.Context, s *sending) (*price, error) {
	found, err := recall.Of(ctx, parametersOf{c}, func() (map[string]int64, error) { return c.parameters(ctx) })
	if err != nil {
		return nil, err
	}
	p := &price{}
	var create int64
	for key, to := range map[string]*int64{
		"getTransactionFee": &p.Byte, "getEnergyFee": &p.Unit, "getMaxFeeLimit": &p.Limit,
		"getCreateAccountFee": &p.NewBytes, "getCreateNewAccountFeeInSystemContract": &create,
	} {
		v, ok := found[key]
		if !ok || v < 0 || v > maxPrice {
			return nil, fmt.Errorf("%w: its chain parameter %s is missing or absurd", chain.ErrNode, key)
		}
		*to = v
	}
	if p.Byte > maxPrice/1000 || p.Byte == 0 || p.Unit == 0 {
		return nil, fmt.Errorf("%w: its prices of bandwidth and energy are absurd", chain.ErrNode)
	}
	if s.native() && !s.typical {
		h, err := c.account(ctx, s.to)
		if err != nil {
			return nil, err
		}
		if !h.exists {
			p.Activate = create
		}
	}
	return p, nil
}

// energy tries the transfer and adds the margin. What the contract refuses is a
// *refusedError.
func (c *Client) energy(ctx context.Context, s *sending, p *price) error {
	if !s.known {
		return &refusedError{"the sender is not known yet"}
	}
	t, err := c.try(ctx, s.from, s.contract, s.data())
	if err != nil {
		return err
	}
	if t.EnergyUsed == 0 {
		return fmt.Errorf("%w: a transfer that takes no energy", chain.ErrNode)
	}
	used := min(t.EnergyUsed, maxPrice)
	p.Energy, p.Guess = used+used*c.o.EnergyMargin/100, false
	if p.feeLimit() > p.Limit {
		return fmt.Errorf("%w: %d energy cost more than the network allows one transaction", chain.ErrTooDear, p.Energy)
	}
	return nil
}

// resources is what an account has for nothing now.
type resources struct{ free, staked, energy int64 }

func (c *Client) resources(ctx context.Context, s *sending) (resources, error) {
	if !s.known {
		return resources{}, nil
	}
	var r struct {
		FreeLimit   int64 `json:"freeNetLimit"`
		FreeUsed    int64 `json:"freeNetUsed"`
		NetLimit    int64 `json:"NetLimit"`
		NetUsed     int64 `json:"NetUsed"`
		EnergyLimit int64 `json:"EnergyLimit"`
		EnergyUsed  int64 `json:"EnergyUsed"`
	}
	if err := c.node.ask(ctx, "/wallet/getaccountresource", map[string]any{"address": s.from.hex(), "visible": false}, &r); err != nil {
		return resources{}, err
	}
	left := func(limit, used int64) int64 { return max(0, min(limit, maxPrice)-max(0, used)) }
	return resources{left(r.FreeLimit, r.FreeUsed), left(r.NetLimit, r.NetUsed), left(r.EnergyLimit, r.EnergyUsed)}, nil
}
