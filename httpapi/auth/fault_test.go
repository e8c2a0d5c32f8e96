package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
)

// dump is everything that the store holds, as whoever steals it would see it.
func (w *world) dump() string {
	var b strings.Builder
	for _, table := range auth.Tables() {
		rows, err := w.store.Find(w.ctx, storage.Query{Table: table, Limit: 1000})
		require.NoError(w.t, err)
		require.NotEmpty(w.t, rows, table.Name)
		for _, r := range rows {
			scalars, err := table.Encode(r.Value)
			require.NoError(w.t, err)
			fmt.Fprintf(&b, "%s %s %s %s\n", table.Name, r.ID, r.Change, scalars)
		}
	}
	if w.file != "" {
		for _, file := range []string{w.file, w.file + "-wal"} {
			raw, err := os.ReadFile(file)
			require.NoError(w.t, err)
			require.NotEmpty(w.t, raw)
			b.Write(raw)
		}
	}
	return b.String()
}

// TestO03_StoreHoldsNoSecret: no eight characters of any secret, token or key
// are in the store, nor a hash of them that needs no key.
func TestO03_StoreHoldsNoSecret(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app()
		b, chosen, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Operator", ClientID: "operator", ClientSecret: "canary-of-the-operator"})
		require.NoError(t, err)
		_, apiKey, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
		require.NoError(t, err)
		_, chosenKey, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till 2", Key: "another-canary-key"})
		require.NoError(t, err)
		bearer, revoked, second := w.token(a, secret), w.token(a, secret), w.token(b, chosen)
		require.NoError(t, w.Revoke(w.ctx, a.ClientID, secret, revoked))
		_, err = w.Token(w.ctx, a.ClientID, "wrong-canary-secret", "")
		require.ErrorIs(t, err, auth.ErrCredentials)

		dump := w.dump()
		for _, canary := range []string{secret, chosen, apiKey, chosenKey, bearer, revoked, second, "wrong-canary-secret"} {
			for i := range len(canary) - 8 {
				require.NotContains(t, dump, canary[i:i+8])
			}
			plain := sha256.Sum256([]byte(canary))
			require.NotContains(t, dump, string(plain[:]))
			require.NotContains(t, strings.ToLower(dump), hex.EncodeToString(plain[:]))
		}
		// A new process with another key opens nothing with what is there.
		w.change = func(c *auth.Config) { c.Key = bytes.Repeat([]byte{8}, 32) }
		stranger := w.process()
		w.refused(stranger, bearer, auth.Unknown)
		_, err = stranger.Token(w.ctx, a.ClientID, secret, "")
		require.ErrorIs(t, err, auth.ErrCredentials)
		_, err = stranger.CheckKey(w.ctx, apiKey)
		require.ErrorIs(t, err, auth.ErrToken)
		// What names a token for counting is no token.
		w.refused(w.Service, w.let(w.Service, bearer).Token, auth.Malformed)
	})
}

// TestO03_SecretsPrintAsStars, whatever prints them.
func TestO03_SecretsPrintAsStars(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	tok, err := w.Token(w.ctx, a.ClientID, secret, "")
	require.NoError(t, err)
	config := auth.Config{Key: []byte("canary"), Store: w.store}
	var logged bytes.Buffer
	for _, v := range []any{
		tok, &tok,
		auth.NewApp{ClientSecret: "canary"},
		auth.NewKey{Key: "canary"},
		config, &config, w.Service, a,
		[]any{tok},
		struct{ T auth.Token }{tok},
		map[string]auth.NewKey{"k": {Key: "canary"}},
	} {
		out := fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, v, v, v, v)
		for _, canary := range []string{tok.AccessToken, secret, "canary", hex.EncodeToString([]byte("canary")), fmt.Sprint([]byte("canary")), fmt.Sprint(key()), fmt.Sprintf("%#v", key())} {
			require.NotContains(t, out, canary)
		}
	}
	for _, v := range []any{tok, auth.NewApp{}, auth.NewKey{}, config} {
		require.Equal(t, "********", fmt.Sprint(v))
	}
	for _, l := range []slog.Handler{slog.NewJSONHandler(&logged, nil), slog.NewTextHandler(&logged, nil)} {
		slog.New(l).Info("said", "token", tok, "app", auth.NewApp{ClientSecret: "canary"}, "key", auth.NewKey{Key: "canary"}, "config", config)
	}
	require.NotContains(t, logged.String(), tok.AccessToken)
	require.NotContains(t, logged.String(), "canary")
	require.Equal(t, 8, strings.Count(logged.String(), "********"))
	shown, err := json.Marshal(a)
	require.NoError(t, err)
	require.NotContains(t, string(shown), secret)

	for _, err := range []error{
		&auth.TokenError{Reason: auth.Unknown}, &auth.ScopeError{Allowed: a.Scopes}, &auth.BackoffError{RetryAfter: time.Second},
		errOf(w.Token(w.ctx, "canary", "canary", "canary")), errOf(w.Token(w.ctx, a.ClientID, secret, "canary")),
		errOf(w.Check(w.ctx, "canary")), errOf(w.CheckKey(w.ctx, "canary-key")), w.Revoke(w.ctx, a.ClientID, "canary", "canary"),
	} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), "canary")
		require.NotContains(t, err.Error(), secret)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestO05_OnePath: an unknown client, a wrong secret, and texts that are no
// client id ask the same of the store.
func TestO05_OnePath(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	store := &counting{Store: w.store}
	w.store = store
	s := w.process()
	for _, c := range []struct {
		client, secret string
		want           error
	}{
		{a.ClientID, "wrong", auth.ErrCredentials},
		{a.ClientID, secret[:len(secret)-1], auth.ErrCredentials},
		{a.ClientID, secret + "x", auth.ErrCredentials},
		{a.ClientID, "", auth.ErrCredentials},
		{a.ClientID, strings.Repeat("x", 1<<20), auth.ErrCredentials},
		{"nobody", "wrong", auth.ErrUnknownClient},
		{"nobody", secret, auth.ErrUnknownClient},
		{strings.ToUpper(a.ClientID), secret, auth.ErrUnknownClient},
		{"", "", auth.ErrUnknownClient},
		{"\x00", "x", auth.ErrUnknownClient},
		{"a\xff", "x", auth.ErrUnknownClient},
		{strings.Repeat("x", 1<<20), "x", auth.ErrUnknownClient},
	} {
		store.asked = nil
		_, err := s.Token(w.ctx, c.client, c.secret, "")
		require.ErrorIs(t, err, c.want)
		require.Equal(t, []string{"rows applications system 1"}, store.asked)
		store.asked = nil
		require.ErrorIs(t, s.Revoke(w.ctx, c.client, c.secret, "x"), c.want)
		require.Equal(t, []string{"rows applications system 1"}, store.asked)
	}
}

// guess tries a wrong secret and says how long the client has to wait, 0 where
// the try counted.
func (w *world) guess(s *auth.Service, client string) time.Duration {
	w.t.Helper()
	_, err := s.Token(w.ctx, client, "wrong", "")
	wait := new(auth.BackoffError)
	switch {
	case errors.As(err, &wait):
		require.ErrorIs(w.t, err, auth.ErrBackoff)
		require.Positive(w.t, wait.RetryAfter)
		return wait.RetryAfter
	case errors.Is(err, auth.ErrCredentials), errors.Is(err, auth.ErrUnknownClient):
		return 0
	}
	require.NoError(w.t, err, "neither")
	return 0
}

const chosenSecret = "chosen-by-a-person-at-9"

// chosen makes an application whose secret could be guessed.
func (w *world) chosen() auth.App {
	a, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Operator", ClientID: "operator", ClientSecret: chosenSecret})
	require.NoError(w.t, err)
	return a
}

// TestO05_GuessingSlowsDown, for known and unknown clients alike; and while a
// client waits nobody learns whether a secret would have been right.
func TestO05_GuessingSlowsDown(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	for _, client := range []string{a.ClientID, "nobody"} {
		for range 10 {
			require.Zero(t, w.guess(w.Service, client))
		}
		for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			wait := time.Duration(seconds) * time.Second
			require.Equal(t, wait, w.guess(w.Service, client))
			w.advance(wait - time.Microsecond)
			require.Equal(t, time.Microsecond, w.guess(w.Service, client), "waiting does not make the wait longer")
			if client == a.ClientID {
				_, err := w.Token(w.ctx, client, chosenSecret, "")
				require.ErrorIs(t, err, auth.ErrBackoff, "not even the right one is looked at")
				require.ErrorIs(t, w.Revoke(w.ctx, client, chosenSecret, "x"), auth.ErrBackoff)
			}
			w.advance(time.Microsecond)
			require.Zero(t, w.guess(w.Service, client))
		}
	}
	w.advance(time.Minute)
	w.token(a, chosenSecret)
	for range 10 {
		require.Zero(t, w.guess(w.Service, a.ClientID), "a right one forgives")
	}
	require.Equal(t, time.Second, w.guess(w.Service, a.ClientID))
	w.token(a, chosenSecret) // what was right before is looked at, whoever guesses beside its owner
	for range 10 {
		w.guess(w.Service, a.ClientID)
	}
	w.advance(10 * time.Minute)
	for range 10 {
		require.Zero(t, w.guess(w.Service, a.ClientID), "ten quiet minutes do, too")
	}
	require.Equal(t, time.Second, w.guess(w.Service, a.ClientID))
	w.advance(-24 * time.Hour)
	require.Equal(t, time.Second, w.guess(w.Service, a.ClientID), "a clock set back makes nobody wait longer")
	w.advance(24*time.Hour + time.Second)
	require.Zero(t, w.guess(w.Service, a.ClientID))
}

// TestFS04_GuessesFromElsewhereLockNobodyOut: one who knows a client id cannot keep its
// owner out, though the secret was chosen; and fails himself, from one address or many.
func TestFS04_GuessesFromElsewhereLockNobodyOut(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	owner := auth.WithAddress(w.ctx, "192.0.2.1")
	refused := 0
	for i := range 40 {
		for k := range 20 {
			_, err := w.Token(auth.WithAddress(w.ctx, fmt.Sprintf("198.51.100.%d", k%2)), a.ClientID, fmt.Sprint("guess", i, k), "")
			if errors.Is(err, auth.ErrBackoff) {
				refused++
			}
		}
		_, err := w.process().Token(owner, a.ClientID, chosenSecret, "") // the first login after a start
		require.NoError(t, err)
		_, err = w.Token(owner, a.ClientID, chosenSecret, "")
		require.NoError(t, err)
		w.advance(3 * time.Second)
	}
	require.Greater(t, refused, 40*20-2*20)
}

// TestFS05_WrongTokensAndKeysAreNotReadForEver: after some that were never issued, more
// of one address are refused before anything is read; who has a good one goes on, from
// that address, too.
func TestFS05_WrongTokensAndKeysAreNotReadForEver(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	tok := w.token(a, secret)
	_, key, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
	require.NoError(t, err)
	_, err = w.CheckKey(w.ctx, key)
	require.NoError(t, err)
	store := &counting{Store: w.store}
	w.change = func(c *auth.Config) { c.Store = store }
	s := w.process()
	w.let(s, tok)
	_, err = s.CheckKey(w.ctx, key)
	require.NoError(t, err)
	for kind, check := range map[string]func(i int) error{
		"tokens": func(i int) error {
			_, err := s.Check(w.ctx, unissued(i))
			return err
		},
		"keys": func(i int) error { _, err := s.CheckKey(w.ctx, fmt.Sprint("a guess at a key", i)); return err },
	} {
		store.asked = nil
		for i := range 3000 {
			err := check(i)
			require.True(t, errors.Is(err, auth.ErrToken) == (i < 60) && errors.Is(err, auth.ErrBackoff) == (i >= 60), "%s %d %v", kind, i, err)
		}
		reads := 60
		if kind == "tokens" { // they have the form of issued ones: twenty a second are looked at
			reads += 20
		}
		require.Len(t, store.asked, reads, kind)
	}
	w.let(s, tok)
	_, err = s.CheckKey(w.ctx, key)
	require.NoError(t, err)
	_, err = s.Check(auth.WithAddress(w.ctx, "192.0.2.1"), unissued(1))
	require.ErrorIs(t, err, auth.ErrToken, "elsewhere nothing was sent")
	w.advance(10 * time.Minute)
	require.ErrorIs(t, errOf(s.Check(w.ctx, unissued(1))), auth.ErrToken, "a quiet while forgets")
}

// TestFS04_WhatAnotherProcessIssuedIsLookedAt: somebody behind the same address sends
// wrong tokens and keys without end. Right ones that this process has not seen yet are let
// in all the same.
func TestFS04_WhatAnotherProcessIssuedIsLookedAt(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	_, key, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
	require.NoError(t, err)
	here := w.process()
	for i := range 2000 {
		_, _ = here.Check(w.ctx, unissued(i))
		_, _ = here.CheckKey(w.ctx, fmt.Sprint("a guess at a key", i))
		if i%2 == 0 {
			w.advance(time.Second)
		}
		if i%100 == 99 {
			w.let(here, w.token(a, secret))
			_, err := w.process().CheckKey(w.ctx, key)
			require.NoError(t, err)
		}
	}
	_, err = here.CheckKey(w.ctx, key)
	require.NoError(t, err)
}

// unissued is a token of the right form.
func unissued(i int) string {
	return "cpt_" + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))) //nolint:gosec // small
}

// TestFS05_ChosenSecretsHaveALeastStrength: whoever may choose a secret or a key may not
// choose one that is guessed.
func TestFS05_ChosenSecretsHaveALeastStrength(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	for _, weak := range []string{
		"x", "12345678", "fifteen-chars-x", "aaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababab", "secretsecretsecretsecret",
		"abcdefghijklmnop", "0123456789012345", "ponmlkjihgfedcba", "1111111111111112", "akzszkkaszaaksza",
	} {
		bad := new(auth.InvalidError)
		_, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a", ClientSecret: weak})
		require.ErrorAs(t, err, &bad, weak)
		require.Contains(t, bad.Fields, "client_secret")
		_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "x", Key: weak})
		require.ErrorAs(t, err, &bad, weak)
		require.Contains(t, bad.Fields, "key")
	}
	for i, strong := range []string{"walker-secret-of-the-day", "correct horse battery", "b2f3c1d09e8a7b65", "hunter2hunter3hunter4", "akzszkkaszaaks~a", " akzszkkaszaaks~"} {
		_, _, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: fmt.Sprint(i), Key: strong})
		require.NoError(t, err, strong)
	}
}

// TestO05_GuessingLocksNobodyOut: an application whose secret was made, and so
// cannot be guessed, is let in with it whatever others try.
func TestO05_GuessingLocksNobodyOut(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	for range 20 {
		w.guess(w.Service, a.ClientID)
	}
	require.Positive(t, w.guess(w.Service, a.ClientID))
	w.let(w.Service, w.token(a, secret))
}

// TestO05_CountsCannotBePushedOut: trying many clients frees no count.
func TestO05_CountsCannotBePushedOut(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	for range 11 {
		w.guess(w.Service, a.ClientID)
	}
	for i := range 20_000 {
		w.guess(w.Service, fmt.Sprint("nobody", i))
	}
	require.Positive(t, w.guess(w.Service, a.ClientID))
}

// TestO05_CountsAreBounded: of 20,000 addresses one more pushes the oldest out. One that
// was forgiven in between does no harm.
func TestO05_CountsAreBounded(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	from := func(i int) context.Context { return auth.WithAddress(w.ctx, fmt.Sprint("address ", i)) }
	require.ErrorIs(t, errOf(w.Token(from(0), a.ClientID, "wrong", "")), auth.ErrCredentials) // counts its address, and the client from there
	require.NoError(t, errOf(w.Token(from(0), a.ClientID, chosenSecret, "")))                 // forgives the client
	for range 60 {
		require.ErrorIs(t, errOf(w.CheckKey(from(1), "a guess at a key")), auth.ErrToken)
	}
	for i := range 19_998 {
		require.ErrorIs(t, errOf(w.CheckKey(from(2+i), "a guess at a key")), auth.ErrToken)
	}
	require.ErrorIs(t, errOf(w.CheckKey(from(1), "a guess at a key")), auth.ErrBackoff, "among 20,000")
	for i := range 19_999 {
		require.ErrorIs(t, errOf(w.CheckKey(from(60_000+i), "a guess at a key")), auth.ErrToken)
	}
	require.ErrorIs(t, errOf(w.CheckKey(from(1), "a guess at a key")), auth.ErrBackoff, "it was used since")
	for i := range 20_000 {
		require.ErrorIs(t, errOf(w.CheckKey(from(30_000+i), "a guess at a key")), auth.ErrToken)
	}
	require.ErrorIs(t, errOf(w.CheckKey(from(1), "a guess at a key")), auth.ErrToken, "20,000 others came since")
}

// TestFS05_WhatWasRightIsRemembered: a chosen key that was right before, and a token that
// was just issued, are looked at though somebody guesses from the same address. What turns
// out to be right no more is not, and malformed tokens never are.
func TestFS05_WhatWasRightIsRemembered(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	const chosenKey = "the operator's own key"
	k, _, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Operator", Key: chosenKey})
	require.NoError(t, err)
	store := &counting{Store: w.store}
	w.change = func(c *auth.Config) { c.Store = store }
	s := w.process()
	require.NoError(t, errOf(s.CheckKey(w.ctx, chosenKey)))
	issued, err := s.Token(w.ctx, a.ClientID, chosenSecret, "")
	require.NoError(t, err)
	for i := range 60 {
		require.ErrorIs(t, errOf(s.CheckKey(w.ctx, fmt.Sprint("a guess at a key", i))), auth.ErrToken)
		require.ErrorIs(t, errOf(s.Check(w.ctx, "malformed")), auth.ErrToken)
	}
	require.ErrorIs(t, errOf(s.Check(w.ctx, "malformed")), auth.ErrBackoff)
	for i := range 20 {
		require.ErrorIs(t, errOf(s.Check(w.ctx, unissued(i))), auth.ErrBackoff, "the spare ones")
	}
	w.let(s, issued.AccessToken)
	require.NoError(t, errOf(s.CheckKey(w.ctx, chosenKey)))

	require.NoError(t, w.DeleteKey(w.ctx, tenant, k.ID, auth.By{}))
	require.ErrorIs(t, errOf(s.CheckKey(w.ctx, chosenKey)), auth.ErrBackoff, "it was read, and is right no more")
	store.asked = nil
	require.ErrorIs(t, errOf(s.CheckKey(w.ctx, chosenKey)), auth.ErrBackoff)
	require.Empty(t, store.asked)
}

// TestO05_LongSecretsAreCutAboveTheLongest: what is longer than any secret is not taken
// for the secret that it begins with.
func TestO05_LongSecretsAreCutAboveTheLongest(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	for n := 197; n <= 200; n++ {
		secret := strings.Repeat(chosenSecret, 9)[:n]
		id := fmt.Sprint("operator", n)
		_, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Operator", ClientID: id, ClientSecret: secret})
		require.NoError(t, err)
		require.NoError(t, errOf(w.Token(w.ctx, id, secret, "")))
		for more := 1; more <= 5; more++ {
			require.ErrorIs(t, errOf(w.Token(w.ctx, id, secret+strings.Repeat("x", more), "")), auth.ErrCredentials)
		}
	}
}

// TestO05_GuessesAtOnce: many at once get no more tries than one after another.
func TestO05_GuessesAtOnce(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a := w.chosen()
	var mu sync.Mutex
	var wg sync.WaitGroup
	tried := 0
	for range 8 {
		wg.Go(func() {
			for range 10 {
				_, err := w.Token(w.ctx, a.ClientID, "wrong", "")
				if errors.Is(err, auth.ErrCredentials) {
					mu.Lock()
					tried++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 10, tried)
}

// TestO07_ScopesDoNotEscalate.
func TestO07_ScopesDoNotEscalate(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	for _, c := range []struct {
		has        []auth.Scope
		scope, got string
	}{
		{nil, "", "read write"},
		{nil, "read", "read"},
		{nil, "write", "write"},
		{nil, "write read", "read write"},
		{nil, "read read", "read"},
		{[]auth.Scope{auth.Read}, "", "read"},
		{[]auth.Scope{auth.Read, auth.Write, auth.Admin}, "admin", "admin"},
		{nil, "admin", ""},
		{nil, "read admin", ""},
		{[]auth.Scope{auth.Read}, "write", ""},
		{[]auth.Scope{auth.Read}, "read write", ""},
		{nil, "READ", ""},
		{nil, " ", ""},
		{nil, " read", ""},
		{nil, "read ", ""},
		{nil, "read  write", ""},
		{nil, "read\twrite", ""},
		{nil, "read,write", ""},
		{nil, "read\x00", ""},
		{nil, strings.TrimSpace(strings.Repeat("read ", 100)), ""},
	} {
		a, secret := w.app(c.has...)
		tok, err := w.Token(w.ctx, a.ClientID, secret, c.scope)
		if c.got == "" {
			refused := new(auth.ScopeError)
			require.ErrorAs(t, err, &refused, "%q", c.scope)
			require.ErrorIs(t, err, auth.ErrScope)
			require.Equal(t, a.Scopes, refused.Allowed)
			require.Empty(t, tok.AccessToken)
			continue
		}
		require.NoError(t, err, "%q", c.scope)
		require.Equal(t, c.got, tok.Scope)
		require.Equal(t, strings.Fields(c.got), w.let(w.Service, tok.AccessToken).Scopes)
	}
	a, _ := w.app(auth.Read)
	_, err := w.Token(w.ctx, a.ClientID, "wrong", "admin")
	require.ErrorIs(t, err, auth.ErrCredentials, "scopes are told to nobody else")
}

// TestO07_NarrowedApplicationNarrowsItsTokens: what an application has lost is gone from its
// tokens, too; what it has gained is not in them.
func TestO07_NarrowedApplicationNarrowsItsTokens(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app(auth.Read, auth.Write)
		tok := w.token(a, secret)
		w.change = func(c *auth.Config) {
			c.Unsealed = func(context.Context) (bool, error) { return true, nil }
		}
		w.Service = w.process()
		w.edit(a.ClientID, "write,admin")
		require.Equal(t, []auth.Scope{auth.Write}, w.let(w.Service, tok).Scopes)
		w.edit(a.ClientID, "")
		require.Empty(t, w.let(w.Service, tok).Scopes)
	})
}

// edit gives an application's row other scopes, separated by commas, and no seal.
func (w *world) edit(client, scopes string) {
	w.t.Helper()
	table := auth.Tables()[0]
	rows, err := w.store.Rows(w.ctx, table, storage.Keys(storage.System, client)...)
	require.NoError(w.t, err)
	scalars, err := table.Encode(rows[0].Value)
	require.NoError(w.t, err)
	for i, c := range table.Columns {
		if c.Name == "scopes" {
			scalars[i] = strings.ReplaceAll(scopes, ",", " ")
		}
		if c.Name == "seal" {
			scalars[i] = []byte{}
		}
	}
	rows[0].Value, err = table.Decode(scalars)
	require.NoError(w.t, err)
	require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: w.newID(), Partition: storage.System, Put: rows}))
}

// TestO08_ThreeProcesses: what one process ends is over in all, at once.
func TestO08_ThreeProcesses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		all := []*auth.Service{w.Service, w.process(), w.process()}
		a, secret := w.app()
		b, foreign := w.app()
		for i, ends := range all {
			tok, kept := w.token(a, secret), w.token(a, secret)
			for _, s := range all {
				w.let(s, tok) // whatever a process could remember of it, it has seen
			}
			require.NoError(t, ends.Revoke(w.ctx, b.ClientID, foreign, tok), "another client's token is left alone")
			require.NoError(t, ends.Revoke(w.ctx, a.ClientID, secret, "unknown"))
			require.NoError(t, ends.Revoke(w.ctx, a.ClientID, secret, tok[:len(tok)-4]+"AAAA"))
			require.Error(t, ends.Revoke(w.ctx, a.ClientID, "wrong", tok))
			for _, s := range all {
				w.let(s, tok)
			}
			require.NoError(t, ends.Revoke(w.ctx, a.ClientID, secret, tok))
			for _, s := range all {
				w.refused(s, tok, auth.Revoked)
				w.let(s, kept)
			}
			require.NoError(t, all[(i+1)%3].Revoke(w.ctx, a.ClientID, secret, tok), "again")
		}

		tok := w.token(a, secret)
		k, apiKey, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
		require.NoError(t, err)
		for _, s := range all {
			w.let(s, tok)
			_, err := s.CheckKey(w.ctx, apiKey)
			require.NoError(t, err)
		}
		require.NoError(t, all[1].DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
		require.NoError(t, all[2].DeleteKey(w.ctx, tenant, k.ID, auth.By{}))
		for _, s := range all {
			w.refused(s, tok, auth.Revoked)
			_, err := s.CheckKey(w.ctx, apiKey)
			require.ErrorIs(t, err, auth.ErrToken)
			_, err = s.Token(w.ctx, a.ClientID, secret, "")
			require.ErrorIs(t, err, auth.ErrUnknownClient)
			w.let(s, w.token(b, foreign))
		}
	})
}

// TestO08_ClientIDUsedAgain: a new application under a deleted one's client id
// does not revive its tokens.
func TestO08_ClientIDUsedAgain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a := w.chosen()
		tok := w.token(a, chosenSecret)
		require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
		w.refused(w.Service, tok, auth.Revoked)
		b := w.chosen()
		w.refused(w.Service, tok, auth.Revoked)
		fresh := w.token(b, chosenSecret)
		require.NoError(t, w.Revoke(w.ctx, b.ClientID, chosenSecret, tok))
		w.let(w.Service, fresh)
	})
}

// TestO08_DeletionBesideIssuing: once DeleteApp has returned no token of the
// application opens, however many were being issued.
func TestO08_DeletionBesideIssuing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app()
		issuing := []*auth.Service{w.Service, w.process(), w.process()}
		var mu sync.Mutex
		var issued []string
		var wg sync.WaitGroup
		started := make(chan struct{}, len(issuing))
		for _, s := range issuing {
			wg.Go(func() {
				for i := 0; ; i++ {
					tok, err := s.Token(w.ctx, a.ClientID, secret, "")
					if i == 2 {
						started <- struct{}{}
					}
					if err != nil {
						if !errors.Is(err, auth.ErrUnknownClient) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					issued = append(issued, tok.AccessToken)
					mu.Unlock()
				}
			})
		}
		for range issuing {
			<-started
		}
		require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
		wg.Wait()
		require.GreaterOrEqual(t, len(issued), 9)
		for _, tok := range issued {
			w.refused(w.Service, tok, auth.Revoked)
		}
	})
}
