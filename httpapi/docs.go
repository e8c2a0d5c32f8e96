package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/internal/manual"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// The pages for people: what they say of operations is made here, of the same description
// as the OpenAPI document.

const sometimes = "not always"

// pages makes the manual. server is where the interface is.
func (d *reference) pages(server string, limits *Limits) (*manual.Manual, error) {
	of := manual.Interface{Server: server, Preamble: preamble, Tokens: d.tokens}
	for _, name := range d.groups() {
		g := &manual.Group{Name: name}
		for _, op := range d.operations {
			if op.Group == name {
				g.Operations = append(g.Operations, d.operation(op, limits))
			}
		}
		of.Groups = append(of.Groups, g)
	}
	for _, e := range d.events {
		event, err := d.event(e)
		if err != nil {
			return nil, err
		}
		of.Events = append(of.Events, event)
	}
	return manual.New(of)
}

// sampled is when the sample events of the pages happen.
var sampled = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (d *reference) event(e eventDoc) (*manual.Event, error) {
	data := d.resolve(e.envelope.Properties["data"])
	out := &manual.Event{Name: e.Name, About: e.About, Fields: d.table(data, "", sometimes)}
	d.collect(&out.Objects, map[string]bool{}, data, "", sometimes)
	body, err := json.MarshalIndent(struct {
		Event     string `json:"event"`
		Data      any    `json:"data"`
		Timestamp string `json:"timestamp"`
	}{e.Name, sample(e.Name, sampled), webhook.Timestamp(sampled)}, "", "  ")
	out.Example = string(body)
	return out, err
}

func (d *reference) operation(op *operationDoc, limits *Limits) *manual.Operation {
	out := &manual.Operation{
		Name: op.Name, Method: op.Method, Path: op.Path, About: op.About, Access: access(op), Status: op.success.Status, Once: op.Once,
		PathFields: fieldsOfParameters(op.path), Query: fieldsOfParameters(op.query), BodyMedia: op.media,
	}
	if op.body != nil {
		out.Body = d.table(op.body, "required", "")
		d.collect(&out.Parts, map[string]bool{}, d.resolve(op.body), "required", "")
		if op.csv {
			out.BodyMedia += ", or " + mediaCSV
			out.Notes = append(out.Notes, "A CSV has the names of an entry's fields in its first line and an entry in each other one. An empty cell counts as not given.")
		}
	}
	if op.Writes {
		out.Notes = append(out.Notes, "Closed in maintenance.")
	}
	if text := limits.says(op.Limit); text != "" {
		out.Notes = append(out.Notes, text)
	}
	shown := map[string]bool{}
	for _, c := range op.success.Contents {
		kind := d.says(c.schema)
		if kind == "any" {
			kind = ""
		}
		out.Answers = append(out.Answers, manual.Answer{Media: c.media, Kind: kind})
		if c.schema.Ref != "" {
			out.Fields = d.table(c.schema, "", sometimes)
			shown[kind] = true
			d.collect(&out.Objects, shown, d.resolve(c.schema), "", sometimes)
		}
	}
	for _, f := range op.failures {
		out.Failures = append(out.Failures, manual.Failure{Status: f.Status, Codes: f.Codes})
	}
	return out
}

// says is in words how often the routes of a class may be called; "" = as often as one likes.
func (l *Limits) says(class LimitClass) string {
	var parts []string
	add := func(n int, of string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, of))
		}
	}
	switch class {
	case LimitNone:
	case LimitToken:
		add(l.TokenPerMinute, "a minute from one address")
	case LimitClaim:
		add(l.ClaimsPerMinute, "a minute from one address")
	case LimitHistory:
		add(l.HistoryPerMinute, "a minute")
		add(l.HistoryPerHour, "an hour with one token")
	default:
		switch class {
		case LimitPayment:
			add(l.PaymentsPerHour, "an hour for the account")
		case LimitPayout:
			add(l.PayoutsPerHour, "an hour for the account")
		case LimitTest:
			add(l.WebhookTestsPerHour, "an hour for the account")
		case LimitResend:
			add(l.ResendsPerHour, "an hour for the account")
		}
		add(l.PerHour, "requests of all kinds an hour with one token")
		add(l.TenantPerHour, "an hour for the account's tokens together")
	}
	if len(parts) == 0 {
		return ""
	}
	return "At most " + strings.Join(parts, ", ") + "."
}

// access says in words who may call.
func access(op *operationDoc) string {
	var out string
	switch op.Access {
	case Public:
		return "Anybody, without a token."
	case Client:
		return "Client credentials: a Basic header or form fields."
	case Bearer:
		out = "Bearer token"
	case BearerOrKey:
		out = "Bearer token or API key"
	}
	if !op.tokens {
		out = "The login of this service"
	}
	scope := "scope"
	if len(op.Scopes) > 1 {
		scope = "scopes"
	}
	out += ", " + scope + " " + strings.Join(op.Scopes, " and ")
	if len(op.Roles) > 0 {
		out += "; role " + strings.Join(texts(op.Roles), " or ")
	}
	if len(op.Except) > 0 {
		out += "; not with the role " + strings.Join(texts(op.Except), " or ")
	}
	return out + "."
}

func fieldsOfParameters(of []field) []manual.Field {
	var out []manual.Field
	for i := range of {
		x := input(&of[i])
		out = append(out, manual.Field{Name: of[i].Name, Kind: kinds(x.Types), About: x.About, Limits: x.limits(), Mark: mark(of[i].Rules.Required, "required", "")})
	}
	return out
}

func mark(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

// table lists the members of an object: what a request needs, what an answer may
// lack.
func (d *reference) table(x *schema, needed, lacking string) []manual.Field {
	x = d.resolve(x)
	var out []manual.Field
	for _, name := range x.order {
		p := x.Properties[name]
		out = append(out, manual.Field{Name: name, Kind: d.says(p), Object: d.link(p), About: p.About, Limits: p.limits(), Mark: mark(x.needs(name), needed, lacking)})
	}
	return out
}

// link is the anchor of the component that a schema is made of, "" = none.
func (d *reference) link(x *schema) string {
	for _, in := range append([]*schema{x, x.Items, x.Extra}, x.AnyOf...) {
		if in == nil {
			continue
		}
		if in.Ref != "" {
			return strings.ToLower(d.says(in))
		}
		if in != x {
			if inside := d.link(in); inside != "" {
				return inside
			}
		}
	}
	return ""
}

// collect adds the components that an object is made of, each once. Their members are marked as
// table marks them.
func (d *reference) collect(to *[]manual.Object, shown map[string]bool, x *schema, needed, lacking string) {
	if x == nil {
		return
	}
	if x.Ref != "" {
		name := d.says(x)
		if shown[name] {
			return
		}
		shown[name] = true
		x = d.resolve(x)
		*to = append(*to, manual.Object{Name: name, Anchor: strings.ToLower(name), Fields: d.table(x, needed, lacking)})
	}
	for _, name := range x.order {
		d.collect(to, shown, x.Properties[name], needed, lacking)
	}
	d.collect(to, shown, x.Items, needed, lacking)
	d.collect(to, shown, x.Extra, needed, lacking)
	for _, a := range x.AnyOf {
		d.collect(to, shown, a, needed, lacking)
	}
}

type docsInput struct {
	Page  string `path:"page" about:"The name of an operation, an event or a guide; or search."`
	Query string `query:"q" about:"Of search: what to look for, as words."`
}

func (h *Handler) getDocs(_ context.Context, c *Call, _ none) (*page, error) {
	return h.manualPage(c, "", "")
}

func (h *Handler) getDocsPage(_ context.Context, c *Call, in docsInput) (*page, error) {
	return h.manualPage(c, in.Page, in.Query)
}

func (h *Handler) manualPage(c *Call, name, query string) (*page, error) {
	p, err := h.manual.Page(name, c.Request.URL.Path, query)
	if errors.Is(err, manual.ErrUnknown) {
		return nil, fail(http.StatusNotFound, "not_found", "There is no such page.", nil)
	}
	if err != nil {
		return nil, err
	}
	c.header.Set("Content-Security-Policy", manual.Policy)
	if p.Forever {
		c.header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return &page{p.Media, p.Body}, nil
}
