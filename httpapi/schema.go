package httpapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// schema is a JSON Schema (2020-12) as far as this interface needs it. Types is
// one name, or names where null, or a number beside a string, is meant.
type schema struct {
	Ref        string             `json:"$ref,omitempty"`
	Types      any                `json:"type,omitempty"`
	About      string             `json:"description,omitempty"`
	Format     string             `json:"format,omitempty"`
	Pattern    string             `json:"pattern,omitempty"`
	Const      string             `json:"const,omitempty"`
	Enum       []any              `json:"enum,omitempty"`
	Minimum    *int               `json:"minimum,omitempty"`
	Maximum    *int               `json:"maximum,omitempty"`
	MinLength  int                `json:"minLength,omitempty"`
	MaxLength  int                `json:"maxLength,omitempty"`
	MinItems   int                `json:"minItems,omitempty"`
	MaxItems   int                `json:"maxItems,omitempty"`
	Items      *schema            `json:"items,omitempty"`
	Properties map[string]*schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Extra      *schema            `json:"additionalProperties,omitempty"`
	AnyOf      []*schema          `json:"anyOf,omitempty"`
	order      []string           // of Properties, as the interface lists them
}

// component is a reference into the document's components.
func component(name string) *schema { return &schema{Ref: "#/components/schemas/" + name} }

// types is what one Go type and a null come to.
func types(name string, nullable bool) any {
	if nullable {
		return []string{name, "null"}
	}
	return name
}

// decimalPattern is the writing of every decimal that an answer has;
// numberPattern of one that a request gives as a string.
const (
	decimalPattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`
	numberPattern  = `^-?[0-9]{1,40}(\.[0-9]{1,30})?$`
)

// schemas collects the components of a document.
type schemas struct {
	byName map[string]*schema
	byType map[reflect.Type]string
	enums  map[reflect.Type][]string
}

func newSchemas() *schemas {
	s := &schemas{byName: map[string]*schema{}, byType: map[reflect.Type]string{}, enums: map[reflect.Type][]string{
		reflect.TypeFor[payment.Status]():        shownStatuses,
		reflect.TypeFor[withdrawal.Status]():     texts(withdrawal.Statuses()),
		reflect.TypeFor[refund.Status]():         texts(refund.Statuses()),
		reflect.TypeFor[wallet.TransferStatus](): texts(wallet.TransferStatuses()),
		reflect.TypeFor[wallet.Direction]():      {string(wallet.ToSub), string(wallet.ToMaster)},
		reflect.TypeFor[payment.Type]():          {string(payment.TypeFull), string(payment.TypeOver), string(payment.TypePartial), string(payment.TypeLate)},
	}}
	return s
}

// shownStatuses are a payment's as REST shows them: the list of the interface.
var shownStatuses = texts([]payment.Status{
	payment.Waiting, payment.Confirming, payment.Confirmed, payment.Sending, payment.Completed, payment.Expired, payment.Failed,
})

func texts[S ~string](of []S) []string {
	out := make([]string, len(of))
	for i, s := range of {
		out[i] = string(s)
	}
	return out
}

func enumOf(values []string, nullable bool) []any {
	out := make([]any, 0, len(values)+1)
	for _, v := range values {
		out = append(out, v)
	}
	if nullable && len(out) > 0 {
		out = append(out, nil)
	}
	return out
}

// special is the schema of a member whose Go type says less than the interface
// does; nil for all others.
func (s *schemas) special(member string) *schema {
	switch member {
	case "currenciesView.currencies":
		return &schema{
			AnyOf: []*schema{{Types: "array", Items: textSchema()}, {Types: "array", Items: s.object(reflect.TypeFor[currencyEntry]())}},
			About: "Codes; with full or min_max objects.",
		}
	case "transactionView.metadata":
		out := fieldsOf("order_id", textSchema(), "confirmations", &schema{Types: "integer"},
			"custom_id", &schema{Types: types("string", true)}, "network_fee", &schema{Types: "string", Format: "decimal", Pattern: decimalPattern})
		out.About = "Payments: order_id, confirmations. Withdrawals: custom_id, network_fee."
		return out
	}
	return nil
}

var typeFigure = reflect.TypeFor[Figure]()

// view is the schema of a type as encoding/json writes it. tag is the tag of
// the field that has it.
func (s *schemas) view(t reflect.Type, tag reflect.StructTag) *schema {
	nullable := false
	for t.Kind() == reflect.Pointer {
		t, nullable = t.Elem(), true
	}
	r := rulesOf(tag)
	out := &schema{About: r.About}
	if out.Format = r.Format; out.Format == "" {
		out.Format = tag.Get("format")
	}
	switch {
	case t == typeFigure:
		out.Types = types("number", nullable)
	case t.Kind() == reflect.Struct:
		out = s.object(t)
		if out.About = r.About; nullable {
			out = &schema{AnyOf: []*schema{component(s.byType[t]), {Types: "null"}}, About: r.About}
		}
	case t.Kind() == reflect.String:
		out.Types = types("string", nullable)
		values := r.Enum
		if len(values) == 0 {
			values = s.enums[t]
		}
		if out.Enum = enumOf(values, nullable); out.Format == "decimal" {
			out.Pattern = decimalPattern
		}
	case t.Kind() == reflect.Bool:
		out.Types = types("boolean", nullable)
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		out.Types = types("integer", nullable)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		item := reflect.StructTag("")
		if f := tag.Get("format"); f != "" {
			item, out.Format = reflect.StructTag(`format:"`+f+`"`), ""
		}
		out.Types, out.Items = types("array", nullable), s.view(t.Elem(), item)
	case t.Kind() == reflect.Map:
		item := reflect.StructTag("")
		if f := tag.Get("format"); f != "" {
			item, out.Format = reflect.StructTag(`format:"`+f+`"`), ""
		}
		out.Types, out.Extra = types("object", nullable), s.view(t.Elem(), item)
	case t == typeRaw: // an object that is stored as it is shown
		out.Types = types("object", nullable)
	default: // any: nothing is promised
		out.Format = ""
	}
	return out
}

// object is a reference to a struct's component, which is made at first sight.
func (s *schemas) object(t reflect.Type) *schema {
	if name, ok := s.byType[t]; ok {
		return component(name)
	}
	name := s.name(t)
	made := &schema{Types: "object", Properties: map[string]*schema{}, Required: []string{}}
	s.byType[t], s.byName[name] = name, made
	s.members(made, t)
	if len(made.Required) == 0 {
		made.Required = nil
	}
	return component(name)
}

func (s *schemas) members(made *schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			s.members(made, indirect(f.Type))
			continue
		case name == "":
			name = f.Name
		}
		if _, twice := made.Properties[name]; !twice {
			made.order = append(made.order, name)
		}
		if made.Properties[name] = s.special(t.Name() + "." + name); made.Properties[name] == nil {
			made.Properties[name] = s.view(f.Type, f.Tag)
		}
		if !strings.Contains(options, "omit") {
			made.Required = append(made.Required, name)
		}
	}
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// name is a component's: the Go type's, without what says that it is a view.
func (s *schemas) name(t reflect.Type) string {
	name := t.Name()
	if name == "" {
		name = "Object"
	}
	name = strings.TrimSuffix(string(unicode.ToUpper(rune(name[0])))+name[1:], "View")
	for n := 2; s.byName[name] != nil; n++ {
		name = strings.TrimRight(name, "0123456789") + strconv.Itoa(n)
	}
	return name
}

// input is the schema of one field of a request. What stands for a field that is left out
// is said in words: of a schema with a default, generators make a field that must be given.
func input(f *field) *schema {
	r := f.Rules
	about := r.About
	if r.Default != "" {
		about = strings.TrimSpace(about + " Defaults to " + r.Default + ".")
	}
	out := &schema{About: about, Format: r.Format, Enum: enumOf(r.Enum, false)}
	switch f.Kind {
	case typeBool, typeFlag:
		out.Types = "boolean"
		return out
	case typeInt, typeInteger:
		out.Types = "integer"
		if r.HasMin {
			out.Minimum = &r.Min
		}
		if r.Max > 0 {
			out.Maximum = &r.Max
		}
		return out
	case typeNumber:
		out.Types, out.Format, out.Pattern = []string{"string", "number"}, "decimal", numberPattern
		if r.Or != "" {
			out.Format, out.Pattern = "", "^("+r.Or+"|"+strings.Trim(numberPattern, "^$")+")$"
		}
	case typeTexts:
		out.Types, out.Items, out.Format = "array", &schema{Types: "string"}, ""
	default:
		if out.Types, out.MaxLength = "string", r.Max; r.HasMin {
			out.MinLength = r.Min
		}
		if r.Required && out.MinLength == 0 && out.Format == "" && len(out.Enum) == 0 {
			out.MinLength = 1
		}
	}
	return out
}

// body is the component of a request's JSON object, nil where it takes none.
func (s *schemas) body(t reflect.Type, p *plan) *schema {
	if len(p.json) == 0 {
		return nil
	}
	if name, ok := s.byType[t]; ok {
		return component(name)
	}
	name := s.name(t)
	made := &schema{Types: "object", Properties: map[string]*schema{}}
	for i := range p.json {
		f := &p.json[i]
		if f.Items == nil {
			made.Properties[f.Name] = input(f)
		} else {
			made.Properties[f.Name] = s.entries(t, f)
		}
		made.order = append(made.order, f.Name)
		if f.Rules.Required {
			made.Required = append(made.Required, f.Name)
		}
	}
	s.byType[t], s.byName[name] = name, made
	return component(name)
}

// entries is the schema of a list of objects.
func (s *schemas) entries(t reflect.Type, f *field) *schema {
	return &schema{
		Types: "array", About: f.Rules.About, MinItems: f.Rules.Min, MaxItems: f.Rules.Max,
		Items: s.body(t.FieldByIndex(f.Index).Type.Elem(), f.Items),
	}
}

// resolve follows a reference.
func (s *schemas) resolve(x *schema) *schema {
	if name, ok := strings.CutPrefix(x.Ref, "#/components/schemas/"); ok {
		return s.byName[name]
	}
	return x
}

// says is a schema's type for people.
func (s *schemas) says(x *schema) string {
	switch {
	case x.Ref != "":
		return x.Ref[strings.LastIndexByte(x.Ref, '/')+1:]
	case len(x.AnyOf) > 0:
		var parts []string
		for _, a := range x.AnyOf {
			parts = append(parts, s.says(a))
		}
		return strings.Join(parts, " or ")
	case x.Items != nil:
		return strings.Replace(kinds(x.Types), "array", "array of "+s.says(x.Items), 1)
	case x.Extra != nil:
		return strings.Replace(kinds(x.Types), "object", "object of "+s.says(x.Extra), 1)
	case x.Types == nil:
		return "any"
	}
	out := kinds(x.Types)
	if x.Format != "" {
		out += " (" + x.Format + ")"
	}
	return out
}

func kinds(t any) string {
	if list, ok := t.([]string); ok {
		return strings.Join(list, " or ")
	}
	return fmt.Sprint(t)
}

// limits is what else a schema asks for, for people.
func (x *schema) limits() string {
	var out []string
	if len(x.Enum) > 0 {
		var values []string
		for _, v := range x.Enum {
			if v != nil {
				values = append(values, fmt.Sprint(v))
			}
		}
		out = append(out, "one of "+strings.Join(values, ", "))
	}
	switch {
	case x.Minimum != nil && x.Maximum != nil:
		out = append(out, fmt.Sprintf("from %d to %d", *x.Minimum, *x.Maximum))
	case x.Minimum != nil:
		out = append(out, fmt.Sprintf("at least %d", *x.Minimum))
	case x.Maximum != nil:
		out = append(out, fmt.Sprintf("at most %d", *x.Maximum))
	}
	if x.MaxItems > 0 {
		out = append(out, fmt.Sprintf("%d to %d entries", x.MinItems, x.MaxItems))
	}
	if x.MaxLength > 0 {
		out = append(out, fmt.Sprintf("at most %d characters", x.MaxLength))
	}
	return strings.Join(out, "; ")
}

// needs reports whether an object asks for a member.
func (x *schema) needs(name string) bool { return slices.Contains(x.Required, name) }
