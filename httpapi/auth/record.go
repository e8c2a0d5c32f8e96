package auth

import (
	"cmp"
	"context"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// record adds an act to the Change that does it, and tells the host of it. object is a client id, or the id of a key.
func (s *Service) record(ctx context.Context, c *storage.Change, kind string, by By, tenant, object string, before, after any) error {
	if s.audit == nil {
		return nil
	}
	return s.audit(ctx, c, audit.Act{
		Kind: kind, By: cmp.Or(by.Name, "host"), Reason: by.Reason, Tenant: tenant, Object: object, Before: before, After: after, Tell: true,
	})
}

// credential is what a record shows of one: nothing that helps to guess its secret.
type credential struct {
	Name   string `json:"name"`
	Scopes string `json:"scopes"`
	Role   string `json:"role,omitempty"`
}

func (a application) shown() any { return credential{a.Name, a.Scopes, a.Role} }

func (k apiKey) shown() any { return credential{k.Name, k.Scopes, k.Role} }
