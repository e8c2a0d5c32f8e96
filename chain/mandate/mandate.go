// Package mandate proves that an order to pay was given by somebody who has the host's
// key, and not by somebody who can write to the database alone.
//
//   - The Change that creates a withdrawal makes its mandate: a MAC over what is paid, to
//     whom, for whom, and out of what.
//   - The mandate is stored with the withdrawal and handed over with its chain.Intent.
//   - Whoever pays checks it: a change of any field that it covers makes it wrong.
//
// A mandate covers one order. It says nothing about how often the order was paid: that is
// the signer's registry. The MAC is HMAC-SHA-256 under a key that HKDF derives from one of
// the host's keys, so a signer needs the derived key alone.
package mandate

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Errors of Check. ErrMissing and ErrForged are about the order, ErrKey may be about the
// configuration.
var (
	ErrMissing = errors.New("mandate: the order has none")
	ErrForged  = errors.New("mandate: the order is not the one that was given")
	ErrKey     = errors.New("mandate: no key that is configured made it")
)

// Terms are what a mandate covers. They are compared by ==.
type Terms struct {
	Store     string // id of the store that the order was given in
	Tenant    string
	Order     string // id of the withdrawal and of its intent
	Kind      chain.Purpose
	Network   chain.Network
	Currency  string
	To        chain.Address
	Memo      string // as the network carries it
	Amount    ledger.Amount
	Requested ledger.Amount // what leaves the wallet: Amount and fees
	Wallet    string        // that pays
	Parent    string        // the order that this one completes, "" = none
	By        string        // who asked for it, "" = it was not told
	Decision  string        // of a person about it, in mandates of that kind; else ""
}

// Key makes and checks mandates.
type Key struct {
	ID     string // of the host's key that Secret was derived from
	Secret []byte // 32 bytes
}

// Format hides the secret.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// LogValue hides the secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.ID) }

// Derive makes the Key of one of the host's keys. It opens and seals nothing else.
func Derive(host []byte) Key {
	secret, err := hkdf.Key(sha256.New, host, nil, "cryptopay mandate", sha256.Size)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return Key{ID: KeyID(host), Secret: secret}
}

// KeyID names one of the host's keys without giving it away: 8 hex digits that follow from
// the key.
func KeyID(host []byte) string {
	h := hmac.New(sha256.New, host)
	_, _ = io.WriteString(h, "cryptopay key id")
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Keys are all that are valid. The first is the newest: it makes mandates.
type Keys []Key

// Text is what ReadKeys reads: for each key a line with its id and its secret, in hex. It is a
// secret itself: who has it can order payouts.
func (k Keys) Text() []byte {
	var out []byte
	for _, key := range k {
		out = fmt.Appendf(out, "%s %x\n", key.ID, key.Secret)
	}
	return out
}

// ReadKeys reads what Text wrote, for a signer on another machine.
func ReadKeys(text []byte) (Keys, error) {
	var out Keys
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		id, secret, _ := strings.Cut(strings.TrimSpace(line), " ")
		key := Key{ID: id}
		var err error
		if key.Secret, err = hex.DecodeString(secret); err != nil || len(key.Secret) != sha256.Size || len(id) != 8 {
			return nil, fmt.Errorf("mandate: line %d must hold the id of a key and %d bytes in hex", n+1, sha256.Size)
		}
		out = append(out, key)
	}
	return out, nil
}

// Make returns the mandate of an order, as text. The text has the fields of Terms that a
// chain.Intent lacks.
func (k Keys) Make(t Terms) string {
	return strings.Join([]string{
		version, k[0].ID, url.PathEscape(t.Store), strconv.FormatInt(int64(t.Requested), 10), url.PathEscape(t.Wallet), url.PathEscape(t.origin()),
		base64.RawURLEncoding.EncodeToString(t.mac(k[0].Secret)),
	}, "/")
}

// version is the first field of a mandate: which fields follow, and how they are covered.
const version = "1"

// Newest reports whether a mandate was made with the newest key.
func (k Keys) Newest(mandate string) bool {
	p, err := parse(mandate)
	return err == nil && p.key == k[0].ID
}

// Check returns nil if a mandate is that of an order: ErrMissing, ErrKey or ErrForged
// otherwise. The error of a key names its id.
func (k Keys) Check(mandate string, t Terms) error {
	if mandate == "" {
		return ErrMissing
	}
	p, err := parse(mandate)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(k, func(k Key) bool { return k.ID == p.key })
	switch {
	case at < 0:
		return fmt.Errorf("%w: its key is %s", ErrKey, p.key)
	case !hmac.Equal(t.mac(k[at].Secret), p.mac), p.terms.Store != t.Store, p.terms.Requested != t.Requested, p.terms.Wallet != t.Wallet, p.terms.Parent != t.Parent, p.terms.By != t.By:
		return ErrForged
	}
	return nil
}

// CheckIntent is Check of an order as a signer sees it. What an Intent lacks is what its
// mandate says.
func (k Keys) CheckIntent(in *chain.Intent) error {
	t, err := Of(in.Mandate)
	if err != nil {
		return err
	}
	t.Tenant, t.Order, t.Kind, t.Network, t.Currency = in.Tenant, in.ID, in.Purpose, in.Network, in.Currency
	t.To, t.Memo, t.Amount = in.To, in.Memo, in.Amount
	return k.Check(in.Mandate, t)
}

// Of returns the Terms that a mandate itself has: Store, Requested, Wallet, Parent and By.
// They prove nothing before Check.
func Of(mandate string) (Terms, error) {
	if mandate == "" {
		return Terms{}, ErrMissing
	}
	p, err := parse(mandate)
	return p.terms, err
}

type parsed struct {
	key   string
	terms Terms
	mac   []byte
}

func parse(mandate string) (p parsed, err error) {
	f := strings.Split(mandate, "/")
	if len(f) != 7 || f[0] != version {
		return p, fmt.Errorf("%w: its mandate cannot be read", ErrForged)
	}
	var errs [5]error
	p.key = f[1]
	p.terms.Store, errs[0] = url.PathUnescape(f[2])
	requested, err := strconv.ParseInt(f[3], 10, 64)
	p.terms.Requested, errs[1] = ledger.Amount(requested), err
	p.terms.Wallet, errs[2] = url.PathUnescape(f[4])
	origin, err := url.PathUnescape(f[5])
	p.terms.Parent, p.terms.By, _ = strings.Cut(origin, "\n")
	errs[3] = err
	p.mac, errs[4] = base64.RawURLEncoding.Strict().DecodeString(f[6])
	if errors.Join(errs[:]...) != nil {
		return p, fmt.Errorf("%w: its mandate cannot be read", ErrForged)
	}
	return p, nil
}

// mac covers every field with its length, in a fixed order, behind the version.
func (t *Terms) mac(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, s := range []string{"cryptopay mandate " + version, t.Store, t.Tenant, t.Order, string(t.Kind), string(t.Network), t.Currency, string(t.To), t.Memo} {
		text(h, s)
	}
	number(h, int64(t.Amount))
	number(h, int64(t.Requested))
	text(h, t.Wallet)
	text(h, t.origin())
	if t.Decision != "" {
		text(h, t.Decision)
	}
	return h.Sum(nil)
}

// origin is Parent and By in the one field that versions before By have for Parent, so that
// their signers check it, too. No id has a line break.
func (t *Terms) origin() string {
	if t.By == "" {
		return t.Parent
	}
	return t.Parent + "\n" + t.By
}

func text(h hash.Hash, s string) {
	number(h, int64(len(s)))
	_, _ = io.WriteString(h, s) // a hash never fails
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}
