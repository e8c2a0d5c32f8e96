package evm

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// block is what we read of a block.
type block struct {
	chain.Block
	hash, parent common.Hash
	bloom        [256]byte
	baseFee      *big.Int // nil where the chain has none
	txs          []blockTx
	count        int // of transactions, also where only hashes were asked for

	// What was asked together with the block, by its hash: see child. nil = was not.
	transfers, balances *transport.Call
	owners              []common.Address // whose balances
}

// At is the block itself.
func (b block) At() chain.Block { return b.Block }

// blockTx is what we read of a transaction in a block.
type blockTx struct {
	hash  common.Hash
	from  common.Address
	to    common.Address
	call  bool // has a to: no contract creation
	value *big.Int
	nonce int64
	input bool // carries data
}

// blockOf decodes an eth_getBlockBy… answer. null and an error are errors.
func blockOf(k *transport.Call) (block, error) {
	if k.Err != nil {
		return block{}, k.Err
	}
	if transport.Null(k.Out) {
		return block{}, fmt.Errorf("%w: it has no such block", follow.ErrTorn)
	}
	var b block
	seen := 0
	w := newWalk(k.Out)
	w.Object(func(key []byte) {
		switch string(key) {
		case "number":
			b.Height = w.number()
			seen |= 1
		case "hash":
			w.fixed(b.hash[:])
			seen |= 2
		case "parentHash":
			w.fixed(b.parent[:])
			seen |= 4
		case "timestamp":
			b.setTime(w.number())
			seen |= 8
		case "logsBloom":
			w.fixed(b.bloom[:])
			seen |= 16
		case "baseFeePerGas":
			if w.Peek() == 'n' {
				w.Skip()
				return
			}
			b.baseFee = w.big()
		case "transactions":
			w.Array(func() { b.addTx(w) })
			seen |= 32
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return block{}, follow.Torn(err)
	}
	if seen != 63 {
		return block{}, fmt.Errorf("%w: block without number, hash, parent, time, bloom or transactions", follow.ErrTorn)
	}
	b.Hash, b.Parent = b.hash.Hex(), b.parent.Hex()
	return b, nil
}

// setTime bounds what a node may claim: years 1970 to 9999.
func (b *block) setTime(seconds int64) { b.Time = time.Unix(min(seconds, 253402300799), 0).UTC() }

func (b *block) addTx(w walk) {
	b.count++
	if w.Peek() == '"' { // only hashes were asked for
		w.Text()
		return
	}
	t, seen := blockTx{value: new(big.Int), nonce: -1}, 0
	w.Object(func(key []byte) {
		switch string(key) {
		case "hash":
			w.fixed(t.hash[:])
			seen |= 1
		case "from":
			w.fixed(t.from[:])
			seen |= 2
		case "to":
			if w.Peek() == 'n' {
				w.Skip()
				return
			}
			w.fixed(t.to[:])
			t.call = true
		case "value":
			t.value = w.big()
			seen |= 4
		case "nonce":
			if n := w.big(); n.IsInt64() { // some chains let an account choose its nonces
				t.nonce = n.Int64()
			}
		case "input":
			t.input = len(w.Text()) > 2
		default:
			w.Skip()
		}
	})
	if seen != 7 {
		w.Fail()
	}
	b.txs = append(b.txs, t)
}

// mayHaveTransfers asks the header's bloom filter. false is certain.
func (b *block) mayHaveTransfers() bool {
	sum := crypto.Keccak256(transferTopic[:])
	for i := 0; i < 6; i += 2 {
		bit := binary.BigEndian.Uint16(sum[i:]) & 2047
		if b.bloom[255-bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// receipt is what we read of a transaction receipt.
type receipt struct {
	tx, block common.Hash
	height    int64
	ok        bool // executed: anything but status 1 is not
	gas       *big.Int
	price     *big.Int
	l1Fee     *big.Int
	operator  operatorFee
	logs      []logEntry
}

// cost is what the network took for it, in wei.
func (r *receipt) cost() *big.Int {
	v := new(big.Int).Mul(r.gas, r.price)
	return v.Add(v, r.l1Fee).Add(v, r.operator.of(r.gas))
}

// operatorFee is how a receipt of an OP-stack rollup says what the operator took: by two
// parameters, and a rule that Jovian changed. Its receipts alone have a third parameter.
type operatorFee struct {
	scalar, constant *big.Int // nil = 0
	jovian           bool
}

// of is the fee for gas, in wei.
func (f *operatorFee) of(gas *big.Int) *big.Int {
	v := new(big.Int)
	if f.scalar != nil {
		v.Mul(gas, f.scalar)
	}
	if f.jovian {
		v.Mul(v, big.NewInt(100))
	} else {
		v.Div(v, big.NewInt(1_000_000))
	}
	if f.constant != nil {
		v.Add(v, f.constant)
	}
	return v
}

// receiptOf decodes an eth_getTransactionReceipt answer; nil for null.
func receiptOf(k *transport.Call) (*receipt, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	if transport.Null(k.Out) {
		return nil, nil
	}
	w := newWalk(k.Out)
	r := readReceipt(w)
	return &r, follow.Torn(w.End())
}

func receiptsOf(k *transport.Call) ([]receipt, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	if transport.Null(k.Out) {
		return nil, fmt.Errorf("%w: no receipts for a block that it has", chain.ErrNode)
	}
	var out []receipt
	w := newWalk(k.Out)
	w.Array(func() { out = append(out, readReceipt(w)) })
	return out, w.End()
}

func readReceipt(w walk) receipt {
	r := receipt{gas: new(big.Int), price: new(big.Int), l1Fee: new(big.Int)}
	seen := 0
	w.Object(func(key []byte) {
		switch string(key) {
		case "transactionHash":
			w.fixed(r.tx[:])
			seen |= 1
		case "blockHash":
			w.fixed(r.block[:])
			seen |= 2
		case "blockNumber":
			r.height = w.number()
			seen |= 4
		case "status":
			r.ok = string(w.str()) == "0x1"
		case "gasUsed":
			r.gas = w.big()
			seen |= 8
		case "effectiveGasPrice":
			r.price = w.big()
		case "l1Fee":
			if fee := maybeBig(w); fee != nil {
				r.l1Fee = fee
			}
		case "operatorFeeScalar":
			r.operator.scalar = maybeBig(w)
		case "operatorFeeConstant":
			r.operator.constant = maybeBig(w)
		case "daFootprintGasScalar":
			r.operator.jovian = maybeBig(w) != nil
		case "logs":
			r.logs = readLogs(w)
			seen |= 16
		default:
			w.Skip()
		}
	})
	if seen != 31 {
		w.Fail()
	}
	return r
}

// maybeBig reads a quantity, nil for null.
func maybeBig(w walk) *big.Int {
	if w.Peek() == 'n' {
		w.Skip()
		return nil
	}
	return w.big()
}
