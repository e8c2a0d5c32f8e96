package networks

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
)

// The fields of a network. Fixed ones say whose money it is, and are of new networks alone.
var (
	networkFields = []string{"coin", "confirmations", "head_age", "name", "override", "source", "steps", "wait_final"}
	fixedFields   = []string{"aliases", "kind", "like"}

	evmFields      = []string{"data_fee_method", "fee_margin", "fees", "finality", "gas_margin", "max_fee", "max_tip", "min_tip", "oracle"}
	fixedEVMFields = []string{"chain_id", "coin_token"}

	utxoFields      = []string{"block_time", "dust_limit", "dust_rate", "fallback_rate", "increment", "max_rate", "min_rate", "most_inputs"}
	fixedUTXOFields = []string{"auxpow", "bech32", "checkpoint", "coin_type", "genesis", "maturity", "p2pkh", "p2sh"}
)

// The kinds of networks.
const (
	ethereum = "ethereum"
	bitcoin  = "bitcoin"
)

func (r *reader) networks(n ast.Node) {
	known := slices.Concat(networkFields, fixedFields, evmFields, fixedEVMFields, utxoFields, fixedUTXOFields)
	for _, p := range r.Pairs(n, "networks", nil) {
		field := yamlfile.Under("networks", p.Key)
		at := r.Place(p.At, field)
		g := r.read(p.Value, field, at, known, "coin", "aliases", "checkpoint", "p2sh")
		if !codeForm.MatchString(p.Key) {
			r.Wrong(at, "%s", codeWords)
			continue
		}
		code := chain.Network(p.Key)
		if _, twice := r.at[code]; twice {
			r.Wrong(at, "%v", errTwice)
			continue
		}
		r.at[code] = at
		known := r.s.info(code) != nil
		if said := g.overrides(known, "network"); said || known {
			r.override(g, code)
		} else {
			r.network(g, code)
		}
	}
}

// override replaces fields of a network that is there.
func (r *reader) override(g *given, n chain.Network) {
	info := r.s.info(n)
	if info == nil {
		return
	}
	g.refuse("cannot be overridden: it says whose money it is", slices.Concat(fixedFields, fixedEVMFields, fixedUTXOFields)...)
	o, isEVM := r.s.evm[n]
	p, isUTXO := r.s.utxo[n]
	r.of(g, n, isEVM, isUTXO)
	if isEVM {
		g.evm(&o)
		r.s.evm[n] = o
	}
	if isUTXO {
		g.utxo(info, &p)
		r.s.utxo[n] = p
	}
	g.info(info)
	for i := range r.s.currencies {
		if c := &r.s.currencies[i]; c.Network == n {
			g.depth(c)
		}
	}
	coin := r.s.currency(info.Gas)
	if v, ok := g.values["coin"]; ok && coin != nil {
		r.coin(v.node, yamlfile.Under(g.field, "coin"), coin, false)
	}
}

// of refuses fields of the other kind.
func (r *reader) of(g *given, n chain.Network, isEVM, isUTXO bool) {
	if !isEVM {
		g.refuse(fmt.Sprintf("is of networks of Ethereum's kind, and %s is none", n), slices.Concat(evmFields, fixedEVMFields)...)
	}
	if !isUTXO {
		g.refuse(fmt.Sprintf("is of networks of Bitcoin's kind, and %s is none", n), slices.Concat(utxoFields, fixedUTXOFields)...)
	}
}

// info reads what all networks have.
func (g *given) info(i *chain.NetworkInfo) {
	g.use("name", title(&i.Name))
	g.use("head_age", period(&i.HeadAge, 10*time.Second, 24*time.Hour))
}

// depth reads when a deposit of a currency is final.
func (g *given) depth(c *chain.Currency) {
	g.use("confirmations", whole(&c.Confirmations, 1, mostConfirmations))
	g.use("wait_final", flag(&c.WaitFinal))
	g.use("steps", steps(c))
	g.checkSteps(c)
}

// network reads a new network.
func (r *reader) network(g *given, n chain.Network) {
	kind, like := "", chain.Network("")
	g.use("kind", func(v string) error {
		if kind = v; v != ethereum && v != bitcoin {
			return errors.New("must be ethereum or bitcoin")
		}
		return nil
	})
	o, p := evm.Options{}, utxo.Params{}
	g.use("like", func(v string) error {
		like = chain.Network(v)
		var isEVM, isUTXO bool
		o, isEVM = r.s.evm[like]
		p, isUTXO = r.s.utxo[like]
		switch {
		case isEVM && kind != bitcoin:
			kind = ethereum
		case isUTXO && kind != ethereum:
			kind = bitcoin
		default:
			return errors.New("must be a network of the same kind that is shipped, or stands above this one")
		}
		return nil
	})
	if kind != ethereum && kind != bitcoin {
		g.must("kind")
		return
	}
	r.of(g, n, kind == ethereum, kind == bitcoin)
	g.must("name", "confirmations", "coin")
	info := chain.NetworkInfo{Code: n, Family: chain.AccountFamily, AddressType: "EVM", HeadAge: 10 * time.Minute}
	coin := chain.Currency{Network: n, Decimals: 18, Scale: 8}
	if kind == ethereum {
		o.Network, o.Source, o.CoinToken = n, "", ""
		if like == "" {
			g.must("fees", "finality", "max_fee")
		}
		g.must("chain_id")
		g.use("chain_id", whole(&info.ChainID, 1, 1<<31-1))
		g.use("coin_token", contract(&o.CoinToken, n))
		o.ChainID = info.ChainID
		g.evm(&o)
	} else {
		info.Family, info.AddressType, coin.Decimals = chain.UTXOFamily, string(n), 8
		info.MostInputs = 200
		if was := r.s.info(like); was != nil {
			info.MostInputs = was.MostInputs
		} else {
			g.must("maturity", "min_rate", "fallback_rate", "max_rate", "increment")
		}
		r.chainOf(g, &info, &p)
		g.utxo(&info, &p)
		r.s.utxo[n] = p
	}
	if v, ok := g.values["aliases"]; ok {
		info.Aliases = r.aliases(v.node, yamlfile.Under(g.field, "aliases"))
	}
	g.info(&info)
	if kind == ethereum {
		r.s.evm[n] = o
	}
	g.depth(&coin)
	if v, ok := g.values["coin"]; ok {
		r.coin(v.node, yamlfile.Under(g.field, "coin"), &coin, true)
	}
	info.Gas = coin.Code
	if other := r.s.currency(coin.Code); other != nil {
		r.Wrong(r.coins[coin.Code], "has the code of another currency, on %s", other.Network)
		return
	}
	r.s.networks = append(r.s.networks, info)
	r.s.currencies = append(r.s.currencies, coin)
}

func (r *reader) aliases(n ast.Node, field string) (out []string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Bad(n, field, "must be a list, such as [XDAI]")
		return nil
	}
	for _, one := range list.Values {
		v, ok := r.Text(one, field)
		if ok && !codeForm.MatchString(v) {
			r.Bad(one, field, "%s", codeWords)
		}
		out = append(out, v)
	}
	return out
}

// contract reads an address of Ethereum's kind.
func contract(to *string, n chain.Network) func(string) error {
	return func(v string) error {
		info, err := address.EVM(n).Parse(v)
		if err != nil || string(info.Canonical) != v {
			return errors.New("must be an address, 0x and 40 hex digits with their checksum")
		}
		*to = v
		return nil
	}
}

// evm reads what clients of Ethereum's kind may be told, and what goes together.
func (g *given) evm(o *evm.Options) {
	g.use("fees", func(v string) error {
		o.Legacy, o.L1Fee, o.OperatorFee, o.Linea, o.Oracle, o.DataFeeMethod = false, false, false, false, "", ""
		switch v {
		case "eip1559":
		case "legacy":
			o.Legacy = true
		case "op_stack":
			o.L1Fee, o.OperatorFee = true, true
		case "data_fee":
			if _, ok := g.values["data_fee_method"]; !ok {
				o.L1Fee = true
				g.must("oracle")
			}
		case "linea":
			o.Linea = true
		default:
			return errors.New("must be eip1559, legacy, op_stack, data_fee or linea")
		}
		return nil
	})
	g.use("oracle", contract(&o.Oracle, o.Network))
	g.use("data_fee_method", text(&o.DataFeeMethod, methodForm, "must be a method of the node, such as scroll_estimateL1DataFee"))
	if o.DataFeeMethod != "" && o.L1Fee {
		g.refuse("takes the place of the oracle: name one of the two, with fees: data_fee", "data_fee_method")
	}
	if !o.L1Fee {
		g.refuse("is of fees op_stack and data_fee", "oracle")
	}
	g.use("finality", func(v string) error {
		o.FinalityTags, o.FinalDepth = v == "tags", 0
		if v == "tags" || v == "none" {
			return nil
		}
		if whole(&o.FinalDepth, 1, mostConfirmations)(v) != nil {
			return errors.New("must be tags, none, or the number of blocks after which a block is final")
		}
		return nil
	})
	g.use("max_fee", gwei(&o.MaxFeePerGas))
	g.use("min_tip", gwei(&o.MinTip))
	g.use("max_tip", gwei(&o.MaxTip))
	g.use("gas_margin", whole(&o.GasMargin, 1, 300))
	g.use("fee_margin", whole(&o.FeeMargin, 1, 300))
	g.use("source", note(&o.Source))
	if o.MaxFeePerGas < 1 && g.r.Err() == nil {
		g.r.Wrong(g.at, "needs a max_fee above 0")
	}
	if o.MinTip > o.MaxTip && o.MaxTip > 0 || o.MinTip > o.MaxFeePerGas {
		g.r.Wrong(g.at, "has prices that contradict each other: min_tip ≤ max_tip, and min_tip ≤ max_fee")
	}
}

// chainOf reads by what a chain of Bitcoin's kind and its addresses are known.
func (r *reader) chainOf(g *given, info *chain.NetworkInfo, p *utxo.Params) {
	p.Name, p.Address, p.Genesis, p.Checkpoint, p.MWEB = "main", address.Script{}, "", utxo.Checkpoint{}, false
	g.must("genesis", "p2pkh", "p2sh", "coin_type", "block_time")
	g.use("genesis", hash(&p.Genesis))
	g.use("p2pkh", whole(&p.Address.PubKeyHash, 0, 255))
	g.use("bech32", text(&p.Address.HRP, hrpForm, "must be 1 to 20 small letters"))
	g.use("maturity", whole(&p.Maturity, 1, 10_000))
	g.use("auxpow", flag(&p.AuxPoW))
	g.use("name", title(&p.Address.Name))
	p.Legacy = p.Address.HRP == ""
	if v, ok := g.values["p2sh"]; ok {
		r.versions(v.node, yamlfile.Under(g.field, "p2sh"), &p.Address)
	}
	if v, ok := g.values["checkpoint"]; ok {
		field := yamlfile.Under(g.field, "checkpoint")
		c := r.read(v.node, field, r.Place(v.node, field), []string{"hash", "height"})
		c.must("hash", "height")
		c.use("height", whole(&p.Checkpoint.Height, 1, 1<<40))
		c.use("hash", hash(&p.Checkpoint.Hash))
	}
	g.use("coin_type", func(v string) error {
		var n int64
		if err := whole(&n, 0, 1<<31-1)(v); err != nil {
			return err
		}
		if slices.Contains(ownCoinTypes, n) {
			return errors.New("is that of another network: keys must not be shared, as signatures would be")
		}
		purpose := "84"
		if p.Legacy {
			purpose = "44"
		}
		info.KeyPath = "m/" + purpose + "'/" + strconv.FormatInt(n, 10) + "'/0'"
		return nil
	})
}

// ownCoinTypes are those of SLIP-44 that the shipped networks have, and that of all test networks.
var ownCoinTypes = []int64{0, 1, 2, 3, 60, 144, 148, 195, 501, 1815}

// versions reads the version bytes of P2SH, the one that is written first.
func (r *reader) versions(n ast.Node, field string, a *address.Script) {
	list := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		list = s.Values
	}
	for _, one := range list {
		var b uint8
		v, ok := r.Text(one, field)
		if !ok {
			continue
		}
		if err := whole(&b, 0, 255)(v); err != nil {
			r.Bad(one, field, "%v", err)
		}
		if b == a.PubKeyHash {
			r.Bad(one, field, "is the version of p2pkh")
		}
		a.ScriptHash = append(a.ScriptHash, b)
	}
	if len(a.ScriptHash) == 0 || len(a.ScriptHash) > 4 {
		r.Bad(n, field, "must be 1 to 4 versions")
	}
}

// utxo reads what clients of Bitcoin's kind may be told.
func (g *given) utxo(info *chain.NetworkInfo, p *utxo.Params) {
	const mostRate = 1_000_000_000
	g.use("min_rate", whole(&p.MinRate, 1, mostRate))
	g.use("fallback_rate", whole(&p.FallbackRate, 1, mostRate))
	g.use("max_rate", whole(&p.MaxRate, 1, mostRate))
	g.use("increment", whole(&p.Increment, 1, mostRate))
	g.use("dust_rate", func(v string) error { p.Dust = 0; return whole(&p.DustRate, 1, mostRate)(v) })
	g.use("dust_limit", func(v string) error { p.DustRate = 0; return whole(&p.Dust, 1, mostRate)(v) })
	if p.Dust > 0 == (p.DustRate > 0) {
		g.r.Wrong(g.at, "needs one of dust_rate and dust_limit")
	}
	if p.MinRate > p.FallbackRate || p.FallbackRate > p.MaxRate {
		g.r.Wrong(g.at, "has rates that contradict each other: min_rate ≤ fallback_rate ≤ max_rate")
	}
	g.use("most_inputs", whole(&info.MostInputs, 2, 10_000))
	g.use("source", note(new(string))) // it is for readers of the file
	var block time.Duration
	if g.use("block_time", period(&block, time.Second, time.Hour)); block > 0 {
		info.HeadAge = max(10*time.Minute, 18*block) // as chain.Networks has it
	}
}
