package auth

import (
	"context"
	"crypto/hmac"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Whoever can write to the database could give a credential another tenant, another role,
// more scopes or a later end. So every row has a seal: a keyed hash of its id and its other
// columns. A row whose seal is wrong grants nothing.

// Logged as errors. The attributes are table and id.
const eventAltered = "credential_altered"

// colSeal is the column of the seal.
const colSeal = "seal"

// sealFor is the seal of a row with the newest key.
func (s *Service) sealFor(t *storage.Table, id string, value any) ([]byte, error) {
	seals, err := s.seals(t, id, value)
	if err != nil {
		return nil, err
	}
	return seals[0], nil
}

// seals are the seals of a row with every key, newest first. A column that has its zero value
// is left out, so that a column which a later version adds changes no seal.
func (s *Service) seals(t *storage.Table, id string, value any) ([][]byte, error) {
	scalars, err := t.Encode(value)
	if err != nil {
		return nil, err
	}
	texts := []string{t.Name, id}
	for i := range t.Columns {
		c := &t.Columns[i]
		var text string
		switch v := scalars[i].(type) {
		case string:
			text = v
		case []byte:
			text = string(v)
		case int64:
			if v != 0 {
				text = strconv.FormatInt(v, 10)
			}
		}
		if c.Name != colSeal && text != "" {
			texts = append(texts, c.Name, text)
		}
	}
	return s.macs(forSeal, texts...), nil
}

// applicationRow makes the sealed row of an application.
func (s *Service) applicationRow(id string, version int64, a application) (r storage.Row, err error) {
	a.Seal, err = s.sealFor(applications.Table, id, a)
	return applications.Row(id, version, time.Time{}, a), err
}

func (s *Service) keyRow(id string, version int64, k apiKey) (r storage.Row, err error) {
	k.Seal, err = s.sealFor(apiKeys.Table, id, k)
	return apiKeys.Row(id, version, time.Time{}, k), err
}

func (s *Service) tokenRow(id string, version int64, due time.Time, t token) (r storage.Row, err error) {
	t.Seal, err = s.sealFor(tokens.Table, id, t)
	return tokens.Row(id, version, due, t), err
}

// intact reports whether a row is as this service wrote it, and logs it if it is not. A row
// without a seal is, as long as Config.Unsealed says so.
func (s *Service) intact(ctx context.Context, t *storage.Table, id string, value any, seal []byte) (bool, error) {
	ok, err := s.sealed(ctx, t, id, value, seal)
	if err == nil && !ok {
		s.log.ErrorContext(ctx, eventAltered, slog.String("table", t.Name), slog.String("id", id))
	}
	return ok, err
}

func (s *Service) sealed(ctx context.Context, t *storage.Table, id string, value any, seal []byte) (bool, error) {
	if len(seal) == 0 {
		return s.unsealed(ctx)
	}
	seals, err := s.seals(t, id, value)
	return slices.ContainsFunc(seals, func(want []byte) bool { return hmac.Equal(want, seal) }), err
}

// Credential is one that is stored.
type Credential struct {
	Kind   string // "application" or "api key"
	ID     string
	Tenant string
}

// Unmoved lists the applications and API keys that are hashed with an older one of
// Config.Keys: their secrets were not used since the newest came. They are void when that older
// one goes. Tokens are not listed: they end by themselves.
func (s *Service) Unmoved(ctx context.Context) (out []Credential, err error) {
	err = s.eachRow(ctx, func(kind, of string, r storage.Row, seal []byte) error {
		seals, err := s.seals(r.Table, r.ID, r.Value)
		if err != nil || r.Table == tokens.Table || hmac.Equal(seals[0], seal) {
			return err
		}
		if slices.ContainsFunc(seals[1:], func(other []byte) bool { return hmac.Equal(other, seal) }) {
			out = append(out, Credential{Kind: kind, ID: r.ID, Tenant: of})
		}
		return nil
	})
	return out, err
}

// move commits a row that the newest key hashes in the place of one that an older key did. The
// credential is good whether it succeeds or not: if not, its next use tries again.
func (s *Service) move(ctx context.Context, c storage.Change, err error) {
	if err == nil {
		c.ID, c.Partition = s.newID(), storage.System
		err = storage.CommitOne(ctx, s.store, c)
	}
	if err != nil && !errors.Is(err, storage.ErrConflict) { // another process was first
		s.log.WarnContext(ctx, "credential_not_moved", slog.Any("error", err))
	}
}

// Altered is a row of a credential that somebody edited or made up in the database.
type Altered struct {
	Kind   string // "application", "api key" or "access token"
	ID     string
	Tenant string // as the row says, "" of a token
	Detail string
}

// Verify lists the credentials whose rows are not as this service wrote them. They grant
// nothing. Of tenant "", it lists those of all tenants; tokens belong to no tenant. The
// error joins the *storage.RowErrors of credentials that cannot be read, whose tenant is
// unknown; all others are looked at.
func (s *Service) Verify(ctx context.Context, tenant string) (out []Altered, err error) {
	err = s.eachRow(ctx, func(kind, of string, r storage.Row, seal []byte) error {
		if tenant != "" && of != tenant {
			return nil
		}
		ok, err := s.sealed(ctx, r.Table, r.ID, r.Value, seal)
		if err == nil && !ok {
			why := "no key that is listed made its seal of its columns"
			if len(seal) == 0 {
				why = "it has no seal"
			}
			out = append(out, Altered{Kind: kind, ID: r.ID, Tenant: of, Detail: why})
		}
		return err
	})
	return out, err
}

// Reseal seals the rows that a version before seals wrote, while Config.Unsealed accepts
// them, and returns how many it sealed. It leaves rows alone whose seal is wrong. It may be
// stopped and called again, beside processes that work.
func (s *Service) Reseal(ctx context.Context) (n int, err error) {
	err = s.eachRow(ctx, func(_, _ string, r storage.Row, seal []byte) error {
		if len(seal) > 0 {
			return nil
		}
		taken, err := s.unsealed(ctx)
		if err != nil || !taken {
			return err
		}
		row, err := s.resealed(r)
		if err != nil {
			return err
		}
		err = storage.CommitOne(ctx, s.store, storage.Change{ID: s.newID(), Partition: storage.System, Put: []storage.Row{row}})
		if errors.Is(err, storage.ErrConflict) { // it was written meanwhile, and sealed, or is gone
			return nil
		}
		if err == nil {
			n++
		}
		return err
	})
	return n, err
}

func (s *Service) resealed(r storage.Row) (row storage.Row, err error) {
	switch v := r.Value.(type) {
	case application:
		row, err = s.applicationRow(r.ID, r.Version, v)
	case apiKey:
		row, err = s.keyRow(r.ID, r.Version, v)
	case token:
		row, err = s.tokenRow(r.ID, r.Version, r.Due, v)
	}
	return row, err
}

// eachRow calls f with every credential that is stored; see storage.Pages.
func (s *Service) eachRow(ctx context.Context, f func(kind, tenant string, r storage.Row, seal []byte) error) error {
	var unread storage.RowErrors
	for _, t := range []*storage.Table{applications.Table, apiKeys.Table, tokens.Table} {
		err := storage.Pages(ctx, s.store, storage.Query{Table: t, Partition: storage.System, Limit: pageRows}, func(rows []storage.Row) (err error) {
			for _, r := range rows {
				switch v := r.Value.(type) {
				case application:
					err = f("application", v.Tenant, r, v.Seal)
				case apiKey:
					err = f("api key", v.Tenant, r, v.Seal)
				case token:
					err = f("access token", "", r, v.Seal)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err = unread.Take(err); err != nil {
			return err
		}
	}
	return unread.With(nil)
}

// pageRows is how many rows are read at once.
const pageRows = 500
