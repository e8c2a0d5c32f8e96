package cardano

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/btcsuite/btcd/address/v2/bech32"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// params are what the network asks, in lovelace: protocol parameters, which change
// by vote.
type params struct {
	PerByte   int64 // minFeeA, of a transaction
	Fixed     int64 // minFeeB
	MaxSize   int64 // maxTxSize, bytes
	PerOutput int64 // coinsPerUTxOByte
}

// maxLovelace is all there will ever be: 45·10^9 ada.
const maxLovelace = 45_000_000_000 * 1_000_000

// sane keeps sums from overflowing.
func (p params) sane() bool {
	for _, v := range []int64{p.PerByte, p.Fixed, p.MaxSize, p.PerOutput} {
		if v < 0 || v > 1<<31 { // so no product of two of them and a size overflows
			return false
		}
	}
	return p.PerByte > 0 && p.MaxSize > 0 && p.PerOutput > 0
}

// errLong says that a transaction has too many bytes.
var errLong = errors.New("cardano: the transaction is too long")

var errParams = errors.New("cardano: protocol parameters are missing or absurd")

// Fee is what the network asks for a transaction of so many bytes:
// minFeeA · size + minFeeB. Scripts cost more, and are not used here.
func (p params) Fee(size int64) (int64, error) {
	switch {
	case !p.sane():
		return 0, errParams
	case size <= 0 || size > p.MaxSize:
		return 0, fmt.Errorf("%w: %d bytes, at most %d are allowed", errLong, size, p.MaxSize)
	}
	hi, lo := bits.Mul64(uint64(p.PerByte), uint64(size)) //nolint:gosec // both positive
	if hi != 0 || lo > maxLovelace {
		return 0, errParams
	}
	return int64(lo) + p.Fixed, nil //nolint:gosec // checked
}

// overhead of an entry in the ledger's set of outputs, in bytes.
const overhead = 160

// least is the least ada that an output must hold, whose own ada does not count: exactly what
// the ledger asks of its bytes.
func (p params) least(o *pay) (int64, error) {
	if !p.sane() {
		return 0, errParams
	}
	try := *o
	try.coin = 0
	for range 4 { // more ada is more bytes
		size, err := try.size()
		if err != nil {
			return 0, err
		}
		need := p.PerOutput * (overhead + size)
		if int64(try.coin) >= need { //nolint:gosec // what was computed here
			break
		}
		try.coin = uint64(need) //nolint:gosec // positive
	}
	return int64(try.coin), nil //nolint:gosec // small
}

// fee is what a transaction of ours costs, signed.
func (p params) fee(d *draft) (int64, error) {
	size, err := d.size()
	if err != nil {
		return 0, err
	}
	return p.Fee(size)
}

// feeParams are Fee.Params.
type feeParams struct {
	PerByte   int64 `json:"per_byte"`
	Fixed     int64 `json:"fixed"`
	MaxSize   int64 `json:"max_size"`
	PerOutput int64 `json:"per_output"`
}

func parseParams(raw []byte) (params, error) {
	var p feeParams
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() || !params(p).sane() {
		return params{}, rejected("Fee.Params are not those of EstimateFee")
	}
	return params(p), nil
}

// EstimateFee is what a payment from one output of ours with change costs now. A transaction of
// more inputs costs more: Build says how much. Max leaves room for change that is too small
// to be an output. ErrTooDear where that is above Options.MaxFee.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	p, err := c.node.parameters(ctx)
	if err != nil {
		return chain.Fee{}, err
	}
	own := c.own()
	to := own
	if in.To != "" {
		if to, err = bytesOf(in.To); err != nil {
			return chain.Fee{}, err
		}
	}
	aux, err := writeMemo(in.Memo)
	if err != nil {
		return chain.Fee{}, rejected("%v", err)
	}
	d := draft{
		from: []source{{address: own, key: make([]byte, 32)}}, fee: maxLovelace, ttl: maxLovelace, auxiliary: aux,
		pays: []pay{{address: to, coin: maxLovelace}, {address: own, coin: maxLovelace}},
	}
	cost, err := p.fee(&d)
	if err != nil {
		return chain.Fee{}, err
	}
	least, err := p.least(&pay{address: own})
	if err != nil {
		return chain.Fee{}, err
	}
	if cost+least > c.o.MaxFee {
		return chain.Fee{}, fmt.Errorf("%w: %d lovelace, and %d for change, Options.MaxFee is %d", chain.ErrTooDear, cost, least, c.o.MaxFee)
	}
	f := chain.Fee{Currency: c.native.Code, Cost: ledger.Amount(cost), Max: ledger.Amount(cost + least)}
	f.Params, err = json.Marshal(feeParams(p))
	return f, err
}

// own is an address of the form of ours.
func (c *Client) own() []byte {
	if c.stake == nil {
		return append([]byte{headerEnterprise}, make([]byte, 28)...)
	}
	return append(append([]byte{headerBase}, make([]byte, 28)...), c.stake...)
}

// CoinCosts is what Build would charge for an order, part by part, so that coins can be
// chosen by what they bring: without coins and change, for change, the least that change can
// be, and for each of Order.Coins. Together they are never below what Build charges.
func (c *Client) CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error) {
	p, err := parseParams(o.Fee.Params)
	if err != nil {
		return 0, 0, 0, nil, err
	}
	d, back, err := c.outputs(&o)
	if err != nil {
		return 0, 0, 0, nil, err
	}
	for i := range d.pays {
		d.pays[i].coin = maxLovelace
	}
	d.fee, d.ttl = maxLovelace, maxLovelace
	size, err := d.size()
	if err != nil {
		return 0, 0, 0, nil, err
	}
	const lengths = 3 * 2 // of the lists of inputs, outputs and witnesses, where they are long
	fee, err := p.Fee(size + lengths)
	if err != nil {
		return 0, 0, 0, nil, rejected("%v", err)
	}
	extra := pay{address: back, coin: maxLovelace}
	if size, err = extra.size(); err != nil {
		return 0, 0, 0, nil, err
	}
	small, err := p.least(&pay{address: back})
	if err != nil {
		return 0, 0, 0, nil, err
	}
	const input, witness = 1 + 34 + 3, 1 + 34 + 66
	for range o.Coins {
		coins = append(coins, ledger.Amount(p.PerByte*(input+witness)))
	}
	return ledger.Amount(fee), ledger.Amount(p.PerByte * size), ledger.Amount(small), coins, nil
}

// bytesOf is an address as it is in a transaction.
func bytesOf(a chain.Address) ([]byte, error) {
	format, _ := address.For("ADA")
	info, err := format.Parse(string(a))
	if err != nil {
		return nil, err
	}
	s := string(info.Canonical)
	if !strings.HasPrefix(s, "addr1") {
		return base58.Decode(s), nil // Byron's
	}
	_, data, err := bech32.DecodeNoLimit(s)
	if err != nil {
		return nil, err
	}
	return bech32.ConvertBits(data, 5, 8, false)
}
