package mandate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Ending is what became of transactions of an order, so that the order may be paid by another
// one that excludes none of them. Whoever asked the chain makes it, and a signer that has
// signed them checks it.
type Ending struct {
	Store   string        `json:"store"` // id of the store that the order was given in
	Network chain.Network `json:"network"`
	Order   string        `json:"order"`
	// Dead can never pay the order: they can never be included in a block, or were, and did not.
	Dead []Attempt `json:"dead,omitempty"`
	// Landed is in a block for good and has not paid the order, "" = none. What spends the
	// same nonce or input is dead by it.
	Landed Attempt `json:"landed,omitzero"`
	// Reverted: Landed would have paid the order, and its block undid it.
	Reverted bool `json:"reverted,omitempty"`
	// Back was signed and pays nobody: once it has landed, the order's nonce or coins are ours
	// again. "" = none.
	Back Attempt `json:"back,omitzero"`
	// By is the hash of a transaction that took what those of Dead spend, and is none of the order's. It
	// may have paid the order, which waits until a person has looked. "" = there is none.
	By string `json:"by,omitempty"`
	// Off: an operator has said that nothing has paid the order, and nothing is to.
	Off bool `json:"off,omitempty"`
}

// Attempt names a transaction that was signed.
type Attempt struct {
	ID     string `json:"id"`     // chain.SignRequest.Attempt
	Tx     string `json:"tx"`     // hash
	Spends string `json:"spends"` // SpendsOf of what it spends
}

// SpendsOf covers what a transaction spends, in any order: hex SHA-256.
func SpendsOf(spends []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(spends)), "\n")))
	return hex.EncodeToString(sum[:])
}

// endings is the first field of the text of an Ending: its version.
const endings = "ending-1"

// SealEnding returns an Ending as text, with a MAC.
func (k Keys) SealEnding(e Ending) (string, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("mandate: %w", err)
	}
	return strings.Join([]string{
		endings, k[0].ID, base64.RawURLEncoding.EncodeToString(body), base64.RawURLEncoding.EncodeToString(macEnding(k[0].Secret, body)),
	}, "/"), nil
}

// CheckEnding reads the text of an Ending: ErrKey or ErrForged where none of the keys made it.
func (k Keys) CheckEnding(text string) (Ending, error) {
	e, key, body, mac, err := readEnding(text)
	if err != nil {
		return Ending{}, err
	}
	at := slices.IndexFunc(k, func(k Key) bool { return k.ID == key })
	switch {
	case at < 0:
		return Ending{}, fmt.Errorf("%w: its key is %s", ErrKey, key)
	case !hmac.Equal(mac, macEnding(k[at].Secret, body)):
		return Ending{}, ErrForged
	}
	return e, nil
}

// Read reads the text of an Ending and does not check it: it proves nothing.
func (e *Ending) Read(text string) (err error) {
	*e, _, _, _, err = readEnding(text)
	return err
}

func readEnding(text string) (e Ending, key string, body, mac []byte, err error) {
	f := strings.Split(text, "/")
	if len(f) != 4 || f[0] != endings {
		return e, "", nil, nil, fmt.Errorf("%w: it cannot be read", ErrForged)
	}
	body, errBody := base64.RawURLEncoding.Strict().DecodeString(f[2])
	mac, errMAC := base64.RawURLEncoding.Strict().DecodeString(f[3])
	if errors.Join(errBody, errMAC, json.Unmarshal(body, &e)) != nil {
		return Ending{}, "", nil, nil, fmt.Errorf("%w: it cannot be read", ErrForged)
	}
	return e, f[1], body, mac, nil
}

// RenewEnding seals an Ending with the newest key: it returns the text as it is if that made
// it, and the error of CheckEnding.
func (k Keys) RenewEnding(text string) (string, error) {
	e, err := k.CheckEnding(text)
	if err != nil || strings.HasPrefix(text, endings+"/"+k[0].ID+"/") {
		return text, err
	}
	return k.SealEnding(e)
}

// macEnding covers a text that no mandate covers.
func macEnding(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	text(h, "cryptopay "+endings)
	number(h, int64(len(body)))
	_, _ = h.Write(body) // a hash never fails
	return h.Sum(nil)
}
