package auth

import (
	"regexp"
	"slices"
	"strings"
)

// Scope is what a token may be used for.
type Scope = string

// The scopes, in the order in which they are always listed.
const (
	Read  Scope = "read"
	Write Scope = "write"
	Admin Scope = "admin"
)

var allScopes = []Scope{Read, Write, Admin}

// Role lifts an application or key above its scopes. It has one at most.
type Role string

// The roles. They are given through this package alone, never over HTTP.
const (
	NoRole      Role = ""
	TenantAdmin Role = "tenant_admin" // the treasury of its own tenant
	GlobalAdmin Role = "global_admin" // the treasury of all
	// Approver decides about its tenant's withdrawals that others asked for. With a name of the
	// host's behind a colon ("approver:finance") it also has that role in policies.
	Approver Role = "approver"
)

// Plain is the role without the name behind it.
func (r Role) Plain() Role {
	plain, _, _ := strings.Cut(string(r), ":")
	return Role(plain)
}

// Name is what stands behind the colon, "" = nothing.
func (r Role) Name() string {
	_, name, _ := strings.Cut(string(r), ":")
	return name
}

// Valid reports whether an application or key can have the role.
func (r Role) Valid() bool {
	return r == NoRole || r == TenantAdmin || r == GlobalAdmin || r == Approver || roleName.MatchString(string(r))
}

var roleName = regexp.MustCompile(`^approver:[a-z0-9_-]{1,32}$`)

// maxScope bounds what is looked at of a requested scope.
const maxScope = 200

// grant is what a request for scope gets of what is allowed, "" asking for all.
// Names are separated by single spaces and may come twice. *ScopeError.
func grant(scope string, allowed []Scope) ([]Scope, error) {
	if scope == "" {
		return allowed, nil
	}
	if len(scope) > maxScope {
		return nil, &ScopeError{Allowed: allowed}
	}
	asked := strings.Split(scope, " ")
	for _, s := range asked {
		if !slices.Contains(allowed, s) {
			return nil, &ScopeError{Allowed: allowed}
		}
	}
	return common(allowed, asked), nil
}

// common is what two lists share, in the order of the first.
func common(a, b []Scope) []Scope {
	out := []Scope{}
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// checkScopes puts the scopes of a new application or key in order: none given
// are read and write.
func checkScopes(bad *InvalidError, scopes []Scope) []Scope {
	if len(scopes) == 0 {
		return []Scope{Read, Write}
	}
	for _, s := range scopes {
		if !slices.Contains(allScopes, s) {
			bad.Add("scopes", "must be of read, write and admin")
			break
		}
	}
	return common(allScopes, scopes)
}

func checkRole(bad *InvalidError, r Role) {
	if !r.Valid() {
		bad.Add("role", "must be empty, tenant_admin, global_admin, approver, or approver: with 1 to 32 of a-z, 0-9, - and _ behind it")
	}
}

// Scopes are stored as they are sent: separated by spaces.
func joinScopes(s []Scope) string  { return strings.Join(s, " ") }
func splitScopes(s string) []Scope { return strings.Fields(s) }
