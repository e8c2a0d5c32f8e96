package xrptest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type object map[string]any

func lower(s string) string { return strings.ToLower(s) }

// parameters are all that a method is asked with.
type parameters struct {
	Account      string          `json:"account"`
	LedgerIndex  json.RawMessage `json:"ledger_index"`
	Transactions bool            `json:"transactions"`
	Expand       bool            `json:"expand"`
	Transaction  string          `json:"transaction"`
	Blob         string          `json:"tx_blob"`
	Min          *int64          `json:"ledger_index_min"`
	Max          *int64          `json:"ledger_index_max"`
	Forward      bool            `json:"forward"`
	Limit        int             `json:"limit"`
	Marker       *marker         `json:"marker"`
	Queue        bool            `json:"queue"`
}

// marker is where a list goes on: a transaction, by its ledger and its place there.
type marker struct {
	Ledger int64 `json:"ledger"`
	Seq    int   `json:"seq"`
}

// question is a request, also as it came.
type question struct {
	method string
	p      parameters
	asked  object // the parameters
	whole  object // the request
}

// request reads a request; wrong is what rippled says with HTTP 400.
func request(body []byte) (q *question, wrong string) {
	q = &question{}
	if json.Unmarshal(body, &q.whole) != nil || q.whole == nil {
		return nil, "Unable to parse request: "
	}
	method, ok := q.whole["method"].(string)
	switch {
	case q.whole["method"] == nil:
		return nil, "Null method"
	case !ok:
		return nil, "method is not string"
	case method == "":
		return nil, "method is empty"
	}
	q.method, q.asked = method, object{}
	if q.whole["params"] == nil {
		return q, ""
	}
	list, _ := q.whole["params"].([]any)
	if len(list) != 1 {
		return nil, "params unparsable"
	}
	asked, ok := list[0].(map[string]any)
	if !ok && list[0] != nil {
		return nil, "params unparsable"
	}
	for k, v := range asked {
		q.asked[k] = v
	}
	again, err := json.Marshal(q.asked)
	if err != nil {
		panic(err)
	}
	// What is of another type than meant is as if it were not there.
	_ = json.Unmarshal(again, &q.p)
	return q, ""
}

// ServeHTTP answers as rippled does, or Clio.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var answer string
	status := http.StatusOK
	q, wrong := request(body)
	switch {
	case n.fault.Busy && n.fault.Clio:
		status, answer = http.StatusServiceUnavailable, text(object{
			"error": "slowDown", "error_code": 10, "error_message": "You are placing too much load on the server.",
			"status": "error", "type": "response",
		})
	case n.fault.Busy:
		status, answer = http.StatusServiceUnavailable, "Server is overloaded"
	case wrong != "":
		status, answer = http.StatusBadRequest, wrong
	case n.fault.TooBusy && n.fault.Clio:
		status, answer = http.StatusServiceUnavailable, text(object{
			"error": "tooBusy", "error_code": 9, "error_message": "The server is too busy to help you now.", "status": "error", "type": "response",
		})
	default:
		b := []byte(text(n.respond(q)))
		if q.method == "submit" && n.fault.Lose {
			n.fault.Lose = false
			panic(http.ErrAbortHandler)
		}
		if n.fault.Tamper != nil {
			b = n.fault.Tamper(q.method, b)
		}
		answer = string(b) + "\n"
	}
	kind := "application/json; charset=UTF-8"
	if n.fault.Clio {
		kind = "application/json"
	} else {
		answer += "\r\n"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// respond puts the result of a method into the frame that the server gives it: one that
// holds an error gets the request beside it.
func (n *Node) respond(q *question) object {
	forwards := n.fault.Clio && q.forwarded()
	result := n.result(q, forwards)
	own := n.fault.Clio && !forwards
	switch _, bad := result["error"]; {
	case !bad:
		result["status"] = "success"
	case own || n.fault.Cut && forwards:
		result["status"], result["type"], result["request"] = "error", "response", q.whole
	default:
		q.asked["command"] = q.method
		result["status"], result["request"] = "error", q.asked
	}
	if n.fault.Load && !n.fault.Clio {
		result["warning"] = "load"
	}
	out := object{"result": result}
	if n.fault.Clio {
		warnings := []any{object{"id": 2001, "message": "only validated data"}}
		if n.fault.Stale {
			warnings = append(warnings, object{"id": 2002, "message": "may be out of date"})
		}
		if n.fault.Load {
			warnings = append(warnings, object{"id": 2003, "message": "about to be limited"})
			out["warning"] = "load"
		}
		out["warnings"] = warnings
		if forwards && !n.fault.Cut {
			out["forwarded"] = true
		}
	}
	return out
}

// forwarded reports whether Clio asks the rippled behind it (ForwardingProxy.hpp).
func (q *question) forwarded() bool {
	index := q.asked["ledger_index"]
	switch q.method {
	case "server_state", "fee", "submit":
		return true
	case "account_info":
		return index == "current" || index == "closed" || q.asked["queue"] == true
	}
	return index == "current" || index == "closed"
}

func (n *Node) result(q *question, forwards bool) object {
	switch {
	case n.fault.Cut && forwards:
		return failed("connectionError", 7000, "Couldn't connect to rippled.")
	case n.fault.TooBusy:
		return failed("tooBusy", 9, "The server is too busy to help you now.")
	}
	if (n.fault.Stale || n.fault.Fresh) && (forwards || !n.fault.Clio) {
		switch q.method {
		case "tx", "fee", "submit":
			return failed("noNetwork", 17, "Not synced to the network.")
		}
	}
	clio := n.fault.Clio
	n.fault.Clio = clio && !forwards
	result := n.answer(q)
	n.fault.Clio = clio
	if n.fault.Fail {
		return failed("noNetwork", 17, "Not synced to the network.")
	}
	return result
}

// failed is an error of the API: HTTP 200, with the error in the result.
func failed(name string, code int, message string) object {
	return object{"error": name, "error_code": code, "error_message": message}
}

func (n *Node) visible() []*ledger { return n.ledgers[:len(n.ledgers)-n.fault.Lag] }

func (n *Node) at(index int64) *ledger {
	all := n.visible()
	if n.fault.Fresh && !n.fault.Clio {
		return nil
	}
	if i := index - all[0].index; i >= 0 && i < int64(len(all)) && index >= n.fault.Earliest && index != n.fault.Missing {
		return all[i]
	}
	return nil
}

// first is the first of the ledgers that the server has without a gap up to its head.
func (n *Node) first() int64 {
	all := n.visible()
	first := max(all[0].index, n.fault.Earliest)
	if m := n.fault.Missing; m >= first && m <= all[len(all)-1].index {
		first = m + 1
	}
	return first
}

// complete lists the ledgers that the server has.
func (n *Node) complete() string {
	all := n.visible()
	span := func(from, to int64) string {
		if from == to {
			return fmt.Sprint(from)
		}
		return fmt.Sprintf("%d-%d", from, to)
	}
	from, head := max(all[0].index, n.fault.Earliest), all[len(all)-1].index
	switch m := n.fault.Missing; {
	case from > head || n.fault.Fresh:
		return "empty"
	case m > from && m < head:
		return span(from, m-1) + "," + span(m+1, head)
	}
	return span(n.first(), head)
}

func (n *Node) answer(q *question) object {
	p := &q.p
	all := n.visible()
	head := all[len(all)-1]
	switch q.method {
	case "server_state":
		return object{"state": n.state(head)}
	case "fee":
		return n.fees(head)
	case "ledger":
		return n.ledger(p, head)
	case "tx":
		return n.txJSON(p.Transaction)
	case "account_info":
		return n.accountInfo(p, head)
	case "account_tx":
		return n.accountTx(p, q.asked["limit"] != nil)
	case "submit":
		return n.submitted(p.Blob)
	}
	return failed("unknownCmd", 32, "Unknown method.")
}

func (n *Node) state(head *ledger) object {
	mode, factor := "full", n.openFee*256/BaseFee
	if n.fault.Stale || n.fault.Fresh {
		mode = "connected"
	}
	newest := "validated_ledger"
	if n.fault.Fresh {
		newest = "closed_ledger"
	}
	out := object{
		"build_version": "2.5.0", "complete_ledgers": n.complete(), "io_latency_ms": 1, "jq_trans_overflow": "0",
		"last_close": object{"converge_time": 3000, "proposers": 35}, "load_base": 256, "load_factor": factor,
		"load_factor_fee_escalation": factor, "load_factor_fee_queue": 256, "load_factor_fee_reference": 256, "load_factor_server": 256,
		"peers": 21, "server_state": mode, "uptime": 100_000, "validation_quorum": 28, newest: object{
			"base_fee": BaseFee, "close_time": closeAt(head.index), "hash": head.hash,
			"reserve_base": Reserve, "reserve_inc": OwnerReserve, "seq": head.index,
		},
	}
	if !n.fault.Unnumbered {
		out["network_id"] = n.id
	}
	return out
}

func (n *Node) fees(head *ledger) object {
	waiting := 0
	for _, t := range n.pool {
		if t.queued {
			waiting++
		}
	}
	level := fmt.Sprint(n.openFee * 256 / BaseFee)
	return object{
		"current_ledger_size": fmt.Sprint(len(n.pool) - waiting), "current_queue_size": fmt.Sprint(waiting), "expected_ledger_size": "96",
		"drops": object{
			"base_fee": fmt.Sprint(BaseFee), "median_fee": "5000", "minimum_fee": fmt.Sprint(BaseFee), "open_ledger_fee": fmt.Sprint(n.openFee),
		},
		"ledger_current_index": head.index + 1, "max_queue_size": "2000",
		"levels": object{"median_level": "128000", "minimum_level": "256", "open_ledger_level": level, "reference_level": "256"},
	}
}

// lost is the answer where a server that has lost the network is asked for the newest
// ledger.
func lost() object { return failed("noNetwork", 17, "InsufficientNetworkMode") }

// find finds the ledger that is meant. current is the open one, which only rippled has,
// by name or by the index after the head's.
func (n *Node) find(p *parameters, head *ledger) (l *ledger, current bool, wrong object) {
	name, index := "", int64(0)
	if len(p.LedgerIndex) == 0 {
		name = "current"
	} else if json.Unmarshal(p.LedgerIndex, &name) == nil {
		if v, err := strconv.ParseInt(name, 10, 64); err == nil {
			name, index = "", v
		}
	} else if json.Unmarshal(p.LedgerIndex, &index) != nil {
		return nil, false, failed("invalidParams", 31, "ledgerIndexMalformed")
	}
	switch {
	case n.fault.Clio && (name == "current" && len(p.LedgerIndex) == 0):
		name = "validated"
	case index == head.index+1 && !n.fault.Clio:
		return nil, true, nil
	}
	stale := (n.fault.Stale || n.fault.Fresh) && !n.fault.Clio
	switch name {
	case "validated", "closed":
		if stale {
			return nil, false, lost()
		}
		return head, false, nil
	case "current":
		if stale {
			return nil, false, lost()
		}
		return nil, true, nil
	case "":
		if l := n.at(index); l != nil {
			return l, false, nil
		}
		return nil, false, failed("lgrNotFound", 21, "ledgerNotFound")
	}
	return nil, false, failed("invalidParams", 31, "ledgerIndexMalformed")
}

func (n *Node) ledger(p *parameters, head *ledger) object {
	l, current, wrong := n.find(p, head)
	switch {
	case wrong != nil:
		return wrong
	case current: // nothing in it is final, and it has no hash
		open := object{"closed": false, "ledger_index": fmt.Sprint(head.index + 1), "parent_hash": head.hash}
		if p.Transactions {
			list := []any{}
			for _, t := range n.pool {
				switch {
				case t.queued:
				case p.Expand: // without metadata
					list = append(list, t.fields())
				default:
					list = append(list, t.hash)
				}
			}
			open["transactions"] = list
		}
		return object{"ledger": open, "ledger_current_index": head.index + 1, "validated": false}
	}
	return object{"ledger": n.ledgerJSON(l, p.Transactions, p.Expand), "ledger_hash": l.hash, "ledger_index": l.index, "validated": true}
}

func (n *Node) accountInfo(p *parameters, head *ledger) object {
	l, current, wrong := n.find(p, head)
	if wrong != nil {
		return wrong
	}
	out := object{"ledger_current_index": head.index + 1, "validated": false}
	var s map[string]Account
	if current {
		s = n.open(nil)
	} else {
		s, out = l.after, object{"ledger_hash": l.hash, "ledger_index": l.index, "validated": true}
	}
	if !strings.HasPrefix(p.Account, "r") {
		out["error"], out["error_code"], out["error_message"] = "actMalformed", 35, "Account malformed."
		return out
	}
	a, ok := s[p.Account]
	if !ok {
		if n.fault.Clio {
			return failed("actNotFound", 19, "Account not found.")
		}
		out["error"], out["error_code"], out["error_message"], out["account"] = "actNotFound", 19, "Account not found.", p.Account
		return out
	}
	data := a.fields(p.Account)
	data["LedgerEntryType"], data["index"] = "AccountRoot", sum(p.Account)
	data["PreviousTxnID"], data["PreviousTxnLgrSeq"] = sum("before", p.Account), head.index-1
	out["account_data"] = data
	if p.Queue && !current {
		return failed("invalidParams", 31, "Invalid parameters.")
	}
	if p.Queue {
		out["queue_data"] = n.queue(p.Account)
	}
	out["account_flags"] = object{
		"defaultRipple": false, "depositAuth": a.Flags&DepositAuth != 0, "disableMasterKey": false,
		"disallowIncomingXRP": a.Flags&DisallowXRP != 0, "globalFreeze": false, "noFreeze": false, "passwordSpent": false,
		"requireAuthorization": false, "requireDestinationTag": a.Flags&RequireTag != 0,
	}
	return out
}

// queue is what waits of an account for its fee to open a ledger.
func (n *Node) queue(account string) object {
	list := []any{}
	for _, t := range n.pool {
		if t.account != account || !t.queued {
			continue
		}
		j := object{
			"auth_change": false, "fee": fmt.Sprint(t.fee), "fee_level": fmt.Sprint(t.fee * 256 / BaseFee),
			"max_spend_drops": fmt.Sprint(t.fee), "seq": t.sequence,
		}
		if t.last > 0 {
			j["LastLedgerSequence"] = t.last
		}
		list = append(list, j)
	}
	if len(list) == 0 {
		return object{"txn_count": 0}
	}
	return object{"txn_count": len(list), "sequence_count": len(list), "transactions": list, "auth_change_queued": false}
}

func closeAt(index int64) int64 { return startTime + (index-firstLedger)*closeTime }

func (n *Node) ledgerJSON(l *ledger, txs, expand bool) object {
	root := strings.Repeat("0", 64)
	if len(l.txs) > 0 {
		root = sum("root", l.hash)
	}
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(closeAt(l.index)) * time.Second)
	out := object{
		"account_hash": sum("accounts", l.hash), "close_flags": 0, "close_time": closeAt(l.index), "close_time_resolution": 10,
		"close_time_human": at.Format("2006-Jan-02 15:04:05.000000000 UTC"), "close_time_iso": at.Format("2006-01-02T15:04:05Z"),
		"closed": true, "ledger_hash": l.hash, "ledger_index": fmt.Sprint(l.index), "parent_close_time": closeAt(l.index - 1),
		"parent_hash": l.parent, "total_coins": "99985000000000000", "transaction_hash": root,
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

func (t *tx) fields() object {
	out := object{"hash": t.hash}
	for k, v := range t.json {
		out[k] = v
	}
	return out
}

// placed are the fields of a transaction in a ledger, as tx and account_tx show it.
func (n *Node) placed(l *ledger, i int, numbered bool) object {
	t := l.txs[i].fields()
	t["ledger_index"], t["inLedger"], t["date"] = l.index, l.index, closeAt(l.index)
	if numbered && n.id <= 0xffff {
		t["ctid"] = fmt.Sprintf("C%07X%04X%04X", l.index, i, n.id)
	}
	return t
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

func (t *tx) waiting() object {
	out := t.fields()
	out["validated"] = false
	return out
}

// txJSON answers tx. What no ledger has yet is known to rippled alone.
func (n *Node) txJSON(hash string) object {
	if b, err := hex.DecodeString(hash); err != nil || len(b) != 32 {
		if n.fault.Clio {
			return failed("invalidParams", 31, "transactionMalformed")
		}
		return failed("notImpl", 74, "Not implemented.")
	}
	hash = strings.ToUpper(hash)
	for _, l := range n.visible() {
		for i := range l.txs {
			if l.txs[i].hash == hash && lower(hash) != n.fault.Forget && n.at(l.index) != nil {
				t := n.placed(l, i, true)
				t["meta"], t["validated"] = l.txs[i].meta(i, true), true
				return t
			}
		}
	}
	for _, t := range n.pool {
		if t.hash == hash && !n.fault.Clio {
			return t.waiting()
		}
	}
	// rippled remembers what was submitted to it, also what it refused.
	if s := n.seen[hash]; s != nil && !n.fault.Clio && n.head().index-s.at < remembered && lower(hash) != n.fault.Forget {
		return s.waiting()
	}
	return failed("txnNotFound", 29, "Transaction not found.")
}

// pageSize is how many transactions a page of account_tx has at most: few, so that tests
// turn pages. A server may give fewer than it was asked for.
const pageSize = 3

func (n *Node) accountTx(p *parameters, limited bool) object {
	all := n.visible()
	from, to := n.first(), all[len(all)-1].index
	if p.Min != nil && *p.Min > from {
		from = *p.Min
	}
	if p.Max != nil && *p.Max >= 0 && *p.Max < to {
		to = *p.Max
	}
	switch {
	case !strings.HasPrefix(p.Account, "r"):
		return failed("actMalformed", 35, "Account malformed.")
	case to < from || n.fault.Fresh && !n.fault.Clio:
		return failed("lgrIdxsInvalid", 57, "Ledger indexes invalid.")
	}
	type entry struct {
		marker
		shown object
	}
	var list []entry
	for index := from; index <= to; index++ {
		l := n.at(index)
		for i := range l.txs {
			x := &l.txs[i]
			if slices.Contains(x.touched, p.Account) && lower(x.hash) != n.fault.Forget {
				shown := object{"meta": x.meta(i, true), "tx": n.placed(l, i, !n.fault.Clio), "validated": true}
				list = append(list, entry{marker{index, i}, shown})
			}
		}
	}
	if !p.Forward {
		slices.Reverse(list)
	}
	// rippled's marker is the first transaction of the next page. Clio's is the last one
	// of this page, and each full page has one: the last page may be empty.
	after, full := 0, pageSize+1
	if n.fault.Clio {
		after, full = 1, pageSize
	}
	if p.Marker != nil { // nothing, where no transaction is meant by it
		k := slices.IndexFunc(list, func(e entry) bool { return e.marker == *p.Marker })
		if k < 0 {
			k = len(list) - after
		}
		list = list[k+after:]
	}
	out := object{"account": p.Account, "ledger_index_min": from, "ledger_index_max": to, "validated": true}
	switch asked := p.Limit; {
	case !n.fault.Clio && !limited:
		out["limit"] = 200
	case !n.fault.Clio:
		out["limit"] = min(max(asked, 10), 400)
	case limited:
		out["limit"] = max(asked, 1)
	}
	if len(list) >= full {
		out["marker"] = list[full-1].marker
		list = list[:pageSize]
	}
	shown := []any{}
	for _, e := range list {
		shown = append(shown, e.shown)
	}
	out["transactions"] = shown
	return out
}

func (n *Node) submitted(blob string) object {
	b, err := hex.DecodeString(blob)
	if err != nil || len(b) == 0 {
		return failed("invalidParams", 31, "Invalid parameters.")
	}
	t, v := n.submit(b)
	if v.broken != "" { // this error has neither number nor message
		return object{"error": "invalidTransaction", "error_exception": v.broken}
	}
	j := t.fields()
	delete(j, "DeliverMax")
	next := n.open(nil)[t.account].Sequence
	return object{
		"accepted": true, "applied": v.applied, "broadcast": v.applied || v.queued, "kept": true, "queued": v.queued,
		"account_sequence_available": n.queuable(next, t.account), "account_sequence_next": next,
		"engine_result": v.result, "engine_result_code": codes[v.result], "engine_result_message": "preliminary",
		"open_ledger_cost": fmt.Sprint(n.openFee), "tx_blob": strings.ToUpper(blob), "tx_json": j,
		"validated_ledger_index": n.head().index,
	}
}
