package tron

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// The few protobuf messages of protocol.Transaction are written and read by hand.
// What we write is canonical: fields in ascending order, defaults left out. What
// others wrote is read as protobuf says: fields in any order, the last one wins,
// unknown ones are passed over.

// Kinds of contracts, of protocol.Transaction.Contract.ContractType.
const (
	kindTransfer = 1
	kindAsset    = 2 // TRC-10
	kindCreate   = 30
	kindTrigger  = 31
)

const (
	urlTransfer = "type.googleapis.com/protocol.TransferContract"
	urlTrigger  = "type.googleapis.com/protocol.TriggerSmartContract"
)

// body is protocol.Transaction.raw with its one contract.
type body struct {
	refBytes, refHash     []byte
	expiration, timestamp int64 // milliseconds
	feeLimit              int64 // sun
	memo                  []byte
	contracts             int
	kind                  int64
	url                   []byte
	permission            int64
	owner, to             []byte // to: recipient, or the contract that is called
	amount                int64  // sun; of kindAsset its smallest unit
	asset                 []byte
	data                  []byte
	callValue             int64
	tokenValue, tokenID   int64
	value                 []byte // the contract's own message
}

var errProto = errors.New("not the protobuf of a Tron transaction")

// varint reads a number as java-tron does: of ten bytes at most, bits beyond the
// 64th dropped. size is 0 where there is none.
func varint(b []byte) (n uint64, size int) {
	for i := 0; i < len(b) && i < 10; i++ {
		n |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// fields calls f for each field of a message: n for numbers, b for bytes.
func fields(b []byte, f func(field uint64, n uint64, b []byte) error) error {
	group := 0 // how many groups, which are long out of use, are open
	for len(b) > 0 {
		tag, size := varint(b)
		if tag &= 1<<32 - 1; size == 0 || tag>>3 == 0 {
			return errProto
		}
		b = b[size:]
		var n uint64
		var part []byte
		switch tag & 7 {
		case 0:
			if n, size = varint(b); size == 0 {
				return errProto
			}
			b = b[size:]
		case 2:
			n, size = varint(b)
			if n &= 1<<32 - 1; size == 0 || n > uint64(len(b)-size) {
				return errProto
			}
			part, b = b[size:size+int(n):size+int(n)], b[size+int(n):]
		case 1, 5:
			if size = 8; tag&7 == 5 {
				size = 4
			}
			if len(b) < size {
				return errProto
			}
			b = b[size:]
			continue
		case 3:
			group++
			continue
		case 4:
			if group--; group < 0 {
				return errProto
			}
			continue
		default:
			return errProto
		}
		if group > 0 {
			continue
		}
		if err := f(tag>>3, n, part); err != nil {
			return err
		}
	}
	if group > 0 {
		return errProto
	}
	return nil
}

// decodeBody reads protocol.Transaction.raw.
func decodeBody(raw []byte) (t body, err error) {
	err = fields(raw, func(field, n uint64, b []byte) error {
		switch field {
		case 1:
			t.refBytes = b
		case 4:
			t.refHash = b
		case 8:
			t.expiration = int64(n)
		case 10:
			t.memo = b
		case 11:
			t.contracts++
			return t.contract(b)
		case 14:
			t.timestamp = int64(n)
		case 18:
			t.feeLimit = int64(n)
		}
		return nil
	})
	if err == nil && t.value != nil {
		err = t.parameter()
	}
	return t, err
}

func (t *body) contract(b []byte) error {
	return fields(b, func(field, n uint64, b []byte) error {
		switch field {
		case 1:
			t.kind = int64(n)
		case 2:
			return fields(b, func(field, _ uint64, b []byte) error {
				switch field {
				case 1:
					t.url = b
				case 2:
					t.value = b
				}
				return nil
			})
		case 5:
			t.permission = int64(n)
		}
		return nil
	})
}

// parameter reads the contract's own message, of the kinds that matter here.
func (t *body) parameter() error {
	switch t.kind {
	case kindTransfer:
		return fields(t.value, func(field, n uint64, b []byte) error {
			switch field {
			case 1:
				t.owner = b
			case 2:
				t.to = b
			case 3:
				t.amount = int64(n)
			}
			return nil
		})
	case kindAsset:
		return fields(t.value, func(field, n uint64, b []byte) error {
			switch field {
			case 1:
				t.asset = b
			case 2:
				t.owner = b
			case 3:
				t.to = b
			case 4:
				t.amount = int64(n)
			}
			return nil
		})
	case kindTrigger:
		return fields(t.value, func(field, n uint64, b []byte) error {
			switch field {
			case 1:
				t.owner = b
			case 2:
				t.to = b
			case 3:
				t.callValue = int64(n)
			case 4:
				t.data = b
			case 5:
				t.tokenValue = int64(n)
			case 6:
				t.tokenID = int64(n)
			}
			return nil
		})
	}
	return nil
}

func putNumber(out []byte, field uint64, n int64) []byte {
	if n == 0 {
		return out
	}
	return binary.AppendUvarint(binary.AppendUvarint(out, field<<3), uint64(n))
}

func putBytes(out []byte, field uint64, b []byte) []byte {
	if len(b) == 0 {
		return out
	}
	out = binary.AppendUvarint(binary.AppendUvarint(out, field<<3|2), uint64(len(b)))
	return append(out, b...)
}

// encode writes protocol.Transaction.raw of a transfer or a call.
func (t *body) encode() []byte {
	var value []byte
	link := urlTransfer
	if value = putBytes(putBytes(nil, 1, t.owner), 2, t.to); t.kind == kindTransfer {
		value = putNumber(value, 3, t.amount)
	} else {
		link = urlTrigger
		value = putBytes(putNumber(value, 3, t.callValue), 4, t.data)
	}
	parameter := putBytes(putBytes(nil, 1, []byte(link)), 2, value)
	contract := putNumber(putBytes(putNumber(nil, 1, t.kind), 2, parameter), 5, t.permission)
	out := putBytes(putBytes(nil, 1, t.refBytes), 4, t.refHash)
	out = putBytes(putNumber(out, 8, t.expiration), 10, t.memo)
	out = putBytes(out, 11, contract)
	return putNumber(putNumber(out, 14, t.timestamp), 18, t.feeLimit)
}

// canonical reports whether raw is exactly what encode would write: nothing is
// hidden in it that was not looked at.
func (t *body) canonical(raw []byte) bool { return bytes.Equal(t.encode(), raw) }

// seal is protocol.Transaction with one signature.
func seal(raw, signature []byte) []byte { return putBytes(putBytes(nil, 1, raw), 2, signature) }

// unseal reads back what seal wrote, and nothing else.
func unseal(b []byte) (raw, signature []byte, err error) {
	err = fields(b, func(field, _ uint64, b []byte) error {
		switch field {
		case 1:
			raw = b
		case 2:
			signature = b
		}
		return nil
	})
	if err == nil && (len(raw) == 0 || len(signature) != 65 || !bytes.Equal(seal(raw, signature), b)) {
		err = errProto
	}
	return raw, signature, err
}

// digest is what is signed, and the transaction's id.
func digest(raw []byte) [32]byte { return sha256.Sum256(raw) }
