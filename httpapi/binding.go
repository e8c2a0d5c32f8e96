package httpapi

import (
	"bytes"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// binder fills an input struct from one request and collects every bad field.
type binder struct {
	values []string // of the path's parameters
	query  url.Values
	body   []byte
	csv    bool  // the body is a table
	broken bool  // set by bind: the body is no JSON object, or no such table
	long   bool  // set by bind: a list has more entries than it may
	lines  []int // set by bind: where the entries of a table's list begin
	bad    fields
}

func (b *binder) bind(p *plan, v reflect.Value) fields {
	for i, f := range p.path {
		b.text(&f, v.FieldByIndex(f.Index), b.values[i])
	}
	for _, f := range p.query {
		b.parameter(&f, v.FieldByIndex(f.Index))
	}
	switch {
	case b.csv:
		b.table(p, v)
	case len(p.json) > 0 || len(b.body) > 0:
		b.object(p, v)
	}
	return b.bad
}

// parameter fills a field from the query. An empty one counts as not given.
func (b *binder) parameter(f *field, v reflect.Value) {
	given := b.query[f.Name]
	switch {
	case len(given) > 1:
		b.bad.add(f.Name, "is given twice")
		return
	case len(given) == 0 || given[0] == "":
		if f.Rules.Default != "" {
			b.text(f, v, f.Rules.Default)
		} else if f.Rules.Required {
			b.bad.add(f.Name, "is required")
		}
		return
	}
	b.text(f, v, given[0])
}

// text fills a field from characters of a path or query.
func (b *binder) text(f *field, v reflect.Value, s string) {
	switch f.Kind {
	case typeBool, typeFlag:
		on := strings.EqualFold(s, "true") || s == "1"
		if !on && !strings.EqualFold(s, "false") && s != "0" {
			b.bad.add(f.Name, "must be true or false")
			return
		}
		setBool(v, on)
	case typeInt, typeInteger:
		b.integer(f, v, s)
	case typeNumber:
		b.number(f, v, s)
	default:
		b.string(f, v, s)
	}
}

// object fills fields from a JSON body.
func (b *binder) object(p *plan, v reflect.Value) {
	var seen uint64 // 64 members are more than any input has
	at, message := members(b.body, func(name string, value jsontext.Value) {
		i, known := p.names[name]
		if !known {
			if meant := p.fold[strings.ToLower(name)]; meant != "" {
				b.bad.add(name, fmt.Sprintf("is not a field; %s is", meant))
			}
			return
		}
		if value.Kind() == 'n' {
			return // null: not given
		}
		seen |= 1 << i
		b.value(&p.json[i], v.FieldByIndex(p.json[i].Index), value)
	})
	if message != "" {
		b.broken = true
		b.bad = fields{at: {message}}
		return
	}
	b.missing(p, v, seen)
}

// missing gives the fields that were not given their defaults. seen has a bit for each that was.
func (b *binder) missing(p *plan, v reflect.Value, seen uint64) {
	for i := range p.json {
		if seen&(1<<i) != 0 {
			continue
		}
		f := &p.json[i]
		if f.Rules.Default != "" {
			b.text(f, v.FieldByIndex(f.Index), f.Rules.Default)
		} else if f.Rules.Required {
			b.bad.add(f.Name, "is required")
		}
	}
}

// value fills a field from a JSON value of exactly its type.
func (b *binder) value(f *field, v reflect.Value, value jsontext.Value) {
	kind := value.Kind()
	if f.Items != nil {
		b.objects(f, v, value)
		return
	}
	switch f.Kind {
	case typeString, typeText:
		if kind != '"' {
			b.bad.add(f.Name, "must be a string")
			return
		}
		b.string(f, v, unquote(value))
	case typeBool, typeFlag:
		if kind != 't' && kind != 'f' {
			b.bad.add(f.Name, "must be true or false")
			return
		}
		setBool(v, kind == 't')
	case typeInt, typeInteger:
		if kind != '0' {
			b.bad.add(f.Name, "must be an integer")
			return
		}
		b.integer(f, v, string(value))
	case typeNumber:
		switch kind {
		case '"':
			b.number(f, v, unquote(value))
		case '0':
			b.number(f, v, string(value))
		default:
			b.bad.add(f.Name, "must be a decimal, as a string or a number")
			v.Set(reflect.ValueOf(Number{Given: true}))
		}
	case typeTexts:
		b.list(f, v, value)
	}
}

// objects fills a list from an array of objects. It reads no more of them than there may be.
func (b *binder) objects(f *field, v reflect.Value, value jsontext.Value) {
	if value.Kind() != '[' {
		b.bad.add(f.Name, "must be an array of objects")
		return
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(value))
	_, _ = d.ReadToken() // the bracket: the value was read whole before
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			b.bad.add(f.Name, "must be an array of objects")
			return
		}
		if list.Len() == f.Rules.Max {
			b.tooMany(f)
			return
		}
		made := reflect.New(v.Type().Elem()).Elem()
		if item.Kind() == '{' {
			one := &binder{body: item}
			one.object(f.Items, made)
			b.entry(f, list.Len(), one.bad, "")
		} else {
			b.broken = true
			b.bad.add(entryName(f, list.Len()), "must be an object")
		}
		list = reflect.Append(list, made)
	}
	b.entries(f, v, list)
}

// entries takes over a list that was read.
func (b *binder) entries(f *field, v, list reflect.Value) {
	if list.Len() < f.Rules.Min {
		b.bad.add(f.Name, fmt.Sprintf("must have %d to %d entries", f.Rules.Min, f.Rules.Max))
	}
	v.Set(list)
}

// tooMany notes a list that is longer than it may be. Nothing else is said of the request then.
func (b *binder) tooMany(f *field) {
	b.long = true
	b.bad = fields{f.Name: {fmt.Sprintf("must have %d to %d entries", f.Rules.Min, f.Rules.Max)}}
}

// entry takes over what is wrong with an entry of a list. where says where it stands.
func (b *binder) entry(f *field, i int, bad fields, where string) {
	for name, messages := range bad {
		for _, m := range messages {
			b.bad.add(entryName(f, i)+"."+name, m+where)
		}
	}
}

// entryName names an entry of a list, from 0.
func entryName(f *field, i int) string { return f.Name + "[" + strconv.Itoa(i) + "]" }

func (b *binder) list(f *field, v reflect.Value, value jsontext.Value) {
	if value.Kind() != '[' {
		b.bad.add(f.Name, "must be an array of strings")
		return
	}
	out := []string{}
	d := jsontext.NewDecoder(strings.NewReader(string(value)))
	_, _ = d.ReadToken() // the bracket: the value was read whole before
	for d.PeekKind() != ']' {
		item, err := d.ReadToken()
		if err != nil || item.Kind() != '"' {
			b.bad.add(f.Name, "must be an array of strings")
			return
		}
		out = append(out, item.String())
	}
	v.Set(reflect.ValueOf(&out))
}

func unquote(value jsontext.Value) string {
	if s := value[1 : len(value)-1]; !slices.Contains(s, '\\') {
		return string(s)
	}
	s, _ := jsontext.AppendUnquote(nil, value) // was read as a string before
	return string(s)
}

func setBool(v reflect.Value, on bool) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.ValueOf(&on))
		return
	}
	v.SetBool(on)
}

// integer reads plain digits: what has a point or an exponent is no integer,
// whatever it comes to.
func (b *binder) integer(f *field, v reflect.Value, s string) {
	n, err := strconv.Atoi(s)
	r := f.Rules
	switch {
	case err != nil || s[0] == '+' || len(s) > 18:
		b.bad.add(f.Name, "must be an integer")
		return
	case r.HasMin && n < r.Min && r.Max > 0 || r.Max > 0 && n > r.Max:
		b.bad.add(f.Name, fmt.Sprintf("must be from %d to %d", r.Min, r.Max))
		return
	case r.HasMin && n < r.Min:
		b.bad.add(f.Name, fmt.Sprintf("must be at least %d", r.Min))
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.ValueOf(&n))
		return
	}
	v.SetInt(int64(n))
}

func (b *binder) number(f *field, v reflect.Value, s string) {
	if f.Rules.Or != "" && s == f.Rules.Or {
		v.Set(reflect.ValueOf(Number{Text: s, Given: true}))
		return
	}
	n, err := parseNumber(s)
	if err != nil {
		b.bad.add(f.Name, "must be a decimal: at most 40 digits with at most one point, no exponent")
		v.Set(reflect.ValueOf(Number{Given: true})) // though not readable: what depends on it is not missing it
		return
	}
	v.Set(reflect.ValueOf(n))
}

func (b *binder) string(f *field, v reflect.Value, s string) {
	if why := f.Rules.text(s); why != "" {
		b.bad.add(f.Name, why)
		return
	}
	if f.Rules.Format == "uuid" {
		s = strings.ToLower(s) // RFC 9562 §4: read in either case
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.ValueOf(&s))
		return
	}
	v.SetString(s)
}

// text says what is wrong with a text, "" = nothing. Lengths count characters
// (code points), as merchants do.
func (r *rules) text(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case r.Required && s == "":
		return "is required"
	case r.Max > 0 && utf8.RuneCountInString(s) > r.Max:
		return fmt.Sprintf("has more than %d characters", r.Max)
	case r.HasMin && utf8.RuneCountInString(s) < r.Min:
		return fmt.Sprintf("has less than %d characters", r.Min)
	case strings.ContainsFunc(s, control):
		return refusedCharacter(s)
	case s == "":
		return ""
	case len(r.Enum) > 0 && !slices.Contains(r.Enum, s):
		return "must be one of " + strings.Join(r.Enum, ", ")
	case r.Format == "uuid" && !isUUID(s):
		return "must be a UUID"
	case r.Format == "date-time" && !isTime(s):
		return "must be an ISO 8601 datetime such as 2026-01-31T12:00:00Z"
	}
	return ""
}

// refusedCharacter names the first character of a text that no text may hold.
func refusedCharacter(s string) string {
	at := strings.IndexFunc(s, control)
	r, _ := utf8.DecodeRuneInString(s[at:])
	return fmt.Sprintf("contains the character U+%04X, which is not accepted", r)
}

// control is what no text of a request may hold: C0 and C1 but for line breaks
// and tabs, and the overrides and embeddings that turn the direction of writing
// around. Isolates (U+2066 to U+2069) end where the text ends, and are accepted.
func control(r rune) bool {
	switch r {
	case '\n', '\r', '\t':
		return false
	}
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e'
}

// isUUID takes the usual writing alone: 36 characters, either case.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
