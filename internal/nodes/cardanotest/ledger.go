package cardanotest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/crypto/blake2b"
)

// The rules are those of the ledger's Conway era (IntersectMBO/cardano-ledger, the UTXO and UTXOW
// transitions and conway.cddl), of transactions that only move ada and native tokens. What
// they do besides (certificates, scripts, votes) is refused: no test needs it.

// Protocol parameters, the main network's.
const (
	minFeeA          = 44
	minFeeB          = 155_381
	maxTxSize        = 16_384
	maxValSize       = 5_000
	coinsPerUTxOByte = 4_310
)

// ref names an output.
type ref struct {
	tx    string
	index uint64
}

// out is an output of the ledger.
type out struct {
	address []byte
	coin    uint64
	tokens  map[string]uint64 // by policy and name, in hex, a dot between
	script  bool
	size    int // of its bytes in the transaction
	value   int // of the bytes of its value
}

// move is a transaction.
type move struct {
	id     string
	raw    []byte
	inputs []ref
	outs   []out
	fee    uint64
	before uint64 // from this slot on it can land
	until  uint64 // from this slot on it cannot; 0 = never
	signed map[string]bool
}

// refusal is why the ledger does not take a transaction: the name of its rule.
type refusal struct {
	code int
	rule string
}

func (r *refusal) Error() string { return r.rule }

func refuse(code int, rule string, args ...any) error {
	return &refusal{code, fmt.Sprintf(rule, args...)}
}

var strict = func() cbor.DecMode {
	m, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 1024}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

func hash256(b []byte) string { h := blake2b.Sum256(b); return hex.EncodeToString(h[:]) }

func keyHash(key []byte) []byte {
	h, err := blake2b.New(28, nil)
	if err != nil {
		panic(err)
	}
	h.Write(key)
	return h.Sum(nil)
}

const malformed = 3000

// decode reads a transaction as the node's decoder does: whole, of known fields, without a
// member of a set twice.
func decode(raw []byte) (*move, error) {
	bad := func(what string, args ...any) (*move, error) {
		return nil, refuse(malformed, "DeserialiseFailure: "+what, args...)
	}
	var parts []cbor.RawMessage
	if err := strict.Unmarshal(raw, &parts); err != nil || len(parts) != 4 {
		return bad("a transaction is a list of four")
	}
	m := &move{id: hash256(parts[0]), raw: raw, signed: map[string]bool{}}
	var body map[uint64]cbor.RawMessage
	if err := strict.Unmarshal(parts[0], &body); err != nil {
		return bad("body: %v", err)
	}
	var auxiliary []byte
	for key, value := range body {
		var err error
		switch key {
		case 0:
			m.inputs, err = inputs(value)
		case 1:
			m.outs, err = outputs(value)
		case 2:
			err = strict.Unmarshal(value, &m.fee)
		case 3:
			err = strict.Unmarshal(value, &m.until)
		case 7:
			err = strict.Unmarshal(value, &auxiliary)
		case 8:
			err = strict.Unmarshal(value, &m.before)
		default:
			err = fmt.Errorf("field %d is beyond this model", key)
		}
		if err != nil {
			return bad("body: %v", err)
		}
	}
	for _, needed := range []uint64{0, 1, 2} {
		if body[needed] == nil {
			return bad("body: field %d is missing", needed)
		}
	}
	var valid bool
	if strict.Unmarshal(parts[2], &valid) != nil || !valid {
		return bad("it has no scripts that could disagree")
	}
	if err := m.metadata(parts[3], auxiliary); err != nil {
		return nil, err
	}
	return m, m.witnesses(parts[1])
}

// set reads a list, tagged as one or not, whose members differ.
func set(raw cbor.RawMessage) (list []cbor.RawMessage, err error) {
	if raw[0] == 0xd9 { // two bytes of a tag
		var t cbor.RawTag
		if err := strict.Unmarshal(raw, &t); err != nil || t.Number != 258 {
			return nil, fmt.Errorf("a set has tag 258")
		}
		raw = t.Content
	}
	if err := strict.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for i := range list {
		for j := range i {
			if bytes.Equal(list[i], list[j]) {
				return nil, fmt.Errorf("a member of a set is there twice")
			}
		}
	}
	return list, nil
}

func inputs(raw cbor.RawMessage) (all []ref, err error) {
	list, err := set(raw)
	for _, x := range list {
		var pair []cbor.RawMessage
		var id []byte
		var index uint16
		if strict.Unmarshal(x, &pair) != nil || len(pair) != 2 || strict.Unmarshal(pair[0], &id) != nil || len(id) != 32 || strict.Unmarshal(pair[1], &index) != nil {
			return nil, fmt.Errorf("an input is none")
		}
		all = append(all, ref{hex.EncodeToString(id), uint64(index)})
	}
	return all, err
}

func outputs(raw cbor.RawMessage) (all []out, err error) {
	var list []cbor.RawMessage
	if err := strict.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, x := range list {
		o := out{size: len(x), tokens: map[string]uint64{}}
		var value cbor.RawMessage
		switch x[0] >> 5 {
		case 4: // Alonzo's form
			var parts []cbor.RawMessage
			if strict.Unmarshal(x, &parts) != nil || len(parts) < 2 || len(parts) > 3 || strict.Unmarshal(parts[0], &o.address) != nil {
				return nil, fmt.Errorf("an output is none")
			}
			value = parts[1]
		case 5: // Babbage's
			var parts map[uint64]cbor.RawMessage
			if strict.Unmarshal(x, &parts) != nil || strict.Unmarshal(parts[0], &o.address) != nil || parts[1] == nil {
				return nil, fmt.Errorf("an output is none")
			}
			value, o.script = parts[1], parts[3] != nil
		default:
			return nil, fmt.Errorf("an output is none")
		}
		o.value = len(value)
		if err := o.read(value); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

func (o *out) read(value cbor.RawMessage) error {
	if value[0]>>5 == 0 {
		return strict.Unmarshal(value, &o.coin)
	}
	var both []cbor.RawMessage
	var tokens map[cbor.ByteString]map[cbor.ByteString]uint64
	if strict.Unmarshal(value, &both) != nil || len(both) != 2 || strict.Unmarshal(both[0], &o.coin) != nil || strict.Unmarshal(both[1], &tokens) != nil {
		return fmt.Errorf("a value is none")
	}
	for policy, names := range tokens {
		if len(policy) != 28 || len(names) == 0 {
			return fmt.Errorf("a policy has 28 bytes, and tokens")
		}
		for name, n := range names {
			if len(name) > 32 || n == 0 {
				return fmt.Errorf("a token's name has at most 32 bytes, and there is one")
			}
			o.tokens[hex.EncodeToString([]byte(policy))+"."+hex.EncodeToString([]byte(name))] = n
		}
	}
	return nil
}

func (m *move) metadata(raw cbor.RawMessage, sum []byte) error {
	if len(raw) == 1 && raw[0] == 0xf6 {
		if sum != nil {
			return refuse(3106, "MissingTxMetadata")
		}
		return nil
	}
	switch {
	case sum == nil:
		return refuse(3105, "MissingTxBodyMetadataHash")
	case hex.EncodeToString(sum) != hash256(raw):
		return refuse(3107, "ConflictingMetadataHash")
	}
	var labels map[uint64]any
	if err := strict.Unmarshal(raw, &labels); err != nil {
		return refuse(malformed, "DeserialiseFailure: metadata: %v", err)
	}
	for _, v := range labels {
		if !short(v) {
			return refuse(3108, "InvalidMetadata: a text or bytes of more than 64 bytes")
		}
	}
	return nil
}

func short(v any) bool {
	switch x := v.(type) {
	case string:
		return len(x) <= 64 && utf8.ValidString(x)
	case []byte:
		return len(x) <= 64
	case []any:
		for _, y := range x {
			if !short(y) {
				return false
			}
		}
	case map[any]any:
		for k, y := range x {
			if !short(k) || !short(y) {
				return false
			}
		}
	}
	return true
}

func (m *move) witnesses(raw cbor.RawMessage) error {
	var sets map[uint64]cbor.RawMessage
	if err := strict.Unmarshal(raw, &sets); err != nil || len(sets) > 1 || len(sets) == 1 && sets[0] == nil {
		return refuse(malformed, "DeserialiseFailure: witnesses beyond this model")
	}
	if sets[0] == nil {
		return nil
	}
	list, err := set(sets[0])
	if err != nil {
		return refuse(malformed, "DeserialiseFailure: witnesses: %v", err)
	}
	id, err := hex.DecodeString(m.id)
	if err != nil {
		return err
	}
	for _, x := range list {
		var pair [][]byte
		if strict.Unmarshal(x, &pair) != nil || len(pair) != 2 || len(pair[0]) != 32 || len(pair[1]) != 64 {
			return refuse(malformed, "DeserialiseFailure: a witness is none")
		}
		if !ed25519.Verify(pair[0], id, pair[1]) {
			return refuse(3100, "InvalidWitnessesUTXOW")
		}
		m.signed[hex.EncodeToString(keyHash(pair[0]))] = true
	}
	return nil
}

// judge is whether a transaction can be in a block of a slot, on top of a set of outputs.
func (m *move) judge(utxo map[ref]out, slot uint64) error {
	if slot < m.before || m.until != 0 && slot >= m.until {
		return refuse(3118, "OutsideValidityIntervalUTxO")
	}
	if len(m.inputs) == 0 {
		return refuse(3121, "InputSetEmptyUTxO")
	}
	var consumed, produced uint64
	tokens := map[string]int64{}
	for _, r := range m.inputs {
		o, ok := utxo[r]
		if !ok {
			return refuse(3117, "BadInputsUTxO: %s#%d", r.tx, r.index)
		}
		consumed += o.coin
		for k, n := range o.tokens {
			tokens[k] += int64(n)
		}
		if o.address[0]>>4&1 != 0 || o.address[0]>>4 == 8 || !m.signed[hex.EncodeToString(o.address[1:29])] {
			return refuse(3101, "MissingVKeyWitnessesUTXOW")
		}
		if o.script {
			return refuse(3122, "FeeTooSmallUTxO: a reference script is paid for by its bytes")
		}
	}
	if least := uint64(minFeeA*len(m.raw) + minFeeB); m.fee < least {
		return refuse(3122, "FeeTooSmallUTxO: %d of %d", m.fee, least)
	}
	for _, o := range m.outs {
		produced += o.coin
		for k, n := range o.tokens {
			tokens[k] -= int64(n)
		}
		switch {
		case o.value > maxValSize:
			return refuse(3120, "OutputTooBigUTxO")
		case o.coin < uint64(coinsPerUTxOByte*(160+o.size)):
			return refuse(3125, "BabbageOutputTooSmallUTxO: %d of %d", o.coin, coinsPerUTxOByte*(160+o.size))
		case len(o.address) < 29 || o.address[0]>>4 != 8 && o.address[0]&15 != 1:
			return refuse(3127, "WrongNetwork")
		}
	}
	if consumed != produced+m.fee {
		return refuse(3123, "ValueNotConservedUTxO: %d, not %d", consumed, produced+m.fee)
	}
	for k, n := range tokens {
		if n != 0 {
			return refuse(3123, "ValueNotConservedUTxO: %d of %s", n, k)
		}
	}
	if len(m.raw) > maxTxSize {
		return refuse(3119, "MaxTxSizeUTxO: %d", len(m.raw))
	}
	return nil
}

func (r ref) String() string { return r.tx + ":" + strconv.FormatUint(r.index, 10) }

// apply changes a set of outputs.
func (m *move) apply(utxo map[ref]out) {
	for _, r := range m.inputs {
		delete(utxo, r)
	}
	for i, o := range m.outs {
		utxo[ref{m.id, uint64(i)}] = o
	}
}
