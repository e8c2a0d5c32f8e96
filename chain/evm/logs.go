package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// transferTopic is the first topic of an ERC-20 Transfer.
var transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// logEntry is what we read of a log. It holds no pointers, so that a block's
// logs are one allocation.
type logEntry struct {
	contract  common.Address
	block, tx common.Hash
	index     int64 // in the block
	topics    [3]common.Hash
	count     int // of topics, also of those beyond the third
	word      [32]byte
	oneWord   bool // data is exactly one word
	removed   bool
}

// decodeLogs reads the result of eth_getLogs.
func decodeLogs(raw []byte) ([]logEntry, error) {
	w := newWalk(raw)
	logs := readLogs(w)
	return logs, w.End()
}

func readLogs(w walk) []logEntry {
	var out []logEntry
	w.Array(func() {
		out = append(out, logEntry{index: -1})
		l := &out[len(out)-1]
		w.Object(func(key []byte) { l.field(w, key) })
		if l.index < 0 || l.tx == (common.Hash{}) {
			w.Fail()
		}
	})
	return out
}

func (l *logEntry) field(w walk, key []byte) {
	switch string(key) {
	case "address":
		w.fixed(l.contract[:])
	case "topics":
		w.Array(func() {
			if l.count < len(l.topics) {
				w.fixed(l.topics[l.count][:])
			} else {
				w.Text()
			}
			l.count++
		})
	case "data":
		s := w.Text()
		l.oneWord = len(s) == 66 && s[0] == '0' && s[1] == 'x' && transport.Unhex(l.word[:], s[2:])
	case "blockHash":
		w.fixed(l.block[:])
	case "transactionHash":
		w.fixed(l.tx[:])
	case "logIndex":
		l.index = w.number()
	case "removed":
		l.removed = string(w.Raw()) == "true"
	default:
		w.Skip()
	}
}

// system is whose logs tell of ether itself, from EIP-7708 on.
var system = common.HexToAddress("0xfffffffffffffffffffffffffffffffffffffffe")

// transfer reports whether the log is a well-formed ERC-20 Transfer of more than
// nothing: three topics, two of them addresses, and one word of data. An NFT's
// has four topics. Anything else is ignored, and so is what the network itself logs of
// its coin in this form: the coin is seen otherwise, and would be a token's deposit besides.
func (l *logEntry) transfer() bool {
	if l.contract == system {
		return false
	}
	if l.count != 3 || !l.oneWord || l.topics[0] != transferTopic || l.word == [32]byte{} {
		return false
	}
	var pad [12]byte
	return [12]byte(l.topics[1][:12]) == pad && [12]byte(l.topics[2][:12]) == pad
}

func (l *logEntry) from() common.Address { return common.Address(l.topics[1][12:]) }
func (l *logEntry) to() common.Address   { return common.Address(l.topics[2][12:]) }
func (l *logEntry) amount() *big.Int     { return new(big.Int).SetBytes(l.word[:]) }
