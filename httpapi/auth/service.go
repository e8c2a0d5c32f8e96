package auth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Config is what the service is made of. Store, Key or Keys, Now, NewID and Random
// are required.
type Config struct {
	Store storage.Store
	// Keys key the hashes of what is stored, newest first: 32 bytes each. The first one hashes,
	// all verify. What none of them hashed is void. A secret or API key that is used is hashed
	// again with the first; see Service.Unmoved.
	Keys [][]byte
	// Key is a list of one.
	Key    []byte
	Now    func() time.Time
	NewID  func() string
	Random io.Reader // cryptographic; read by one goroutine at a time

	// TokenLife is how long a token is valid, in whole seconds. Defaults to 3600 s.
	TokenLife time.Duration
	// MaxApps is how many applications a tenant may have. Defaults to 100; below 0 is no bound.
	MaxApps int
	// Unsealed reports whether credentials without a seal are accepted now, as those of
	// versions before seals: App.Unsealed. Set it before an upgrade from such a version.
	// Defaults to never.
	Unsealed func(ctx context.Context) (bool, error)
	// Audit records each application and API key that is made or deleted in its Change, and tells
	// the host's consumers of it: App.Audit of the App over the same Store. Defaults to none.
	Audit audit.Record
	// Log hears of credentials that were edited in the database. Defaults to discarding.
	Log *slog.Logger
}

// Service keeps applications, tokens and API keys. All methods may be called
// concurrently, and by several processes over one store.
type Service struct {
	store  storage.Store
	clock  func() time.Time
	newID  func() string
	life   time.Duration
	most   int64           // applications of a tenant, below 0 = no bound
	keyed  []func() []byte // the keys, behind functions: dumpers find nothing
	nobody []byte          // what the secrets of unknown clients are compared with

	unsealed func(ctx context.Context) (bool, error)
	audit    audit.Record
	log      *slog.Logger

	random  sync.Mutex
	source  io.Reader
	guesses guesses
	// acting makes this process's new and deleted credentials take turns: applications draw
	// from one sequence, and all are in one audit log.
	acting sync.Mutex
}

// New checks the Config and makes a Service. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Now == nil || c.NewID == nil || c.Random == nil {
		return nil, errors.New("auth: Config needs Store, Key, Now, NewID and Random")
	}
	if len(c.Keys) == 0 {
		c.Keys = [][]byte{c.Key}
	} else if len(c.Key) > 0 {
		return nil, errors.New("auth: Config has Key and Keys: give one of them")
	}
	var keyed []func() []byte
	for _, k := range c.Keys {
		if len(k) != sha256.Size {
			return nil, fmt.Errorf("auth: Config.Key and each of Config.Keys must have %d bytes, not %d", sha256.Size, len(k))
		}
		key := bytes.Clone(k)
		keyed = append(keyed, func() []byte { return key })
	}
	if c.TokenLife == 0 {
		c.TokenLife = time.Hour
	}
	if c.TokenLife < time.Second || c.TokenLife%time.Second != 0 {
		return nil, fmt.Errorf("auth: Config.TokenLife must be whole seconds, not %s", c.TokenLife)
	}
	s := &Service{
		store: storage.Joined(c.Store), clock: c.Now, newID: c.NewID, life: c.TokenLife, most: int64(cmp.Or(c.MaxApps, maxApps)), source: c.Random,
		keyed: keyed, unsealed: c.Unsealed, audit: c.Audit, log: c.Log,
	}
	if s.unsealed == nil {
		s.unsealed = func(context.Context) (bool, error) { return false, nil }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.nobody = s.mac("nobody")
	return s, nil
}

// Tables lists what this package stores, all of it in the system partition.
func Tables() []*storage.Table {
	return []*storage.Table{applications.Table, tokens.Table, apiKeys.Table, sequences.Table}
}

// now is the clock in the precision of the store.
func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// What hashes are made for: the same text has another hash for each.
const (
	forToken  = "token"
	forKey    = "api key"
	forSecret = "client secret"
	forSeal   = "seal"
)

// mac is the hash of some texts with the newest key.
func (s *Service) mac(purpose string, texts ...string) []byte {
	return macBy(s.keyed[0](), purpose, texts...)
}

// macs are those with every key, newest first.
func (s *Service) macs(purpose string, texts ...string) [][]byte {
	out := make([][]byte, len(s.keyed))
	for i, key := range s.keyed {
		out[i] = macBy(key(), purpose, texts...)
	}
	return out
}

// macBy is the keyed hash of some texts. Each is written with its length, so that
// none can run into the next.
func macBy(key []byte, purpose string, texts ...string) []byte {
	h := hmac.New(sha256.New, key)
	write := func(t string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		_, _ = h.Write(n[:]) // a hash never fails
		_, _ = io.WriteString(h, t)
	}
	write(purpose)
	for _, t := range texts {
		write(t)
	}
	return h.Sum(nil)
}

// rowID is the row of a token or key: who has the rows has no tokens.
func (s *Service) rowID(purpose, secret string) string {
	return hex.EncodeToString(s.mac(purpose, secret))
}

// olderIDs are the rows that a token or key has where an older key of Config hashed it.
func (s *Service) olderIDs(purpose, secret string) (out []string) {
	if len(s.keyed) > 1 {
		for _, mac := range s.macs(purpose, secret)[1:] {
			out = append(out, hex.EncodeToString(mac))
		}
	}
	return out
}

// stored finds the row of a token or key. One that an older key hashed takes a second read.
func stored[T any](ctx context.Context, s *Service, t storage.TableOf[T], purpose, secret string) (v T, row storage.Row, ok bool, err error) {
	v, row, ok, err = t.One(ctx, s.store, storage.System, s.rowID(purpose, secret))
	older := s.olderIDs(purpose, secret)
	if ok || err != nil || len(older) == 0 {
		return v, row, ok, err
	}
	rows, err := s.store.Rows(ctx, t.Table, storage.Keys(storage.System, older...)...)
	if err != nil || len(rows) == 0 {
		return v, row, false, err
	}
	return t.Value(rows[0]), rows[0], true, nil
}

// Made secrets start with what they are, so that scanners of source code and
// logs can tell.
const (
	secretPrefix = "cps_"
	tokenPrefix  = "cpt_"
	keyPrefix    = "cpk_"
	secretBytes  = 32
)

// make draws a secret of 256 bits.
func (s *Service) make(prefix string) (string, error) {
	b, err := s.draw(secretBytes)
	return prefix + base64.RawURLEncoding.EncodeToString(b), err
}

func (s *Service) draw(n int) ([]byte, error) {
	b := make([]byte, n)
	s.random.Lock()
	defer s.random.Unlock()
	if _, err := io.ReadFull(s.source, b); err != nil {
		return nil, fmt.Errorf("auth: no randomness: %w", err)
	}
	return b, nil
}

// made reports whether text has the form that make gives.
func made(prefix, text string) bool {
	if len(text) != len(prefix)+base64.RawURLEncoding.EncodedLen(secretBytes) || text[:len(prefix)] != prefix {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(text[len(prefix):])
	return err == nil
}

const hidden = "********"

// masked shows enough of a made secret to tell it from others: its last four
// characters, which leave 232 bits. Of one that was chosen it shows nothing.
func masked(secret string, made bool) string {
	if !made {
		return hidden
	}
	return hidden + secret[len(secret)-4:]
}
