package auth_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// FuzzO07_Input: whatever is sent, what opens is what was issued, scopes are
// those of the application, and every refusal is one of ours, not the store's.
func FuzzO07_Input(f *testing.F) {
	w := onMemory(f)
	a, secret := w.app(auth.Read, auth.Write)
	bearer := w.token(a, secret)
	_, key, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.ClientID, secret, "read", bearer)
	f.Add(a.ClientID, "wrong", "read  write", key)
	f.Add("\x00", "", "admin", "cpt_")
	f.Add("a:b", secret, " ", "cpt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB")
	f.Fuzz(func(t *testing.T, client, guess, scope, token string) {
		tok, err := w.Token(w.ctx, client, guess, scope)
		switch {
		case err == nil:
			if client != a.ClientID || guess != secret {
				t.Fatal("issued to a stranger")
			}
			who, err := w.Check(w.ctx, tok.AccessToken)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range who.Scopes {
				if !slices.Contains(a.Scopes, s) {
					t.Fatal("scopes escalated")
				}
			}
		case !errors.Is(err, auth.ErrUnknownClient) && !errors.Is(err, auth.ErrCredentials) &&
			!errors.Is(err, auth.ErrScope) && !errors.Is(err, auth.ErrBackoff):
			t.Fatal(err)
		}
		if _, err := w.Check(w.ctx, token); (err == nil) != (token == bearer) || err != nil && !errors.Is(err, auth.ErrToken) {
			t.Fatalf("%q: %v", token, err)
		}
		if _, err := w.CheckKey(w.ctx, token); (err == nil) != (token == key) || err != nil && !errors.Is(err, auth.ErrToken) {
			t.Fatalf("%q: %v", token, err)
		}
		if err := w.Revoke(w.ctx, a.ClientID, secret, token+"x"); err != nil {
			t.Fatal(err)
		}
	})
}
