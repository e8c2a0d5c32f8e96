package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/limit"
)

// Options of a Handler. Auth or Login is required.
type Options struct {
	// Auth knows applications, tokens and API keys. Its tables must be opened
	// together with the App's: app.Open(ctx, auth.Tables()...). Without one the routes under
	// /o/ are not served.
	Auth *auth.Service
	// Login is the host's own way to know who calls, beside Auth or in its place. Defaults
	// to none.
	Login Login
	// Prefix is the path that the interface is mounted under, such as "/pay".
	// Defaults to none. Under http.StripPrefix leave it empty.
	Prefix string
	// BaseURL is the public address of the interface, without Prefix, for the
	// absolute links of paged answers. Defaults to none: they are paths then. What a
	// request says of its host is never repeated.
	BaseURL string
	// CheckoutURL makes the link to the page that a payment is paid on: URL of
	// httpapi/checkout's Handler. Defaults to none: checkout_url is null then.
	CheckoutURL func(tenant, paymentID string) string
	// Limiter counts requests. Defaults to this process's memory; give one that
	// is shared where several processes serve.
	Limiter limit.Limiter
	// Limits are the numbers. Defaults to the documented ones.
	Limits *Limits
	// TrustedProxies are those whose X-Forwarded-For is believed. Defaults to none: the
	// address is the connection's, and behind a proxy all callers share its limits.
	TrustedProxies []netip.Prefix
	// MaxBody is the largest request body. Defaults to 1 MiB.
	MaxBody int64
	// Timeout bounds one request, from its first byte to the last of the answer.
	// Exports may take ten times as long. Defaults to 30 seconds.
	Timeout time.Duration
	// Maintenance says whether writes are closed now. Defaults to never.
	Maintenance func(context.Context) Maintenance
	// Log defaults to discarding.
	Log *slog.Logger
	// Random makes request ids. Defaults to crypto/rand.
	Random io.Reader
	// More are routes of the host's own, served and documented under the same
	// rules. Make them with Endpoint. Defaults to none.
	More []Route
	// Observe is told of every answered request. Defaults to nothing.
	Observe func(Observation)
}

// Limits are how many requests are allowed. 0 = not limited.
type Limits struct {
	TokenPerMinute      int // POST /o/token/, per client address
	PerHour             int // any endpoint, per token or API key
	TenantPerHour       int // any endpoint, all tokens of a tenant together
	PaymentsPerHour     int // payments created, per tenant
	PayoutsPerHour      int // payouts created, per tenant: each may have 1,000 withdrawals
	HistoryPerMinute    int // unified history, per token or API key
	HistoryPerHour      int
	WebhookTestsPerHour int // per tenant: they make this service send requests
	ResendsPerHour      int // of webhooks, per tenant: likewise
	ClaimsPerMinute     int // of claim links, per client address
}

// DefaultLimits are the documented ones.
func DefaultLimits() Limits {
	return Limits{
		TokenPerMinute: 20, PerHour: 1000, TenantPerHour: 20_000, PaymentsPerHour: 100, PayoutsPerHour: 100,
		HistoryPerMinute: 100, HistoryPerHour: 1000, WebhookTestsPerHour: 60, ResendsPerHour: 600, ClaimsPerMinute: 10,
	}
}

// Maintenance is whether and how long writes are closed.
type Maintenance struct {
	On       bool
	Message  string
	StartsAt time.Time // zero = not told
	EndsAt   time.Time
}

// Observation is one answered request, for metrics and logs.
type Observation struct {
	Route     string // the route's name, "" = none matched
	Method    string
	Path      string // without the query
	Status    int
	Duration  time.Duration
	RequestID string
	Limited   bool // refused by a limit: as many as somebody likes to send, so count them and log few
}

const (
	defaultMaxBody = 1 << 20
	defaultTimeout = 30 * time.Second
	limiterKeys    = 100_000
)

func (o Options) withDefaults() (Options, error) {
	if o.Auth == nil && o.Login == nil {
		return o, errors.New("httpapi: Options.Auth is required: auth.New(…), or Options.Login: a login of your own")
	}
	if o.Prefix != "" && (o.Prefix[0] != '/' || o.Prefix[len(o.Prefix)-1] == '/') {
		return o, errors.New("httpapi: Options.Prefix must begin with a slash and not end with one")
	}
	if o.Limiter == nil {
		o.Limiter = limit.NewMemory(limiterKeys)
	}
	if o.Limits == nil {
		l := DefaultLimits()
		o.Limits = &l
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Maintenance == nil {
		o.Maintenance = func(context.Context) Maintenance { return Maintenance{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = rand.Reader //nolint:forbidigo // unless Options say otherwise
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	return o, nil
}
