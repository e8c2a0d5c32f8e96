package stellartest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

type object map[string]any

func chainAddress(s string) chain.Address { return chain.Address(s) }

// maxPage is the most records of one answer here, so that lists have several pages.
const maxPage = 200

// ServeHTTP answers as Horizon does.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var status int
	var answer object
	if r.Method == http.MethodPost {
		_ = r.ParseForm()
		status, answer = n.submitted(r.PostForm.Get("tx"))
	} else {
		status, answer = n.answer(r)
	}
	if n.fault.Fail {
		status, answer = problem(503, "Historical DB Is Too Stale")
	}
	if r.Method == http.MethodPost && n.fault.Lose {
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
	w.Header().Set("Content-Type", "application/hal+json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func problem(status int, title string) (int, object) {
	return status, object{"type": "https://stellar.org/horizon-errors/" + strings.ReplaceAll(strings.ToLower(title), " ", "_"), "title": title, "status": status, "detail": "…"}
}

func (n *Node) submitted(text string) (int, object) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return problem(400, "Transaction Malformed")
	}
	hash, status := n.submit(raw)
	if status == "MALFORMED" {
		return problem(400, "Transaction Malformed")
	}
	answer := object{"tx_status": status, "hash": hash}
	if status == "ERROR" {
		answer["error_result_xdr"] = "AAAAAAAAAGT////7AAAAAA=="
	}
	return map[string]int{"PENDING": 201, "DUPLICATE": 409, "TRY_AGAIN_LATER": 503, "ERROR": 400}[status], answer
}

func (n *Node) visible() []*ledger { return n.ledgers[:len(n.ledgers)-n.fault.Lag] }

func (n *Node) at(text string) *ledger {
	all := n.visible()
	index, err := strconv.ParseInt(text, 10, 64)
	if i := index - all[0].index; err == nil && i >= 0 && i < int64(len(all)) && index >= n.fault.Earliest {
		return all[i]
	}
	return nil
}

func (n *Node) answer(r *http.Request) (int, object) {
	all := n.visible()
	head := all[len(all)-1]
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case path[0] == "":
		return 200, object{"network_passphrase": n.passphrase, "history_latest_ledger": head.index, "history_elder_ledger": all[0].index}
	case path[0] == "fee_stats":
		fees := object{"max": "999999", "mode": fmt.Sprint(BaseFee), "p10": fmt.Sprint(BaseFee), "p99": fmt.Sprint(n.p99)}
		return 200, object{"last_ledger": fmt.Sprint(head.index), "last_ledger_base_fee": fmt.Sprint(BaseFee), "ledger_capacity_usage": "0.5", "fee_charged": fees, "max_fee": fees}
	case path[0] == "ledgers" && len(path) == 1:
		return page([]any{head.json()})
	case path[0] == "ledgers":
		l := n.at(path[1])
		if l == nil {
			return problem(404, "Resource Missing")
		}
		if len(path) == 2 {
			return 200, l.json()
		}
		return n.operations(r, []*ledger{l}, "")
	case path[0] == "transactions" && len(path) == 2:
		for _, l := range all {
			for i := range l.txs {
				if x := &l.txs[i]; (x.hash == path[1] || x.outer == path[1]) && n.fault.Forget != path[1] {
					return 200, l.transaction(i, n.Payer, path[1])
				}
			}
		}
		return problem(404, "Resource Missing")
	case path[0] == "operations" && len(path) == 3:
		return n.effects(path[1])
	case path[0] == "accounts" && len(path) >= 2:
		return n.account(r, path, head)
	}
	return problem(404, "Resource Missing")
}

func page(records []any) (int, object) {
	if records == nil {
		records = []any{}
	}
	return 200, object{"_links": object{"self": object{"href": "…"}}, "_embedded": object{"records": records}}
}

func (l *ledger) json() object {
	count, good := 0, 0
	for i := range l.txs {
		if l.txs[i].ok {
			count += len(l.txs[i].ops)
			good++
		}
	}
	return object{
		"id": l.hash, "paging_token": fmt.Sprint(l.index << 32), "hash": l.hash, "prev_hash": l.parent, "sequence": l.index,
		"successful_transaction_count": good, "failed_transaction_count": len(l.txs) - good, "operation_count": count,
		"closed_at": l.closed.Format(time.RFC3339), "base_fee_in_stroops": BaseFee, "base_reserve_in_stroops": BaseReserve, "protocol_version": 23,
	}
}

// transaction is shown under the hash that it was asked for by: within a fee bump it
// has two.
func (l *ledger) transaction(i int, payer, hash string) object {
	x := &l.txs[i]
	out := object{
		"id": hash, "paging_token": fmt.Sprint(l.index<<32 | x.order<<12), "successful": x.ok, "hash": hash, "ledger": l.index,
		"source_account": x.source, "source_account_sequence": fmt.Sprint(x.sequence), "fee_charged": fmt.Sprint(BaseFee),
		"fee_account": x.source, "max_fee": fmt.Sprint(x.fee), "operation_count": len(x.ops),
	}
	if x.outer != "" {
		out["fee_account"], out["fee_charged"], out["max_fee"] = payer, fmt.Sprint(x.charged), fmt.Sprint(x.charged)
		out["fee_bump_transaction"] = object{"hash": x.outer}
		out["inner_transaction"] = object{"hash": x.hash, "max_fee": fmt.Sprint(x.fee)}
	}
	maps.Copy(out, x.json)
	return out
}

func query(r *http.Request) (cursor int64, limit int) {
	cursor, err := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	if err != nil {
		cursor = math.MaxInt64
	}
	limit, _ = strconv.Atoi(r.URL.Query().Get("limit"))
	return cursor, min(limit, maxPage)
}

// operations lists what succeeded in ledgers, of an account or of all.
func (n *Node) operations(r *http.Request, ledgers []*ledger, who string) (int, object) {
	cursor, limit := query(r)
	var list []any
	for _, l := range ledgers {
		for i := range l.txs {
			x := &l.txs[i]
			for k := range x.ops {
				id, _ := strconv.ParseInt(x.ops[k].json["id"].(string), 10, 64)
				if !x.ok || id <= cursor || who != "" && x.ops[k].from != who && x.ops[k].to != who || len(list) >= limit {
					continue
				}
				list = append(list, x.ops[k].json)
			}
		}
	}
	if n.fault.Partial && len(list) > 0 {
		list = list[:len(list)-1]
	}
	return page(list)
}

func (n *Node) effects(id string) (int, object) {
	for _, l := range n.visible() {
		for i := range l.txs {
			for _, o := range l.txs[i].ops {
				if o.json["id"] == id {
					var list []any
					for _, e := range o.effects {
						list = append(list, e)
					}
					return page(list)
				}
			}
		}
	}
	return problem(404, "Resource Missing")
}

func (n *Node) account(r *http.Request, path []string, head *ledger) (int, object) {
	who := path[1]
	a, there := head.after[who]
	switch {
	case !there:
		return problem(404, "Resource Missing")
	case len(path) == 2:
		data := object{}
		if a.Memo {
			data["config.memo_required"] = "MQ=="
		}
		return 200, object{
			"id": who, "account_id": who, "sequence": fmt.Sprint(a.Sequence), "subentry_count": a.Entries, "num_sponsoring": 0, "num_sponsored": 0,
			"balances": []any{
				object{"balance": "5.0000000", "asset_type": "credit_alphanum4", "asset_code": "USD"},
				object{"balance": coins(a.Stroops), "selling_liabilities": coins(a.Selling), "buying_liabilities": "0.0000000", "asset_type": "native"},
			}, "data": data,
		}
	case path[2] == "operations":
		return n.operations(r, n.visible(), who)
	}
	cursor, limit := query(r)
	var list []any
	for _, l := range slices.Backward(n.visible()) {
		for i := range slices.Backward(l.txs) {
			x := &l.txs[i]
			if l.index<<32|x.order<<12 >= cursor || x.source != who || x.name() == n.fault.Forget || len(list) >= limit {
				continue
			}
			list = append(list, l.transaction(i, n.Payer, x.name()))
		}
	}
	return page(list)
}
