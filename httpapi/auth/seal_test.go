package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
)

// insider is a world with credentials of two tenants, and somebody who can write to its
// database and nothing else.
type insider struct {
	*world
	mu  sync.Mutex
	log bytes.Buffer

	client, secret, bearer, key string // of tenant, which he may use
	row                         string // of the bearer token
}

func (i *insider) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.Write(p)
}

func (i *insider) heard() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.String()
}

func newInsider(t *testing.T, w *world) *insider {
	i := &insider{world: w}
	w.change = func(c *auth.Config) { c.Log = slog.New(slog.NewTextHandler(i, nil)) }
	w.Service = w.process()
	a, secret := w.app(auth.Read)
	i.client, i.secret, i.bearer = a.ClientID, secret, w.token(a, secret)
	var err error
	i.row = i.rows(auth.Tables()[1])[0].ID
	_, i.key, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "k", Scopes: []auth.Scope{auth.Read}})
	require.NoError(t, err)
	_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: other, Name: "k", Role: auth.TenantAdmin})
	require.NoError(t, err)
	w.Service = w.process() // what one process knew of them is gone
	return i
}

// rows are all of a table.
func (i *insider) rows(t *storage.Table) []storage.Row {
	i.t.Helper()
	rows, err := i.store.Find(i.ctx, storage.Query{Table: t, Partition: storage.System, Limit: 100})
	require.NoError(i.t, err)
	return rows
}

func (i *insider) write(r storage.Row) {
	i.t.Helper()
	require.NoError(i.t, storage.CommitOne(i.ctx, i.store, storage.Change{ID: i.newID(), Partition: storage.System, Put: []storage.Row{r}}))
}

// edited is a row with another value in one column.
func (i *insider) edited(r storage.Row, column string, with func(was any) any) storage.Row {
	i.t.Helper()
	scalars, err := r.Table.Encode(r.Value)
	require.NoError(i.t, err)
	for n, c := range r.Table.Columns {
		if c.Name == column {
			scalars[n] = with(scalars[n])
		}
	}
	r.Value, err = r.Table.Decode(scalars)
	require.NoError(i.t, err)
	return r
}

// another is a value that a column does not have.
func another(was any) any {
	switch v := was.(type) {
	case int64:
		return (v + 1) % 2 // of a bool the other
	case []byte:
		return append([]byte{1}, v...)
	default:
		return "x" + v.(string)
	}
}

// uses tries all that the insider has, on a process of its own, and counts what is granted.
func (i *insider) uses() (granted int) {
	s := i.process()
	_, app := s.Token(i.ctx, i.client, i.secret, "")
	_, bearer := s.Check(i.ctx, i.bearer)
	_, key := s.CheckKey(i.ctx, i.key)
	for _, err := range []error{app, bearer, key} {
		if err == nil {
			granted++
		}
	}
	return granted
}

// A credential whose row was edited in the database grants nothing, whatever the column is.
// It is logged, and Verify names it.
func TestFS02_EditedCredentialGrantsNothing(t *testing.T) {
	f := func(t *testing.T, w *world) {
		i := newInsider(t, w)
		require.Equal(t, 3, i.uses())
		sound, err := i.Verify(i.ctx, "")
		require.NoError(t, err)
		require.Empty(t, sound)
		columns, copied := 0, 0
		for _, table := range auth.Tables() {
			if table.Name == "application_sequence" {
				continue
			}
			for _, c := range table.Columns {
				columns++
				was := i.rows(table)[0]
				for _, r := range i.rows(table) { // not that of the other tenant
					if scalars, err := table.Encode(r.Value); err == nil && scalars[1] == tenant || r.ID == i.row {
						was = r
					}
				}
				before := strings.Count(i.heard(), "msg=credential_altered")
				i.write(i.edited(was, c.Name, another))
				found, err := i.Verify(i.ctx, "")
				require.NoError(t, err)
				require.Len(t, found, 1, "%s.%s", table.Name, c.Name)
				require.Equal(t, was.ID, found[0].ID)
				require.Less(t, i.uses(), 3, "%s.%s", table.Name, c.Name)
				if c.Name != "secret_hash" && c.Name != "client_id" && c.Name != "number" && c.Name != "application" && c.Name != "revoked" && c.Name != "expires_at" { // else it is refused before
					require.Greater(t, strings.Count(i.heard(), "msg=credential_altered"), before, "%s.%s", table.Name, c.Name)
				}
				now := i.rows(table)
				for _, r := range now {
					if r.ID == was.ID {
						was.Version = r.Version
					}
				}
				i.write(was)
				require.Equal(t, 3, i.uses(), "put back")
			}
			copied += i.copiesAndDeletes(table)
		}
		require.Equal(t, 10+8+7, columns)
		require.Positive(t, copied)
	}
	each(t, f)
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("a server of its own takes seconds")
		}
		f(t, onPostgres(t))
	})
}

// copiesAndDeletes copies each row of a table under another id: Verify names the copy, unless the database refuses it. Then it
// takes away the insider's own, which grants nothing more. It returns how many copies the database took.
func (i *insider) copiesAndDeletes(table *storage.Table) (copied int) {
	i.t.Helper()
	for _, was := range i.rows(table) {
		made := was
		made.ID, made.Version = "made-up", 0
		if storage.CommitOne(i.ctx, i.store, storage.Change{ID: i.newID(), Partition: storage.System, Put: []storage.Row{made}}) == nil {
			found, err := i.Verify(i.ctx, "")
			require.NoError(i.t, err)
			require.Len(i.t, found, 1, table.Name)
			require.Equal(i.t, "made-up", found[0].ID)
			made.Version = 1
			i.drop(made)
			copied++
		}
		require.Equal(i.t, 3, i.uses(), table.Name)
		if scalars, err := table.Encode(was.Value); err != nil || scalars[1] != tenant && was.ID != i.row {
			continue // the other tenant's
		}
		i.drop(was)
		require.Less(i.t, i.uses(), 3, "%s deleted", table.Name)
		was.Version = 0
		i.write(was)
		require.Equal(i.t, 3, i.uses(), "put back")
	}
	return copied
}

func (i *insider) drop(r storage.Row) {
	i.t.Helper()
	require.NoError(i.t, storage.CommitOne(i.ctx, i.store, storage.Change{ID: i.newID(), Partition: storage.System, Drop: []storage.Row{r}}))
}

// A row that was made up, copied from another one, or lost its seal grants nothing.
func TestFS02_CredentialThatNobodyMadeGrantsNothing(t *testing.T) {
	f := func(t *testing.T, w *world) {
		i := newInsider(t, w)
		keys := auth.Tables()[2]
		require.Equal(t, "api_keys", keys.Name)
		var mine, foreign storage.Row
		for _, r := range i.rows(keys) {
			if scalars, err := keys.Encode(r.Value); err == nil && scalars[1] == tenant {
				mine = r
			} else {
				foreign = r
			}
		}
		require.NoError(t, storage.CommitOne(i.ctx, i.store, storage.Change{ID: "gone", Partition: storage.System, Drop: []storage.Row{foreign}}))
		foreign.ID, foreign.Version = mine.ID, mine.Version // the rights of another under the hash of his own key
		i.write(foreign)
		_, err := i.process().CheckKey(i.ctx, i.key)
		require.ErrorIs(t, err, auth.ErrToken)
		found, err := i.Verify(i.ctx, other)
		require.NoError(t, err)
		require.Len(t, found, 1)

		foreign = i.edited(foreign, "seal", func(any) any { return []byte{} })
		foreign.Version++
		i.write(foreign)
		_, err = i.process().CheckKey(i.ctx, i.key)
		require.ErrorIs(t, err, auth.ErrToken)
		n, err := i.Reseal(i.ctx)
		require.NoError(t, err)
		require.Zero(t, n, "what has no seal is not sealed once all was")
	}
	each(t, f)
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("a server of its own takes seconds")
		}
		f(t, onPostgres(t))
	})
}

// A store of a version before seals: its credentials are accepted while the host says so,
// and sealed by Reseal, but for those that were edited since they were sealed.
func TestFM08_CredentialsOfAnEarlierVersion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		i := newInsider(t, w)
		taken := true
		was := i.change
		i.change = func(c *auth.Config) {
			was(c)
			c.Unsealed = func(context.Context) (bool, error) { return taken, nil }
		}
		i.Service = i.process()
		for _, table := range auth.Tables()[:3] {
			for _, r := range i.rows(table) {
				i.write(i.edited(r, "seal", func(any) any { return []byte{} }))
			}
		}
		require.Equal(t, 3, i.uses())
		taken = false
		require.Zero(t, i.uses())
		found, err := i.Verify(i.ctx, tenant)
		require.NoError(t, err)
		require.Len(t, found, 2)
		taken = true
		n, err := i.Reseal(i.ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, 4)
		n, err = i.Reseal(i.ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		taken = false
		require.Equal(t, 3, i.uses())
		found, err = i.Verify(i.ctx, "")
		require.NoError(t, err)
		require.Empty(t, found)

		i.change = func(c *auth.Config) {
			was(c)
			c.Unsealed = func(context.Context) (bool, error) { return false, errors.New("the store is away") }
		}
		require.Equal(t, 3, i.uses(), "nobody is asked about what is sealed")
	})
}

// keysAre has processes that start from now on take these keys, newest first.
func (i *insider) keysAre(seeds ...byte) {
	was := i.change
	i.change = func(c *auth.Config) {
		was(c)
		c.Key, c.Keys = nil, nil
		for _, b := range seeds {
			c.Keys = append(c.Keys, bytes.Repeat([]byte{b}, 32))
		}
	}
	i.Service = i.process()
}

// TestFM08_KeyOfCredentialsIsRotated: a new key takes the old one's place. Whoever uses a
// credential meanwhile has it afterwards; those who did not are listed before the old key goes.
func TestFM08_KeyOfCredentialsIsRotated(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		i := newInsider(t, w)
		unused, secret, err := i.CreateKey(i.ctx, auth.NewKey{Tenant: tenant, Name: "unused", Scopes: []auth.Scope{auth.Read}})
		require.NoError(t, err)
		i.keysAre(7, 8)
		require.Equal(t, 3, i.uses())
		i.keysAre(8, 7)
		left, err := i.Unmoved(i.ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(left), 3)
		require.Equal(t, 3, i.uses())
		_, _, err = i.CreateKey(i.ctx, auth.NewKey{Tenant: other, Name: "taken", Key: secret, Scopes: []auth.Scope{auth.Read}})
		require.ErrorIs(t, err, auth.ErrExists, "it is another's")

		i.keysAre(7, 8)
		require.Equal(t, 3, i.uses(), "a process with the list of before")
		i.keysAre(8, 7)
		require.Equal(t, 3, i.uses())
		found, err := i.Verify(i.ctx, "")
		require.NoError(t, err)
		require.Empty(t, found)
		left, err = i.Unmoved(i.ctx)
		require.NoError(t, err)
		require.Contains(t, kinds(left), "api key "+tenant)
		require.NotContains(t, kinds(left), "application "+tenant)
		_, err = i.CheckKey(i.ctx, secret)
		require.NoError(t, err)
		again, err := i.Keys(i.ctx, tenant)
		require.NoError(t, err)
		require.Contains(t, again, unused, "as it was")
		left, err = i.Unmoved(i.ctx)
		require.NoError(t, err)
		require.NotContains(t, kinds(left), "api key "+tenant)

		i.keysAre(8)
		_, err = i.CheckKey(i.ctx, secret)
		require.NoError(t, err)
		require.Equal(t, 2, i.uses(), "all but the token of before")
		i.keysAre(7)
		require.Zero(t, i.uses())
	})
}

// TestFM08_TokenOfAnOlderKeyIsRevoked: also while keys are rotated a token ends when its
// client says so.
func TestFM08_TokenOfAnOlderKeyIsRevoked(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		app, secret := w.app(auth.Read)
		token, err := w.Token(w.ctx, app.ClientID, secret, "")
		require.NoError(t, err)
		i := &insider{world: w}
		i.keysAre(8, 7)
		_, err = i.Check(i.ctx, token.AccessToken)
		require.NoError(t, err)
		require.NoError(t, i.Revoke(i.ctx, app.ClientID, secret, token.AccessToken))
		_, err = i.Check(i.ctx, token.AccessToken)
		require.ErrorIs(t, err, auth.ErrToken)
	})
}

func kinds(list []auth.Credential) (out []string) {
	for _, c := range list {
		out = append(out, c.Kind+" "+c.Tenant)
	}
	return out
}
