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
	"github.com/cryptopay-go/cryptopay/chain/address"
)

type object map[string]any

func chainAddress(s string) chain.Address { return chain.Address(s) }

// What Horizon gives of a list: so many records where nothing is asked for, and no
// more than so many.
const (
	defaultPage = 10
	maxPage     = 200
)

// problems are Horizon's, by the name that ends their type.
var problems = map[string]struct {
	status int
	title  string
}{
	"bad_request":                           {400, "Bad Request"},
	"transaction_malformed":                 {400, "Transaction Malformed"},
	"transaction_submission_disabled":       {403, "Transaction Submission Disabled"},
	"not_found":                             {404, "Resource Missing"},
	"before_history":                        {410, "Data Requested Is Before Recorded History"},
	"unsupported_media_type":                {415, "Unsupported Media Type"},
	"rate_limit_exceeded":                   {429, "Rate Limit Exceeded"},
	"server_error":                          {500, "Internal Server Error"},
	"transaction_submission_failed":         {500, "Transaction Submission Failed"},
	"transaction_submission_exception":      {500, "Transaction Submission Exception"},
	"transaction_submission_invalid_status": {500, "Transaction Submission Invalid Status"},
	"server_over_capacity":                  {503, "Server Over Capacity"},
	"service_unavailable":                   {503, "Service Unavailable"},
	"stale_history":                         {503, "Historical DB Is Too Stale"},
	"still_ingesting":                       {503, "Still Ingesting"},
	"timeout":                               {504, "Timeout"},
}

// problem is an answer that is none.
func problem(name string) (int, object) {
	p := problems[name]
	return p.status, object{"type": "https://stellar.org/horizon-errors/" + name, "title": p.title, "status": p.status, "detail": "…"}
}

// invalid is the problem of a parameter that Horizon does not take.
func invalid(field, reason string) (int, object) {
	status, p := problem("bad_request")
	p["extras"] = object{"invalid_field": field, "reason": reason}
	return status, p
}

// ServeHTTP answers as Horizon does.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var status int
	var answer object
	switch {
	case n.fault.Fail:
		status, answer = problem("stale_history")
		head := n.head().index
		answer["extras"] = object{"history_latest_ledger": head - 100, "core_latest_ledger": head}
	case n.fault.Problem != "":
		status, answer = problem(n.fault.Problem)
		if status == http.StatusTooManyRequests {
			w.Header().Set("X-RateLimit-Limit", "101")
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", "3600")
			w.Header().Set("Retry-After", "36")
		}
	case r.Method == http.MethodPost:
		status, answer = n.posted(r)
	default:
		lag := n.fault.Lag
		if n.fault.Backs != nil {
			n.fault.Lag += n.fault.Backs(r.URL.Path)
		}
		if all := n.visible(); ofState(r.URL.Path) && !n.fault.Undated {
			w.Header().Set("Latest-Ledger", fmt.Sprint(all[len(all)-1].index))
		}
		status, answer = n.answer(r)
		n.fault.Lag = lag
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
	kind := "application/hal+json; charset=utf-8"
	if answer["title"] != nil {
		kind = "application/problem+json; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache, no-store, max-age=0")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// ofState says whether a path is of the state of the newest ledger.
func ofState(path string) bool {
	return strings.HasPrefix(path, "/accounts/") && strings.Count(path, "/") == 2
}

// posted takes a transaction. Horizon's older way, which waits for a ledger, is not
// modelled.
func (n *Node) posted(r *http.Request) (int, object) {
	if r.URL.Path != "/transactions_async" {
		return problem("not_found")
	}
	if kind := r.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		return problem("unsupported_media_type")
	}
	text := r.FormValue("tx")
	raw, err := base64.StdEncoding.DecodeString(text)
	hash, verdict := "", verdict{status: malformed}
	if err == nil {
		hash, verdict = n.submit(raw)
	}
	answer := object{"tx_status": verdict.status, "hash": hash}
	switch verdict.status {
	case malformed:
		status, p := problem("transaction_malformed")
		p["extras"] = object{"envelope_xdr": text, "error": object{}}
		return status, p
	case "ERROR":
		answer["error_result_xdr"] = verdict.result()
	}
	return map[string]int{"PENDING": 201, "DUPLICATE": 409, "TRY_AGAIN_LATER": 503, "ERROR": 400}[verdict.status], answer
}

// visible are the ledgers that it has, of which there is at least one.
func (n *Node) visible() []*ledger {
	all := n.ledgers[:len(n.ledgers)-n.fault.Lag]
	reaped := min(max(0, n.fault.Earliest-all[0].index), int64(len(all)-1))
	return all[reaped:]
}

func (n *Node) answer(r *http.Request) (int, object) {
	all := n.visible()
	head := all[len(all)-1]
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case path[0] == "":
		return 200, object{
			"horizon_version": "28.0.0", "core_version": "stellar-core 28.0.0",
			"ingest_latest_ledger": head.index, "history_latest_ledger": head.index, "history_latest_ledger_closed_at": head.closed.Format(time.RFC3339),
			"history_elder_ledger": all[0].index, "core_latest_ledger": n.head().index, "network_passphrase": n.passphrase,
			"current_protocol_version": protocol, "supported_protocol_version": protocol, "core_supported_protocol_version": protocol,
		}
	case path[0] == "fee_stats" && len(path) == 1:
		return 200, n.fees(head)
	case path[0] == "ledgers" && len(path) == 1:
		return n.list(r, func(yield func(int64, object)) {
			for _, l := range all {
				yield(l.index<<32, l.json())
			}
		})
	case path[0] == "ledgers":
		return n.ledger(r, path)
	case path[0] == "transactions" && len(path) == 2:
		return n.known(path[1])
	case path[0] == "operations" && len(path) == 3 && path[2] == "effects":
		return n.effects(r, path[1])
	case path[0] == "accounts" && (len(path) == 2 || len(path) == 3 && (path[2] == "operations" || path[2] == "transactions")):
		return n.account(r, path, head)
	}
	return problem("not_found")
}

// fees are of the last five ledgers, and each a text.
func (n *Node) fees(head *ledger) object {
	fees := object{"max": "999999", "min": fmt.Sprint(BaseFee), "mode": fmt.Sprint(BaseFee)}
	for _, p := range []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 95} {
		fees[fmt.Sprint("p", p)] = fmt.Sprint(BaseFee)
	}
	fees["p99"] = fmt.Sprint(n.p99)
	return object{"last_ledger": fmt.Sprint(head.index), "last_ledger_base_fee": fmt.Sprint(BaseFee), "ledger_capacity_usage": "0.5", "fee_charged": fees, "max_fee": fees}
}

// ledger is one, or the operations in it. One that was pruned is gone, with a status of
// its own; its operations are just not there.
func (n *Node) ledger(r *http.Request, path []string) (int, object) {
	all := n.visible()
	index, err := strconv.ParseUint(path[1], 10, 32)
	if err != nil {
		return invalid("ledger_id", "Ledger ID must be an integer higher than 0")
	}
	i := int64(index) - all[0].index
	switch {
	case i < 0 && len(path) == 2:
		return problem("before_history")
	case i < 0 || i >= int64(len(all)):
		return problem("not_found")
	case len(path) == 2:
		return 200, all[i].json()
	case path[2] == "operations" && len(path) == 3:
		return n.operations(r, all[i:i+1], "")
	case path[2] == "transactions" && len(path) == 3:
		return n.transactions(r, all[i:i+1], func(*included) bool { return true })
	}
	return problem("not_found")
}

// transactions lists those of ledgers that are asked for.
func (n *Node) transactions(r *http.Request, ledgers []*ledger, of func(x *included) bool) (int, object) {
	return n.list(r, func(yield func(int64, object)) {
		for _, l := range ledgers {
			for i := range l.txs {
				if x := &l.txs[i]; of(x) && (x.ok || failed(r)) && x.name() != n.fault.Forget {
					yield(l.index<<32|x.order<<12, l.transaction(i, n.Payer, x.name()))
				}
			}
		}
	})
}

// known is the transaction of a hash, be it of the fee bump or of what is in it.
func (n *Node) known(hash string) (int, object) {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
		return invalid("tx_id", "Transaction hash must be a hex-encoded, lowercase SHA-256 hash")
	}
	for _, l := range n.visible() {
		for i := range l.txs {
			if x := &l.txs[i]; (x.hash == hash || x.outer == hash) && n.fault.Forget != hash {
				return 200, l.transaction(i, n.Payer, hash)
			}
		}
	}
	return problem("not_found")
}

func (l *ledger) json() object {
	count, good, all := 0, 0, 0
	for i := range l.txs {
		all += len(l.txs[i].ops)
		if l.txs[i].ok {
			count += len(l.txs[i].ops)
			good++
		}
	}
	return object{
		"id": l.hash, "paging_token": fmt.Sprint(l.index << 32), "hash": l.hash, "prev_hash": l.parent, "sequence": l.index,
		"successful_transaction_count": good, "failed_transaction_count": len(l.txs) - good, "operation_count": count, "tx_set_operation_count": all,
		"closed_at": l.closed.Format(time.RFC3339), "total_coins": "50001806812.4664380", "fee_pool": "9000000.0000000",
		"base_fee_in_stroops": BaseFee, "base_reserve_in_stroops": BaseReserve, "max_tx_set_size": 1000, "protocol_version": protocol,
		"header_xdr": base64.StdEncoding.EncodeToString([]byte("header of " + l.hash)),
	}
}

// transaction is shown under the hash that it was asked for by: within a fee bump it
// has two.
func (l *ledger) transaction(i int, payer, hash string) object {
	x := &l.txs[i]
	signatures := []string{base64.StdEncoding.EncodeToString(make([]byte, 64))}
	out := object{
		"id": hash, "paging_token": fmt.Sprint(l.index<<32 | x.order<<12), "successful": x.ok, "hash": hash, "ledger": l.index, "created_at": l.closed.Format(time.RFC3339),
		"source_account": x.source, "source_account_sequence": fmt.Sprint(x.sequence), "fee_charged": fmt.Sprint(BaseFee),
		"fee_account": x.source, "max_fee": fmt.Sprint(x.fee), "operation_count": len(x.ops), "signatures": signatures,
		"envelope_xdr": base64.StdEncoding.EncodeToString(x.raw), "result_xdr": "AAAAAAAAAGQAAAAAAAAAAAAAAAA=", "fee_meta_xdr": "AAAAAA==",
	}
	if x.until > 0 {
		out["preconditions"] = object{"timebounds": object{"min_time": "0", "max_time": fmt.Sprint(x.until)}}
	}
	if x.outer != "" {
		out["fee_account"], out["fee_charged"], out["max_fee"] = payer, fmt.Sprint(x.charged), fmt.Sprint(x.charged)
		out["fee_bump_transaction"] = object{"hash": x.outer, "signatures": signatures}
		out["inner_transaction"] = object{"hash": x.hash, "signatures": signatures, "max_fee": fmt.Sprint(x.fee)}
	}
	maps.Copy(out, x.json)
	if text, ok := x.json["memo"].(string); ok && x.json["memo_type"] == "text" {
		out["memo_bytes"] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return out
}

// list gives a page of records as the request asks for it. all are given with their
// places, in the order of these.
func (n *Node) list(r *http.Request, all func(yield func(at int64, record object))) (int, object) {
	q := r.URL.Query()
	limit, text := defaultPage, q.Get("limit")
	if text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit <= 0 || limit > maxPage {
			return invalid("limit", "invalid limit: not from 1 to 200")
		}
	}
	visible := n.visible()
	var cursor int64
	backward := q.Get("order") == "desc"
	if order := q.Get("order"); order != "" && order != "asc" && order != "desc" {
		return invalid("order", "order: invalid value")
	}
	switch text = q.Get("cursor"); {
	case text == "now":
		cursor = (visible[len(visible)-1].index + 1) << 32
	case text == "" && backward:
		cursor = math.MaxInt64
	case text != "":
		at, _, _ := strings.Cut(text, "-")
		var err error
		if cursor, err = strconv.ParseInt(at, 10, 64); err != nil || cursor < 0 {
			return invalid("cursor", "cursor: invalid value")
		}
	}
	if backward && cursor <= visible[0].index<<32 {
		return problem("before_history")
	}
	records := []any{}
	all(func(at int64, record object) {
		if backward && at < cursor || !backward && at > cursor {
			records = append(records, record)
		}
	})
	if backward {
		slices.Reverse(records)
	}
	records = records[:min(limit, len(records))]
	if n.fault.Partial && len(records) > 0 && strings.HasSuffix(r.URL.Path, "/operations") {
		records = records[:len(records)-1]
	}
	next := text
	if len(records) > 0 {
		next = records[len(records)-1].(object)["paging_token"].(string)
	}
	link := func(cursor string) object {
		q.Set("cursor", cursor)
		return object{"href": "https://horizon.example" + r.URL.Path + "?" + q.Encode()}
	}
	return 200, object{"_links": object{"self": link(text), "next": link(next)}, "_embedded": object{"records": records}}
}

// failed says whether the request wants what failed, too.
func failed(r *http.Request) bool { return r.URL.Query().Get("include_failed") == "true" }

// operations lists those of ledgers, of an account or of all.
func (n *Node) operations(r *http.Request, ledgers []*ledger, who string) (int, object) {
	return n.list(r, func(yield func(int64, object)) {
		for _, l := range ledgers {
			for i := range l.txs {
				x := &l.txs[i]
				for k, o := range x.ops {
					if (x.ok || failed(r)) && (who == "" || o.from == who || o.to == who) {
						yield(l.index<<32|x.order<<12|int64(k+1), o.shown(x, l, n.Payer, r.URL.Query().Get("join") == "transactions"))
					}
				}
			}
		}
	})
}

// shown is an operation, and within it its transaction where that was asked for.
func (o *op) shown(x *included, l *ledger, payer string, join bool) object {
	out := maps.Clone(o.json)
	if join {
		out["transaction"] = l.transaction(int(x.order-1), payer, x.name())
	}
	return out
}

// effects lists what an operation did. Of one that nobody knows there are none.
func (n *Node) effects(r *http.Request, id string) (int, object) {
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return invalid("op_id", "Operation ID must be an integer higher than 0")
	}
	return n.list(r, func(yield func(int64, object)) {
		for _, l := range n.visible() {
			for i := range l.txs {
				for _, o := range l.txs[i].ops {
					if o.json["id"] != id || !l.txs[i].ok {
						continue
					}
					at, _ := strconv.ParseInt(id, 10, 64)
					for k, e := range o.effects {
						e["id"], e["paging_token"] = fmt.Sprintf("%019d-%010d", at, k+1), fmt.Sprintf("%d-%d", at, k+1)
						e["type_i"], e["created_at"] = effectTypes[e["type"].(string)], o.json["created_at"]
						yield(at, e)
					}
				}
			}
		}
	})
}

var effectTypes = map[string]int{
	"account_created": 0, "account_removed": 1, "account_credited": 2, "account_debited": 3, "signer_created": 10, "contract_debited": 97,
}

// account is one, or a list of what it takes part in.
func (n *Node) account(r *http.Request, path []string, head *ledger) (int, object) {
	who := path[1]
	if _, ok := address.StellarKey(chainAddress(who)); !ok {
		return invalid("account_id", "Account ID must start with `G` and contain 56 alphanum characters")
	}
	a, there := head.after[who]
	switch {
	case !there && (len(path) == 2 || !n.took(who)):
		return problem("not_found")
	case len(path) == 2:
		return 200, a.shown(who, n.changed(who))
	case path[2] == "operations":
		return n.operations(r, n.visible(), who)
	}
	return n.transactions(r, n.visible(), func(x *included) bool { return x.has(who, n.Payer) })
}

// changed is the ledger that changed an account last.
func (n *Node) changed(who string) *ledger {
	all := n.visible()
	for i := len(all) - 1; i > 0; i-- {
		if before, there := all[i-1].after[who]; !there || before != all[i].after[who] {
			return all[i]
		}
	}
	return all[0]
}

// has says whether an account takes part: it is its source, pays its fee, or is named by
// an operation.
func (x *included) has(who, payer string) bool {
	return x.source == who || x.outer != "" && payer == who || slices.ContainsFunc(x.ops, func(o op) bool { return o.from == who || o.to == who })
}

// took says whether an account ever took part in anything.
func (n *Node) took(who string) bool {
	return slices.ContainsFunc(n.visible(), func(l *ledger) bool {
		return slices.ContainsFunc(l.txs, func(x included) bool { return x.has(who, n.Payer) })
	})
}

// shown is an account that a ledger changed last, and that also holds a share of a pool and another asset, before its
// lumens.
func (a Account) shown(who string, changed *ledger) object {
	data := object{}
	if a.Memo {
		data["config.memo_required"] = "MQ=="
	}
	issuer := Address("issuer")
	return object{
		"id": who, "account_id": who, "paging_token": who, "sequence": fmt.Sprint(a.Sequence), "subentry_count": a.Entries,
		"last_modified_ledger": changed.index, "last_modified_time": changed.closed.Format(time.RFC3339),
		"thresholds": object{"low_threshold": 0, "med_threshold": 0, "high_threshold": 0},
		"flags":      object{"auth_required": false, "auth_revocable": false, "auth_immutable": false, "auth_clawback_enabled": false},
		"balances": []any{
			object{
				"balance": "3.0000000", "liquidity_pool_id": sum("pool"), "limit": "922337203685.4775807", "last_modified_ledger": changed.index,
				"is_authorized": false, "is_authorized_to_maintain_liabilities": false, "asset_type": "liquidity_pool_shares",
			},
			object{
				"balance": "5.0000000", "limit": "922337203685.4775807", "buying_liabilities": "0.0000000", "selling_liabilities": "0.0000000", "last_modified_ledger": changed.index,
				"is_authorized": true, "is_authorized_to_maintain_liabilities": true, "asset_type": "credit_alphanum4", "asset_code": "USD", "asset_issuer": issuer,
			},
			object{"balance": coins(a.Stroops), "selling_liabilities": coins(a.Selling), "buying_liabilities": "0.0000000", "asset_type": "native"},
		},
		"signers": []any{object{"weight": 1, "key": who, "type": "ed25519_public_key"}},
		"data":    data, "num_sponsoring": 0, "num_sponsored": 0,
	}
}
