package cardano

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/crypto/blake2b"
)

// The writing of what we sign is deterministic (RFC 8949 §4.2.1): one transaction has one
// writing, and the same order makes the same bytes everywhere. What others wrote is read in
// whatever writing they chose, and hashed as it is.
var (
	writing = func() cbor.EncMode {
		m, err := cbor.CoreDetEncOptions().EncMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
	reading = func() cbor.DecMode {
		m, err := cbor.DecOptions{
			MaxNestedLevels: 65_535, MaxArrayElements: 1 << 20, MaxMapPairs: 1 << 20, // a stranger nests as deep as a transaction has room
			IntDec: cbor.IntDecConvertNone,
			UTF8:   cbor.UTF8DecodeInvalid,
		}.DecMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
)

// setTag is what Conway's sets begin with.
const setTag = 258

// outpoint names an output.
type outpoint struct {
	id    [32]byte
	index uint32
}

func (o outpoint) String() string {
	return hex.EncodeToString(o.id[:]) + ":" + strconv.FormatUint(uint64(o.index), 10)
}

func (o outpoint) compare(p outpoint) int {
	return cmp.Or(bytes.Compare(o.id[:], p.id[:]), cmp.Compare(o.index, p.index))
}

func parseOutpoint(s string) (o outpoint, err error) {
	id, index, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(index, 10, 16) // a transaction has few outputs
	raw, ok := parseHash(id)
	if err != nil || !ok || strconv.FormatUint(n, 10) != index {
		return o, fmt.Errorf("cardano: %.80q is no outpoint", s)
	}
	return outpoint{raw, uint32(n)}, nil
}

// parseHash reads 32 bytes in small hex.
func parseHash(s string) (h [32]byte, ok bool) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(h) || strings.ToLower(s) != s {
		return h, false
	}
	return [32]byte(raw), true
}

func digest(b []byte) [32]byte { return blake2b.Sum256(b) }

// assets are native tokens: of a policy (28 bytes), by name (at most 32 bytes).
type assets map[cbor.ByteString]map[cbor.ByteString]uint64

func (a assets) add(more assets) error {
	for policy, names := range more {
		if a[policy] == nil {
			a[policy] = map[cbor.ByteString]uint64{}
		}
		for name, n := range names {
			sum := a[policy][name] + n
			if sum < n || sum > 1<<63-1 {
				return errors.New("more of a token than an output can hold")
			}
			a[policy][name] = sum
		}
	}
	return nil
}

// token is one of the native tokens of an output.
type token struct {
	contract string // policy in hex, a dot and the name in hex, as Kupo writes them
	quantity uint64
}

// list is sorted by contract.
func (a assets) list() (out []token) {
	for policy, names := range a {
		for name, n := range names {
			out = append(out, token{hex.EncodeToString([]byte(policy)) + "." + hex.EncodeToString([]byte(name)), n})
		}
	}
	slices.SortFunc(out, func(a, b token) int { return strings.Compare(a.contract, b.contract) })
	return out
}

// output is one of a transaction.
type output struct {
	index   uint32
	address []byte
	coin    uint64
	tokens  assets
	script  bool // a script is kept in it: to spend it costs more
}

// tx is what a transaction on the chain says, as far as it matters here.
type tx struct {
	id      string
	spends  []outpoint
	outputs []output
	fee     uint64
	memo    string
}

// elements reads an array, or a set.
func elements(raw cbor.RawMessage) (out []cbor.RawMessage, err error) {
	var tagged cbor.RawTag
	if reading.Unmarshal(raw, &tagged) == nil {
		if tagged.Number != setTag {
			return nil, errors.New("a tag that is none of a set")
		}
		raw = tagged.Content
	}
	return out, reading.Unmarshal(raw, &out)
}

// Keys of a body and of an output.
const (
	keyInputs, keyOutputs, keyFee, keyTTL, keyAuxiliary = 0, 1, 2, 3, 7
	keyCollateral, keyCollateralReturn                  = 13, 16

	outAddress, outValue, outScript = 0, 1, 3
)

// readTx reads a transaction of any era from Shelley on. One of a form that no era has yet is
// an error: passed over, it could be a deposit that nobody sees.
func readTx(raw []byte) (*tx, error) {
	var parts []cbor.RawMessage
	if err := reading.Unmarshal(raw, &parts); err != nil || len(parts) < 3 {
		return nil, errors.New("it is no transaction")
	}
	valid := true
	if len(parts) > 3 && reading.Unmarshal(parts[2], &valid) != nil {
		return nil, errors.New("it does not say whether its scripts agreed")
	}
	id := digest(parts[0])
	t := &tx{id: hex.EncodeToString(id[:])}
	var body map[uint64]cbor.RawMessage
	if err := reading.Unmarshal(parts[0], &body); err != nil {
		return nil, errors.New("its body is no map")
	}
	var err error
	inputs := body[keyInputs]
	if !valid { // only what it left as a surety is taken
		inputs = body[keyCollateral]
	}
	if t.spends, err = readInputs(inputs); err != nil {
		return nil, err
	}
	if body[keyFee] != nil && reading.Unmarshal(body[keyFee], &t.fee) != nil {
		return nil, errors.New("its fee is no number")
	}
	outs, err := elements(body[keyOutputs])
	if err != nil {
		return nil, errors.New("its outputs are no list")
	}
	if !valid {
		if body[keyCollateralReturn] != nil {
			o, err := readOutput(body[keyCollateralReturn])
			if err != nil {
				return nil, err
			}
			o.index = uint32(len(outs)) //nolint:gosec // few
			t.outputs = append(t.outputs, o)
		}
		return t, nil
	}
	for i, raw := range outs {
		o, err := readOutput(raw)
		if err != nil {
			return nil, err
		}
		o.index = uint32(i) //nolint:gosec // few
		t.outputs = append(t.outputs, o)
	}
	if len(parts) > 3 {
		t.memo = readMemo(parts[3])
	} else {
		t.memo = readMemo(parts[2])
	}
	return t, nil
}

func readInputs(raw cbor.RawMessage) ([]outpoint, error) {
	list, err := elements(raw)
	if err != nil {
		return nil, errors.New("its inputs are no list")
	}
	out := make([]outpoint, len(list))
	for i, raw := range list {
		var in struct {
			_     struct{} `cbor:",toarray"`
			ID    []byte
			Index uint32
		}
		if reading.Unmarshal(raw, &in) != nil || len(in.ID) != 32 {
			return nil, errors.New("an input is none")
		}
		out[i] = outpoint{[32]byte(in.ID), in.Index}
	}
	return out, nil
}

func readOutput(raw cbor.RawMessage) (o output, err error) {
	var fields map[uint64]cbor.RawMessage
	var old []cbor.RawMessage
	switch {
	case reading.Unmarshal(raw, &old) == nil && len(old) >= 2:
		fields = map[uint64]cbor.RawMessage{outAddress: old[0], outValue: old[1]}
	case reading.Unmarshal(raw, &fields) != nil:
		return o, errors.New("an output is none")
	}
	o.script = fields[outScript] != nil
	if err := reading.Unmarshal(fields[outAddress], &o.address); err != nil {
		return o, err
	}
	o.coin, o.tokens, err = readValue(fields[outValue])
	return o, err
}

func readValue(raw cbor.RawMessage) (coin uint64, tokens assets, err error) {
	if reading.Unmarshal(raw, &coin) != nil {
		var both []cbor.RawMessage
		if reading.Unmarshal(raw, &both) != nil || len(both) != 2 || reading.Unmarshal(both[0], &coin) != nil || reading.Unmarshal(both[1], &tokens) != nil {
			return 0, nil, errors.New("a value is none")
		}
	}
	if coin > maxLovelace {
		return 0, nil, errors.New("more ada than there is")
	}
	return coin, tokens, nil
}

// memoLabel is that of messages to people (CIP-20).
const (
	memoLabel = 674
	memoLine  = 64   // bytes, the most that a text of metadata has
	maxMemo   = 1024 // bytes of a memo that is sent
)

// readMemo is the message of auxiliary data, its lines joined: how a longer memo than a line
// is written. "" = there is none, or none that can be read.
func readMemo(raw cbor.RawMessage) string {
	var tagged cbor.RawTag
	if reading.Unmarshal(raw, &tagged) == nil { // Alonzo's form: a map of parts
		var parts map[uint64]cbor.RawMessage
		if reading.Unmarshal(tagged.Content, &parts) != nil {
			return ""
		}
		raw = parts[0]
	}
	var mary []cbor.RawMessage
	if reading.Unmarshal(raw, &mary) == nil && len(mary) > 0 {
		raw = mary[0]
	}
	var labels map[uint64]cbor.RawMessage
	if reading.Unmarshal(raw, &labels) != nil {
		return ""
	}
	var message map[string]cbor.RawMessage
	var lines []string
	if reading.Unmarshal(labels[memoLabel], &message) != nil || reading.Unmarshal(message["msg"], &lines) != nil {
		return ""
	}
	memo := strings.Join(lines, "")
	if !utf8.ValidString(memo) {
		return ""
	}
	return memo
}

// writeMemo is auxiliary data with a message; nil for none.
func writeMemo(memo string) (cbor.RawMessage, error) {
	switch {
	case memo == "":
		return nil, nil
	case len(memo) > maxMemo || !utf8.ValidString(memo) || strings.ContainsRune(memo, 0):
		return nil, fmt.Errorf("the memo must be text of at most %d bytes", maxMemo)
	}
	var lines []string
	for rest := memo; rest != ""; {
		n := min(len(rest), memoLine)
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n-- // a letter is not torn
		}
		lines, rest = append(lines, rest[:n]), rest[n:]
	}
	return writing.Marshal(map[uint64]map[string][]string{memoLabel: {"msg": lines}})
}

// wireInput, wireOutput and wireBody are what we write: the order of fields is that of the
// ledger's own keys.
type wireInput struct {
	_     struct{} `cbor:",toarray"`
	ID    []byte
	Index uint32
}

type wireOutput struct {
	_       struct{} `cbor:",toarray"`
	Address []byte
	Value   cbor.RawMessage
}

type wireBody struct {
	Inputs    cbor.Tag     `cbor:"0,keyasint"`
	Outputs   []wireOutput `cbor:"1,keyasint"`
	Fee       uint64       `cbor:"2,keyasint"`
	TTL       uint64       `cbor:"3,keyasint"`
	Auxiliary []byte       `cbor:"7,keyasint,omitempty"`
}

// pay is an output that we make.
type pay struct {
	address []byte
	coin    uint64
	tokens  assets
	change  bool
}

func (p *pay) wire() (wireOutput, error) {
	var value any = p.coin
	if len(p.tokens) > 0 {
		value = []any{p.coin, p.tokens}
	}
	raw, err := writing.Marshal(value)
	return wireOutput{Address: p.address, Value: raw}, err
}

// size is how many bytes the output takes.
func (p *pay) size() (int64, error) {
	w, err := p.wire()
	if err != nil {
		return 0, err
	}
	raw, err := writing.Marshal(w)
	return int64(len(raw)), err
}

// draft is a transaction of ours, before it is signed.
type draft struct {
	from      []source // sorted by outpoint
	pays      []pay
	fee, ttl  uint64
	auxiliary cbor.RawMessage
}

// source is an input, the address that it is taken from, and the public key behind that.
type source struct {
	at      outpoint
	address []byte
	key     []byte
}

func (d *draft) body() ([]byte, error) {
	b := wireBody{Fee: d.fee, TTL: d.ttl}
	inputs := make([]wireInput, len(d.from))
	for i, s := range d.from {
		inputs[i] = wireInput{ID: s.at.id[:], Index: s.at.index}
	}
	b.Inputs = cbor.Tag{Number: setTag, Content: inputs}
	for i := range d.pays {
		w, err := d.pays[i].wire()
		if err != nil {
			return nil, err
		}
		b.Outputs = append(b.Outputs, w)
	}
	if d.auxiliary != nil {
		sum := digest(d.auxiliary)
		b.Auxiliary = sum[:]
	}
	return writing.Marshal(b)
}

// keys are the different ones that must sign, in the order of the inputs.
func (d *draft) keys() (out [][]byte) {
	for _, s := range d.from {
		if !slices.ContainsFunc(out, func(k []byte) bool { return bytes.Equal(k, s.key) }) {
			out = append(out, s.key)
		}
	}
	return out
}

type wireWitness struct {
	_         struct{} `cbor:",toarray"`
	Key       []byte
	Signature []byte
}

type wireWitnesses struct {
	Keys cbor.Tag `cbor:"0,keyasint"`
}

type wireTx struct {
	_         struct{} `cbor:",toarray"`
	Body      cbor.RawMessage
	Witnesses wireWitnesses
	Valid     bool
	Auxiliary cbor.RawMessage
}

// seal is the signed transaction, of one signature for each of keys.
func (d *draft) seal(signatures [][]byte) ([]byte, error) {
	body, err := d.body()
	if err != nil {
		return nil, err
	}
	keys := d.keys()
	all := make([]wireWitness, len(keys))
	for i, k := range keys {
		all[i] = wireWitness{Key: k, Signature: signatures[i]}
	}
	aux := d.auxiliary
	if aux == nil {
		aux = cbor.RawMessage{0xf6} // null
	}
	return writing.Marshal(wireTx{Body: body, Witnesses: wireWitnesses{cbor.Tag{Number: setTag, Content: all}}, Valid: true, Auxiliary: aux})
}

// size is that of the signed transaction.
func (d *draft) size() (int64, error) {
	signatures := make([][]byte, len(d.keys()))
	for i := range signatures {
		signatures[i] = make([]byte, 64)
	}
	raw, err := d.seal(signatures)
	return int64(len(raw)), err
}
