package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// The OAuth endpoints follow RFC 6749 and RFC 7009. They read their forms
// themselves, as their errors have another form.

type tokenView struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type" about:"Bearer"`
	ExpiresIn   int    `json:"expires_in" about:"seconds"`
	Scope       string `json:"scope" about:"space-separated"`
}

func (h *Handler) createToken(ctx context.Context, c *Call, _ none) (tokenView, error) {
	c.header.Set("Pragma", "no-cache") // RFC 6749 §5.1, beside no-store
	form, by, err := h.clientForm(c)
	if err != nil {
		return tokenView{}, err
	}
	switch grant := form.Get("grant_type"); grant {
	case "client_credentials":
	case "":
		return tokenView{}, oauthFail(http.StatusBadRequest, "invalid_request", "grant_type is required.")
	default:
		return tokenView{}, oauthFail(http.StatusBadRequest, "unsupported_grant_type", "grant_type must be client_credentials.")
	}
	var t auth.Token
	err = by.try(func(id, secret string) (err error) {
		t, err = h.o.Auth.Token(h.from(ctx, c), id, secret, form.Get("scope"))
		return err
	})
	if err != nil {
		return tokenView{}, clientError(c, err)
	}
	return tokenView{AccessToken: t.AccessToken, TokenType: "Bearer", ExpiresIn: t.ExpiresIn, Scope: t.Scope}, nil
}

func (h *Handler) revokeToken(ctx context.Context, c *Call, _ none) (none, error) {
	form, by, err := h.clientForm(c)
	if err != nil {
		return none{}, err
	}
	token := form.Get("token")
	if token == "" {
		return none{}, oauthFail(http.StatusBadRequest, "invalid_request", "token is required.")
	}
	err = by.try(func(id, secret string) error { return h.o.Auth.Revoke(h.from(ctx, c), id, secret, token) })
	if err != nil {
		return none{}, clientError(c, err)
	}
	return none{}, nil
}

// client is who says to call. Where his credentials can be read in another way,
// too, those are there as well.
type client struct {
	id, secret           string
	otherID, otherSecret string
}

// try calls f with the credentials, and with the others where those are wrong.
func (by *client) try(f func(id, secret string) error) error {
	err := f(by.id, by.secret)
	if by.otherID != "" && (errors.Is(err, auth.ErrCredentials) || errors.Is(err, auth.ErrUnknownClient) || errors.Is(err, auth.ErrBackoff)) {
		return f(by.otherID, by.otherSecret)
	}
	return err
}

// basicClient reads credentials out of a Basic header. RFC 6749 §2.3.1 has them
// form-encoded in it, which curl and many clients leave out: a plus sign alone is
// taken for itself first, as base64 has it.
func basicClient(id, secret string) client {
	decodedID, err1 := url.QueryUnescape(id)
	decodedSecret, err2 := url.QueryUnescape(secret)
	switch {
	case err1 != nil || err2 != nil || decodedID == id && decodedSecret == secret:
		return client{id: id, secret: secret}
	case strings.Contains(id+secret, "%"):
		return client{decodedID, decodedSecret, id, secret}
	}
	return client{id, secret, decodedID, decodedSecret}
}

// clientForm reads the form and the client's credentials: a Basic header or
// form fields, never both (RFC 6749 §2.3). A parameter given twice is refused
// (§3.2), the query is not looked at.
func (h *Handler) clientForm(c *Call) (url.Values, *client, error) {
	form, err := readForm(c.Request)
	if err != nil {
		return nil, nil, err
	}
	by := client{id: form.Get("client_id"), secret: form.Get("client_secret")}
	if given := c.Request.Header.Values("Authorization"); len(given) > 0 {
		if len(given) > 1 || by.secret != "" {
			return nil, nil, oauthFail(http.StatusBadRequest, "invalid_request", "Credentials are given twice.")
		}
		user, password, ok := c.Request.BasicAuth()
		if !ok {
			return nil, nil, refuseClient(c, "invalid_client", "The Authorization header must be Basic.")
		}
		named := by.id
		if by = basicClient(user, password); named != "" && named != by.id && named != by.otherID {
			return nil, nil, oauthFail(http.StatusBadRequest, "invalid_request", "Two clients are named.")
		}
	}
	if by.id == "" || by.secret == "" {
		return nil, nil, refuseClient(c, "invalid_client", "Send client_id and client_secret as a Basic header or as form fields.")
	}
	return form, &by, nil
}

// readForm reads a form strictly.
func readForm(r *http.Request) (url.Values, error) {
	body, _, err := readBody(r, "application/x-www-form-urlencoded")
	var media *errMedia
	switch {
	case errors.As(err, &media):
		return nil, oauthFail(http.StatusUnsupportedMediaType, "invalid_request", "The Content-Type must be "+media.want+".")
	case errors.Is(err, errTooLarge):
		return nil, oauthFail(http.StatusRequestEntityTooLarge, "invalid_request", "The request body is too large.")
	case err != nil:
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, oauthFail(http.StatusBadRequest, "invalid_request", "The body must be a form.")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, oauthFail(http.StatusBadRequest, "invalid_request", "A parameter is given twice.")
		}
		if strings.ContainsFunc(name+values[0], control) || strings.Contains(values[0], "\n") {
			return nil, oauthFail(http.StatusBadRequest, "invalid_request", "A parameter contains a control character.")
		}
	}
	return form, nil
}

// clientError is what became of credentials that were wrong. The codes are the
// interface's: invalid_grant for a wrong secret, invalid_client for an unknown
// client.
func clientError(c *Call, err error) error {
	var (
		scope   *auth.ScopeError
		backoff *auth.BackoffError
	)
	switch {
	case errors.As(err, &backoff):
		c.flood = true
		wait := seconds(backoff.RetryAfter)
		c.header.Set("Retry-After", wait)
		return oauthFail(http.StatusTooManyRequests, "rate_limit_exceeded", "Too many wrong credentials, try again in "+wait+" s.")
	case errors.Is(err, auth.ErrUnknownClient):
		return refuseClient(c, "invalid_client", "The client is unknown.")
	case errors.Is(err, auth.ErrCredentials):
		return refuseClient(c, "invalid_grant", "The client credentials are wrong.")
	case errors.As(err, &scope):
		return oauthFail(http.StatusBadRequest, "invalid_scope", "The scope is unknown or not the application's.")
	}
	return err
}

func refuseClient(c *Call, code, description string) error {
	c.header.Set("WWW-Authenticate", `Basic realm="cryptopay", charset="UTF-8"`)
	return oauthFail(http.StatusUnauthorized, code, description)
}

func oauthFail(status int, code, description string) error {
	return fail(status, code, description, nil)
}

type appView struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret" about:"masked"`
	ClientType   string `json:"client_type" about:"confidential"`
}

func (h *Handler) listApps(ctx context.Context, c *Call, _ none) ([]appView, error) {
	apps, err := h.o.Auth.Apps(ctx, c.Tenant())
	out := make([]appView, 0, len(apps))
	for _, a := range apps {
		out = append(out, appView{a.ID, a.Name, a.ClientID, a.MaskedSecret, a.ClientType})
	}
	return out, err
}

type createAppInput struct {
	Name string `json:"name" rule:"required,max=255"`
}

type createdAppView struct {
	ID           int64  `json:"id"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret" about:"shown this once"`
}

func (h *Handler) createApp(ctx context.Context, c *Call, in createAppInput) (createdAppView, error) {
	app, secret, err := h.o.Auth.CreateApp(ctx, auth.NewApp{Tenant: c.Tenant(), Name: in.Name, Scopes: both, By: auth.By{Name: c.Who.Client}})
	return createdAppView{app.ID, app.ClientID, secret}, err
}

type appPath struct {
	ID string `path:"id" about:"the application's number"`
}

func (h *Handler) deleteApp(ctx context.Context, c *Call, in appPath) (none, error) {
	id, ok := positive(in.ID)
	if !ok {
		return none{}, auth.ErrNotFound
	}
	return none{}, h.o.Auth.DeleteAppIf(ctx, c.Tenant(), id, auth.By{Name: c.Who.Client}, c.covers)
}

// covers refuses to delete an application that may do what the caller may not.
func (c *Call) covers(a auth.App) error {
	switch {
	case !c.Who.HasScopes(a.Scopes):
		return fail(http.StatusForbidden, "permission_denied", "The application has a scope that the token lacks.",
			map[string]any{"required_scopes": a.Scopes, "token_scopes": append([]auth.Scope{}, c.Who.Scopes...)})
	case !c.Who.HasRole(a.Role):
		return fail(http.StatusForbidden, "permission_denied", "The application has a role that the caller lacks.", map[string]any{"required_roles": []auth.Role{a.Role}})
	}
	return nil
}
