package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/cryptopay-go/cryptopay/chain"
)

// place is where something stands in the settings file.
type place struct {
	file      string
	line, col int
	field     string // such as networks.ETH.node
}

// String is file, line, column and field; the file itself has none.
func (p place) String() string { return fmt.Sprintf("%s:%d:%d: %s", p.file, p.line, p.col, p.field) }

// fileSettings are what a settings file says: under the names that the same settings have in
// the environment, which wins.
type fileSettings struct {
	name    string
	env     map[string]string
	at      map[string]place // of env
	tenants []tenant
}

// fields are the settings of a file that are one text, by the name in the environment.
var fields = map[string]string{
	"listen": "ADDR", "metrics_listen": "METRICS_ADDR", "base_url": "BASE_URL", "store": "STORE", "key_file": "KEY_FILE", "mnemonic": "MNEMONIC",
	"log": "LOG", "poll": "POLL", "simulated": "NETWORKS", "prices": "PRICES", "retire": "RETIRE", "elsewhere": "ELSEWHERE", "house_addresses": "HOUSE_ADDRESSES",
	"rate_limits": "RATE_LIMITS", "allow_private_callbacks": "ALLOW_PRIVATE_CALLBACKS",
	"fees.transaction": "TRANSACTION_FEE", "fees.network": "NETWORK_FEE", "fees.withdrawal": "WITHDRAWAL_FEE",
	"signer.url": "SIGNER_URL", "signer.certificate": "SIGNER_CERTIFICATE", "signer.key": "SIGNER_KEY", "signer.ca": "SIGNER_CA", "signer.accounts": "SIGNER_ACCOUNTS",
}

// nodeFields are those of one network: see nodes.Settings.
var nodeFields = map[string]string{
	"node": "RPC", "chain": "CHAIN", "header": "HEADER", "confirmations": "CONFIRMATIONS", "final": "FINAL", "dialect": "DIALECT", "solid": "SOLID", "version": "VERSION",
	"kupo": "KUPO", "project": "PROJECT", "stake": "STAKE",
}

// fieldNames are the fields of all settings, by the name in the environment.
func fieldNames() map[string]string {
	out := map[string]string{}
	for field, name := range fields {
		out[settingPrefix+name] = field
	}
	for _, n := range chain.Networks() {
		for field, name := range nodeFields {
			out[settingPrefix+name+"_"+string(n.Code)] = "networks." + string(n.Code) + "." + field
		}
	}
	for _, c := range chain.Mainnet() {
		out[settingPrefix+"CONTRACT_"+c.Code] = "networks." + string(c.Network) + ".contracts." + c.Code
	}
	return out
}

// readFile reads a settings file. It opens nothing but the files of secrets. Its error has a
// line for all that is wrong, with line, column and field, and repeats no value.
func readFile(name string, env func(string) string) (fileSettings, error) {
	f := fileSettings{name: name, env: map[string]string{}, at: map[string]place{}}
	text, err := os.ReadFile(name)
	if err != nil {
		return f, fmt.Errorf("-config: %w", err)
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		var wrong yaml.Error
		if errors.As(err, &wrong) && wrong.GetToken() != nil { // its own text would show the line
			at := wrong.GetToken().Position
			return f, fmt.Errorf("%s:%d:%d: is no YAML: %s", name, at.Line, at.Column, wrong.GetMessage())
		}
		return f, fmt.Errorf("%s: is no YAML", name)
	}
	r := &fileReader{f: &f, env: env}
	for i, doc := range tree.Docs {
		if i > 0 {
			r.bad(doc.Body, "", "is a second document: the file has one")
		} else if doc.Body != nil {
			r.root(doc.Body)
		}
	}
	return f, errors.Join(r.errs...)
}

// fileReader walks over the file.
type fileReader struct {
	f    *fileSettings
	env  func(string) string
	errs []error
}

func (r *fileReader) place(n ast.Node, field string) place {
	p := place{file: r.f.name, field: field}
	switch m := n.(type) { // it begins with its first key
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		p.line, p.col = t.Position.Line, t.Position.Column
	}
	return p
}

func (r *fileReader) bad(n ast.Node, field, format string, args ...any) {
	r.wrong(r.place(n, field), format, args...)
}

func (r *fileReader) wrong(at place, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", at, fmt.Sprintf(format, args...)))
}

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	at    ast.Node
	value ast.Node
}

// pairs are those of a mapping, whose keys must be known; nil known = any.
func (r *fileReader) pairs(n ast.Node, field string, known []string) (out []pair) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return nil
	default:
		r.bad(n, field, "must be a mapping, as `name: value` below it")
		return nil
	}
	for _, v := range values {
		key := v.Key.GetToken().Value
		if known != nil && !slices.Contains(known, key) {
			r.bad(v.Key, under(field, key), "is no setting; the nearest is %s", nearest(key, known))
			continue
		}
		out = append(out, pair{key, v.Key, v.Value})
	}
	return out
}

func under(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// text is a scalar. One that begins with env: or file: stands for what a variable or a file
// holds.
func (r *fileReader) text(n ast.Node, field string) (string, bool) {
	var v string
	switch n := n.(type) {
	case *ast.StringNode:
		v = n.Value
	case *ast.LiteralNode:
		v = strings.TrimSpace(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v = n.GetToken().Value
	default:
		r.bad(n, field, "must be one value")
		return "", false
	}
	if name, ok := strings.CutPrefix(v, "env:"); ok {
		if v = r.env(name); v == "" {
			r.bad(n, field, "names the variable %s, which is not set", name)
		}
	} else if file, ok := strings.CutPrefix(v, "file:"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			r.bad(n, field, "names a file that cannot be read: %v", err)
		}
		v = strings.TrimSpace(string(text))
		if err == nil && v == "" {
			r.bad(n, field, "names the file %s, which is empty", file)
		}
	}
	return v, v != ""
}

// list is a sequence of texts, or one text.
func (r *fileReader) list(n ast.Node, field string) (out []string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		if v, ok := r.text(n, field); ok {
			out = append(out, v)
		}
		return out
	}
	for i, v := range s.Values {
		if v, ok := r.text(v, fmt.Sprintf("%s[%d]", field, i)); ok {
			out = append(out, v)
		}
	}
	return out
}

// set takes a setting.
func (r *fileReader) set(n ast.Node, field, name, value string) {
	r.f.env[settingPrefix+name], r.f.at[settingPrefix+name] = value, r.place(n, field)
}

func (r *fileReader) root(n ast.Node) {
	known := []string{"fees", "signer", "networks", "tenants"}
	for field := range fields {
		if !strings.Contains(field, ".") {
			known = append(known, field)
		}
	}
	for _, p := range r.pairs(n, "", slices.Sorted(slices.Values(known))) {
		switch p.key {
		case "fees", "signer":
			r.group(p)
		case "networks":
			r.networks(p.value)
		case "tenants":
			r.tenants(p.value)
		case "simulated", "retire", "elsewhere", "house_addresses":
			r.set(p.value, p.key, fields[p.key], strings.Join(r.list(p.value, p.key), ","))
		case "prices":
			var all []string
			for _, price := range r.pairs(p.value, p.key, nil) {
				if v, ok := r.text(price.value, under(p.key, price.key)); ok {
					all = append(all, price.key+"="+v)
				}
			}
			r.set(p.value, p.key, fields[p.key], strings.Join(all, ","))
		case "rate_limits", "allow_private_callbacks":
			r.flag(p)
		default:
			if v, ok := r.text(p.value, p.key); ok {
				r.set(p.value, p.key, fields[p.key], v)
			}
		}
	}
}

// flag is a setting that is true or false.
func (r *fileReader) flag(p pair) {
	v, ok := r.text(p.value, p.key)
	words := map[string][2]string{"rate_limits": {"on", "off"}, "allow_private_callbacks": {"1", "0"}}[p.key]
	switch {
	case !ok:
	case v == "true" || v == "on":
		r.set(p.value, p.key, fields[p.key], words[0])
	case v == "false" || v == "off":
		r.set(p.value, p.key, fields[p.key], words[1])
	default:
		r.bad(p.value, p.key, "must be true or false")
	}
}

func (r *fileReader) group(p pair) {
	var known []string
	for field := range fields {
		if key, ok := strings.CutPrefix(field, p.key+"."); ok {
			known = append(known, key)
		}
	}
	for _, one := range r.pairs(p.value, p.key, slices.Sorted(slices.Values(known))) {
		field := under(p.key, one.key)
		if v, ok := r.text(one.value, field); ok {
			r.set(one.value, field, fields[field], v)
		}
	}
}

func (r *fileReader) networks(n ast.Node) {
	var codes []string
	for _, info := range chain.Networks() {
		codes = append(codes, string(info.Code))
	}
	known := append(slices.Sorted(maps.Keys(nodeFields)), "contracts")
	for _, network := range r.pairs(n, "networks", codes) {
		field := under("networks", network.key)
		for _, p := range r.pairs(network.value, field, known) {
			if p.key != "contracts" {
				if v, ok := r.text(p.value, under(field, p.key)); ok {
					r.set(p.value, under(field, p.key), nodeFields[p.key]+"_"+network.key, v)
				}
				continue
			}
			var tokens []string
			for _, c := range chain.MainnetRegistry().On(chain.Network(network.key)) {
				tokens = append(tokens, c.Code)
			}
			for _, token := range r.pairs(p.value, under(field, p.key), tokens) {
				if v, ok := r.text(token.value, under(under(field, p.key), token.key)); ok {
					r.set(token.value, under(under(field, p.key), token.key), "CONTRACT_"+token.key, v)
				}
			}
		}
	}
}

// located says of errors about settings of the file where they stand. env is the environment,
// which has settings of its own.
func (f *fileSettings) located(err error, env func(string) string) error {
	if err == nil || f.name == "" {
		return err
	}
	if joined, many := err.(interface{ Unwrap() []error }); many && !strings.Contains(fmt.Sprintf("%T", err), "fmt.") { //nolint:errorlint // the join itself is taken apart
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, f.located(e, env))
		}
		return errors.Join(out...)
	}
	text, names := err.Error(), fieldNames()
	first, found := len(text), ""
	for name := range f.at {
		if i := index(text, name); i >= 0 && i < first && env(name) == "" {
			first, found = i, name
		}
	}
	if found == "" {
		return err
	}
	at := f.at[found]
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) {
		if env(name) == "" {
			text = strings.ReplaceAll(text, name, names[name])
		}
	}
	text = strings.ReplaceAll(text, settingPrefix+"RPC_…", "networks.….node")
	if rest, ok := strings.CutPrefix(text, at.field); ok {
		return fmt.Errorf("%s%s", at, rest)
	}
	return fmt.Errorf("%s: %s", at, text)
}

// index is where a name stands as a whole.
func index(text, name string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if end == len(text) || !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", rune(text[end])) {
			return i
		}
		from = end
	}
}
