package manual

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/cryptopay-go/cryptopay/httpapi/internal/look"
)

//go:embed static/*
var staticFiles embed.FS

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed verify/*
var programs embed.FS

// Manual has the pages. It may be used concurrently.
type Manual struct {
	of         Interface
	operations map[string]*Operation
	events     map[string]*Event
	groupOf    map[string]string // by operation
	templates  map[string]*template.Template
	files      map[string]look.File // by their names with a hash
	assets     map[string]string    // the same by their names without
	recorded   recording
	index      []entry
	made       sync.Map // pages, by root and name: all but those of searches, which have no bound
}

// Page is what is answered.
type Page struct {
	Media   string
	Body    []byte
	Forever bool // may be kept by browsers: its name changes with its content
}

// Policy is the Content-Security-Policy of the pages.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Guide is a page that explains.
type Guide struct{ Name, Title, About string }

// Guides are in the order in which they are read.
var Guides = []Guide{
	{"first-payment", "First payment", "From credentials to a paid order, in five requests."},
	{"webhooks", "Webhooks", "Hear of payments as they happen, and check who says so."},
	{"errors", "Errors and retries", "What each error code means, and what may be sent again."},
	{"sandbox", "Sandbox outcomes", "Play every kind of customer before there is one."},
	{"going-live", "Going live", "A list to go through before real money moves."},
}

// searchPage is the page of the search.
const searchPage = "search"

// New reads the pages. It does no I/O.
func New(of Interface) (*Manual, error) {
	m := &Manual{of: of, operations: map[string]*Operation{}, events: map[string]*Event{}, groupOf: map[string]string{}, templates: map[string]*template.Template{}, files: map[string]look.File{}, assets: map[string]string{}}
	for _, g := range of.Groups {
		for _, op := range g.Operations {
			m.operations[op.Name], m.groupOf[op.Name] = op, g.Name
			for _, fields := range [][]Field{op.PathFields, op.Query, op.Body, op.Fields} {
				explain(fields)
			}
			for _, o := range op.Objects {
				explain(o.Fields)
			}
		}
	}
	for _, e := range of.Events {
		m.events[e.Name] = e
		explain(e.Fields)
		for _, o := range e.Objects {
			explain(o.Fields)
		}
	}
	var err error
	if m.recorded, err = answers(); err != nil {
		return nil, err
	}
	files, err := look.Files(staticFiles, "static")
	if err != nil {
		return nil, err
	}
	for name, f := range files {
		m.assets[name], m.files[f.Name] = f.Name, f
	}
	if err := m.parse(); err != nil {
		return nil, err
	}
	m.index = m.entries()
	return m, nil
}

// parse reads the templates: one for each kind of page, and one for each guide.
func (m *Manual) parse() error {
	base, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"listing": newListing,
		"curl":    func(name string) (listing, error) { return m.shown(name, "curl") },
		"answer":  func(name string) (listing, error) { return m.shown(name, "answer") },
		"program": program,
		"anchor":  anchor,
	}).ParseFS(pageFiles, "pages/layout.html")
	if err != nil {
		return err
	}
	kinds := []string{"home", "operation", "event", "search"}
	for _, g := range Guides {
		kinds = append(kinds, g.Name)
	}
	for _, kind := range kinds {
		t, err := base.Clone()
		if err == nil {
			_, err = t.ParseFS(pageFiles, "pages/"+kind+".html")
		}
		if err != nil {
			return fmt.Errorf("manual: %s: %w", kind, err)
		}
		m.templates[kind] = t
	}
	return nil
}

// view is what a template is filled with.
type view struct {
	*Interface
	Root    string // the path to the first page, from where the reader is
	Assets  map[string]string
	Name    string // of the page; "" = the first
	Title   string
	Guides  []Guide
	Open    string // the group that is unfolded
	Op      *Operation
	Event   *Event
	Samples []listing // of Op
	Answer  *listing
	Codes   []codeView
	Query   string
	Results []result
	Found   int
	Dev     bool // the service simulates its networks
}

// ErrUnknown says that there is no such page.
var ErrUnknown = errors.New("manual: there is no such page")

// Page renders a page. name is "" for the first one; path is the request's, which says how
// links of the page must begin; query is what is searched for.
func (m *Manual) Page(name, path, query string) (Page, error) {
	if f, ok := m.files[name]; ok {
		return Page{f.Media, f.Body, true}, nil
	}
	root := rootOf(name, path)
	if p, ok := m.made.Load(root + name); ok {
		return p.(Page), nil
	}
	v := &view{Interface: &m.of, Root: root, Assets: m.assets, Name: name, Guides: Guides, Dev: m.operations["devPay"] != nil}
	kind := name
	switch {
	case name == "":
		kind, v.Title = "home", "API reference"
	case name == searchPage:
		v.Title, v.Query = "Search", clip(query)
		v.Results, v.Found = m.search(v.Query)
	case m.operations[name] != nil:
		kind, v.Op, v.Open = "operation", m.operations[name], m.groupOf[name]
		v.Title = v.Op.Method + " " + v.Op.Path
		if err := m.samples(v); err != nil {
			return Page{}, err
		}
	case m.events[name] != nil:
		kind, v.Event, v.Open, v.Title = "event", m.events[name], "Events", name
	default:
		for _, g := range Guides {
			if g.Name == name {
				v.Title = g.Title
			}
		}
		if v.Title == "" {
			return Page{}, ErrUnknown
		}
		v.Codes = m.codes()
	}
	var out bytes.Buffer
	if err := m.templates[kind].ExecuteTemplate(&out, "page", v); err != nil {
		return Page{}, fmt.Errorf("manual: %s: %w", name, err)
	}
	p := Page{"text/html; charset=utf-8", out.Bytes(), false}
	if name != searchPage {
		m.made.Store(root+name, p)
	}
	return p, nil
}

// rootOf is the first page as a relative link: the pages do not know what they are mounted
// under, and are served with and without a slash at the end.
func rootOf(name, path string) string {
	switch slash := strings.HasSuffix(path, "/"); {
	case name == "" && slash, name != "" && !slash:
		return "./"
	case name == "":
		return path[strings.LastIndexByte(path, '/')+1:] + "/"
	}
	return "../"
}

// samples are the example of an operation, where it has one.
func (m *Manual) samples(v *view) error {
	for _, in := range Languages {
		l, err := m.snippet(v.Op.Name, in)
		if errors.Is(err, errNoExample) {
			return nil
		}
		if err != nil {
			return err
		}
		v.Samples = append(v.Samples, l)
	}
	l, err := m.answerOf(v.Op.Name)
	v.Answer = &l
	return err
}

// listing is something to copy.
type listing struct{ Title, Language, ID, Text string }

func newListing(title, language, id, text string) listing { return listing{title, language, id, text} }

// program is a listing of a file of verify.
func program(title, name string) (listing, error) {
	text, err := programs.ReadFile("verify/" + name)
	return listing{title, strings.TrimPrefix(name[strings.LastIndexByte(name, '.'):], "."), anchor(name), strings.TrimSpace(string(text))}, err
}

// Program is the text of a program that checks webhooks.
func Program(name string) (string, error) {
	text, err := programs.ReadFile("verify/" + name)
	return string(text), err
}

// snippet is an operation's example in a language, as the pages show it.
func (m *Manual) snippet(name string, in Language) (listing, error) {
	text, err := m.Snippet(name, in, m.recorded.Values)
	return listing{string(in), string(in), anchor(string(in)), text}, err
}

func (m *Manual) answerOf(name string) (listing, error) {
	a, ok := m.recorded.Answers[name]
	if !ok {
		return listing{}, fmt.Errorf("manual: no answer of %s is recorded", name)
	}
	title := fmt.Sprintf("Answer: %d %s", a.Status, http.StatusText(a.Status))
	return listing{title, "answer", "answer", a.text()}, nil
}

// shown is an example, or the answer to it, on a page that shows several.
func (m *Manual) shown(name, what string) (l listing, err error) {
	if l, err = m.answerOf(name); what == "curl" {
		l, err = m.snippet(name, Curl)
	}
	l.ID = anchor(name) + "-" + what
	return l, err
}

func anchor(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
