package auth

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Token is an access token as it is given out.
type Token struct {
	AccessToken string
	ExpiresIn   int    // seconds
	Scope       string // separated by spaces
}

// Identity is who a request comes from.
type Identity struct {
	Tenant string
	Client string // client_id, or the id of the API key
	Token  string // names the token or key, for counting; opens nothing
	Scopes []Scope
	Role   Role
	Key    bool // came by API key
}

// HasScopes reports whether the caller has all of the scopes.
func (i Identity) HasScopes(scopes []Scope) bool { return len(common(scopes, i.Scopes)) == len(scopes) }

// HasRole reports whether the caller may do all that the role allows. Each role includes NoRole,
// GlobalAdmin includes TenantAdmin, and an approver with a name behind it includes Approver.
func (i Identity) HasRole(r Role) bool {
	switch r {
	case NoRole, i.Role:
		return true
	case TenantAdmin:
		return i.Role == GlobalAdmin
	case Approver:
		return i.Role.Plain() == Approver
	}
	return false
}

// token is the row of an access token; its id is the token's hash.
type token struct {
	Client    string    `db:"client_id"`
	App       int64     `db:"application"` // number of the application
	Scopes    string    `db:"scopes"`
	Revoked   bool      `db:"revoked"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
	Seal      []byte    `db:"seal"`
}

var tokens = storage.NewTable[token]("access_tokens")

// keepExpired is how long an expired token is still called expired.
const keepExpired = time.Hour

// purgeLease is how long other processes keep off the tokens that one purges.
const purgeLease = time.Minute

// Token issues a token for client credentials. scope is separated by spaces, ""
// meaning all that the application has. ErrUnknownClient, ErrCredentials,
// *BackoffError, *ScopeError.
func (s *Service) Token(ctx context.Context, clientID, clientSecret, scope string) (Token, error) {
	var out Token
	var tenant string
	err := storage.Decide(ctx, s.store, func(ctx context.Context) (storage.Change, error) {
		a, row, err := s.authenticate(ctx, clientID, clientSecret)
		if err != nil {
			return storage.Change{}, err
		}
		tenant = a.Tenant
		scopes, err := grant(scope, splitScopes(a.Scopes))
		if err != nil {
			return storage.Change{}, err
		}
		secret, err := s.make(tokenPrefix)
		if err != nil {
			return storage.Change{}, err
		}
		now := s.now()
		t := token{Client: clientID, App: a.Number, Scopes: joinScopes(scopes), CreatedAt: now, ExpiresAt: now.Add(s.life)}
		out = Token{AccessToken: secret, ExpiresIn: int(s.life / time.Second), Scope: t.Scopes}
		made, err := s.tokenRow(s.rowID(forToken, secret), 0, t.ExpiresAt.Add(keepExpired), t)
		return storage.Change{
			ID: s.newID(), Partition: storage.System,
			Require: []storage.Guard{applications.Guard(row.ID, row.Version)}, Put: []storage.Row{made},
		}, err
	})
	if err != nil {
		return Token{}, err
	}
	try := s.attempt(ctx, ofTokens, "", s.rowID(forToken, out.AccessToken))
	try.who = holder{clientID, tenant}
	s.guesses.right(try)
	return out, nil
}

// Beside reads more in the round trip that a credential is read in, for the tenant whose
// credential it was when it was right last. It is called before the credential has been
// looked at, or not at all: whoever uses what it read compares the tenant with the
// Identity's.
type Beside func(ctx context.Context, tenant string) error

// Check says who a bearer token stands for. *TokenError (ErrToken) where for nobody;
// *BackoffError where its address has sent too many that were never issued; any other
// error is the store's, or of beside.
//
// The token and its application are read at each call, so that what was revoked or
// deleted counts at once. They are read in one round trip where this process knows of which
// application the token is, as that never changes.
func (s *Service) Check(ctx context.Context, bearer string, beside ...Beside) (Identity, error) {
	wellFormed := made(tokenPrefix, bearer)
	var id string
	if wellFormed {
		id = s.rowID(forToken, bearer)
	}
	try := s.attempt(ctx, ofTokens, "", id)
	try.made = wellFormed
	switch wait := s.guesses.wait(try); {
	case wait > 0:
		return Identity{}, &BackoffError{RetryAfter: wait}
	case !wellFormed:
		return Identity{}, s.unknown(try, Malformed)
	}
	var t token
	var a application
	var ok, there bool
	was, known := s.guesses.holder(id)
	var row storage.Row
	ask := []func(context.Context) error{func(ctx context.Context) (err error) {
		t, row, ok, err = stored(ctx, s, tokens, forToken, bearer)
		return err
	}}
	if known {
		ask = append(ask, func(ctx context.Context) (err error) {
			a, _, there, err = applications.One(ctx, s.store, storage.System, was.client)
			return err
		})
	}
	err := storage.SideBySide(ctx, s.store, besides(ask, was, known, beside)...)
	switch {
	case err != nil:
		return Identity{}, err
	case !ok:
		return Identity{}, s.unknown(try, Unknown)
	}
	if ok, err = s.intact(ctx, tokens.Table, row.ID, t, t.Seal); err != nil || !ok {
		return Identity{}, altered(err)
	}
	switch {
	case t.Revoked:
		return Identity{}, &TokenError{Revoked}
	case !s.now().Before(t.ExpiresAt):
		return Identity{}, &TokenError{Expired}
	}
	if t.Client != was.client {
		a, _, there, err = applications.One(ctx, s.store, storage.System, t.Client)
	}
	switch {
	case err != nil:
		return Identity{}, err
	case !there || a.Number != t.App: // deleted; the id may be another's now
		return Identity{}, &TokenError{Revoked}
	}
	if ok, err = s.intact(ctx, applications.Table, t.Client, a, a.Seal); err != nil || !ok {
		return Identity{}, altered(err)
	}
	try.who = holder{t.Client, a.Tenant}
	s.guesses.right(try)
	return Identity{
		Tenant: a.Tenant, Client: t.Client, Token: id, Role: Role(a.Role),
		Scopes: common(splitScopes(a.Scopes), splitScopes(t.Scopes)),
	}, nil
}

// altered is the answer to a credential whose row was edited: err, or that it is unknown.
func altered(err error) error {
	if err != nil {
		return err
	}
	return &TokenError{Unknown}
}

// besides adds what is read beside a credential that is known.
func besides(ask []func(context.Context) error, was holder, known bool, beside []Beside) []func(context.Context) error {
	if known {
		for _, b := range beside {
			ask = append(ask, func(ctx context.Context) error { return b(ctx, was.tenant) })
		}
	}
	return ask
}

// unknown counts a token or key that was never issued.
func (s *Service) unknown(try attempt, reason string) error {
	if wait := s.guesses.wrong(try); wait > 0 {
		return &BackoffError{RetryAfter: wait}
	}
	return &TokenError{reason}
}

// Revoke makes a client's token void, in every process at once. A token that is
// unknown, void already or another client's is left alone without an error, as
// RFC 7009 wants. ErrUnknownClient, ErrCredentials, *BackoffError.
func (s *Service) Revoke(ctx context.Context, clientID, clientSecret, bearer string) error {
	a, _, err := s.authenticate(ctx, clientID, clientSecret)
	if err != nil || !made(tokenPrefix, bearer) {
		return err
	}
	return storage.Decide(ctx, s.store, func(ctx context.Context) (storage.Change, error) {
		t, row, ok, err := stored(ctx, s, tokens, forToken, bearer)
		if err != nil || !ok || t.Revoked || t.App != a.Number {
			return storage.Change{}, err
		}
		if ok, err := s.intact(ctx, tokens.Table, row.ID, t, t.Seal); err != nil || !ok { // it is void already
			return storage.Change{}, err
		}
		t.Revoked = true
		void, err := s.tokenRow(row.ID, row.Version, row.Due, t)
		return storage.Change{ID: s.newID(), Partition: storage.System, Put: []storage.Row{void}}, err
	})
}

// Purge forgets at most max tokens that have been expired for an hour, and says
// how many it forgot. Several processes may purge at once.
func (s *Service) Purge(ctx context.Context, max int) (int, error) {
	now := s.now()
	rows, err := s.store.Claim(ctx, storage.Claim{Table: tokens.Table, Partition: storage.System, Now: now, Until: now.Add(purgeLease), Max: max})
	if len(rows) == 0 {
		return 0, err
	}
	changes := make([]storage.Change, len(rows))
	for i, r := range rows {
		changes[i] = storage.Change{
			ID: "purge/" + r.ID + "/" + strconv.FormatInt(r.Version, 36), Partition: storage.System, Drop: []storage.Row{r},
		}
	}
	n := 0
	for _, err := range s.store.Commit(ctx, changes...) {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, storage.ErrConflict): // else somebody revoked it just now: next time
			return n, err
		}
	}
	return n, err
}
