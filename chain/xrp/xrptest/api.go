package xrptest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type object map[string]any

func lower(s string) string { return strings.ToLower(s) }

// question is all that the API is asked with.
type question struct {
	Method string `json:"method"`
	Params []struct {
		Account      string          `json:"account"`
		LedgerIndex  json.RawMessage `json:"ledger_index"`
		Transactions bool            `json:"transactions"`
		Expand       bool            `json:"expand"`
		Transaction  string          `json:"transaction"`
		Blob         string          `json:"tx_blob"`
		Min          int64           `json:"ledger_index_min"`
		Max          int64           `json:"ledger_index_max"`
		Forward      bool            `json:"forward"`
		Limit        int             `json:"limit"`
		Marker       *struct {
			Skip int `json:"skip"`
		} `json:"marker"`
	} `json:"params"`
}

// ServeHTTP answers as rippled does, or Clio.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Params) != 1 {
		http.Error(w, "Unable to parse request", http.StatusBadRequest)
		return
	}
	result := n.answer(&q)
	if n.fault.Fail {
		result = failed("noNetwork", 17, "Not synced to the network.")
	}
	if _, bad := result["error"]; !bad {
		result["status"] = "success"
	}
	if q.Method == "submit" && n.fault.Lose {
		n.fault.Lose = false
		panic(http.ErrAbortHandler)
	}
	body, err := json.Marshal(object{"result": result})
	if err != nil {
		panic(err)
	}
	if n.fault.Tamper != nil {
		body = n.fault.Tamper(q.Method, body)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func failed(name string, code int, message string) object {
	return object{"error": name, "error_code": code, "error_message": message, "request": object{}, "status": "error"}
}

func (n *Node) visible() []*ledger { return n.ledgers[:len(n.ledgers)-n.fault.Lag] }

func (n *Node) at(index int64) *ledger {
	all := n.visible()
	if i := index - all[0].index; i >= 0 && i < int64(len(all)) && index >= n.fault.Earliest {
		return all[i]
	}
	return nil
}

func (n *Node) answer(q *question) object {
	p := q.Params[0]
	all := n.visible()
	head := all[len(all)-1]
	switch q.Method {
	case "server_state":
		return object{"state": object{
			"complete_ledgers": fmt.Sprintf("%d-%d", all[0].index, head.index), "load_base": 256, "load_factor": 256, "network_id": n.id,
			"server_state": "full", "validated_ledger": object{
				"base_fee": BaseFee, "close_time": closeAt(head.index), "hash": head.hash,
				"reserve_base": Reserve, "reserve_inc": OwnerReserve, "seq": head.index,
			},
		}}
	case "fee":
		return object{"current_queue_size": "0", "drops": object{
			"base_fee": fmt.Sprint(BaseFee), "median_fee": "5000", "minimum_fee": fmt.Sprint(BaseFee), "open_ledger_fee": fmt.Sprint(n.openFee),
		}, "ledger_current_index": head.index + 1}
	case "ledger":
		index := head.index
		if err := json.Unmarshal(p.LedgerIndex, &index); err != nil && string(p.LedgerIndex) != `"validated"` {
			return failed("invalidParams", 31, "ledgerIndexMalformed")
		}
		l := n.at(index)
		if l == nil {
			return failed("lgrNotFound", 21, "ledgerNotFound")
		}
		return object{"ledger": n.ledgerJSON(l, p.Transactions, p.Expand), "ledger_hash": l.hash, "ledger_index": l.index, "validated": true}
	case "tx":
		return n.txJSON(p.Transaction)
	case "account_info":
		a, ok := head.after[p.Account]
		if !ok {
			return failed("actNotFound", 19, "Account not found.")
		}
		return object{"account_data": object{
			"Account": p.Account, "Balance": fmt.Sprint(a.Drops), "Flags": a.Flags, "LedgerEntryType": "AccountRoot",
			"OwnerCount": a.Owned, "Sequence": a.Sequence,
		}, "ledger_hash": head.hash, "ledger_index": head.index, "validated": true}
	case "account_tx":
		skip := 0
		if p.Marker != nil {
			skip = p.Marker.Skip
		}
		return n.accountTx(p.Account, p.Min, p.Max, p.Forward, min(p.Limit, 3), skip)
	case "submit":
		return n.submitted(p.Blob)
	}
	return failed("unknownCmd", 32, "Unknown method.")
}

func closeAt(index int64) int64 { return startTime + (index-firstLedger)*closeTime }

func (n *Node) ledgerJSON(l *ledger, txs, expand bool) object {
	root := strings.Repeat("0", 64)
	if len(l.txs) > 0 {
		root = sum("root", l.hash)
	}
	out := object{
		"account_hash": sum("accounts", l.hash), "close_flags": 0, "close_time": closeAt(l.index), "close_time_resolution": 10,
		"closed": true, "ledger_hash": l.hash, "ledger_index": fmt.Sprint(l.index), "parent_hash": l.parent,
		"total_coins": "99985000000000000", "transaction_hash": root,
	}
	if !txs {
		return out
	}
	list := []any{}
	for _, i := range l.byHash() {
		if n.fault.Partial {
			break
		}
		if !expand {
			list = append(list, l.txs[i].hash)
			continue
		}
		t := l.txs[i].fields()
		t["metaData"] = l.txs[i].meta(i, n.fault.Clio)
		list = append(list, t)
	}
	out["transactions"] = list
	return out
}

// byHash is the order in which a server lists transactions: that of its tree.
func (l *ledger) byHash() []int {
	order := make([]int, len(l.txs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(l.txs[a].hash, l.txs[b].hash) })
	return order
}

func (x *included) fields() object {
	out := object{"hash": x.hash}
	for k, v := range x.json {
		out[k] = v
	}
	return out
}

// meta is a transaction's metadata. delivered_amount is added to that of a payment
// and a cashed check by every method (LedgerToJson.cpp, fillJsonTx), to that of an
// AccountDelete by tx and account_tx (DeliveredAmount.cpp, canHaveDeliveredAmount) and,
// on Clio, by the method ledger too (RPCHelpers.cpp, toExpandedJson): everywhere says so.
func (x *included) meta(index int, everywhere bool) object {
	out := object{"AffectedNodes": x.nodes, "TransactionIndex": index, "TransactionResult": x.result}
	if x.nodes == nil {
		out["AffectedNodes"] = []any{}
	}
	if x.delivered.inMeta != nil {
		out["DeliveredAmount"] = x.delivered.inMeta
	}
	if kind := x.json["TransactionType"]; x.delivered.told != nil && (everywhere || kind == "Payment" || kind == "CheckCash") {
		out["delivered_amount"] = x.delivered.told
	}
	return out
}

func (n *Node) txJSON(hash string) object {
	for _, l := range n.visible() {
		for i := range l.txs {
			if l.txs[i].hash == hash && lower(hash) != n.fault.Forget {
				t := l.txs[i].fields()
				t["ledger_index"], t["inLedger"], t["meta"], t["validated"], t["date"] = l.index, l.index, l.txs[i].meta(i, true), true, closeAt(l.index)
				return t
			}
		}
	}
	for _, t := range n.pool {
		if t.hash == hash {
			out := (&included{tx: t}).fields()
			out["validated"] = false
			return out
		}
	}
	return failed("txnNotFound", 29, "Transaction not found.")
}

func (n *Node) accountTx(who string, from, to int64, forward bool, limit, skip int) object {
	all := n.visible()
	first := max(all[0].index, n.fault.Earliest)
	if from < 0 || from < first {
		from = first
	}
	if to < 0 || to > all[len(all)-1].index {
		to = all[len(all)-1].index
	}
	list := []any{}
	for index := from; index <= to; index++ {
		l := n.at(index)
		for i := range l.txs {
			x := &l.txs[i]
			if !slices.Contains(x.touched, who) || lower(x.hash) == n.fault.Forget {
				continue
			}
			t := x.fields()
			t["ledger_index"], t["date"] = index, closeAt(index)
			list = append(list, object{"meta": x.meta(i, true), "tx": t, "validated": true})
		}
	}
	if !forward {
		slices.Reverse(list)
	}
	out := object{"account": who, "ledger_index_min": from, "ledger_index_max": to, "limit": limit, "validated": true}
	list = list[min(skip, len(list)):]
	if len(list) > limit {
		list, out["marker"] = list[:limit], object{"ledger": from, "seq": 0, "skip": skip + limit}
	}
	out["transactions"] = list
	return out
}

func (n *Node) submitted(blob string) object {
	b, err := hex.DecodeString(blob)
	if err != nil {
		return failed("invalidTransaction", 0, "fails local checks")
	}
	t, result := n.submit(b)
	if t == nil {
		return failed("invalidTransaction", 0, "fails local checks: malformed")
	}
	j := object{"hash": t.hash}
	for k, v := range t.json {
		j[k] = v
	}
	done := result == "tesSUCCESS"
	return object{
		"accepted": true, "applied": done, "broadcast": done, "kept": true, "queued": false, "engine_result": result,
		"engine_result_code": 0, "engine_result_message": "preliminary", "tx_blob": blob, "tx_json": j,
	}
}
