package trontest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
)

// question is all that the API is asked with.
type question struct {
	IDOrNum     string `json:"id_or_num"`
	Detail      bool   `json:"detail"`
	Num         int64  `json:"num"`
	StartNum    int64  `json:"startNum"`
	EndNum      int64  `json:"endNum"`
	Value       string `json:"value"`
	Address     string `json:"address"`
	Owner       string `json:"owner_address"`
	Contract    string `json:"contract_address"`
	Data        string `json:"data"`
	Transaction string `json:"transaction"`
}

type object map[string]any

// ServeHTTP answers as java-tron does.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var q question
	_ = json.NewDecoder(r.Body).Decode(&q)
	answer := n.answer(r.URL.Path, &q)
	if n.fault.Fail {
		answer = object{"Error": "class java.lang.NullPointerException : null"}
	}
	if r.URL.Path == "/wallet/broadcasthex" && n.fault.Lose {
		n.fault.Lose = false
		panic(http.ErrAbortHandler)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	if n.fault.Tamper != nil {
		body = n.fault.Tamper(r.URL.Path, body)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (n *Node) visible() []*block { return n.blocks[:len(n.blocks)-n.fault.Lag] }

func (n *Node) answer(path string, q *question) any {
	all := n.visible()
	head := all[len(all)-1]
	at := func(height int64) any {
		if height < 0 || height > head.height {
			return object{}
		}
		return all[height].json(true)
	}
	switch path {
	case "/wallet/getnowblock":
		return head.json(true)
	case "/wallet/getblockbynum":
		return at(q.Num)
	case "/wallet/getblock":
		height, err := strconv.ParseInt(q.IDOrNum, 10, 64)
		if q.IDOrNum == "" {
			height, err = head.height, nil
		}
		if err != nil || height > head.height {
			return object{}
		}
		return all[height].json(q.Detail)
	case "/walletsolidity/getblock":
		return all[head.height-Solidify].json(q.Detail)
	case "/wallet/getblockbylimitnext":
		if q.EndNum-q.StartNum > 100 || q.EndNum <= q.StartNum {
			return object{}
		}
		var out []any
		for h := q.StartNum; h < q.EndNum && h <= head.height; h++ {
			out = append(out, all[h].json(true))
		}
		if out == nil {
			return object{}
		}
		return object{"block": out}
	case "/wallet/gettransactioninfobyblocknum":
		out := []any{}
		if q.Num > 0 && q.Num <= head.height && !n.fault.Partial {
			for i := range all[q.Num].txs {
				out = append(out, all[q.Num].info(i))
			}
		}
		return out
	case "/wallet/gettransactioninfobyid":
		for _, b := range all {
			for i := range b.txs {
				if b.txs[i].id == q.Value && n.fault.Forget != q.Value {
					return b.info(i)
				}
			}
		}
		return object{}
	case "/wallet/gettransactionfrompending":
		for _, t := range n.pool {
			if t.id == q.Value {
				return object{"txID": t.id, "raw_data_hex": hex.EncodeToString(t.raw)}
			}
		}
		return object{}
	}
	return n.accounts(path, q, head)
}

func (n *Node) accounts(path string, q *question, head *block) any {
	switch path {
	case "/wallet/getaccount":
		a, ok := fromHex(q.Address)
		sun, there := head.after.sun[a]
		switch {
		case !ok:
			return object{"Error": "invalid address"}
		case !there:
			return object{}
		case sun == 0: // protobuf leaves out what is zero
			return object{"address": q.Address, "create_time": start}
		}
		return object{"address": q.Address, "balance": sun, "create_time": start}
	case "/wallet/getaccountresource":
		if n.freeNet == 0 {
			return object{"TotalNetLimit": 43_200_000_000}
		}
		return object{"freeNetLimit": n.freeNet, "TotalNetLimit": 43_200_000_000}
	case "/wallet/getchainparameters":
		out := []any{}
		for k, v := range map[string]int64{
			"getTransactionFee": BytePrice, "getEnergyFee": EnergyPrice, "getMaxFeeLimit": MaxFeeLimit,
			"getCreateAccountFee": NewBytes, "getCreateNewAccountFeeInSystemContract": Activation, "getMemoFee": 1_000_000,
		} {
			out = append(out, object{"key": k, "value": v})
		}
		return object{"chainParameter": append(out, object{"key": "getAllowUpdateAccountName"})}
	case "/wallet/triggerconstantcontract":
		return n.constant(q, head)
	case "/wallet/broadcasthex":
		b, err := hex.DecodeString(q.Transaction)
		if err != nil {
			return object{"Error": "class java.lang.IllegalArgumentException : bad hex"}
		}
		a := n.take(b)
		if a.code == "" {
			return object{"result": true, "code": "SUCCESS", "message": "", "txid": a.id, "transaction": "{}"}
		}
		return object{"result": false, "code": a.code, "message": a.message, "txid": a.id, "transaction": "{}"}
	}
	return object{"Error": "no such endpoint " + path}
}

// constant calls a token without a transaction.
func (n *Node) constant(q *question, head *block) any {
	owner, _ := fromHex(q.Owner)
	contract, _ := fromHex(q.Contract)
	data, err := hex.DecodeString(q.Data)
	token := head.after.tokens[contract]
	if err != nil || token == nil || len(data) < 4 {
		return object{"result": object{"code": "CONTRACT_VALIDATE_ERROR", "message": hex.EncodeToString([]byte("Smart contract is not exist."))}}
	}
	done := func(energy int64, word string) any {
		return object{"result": object{"result": true}, "energy_used": energy, "constant_result": []string{word}, "transaction": object{"ret": []any{object{}}}}
	}
	switch method := fmt.Sprintf("%x", data[:4]); {
	case method == "313ce567" && n.Decimals >= 0:
		return done(400, word([]byte{byte(n.Decimals)}))
	case method == "70a08231" && len(data) == 36:
		return done(935, word(head.after.token(contract, Account(data[16:])).Bytes()))
	case method == "a9059cbb" && len(data) == 68:
		to := Account(data[16:36])
		if head.after.token(contract, owner).Cmp(new(big.Int).SetBytes(data[36:])) >= 0 {
			return done(head.after.energy(contract, to), word([]byte{1}))
		}
	}
	return object{
		"result": object{"result": true, "message": "524556455254206f70636f6465206578656375746564"}, "energy_used": 3000,
		"constant_result": []string{""}, "transaction": object{"ret": []any{object{"ret": "FAILED"}}},
	}
}

func fromHex(s string) (Account, bool) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return Account{}, false
	}
	return toAccount(b)
}

func (b *block) json(detail bool) any {
	header := object{"txTrieRoot": word(nil), "witness_address": "41" + word(nil)[:40], "parentHash": b.parent, "version": 31}
	if b.height > 0 { // protobuf leaves out what is zero
		header["number"], header["timestamp"] = b.height, b.millis
	}
	out := object{"blockID": b.id, "block_header": object{"raw_data": header, "witness_signature": "00"}}
	if detail && len(b.txs) > 0 {
		var list []any
		for _, t := range b.txs {
			ret := t.ret
			if ret == "" {
				ret = "SUCCESS"
			}
			list = append(list, object{
				"ret": []any{object{"contractRet": ret}}, "signature": []string{hex.EncodeToString(t.signature)},
				"txID": t.id, "raw_data": object{"expiration": t.expiration}, "raw_data_hex": hex.EncodeToString(t.raw),
			})
		}
		out["transactions"] = list
	}
	return out
}

func (b *block) info(i int) any {
	t := &b.txs[i]
	use := object{"net_usage": 268}
	if t.ret != "" {
		use["result"], use["energy_usage_total"] = t.ret, t.energy
	}
	out := object{"id": t.id, "blockNumber": b.height, "blockTimeStamp": b.millis, "contractResult": []string{""}, "receipt": use}
	if t.fee > 0 {
		out["fee"] = t.fee
	}
	if t.failed {
		out["result"], out["resMessage"] = "FAILED", "524556455254206f70636f6465206578656375746564"
	}
	for _, l := range t.logs {
		list, _ := out["log"].([]any)
		out["log"] = append(list, object{"address": hex.EncodeToString(l.contract[:]), "topics": l.topics, "data": l.data})
	}
	for _, c := range t.inner {
		list, _ := out["internal_transactions"].([]any)
		x := object{
			"hash": t.id, "caller_address": hex.EncodeToString(c.from.full()), "transferTo_address": hex.EncodeToString(c.to.full()),
			"note": "63616c6c", "callValueInfo": []any{object{"callValue": c.sun}},
		}
		if c.rejected {
			x["rejected"] = true
		}
		out["internal_transactions"] = append(list, x)
	}
	return out
}
