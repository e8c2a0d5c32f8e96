package cardano

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/btcsuite/btcd/address/v2/bech32"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// Params are what the network asks, in lovelace: protocol parameters, which change
// by vote.
type Params struct {
	PerByte   int64 // minFeeA, of a transaction
	Fixed     int64 // minFeeB
	MaxSize   int64 // maxTxSize, bytes
	PerOutput int64 // coinsPerUTxOByte
}

// MainnetParams are those of the main network since 2022.
var MainnetParams = Params{PerByte: 44, Fixed: 155_381, MaxSize: 16_384, PerOutput: 4_310}

// maxLovelace is all there will ever be: 45·10^9 ada.
const maxLovelace = 45_000_000_000 * 1_000_000

// sane keeps sums from overflowing.
func (p Params) sane() bool {
	for _, v := range []int64{p.PerByte, p.Fixed, p.MaxSize, p.PerOutput} {
		if v < 0 || v > 1<<31 {
			return false
		}
	}
	return p.PerByte > 0 && p.MaxSize > 0 && p.PerOutput > 0
}

var errParams = errors.New("cardano: protocol parameters are missing or absurd")

// Fee is what the network asks for a transaction of so many bytes:
// minFeeA · size + minFeeB. Scripts cost more, and are not used here.
func (p Params) Fee(size int64) (int64, error) {
	switch {
	case !p.sane():
		return 0, errParams
	case size <= 0 || size > p.MaxSize:
		return 0, fmt.Errorf("cardano: a transaction of %d bytes: at most %d are allowed", size, p.MaxSize)
	}
	hi, lo := bits.Mul64(uint64(p.PerByte), uint64(size)) //nolint:gosec // both positive
	if hi != 0 || lo > maxLovelace {
		return 0, errParams
	}
	return int64(lo) + p.Fixed, nil //nolint:gosec // checked
}

// Sizes of what a transaction consists of, in bytes, each as long as its CBOR can be.
const (
	sizeFrame   = 4 + 2*(2+9) // the array and its flags, the map of the body, fee and end of validity
	sizeInput   = 1 + 34 + 5  // an array of a hash and an index
	sizeWitness = 1 + 34 + 66 // an array of a key and a signature
	sizeCoin    = 9
	sizeList    = 1 + 3 + 5 // a key, the tag of a set and a length
	sizeOutput  = 1 + 1 + 1 // the map of an output and its two keys
)

// EstimateFee is the most that a plain payment in ada costs: of so many inputs, each
// witnessed by a key of its own, to these addresses, change included.
func (p Params) EstimateFee(inputs int, to ...chain.Address) (int64, error) {
	if inputs <= 0 || len(to) == 0 || int64(inputs) > p.MaxSize || int64(len(to)) > p.MaxSize {
		return 0, fmt.Errorf("cardano: a payment of %d inputs to %d addresses is none", inputs, len(to))
	}
	size := int64(sizeFrame+3*sizeList+1) + int64(inputs)*(sizeInput+sizeWitness)
	for _, a := range to {
		n, err := output(a)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return p.Fee(size)
}

// MinOutput is the least ada that an output to an address must hold:
// coinsPerUTxOByte · (160 + its size).
func (p Params) MinOutput(to chain.Address) (int64, error) {
	const overhead = 160 // of an entry in the ledger's set
	if !p.sane() {
		return 0, errParams
	}
	n, err := output(to)
	if err != nil {
		return 0, err
	}
	return p.PerOutput * (overhead + n), nil
}

// output is the size of an output to an address, as long as its amount can be.
func output(to chain.Address) (int64, error) {
	raw, err := bytesOf(to)
	if err != nil {
		return 0, err
	}
	return int64(sizeOutput + 2 + len(raw) + sizeCoin), nil
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
