package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// Login is a host's own way to know who sends a request: a session, a client certificate,
// a token of its own. It is asked on every route that needs a caller, before Auth is.
type Login interface {
	// Identify says who sends a request. The Identity names a tenant of the App, what he may
	// (scopes, role), and in Client who it is: records of operations and limits say so. known
	// is false where the request carries nothing of this login: it may carry a token or a
	// key of Auth. An error that wraps auth.ErrToken is the answer 401; any other is 500, or
	// 503 where it is one of the store's. It must not read the body.
	//
	// A browser sends cookies with what other sites ask for, too. So of a request that a
	// Login knows, Handler refuses what http.CrossOriginProtection does.
	Identify(r *http.Request) (who auth.Identity, known bool, err error)
}

// foreign refuses what a page of another origin has a browser send.
var foreign = http.NewCrossOriginProtection()

// loggedIn asks the host's Login who calls.
func (h *Handler) loggedIn(w http.ResponseWriter, c *Call) (known bool, err error) {
	if h.o.Login == nil {
		return false, nil
	}
	who, known, err := h.o.Login.Identify(c.Request)
	switch {
	case errors.Is(err, auth.ErrToken):
		return true, unauthenticated(w, "", "The login of this service does not know you, or not any more: log in again.")
	case err != nil:
		return true, fmt.Errorf("httpapi: Options.Login: %w", err)
	case !known:
		return false, nil
	case who.Tenant == "" || who.Client == "":
		return true, errors.New("httpapi: Options.Login says that it knows who calls, without a Tenant or a Client")
	}
	if err := foreign.Check(c.Request); err != nil {
		return true, fail(http.StatusForbidden, "permission_denied", "The request comes from a page of another origin.", nil)
	}
	if who.Token == "" {
		who.Token = "login/" + who.Tenant + "/" + who.Client // two merchants may both have an "admin"
	}
	c.Who = who
	return true, nil
}
