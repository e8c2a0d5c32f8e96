package manual

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Example is a request of an operation. Texts may hold <names> of the values that the tests
// prepare.
type Example struct {
	Operation string
	As        string   // who sends it; "" = the merchant's own server
	Path      []string // values of the path's parameters, in order
	Query     string   // a JSON object
	Body      string   // a JSON object
	Key       string   // Idempotency-Key
	Go        string   // the statement with the shipped client; "" = Client.Call
	Other     map[Language]string
}

// Language is one that examples are written in.
type Language string

// The languages.
const (
	Curl       Language = "curl"
	Go         Language = "Go"
	TypeScript Language = "TypeScript"
)

// Languages are in the order in which they are shown.
var Languages = []Language{Curl, Go, TypeScript}

var errNoExample = errors.New("manual: the operation has no example")

// Examples are in an order in which they can be sent.
func Examples() []Example { return examples }

// member is one of a JSON object, in the order in which it was written.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf reads a JSON object. It panics where the table above has none: the tests would
// not have let it in.
func membersOf(object string) []member {
	if object == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		panic("manual: " + object + ": " + err.Error())
	}
	var out []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			panic("manual: " + object + ": " + err.Error())
		}
		m := member{name: name.(string)}
		if err := d.Decode(&m.value); err != nil {
			panic("manual: " + object + ": " + err.Error())
		}
		out = append(out, m)
	}
	return out
}

// text is a value as a query has it.
func (m member) text() string {
	var s string
	if json.Unmarshal(m.value, &s) == nil {
		return s
	}
	return string(m.value)
}

func (e *Example) encodedQuery() string {
	var parts []string
	for _, m := range membersOf(e.Query) {
		parts = append(parts, url.QueryEscape(m.name)+"="+url.QueryEscape(m.text()))
	}
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// at is the example's path and query.
func (e *Example) at(op *Operation) string {
	path, n := op.Path, 0
	for {
		before, rest, ok := strings.Cut(path, "{")
		if !ok || n == len(e.Path) {
			return path + e.encodedQuery()
		}
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape(e.Path[n]) + after
		n++
	}
}

// filled is an example with values in place of their names.
func (e *Example) filled(values map[string]string) *Example {
	var pairs []string
	for name, v := range values {
		pairs = append(pairs, "<"+name+">", v)
	}
	fill := strings.NewReplacer(pairs...).Replace
	out := *e
	out.Query, out.Body, out.Go, out.Key = fill(e.Query), fill(e.Body), fill(e.Go), fill(e.Key)
	out.Path = nil
	for _, p := range e.Path {
		out.Path = append(out.Path, fill(p))
	}
	out.Other = map[Language]string{}
	for in, text := range e.Other {
		out.Other[in] = fill(text)
	}
	return &out
}

// Filled is the request of an operation's example: path with query, and body.
func (m *Manual) Filled(name string, values map[string]string) (Example, string, error) {
	e, op, err := m.example(name)
	if err != nil {
		return Example{}, "", err
	}
	out := e.filled(values)
	return *out, out.at(op), nil
}

func (m *Manual) example(name string) (*Example, *Operation, error) {
	op := m.operations[name]
	for i := range examples {
		if op != nil && examples[i].Operation == name {
			return &examples[i], op, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: %s", errNoExample, name)
}

// Snippet writes an operation's example in a language, with values in place of their names.
func (m *Manual) Snippet(name string, in Language, values map[string]string) (string, error) {
	e, op, err := m.example(name)
	if err != nil {
		return "", err
	}
	e = e.filled(values)
	if text := e.Other[in]; text != "" {
		return strings.TrimSpace(text), nil
	}
	switch in {
	case Curl:
		return e.curl(op), nil
	case TypeScript:
		return e.typeScript(op), nil
	}
	if e.Go != "" {
		return strings.TrimSpace(e.Go), nil
	}
	return e.call(op), nil
}

// curl writes the request for a shell.
func (e *Example) curl(op *Operation) string {
	out := []string{"curl -sS --fail-with-body"}
	if op.Method != http.MethodGet && (op.Method != http.MethodPost || e.Body == "") {
		out[0] += " -X " + op.Method
	}
	out[0] += ` "$BASE` + e.at(op) + `"`
	if e.As != public {
		out = append(out, `-H "Authorization: Bearer $TOKEN"`)
	}
	if e.Key != "" {
		out = append(out, `-H "Idempotency-Key: `+e.Key+`"`)
	}
	if body := e.sent(op); body != "" {
		out = append(out, `-H "Content-Type: application/json"`, "-d '"+pretty(body)+"'")
	}
	return strings.Join(out, " \\\n  ")
}

// sent is the body that a request needs: one that changes something has one, even where it
// says nothing.
func (e *Example) sent(op *Operation) string {
	if e.Body == "" && len(op.Body) > 0 {
		return "{}"
	}
	return e.Body
}

func pretty(object string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(object), "", "  "); err != nil {
		panic("manual: " + object + ": " + err.Error())
	}
	return out.String()
}

// call writes the request for the Go client, by its Call.
func (e *Example) call(op *Operation) string {
	var out strings.Builder
	answer := "&answer"
	switch {
	case op.Status == http.StatusNoContent:
		answer = "nil"
	case len(op.Answers) > 0 && op.Answers[0].Media != "application/json":
		out.WriteString("var answer []byte\n")
	default:
		out.WriteString("var answer any\n")
	}
	fmt.Fprintf(&out, "err := c.Call(ctx, %q, %q, ", op.Method, e.at(op))
	if body := e.sent(op); body == "" {
		out.WriteString("nil")
	} else if members := membersOf(body); len(members) == 0 {
		out.WriteString("map[string]any{}")
	} else {
		out.WriteString("map[string]any{\n")
		for _, m := range members {
			fmt.Fprintf(&out, "\t%q: %s,\n", m.name, goValue(m.value))
		}
		out.WriteString("}")
	}
	out.WriteString(", " + answer + ")")
	return out.String()
}

func goValue(v json.RawMessage) string {
	if text := string(v); !strings.HasPrefix(text, "[") {
		return text
	}
	return "[]string{" + strings.Trim(string(v), "[]") + "}"
}

// typeScript writes the request for openapi-fetch.
func (e *Example) typeScript(op *Operation) string {
	var init []string
	var params []string
	if len(e.Path) > 0 {
		var pairs []string
		for i, part := range strings.Split(op.Path, "{")[1:] {
			name, _, _ := strings.Cut(part, "}")
			pairs = append(pairs, name+": "+quoted(e.Path[i]))
		}
		params = append(params, "path: { "+strings.Join(pairs, ", ")+" }")
	}
	if e.Query != "" {
		params = append(params, "query: "+inline(membersOf(e.Query)))
	}
	if len(params) > 0 {
		init = append(init, "params: { "+strings.Join(params, ", ")+" },")
	}
	if body := e.sent(op); body != "" {
		lines := []string{"body: {"}
		for _, m := range membersOf(body) {
			lines = append(lines, "  "+m.name+": "+string(m.value)+",")
		}
		if len(lines) == 1 {
			init = append(init, "body: {},")
		} else {
			init = append(init, strings.Join(lines, "\n  ")+"\n  },")
		}
	}
	if e.Key != "" {
		init = append(init, `headers: { "Idempotency-Key": `+quoted(e.Key)+" },")
	}
	if len(op.Answers) > 0 && op.Answers[0].Media != "application/json" {
		init = append(init, `parseAs: "text",`)
	}
	at := fmt.Sprintf("const { data, error } = await api.%s(%q", op.Method, op.Path)
	if len(init) == 0 {
		return at + ");"
	}
	return at + ", {\n  " + strings.Join(init, "\n  ") + "\n});"
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic("manual: " + err.Error())
	}
	return string(raw)
}

func inline(members []member) string {
	var pairs []string
	for _, m := range members {
		pairs = append(pairs, m.name+": "+string(m.value))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}
