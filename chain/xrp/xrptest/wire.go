package xrptest

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain/address"
)

// field is one field of a serialised object.
type field struct {
	kind, number int
	value        []byte
	whole        []byte // with its code and length
}

// Types of the binary format.
const (
	typeUint16  = 1
	typeUint32  = 2
	typeAmount  = 6
	typeBlob    = 7
	typeAccount = 8
)

// parse reads fields of any number of the few types that payments have, in their
// canonical order.
func parse(b []byte) (out []field, err error) {
	last := 0
	for len(b) > 0 {
		start := b
		kind, number := int(b[0]>>4), int(b[0]&15)
		b = b[1:]
		for _, x := range []*int{&kind, &number} {
			if *x == 0 {
				if len(b) == 0 {
					return nil, fmt.Errorf("xrptest: cut off")
				}
				*x, b = int(b[0]), b[1:]
			}
		}
		if order := kind<<8 | number; order <= last {
			return nil, fmt.Errorf("xrptest: fields out of order")
		} else {
			last = order
		}
		size := map[int]int{typeUint16: 2, typeUint32: 4, typeAmount: 8}[kind]
		if kind == typeBlob || kind == typeAccount {
			if len(b) == 0 || b[0] > 192 {
				return nil, fmt.Errorf("xrptest: cut off")
			}
			size, b = int(b[0]), b[1:]
		}
		if size == 0 || len(b) < size {
			return nil, fmt.Errorf("xrptest: field %d.%d", kind, number)
		}
		out = append(out, field{kind, number, b[:size], start[:len(start)-len(b)+size]})
		b = b[size:]
	}
	return out, nil
}

// message is a transaction's fields by name.
type message struct {
	kind                    uint16
	number                  map[int]uint32 // of 32 bits, by number
	has                     map[int]bool
	amount, fee             int64
	key, signature, signing []byte
	account, destination    string
}

func read(raw []byte) (*message, error) {
	fields, err := parse(raw)
	if err != nil {
		return nil, err
	}
	m := &message{number: map[int]uint32{}, has: map[int]bool{}}
	m.signing = []byte("STX\x00")
	for _, f := range fields {
		if f.kind == typeBlob && f.number == 4 {
			m.signature = f.value
		} else {
			m.signing = append(m.signing, f.whole...)
		}
		switch f.kind<<8 | f.number {
		case typeUint16<<8 | 2:
			m.kind = binary.BigEndian.Uint16(f.value)
		case typeAmount<<8 | 1:
			m.amount = int64(binary.BigEndian.Uint64(f.value) &^ (1 << 62))
		case typeAmount<<8 | 8:
			m.fee = int64(binary.BigEndian.Uint64(f.value) &^ (1 << 62))
		case typeBlob<<8 | 3:
			m.key = f.value
		case typeAccount<<8 | 1:
			m.account = classic(f.value)
		case typeAccount<<8 | 3:
			m.destination = classic(f.value)
		}
		if f.kind == typeUint32 {
			m.number[f.number], m.has[f.number] = binary.BigEndian.Uint32(f.value), true
		}
	}
	return m, nil
}

func classic(id []byte) string {
	var body [32]byte
	copy(body[:], id)
	format, _ := address.For("XRP")
	return string(format.Make(body))
}

func sha512half(b []byte) []byte {
	s := sha512.Sum512(b)
	return s[:32]
}

// signed reports whether the signature is of the account's own key.
func (m *message) signed() bool {
	if classic(btcaddr.Hash160(m.key)) != m.account {
		return false
	}
	if len(m.key) == 33 && m.key[0] == 0xed {
		return ed25519.Verify(m.key[1:], m.signing, m.signature)
	}
	key, err := secp256k1.ParsePubKey(m.key)
	if err != nil {
		return false
	}
	s, err := ecdsa.ParseDERSignature(m.signature)
	return err == nil && s.Verify(sha512half(m.signing), key)
}

// Numbers of 32-bit fields.
const (
	fieldFlags      = 2
	fieldSequence   = 4
	fieldTag        = 14
	fieldLastLedger = 27
)

// submit judges a transaction as rippled does before a ledger has it.
func (n *Node) submit(blob []byte) (t *tx, result string) {
	m, err := read(blob)
	if err != nil || m.fee <= 0 {
		return nil, "temMALFORMED"
	}
	t = n.transaction(m, blob)
	head := n.head()
	from, there := head.after[m.account]
	pending := 0
	for i, p := range n.pool {
		if p.hash == t.hash {
			return t, "tefALREADY"
		}
		if p.account == t.account && p.sequence == t.sequence {
			if t.fee*4 < p.fee*5 {
				return t, "telCAN_NOT_QUEUE_FEE"
			}
			pending = i + 1
		}
	}
	next := from.Sequence
	for _, p := range n.pool {
		if p.account == t.account && p.sequence == next {
			next++
		}
	}
	switch {
	case !m.signed():
		return t, "temBAD_SIGNATURE"
	case m.kind == 0 && (m.amount <= 0 || m.account == m.destination):
		return t, "temREDUNDANT"
	case m.fee < n.openFee:
		return t, "telINSUF_FEE_P"
	case !there:
		return t, "terNO_ACCOUNT"
	case t.sequence < from.Sequence:
		return t, "tefPAST_SEQ"
	case t.last > 0 && int64(t.last) <= head.index:
		return t, "tefMAX_LEDGER"
	case t.sequence > next && pending == 0:
		return t, "terPRE_SEQ"
	case from.Drops < m.fee:
		return t, "terINSUF_FEE_B"
	}
	if n.fault.Took != nil {
		n.fault.Took(blob)
	}
	if n.fault.Swallow {
		return t, "tesSUCCESS"
	}
	if pending > 0 {
		n.pool[pending-1] = t
	} else {
		n.pool = append(n.pool, t)
	}
	return t, "tesSUCCESS"
}

func (n *Node) transaction(m *message, blob []byte) *tx {
	hash := strings.ToUpper(hex.EncodeToString(sha512half(append([]byte("TXN\x00"), blob...))))
	j := object{
		"Account": m.account, "Fee": fmt.Sprint(m.fee), "Flags": m.number[fieldFlags], "Sequence": m.number[fieldSequence],
		"LastLedgerSequence": m.number[fieldLastLedger], "SigningPubKey": strings.ToUpper(hex.EncodeToString(m.key)),
		"TransactionType": "AccountSet", "TxnSignature": strings.ToUpper(hex.EncodeToString(m.signature)),
	}
	if m.kind == 0 {
		j["TransactionType"], j["Destination"], j["Amount"] = "Payment", m.destination, fmt.Sprint(m.amount)
	}
	if m.has[fieldTag] {
		j["DestinationTag"] = m.number[fieldTag]
	}
	return &tx{
		hash: hash, account: m.account, sequence: m.number[fieldSequence], fee: m.fee, last: m.number[fieldLastLedger], json: j,
		run: func(s map[string]Account, at int64) (string, delivery) { return m.pay(s, at) },
	}
}

// pay runs a transaction of which the fee was taken.
func (m *message) pay(s map[string]Account, at int64) (string, delivery) {
	if m.kind != 0 {
		return "tesSUCCESS", delivery{}
	}
	from, to := s[m.account], s[m.destination]
	switch {
	case to.Sequence == 0 && m.amount < Reserve:
		return "tecNO_DST_INSUF_XRP", delivery{}
	case to.Flags&RequireTag != 0 && !m.has[fieldTag]:
		return "tecDST_TAG_NEEDED", delivery{}
	case to.Flags&DepositAuth != 0:
		return "tecNO_PERMISSION", delivery{}
	case from.Drops-m.amount < Reserve+OwnerReserve*from.Owned:
		return "tecUNFUNDED_PAYMENT", delivery{}
	case to.Sequence == 0:
		to.Sequence = uint32(at)
	}
	from.Drops -= m.amount
	to.Drops += m.amount
	s[m.account], s[m.destination] = from, to
	return "tesSUCCESS", delivery{told: fmt.Sprint(m.amount)}
}
