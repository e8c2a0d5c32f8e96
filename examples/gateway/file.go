package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
)

// fileSettings are what a settings file says: under the names that the same settings have in
// the environment, which wins.
type fileSettings struct {
	name    string
	env     map[string]string
	at      map[string]yamlfile.Place // of env
	tenants []tenant
	all     *networks.Set
}

// fields are the settings of a file that are one text, by the name in the environment.
var fields = map[string]string{
	"listen": "ADDR", "metrics_listen": "METRICS_ADDR", "base_url": "BASE_URL", "trusted_proxies": "TRUSTED_PROXIES", "store": "STORE", "key_file": "KEY_FILE", "mnemonic": "MNEMONIC",
	"log": "LOG", "poll": "POLL", "verify": "VERIFY", "registry": "REGISTRY", "simulated": "NETWORKS", "prices": "PRICES", "retire": "RETIRE", "elsewhere": "ELSEWHERE", "house_addresses": "HOUSE_ADDRESSES",
	"rate_limits": "RATE_LIMITS", "reconcile_halt": "RECONCILE_HALT", "allow_private_callbacks": "ALLOW_PRIVATE_CALLBACKS",
	"fees.transaction": "TRANSACTION_FEE", "fees.network": "NETWORK_FEE", "fees.withdrawal": "WITHDRAWAL_FEE",
	"signer.url": "SIGNER_URL", "signer.certificate": "SIGNER_CERTIFICATE", "signer.key": "SIGNER_KEY", "signer.ca": "SIGNER_CA", "signer.accounts": "SIGNER_ACCOUNTS",
	"signer.store": "SIGNER_STORE", "signer.limits": "SIGNER_LIMITS",
}

// nodeFields are those of one network: see nodes.Settings.
var nodeFields = map[string]string{
	"node": "RPC", "chain": "CHAIN", "header": "HEADER", "confirmations": "CONFIRMATIONS", "steps": "STEPS", "final": "FINAL", "dialect": "DIALECT", "pruned": "PRUNED", "calls": "CALLS", "poll": "POLL", "few": "FEW", "solid": "SOLID", "version": "VERSION",
	"kupo": "KUPO", "project": "PROJECT", "stake": "STAKE",
}

// fieldNames are the fields of all settings, by the name in the environment.
func fieldNames(all *networks.Set) map[string]string {
	out := map[string]string{}
	for field, name := range fields {
		out[settingPrefix+name] = field
	}
	for _, n := range all.Networks() {
		for field, name := range nodeFields {
			out[settingPrefix+name+"_"+string(n.Code)] = "networks." + string(n.Code) + "." + field
		}
	}
	for _, c := range all.Currencies() {
		out[settingPrefix+"CONTRACT_"+c.Code] = "networks." + string(c.Network) + ".contracts." + c.Code
	}
	return out
}

// readFile reads a settings file. It opens nothing but the files of secrets. Its error has a
// line for all that is wrong, with line, column and field, and repeats no value.
func readFile(name string, env func(string) string) (fileSettings, error) {
	f := fileSettings{name: name, env: map[string]string{}, at: map[string]yamlfile.Place{}, all: networks.Shipped()}
	text, err := os.ReadFile(name)
	if err != nil {
		return f, fmt.Errorf("-config: %w", err)
	}
	y, root, err := yamlfile.Parse(name, text)
	if err != nil {
		return f, err
	}
	r := &fileReader{Reader: y, f: &f, env: env}
	if root != nil {
		if !r.registry(root) {
			return f, r.Err() // what follows may be of its networks
		}
		r.root(root)
	}
	return f, r.Err()
}

// fileReader walks over the file.
type fileReader struct {
	*yamlfile.Reader
	f   *fileSettings
	env func(string) string
}

// registry reads the file of networks that is named here, or in the environment, which wins.
func (r *fileReader) registry(root ast.Node) (ok bool) {
	file, where := r.env("CRYPTOPAY_REGISTRY"), "CRYPTOPAY_REGISTRY"
	switch root.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return true // root says what is wrong
	}
	for _, p := range r.Pairs(root, "", nil) {
		if p.Key == "registry" && file == "" {
			where = r.Place(p.Value, p.Key).String()
			if file, ok = r.text(p.Value, p.Key); !ok {
				return false
			}
		}
	}
	if file == "" {
		return true
	}
	all, err := networks.Read(file)
	if err != nil {
		r.Fail(fmt.Errorf("%s: %w", where, err))
		return false
	}
	r.f.all = all
	return true
}

// text is a scalar. One that begins with env: or file: stands for what a variable or a file
// holds.
func (r *fileReader) text(n ast.Node, field string) (string, bool) {
	v, ok := r.Text(n, field)
	if !ok {
		return "", false
	}
	if name, ok := strings.CutPrefix(v, "env:"); ok {
		if v = r.env(name); v == "" {
			r.Bad(n, field, "names the variable %s, which is not set", name)
		}
	} else if file, ok := strings.CutPrefix(v, "file:"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			r.Bad(n, field, "names a file that cannot be read: %v", err)
		}
		v = strings.TrimSpace(string(text))
		if err == nil && v == "" {
			r.Bad(n, field, "names the file %s, which is empty", file)
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
	r.f.env[settingPrefix+name], r.f.at[settingPrefix+name] = value, r.Place(n, field)
}

func (r *fileReader) root(n ast.Node) {
	known := []string{"fees", "signer", "networks", "tenants"}
	for field := range fields {
		if !strings.Contains(field, ".") {
			known = append(known, field)
		}
	}
	for _, p := range r.Pairs(n, "", slices.Sorted(slices.Values(known))) {
		switch p.Key {
		case "fees", "signer":
			r.group(p)
		case "networks":
			r.networks(p.Value)
		case "tenants":
			r.tenants(p.Value)
		case "simulated", "retire", "elsewhere", "house_addresses", "trusted_proxies":
			r.set(p.Value, p.Key, fields[p.Key], strings.Join(r.list(p.Value, p.Key), ","))
		case "prices":
			var all []string
			for _, price := range r.Pairs(p.Value, p.Key, nil) {
				if v, ok := r.text(price.Value, yamlfile.Under(p.Key, price.Key)); ok {
					all = append(all, price.Key+"="+v)
				}
			}
			r.set(p.Value, p.Key, fields[p.Key], strings.Join(all, ","))
		case "rate_limits", "reconcile_halt", "allow_private_callbacks":
			r.flag(p)
		default:
			if v, ok := r.text(p.Value, p.Key); ok {
				r.set(p.Value, p.Key, fields[p.Key], v)
			}
		}
	}
}

// flag is a setting that is true or false.
func (r *fileReader) flag(p yamlfile.Pair) {
	v, ok := r.text(p.Value, p.Key)
	words := map[string][2]string{"rate_limits": {"on", "off"}, "reconcile_halt": {"on", "off"}, "allow_private_callbacks": {"1", "0"}}[p.Key]
	switch {
	case !ok:
	case v == "true" || v == "on":
		r.set(p.Value, p.Key, fields[p.Key], words[0])
	case v == "false" || v == "off":
		r.set(p.Value, p.Key, fields[p.Key], words[1])
	default:
		r.Bad(p.Value, p.Key, "must be true or false")
	}
}

func (r *fileReader) group(p yamlfile.Pair) {
	var known []string
	for field := range fields {
		if key, ok := strings.CutPrefix(field, p.Key+"."); ok {
			known = append(known, key)
		}
	}
	for _, one := range r.Pairs(p.Value, p.Key, slices.Sorted(slices.Values(known))) {
		field := yamlfile.Under(p.Key, one.Key)
		if v, ok := r.text(one.Value, field); ok {
			r.set(one.Value, field, fields[field], v)
		}
	}
}

func (r *fileReader) networks(n ast.Node) {
	var codes []string
	for _, info := range r.f.all.Networks() {
		codes = append(codes, string(info.Code))
	}
	known := append(slices.Sorted(maps.Keys(nodeFields)), "contracts")
	for _, network := range r.Pairs(n, "networks", codes) {
		field := yamlfile.Under("networks", network.Key)
		for _, p := range r.Pairs(network.Value, field, known) {
			if p.Key != "contracts" {
				if v, ok := r.text(p.Value, yamlfile.Under(field, p.Key)); ok {
					r.set(p.Value, yamlfile.Under(field, p.Key), nodeFields[p.Key]+"_"+network.Key, v)
				}
				continue
			}
			var tokens []string
			for _, c := range r.f.all.Registry().On(chain.Network(network.Key)) {
				tokens = append(tokens, c.Code)
			}
			for _, token := range r.Pairs(p.Value, yamlfile.Under(field, p.Key), tokens) {
				if v, ok := r.text(token.Value, yamlfile.Under(yamlfile.Under(field, p.Key), token.Key)); ok {
					r.set(token.Value, yamlfile.Under(yamlfile.Under(field, p.Key), token.Key), "CONTRACT_"+token.Key, v)
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
	text, names := err.Error(), fieldNames(f.all)
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
	if rest, ok := strings.CutPrefix(text, at.Field); ok {
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
