package httpapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// plan is how one input struct is filled: made once per route, when the table
// is built.
type plan struct {
	path  []field
	query []field
	json  []field
	names map[string]int // of json
	fold  map[string]string
}

// field is one member of an input struct.
type field struct {
	Name  string
	Index []int
	Kind  reflect.Type
	Rules rules
	Items *plan // of a list of objects
}

// rules are what a member's tag `rule:"…"` asks for.
type rules struct {
	Required bool
	Max, Min int // characters of a text, the value of an integer, or entries of a list; 0 = no bound
	HasMin   bool
	Format   string   // "uuid", "date-time"
	Enum     []string // allowed values
	Or       string   // a word that is allowed beside a decimal; "" = none
	Default  string
	About    string
}

// Types that inputs may be made of.
var (
	typeString  = reflect.TypeFor[string]()
	typeTexts   = reflect.TypeFor[*[]string]()
	typeText    = reflect.TypeFor[*string]()
	typeBool    = reflect.TypeFor[bool]()
	typeFlag    = reflect.TypeFor[*bool]()
	typeInt     = reflect.TypeFor[int]()
	typeInteger = reflect.TypeFor[*int]()
	typeNumber  = reflect.TypeFor[Number]()
)

// planOf reads the tags of an input struct. It panics on a malformed one, as it
// runs when the table is built.
func planOf(t reflect.Type) *plan {
	p := &plan{names: map[string]int{}, fold: map[string]string{}}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		made := field{Index: f.Index, Kind: f.Type, Rules: rulesOf(f.Tag)}
		switch {
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			made.Items = planOf(f.Type.Elem())
		case !slices.Contains([]reflect.Type{typeString, typeText, typeTexts, typeBool, typeFlag, typeInt, typeInteger, typeNumber}, f.Type):
			panic(fmt.Sprintf("httpapi: %s.%s: %s is no type of an input", t, f.Name, f.Type))
		}
		switch {
		case f.Tag.Get("path") != "":
			made.Name = f.Tag.Get("path")
			p.path = append(p.path, made)
		case f.Tag.Get("query") != "":
			made.Name = f.Tag.Get("query")
			p.query = append(p.query, made)
		case f.Tag.Get("json") != "":
			made.Name = f.Tag.Get("json")
			p.names[made.Name] = len(p.json)
			p.fold[strings.ToLower(made.Name)] = made.Name
			p.json = append(p.json, made)
		default:
			panic(fmt.Sprintf("httpapi: %s.%s has no tag", t, f.Name))
		}
	}
	return p
}

func rulesOf(tag reflect.StructTag) rules {
	r := rules{Default: tag.Get("default"), About: tag.Get("about")}
	for _, rule := range strings.Split(tag.Get("rule"), ",") {
		name, value, _ := strings.Cut(rule, "=")
		switch name {
		case "":
		case "required":
			r.Required = true
		case "max":
			r.Max = number(value)
		case "min":
			r.Min, r.HasMin = number(value), true
		case "format":
			r.Format = value
		case "or":
			r.Or = value
		case "enum":
			r.Enum = strings.Split(value, "|")
		default:
			panic("httpapi: unknown rule " + rule)
		}
	}
	return r
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	return n
}
