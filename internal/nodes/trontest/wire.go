package trontest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// message is a protobuf message by field number: the last value of each.
type message struct {
	number map[int]uint64
	bytes  map[int][]byte
}

var errWire = errors.New("contract type or bytes are not understood")

func parse(b []byte) (message, error) {
	m := message{map[int]uint64{}, map[int][]byte{}}
	for len(b) > 0 {
		tag, k := binary.Uvarint(b)
		if k <= 0 {
			return m, errWire
		}
		b = b[k:]
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return m, errWire
		}
		b = b[k:]
		switch tag & 7 {
		case 0:
			m.number[int(tag>>3)] = v
		case 2:
			if uint64(len(b)) < v {
				return m, errWire
			}
			m.bytes[int(tag>>3)], b = b[:v], b[v:]
		default:
			return m, errWire
		}
	}
	return m, nil
}

// path goes down into nested messages.
func (m message) path(fields ...int) message {
	for _, f := range fields {
		var err error
		if m, err = parse(m.bytes[f]); err != nil {
			return message{}
		}
	}
	return m
}

func field(n int, b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(n)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func num(n int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)<<3), uint64(v))
}

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func (a Account) full() []byte { return append([]byte{0x41}, a[:]...) }

func toAccount(b []byte) (Account, bool) {
	if len(b) != 21 || b[0] != 0x41 {
		return Account{}, false
	}
	return Account(b[1:]), true
}

// rawOf writes a transaction of somebody outside; counter makes it unique.
func rawOf(kind int64, value []byte, expiration, counter int64) []byte {
	name := map[int64]string{1: "TransferContract", 2: "TransferAssetContract", 31: "TriggerSmartContract"}[kind]
	parameter := join(field(1, []byte("type.googleapis.com/protocol."+name)), field(2, value))
	return join(field(1, []byte{0, 1}), field(4, make([]byte, 8)), num(8, expiration),
		field(11, join(num(1, kind), field(2, parameter))), num(14, counter))
}

// allocation is a transaction of the first block, which gives an account what it has. It
// was never broadcast: it has neither signature nor result, and its sender is no address.
func allocation(to Account, sun int64) *tx {
	value := join(field(1, []byte("0x000000000000000000000")), field(2, to.full()), num(3, sun))
	parameter := join(field(1, []byte("type.googleapis.com/protocol.TransferContract")), field(2, value))
	raw := field(11, join(num(1, 1), field(2, parameter)))
	sum := sha256.Sum256(raw)
	return &tx{id: hex.EncodeToString(sum[:]), raw: raw}
}

func transferData(to Account, v *big.Int) []byte {
	data := make([]byte, 68)
	copy(data, []byte{0xa9, 0x05, 0x9c, 0xbb})
	copy(data[16:], to[:])
	v.FillBytes(data[36:])
	return data
}

// accepted is the outcome of a broadcast: code "" where the node took it, and broken
// where the bytes are none that it can read.
type accepted struct {
	id, code, message string
	broken            bool
}

// maxSize bounds a transaction with room for its result.
const maxSize = 500 * 1024

// take checks a signed transaction as a node does, in the same order, and puts it into
// the pool.
func (n *Node) take(b []byte) accepted {
	m, err := parse(b)
	raw, sig := m.bytes[1], m.bytes[2]
	body, bad := parse(raw)
	if err != nil || bad != nil {
		return accepted{broken: true}
	}
	sum := sha256.Sum256(raw)
	id := hex.EncodeToString(sum[:])
	refuse := func(code, why string) accepted { return accepted{id: id, code: code, message: why} }
	if n.fault.Refuse != "" {
		return refuse(n.fault.Refuse, "not now")
	}
	if n.fault.Cache && n.cached[id] {
		return refuse("DUP_TRANSACTION_ERROR", "Transaction already exists.")
	}
	n.cached[id] = true
	if len(body.bytes[11]) == 0 {
		return refuse("CONTRACT_VALIDATE_ERROR", "Contract validate error : No contract!")
	}
	head := n.head()
	expiration := int64(body.number[8])
	if expiration < earliest(head) {
		return refuse("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
	}
	call := body.path(11, 2, 2)
	owner, ok := toAccount(call.bytes[1])
	if !ok || !signedBy(sum[:], sig, owner) {
		return refuse("SIGERROR", "Validate signature error: it is not contained of permission.")
	}
	switch {
	case !n.tapos(body):
		return refuse("TAPOS_ERROR", "Tapos check error.")
	case len(b)+2*resultSize > maxSize:
		return refuse("TOO_BIG_TRANSACTION_ERROR", "Too big transaction with result")
	case expiration > head.millis+24*3600*1000:
		return refuse("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
	case n.known[id]:
		return refuse("DUP_TRANSACTION_ERROR", "Dup transaction.")
	}
	t := &tx{raw: raw, signature: sig, expiration: expiration}
	t.run = n.runner(body, call, owner, int64(len(b))+resultSize)
	if t.run == nil {
		return refuse("CONTRACT_VALIDATE_ERROR", errWire.Error())
	}
	if r := t.run(n.pending()); r.invalid != "" {
		return refuse(r.code, r.invalid)
	}
	if n.fault.Took != nil {
		n.fault.Took(id, b)
	}
	if n.fault.Swallow {
		return accepted{id: id}
	}
	n.add(t)
	if n.fault.Unsent {
		return refuse("NOT_ENOUGH_EFFECTIVE_CONNECTION", "P2P broadcast failed.")
	}
	return accepted{id: id}
}

// resultSize is what each contract's result is reckoned with in bandwidth.
const resultSize = 64

// pending is the head's state after all that waits.
func (n *Node) pending() *state {
	now := n.head().after.clone()
	for _, p := range n.pool {
		before := now.clone()
		if r := p.run(now); r.invalid != "" {
			now = before
		}
	}
	return now
}

// runner reads what a transaction does; nil for what this node does not model.
func (n *Node) runner(body, call message, owner Account, size int64) func(*state) receipt {
	to, ok := toAccount(call.bytes[2])
	if !ok {
		return nil
	}
	switch body.path(11).number[1] {
	case 1:
		sun := int64(call.number[3])
		return func(s *state) receipt { return n.transfer(s, owner, to, sun, size) }
	case 31:
		data := call.bytes[4]
		if len(data) != 68 || data[0] != 0xa9 || data[1] != 0x05 || data[2] != 0x9c || data[3] != 0xbb {
			return nil
		}
		limit, v := int64(body.number[18]), new(big.Int).SetBytes(data[36:])
		return func(s *state) receipt {
			switch {
			case s.tokens[to] == nil:
				return never("No contract or not a smart contract")
			case limit < 0 || limit > MaxFeeLimit:
				return never(fmt.Sprintf("feeLimit must be >= 0 and <= %d", int64(MaxFeeLimit)))
			}
			return n.call(s, owner, to, Account(data[16:36]), v, size, limit)
		}
	}
	return nil
}

// tapos finds the block that a transaction stands on among the last 65536.
func (n *Node) tapos(body message) bool {
	low, hash := body.bytes[1], hex.EncodeToString(body.bytes[4])
	for i := len(n.blocks) - 1; i >= 0 && i >= len(n.blocks)-65536 && len(low) == 2; i-- {
		if b := n.blocks[i]; uint16(b.height) == binary.BigEndian.Uint16(low) {
			return b.id[16:32] == hash
		}
	}
	return false
}

func signedBy(digest, sig []byte, owner Account) bool {
	if len(sig) != 65 {
		return false
	}
	key, _, err := ecdsa.RecoverCompact(append([]byte{sig[64]%27 + 27}, sig[:64]...), digest)
	if err != nil {
		return false
	}
	h := sha3.NewLegacyKeccak256()
	h.Write(key.SerializeUncompressed()[1:])
	return Account(h.Sum(nil)[12:]) == owner
}
