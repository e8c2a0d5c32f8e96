package stellartest

import (
	"fmt"
	"maps"
)

// Pay is a payment of the outside customer's.
type Pay struct {
	To      string // account
	Stroops int64
	// MuxedID makes it a payment to a muxed account.
	MuxedID *uint64
	// MemoType and Memo as Horizon shows them: "text", "id", "hash"; "" = none. Of
	// the first payment of a transaction.
	MemoType, Memo string
	// Kind is "payment" by default, else "path_payment_strict_send",
	// "path_payment_strict_receive", "account_merge", "invoke_host_function",
	// "create_claimable_balance", Tomorrow.
	Kind string
	// Asset is the code of another asset than lumens.
	Asset string
	// Fails makes the transaction fail.
	Fails bool
}

// Tomorrow is a type of operation that nobody knows yet, which uses the names of known
// fields otherwise.
const Tomorrow = "operation_of_tomorrow"

func coins(stroops int64) string { return fmt.Sprintf("%d.%07d", stroops/1e7, stroops%1e7) }

// Send puts one transaction into the pool and returns its hash.
func (n *Node) Send(all ...Pay) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counter++
	memo := object{"memo_type": "none"}
	if all[0].MemoType != "" {
		memo = object{"memo_type": all[0].MemoType, "memo": all[0].Memo}
	}
	t := &tx{hash: sum("outside", n.counter, n.ledgers[0].hash), source: n.Payer, fee: BaseFee, json: memo}
	t.run = func(s map[string]Account, at int64) ([]op, bool) {
		ok := true
		var ops []op
		for _, p := range all {
			ok = ok && !p.Fails
			ops = append(ops, n.operation(p, s, at))
		}
		return ops, ok
	}
	n.pool = append(n.pool, t)
	return t.hash
}

// operation moves what a payment says, and shows it as Horizon does.
func (n *Node) operation(p Pay, s map[string]Account, at int64) op {
	to, there := s[p.To]
	lumens := p.Asset == "" && p.Kind != "create_claimable_balance" && p.Kind != Tomorrow
	if lumens {
		if !there {
			to.Sequence = at << 32
		}
		to.Stroops += p.Stroops
		s[p.To] = to
	}
	kind := p.Kind
	if kind == "" {
		if kind = "payment"; !there && lumens {
			kind = "create_account"
		}
	}
	o := op{from: n.Payer, to: p.To}
	switch kind {
	case "create_account":
		o.json = object{"starting_balance": coins(p.Stroops), "funder": n.Payer, "account": p.To}
	case "account_merge":
		o.json = object{"account": n.Payer, "into": p.To}
		o.effects = []object{
			{"type": "account_debited", "account": n.Payer, "asset_type": "native", "amount": coins(p.Stroops)},
			{"type": "account_credited", "account": p.To, "asset_type": "native", "amount": coins(p.Stroops)},
			{"type": "account_removed", "account": n.Payer},
		}
	case "invoke_host_function":
		change := object{"asset_type": "native", "type": "transfer", "from": Address("contract"), "to": p.To, "amount": coins(p.Stroops)}
		o.json = object{"function": "HostFunctionTypeHostFunctionTypeInvokeContract", "asset_balance_changes": []any{change}}
	case Tomorrow:
		o.json = object{
			"asset_type": 7, "from": object{"account": n.Payer}, "to": []any{p.To}, "amount": 12.5, "account": true,
			"to_muxed_id": object{}, "asset_balance_changes": "none", "funder": nil,
		}
	case "create_claimable_balance":
		o.json = object{"asset": "native", "amount": coins(p.Stroops), "claimants": []any{object{"destination": p.To}}}
	default:
		o.json = object{"asset_type": "native", "from": n.Payer, "to": p.To, "amount": coins(p.Stroops)}
		if p.Asset != "" {
			o.json["asset_type"], o.json["asset_code"], o.json["asset_issuer"] = "credit_alphanum4", p.Asset, n.Payer
		}
		if kind != "payment" { // what it cost its sender is of no interest
			maps.Copy(o.json, object{"source_amount": "999999.0000000", "source_asset_type": "credit_alphanum4", "source_asset_code": "USD"})
		}
	}
	o.json["type"] = kind
	if p.MuxedID != nil {
		field := map[bool]string{true: "into_muxed_id", false: "to_muxed_id"}[kind == "account_merge"]
		o.json[field] = fmt.Sprint(*p.MuxedID)
	}
	return o
}
