package main

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

const (
	owner         = "owner@shop.example" // the first account
	sessionCookie = "session"
	sessionTime   = 12 * time.Hour
	buyerCookie   = "buyer"
	rounds        = 600_000 // of PBKDF2 with SHA-256, as OWASP advises
)

// digest is how a secret of a cookie is stored: who reads the table can log in with nothing.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func hash(password, salt string) (string, error) {
	key, err := pbkdf2.Key(sha256.New, password, []byte(salt), rounds, 32)
	return salt + "$" + hex.EncodeToString(key), err
}

// firstOwner makes the first account, and its password. "" = there is one.
func (s *shop) firstOwner(ctx context.Context) (password string, err error) {
	var n int
	if _, err := s.get(ctx, &n, "SELECT count(*) FROM staff"); err != nil || n > 0 {
		return "", err
	}
	password = rand.Text()
	hashed, err := hash(password, rand.Text())
	if err != nil {
		return "", err
	}
	return password, s.exec(ctx, "INSERT INTO staff (email, password) VALUES (?, ?)", owner, hashed)
}

var errLogin = errors.New("the email address or the password is wrong")

// login begins a session. It takes as long for an unknown address as for a known one.
func (s *shop) login(ctx context.Context, email, password string) (secret string, err error) {
	stored := "nobody$"
	if _, err := s.get(ctx, &stored, "SELECT password FROM staff WHERE email = ?", strings.ToLower(strings.TrimSpace(email))); err != nil {
		return "", err
	}
	salt, _, _ := strings.Cut(stored, "$")
	given, err := hash(password, salt)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(stored)) != 1 {
		return "", errLogin
	}
	now := time.Now()
	if err := s.exec(ctx, "DELETE FROM sessions WHERE ends < ?", now.Unix()); err != nil {
		return "", err
	}
	secret = rand.Text()
	return secret, s.exec(ctx, "INSERT INTO sessions (id, email, ends) VALUES (?, ?, ?)", digest(secret), strings.ToLower(strings.TrimSpace(email)), now.Add(sessionTime).Unix())
}

// logout ends a request's session.
func (s *shop) logout(r *http.Request) error {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	return s.exec(r.Context(), "DELETE FROM sessions WHERE id = ?", digest(cookie.Value))
}

// staff is who of the shop sends a request, "" = nobody.
func (s *shop) staff(r *http.Request) (email string, err error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", nil //nolint:nilerr // who has no session is a customer
	}
	_, err = s.get(r.Context(), &email, "SELECT email FROM sessions WHERE id = ? AND ends > ?", digest(cookie.Value), time.Now().Unix())
	return email, err
}

// Identify makes the shop's login that of the REST interface, too: it implements httpapi.Login.
func (s *shop) Identify(r *http.Request) (who auth.Identity, known bool, err error) {
	if _, err := r.Cookie(sessionCookie); err != nil {
		return who, false, nil //nolint:nilerr // who has no session has no access
	}
	email, err := s.staff(r)
	if err == nil && email == "" {
		err = auth.ErrToken // it has ended: 401
	}
	return auth.Identity{Tenant: tenant, Client: email, Scopes: []auth.Scope{auth.Read, auth.Write}}, true, err
}

// ownCookie is a cookie that scripts cannot read and other sites cannot have sent with a form.
func (s *shop) ownCookie(name, value string) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.base, "https:")}
}

// buyer is the digest that a customer's orders have. He gets a cookie with his first order: it
// is all that an order asks him for.
func (s *shop) buyer(w http.ResponseWriter, r *http.Request) string {
	if cookie, err := r.Cookie(buyerCookie); err == nil && len(cookie.Value) >= 26 {
		return digest(cookie.Value)
	}
	secret := rand.Text()
	cookie := s.ownCookie(buyerCookie, secret)
	cookie.MaxAge = 90 * 24 * 60 * 60
	http.SetCookie(w, cookie)
	return digest(secret)
}

// buyerOf is the digest of who has ordered before, "" = nobody.
func buyerOf(r *http.Request) string {
	if cookie, err := r.Cookie(buyerCookie); err == nil {
		return digest(cookie.Value)
	}
	return ""
}
