package xrptest

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
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

// 32-bit fields that only submit reads.
const fieldNetworkID = 1

// verdict is what a server says of a submission.
type verdict struct {
	broken  string // no transaction, or not its own signature: it has no result then
	result  string
	applied bool // to the open ledger
	queued  bool
}

// open is the accounts of the open ledger: those of the head, and after what waits and
// is not merely queued, but for one transaction that may be replaced.
func (n *Node) open(without *tx) map[string]Account {
	s, at := n.head().after, n.head().index+1
	for _, p := range n.pool {
		if a := s[p.account]; p != without && !p.queued && (p.sequence == 0 || p.sequence == a.Sequence && a.Drops >= p.fee) {
			_, _, s = p.execute(s, at)
		}
	}
	return s
}

// submit judges a transaction as rippled does before a ledger has it: it belongs into
// the open ledger, even where it will only cost its fee there, or is queued until its
// fee opens one, or is held because it may do later, or is refused.
func (n *Node) submit(blob []byte) (*tx, verdict) {
	m, err := read(blob)
	if err != nil {
		return nil, verdict{broken: err.Error()}
	}
	if !m.signed() {
		return nil, verdict{broken: "fails local checks: Invalid signature."}
	}
	t := n.transaction(m, blob)
	v := n.judge(m, t)
	if !n.fault.Swallow {
		n.seen[t.hash] = &sighted{t, n.head().index}
	}
	if !v.applied && !v.queued && !strings.HasPrefix(v.result, "ter") { // those may do later
		return t, v
	}
	if n.fault.Took != nil {
		n.fault.Took(blob)
	}
	if n.fault.Swallow {
		return t, v
	}
	t.queued = v.queued
	n.pool = slices.DeleteFunc(n.pool, func(p *tx) bool {
		return p.account == t.account && p.sequence == t.sequence
	})
	n.pool = append(n.pool, t)
	return t, v
}

// judge finds the result, in the order of the server's checks.
func (n *Node) judge(m *message, t *tx) verdict {
	refuse := func(result string) verdict { return verdict{result: result} }
	id, numbered := m.number[fieldNetworkID], m.has[fieldNetworkID]
	next := n.head().index + 1
	var before *tx // one with the same sequence in the queue: what the open ledger has is not replaced
	waits, same := false, false
	for _, p := range n.pool {
		waits, same = waits || p.queued && p.account == t.account, same || p.hash == t.hash
		if p.account == t.account && p.sequence == t.sequence && p.queued {
			before = p
		}
	}
	s := n.open(before)
	from, there := s[m.account]
	switch {
	case n.id <= 1024 && numbered:
		return refuse("telNETWORK_ID_MAKES_TX_NON_CANONICAL")
	case n.id > 1024 && !numbered:
		return refuse("telREQUIRES_NETWORK_ID")
	case n.id > 1024 && id != n.id:
		return refuse("telWRONG_NETWORK")
	case m.fee < 0:
		return refuse("temBAD_FEE")
	case m.kind == 0 && m.amount <= 0:
		return refuse("temBAD_AMOUNT")
	case m.kind == 0 && m.account == m.destination:
		return refuse("temREDUNDANT")
	case !there:
		return refuse("terNO_ACCOUNT")
	case t.sequence < from.Sequence && same && n.fault.Already:
		return refuse("tefALREADY")
	case t.sequence < from.Sequence:
		return refuse("tefPAST_SEQ")
	case t.sequence > n.queuable(from.Sequence, t.account) && before == nil && waits:
		return refuse("telCAN_NOT_QUEUE")
	case t.sequence > n.queuable(from.Sequence, t.account) && before == nil:
		return refuse("terPRE_SEQ")
	case t.last > 0 && int64(t.last) < next:
		return refuse("tefMAX_LEDGER")
	case m.fee < BaseFee:
		return refuse("telINSUF_FEE_P")
	case from.Drops < m.fee:
		return refuse("terINSUF_FEE_B")
	}
	if m.fee >= n.openFee && t.sequence == from.Sequence {
		result, _, _ := t.execute(s, next)
		return verdict{result: result, applied: true}
	}
	switch {
	case t.last > 0 && int64(t.last) < next+2:
		return refuse("telCAN_NOT_QUEUE")
	case before != nil && t.fee*4 <= before.fee*5:
		return refuse("telCAN_NOT_QUEUE_FEE")
	}
	return verdict{result: "terQUEUED", queued: true}
}

// queuable is the first sequence of an account that nothing in the queue uses.
func (n *Node) queuable(next uint32, account string) uint32 {
	used := map[uint32]bool{}
	for _, p := range n.pool {
		if p.queued && p.account == account {
			used[p.sequence] = true
		}
	}
	for used[next] {
		next++
	}
	return next
}

// codes are the numbers of results.
var codes = map[string]int{
	"tesSUCCESS": 0, "tecUNFUNDED_PAYMENT": 104, "tecNO_DST_INSUF_XRP": 125, "tecNO_PERMISSION": 139, "tecDST_TAG_NEEDED": 143,
	"telINSUF_FEE_P": -394, "telCAN_NOT_QUEUE": -392, "telCAN_NOT_QUEUE_FEE": -388, "telWRONG_NETWORK": -386,
	"telREQUIRES_NETWORK_ID": -385, "telNETWORK_ID_MAKES_TX_NON_CANONICAL": -384, "temBAD_AMOUNT": -298, "temBAD_FEE": -295,
	"temREDUNDANT": -275, "tefALREADY": -198, "tefPAST_SEQ": -190, "tefMAX_LEDGER": -187, "terINSUF_FEE_B": -97, "terNO_ACCOUNT": -96,
	"terPRE_SEQ": -92, "terQUEUED": -89,
}

func (n *Node) transaction(m *message, blob []byte) *tx {
	hash := strings.ToUpper(hex.EncodeToString(sha512half(append([]byte("TXN\x00"), blob...))))
	j := object{
		"Account": m.account, "Fee": fmt.Sprint(m.fee), "Flags": m.number[fieldFlags], "Sequence": m.number[fieldSequence],
		"SigningPubKey":   strings.ToUpper(hex.EncodeToString(m.key)),
		"TransactionType": "AccountSet", "TxnSignature": strings.ToUpper(hex.EncodeToString(m.signature)),
	}
	if m.kind == 0 {
		j["TransactionType"], j["Destination"], j["Amount"] = "Payment", m.destination, fmt.Sprint(m.amount)
		j["DeliverMax"] = j["Amount"] // added by the server, but in the answer to submit
	}
	for name, number := range map[string]int{"DestinationTag": fieldTag, "LastLedgerSequence": fieldLastLedger, "NetworkID": fieldNetworkID} {
		if m.has[number] {
			j[name] = m.number[number]
		}
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
	case from.Drops+m.fee-m.amount < max(Reserve+OwnerReserve*from.Owned, m.fee): // the fee may come out of the reserve
		return "tecUNFUNDED_PAYMENT", delivery{}
	case to.Flags&DepositAuth != 0 && (m.amount > Reserve || to.Drops > Reserve): // a little always gets in
		return "tecNO_PERMISSION", delivery{}
	case to.Sequence == 0:
		to.Sequence = uint32(at)
	}
	from.Drops -= m.amount
	to.Drops += m.amount
	s[m.account], s[m.destination] = from, to
	return "tesSUCCESS", delivery{told: fmt.Sprint(m.amount)}
}
