package auth

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// APIKey is an API key, without the key itself.
type APIKey struct {
	ID        string
	Tenant    string
	Name      string
	Masked    string
	Scopes    []Scope
	Role      Role
	CreatedAt time.Time
}

// NewKey is what CreateKey takes.
type NewKey struct {
	Tenant string
	Name   string
	Scopes []Scope // defaults to read and write
	Role   Role
	// Key is made where it is "". One that the operator configures has 16 to 200
	// characters of printable ASCII that do not repeat. A key that was chosen before
	// that was asked for still works.
	Key string
	// By makes it, for the audit log.
	By By
}

// apiKey is the row of an APIKey; its id is the key's hash.
type apiKey struct {
	KeyID     string    `db:"key_id"`
	Tenant    string    `db:"tenant"`
	Name      string    `db:"name"`
	Scopes    string    `db:"scopes"`
	Role      string    `db:"role"`
	Masked    string    `db:"masked_key"`
	CreatedAt time.Time `db:"created_at"`
	Seal      []byte    `db:"seal"`
}

var apiKeys = storage.NewTable[apiKey]("api_keys",
	storage.Unique("key_id"), storage.Index("tenant", "created_at"))

// CreateKey makes an API key and returns it, which cannot be had again. Whether
// the tenant exists is the caller's to know. *InvalidError; ErrExists where a
// given key is in use.
func (s *Service) CreateKey(ctx context.Context, n NewKey) (APIKey, string, error) {
	bad := &InvalidError{}
	checkOwner(bad, n.Tenant, n.Name)
	n.Scopes = checkScopes(bad, n.Scopes)
	checkRole(bad, n.Role)
	given := n.Key != ""
	if given {
		checkChosen(bad, "key", n.Key)
	}
	if err := bad.Err(); err != nil {
		return APIKey{}, "", err
	}
	if !given {
		var err error
		if n.Key, err = s.make(keyPrefix); err != nil {
			return APIKey{}, "", err
		}
	}
	k := apiKey{
		KeyID: s.newID(), Tenant: n.Tenant, Name: n.Name, Scopes: joinScopes(n.Scopes), Role: string(n.Role),
		Masked: masked(n.Key, !given), CreatedAt: s.now(),
	}
	row, err := s.keyRow(s.rowID(forKey, n.Key), 0, k)
	if err != nil {
		return APIKey{}, "", err
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	ids, change := append([]string{row.ID}, s.olderIDs(forKey, n.Key)...), s.newID()
	err = storage.Decide(ctx, s.store, func(ctx context.Context) (storage.Change, error) {
		there, err := s.store.Rows(ctx, apiKeys.Table, storage.Keys(storage.System, ids...)...)
		if err == nil && len(there) == 1 && there[0].Change == change {
			return storage.Change{}, nil // this call committed it, though the answer was lost
		}
		if err == nil && len(there) > 0 {
			err = ErrExists
		}
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: change, Partition: storage.System, Put: []storage.Row{row}}
		for _, id := range ids[1:] {
			c.Require = append(c.Require, apiKeys.Guard(id, 0))
		}
		return c, s.record(ctx, &c, audit.CreateKey, n.By, k.Tenant, k.KeyID, nil, k.shown())
	})
	if taken := new(storage.DuplicateError); errors.As(err, &taken) {
		err = ErrExists
	}
	if err != nil {
		return APIKey{}, "", err
	}
	return k.key(), n.Key, nil
}

// Keys lists a tenant's API keys by age.
func (s *Service) Keys(ctx context.Context, tenant string) ([]APIKey, error) {
	return list(ctx, s.store, apiKeys, tenant, "created_at", func(_ string, k apiKey) APIKey { return k.key() })
}

// DeleteKey makes a tenant's API key void, in every process at once. by is for the audit log.
// ErrNotFound.
func (s *Service) DeleteKey(ctx context.Context, tenant, id string, by By) error {
	if !storage.ValidText(id) {
		return ErrNotFound
	}
	return remove(ctx, s, apiKeys, tenant, storage.Cond{Column: "key_id", Op: storage.Eq, Value: id}, func(c *storage.Change, r storage.Row) error {
		return s.record(ctx, c, audit.DeleteKey, by, tenant, id, apiKeys.Value(r).shown(), nil)
	})
}

// CheckKey says who an API key stands for. *TokenError (ErrToken) where for nobody;
// *BackoffError where its address has sent too many of those; any other error is the
// store's, or of beside. See Check.
func (s *Service) CheckKey(ctx context.Context, key string, beside ...Beside) (Identity, error) {
	if !printable(key, 1) {
		key = " " // no key
	}
	id := s.rowID(forKey, key)
	try := s.attempt(ctx, ofKeys, "", id)
	try.made = made(keyPrefix, key)
	if wait := s.guesses.wait(try); wait > 0 {
		return Identity{}, &BackoffError{RetryAfter: wait}
	}
	var k apiKey
	var ok bool
	was, known := s.guesses.holder(id)
	var row storage.Row
	ask := []func(context.Context) error{func(ctx context.Context) (err error) {
		k, row, ok, err = stored(ctx, s, apiKeys, forKey, key)
		return err
	}}
	if err := storage.SideBySide(ctx, s.store, besides(ask, was, known, beside)...); err != nil {
		return Identity{}, err
	}
	if !ok {
		return Identity{}, s.unknown(try, Unknown)
	}
	if ok, err := s.intact(ctx, apiKeys.Table, row.ID, k, k.Seal); err != nil || !ok {
		return Identity{}, altered(err)
	}
	if row.ID != id {
		moved, err := s.keyRow(id, 0, k)
		s.move(ctx, storage.Change{Drop: []storage.Row{row}, Put: []storage.Row{moved}}, err)
	}
	try.who = holder{k.KeyID, k.Tenant}
	s.guesses.right(try)
	return Identity{Tenant: k.Tenant, Client: k.KeyID, Token: id, Scopes: splitScopes(k.Scopes), Role: Role(k.Role), Key: true}, nil
}

func (k apiKey) key() APIKey {
	return APIKey{
		ID: k.KeyID, Tenant: k.Tenant, Name: k.Name, Masked: k.Masked,
		Scopes: splitScopes(k.Scopes), Role: Role(k.Role), CreatedAt: k.CreatedAt,
	}
}
