package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Access says how a caller shows who he is.
type Access string

// The ways in. There is no default: a route without one is refused by New.
const (
	Public      Access = "public"        // nobody is asked
	Client      Access = "client"        // the endpoint reads client credentials itself
	Bearer      Access = "bearer"        // an access token
	BearerOrKey Access = "bearer_or_key" // an access token or an X-API-Key
)

// Style is the form of a route's error bodies.
type Style string

// The styles.
const (
	Standard Style = "standard" // {error: {code, message, details}}
	OAuth    Style = "oauth"    // {error, error_description}
	Detail   Style = "detail"   // {detail}
	// Classic is Standard with the codes unauthorized and forbidden, as the pages
	// of fee-estimate and wallet balances have them.
	Classic Style = "classic"
)

// LimitClass says which rate limits a route counts in.
type LimitClass string

// The classes.
const (
	LimitNone    LimitClass = "none"
	LimitToken   LimitClass = "token"   // per client address
	LimitAPI     LimitClass = "api"     // per token and per tenant
	LimitPayment LimitClass = "payment" // and payments created
	LimitPayout  LimitClass = "payout"  // and payouts created
	LimitHistory LimitClass = "history" // the unified history's own
	LimitTest    LimitClass = "test"    // and webhook tests
	LimitResend  LimitClass = "resend"  // and webhooks that are delivered again
	LimitClaim   LimitClass = "claim"   // per client address: links that somebody may guess at
	LimitReport  LimitClass = "report"  // and one at a time per tenant, in this process
)

// Policy says who may call a route, how often, and how he is refused.
type Policy struct {
	Access Access
	Scopes []auth.Scope // all of them are needed
	Roles  []auth.Role  // one of them is needed; none = no role is
	Except []auth.Role  // none of them may
	Limit  LimitClass
	Style  Style
}

// Route is one line of the table.
type Route struct {
	Method string
	Path   string // with its trailing slash, parameters as {name}
	Name   string // unique; the OpenAPI operation id
	Group  string // heading in the documentation
	About  string // one line for people
	Policy
	Status int // of success
	// Also is another status of success, answered where Call.Existed is set; 0 = there is none.
	Also int
	// Writes routes are closed in maintenance.
	Writes bool
	// Once routes take an Idempotency-Key.
	Once bool
	// Media types of a success that is no JSON view: a page, a stream.
	Media []string
	// csv routes take a table as well, whose rows are the entries of their input's list.
	csv bool
	// Errors that it can answer beside those that every route of its kind can.
	Errors []Failure

	do operation
}

// Failure names one error answer for the documentation.
type Failure struct {
	Status int
	Code   string
}

// operation is a typed endpoint with its types forgotten.
type operation struct {
	in, out reflect.Type
	plan    *plan
	call    func(ctx context.Context, c *Call, b *binder) (any, error)
}

// Endpoint gives a route of a host what it does: a function from an input
// struct with path, query or json tags (see payments.go for their rules) to a
// view. Its errors are Fail's and Invalid's, or the domains' own.
func Endpoint[In, Out any](r Route, f func(context.Context, *Call, In) (Out, error)) Route {
	r.do = endpoint(f)
	return r
}

// endpoint makes an operation of a function from input to view. In is a struct
// with path, query, json or form tags.
func endpoint[In, Out any](f func(context.Context, *Call, In) (Out, error)) operation {
	return checked(f, nil)
}

// checked is endpoint with a second look at inputs that could not be read
// whole: also validates what could be read, so that the answer names all bad
// fields at once. It must not change anything.
func checked[In, Out any](f func(context.Context, *Call, In) (Out, error), also func(context.Context, *Call, In) error) operation {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	p := planOf(in)
	return operation{in: in, out: out, plan: p, call: func(ctx context.Context, c *Call, b *binder) (any, error) {
		var v In
		bad := b.bind(p, reflect.ValueOf(&v).Elem())
		c.lines = b.lines
		if b.long {
			return nil, &tooLongError{bad}
		}
		if len(bad) > 0 {
			if also != nil && !b.broken {
				bad.merge(also(ctx, c, v))
			}
			return nil, &invalidError{Fields: bad}
		}
		view, err := f(ctx, c, v)
		if err != nil {
			return nil, err
		}
		return view, nil
	}}
}

// none is an input or a view without content.
type none struct{}

// Call is what an endpoint knows of the request beside its input.
type Call struct {
	Request *http.Request
	Route   *Route
	Who     auth.Identity
	Now     time.Time
	ID      string // the request's
	// Key is the caller's idempotency key with the route's name before it, to be given to a
	// service, together with the endpoint's context: that tells requests apart by their
	// bodies. "" where there is none.
	Key string
	// Replayed is set by an endpoint that answered from an earlier request.
	Replayed bool
	// Existed is set by an endpoint that made nothing, as it was there: Route.Also is answered.
	Existed bool

	once   storage.Once    // of Key
	onceOf string          // tenant whose first response was read ahead; "" = none was
	header http.Header     // of the answer
	base   context.Context // the request's, without this handler's deadline
	values []string        // of the path's parameters
	lines  []int           // of a table: where each row begins
	flood  bool            // refused by a limit
	leave  func()          // to be called when the answer is out; nil = nothing
}

// Tenant is whose data the call may see.
func (c *Call) Tenant() string { return c.Who.Tenant }
