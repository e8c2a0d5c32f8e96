package stellartest

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain/address"
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
	memo["source_account_sequence"] = fmt.Sprint(7 + n.counter)
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
	moved := func(what, who string) object {
		return object{"type": what, "account": who, "asset_type": "native", "amount": coins(p.Stroops)}
	}
	switch kind {
	case "create_account":
		o.json = object{"starting_balance": coins(p.Stroops), "funder": n.Payer, "account": p.To}
		o.effects = []object{
			{"type": "account_created", "account": p.To, "starting_balance": coins(p.Stroops)},
			moved("account_debited", n.Payer),
			{"type": "signer_created", "account": p.To, "public_key": p.To, "key": p.To, "weight": 1},
		}
	case "account_merge":
		o.json = object{"account": n.Payer, "into": p.To}
		o.effects = []object{moved("account_debited", n.Payer), moved("account_credited", p.To), {"type": "account_removed", "account": n.Payer}}
	case "invoke_host_function":
		change := object{"asset_type": "native", "type": "transfer", "from": contract("contract"), "to": p.To, "amount": coins(p.Stroops)}
		if p.MuxedID != nil {
			change["destination_muxed_id"] = fmt.Sprint(*p.MuxedID)
		}
		o.json = object{
			"function": "HostFunctionTypeHostFunctionTypeInvokeContract", "parameters": []any{object{"value": "AAAADwAAAAh0cmFuc2Zlcg==", "type": "Sym"}},
			"address": "", "salt": "", "asset_balance_changes": []any{change},
		}
		debited := moved("contract_debited", n.Payer)
		debited["contract"] = change["from"]
		o.effects = []object{debited, moved("account_credited", p.To)}
	case Tomorrow:
		o.json = object{
			"asset_type": 7, "from": object{"account": n.Payer}, "to": []any{p.To}, "amount": 12.5, "account": true,
			"to_muxed_id": object{}, "asset_balance_changes": "none", "funder": nil,
		}
	case "create_claimable_balance":
		claimant := object{"destination": p.To, "predicate": object{"unconditional": true}}
		o.json = object{"asset": "native", "amount": coins(p.Stroops), "claimants": []any{claimant}}
	default:
		o.json = object{"asset_type": "native", "from": n.Payer, "to": p.To, "amount": coins(p.Stroops)}
		if p.Asset != "" {
			o.json["asset_type"], o.json["asset_code"], o.json["asset_issuer"] = "credit_alphanum4", p.Asset, n.Payer
			if len(p.Asset) > 4 {
				o.json["asset_type"] = "credit_alphanum12"
			}
		} else {
			o.effects = []object{moved("account_credited", p.To), moved("account_debited", n.Payer)}
		}
		if kind != "payment" { // what it cost its sender is of no interest
			maps.Copy(o.json, object{"source_amount": "999999.0000000", "source_asset_type": "credit_alphanum4", "source_asset_code": "USD", "source_asset_issuer": n.Payer, "path": []any{}})
			o.json[map[bool]string{true: "destination_min", false: "source_max"}[kind == "path_payment_strict_send"]] = "999999.0000000"
		}
	}
	o.json["type"] = kind
	if p.MuxedID != nil && (kind == "payment" || kind == "account_merge" || strings.HasPrefix(kind, "path_payment")) {
		field := map[bool]string{true: "into", false: "to"}[kind == "account_merge"]
		key, _ := address.StellarKey(chainAddress(p.To))
		o.json[field+"_muxed"], o.json[field+"_muxed_id"] = address.StellarMuxed(key, *p.MuxedID), fmt.Sprint(*p.MuxedID)
		for _, e := range o.effects {
			if e["type"] == "account_credited" {
				e["account_muxed"], e["account_muxed_id"] = o.json[field+"_muxed"], o.json[field+"_muxed_id"]
			}
		}
	}
	return o
}

// contract is the address of a contract: another letter before the bytes than an
// account's.
func contract(name string) string {
	sum := sha256.Sum256([]byte("stellartest/" + name))
	raw := append([]byte{2 << 3}, sum[:]...)
	var crc uint16 // CRC-16/XMODEM, its low byte first
	for _, b := range raw {
		crc ^= uint16(b) << 8
		for range 8 {
			high := crc & 0x8000
			if crc <<= 1; high != 0 {
				crc ^= 0x1021
			}
		}
	}
	return base32.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint16(raw, crc))
}
