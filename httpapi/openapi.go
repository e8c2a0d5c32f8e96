package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// The OpenAPI document is made of the table of routes and of the types that
// endpoints take and return: what it says cannot drift from what is served. The
// same description is the source of the page for people, docs.go.

// reference is the interface, ready to be written down.
type reference struct {
	*schemas
	operations []*operationDoc
	failures   map[string]*answerDoc // by component name
	events     []eventDoc
	tokens     bool // callers may send tokens and keys: there is Options.Auth
}

// operationDoc is what is said of one route.
type operationDoc struct {
	*Route
	tokens      bool // as of reference
	path, query []field
	body        *schema // nil = none
	media       string  // of the body
	success     answerDoc
	failures    []*answerDoc
}

// answerDoc is one answer. Name is its component's, "" where it stands inline.
type answerDoc struct {
	Name     string
	Status   int
	About    string
	Contents []contentDoc
	Headers  []string
	Codes    []string // of an error
}

type contentDoc struct {
	media  string
	schema *schema
}

// eventDoc is one webhook.
type eventDoc struct {
	Name, About string
	envelope    *schema
}

const bearerHeader, keyHeader = "oauth2", "apiKey"

// document is the OpenAPI document: the same bytes for the same routes. server
// is where the interface is.
func (d *reference) document(server string) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(dict{
		"openapi":    "3.1.0",
		"info":       dict{"title": "Crypto payments, withdrawals and wallets", "version": "1", "description": preamble},
		"servers":    []dict{{"url": server}},
		"tags":       d.tags(),
		"paths":      d.paths(),
		"webhooks":   d.webhooks(),
		"components": d.components(server),
	})
	return buf.Bytes(), err
}

// dict is a JSON object; encoding/json sorts its names.
type dict = map[string]any

func (h *Handler) server() string {
	if s := strings.TrimSuffix(h.o.BaseURL, "/") + h.o.Prefix; s != "" {
		return s
	}
	return "/"
}

const preamble = `Every path is served with and without its trailing slash. Bodies are JSON objects in UTF-8 unless stated ` +
	`otherwise; unknown fields are ignored, a field that is null counts as not given. Decimals of requests are strings or numbers ` +
	`and are read exactly; crypto amounts of answers have 8 places, fiat amounts 2. Times are RFC 3339 in UTC with milliseconds.`

// describe walks the table.
func (h *Handler) describe() (*reference, error) {
	d := &reference{schemas: newSchemas(), failures: map[string]*answerDoc{}, tokens: h.o.Auth != nil}
	for i := range h.routes {
		r := &h.routes[i]
		op := &operationDoc{Route: r, tokens: d.tokens, path: r.do.plan.path, query: r.do.plan.query, media: "application/json"}
		if err := matches(r); err != nil {
			return nil, err
		}
		op.body = d.body(r.do.in, r.do.plan)
		if form := forms[r.Name]; form != nil {
			op.body, op.media = d.body(form, planOf(form)), "application/x-www-form-urlencoded"
		}
		op.success = d.success(r)
		op.failures = d.failed(r)
		d.operations = append(d.operations, op)
	}
	d.describeEvents()
	return d, nil
}

// matches refuses an input that names other path parameters than its route.
func matches(r *Route) error {
	var names []string
	for _, seg := range segments(r.Path) {
		if strings.HasPrefix(seg, "{") {
			names = append(names, strings.Trim(seg, "{}"))
		}
	}
	if len(names) < len(r.do.plan.path) {
		return fmt.Errorf("httpapi: the input of route %s has more path parameters than %s", r.Name, r.Path)
	}
	for i, f := range r.do.plan.path {
		if f.Name != names[i] {
			return fmt.Errorf("httpapi: the input of route %s calls a path parameter of %s %q", r.Name, r.Path, f.Name)
		}
	}
	return nil
}

// The forms of the OAuth endpoints, which read them themselves.
type tokenForm struct {
	GrantType    string `json:"grant_type" rule:"required,enum=client_credentials"`
	Scope        string `json:"scope" about:"Space-separated read, write, admin; all of the application's where omitted."`
	ClientID     string `json:"client_id" about:"Unless the credentials are a Basic header."`
	ClientSecret string `json:"client_secret" about:"Unless the credentials are a Basic header."`
}

type revokeForm struct {
	Token        string `json:"token" rule:"required"`
	Hint         string `json:"token_type_hint" rule:"enum=access_token|refresh_token"`
	ClientID     string `json:"client_id" about:"Unless the credentials are a Basic header."`
	ClientSecret string `json:"client_secret" about:"Unless the credentials are a Basic header."`
}

var forms = map[string]reflect.Type{"createToken": reflect.TypeFor[tokenForm](), "revokeToken": reflect.TypeFor[revokeForm]()}

var (
	typeNone   = reflect.TypeFor[none]()
	typePage   = reflect.TypeFor[*page]()
	typeStream = reflect.TypeFor[*stream]()
)

// success is what a route answers when all is well.
func (d *reference) success(r *Route) answerDoc {
	out := answerDoc{Status: r.Status, About: "Success.", Headers: headersOf(r, r.Status)}
	switch t := r.do.out; t {
	case typeNone:
	case typePage, typeStream:
		for _, media := range r.Media {
			x := &schema{}
			if media != "application/json" {
				x.Types = "string"
			}
			out.Contents = append(out.Contents, contentDoc{media, x})
		}
	default:
		out.Contents = []contentDoc{{"application/json", d.view(t, "")}}
	}
	return out
}

// headersOf lists the headers of an answer that a client may want.
func headersOf(r *Route, status int) []string {
	out := []string{"X-Request-Id"}
	if r.Limit != LimitNone && status != http.StatusUnauthorized {
		out = append(out, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	}
	switch {
	case r.Once && status == r.Status:
		out = append(out, "Idempotent-Replayed")
	case status == http.StatusUnauthorized:
		out = append(out, "WWW-Authenticate")
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		out = append(out, "Retry-After")
	}
	return out
}

// describeEvents adds the webhooks, of the types that the domains send.
func (d *reference) describeEvents() {
	rest := d.enums[reflect.TypeFor[payment.Status]()]
	d.enums[reflect.TypeFor[payment.Status]()] = slices.Concat(rest, []string{string(payment.PartiallyPaid)})
	for _, e := range []struct {
		name, component, about string
		data                   reflect.Type
	}{
		{webhook.PaymentStatusUpdate, "PaymentStatusUpdate", "A payment's status changed.", reflect.TypeFor[payment.StatusUpdate]()},
		{webhook.DepositReceived, "DepositReceived", "A new deposit was seen for a payment.", reflect.TypeFor[payment.DepositReceived]()},
		{webhook.DepositMerged, "DepositMerged", "A deposit was forwarded to the treasury.", reflect.TypeFor[payment.DepositMerged]()},
		{webhook.WithdrawalStatusUpdate, "WithdrawalStatusUpdate", "A withdrawal's status changed.", reflect.TypeFor[withdrawal.Update]()},
		{webhook.WithdrawalWaiting, "WithdrawalWaiting", "Why a withdrawal waits has changed; null when it waits no more. Sent only where enabled_events names it.", reflect.TypeFor[withdrawal.WaitingUpdate]()},
		{webhook.PaymentDeposit, "PaymentDeposit", "A deposit was seen, is final, or is gone, whether it counts or not; previous_status is null where it was not known. Sent only where enabled_events names it.", reflect.TypeFor[payment.DepositUpdate]()},
		{webhook.RefundUpdate, "RefundUpdate", "A refund's status changed. Sent to its callback_url, and else only where enabled_events names it.", reflect.TypeFor[refund.Update]()},
		{webhook.TransferStatusUpdate, "TransferStatusUpdate", "A wallet transfer's status changed.", reflect.TypeFor[wallet.Update]()},
	} {
		data := &schema{Types: "object", Properties: map[string]*schema{}}
		d.members(data, e.data)
		d.byName[e.component] = data
		envelope := fieldsOf("event", &schema{Types: "string", Const: e.name}, "data", component(e.component), "timestamp", &schema{Types: "string", Format: "date-time"})
		envelope.Required = envelope.order
		d.events = append(d.events, eventDoc{e.name, e.about, envelope})
	}
	d.enums[reflect.TypeFor[payment.Status]()] = rest
}

func (d *reference) tags() []dict {
	var out []dict
	for _, g := range d.groups() {
		out = append(out, dict{"name": g})
	}
	return out
}

// groups are the headings, in the order of the table.
func (d *reference) groups() []string {
	var out []string
	for _, op := range d.operations {
		if !slices.Contains(out, op.Group) {
			out = append(out, op.Group)
		}
	}
	return out
}

func (d *reference) paths() dict {
	out := dict{}
	for _, op := range d.operations {
		item, ok := out[op.Path].(dict)
		if !ok {
			item = dict{}
			out[op.Path] = item
		}
		item[strings.ToLower(op.Method)] = op.json()
	}
	return out
}

func (op *operationDoc) json() dict {
	responses := dict{strconv.Itoa(op.success.Status): op.success.json()}
	if op.Also != 0 {
		also := op.success
		also.About = "It was there already."
		responses[strconv.Itoa(op.Also)] = also.json()
	}
	for _, f := range op.failures {
		responses[strconv.Itoa(f.Status)] = dict{"$ref": "#/components/responses/" + f.Name}
	}
	out := dict{"operationId": op.Name, "summary": op.About, "tags": []string{op.Group}, "responses": responses, "security": op.security()}
	if p := op.parameters(); len(p) > 0 {
		out["parameters"] = p
	}
	if op.body != nil {
		content := dict{op.media: dict{"schema": op.body}}
		if op.csv {
			content[mediaCSV] = dict{"schema": &schema{Types: "string", About: "The names of an entry's fields in the first line, an entry in each other one. An empty cell counts as not given."}}
		}
		out["requestBody"] = dict{"required": true, "content": content}
	}
	if len(op.Roles) > 0 {
		out["x-roles"] = op.Roles
	}
	return out
}

func (op *operationDoc) parameters() []any {
	var out []any
	// The path says how many there are, the input what is known of them.
	at := 0
	for _, seg := range segments(op.Path) {
		if !strings.HasPrefix(seg, "{") {
			continue
		}
		p := dict{"name": strings.Trim(seg, "{}"), "in": "path", "required": true, "schema": textSchema()}
		if at < len(op.path) {
			p["schema"] = input(&op.path[at])
		}
		out = append(out, p)
		at++
	}
	for i := range op.query {
		f := &op.query[i]
		x := input(f)
		p := dict{"name": f.Name, "in": "query", "schema": x}
		if x.About != "" {
			p["description"], x.About = x.About, ""
		}
		if f.Rules.Required {
			p["required"] = true
		}
		out = append(out, p)
	}
	if op.Once {
		out = append(out, dict{"$ref": "#/components/parameters/IdempotencyKey"})
	}
	return out
}

func (op *operationDoc) security() []dict {
	scopes := op.Scopes
	if scopes == nil {
		scopes = []string{}
	}
	if !op.tokens { // a login of the host's, which has no name here
		return []dict{}
	}
	switch op.Access {
	case Bearer:
		return []dict{{bearerHeader: scopes}}
	case BearerOrKey:
		return []dict{{bearerHeader: scopes}, {keyHeader: []string{}}}
	case Client:
		return []dict{{"clientBasic": []string{}}, {}}
	}
	return []dict{}
}

func (r *answerDoc) json() dict {
	headers := dict{}
	for _, name := range r.Headers {
		headers[name] = dict{"$ref": "#/components/headers/" + name}
	}
	out := dict{"description": r.About, "headers": headers}
	if len(r.Contents) > 0 {
		contents := dict{}
		for _, c := range r.Contents {
			contents[c.media] = dict{"schema": c.schema}
		}
		out["content"] = contents
	}
	return out
}

func (d *reference) webhooks() dict {
	out := dict{}
	for _, e := range d.events {
		out[e.Name] = dict{"post": dict{
			"operationId": "on_" + e.Name, "summary": e.About,
			"parameters": []dict{
				{"name": webhook.HeaderSignature, "in": "header", "schema": textSchema(), "description": "Hex HMAC-SHA256 of the raw body under the webhook secret."},
				{"name": webhook.HeaderID, "in": "header", "schema": textSchema(), "description": "The same on every attempt."},
				{"name": webhook.HeaderTimestamp, "in": "header", "schema": textSchema()},
				{"name": webhook.HeaderAttempt, "in": "header", "schema": textSchema()},
				{"name": webhook.HeaderStandardID, "in": "header", "schema": textSchema()},
				{"name": webhook.HeaderStandardTimestamp, "in": "header", "schema": textSchema()},
				{"name": webhook.HeaderStandardSignature, "in": "header", "schema": textSchema(), "description": "As in the Standard Webhooks specification."},
			},
			"requestBody": dict{"required": true, "content": dict{"application/json": dict{"schema": e.envelope}}},
			"responses":   dict{"2XX": dict{"description": "Received. Anything else is tried again."}},
			"security":    []dict{},
		}}
	}
	return out
}

func (d *reference) components(server string) dict {
	responses := dict{}
	for name, r := range d.failures {
		responses[name] = r.json()
	}
	if server == "/" {
		server = ""
	}
	integer := &schema{Types: "integer"}
	return dict{
		"schemas":   d.byName,
		"responses": responses,
		"parameters": dict{"IdempotencyKey": dict{
			"name": "Idempotency-Key", "in": "header", "schema": &schema{Types: "string", MinLength: 1, MaxLength: maxOnceKey, Pattern: `^[!-~]+$`},
			"description": "The same key with the same body takes effect once and gets the first answer again, for 24 hours.",
		}},
		"headers": dict{
			"X-Request-Id":          dict{"required": true, "schema": textSchema(), "description": "Names the request; a caller's own is echoed."},
			"X-RateLimit-Limit":     dict{"schema": integer},
			"X-RateLimit-Remaining": dict{"schema": integer},
			"X-RateLimit-Reset":     dict{"schema": integer, "description": "Unix time."},
			"Retry-After":           dict{"required": true, "schema": integer, "description": "Seconds."},
			"WWW-Authenticate":      dict{"required": true, "schema": textSchema()},
			"Idempotent-Replayed":   dict{"schema": &schema{Types: "string", Const: "true"}},
		},
		"securitySchemes": d.schemes(server),
	}
}

// schemes are the ways in which callers say who they are.
func (d *reference) schemes(server string) dict {
	if !d.tokens {
		return dict{}
	}
	return dict{
		bearerHeader: dict{"type": "oauth2", "flows": dict{"clientCredentials": dict{
			"tokenUrl": server + "/o/token/",
			"scopes":   dict{"read": "Viewing data.", "write": "Changing data.", "admin": "Platform fees."},
		}}},
		keyHeader:     dict{"type": "apiKey", "in": "header", "name": "X-API-Key"},
		"clientBasic": dict{"type": "http", "scheme": "basic", "description": "client_id:client_secret"},
	}
}
