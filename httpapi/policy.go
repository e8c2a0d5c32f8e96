package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/limit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// admit holds a request to its route's policy: who calls, may he, how often,
// and are writes open.
func (h *Handler) admit(w http.ResponseWriter, c *Call) error {
	if c.Route.Access == Bearer || c.Route.Access == BearerOrKey {
		if err := h.identify(w, c); err != nil {
			return err
		}
	}
	if err := h.limit(w, c); err != nil {
		return err
	}
	if err := permit(w, c); err != nil {
		return err
	}
	if err := h.oneReport(w, c); err != nil {
		return err
	}
	if !c.Route.Writes {
		return nil
	}
	if m := h.o.Maintenance(c.Request.Context()); m.On {
		if wait := m.EndsAt.Sub(c.Now); wait > 0 {
			w.Header().Set("Retry-After", seconds(wait))
		}
		return fail(http.StatusServiceUnavailable, "maintenance", "The service is in maintenance; reading goes on.", nil)
	}
	return nil
}

// identify finds out who calls. A token in the query is never looked at.
func (h *Handler) identify(w http.ResponseWriter, c *Call) (err error) {
	if known, err := h.loggedIn(w, c); known || err != nil {
		return err
	}
	if h.o.Auth == nil {
		return unauthenticated(w, "", "Log in to the service that serves this interface.")
	}
	given := c.Request.Header.Values("Authorization")
	key := c.Request.Header.Values("X-Api-Key")
	switch {
	case len(given) > 1 || len(key) > 1:
		w.Header().Set("WWW-Authenticate", `Bearer realm="cryptopay", error="invalid_request"`)
		return fail(http.StatusBadRequest, "invalid_request", "Credentials are given twice.", map[string]any{"authorization": []string{"is given twice"}})
	case len(given) == 1:
		scheme, token, _ := strings.Cut(given[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return unauthenticated(w, "", "The Authorization header must be: Bearer <access token>.")
		}
		c.Who, err = h.o.Auth.Check(h.from(c.Request.Context(), c), strings.TrimSpace(token), h.ahead(c)...)
	case len(key) == 1 && c.Route.Access == BearerOrKey:
		c.Who, err = h.o.Auth.CheckKey(h.from(c.Request.Context(), c), key[0], h.ahead(c)...)
	default:
		return unauthenticated(w, "", "Send the header Authorization: Bearer <access token>; tokens come from POST /o/token/.")
	}
	var (
		token   *auth.TokenError
		backoff *auth.BackoffError
	)
	switch {
	case errors.As(err, &backoff):
		c.flood = true
		return tooMany(w, c, backoff.RetryAfter, "Too many wrong credentials")
	case errors.As(err, &token):
		return unauthenticated(w, token.Reason, "The credentials are "+token.Reason+". Ask POST /o/token/ for a new token.")
	case errors.Is(err, auth.ErrToken):
		return unauthenticated(w, "invalid", "The credentials are invalid.")
	}
	return err
}

// unauthenticated is 401 with the challenge of RFC 6750 §3.
func unauthenticated(w http.ResponseWriter, reason, hint string) error {
	challenge := `Bearer realm="cryptopay"`
	if reason != "" {
		challenge += `, error="invalid_token", error_description="The access token is ` + reason + `"`
	}
	w.Header().Set("WWW-Authenticate", challenge)
	return fail(http.StatusUnauthorized, "authentication_failed", "Authentication failed.", map[string]any{"hint": hint})
}

// permit checks scopes and roles.
func permit(w http.ResponseWriter, c *Call) error {
	r := c.Route
	for _, scope := range r.Scopes {
		if !slices.Contains(c.Who.Scopes, scope) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="cryptopay", error="insufficient_scope", scope="`+strings.Join(r.Scopes, " ")+`"`)
			return fail(http.StatusForbidden, "permission_denied", "The token lacks a required scope.",
				map[string]any{"required_scopes": r.Scopes, "token_scopes": append([]auth.Scope{}, c.Who.Scopes...)})
		}
	}
	if slices.Contains(r.Except, c.Who.Role.Plain()) {
		return fail(http.StatusForbidden, "permission_denied", "The role "+string(c.Who.Role)+" may not do this.", nil)
	}
	if len(r.Roles) > 0 && !slices.Contains(r.Roles, c.Who.Role.Plain()) {
		who := "approvers"
		switch {
		case slices.Contains(r.Roles, auth.TenantAdmin):
			who = "tenant administrators"
		case slices.Contains(r.Roles, auth.GlobalAdmin):
			who = "global administrators"
		}
		return fail(http.StatusForbidden, "permission_denied", "Only "+who+" may do this.", map[string]any{"required_roles": r.Roles})
	}
	return nil
}

// reportWait is what Retry-After says beside a report that is being made.
const reportWait = 5 * time.Second

// oneReport lets one report at a time be made for a tenant: each reads the whole
// history that it is about, and must not slow the requests of others.
func (h *Handler) oneReport(w http.ResponseWriter, c *Call) error {
	if c.Route.Limit != LimitReport {
		return nil
	}
	tenant := c.Tenant()
	if _, busy := h.reports.LoadOrStore(tenant, nil); busy {
		return tooMany(w, c, reportWait, "Another report is being made")
	}
	c.leave = func() { h.reports.Delete(tenant) }
	return nil
}

// limit counts the request and says in headers what is left.
func (h *Handler) limit(w http.ResponseWriter, c *Call) error {
	worst := limit.State{Allowed: true, Remaining: math.MaxInt}
	for _, count := range h.counts(c) {
		state, err := h.o.Limiter.Take(c.Request.Context(), count.key, c.Now, count.rules...)
		if err != nil {
			return err
		}
		if state.Remaining < worst.Remaining || !state.Allowed {
			worst = state
		}
		if !state.Allowed {
			break
		}
	}
	if worst.Limit == 0 {
		return nil
	}
	hd := w.Header()
	// As http.Header writes the names: HTTP's are the same in any case.
	v := [...]string{strconv.Itoa(worst.Limit), strconv.Itoa(max(0, worst.Remaining)), strconv.FormatInt(ceilUnix(worst.Reset), 10)}
	hd["X-Ratelimit-Limit"] = v[0:1:1]
	hd["X-Ratelimit-Remaining"] = v[1:2:2]
	hd["X-Ratelimit-Reset"] = v[2:3:3]
	if worst.Allowed {
		return nil
	}
	c.flood = true
	return tooMany(w, c, worst.Reset.Sub(c.Now), "Too many requests")
}

// tooMany is 429, in the form of the route.
func tooMany(w http.ResponseWriter, c *Call, left time.Duration, what string) error {
	wait := seconds(left)
	w.Header().Set("Retry-After", wait)
	if c.Route.Style == OAuth {
		return fail(http.StatusTooManyRequests, "rate_limit_exceeded", what+", try again in "+wait+" s.", nil)
	}
	after, _ := strconv.Atoi(wait)
	return fail(http.StatusTooManyRequests, "rate_limit_exceeded", what+".", map[string]any{"retry_after": after})
}

// from is ctx with the address that wrong credentials are counted by.
func (h *Handler) from(ctx context.Context, c *Call) context.Context {
	return auth.WithAddress(ctx, h.clientAddress(c.Request))
}

// counted is one counter that a request counts in.
type counted struct {
	key   string
	rules []limit.Rule
}

// counts lists the counters of a request's route.
func (h *Handler) counts(c *Call) []counted {
	var out []counted
	add := func(key string, rules ...limit.Rule) {
		rules = slices.DeleteFunc(rules, func(r limit.Rule) bool { return r.Max <= 0 })
		if len(rules) > 0 {
			out = append(out, counted{key, rules})
		}
	}
	l := h.o.Limits
	switch c.Route.Limit {
	case LimitNone:
		return nil
	case LimitToken:
		add("ip/"+h.clientAddress(c.Request), limit.Rule{Name: c.Route.Name, Max: l.TokenPerMinute, Window: time.Minute})
		return out
	}
	if c.Route.Limit == LimitClaim {
		add("ip/"+h.clientAddress(c.Request), limit.Rule{Name: "claims", Max: l.ClaimsPerMinute, Window: time.Minute})
		return out
	}
	mine := []limit.Rule{{Name: "api", Max: l.PerHour, Window: time.Hour}}
	tenant := []limit.Rule{{Name: "api", Max: l.TenantPerHour, Window: time.Hour}}
	switch c.Route.Limit {
	case LimitHistory:
		mine = []limit.Rule{{Name: "history/m", Max: l.HistoryPerMinute, Window: time.Minute}, {Name: "history/h", Max: l.HistoryPerHour, Window: time.Hour}}
	case LimitPayment:
		tenant = append(tenant, limit.Rule{Name: "payments", Max: l.PaymentsPerHour, Window: time.Hour})
	case LimitPayout:
		tenant = append(tenant, limit.Rule{Name: "payouts", Max: l.PayoutsPerHour, Window: time.Hour})
	case LimitResend:
		tenant = append(tenant, limit.Rule{Name: "resends", Max: l.ResendsPerHour, Window: time.Hour})
	case LimitTest:
		tenant = append(tenant, limit.Rule{Name: "tests", Max: l.WebhookTestsPerHour, Window: time.Hour})
	}
	add("token/"+c.Who.Token, mine...)
	add("tenant/"+c.Tenant(), tenant...)
	return out
}

// clientAddress is the peer's address; behind trusted proxies the rightmost
// forwarded one that is none of them.
func (h *Handler) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	peer, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && h.trusted(peer); i-- {
		hop := strings.TrimSpace(hops[i])
		next, err := netip.ParseAddr(hop)
		if err != nil { // some proxies write the port, too
			with, err := netip.ParseAddrPort(hop)
			if err != nil {
				break
			}
			next = with.Addr()
		}
		peer = next
	}
	return network(peer)
}

// network is what one client is counted as: an address, or the /64 that one
// customer of an IPv6 provider has.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64)
	return p.String()
}

func (h *Handler) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(h.o.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// seconds rounds a wait up, at least 1.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}

func ceilUnix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// onceOf is the Idempotency-Key of a request, without a Key where its route takes none, or
// none is given. ok is false where it is not one.
func onceOf(c *Call) (once storage.Once, ok bool) {
	given := c.Request.Header.Values("Idempotency-Key")
	if !c.Route.Once || len(given) == 0 {
		return once, true
	}
	key := given[0]
	if len(given) > 1 || key == "" || len(key) > maxOnceKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return once, false
	}
	return storage.Once{Key: c.Route.Name + "/" + key}, true
}

// ahead reads the first answer to a request's Idempotency-Key beside its credentials.
func (h *Handler) ahead(c *Call) []auth.Beside {
	once, _ := onceOf(c)
	if once.Key == "" {
		return nil
	}
	return []auth.Beside{func(ctx context.Context, tenant string) error {
		c.once, c.onceOf = once, tenant
		return c.once.Look(ctx, h.store, storage.Tenant(tenant))
	}}
}

// once reads the Idempotency-Key of a request. A key that answered another body
// is told before the body is looked at. leave ends the request's hold of the key.
func (h *Handler) once(c *Call, body []byte) (leave func(), err error) {
	once, ok := onceOf(c)
	switch {
	case !ok:
		return func() {}, bad("Idempotency-Key", "must be one key of 1 to 128 visible ASCII characters")
	case once.Key == "":
		return func() {}, nil
	}
	if c.onceOf == "" || c.onceOf != c.Tenant() { // nothing was read ahead, or another tenant's
		c.once = once
	}
	c.Key = once.Key
	said := sha256.New()
	for _, v := range c.values { // of which object: as much of the request as its body
		_, _ = io.WriteString(said, v+"/") // a hash never fails
	}
	_, _ = said.Write(body)
	c.once.Fingerprint = hex.EncodeToString(said.Sum(nil))
	p := storage.Tenant(c.Tenant())
	if leave, err = h.inFlight.Enter(p, &c.once); err != nil {
		return leave, err
	}
	// The service does not ask the store again: c.once keeps what was found. What another
	// request wrote since makes the service's Change a conflict, and it looks again.
	_, _, err = c.once.Find(c.Request.Context(), h.cfg.Store, p, c.Now)
	return leave, err
}

// overtaken reports whether another request with the same key and body was answered after
// this one had looked for its answer. This one was refused, maybe because the other one took
// what it needs: the endpoint called again gives the other one's answer.
func (h *Handler) overtaken(c *Call) bool {
	again := storage.Once{Key: c.once.Key, Fingerprint: c.once.Fingerprint}
	_, replay, err := again.Find(c.Request.Context(), h.cfg.Store, storage.Tenant(c.Tenant()), c.Now)
	if err == nil && replay {
		c.once = again
	}
	return err == nil && replay
}

const maxOnceKey = 128
