package auth

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Confidential is the client type of every application: it can keep a secret.
const Confidential = "confidential"

// App is an OAuth application, without its secret.
type App struct {
	ID           int64 // 1, 2, 3 … over all tenants
	Tenant       string
	Name         string
	ClientID     string
	ClientType   string // Confidential
	MaskedSecret string
	Scopes       []Scope
	Role         Role
	CreatedAt    time.Time
}

// NewApp is what CreateApp takes.
type NewApp struct {
	Tenant string
	Name   string
	Scopes []Scope // defaults to read and write
	Role   Role
	// ClientID and ClientSecret are made where both are "", and given both for
	// an application that the operator configures: printable ASCII, the id of 1 to
	// 200 characters without space and colon, the secret of 16 to 200 that do not
	// repeat. A secret that was chosen before that was asked for still works.
	ClientID     string
	ClientSecret string
	// By makes it, for the audit log.
	By By
}

// By says who makes or deletes a credential, and why, for the audit log: see Config.Audit. Name
// defaults to "host".
type By struct{ Name, Reason string }

// application is the row of an App; its id is the client id.
type application struct {
	Number     int64     `db:"number"`
	Tenant     string    `db:"tenant"`
	Name       string    `db:"name"`
	Scopes     string    `db:"scopes"`
	Role       string    `db:"role"`
	SecretHash []byte    `db:"secret_hash"`
	Masked     string    `db:"masked_secret"`
	Made       bool      `db:"secret_made"` // by us, with 256 bits
	CreatedAt  time.Time `db:"created_at"`
	Seal       []byte    `db:"seal"`
}

var applications = storage.NewTable[application]("applications",
	storage.Unique("number"), storage.Index("tenant", "number"))

// sequence is the last number given out. It stays when applications go.
type sequence struct {
	Last int64 `db:"last_number"`
}

var sequences = storage.NewTable[sequence]("application_sequence")

const sequenceID = "applications"

// The bounds of texts: names in characters, the rest in bytes.
const (
	maxName    = 255
	maxTenant  = 64
	maxSecret  = 200
	minChosen  = 16 // of a secret or API key that is chosen
	clientByte = 16 // of a made client id
	maxApps    = 100
)

// CreateApp makes an application and returns its secret, which cannot be had
// again. Whether the tenant exists is the caller's to know. *InvalidError, also where
// the tenant has Config.MaxApps; ErrExists where a given client id is in use.
func (s *Service) CreateApp(ctx context.Context, n NewApp) (App, string, error) {
	bad := &InvalidError{}
	checkOwner(bad, n.Tenant, n.Name)
	n.Scopes = checkScopes(bad, n.Scopes)
	checkRole(bad, n.Role)
	given := n.ClientID != "" || n.ClientSecret != ""
	if given && !clientID(n.ClientID) {
		bad.Add("client_id", "must have 1 to 200 printable ASCII characters, no space, no colon")
	}
	if given {
		checkChosen(bad, "client_secret", n.ClientSecret)
	}
	if err := bad.Err(); err != nil {
		return App{}, "", err
	}
	if !given {
		id, err := s.draw(clientByte)
		if err == nil {
			n.ClientSecret, err = s.make(secretPrefix)
		}
		if err != nil {
			return App{}, "", err
		}
		n.ClientID = hex.EncodeToString(id)
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	app, err := s.insertApp(ctx, n.ClientID, n.By, application{
		Tenant: n.Tenant, Name: n.Name, Scopes: joinScopes(n.Scopes), Role: string(n.Role), Made: !given,
		SecretHash: s.mac(forSecret, n.ClientID, n.ClientSecret), Masked: masked(n.ClientSecret, !given),
	})
	if err != nil {
		return App{}, "", err
	}
	return app, n.ClientSecret, nil
}

// insertApp gives the application the next number.
func (s *Service) insertApp(ctx context.Context, id string, by By, a application) (App, error) {
	again := false
	err := storage.Decide(ctx, s.store, func(ctx context.Context) (storage.Change, error) {
		there, _, taken, err := applications.One(ctx, s.store, storage.System, id)
		if again && taken && hmac.Equal(there.SecretHash, a.SecretHash) {
			a = there // what this call committed, though the answer was lost
			return storage.Change{}, err
		}
		if again = true; err == nil && taken {
			err = ErrExists
		}
		if err != nil {
			return storage.Change{}, err
		}
		last, row, _, err := sequences.One(ctx, s.store, storage.System, sequenceID)
		if err == nil {
			err = s.room(ctx, a.Tenant, last.Last)
		}
		if err != nil {
			return storage.Change{}, err
		}
		a.Number, a.CreatedAt = last.Last+1, s.now()
		made, err := s.applicationRow(id, 0, a)
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: s.newID(), Partition: storage.System, Put: []storage.Row{
			made,
			sequences.Row(sequenceID, row.Version, time.Time{}, sequence{Last: a.Number}),
		}}
		return c, s.record(ctx, &c, audit.CreateApp, by, a.Tenant, id, nil, a.shown())
	})
	return a.app(id), err
}

// room refuses one application too many, *InvalidError. made is how many were ever made: only
// where that is above the bound are the tenant's counted. The sequence is read before they are, so
// one that is made meanwhile has the Change refused.
func (s *Service) room(ctx context.Context, tenant string, made int64) error {
	if s.most < 0 || made < s.most {
		return nil
	}
	have, err := s.store.Count(ctx, storage.Query{
		Table: applications.Table, Partition: storage.System, Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenant}},
	})
	if err == nil && have >= s.most {
		err = fault.Invalid("name", fmt.Sprintf("is of one application too many: an account may have %d", s.most))
	}
	return err
}

// Apps lists a tenant's applications by id.
func (s *Service) Apps(ctx context.Context, tenant string) ([]App, error) {
	return list(ctx, s.store, applications, tenant, "number", func(id string, a application) App { return a.app(id) })
}

// AppByClient finds an application by its client id, of any tenant.
func (s *Service) AppByClient(ctx context.Context, client string) (App, bool, error) {
	if !clientID(client) {
		return App{}, false, nil
	}
	a, _, ok, err := applications.One(ctx, s.store, storage.System, client)
	return a.app(client), ok, err
}

// DeleteApp deletes a tenant's application. From then on its credentials and all
// tokens issued to it are void, in every process. by is for the audit log. ErrNotFound.
func (s *Service) DeleteApp(ctx context.Context, tenant string, id int64, by By) error {
	return s.DeleteAppIf(ctx, tenant, id, by, func(App) error { return nil })
}

// DeleteAppIf is DeleteApp where may allows it. may gets the application as it is when it is
// deleted, and may be called again. Its error is returned, and nothing is deleted.
func (s *Service) DeleteAppIf(ctx context.Context, tenant string, id int64, by By, may func(App) error) error {
	return remove(ctx, s, applications, tenant, storage.Cond{Column: "number", Op: storage.Eq, Value: id}, func(c *storage.Change, r storage.Row) error {
		a := applications.Value(r)
		if err := may(a.app(r.ID)); err != nil {
			return err
		}
		return s.record(ctx, c, audit.DeleteApp, by, tenant, r.ID, a.shown(), nil)
	})
}

// authenticate finds the application that client credentials are of. Whether the
// client is unknown or the secret wrong, it does the same work: one read, and a
// hash and a comparison in constant time for each key. ErrUnknownClient, ErrCredentials,
// *BackoffError.
func (s *Service) authenticate(ctx context.Context, client, secret string) (application, storage.Row, error) {
	if !clientID(client) {
		client = " " // cannot be a client id
	}
	if len(secret) > maxSecret {
		secret = secret[:maxSecret+1] // longer than any
	}
	hashes := s.macs(forSecret, client, secret)
	try := s.attempt(ctx, ofClients, client, string(hashes[0]))
	wait := s.guesses.wait(try)
	if wait > 0 && !made(secretPrefix, secret) { // a made secret cannot be guessed: its owner is let in
		return application{}, storage.Row{}, &BackoffError{RetryAfter: wait}
	}
	a, row, known, err := applications.One(ctx, s.store, storage.System, client)
	if err != nil {
		return a, row, err
	}
	if !known {
		a.SecretHash = s.nobody
	}
	right := -1
	for i, hash := range hashes {
		if hmac.Equal(a.SecretHash, hash) && known {
			right = i
		}
	}
	if right >= 0 {
		if known, err = s.intact(ctx, applications.Table, row.ID, a, a.Seal); err != nil || !known {
			return a, row, cmp.Or(err, ErrUnknownClient)
		}
		if right > 0 {
			a.SecretHash = hashes[0]
			moved, err := s.applicationRow(row.ID, row.Version, a)
			s.move(ctx, storage.Change{Put: []storage.Row{moved}}, err)
			row.Version++ // or it is decided again
		}
		s.guesses.right(try)
		return a, row, nil
	}
	if wait = s.guesses.wrong(try); wait > 0 {
		return a, row, &BackoffError{RetryAfter: wait}
	}
	if !known {
		return a, row, ErrUnknownClient
	}
	return a, row, ErrCredentials
}

func (a application) app(id string) App {
	return App{
		ID: a.Number, Tenant: a.Tenant, Name: a.Name, ClientID: id, ClientType: Confidential, MaskedSecret: a.Masked,
		Scopes: splitScopes(a.Scopes), Role: Role(a.Role), CreatedAt: a.CreatedAt,
	}
}

// checkOwner checks what applications and keys have in common.
func checkOwner(bad *InvalidError, tenant, name string) {
	if tenant == "" || len(tenant) > maxTenant || !storage.ValidText(tenant) {
		bad.Add("tenant", "must be a tenant's id")
	}
	switch {
	case strings.TrimSpace(name) == "":
		bad.Add("name", "is required")
	case utf8.RuneCountInString(name) > maxName:
		bad.Add("name", "must have at most "+strconv.Itoa(maxName)+" characters")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		bad.Add("name", "must be plain text")
	}
}

// clientID reports whether s can be one. RFC 7617 separates it by a colon.
func clientID(s string) bool { return printable(s, 1) && !strings.ContainsAny(s, " :") }

// checkChosen refuses a secret that could be guessed.
func checkChosen(bad *InvalidError, field, secret string) {
	if why := Weak(secret); why != "" {
		bad.Add(field, why)
	}
}

// Weak says why a secret or API key cannot be chosen, "" = it can.
func Weak(secret string) string {
	switch {
	case !printable(secret, minChosen):
		return "must have 16 to 200 printable ASCII characters"
	case repeats(secret):
		return "repeats itself, or counts up or down: take a random one"
	}
	return ""
}

// repeats reports whether a text is one part again and again, has fewer than five
// different characters, or mostly goes up or down by one.
func repeats(s string) bool {
	different := map[byte]bool{}
	steps := 0
	for i := range len(s) {
		different[s[i]] = true
		if i > 0 && (s[i] == s[i-1]+1 || s[i]+1 == s[i-1] || s[i] == s[i-1]) {
			steps++
		}
	}
	return len(different) < 5 || steps*4 >= len(s)*3 || strings.Contains((s + s)[1:2*len(s)-1], s)
}

// printable is what RFC 6749 lets ids and secrets be made of.
func printable(s string, least int) bool {
	if len(s) < least || len(s) > maxSecret {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
