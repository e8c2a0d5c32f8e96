package networks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
)

// reader adds a file to a Set.
type reader struct {
	*yamlfile.Reader
	s *Set
	// Where the file speaks of a network, and of a currency: both may have one code.
	at    map[chain.Network]yamlfile.Place
	coins map[string]yamlfile.Place
}

// with is the Set with what a file adds.
func (s *Set) with(name string, text []byte) (*Set, error) {
	y, root, err := yamlfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{Reader: y, s: s.clone(), at: map[chain.Network]yamlfile.Place{}, coins: map[string]yamlfile.Place{}}
	if root != nil {
		pairs := r.Pairs(root, "", []string{"networks", "tokens"})
		for _, p := range pairs { // whatever the order in the file: tokens are of networks
			if p.Key == "networks" {
				r.networks(p.Value)
			}
		}
		for _, p := range pairs {
			if p.Key == "tokens" {
				r.tokens(p.Value)
			}
		}
	}
	if r.Err() == nil {
		r.together()
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.s, nil
}

// together checks what only the whole shows.
func (r *reader) together() {
	taken := map[string]chain.Network{}
	claim := func(n chain.Network, what, name string) {
		key := what + " " + name
		if other, ok := taken[key]; ok && other != n {
			at, ours := r.at[n]
			if !ours {
				at = r.at[other]
			}
			r.Wrong(at, "has the %s of another network: %s and %s", key, other, n)
		}
		taken[key] = n
	}
	for _, n := range r.s.networks {
		claim(n.Code, "code or alias", string(n.Code))
		for _, a := range n.Aliases {
			claim(n.Code, "code or alias", a)
		}
		claim(n.Code, "name", strings.ToLower(n.Name))
		if n.ChainID != 0 {
			claim(n.Code, "chain id", fmt.Sprint(n.ChainID))
		}
		if n.KeyPath != "" {
			claim(n.Code, "coin type", n.KeyPath)
		}
	}
	if r.Err() != nil {
		return
	}
	for i := range r.s.currencies {
		c := &r.s.currencies[i]
		for j := range i {
			o := &r.s.currencies[j]
			if o.Network == c.Network && (o.Token == c.Token || o.Contract == c.Contract) {
				at, ours := r.coins[c.Code]
				if !ours {
					at = r.coins[o.Code]
				}
				r.Wrong(at, "has the symbol or the contract of another currency of %s: %s and %s", c.Network, o.Code, c.Code)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	var err error
	if r.s.registry, err = chain.NewRegistry(r.s.networks, r.s.currencies); err != nil {
		r.Wrong(yamlfile.Place{}, "%v", err)
		return
	}
	for _, n := range r.s.networks {
		if at, ours := r.at[n.Code]; ours {
			if err := r.client(n.Code); err != nil {
				r.Wrong(at, "makes no client: %v", err)
			}
		}
	}
}

// client makes a client as a host will, without a node.
func (r *reader) client(n chain.Network) (err error) {
	const nowhere = "http://127.0.0.1:1"
	if o, ok := r.s.evm[n]; ok {
		o.Registry, o.URL = r.s.registry, nowhere
		_, err = evm.New(o)
	} else if p, ok := r.s.utxo[n]; ok {
		_, err = utxo.New(utxo.Options{Network: n, Params: p, Registry: r.s.registry, URL: nowhere})
	}
	return err
}

// given are the pairs of one mapping with scalar values.
type given struct {
	r      *reader
	field  string
	at     yamlfile.Place
	values map[string]value
	order  []string
}

type value struct {
	text string
	node ast.Node
}

// read takes the scalars of a mapping; nested are the keys whose values are left to the caller.
func (r *reader) read(n ast.Node, field string, at yamlfile.Place, known []string, nested ...string) *given {
	g := &given{r: r, field: field, at: at, values: map[string]value{}}
	for _, p := range r.Pairs(n, field, known) {
		v := value{node: p.Value}
		if !slices.Contains(nested, p.Key) {
			var ok bool
			if v.text, ok = r.Text(p.Value, yamlfile.Under(field, p.Key)); !ok {
				continue
			}
		}
		g.values[p.Key] = v
		g.order = append(g.order, p.Key)
	}
	return g
}

// use applies a field, where it is given.
func (g *given) use(key string, set func(v string) error) {
	v, ok := g.values[key]
	if !ok {
		return
	}
	if err := set(v.text); err != nil {
		g.r.Bad(v.node, yamlfile.Under(g.field, key), "%v", err)
	}
}

// must notes which fields are missing.
func (g *given) must(keys ...string) {
	for _, key := range keys {
		if _, ok := g.values[key]; !ok {
			g.r.Wrong(g.at, "needs %s", key)
		}
	}
}

// refuse notes fields that have no place here.
func (g *given) refuse(why string, keys ...string) {
	for _, key := range keys {
		if v, ok := g.values[key]; ok {
			g.r.Bad(v.node, yamlfile.Under(g.field, key), "%s", why)
		}
	}
}

// overrides reports whether the file says that it overrides; known is whether there is
// something to override.
func (g *given) overrides(known bool, what string) bool {
	said := false
	g.use("override", func(v string) error { return flag(&said)(v) })
	switch {
	case known && !said:
		g.r.Wrong(g.at, "is a %s that is there already: say `override: true` to replace the fields that follow, or choose another code", what)
	case !known && said:
		g.r.Wrong(g.at, "overrides a %s that is not there", what)
	}
	return said
}

var errTwice = errors.New("is given in this file already")
