package tron

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// block is what we read of a block.
type block struct {
	chain.Block
	id     [32]byte
	parent [32]byte
	millis int64
	txs    []blockTx
	seen   int
	empty  bool // the node answered with an empty object
}

// At is the block itself.
func (b block) At() chain.Block { return b.Block }

// blockTx is what we read of a transaction in a block: its own bytes, not what
// the node says of them.
type blockTx struct {
	id  [32]byte
	raw []byte // hex
	ret result
}

// result is how a transaction ended.
type result int

const (
	resultNone  result = iota // nothing said
	resultDone                // SUCCESS
	resultFail                // one of the known failures
	resultOther               // unknown, which is not executed
)

// done is how the API spells that a receipt's or a trial's result is good.
const done = "SUCESS" //nolint:misspell // the API's own spelling

// failures are the names of protocol.Transaction.Result.contractResult that say
// that nothing was done.
var failures = map[string]bool{
	"REVERT": true, "BAD_JUMP_DESTINATION": true, "OUT_OF_MEMORY": true, "PRECOMPILED_CONTRACT": true,
	"STACK_TOO_SMALL": true, "STACK_TOO_LARGE": true, "ILLEGAL_OPERATION": true, "STACK_OVERFLOW": true,
	"OUT_OF_ENERGY": true, "OUT_OF_TIME": true, "JVM_STACK_OVER_FLOW": true, "UNKNOWN": true,
	"TRANSFER_FAILED": true, "INVALID_CODE": true,
}

func readResult(w walk) result {
	switch s := string(w.Text()); {
	case s == "SUCCESS":
		return resultDone
	case s == "" || s == "DEFAULT":
		return resultNone
	case failures[s]:
		return resultFail
	}
	return resultOther
}

// readBlock reads one block; of a header alone, what there is. The first block
// leaves out what is zero.
func readBlock(w walk) block {
	b := block{empty: true}
	w.Object(func(key []byte) {
		b.empty = false
		switch string(key) {
		case "blockID":
			w.fixed(b.id[:])
			b.seen |= 1
		case "block_header":
			w.Object(func(key []byte) {
				if string(key) != "raw_data" {
					w.Skip()
					return
				}
				b.seen |= 2
				w.Object(func(key []byte) { b.field(w, key) })
			})
		case "transactions":
			w.Array(func() { b.txs = append(b.txs, readTx(w)) })
		default:
			w.Skip()
		}
	})
	b.Hash, b.Parent = hex.EncodeToString(b.id[:]), hex.EncodeToString(b.parent[:])
	b.Time = time.UnixMilli(min(b.millis, 253402300799999)).UTC()
	return b
}

func (b *block) field(w walk, key []byte) {
	switch string(key) {
	case "number":
		b.Height = w.number()
	case "parentHash":
		w.fixed(b.parent[:])
		b.seen |= 4
	case "timestamp":
		b.millis = w.number()
	default:
		w.Skip()
	}
}

// checked ends the reading of one block. An empty object is errNoBlock.
func (b *block) checked(w walk) (block, error) {
	if err := w.End(); err != nil {
		return block{}, err
	}
	return *b, b.whole()
}

func (b *block) whole() error {
	switch {
	case b.empty:
		return errNoBlock
	case b.seen != 7:
		return fmt.Errorf("%w: a block without id, header or parent", chain.ErrNode)
	case b.Height > 0 && (binary.BigEndian.Uint64(b.id[:8]) != uint64(b.Height) || b.millis == 0):
		return fmt.Errorf("%w: block %s says that its number is %d", chain.ErrNode, b.Hash, b.Height)
	}
	return nil
}

func readTx(w walk) blockTx {
	var t blockTx
	seen := 0
	w.Object(func(key []byte) {
		switch string(key) {
		case "txID":
			w.fixed(t.id[:])
			seen |= 1
		case "raw_data_hex":
			t.raw = w.Text()
			seen |= 2
		case "ret":
			w.Array(func() {
				w.Object(func(key []byte) {
					if string(key) == "contractRet" {
						t.ret = readResult(w)
						return
					}
					w.Skip()
				})
			})
		default:
			w.Skip()
		}
	})
	if seen != 3 {
		w.Fail()
	}
	return t
}

// info is a transaction's receipt.
type info struct {
	id       [32]byte
	height   int64
	millis   int64
	fee      int64 // sun, all that the network took
	failed   bool
	ret      result
	logs     []logEntry
	internal []innerCall
	none     bool // the node answered with an empty object
}

// logEntry is what we read of a log.
type logEntry struct {
	contract account
	topics   [3][32]byte
	count    int // of topics, also of those beyond the third
	word     [32]byte
	oneWord  bool // data is exactly one word
}

// innerCall is what we read of an internal transaction.
type innerCall struct {
	from, to account
	sun      int64 // of TRX; 0 where it carries none
	rejected bool
}

// readInfo reads one receipt, or the empty object that stands for none.
func readInfo(w walk) info {
	r, seen := info{none: true}, 0
	w.Object(func(key []byte) {
		r.none = false
		switch string(key) {
		case "id":
			w.fixed(r.id[:])
			seen |= 1
		case "blockNumber":
			r.height = w.number()
			seen |= 2
		case "blockTimeStamp":
			r.millis = w.number()
			seen |= 4
		case "fee":
			r.fee = w.number()
		case "result":
			r.failed = string(w.Text()) != done
		case "receipt":
			w.Object(func(key []byte) {
				if string(key) == "result" {
					r.ret = readResult(w)
					return
				}
				w.Skip()
			})
		case "log":
			w.Array(func() { r.logs = append(r.logs, readLog(w)) })
		case "internal_transactions":
			w.Array(func() { r.internal = append(r.internal, readInner(w)) })
		default:
			w.Skip()
		}
	})
	if seen != 7 && !r.none {
		w.Fail()
	}
	return r
}

func readLog(w walk) logEntry {
	var l logEntry
	named := false
	w.Object(func(key []byte) {
		switch string(key) {
		case "address":
			l.contract, named = hexAccount(w.Text())
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
			l.oneWord = transport.Unhex(l.word[:], w.Text())
		default:
			w.Skip()
		}
	})
	if !named {
		w.Fail()
	}
	return l
}

func readInner(w walk) innerCall {
	var c innerCall
	w.Object(func(key []byte) {
		switch string(key) {
		case "caller_address":
			c.from, _ = hexAccount(w.Text())
		case "transferTo_address":
			c.to, _ = hexAccount(w.Text())
		case "rejected":
			c.rejected = w.truth()
		case "callValueInfo":
			w.Array(func() { c.value(w) })
		default:
			w.Skip()
		}
	})
	return c
}

// value adds one entry of callValueInfo; one that names a token is no TRX.
func (c *innerCall) value(w walk) {
	sun, token := int64(0), false
	w.Object(func(key []byte) {
		switch string(key) {
		case "callValue":
			sun = w.number()
		case "tokenId":
			token = len(w.Text()) > 0
		default:
			w.Skip()
		}
	})
	if !token {
		c.sun = sun
	}
}

// transferTopic is the first topic of a TRC-20 Transfer, Keccak-256 of
// "Transfer(address,address,uint256)".
var transferTopic = func() (t [32]byte) {
	transport.Unhex(t[:], []byte("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"))
	return t
}()

// transfer reports whether the log is a well-formed Transfer of more than
// nothing: three topics, two of them addresses, and one word of data.
func (l *logEntry) transfer() bool {
	if l.count != 3 || !l.oneWord || l.topics[0] != transferTopic || l.word == [32]byte{} {
		return false
	}
	return isAccount(l.topics[1]) && isAccount(l.topics[2])
}

// isAccount reports whether a topic is an address; some contracts write its
// first byte too.
func isAccount(t [32]byte) bool {
	var pad [11]byte
	return [11]byte(t[:11]) == pad && (t[11] == 0 || t[11] == prefix)
}

func (l *logEntry) from() account { return account(l.topics[1][12:]) }
func (l *logEntry) to() account   { return account(l.topics[2][12:]) }
