package signerd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// The bounds of a question, on both sides.
const (
	maxRequests = 100
	maxBody     = 16 << 20
	maxAnswer   = 8 << 20
	maxAlso     = 1_000
	maxParts    = 10_000 // digests of a request, hints of a question
	maxID       = 200    // bytes of the name of an intent or attempt: what a store takes
)

const (
	signPath   = "/v1/sign"
	healthPath = "/v1/health"
)

// question is the body of POST /v1/sign.
type question struct {
	Requests requests `json:"requests"`
	Hints    hintList `json:"hints,omitempty"`
}

// The lists of a question. A body of empty entries takes hundreds of times its size as
// values, so that what is too long is refused before it is read to its end.
type (
	requests []request
	intents  []intent
	digests  []digest
	hintList []hint
)

func (l *requests) UnmarshalJSON(b []byte) error { return readList(b, maxRequests, (*[]request)(l)) }
func (l *intents) UnmarshalJSON(b []byte) error  { return readList(b, maxAlso, (*[]intent)(l)) }
func (l *digests) UnmarshalJSON(b []byte) error  { return readList(b, maxParts, (*[]digest)(l)) }
func (l *hintList) UnmarshalJSON(b []byte) error { return readList(b, maxParts, (*[]hint)(l)) }

// readList reads a list of at most so many.
func readList[T any](b []byte, most int, out *[]T) error {
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	first, err := in.Token()
	switch {
	case err != nil || first == nil:
		return err
	case first != json.Delim('['):
		return fmt.Errorf("%v stands where a list is expected", first)
	}
	for in.More() {
		if len(*out) == most {
			return fmt.Errorf("a list has more than %d entries", most)
		}
		var v T
		if err := in.Decode(&v); err != nil {
			return err
		}
		*out = append(*out, v)
	}
	return nil
}

// hint names the key of an address that a payload pays. The signer derives and compares.
type hint struct {
	Network chain.Network `json:"network"`
	Address chain.Address `json:"address"`
	Key     chain.KeyRef  `json:"key"`
}

// request is chain.SignRequest without what the signer reads in the payload itself.
type request struct {
	Intent  intent         `json:"intent"`
	Also    intents        `json:"also,omitempty"`
	Attempt string         `json:"attempt"`
	Network chain.Network  `json:"network"`
	Payload []byte         `json:"payload"`
	Spends  []string       `json:"spends"`
	Digests digests        `json:"digests"`
	Keys    []chain.KeyRef `json:"keys"`
	Endings []string       `json:"endings,omitempty"` // an App of an earlier version sends none
}

// intent has the fields of chain.Intent: the conversion compiles while it has them all.
type intent struct {
	ID            string        `json:"id"`
	Purpose       chain.Purpose `json:"purpose"`
	Tenant        string        `json:"tenant"`
	Network       chain.Network `json:"network"`
	Currency      string        `json:"currency"`
	From          chain.Address `json:"from,omitempty"`
	FromKey       chain.KeyRef  `json:"from_key,omitempty"`
	Payer         chain.Address `json:"payer,omitempty"`
	PayerKey      chain.KeyRef  `json:"payer_key,omitempty"`
	To            chain.Address `json:"to"`
	Memo          string        `json:"memo,omitempty"`
	Amount        ledger.Amount `json:"amount"`
	All           bool          `json:"all,omitempty"`
	MaxCost       ledger.Amount `json:"max_cost"`
	Confirmations int64         `json:"confirmations,omitempty"`
	Mandate       string        `json:"mandate,omitempty"`
}

type digest struct {
	Hash  string        `json:"hash"` // hex
	From  chain.Address `json:"from"`
	Whole bool          `json:"whole,omitempty"`
}

// reply is the body of an answer to a question that was understood.
type reply struct {
	Answers []answer `json:"answers"` // one per request
}

// answer has signatures, or why there are none.
type answer struct {
	Signatures [][]byte `json:"signatures,omitempty"`
	Refused    string   `json:"refused,omitempty"` // for good
	Failed     string   `json:"failed,omitempty"`  // ask again
}

// health is the body of GET /v1/health.
type health struct {
	OK    bool   `json:"ok"`
	Lines int64  `json:"lines"` // of the log
	Hash  string `json:"hash"`  // of its last line
	Error string `json:"error,omitempty"`
}

func toWire(r chain.SignRequest) request {
	out := request{
		Intent: intent(r.Intent), Attempt: r.Attempt, Network: r.Unsigned.Network, Payload: r.Unsigned.Payload,
		Spends: r.Unsigned.Spends, Keys: r.Keys, Endings: r.Endings,
	}
	for _, also := range r.Also {
		out.Also = append(out.Also, intent(also))
	}
	for _, d := range r.Unsigned.Digests {
		out.Digests = append(out.Digests, digest{hex.EncodeToString(d.Hash[:]), d.From, d.Whole})
	}
	return out
}

func (r *request) fromWire() (chain.SignRequest, error) {
	out := chain.SignRequest{
		Intent: chain.Intent(r.Intent), Attempt: r.Attempt, Keys: r.Keys, Endings: r.Endings,
		Unsigned: chain.Unsigned{Network: r.Network, Payload: r.Payload, Spends: r.Spends},
	}
	if len(r.Intent.ID) > maxID || len(r.Attempt) > maxID {
		return out, fmt.Errorf("the names of an intent and an attempt have at most %d bytes", maxID)
	}
	for _, also := range r.Also {
		out.Also = append(out.Also, chain.Intent(also))
	}
	for _, d := range r.Digests {
		hash, err := hex.DecodeString(d.Hash)
		if err != nil || len(hash) != len(chain.Digest{}.Hash) {
			return out, fmt.Errorf("a digest of attempt %q is not 32 bytes in hex", r.Attempt)
		}
		out.Unsigned.Digests = append(out.Unsigned.Digests, chain.Digest{Hash: [32]byte(hash), From: d.From, Whole: d.Whole})
	}
	return out, nil
}
