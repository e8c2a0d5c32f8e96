package networks

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
)

// limitFields are those that a coin and a token have both, and that may be overridden.
var limitFields = []string{"confirmations", "dust", "max", "min", "min_withdrawal", "name", "popular", "source", "stable", "steps", "wait_final"}

const mostConfirmations = 100_000

// limits reads limitFields. Of a currency that is new some are needed.
func (g *given) limits(c *chain.Currency, fresh bool) {
	g.use("name", title(&c.Name))
	g.use("source", note(&c.Source))
	g.use("stable", flag(&c.Stable))
	g.use("popular", flag(&c.Popular))
	g.use("wait_final", flag(&c.WaitFinal))
	g.use("confirmations", whole(&c.Confirmations, 1, mostConfirmations))
	g.use("steps", steps(c))
	g.checkSteps(c)
	g.use("min", amount(&c.Min, c.Scale))
	g.use("max", amount(&c.Max, c.Scale))
	g.use("dust", amount(&c.Dust, c.Scale))
	g.use("min_withdrawal", amount(&c.MinWithdrawal, c.Scale))
	if fresh {
		g.must("name", "min", "max", "dust")
		if c.MinWithdrawal.IsZero() {
			c.MinWithdrawal = c.Min
		}
	}
	if g.r.Err() != nil {
		return
	}
	if c.Min.LessThan(c.Dust) || c.Max.LessThan(c.Min) || c.MinWithdrawal.GreaterThan(c.Max) {
		g.r.Wrong(g.at, "has limits that contradict each other: dust ≤ min ≤ max, and min_withdrawal ≤ max")
	}
	if most := c.Most(); c.Max.GreaterThan(most) {
		g.r.Wrong(g.at, "has a max of more than one credit may be: %s", most)
	}
}

// coin reads the network's own coin, which is new or the one that is there.
func (r *reader) coin(n ast.Node, field string, c *chain.Currency, fresh bool) {
	at := r.Place(n, field)
	g := r.read(n, field, at, append([]string{"code", "token"}, limitFields...))
	if fresh {
		g.must("code")
		g.use("code", text(&c.Code, codeForm, codeWords))
		c.Token = c.Code
		g.use("token", text(&c.Token, symbolForm, "must be 1 to 12 capital letters and digits"))
	} else {
		g.refuse("cannot be overridden: it says what the money is", "code", "token")
	}
	g.limits(c, fresh)
	r.coins[c.Code] = at
}

// fixedTokenFields say what the money is.
var fixedTokenFields = []string{"contract", "decimals", "network", "scale", "token"}

func (r *reader) tokens(n ast.Node) {
	for _, p := range r.Pairs(n, "tokens", nil) {
		field := yamlfile.Under("tokens", p.Key)
		at := r.Place(p.At, field)
		g := r.read(p.Value, field, at, append(append([]string{"override"}, fixedTokenFields...), limitFields...))
		c := chain.Currency{Code: p.Key}
		if err := text(&c.Code, codeForm, codeWords)(p.Key); err != nil {
			r.Wrong(at, "%v", err)
			continue
		}
		known := r.s.currency(p.Key)
		if _, twice := r.coins[p.Key]; twice {
			r.Wrong(at, "%v", errTwice)
			continue
		}
		r.coins[p.Key] = at
		if g.overrides(known != nil, "currency"); known != nil {
			g.refuse("cannot be overridden: it says what the money is", fixedTokenFields...)
			g.limits(known, false)
			continue
		}
		g.must("network", "token", "contract", "decimals")
		g.token(&c)
		g.limits(&c, true)
		r.s.currencies = append(r.s.currencies, c)
	}
}

// token reads what the money is.
func (g *given) token(c *chain.Currency) {
	g.use("token", text(&c.Token, symbolForm, "must be 1 to 12 capital letters and digits"))
	g.use("decimals", whole(&c.Decimals, 0, 36))
	c.Scale = min(8, c.Decimals)
	g.use("scale", whole(&c.Scale, 0, int64(min(8, c.Decimals))))
	g.use("network", func(v string) error {
		info := g.r.s.info(chain.Network(v))
		if info == nil {
			return errors.New("is none of the networks of this file or of those that are shipped")
		}
		c.Network = info.Code
		coin := g.r.s.currency(info.Gas)
		if coin != nil {
			c.Confirmations, c.WaitFinal, c.Steps = coin.Confirmations, coin.WaitFinal, coin.Steps
		}
		return nil
	})
	if c.Network == "" {
		return
	}
	g.use("contract", func(v string) error {
		switch g.r.s.info(c.Network).AddressType {
		case "EVM", "TRX", "SOL":
		default:
			return fmt.Errorf("is for tokens, and on %s there are none", c.Network)
		}
		format, _ := g.r.s.Format(c.Network)
		info, err := format.Parse(v)
		if err != nil {
			var wrong *chain.AddressError
			if errors.As(err, &wrong) {
				return fmt.Errorf("is no address of %s: %s", c.Network, wrong.Reason)
			}
			return err
		}
		if string(info.Canonical) != v {
			return errors.New("must be written with its checksum, which finds a letter that is mistyped")
		}
		c.Contract = v
		return nil
	})
}
