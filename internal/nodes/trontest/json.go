package trontest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// java-tron writes protobuf messages as JSON: what is zero or empty is left out, an
// enumeration is its name, bytes are hex, and all numbers are numbers.

// put adds a field where it is not zero.
func (o object) put(name string, v any) {
	switch x := v.(type) {
	case int64:
		if x == 0 {
			return
		}
	case []byte:
		if len(x) == 0 {
			return
		}
		v = hex.EncodeToString(x)
	case string:
		if x == "" {
			return
		}
	}
	o[name] = v
}

// reverted is "REVERT opcode executed".
const reverted = "524556455254206f70636f6465206578656375746564"

func (b *block) json(detail bool) any {
	ids := ""
	for _, t := range b.txs {
		ids += t.id
	}
	root := word(nil)
	if ids != "" {
		root = fmt.Sprintf("%x", sha256.Sum256([]byte(ids)))
	}
	header := object{"txTrieRoot": root, "witness_address": "41" + word(nil)[:40], "parentHash": b.parent, "version": 31}
	out := object{"blockID": b.id, "block_header": object{"raw_data": header, "witness_signature": word(nil) + word(nil) + "00"}}
	if b.height == 0 { // nobody signed it, and the text in it is no address
		header["witness_address"] = hex.EncodeToString([]byte("the first block has no witness, it has a sentence"))
		delete(header, "version")
		delete(out["block_header"].(object), "witness_signature")
	}
	header.put("number", b.height)
	header.put("timestamp", b.millis)
	if detail && len(b.txs) > 0 {
		var list []any
		for _, t := range b.txs {
			if b.height == 0 {
				list = append(list, t.form())
				continue
			}
			list = append(list, t.json(t.ret))
		}
		out["transactions"] = list
	}
	return out
}

// json is a transaction that was executed, in a block or before one.
func (t *tx) json(ret string) object {
	if ret == "" {
		ret = "SUCCESS"
	}
	return t.result(object{"contractRet": ret}, true)
}

// result is a transaction with its result, signed or not. The one that is not is only
// thought up, for a constant call.
func (t *tx) result(ret object, signed bool) object {
	out := t.form()
	out["ret"] = []any{ret}
	if signed {
		out["signature"] = []string{hex.EncodeToString(t.signature)}
		if len(t.signature) == 0 { // somebody outside, whose key nobody has
			out["signature"] = []string{word([]byte(t.id)[:32]) + word(nil) + "00"}
		}
	} else {
		out["visible"] = false
	}
	return out
}

// form is a transaction's content. What a contract does is shown only where its type and
// bytes are understood.
func (t *tx) form() object {
	sum := sha256.Sum256(t.raw)
	out := object{"txID": hex.EncodeToString(sum[:]), "raw_data_hex": hex.EncodeToString(t.raw)}
	m, err := parse(t.raw)
	list := []any{}
	if c, wrong := parse(m.bytes[11]); err == nil && wrong == nil && len(m.bytes[11]) > 0 {
		parameter := object{}
		parameter.put("type_url", string(c.path(2).bytes[1]))
		if value := contractJSON(c.number[1], c.path(2, 2)); value != nil {
			parameter["value"] = value
		}
		one := object{"parameter": parameter, "type": contractType(c.number[1])}
		one.put("Permission_id", int64(c.number[5]))
		list = append(list, one)
	}
	raw := object{"contract": list}
	for name, number := range map[string]int{"ref_block_bytes": 1, "ref_block_hash": 4, "data": 10} {
		raw.put(name, m.bytes[number])
	}
	for name, number := range map[string]int{"ref_block_num": 3, "expiration": 8, "timestamp": 14, "fee_limit": 18} {
		raw.put(name, int64(m.number[number]))
	}
	out["raw_data"] = raw
	return out
}

func contractType(kind uint64) string {
	switch kind {
	case 1:
		return "TransferContract"
	case 2:
		return "TransferAssetContract"
	case 31:
		return "TriggerSmartContract"
	}
	return "UNRECOGNIZED"
}

func contractJSON(kind uint64, c message) object {
	out := object{}
	switch kind {
	case 1:
		out.put("owner_address", c.bytes[1])
		out.put("to_address", c.bytes[2])
		out.put("amount", int64(c.number[3]))
	case 2:
		out.put("asset_name", c.bytes[1])
		out.put("owner_address", c.bytes[2])
		out.put("to_address", c.bytes[3])
		out.put("amount", int64(c.number[4]))
	case 31:
		out.put("owner_address", c.bytes[1])
		out.put("contract_address", c.bytes[2])
		out.put("call_value", int64(c.number[3]))
		out.put("data", c.bytes[4])
	default:
		return nil
	}
	return out
}

// info is what became of a transaction of the block.
func (n *Node) info(b *block, i int) any {
	t := &b.txs[i]
	use := object{}
	use.put("net_usage", t.net)
	use.put("net_fee", t.netFee)
	if t.net == 0 && t.netFee == 0 { // somebody outside has staked for it
		use["net_usage"] = 268
	}
	use.put("result", t.ret)
	use.put("energy_usage_total", t.energy)
	out := object{"id": t.id, "blockNumber": b.height, "blockTimeStamp": b.millis, "contractResult": []string{t.returned}, "receipt": use}
	out.put("fee", t.fee)
	if t.ret != "" { // what is not burned for energy comes from what the sender staked
		kind, staked := "energy_fee", t.energy*EnergyPrice
		if t.fee == t.netFee {
			kind, staked = "energy_usage", t.energy
		}
		use.put(kind, staked)
	}
	if m, err := parse(t.raw); err == nil && m.path(11).number[1] == 31 {
		out.put("contract_address", m.path(11, 2, 2).bytes[2])
	}
	if t.failed {
		out["result"], out["resMessage"] = "FAILED", reverted
		if t.ret == "OUT_OF_ENERGY" {
			out["resMessage"] = hex.EncodeToString([]byte("Not enough energy for 'SSTORE' operation executing"))
		}
	}
	if len(t.logs) > 0 {
		out["log"] = logsJSON(t.logs)
	}
	for k, c := range t.inner {
		if n.fault.NoInternal {
			break
		}
		list, _ := out["internal_transactions"].([]any)
		own := sha256.Sum256([]byte(t.id + strconv.Itoa(k))) // not that of the transaction
		value := object{}
		value.put("callValue", c.sun)
		x := object{
			"hash": hex.EncodeToString(own[:]), "caller_address": hex.EncodeToString(c.from.full()),
			"transferTo_address": hex.EncodeToString(c.to.full()), "note": "63616c6c", "callValueInfo": []any{value},
		}
		if c.rejected {
			x["rejected"] = true
		}
		out["internal_transactions"] = append(list, x)
	}
	return out
}

// logsJSON writes logs: the address in one lacks the first byte.
func logsJSON(logs []logEntry) (out []any) {
	for _, l := range logs {
		x := object{"address": hex.EncodeToString(l.contract[:]), "topics": l.topics}
		x.put("data", l.data)
		out = append(out, x)
	}
	return out
}

// account is what the node stores of an account, as far as something reads it or could
// be taken for something else.
func (n *Node) account(s *state, a Account) object {
	address := hex.EncodeToString(a.full())
	keys := []any{object{"address": address, "weight": 1}}
	out := object{
		"address": address, "create_time": int64(start), "net_window_size": blocksOfDay, "net_window_optimized": true,
		"account_resource": object{"energy_window_size": blocksOfDay, "energy_window_optimized": true},
		"owner_permission": object{"permission_name": "owner", "threshold": 1, "keys": keys},
		"active_permission": []any{object{
			"type": "Active", "id": 2, "permission_name": "active", "threshold": 1, "keys": keys,
			"operations": "7fff1fc0033ec307" + word(nil)[:48],
		}},
		"frozenV2": []any{object{}, object{"type": "ENERGY"}, object{"type": "TRON_POWER"}}, "asset_optimized": true,
	}
	out.put("balance", s.sun[a])
	out.put("free_net_usage", n.netUsed(s, a))
	if s.tokens[a] != nil {
		out["type"] = "Contract"
		delete(out, "owner_permission")
		delete(out, "active_permission")
	}
	return out
}

// netUsed is the free bandwidth that an account has used and not yet got back.
func (n *Node) netUsed(s *state, a Account) int64 {
	u := s.net[a]
	return u.bytes * max(0, blocksOfDay-(s.height-u.height)) / blocksOfDay
}

func (n *Node) resource(s *state, a Account) object {
	out := object{
		"TotalNetLimit": int64(43_200_000_000), "TotalNetWeight": int64(26_000_000_000), "tronPowerLimit": 1,
		"TotalEnergyLimit": int64(180_000_000_000), "TotalEnergyWeight": int64(19_000_000_000),
	}
	out.put("freeNetUsed", n.netUsed(s, a))
	out.put("freeNetLimit", n.freeNet)
	return out
}

// parameters are some of the chain's, in the node's order. One that is 0 has no value.
func (n *Node) parameters() object {
	list := []any{}
	add := func(key string, value int64) {
		x := object{"key": key}
		x.put("value", value)
		list = append(list, x)
	}
	add("getMaintenanceTimeInterval", 21_600_000)
	add("getCreateAccountFee", NewBytes)
	add("getTransactionFee", BytePrice)
	add("getCreateNewAccountFeeInSystemContract", Activation)
	add("getCreateNewAccountBandwidthRate", 1)
	add("getEnergyFee", EnergyPrice)
	add("getAllowUpdateAccountName", 0)
	add("getMultiSignFee", 1_000_000)
	add("getForbidTransferToContract", 1)
	add("getMaxFeeLimit", MaxFeeLimit)
	add("getFreeNetLimit", n.freeNet)
	add("getTotalNetLimit", 43_200_000_000)
	add("getMemoFee", 1_000_000)
	return object{"chainParameter": list}
}
