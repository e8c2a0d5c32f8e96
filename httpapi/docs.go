package httpapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"slices"
	"strings"
	"sync"
)

// The page for people: one file without a script and without anything from
// elsewhere, so that it can be saved, printed and served under the strictest
// Content-Security-Policy.

//go:embed docs.html
var docsTemplate string

var docsPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("docs").Parse(docsTemplate))
})

// docs is what the template is filled with.
type docs struct {
	Server   string
	Preamble string
	Groups   []docsGroup
	Schemas  []docsSchema
	Events   []docsEvent
}

type docsGroup struct {
	Name, Anchor string
	Operations   []docsOperation
}

type docsOperation struct {
	Name, Method, Path, About string
	Access                    string
	Notes                     []string
	PathFields, Query, Body   []docsField
	BodyMedia                 string
	Status                    int
	Answers                   []docsAnswer
	Fields                    []docsField
	Failures                  []docsFailure
}

type docsField struct {
	Name, Kind, Link, About, Limits string
	Mark                            string // required, or not always there
}

type docsAnswer struct{ Media, Kind, Link string }

type docsFailure struct {
	Status int
	Codes  string
}

type docsSchema struct {
	Name   string
	Fields []docsField
}

type docsEvent struct {
	Name, About string
	Fields      []docsField
}

const sometimes = "not always"

// page is the documentation as HTML. server is where the interface is.
func (d *reference) page(server string) ([]byte, error) {
	view := docs{Server: server, Preamble: preamble}
	for _, name := range d.groups() {
		g := docsGroup{Name: name, Anchor: anchor(name)}
		for _, op := range d.operations {
			if op.Group == name {
				g.Operations = append(g.Operations, d.operation(op))
			}
		}
		view.Groups = append(view.Groups, g)
	}
	for _, e := range d.events {
		view.Events = append(view.Events, docsEvent{e.Name, e.About, d.table(e.envelope.Properties["data"], "", sometimes)})
	}
	shown := map[string]bool{}
	for _, e := range d.events {
		d.collect(&view, shown, d.resolve(e.envelope.Properties["data"]))
	}
	for _, op := range d.operations {
		for _, c := range op.success.Contents {
			d.collect(&view, shown, c.schema)
		}
	}
	slices.SortFunc(view.Schemas, func(a, b docsSchema) int { return strings.Compare(a.Name, b.Name) })
	var buf bytes.Buffer
	err := docsPage().Execute(&buf, view)
	return buf.Bytes(), err
}

func anchor(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), " ", "-")
}

func (d *reference) operation(op *operationDoc) docsOperation {
	out := docsOperation{
		Name: op.Name, Method: op.Method, Path: op.Path, About: op.About, Access: access(op), Status: op.success.Status,
		PathFields: fieldsOfParameters(op.path), Query: fieldsOfParameters(op.query), BodyMedia: op.media,
	}
	if op.body != nil {
		out.Body = d.table(op.body, "required", "")
	}
	if op.Once {
		out.Notes = append(out.Notes, "Takes an Idempotency-Key.")
	}
	if op.Writes {
		out.Notes = append(out.Notes, "Closed in maintenance.")
	}
	for _, c := range op.success.Contents {
		a := docsAnswer{Media: c.media, Kind: d.says(c.schema), Link: d.link(c.schema)}
		out.Answers = append(out.Answers, a)
		if c.schema.Ref != "" {
			out.Fields = d.table(c.schema, "", sometimes)
		}
	}
	for _, f := range op.failures {
		out.Failures = append(out.Failures, docsFailure{f.Status, strings.Join(f.Codes, ", ")})
	}
	return out
}

// access says in words who may call.
func access(op *operationDoc) string {
	var out string
	switch op.Access {
	case Public:
		return "Public."
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
	out += " with " + strings.Join(op.Scopes, " and ")
	if len(op.Roles) > 0 {
		out += "; role " + strings.Join(texts(op.Roles), " or ")
	}
	return out + "."
}

func fieldsOfParameters(of []field) []docsField {
	var out []docsField
	for i := range of {
		x := input(&of[i])
		out = append(out, docsField{Name: of[i].Name, Kind: kinds(x.Types), About: x.About, Limits: x.limits(), Mark: mark(of[i].Rules.Required, "required", "")})
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
func (d *reference) table(x *schema, needed, lacking string) []docsField {
	x = d.resolve(x)
	var out []docsField
	for _, name := range x.order {
		p := x.Properties[name]
		out = append(out, docsField{Name: name, Kind: d.says(p), Link: d.link(p), About: p.About, Limits: p.limits(), Mark: mark(x.needs(name), needed, lacking)})
	}
	return out
}

// link is the component that a schema is made of, "" = none.
func (d *reference) link(x *schema) string {
	for _, in := range slices.Concat([]*schema{x, x.Items, x.Extra}, x.AnyOf) {
		if in != nil && in.Ref != "" {
			return "schema-" + d.says(in)
		}
	}
	return ""
}

// collect adds the components that answers are made of, each once.
func (d *reference) collect(view *docs, shown map[string]bool, x *schema) {
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
		view.Schemas = append(view.Schemas, docsSchema{name, d.table(x, "", sometimes)})
	}
	for _, name := range x.order {
		d.collect(view, shown, x.Properties[name])
	}
	d.collect(view, shown, x.Items)
	d.collect(view, shown, x.Extra)
	for _, a := range x.AnyOf {
		d.collect(view, shown, a)
	}
}
