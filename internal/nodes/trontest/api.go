package trontest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strconv"
)

// question is all that the API is asked with. Addresses are hex: the form that
// "visible" asks for is not modelled.
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

// text is an answer that is no JSON.
type text struct {
	status     int
	kind, body string
}

// failure is an answer to what threw an exception: HTTP 200, and the exception's class.
func failure(class, message string) object {
	return object{"Error": "class " + class + " : " + message}
}

// Exceptions that questions end in.
const (
	parseException    = "org.tron.core.services.http.JsonFormat$ParseException"
	jsonException     = "com.alibaba.fastjson.JSONException"
	nullPointer       = "java.lang.NullPointerException"
	illegalAccess     = "java.lang.IllegalAccessException"
	decoderException  = "org.bouncycastle.util.encoders.DecoderException"
	invalidProtobuf   = "com.google.protobuf.InvalidProtocolBufferException"
	invalidParameters = "java.security.InvalidParameterException"
)

// history is what a lite full node does not answer.
var history = []string{
	"/wallet/getblockbylimitnext", "/wallet/getblockbynum", "/wallet/gettransactioninfobyid", "/wallet/gettransactioninfobyblocknum",
}

// ServeHTTP answers as java-tron does.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := n.respond(r)
	if r.URL.Path == "/wallet/broadcasthex" && n.fault.Lose {
		n.fault.Lose = false
		panic(http.ErrAbortHandler)
	}
	t, plain := answer.(text)
	if !plain {
		body, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		if n.fault.Tamper != nil {
			body = n.fault.Tamper(r.URL.Path, body)
		}
		t = text{http.StatusOK, "application/json;charset=utf-8", string(body) + "\n"}
	}
	w.Header().Set("Content-Type", t.kind)
	w.WriteHeader(t.status)
	_, _ = io.WriteString(w, t.body)
}

func (n *Node) respond(r *http.Request) any {
	if n.fault.Lite && slices.Contains(history, r.URL.Path) {
		return text{http.StatusOK, "application/json;charset=utf-8", "this API is closed because this node is a lite fullnode"}
	}
	if n.fault.Busy {
		return failure(illegalAccess, "lack of computing resources")
	}
	q, wrong := read(r)
	answer := n.answer(r.URL.Path, q, wrong)
	if n.fault.Fail {
		return failure(nullPointer, "null")
	}
	return answer
}

// read reads a question, and says with which exception that ends. Some paths do not read
// what they are sent, or can do without.
func read(r *http.Request) (*question, object) {
	q := &question{}
	var kind *json.UnmarshalTypeError
	switch err := json.NewDecoder(r.Body).Decode(q); {
	case err == nil:
	case errors.Is(err, io.EOF):
		if r.URL.Path == "/wallet/getblock" || r.URL.Path == "/walletsolidity/getblock" {
			return q, nil
		}
		return q, failure(parseException, `1:1: Expected "{".`)
	case errors.As(err, &kind):
		return q, failure(parseException, "1:2: Expected "+kind.Type.String()+".")
	default:
		return q, failure(jsonException, "syntax error")
	}
	return q, nil
}

// unhex reads bytes as java-tron does.
func unhex(s string) ([]byte, bool) {
	if len(s) > 1 && s[:2] == "0x" {
		s = s[2:]
	}
	if len(s)%2 != 0 {
		s = "0" + s
	}
	b, err := hex.DecodeString(s)
	return b, err == nil
}

func (n *Node) visible() []*block { return n.blocks[:len(n.blocks)-n.fault.Lag] }

func (n *Node) answer(path string, q *question, wrong object) any {
	all := n.visible()
	head := all[len(all)-1]
	switch path {
	case "/wallet/getnowblock":
		return head.json(true)
	case "/wallet/getchainparameters":
		return n.parameters()
	case "/wallet/triggerconstantcontract":
		return n.trigger(q, wrong, head)
	}
	if !slices.Contains(paths, path) {
		return text{http.StatusNotFound, "text/html;charset=iso-8859-1", "<html><body><h2>HTTP ERROR 404 Not Found</h2></body></html>\n"}
	}
	if wrong != nil {
		return wrong
	}
	switch path {
	case "/wallet/getblock":
		return findBlock(all, q)
	case "/walletsolidity/getblock":
		return findBlock(all[:max(1, len(all)-Solidify)], q)
	case "/wallet/getblockbynum":
		if q.Num < 0 || q.Num > head.height {
			return object{}
		}
		return all[q.Num].json(true)
	case "/wallet/getblockbylimitnext":
		if q.EndNum <= 0 || q.EndNum <= q.StartNum || q.EndNum-q.StartNum > 100 {
			return object{}
		}
		out := []any{} // also where there is no block yet
		for h := max(0, q.StartNum); h < q.EndNum && h <= head.height; h++ {
			out = append(out, all[h].json(true))
		}
		return object{"block": out}
	case "/wallet/gettransactioninfobyblocknum":
		out := []any{}
		switch {
		case q.Num <= 0: // nor is there anything of the first block
			return object{}
		case q.Num <= head.height && !n.fault.Partial:
			for i := range all[q.Num].txs {
				out = append(out, n.info(all[q.Num], i))
			}
		}
		return out
	}
	return n.lookup(path, q, all)
}

// paths are those that read a question in the common way.
var paths = []string{
	"/wallet/getblock", "/walletsolidity/getblock", "/wallet/getblockbynum", "/wallet/getblockbylimitnext",
	"/wallet/gettransactioninfobyblocknum", "/wallet/gettransactioninfobyid", "/wallet/gettransactionfrompending",
	"/wallet/getaccount", "/wallet/getaccountresource", "/wallet/broadcasthex",
}

// findBlock finds a block by its height or id among those that the node may show.
func findBlock(all []*block, q *question) any {
	head := all[len(all)-1]
	if q.IDOrNum == "" {
		return head.json(q.Detail)
	}
	height, err := strconv.ParseInt(q.IDOrNum, 10, 64)
	switch {
	case err == nil && height < 0:
		return object{"Error": "num must be non-positive number."} // in these words
	case err == nil && height > head.height:
		return object{}
	case err == nil:
		return all[height].json(q.Detail)
	}
	id, ok := unhex(q.IDOrNum)
	if !ok || len(q.IDOrNum) != 64 {
		return object{"Error": "id must be legal block hash."}
	}
	for _, b := range all {
		if b.id == hex.EncodeToString(id) {
			return b.json(q.Detail)
		}
	}
	if height := new(big.Int).SetBytes(id[:8]); height.Cmp(big.NewInt(head.height)) > 0 {
		return object{"Error": "id must be legal block hash."}
	}
	return object{}
}

// lookup answers what names a transaction or an account by bytes.
func (n *Node) lookup(path string, q *question, all []*block) any {
	head := all[len(all)-1]
	value, ok := unhex(q.Value)
	address, good := unhex(q.Address)
	if path == "/wallet/getaccountresource" && !good {
		return failure(decoderException, "exception decoding Hex string: invalid characters encountered in Hex string")
	}
	if !ok || !good {
		return failure(parseException, "1:10: INVALID hex String")
	}
	id := hex.EncodeToString(value)
	switch path {
	case "/wallet/gettransactioninfobyid":
		for _, b := range all[1:] {
			for i := range b.txs {
				if b.txs[i].id == id && n.fault.Forget != id {
					return n.info(b, i)
				}
			}
		}
		return object{}
	case "/wallet/gettransactionfrompending":
		if len(value) != 32 {
			return failure("java.lang.IllegalArgumentException", "Given hash is not 32 bytes")
		}
		for _, t := range n.pool {
			if t.id == id {
				return t.json(t.run(n.pending()).ret)
			}
		}
		return object{}
	case "/wallet/getaccount":
		a, ok := toAccount(address)
		if _, there := head.after.sun[a]; !ok || !there {
			return object{}
		}
		return n.account(head.after, a)
	case "/wallet/getaccountresource":
		a, ok := toAccount(address)
		if _, there := head.after.sun[a]; !ok || !there {
			return object{}
		}
		return n.resource(head.after, a)
	}
	return n.broadcast(q.Transaction) // /wallet/broadcasthex
}

func (n *Node) broadcast(transaction string) any {
	b, ok := unhex(transaction)
	if !ok {
		return failure(decoderException, "exception decoding Hex string: invalid characters encountered in Hex string")
	}
	a := n.take(b)
	switch {
	case a.broken:
		return failure(invalidProtobuf, "Protocol message contained an invalid tag (zero).")
	case a.code == "":
		return object{"result": true, "code": "SUCCESS", "message": "", "txid": a.id, "transaction": "{}"}
	}
	return object{"result": false, "code": a.code, "message": a.message, "txid": a.id, "transaction": "{}"}
}

// trigger calls a contract without a transaction.
func (n *Node) trigger(q *question, wrong object, head *block) any {
	refused := func(code, message string) any {
		return object{"result": object{"code": code, "message": hex.EncodeToString([]byte(message))}}
	}
	owner, first := unhex(q.Owner)
	contract, second := unhex(q.Contract)
	data, third := unhex(q.Data)
	at, _ := toAccount(contract)
	switch {
	case wrong != nil:
		return refused("OTHER_ERROR", wrong["Error"].(string))
	case q.Owner == "":
		return refused("OTHER_ERROR", "class "+invalidParameters+" : owner_address isn't set.")
	case !first || !second || !third:
		return refused("OTHER_ERROR", "class "+parseException+" : 1:10: INVALID hex String")
	case head.after.tokens[at] == nil:
		return refused("CONTRACT_VALIDATE_ERROR", "Smart contract is not exist.")
	case n.fault.NoConstant:
		return refused("CONTRACT_VALIDATE_ERROR", "this node does not support constant")
	}
	value := join(field(1, owner), field(2, contract), field(4, data))
	call := &tx{raw: rawOf(31, value, 0, 0)}
	out := object{"result": object{"result": true}, "energy_used": 3000, "constant_result": []string{""}}
	done := func(energy int64, word string, logs ...logEntry) any {
		out["energy_used"], out["constant_result"], out["transaction"] = energy, []string{word}, call.result(object{}, false)
		if len(logs) > 0 {
			out["logs"] = logsJSON(logs)
		}
		return out
	}
	from, _ := toAccount(owner)
	switch method := fmt.Sprintf("%x", data[:min(4, len(data))]); {
	case method == "313ce567" && n.Decimals >= 0:
		return done(400, word([]byte{byte(n.Decimals)}))
	case method == "70a08231" && len(data) == 36:
		return done(935, word(head.after.token(at, Account(data[16:])).Bytes()))
	case method == "a9059cbb" && len(data) == 68:
		to, v := Account(data[16:36]), new(big.Int).SetBytes(data[36:])
		if head.after.token(at, from).Cmp(v) >= 0 {
			return done(head.after.energy(at, to), n.returns(at), transferLog(at, from, to, v))
		}
	}
	out["result"] = object{"result": true, "message": reverted}
	out["transaction"] = call.result(object{"ret": "FAILED"}, false)
	return out
}
