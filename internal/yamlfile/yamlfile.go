// Package yamlfile reads YAML files that people write: it promises that every key is known
// and given once, and that every error names file, line, column and field and repeats no
// value of the file.
package yamlfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Place is where something stands in a file.
type Place struct {
	File      string
	Line, Col int
	Field     string // such as networks.ETH.node
}

// String is file, line, column and field.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Field) }

// Reader walks over one file and collects what is wrong with it.
type Reader struct {
	file string
	errs []error
}

// Parse reads a file's text and returns its one document, nil where it is empty.
func Parse(file string, text []byte) (*Reader, ast.Node, error) {
	r := &Reader{file: file}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		var wrong yaml.Error
		if errors.As(err, &wrong) && wrong.GetToken() != nil { // its own text would show the line
			at := wrong.GetToken().Position
			return r, nil, fmt.Errorf("%s:%d:%d: is no YAML: %s", file, at.Line, at.Column, wrong.GetMessage())
		}
		return r, nil, fmt.Errorf("%s: is no YAML", file)
	}
	var root ast.Node
	for i, doc := range tree.Docs {
		if i > 0 {
			r.Bad(doc.Body, "", "is a second document: the file has one")
		} else {
			root = doc.Body
		}
	}
	return r, root, nil
}

// Err joins all that is wrong, a line each; nil where nothing is.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

// Place is where a node stands. A mapping begins with its first key.
func (r *Reader) Place(n ast.Node, field string) Place {
	p := Place{File: r.file, Field: field}
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		p.Line, p.Col = t.Position.Line, t.Position.Column
	}
	return p
}

// Bad notes what is wrong with a node.
func (r *Reader) Bad(n ast.Node, field, format string, args ...any) {
	r.Wrong(r.Place(n, field), format, args...)
}

// Wrong notes what is wrong at a place.
func (r *Reader) Wrong(at Place, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", at, fmt.Sprintf(format, args...)))
}

// Fail notes an error that says where it is.
func (r *Reader) Fail(err error) { r.errs = append(r.errs, err) }

// Pair is one key of a mapping with its value.
type Pair struct {
	Key   string
	At    ast.Node
	Value ast.Node
}

// Pairs are those of a mapping, whose keys must be known; nil known = any.
func (r *Reader) Pairs(n ast.Node, field string, known []string) (out []Pair) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return nil
	default:
		r.Bad(n, field, "must be a mapping, as `name: value` below it")
		return nil
	}
	for _, v := range values {
		key := v.Key.GetToken().Value
		if known != nil && !slices.Contains(known, key) {
			r.Bad(v.Key, Under(field, key), "is no setting; the nearest is %s", Nearest(key, known))
			continue
		}
		out = append(out, Pair{key, v.Key, v.Value})
	}
	return out
}

// Text is a scalar as it is written; ok is false, and the error noted, for anything else.
func (r *Reader) Text(n ast.Node, field string) (v string, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	r.Bad(n, field, "must be one value")
	return "", false
}

// Under is the name of a field's field.
func Under(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// Nearest is the known name that takes the fewest changes of a character.
func Nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return changes(name, a) - changes(name, b) })
}

// changes is the edit distance of two names.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
