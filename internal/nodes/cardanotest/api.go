package cardanotest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

type object = map[string]any

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// Paths of the APIs below the server's URL; Ogmios is at the URL itself.
const (
	Kupo       = "/kupo"
	Blockfrost = "/blockfrost"
)

// ServeHTTP implements http.Handler.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	fail := n.fault.Fail
	n.mu.Unlock()
	if fail {
		http.Error(w, "the node is away", http.StatusServiceUnavailable)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, Kupo):
		n.kupo(w, r, strings.TrimPrefix(r.URL.Path, Kupo))
	case strings.HasPrefix(r.URL.Path, Blockfrost):
		n.blockfrost(w, r, strings.TrimPrefix(r.URL.Path, Blockfrost))
	case r.Header.Get("Upgrade") != "":
		n.follow(w, r)
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var q question
		if json.Unmarshal(body, &q) != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		result, refused := n.ogmios(q)
		if n.lost(q.Method) {
			panic(http.ErrAbortHandler)
		}
		status := http.StatusOK
		if refused != nil {
			status = http.StatusBadRequest
		}
		n.write(w, status, q.Method, answer(q, result, refused))
	}
}

// lost reports whether the answer of a submission gets lost, once.
func (n *Node) lost(method string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	lose := n.fault.Lose && (method == "submitTransaction" || method == "/tx/submit")
	n.fault.Lose = n.fault.Lose && !lose
	return lose
}

func (n *Node) tampered(what string, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	n.mu.Lock()
	change, asked := n.fault.Tamper, n.fault.Asked
	n.mu.Unlock()
	if asked != nil {
		asked(what)
	}
	if change != nil {
		body = change(what, body)
	}
	return body
}

func (n *Node) write(w http.ResponseWriter, status int, what string, v any) {
	w.Header().Set("Content-Type", "application/json")
	body := n.tampered(what, v)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

type question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func answer(q question, result any, refused *refusal) object {
	a := object{"jsonrpc": "2.0", "method": q.Method, "id": nil}
	if refused != nil {
		a["error"] = object{"code": refused.code, "message": refused.rule}
	} else {
		a["result"] = result
	}
	return a
}

func ada(v any) object { return object{"ada": object{"lovelace": v}} }

func (n *Node) param(name string, real int64) int64 {
	if v, ok := n.fault.Params[name]; ok {
		return v
	}
	return real
}

// ogmios answers what needs no session.
func (n *Node) ogmios(q question) (any, *refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch q.Method {
	case "queryNetwork/genesisConfiguration":
		if n.fault.Magic != 0 {
			return object{"era": "shelley", "networkMagic": n.fault.Magic}, nil
		}
		return object{"era": "shelley", "networkMagic": magic}, nil
	case "queryLedgerState/protocolParameters":
		return object{
			"minFeeCoefficient": n.param("minFeeA", minFeeA), "minFeeConstant": ada(n.param("minFeeB", minFeeB)),
			"maxTransactionSize": object{"bytes": maxTxSize}, "minUtxoDepositCoefficient": n.param("coinsPerUTxOByte", coinsPerUTxOByte),
		}, nil
	case "queryLedgerState/utxo":
		return n.references(q.Params), nil
	case "submitTransaction":
		var p struct {
			Transaction struct {
				CBOR string `json:"cbor"`
			} `json:"transaction"`
		}
		raw := []byte(nil)
		if json.Unmarshal(q.Params, &p) == nil {
			raw, _ = hex.DecodeString(p.Transaction.CBOR)
		}
		id, err := n.submit(raw)
		if r := (*refusal)(nil); errors.As(err, &r) {
			return nil, r
		}
		return object{"transaction": object{"id": id}}, nil
	}
	return nil, &refusal{-32601, "Method not found"}
}

func (n *Node) references(params json.RawMessage) []object {
	var p struct {
		List []struct {
			Transaction struct {
				ID string `json:"id"`
			} `json:"transaction"`
			Index uint64 `json:"index"`
		} `json:"outputReferences"`
	}
	list := []object{}
	if json.Unmarshal(params, &p) != nil {
		return list
	}
	for _, x := range p.List {
		o, ok := n.utxo[ref{x.Transaction.ID, x.Index}]
		if !ok {
			continue
		}
		value := ada(o.coin)
		for k, v := range o.tokens {
			policy, name := k[:56], k[57:]
			if value[policy] == nil {
				value[policy] = object{}
			}
			value[policy].(object)[name] = v
		}
		a := object{"transaction": object{"id": x.Transaction.ID}, "index": x.Index, "address": text(o.address), "value": value}
		if o.script {
			a["script"] = object{"language": "native"}
		}
		list = append(list, a)
	}
	return list
}

func (b *block) point() object { return object{"slot": b.slot, "id": b.hash} }

func (b *block) tip() object { return object{"slot": b.slot, "id": b.hash, "height": b.height} }

func (n *Node) on(hash string) (int, bool) {
	i := slices.IndexFunc(n.seen(), func(b *block) bool { return b.hash == hash })
	return i, i >= 0
}

// follow is a session of the chain's protocol: the node knows where its user reads.
func (n *Node) follow(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	at := "" // hash of the block that was read last; "" = the origin
	back, acquired := true, map[string]bool{}
	for {
		_, body, err := conn.Read(r.Context())
		var q question
		if err != nil || json.Unmarshal(body, &q) != nil {
			return
		}
		var result any
		var refused *refusal
		switch q.Method {
		case "findIntersection":
			result, refused = n.intersect(q.Params, &at)
			back = back || refused == nil
		case "nextBlock":
			for {
				n.mu.Lock()
				changed := n.changed
				result = n.step(&at, &back)
				n.mu.Unlock()
				if result != nil {
					break
				}
				select { // at the head: the answer comes when the chain has grown
				case <-changed:
				case <-r.Context().Done():
					return
				}
			}
		case "acquireMempool":
			acquired = map[string]bool{}
			for _, id := range n.Waiting() {
				acquired[id] = true
			}
			result = object{"acquired": "mempool", "slot": 1}
		case "hasTransaction":
			var p struct {
				ID string `json:"id"`
			}
			_ = json.Unmarshal(q.Params, &p)
			result = acquired[p.ID]
		default:
			result, refused = n.ogmios(q)
		}
		if conn.Write(r.Context(), websocket.MessageText, n.tampered(q.Method, answer(q, result, refused))) != nil {
			return
		}
	}
}

func (n *Node) intersect(params json.RawMessage, at *string) (any, *refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var p struct {
		Points []json.RawMessage `json:"points"`
	}
	_ = json.Unmarshal(params, &p)
	seen := n.seen()
	tip := seen[len(seen)-1].tip()
	for _, raw := range p.Points {
		if string(raw) == `"origin"` {
			*at = ""
			return object{"intersection": "origin", "tip": tip}, nil
		}
		var x struct {
			Slot int64  `json:"slot"`
			ID   string `json:"id"`
		}
		_ = json.Unmarshal(raw, &x)
		if i, ok := n.on(x.ID); ok && seen[i].slot == x.Slot {
			*at = x.ID
			return object{"intersection": seen[i].point(), "tip": tip}, nil
		}
	}
	return nil, &refusal{1000, "No intersection found."}
}

// step is the next answer of the chain's protocol; nil = it is at the head.
func (n *Node) step(at *string, back *bool) any {
	seen := n.seen()
	tip := seen[len(seen)-1].tip()
	i := -1
	if *at != "" {
		var ok bool
		if i, ok = n.on(*at); !ok {
			*at = seen[0].hash
			return object{"direction": "backward", "point": seen[0].point(), "tip": tip}
		}
	}
	if *back {
		*back = false
		if i < 0 {
			return object{"direction": "backward", "point": "origin", "tip": tip}
		}
		return object{"direction": "backward", "point": seen[i].point(), "tip": tip}
	}
	if i+1 >= len(seen) {
		return nil
	}
	b := seen[i+1]
	*at = b.hash
	txs := []object{}
	for _, m := range b.moves {
		x := object{"id": m.id, "spends": "inputs"}
		if !n.fault.Partial {
			x["cbor"] = hex.EncodeToString(m.raw)
		}
		txs = append(txs, x)
	}
	return object{"direction": "forward", "tip": tip, "block": object{
		"type": "praos", "era": "conway", "id": b.hash, "ancestor": b.parent, "height": b.height, "slot": b.slot, "transactions": txs,
	}}
}

// kupo answers as the index does: up to the block that it has come to.
func (n *Node) kupo(w http.ResponseWriter, r *http.Request, path string) {
	n.mu.Lock()
	v := n.indexed(r, path)
	n.mu.Unlock()
	if v == nil {
		http.Error(w, `{"hint":"Endpoint not found"}`, http.StatusNotFound)
		return
	}
	n.write(w, http.StatusOK, path, v)
}

func (n *Node) indexed(r *http.Request, path string) any {
	seen := n.seen()
	seen = seen[:max(len(seen)-n.fault.IndexLag, 1)]
	last := seen[len(seen)-1]
	place := func(b *block) object { return object{"slot_no": b.slot, "header_hash": b.hash} }
	switch {
	case path == "/checkpoints":
		list := []object{}
		for back := 1; back <= len(seen); back *= 2 {
			list = append(list, place(seen[len(seen)-back]))
		}
		return list
	case strings.HasPrefix(path, "/checkpoints/"):
		slot, _ := strconv.ParseInt(strings.TrimPrefix(path, "/checkpoints/"), 10, 64)
		for _, b := range slices.Backward(seen) {
			if b.slot <= slot {
				return place(b)
			}
		}
		return json.RawMessage("null")
	case strings.HasPrefix(path, "/patterns/"):
		if n.fault.Unmatched {
			return []string{}
		}
		return []string{"*"}
	case strings.HasPrefix(path, "/matches/"):
		pattern := strings.TrimPrefix(path, "/matches/")
		list := []object{}
		if n.fault.Unmatched {
			return list
		}
		q := r.URL.Query()
		_, unspent := q["unspent"]
		after, _ := strconv.ParseInt(q.Get("created_after"), 10, 64)
		until, err := strconv.ParseInt(q.Get("created_before"), 10, 64)
		if err != nil {
			until = last.slot
		}
		for _, b := range seen {
			if b.slot < after || b.slot > until {
				continue
			}
			for _, m := range b.moves {
				for i, o := range m.outs {
					if pattern != text(o.address) && pattern != fmt.Sprintf("%d@%s", i, m.id) {
						continue
					}
					x := object{
						"transaction_id": m.id, "output_index": i, "address": text(o.address), "value": object{"coins": o.coin}, "created_at": place(b), "spent_at": nil,
					}
					if by := n.spentBy[ref{m.id, uint64(i)}]; by != nil && n.in[by.id].height <= last.height {
						if unspent {
							continue
						}
						s := place(n.in[by.id])
						s["transaction_id"], s["input_index"], s["redeemer"] = by.id, 0, nil
						x["spent_at"] = s
					}
					list = append(list, x)
				}
			}
		}
		return list
	}
	return nil
}

// blockfrost answers as a provider does.
func (n *Node) blockfrost(w http.ResponseWriter, r *http.Request, path string) {
	if path == "/tx/submit" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		id, err := n.Submit(body)
		if n.lost(path) {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			n.write(w, http.StatusBadRequest, path, object{"status_code": 400, "error": "Bad Request", "message": err.Error()})
			return
		}
		n.write(w, http.StatusOK, path, id)
		return
	}
	n.mu.Lock()
	v := n.provided(r, strings.Split(strings.TrimPrefix(path, "/"), "/"))
	n.mu.Unlock()
	if v == nil {
		n.write(w, http.StatusNotFound, path, object{"status_code": 404, "error": "Not Found", "message": "The requested component has not been found."})
		return
	}
	n.write(w, http.StatusOK, path, v)
}

func (n *Node) provided(r *http.Request, part []string) any {
	seen := n.seen()
	last := seen[len(seen)-1]
	within := func(id string) *block { // the block of a transaction
		if b := n.in[id]; b != nil && b.height <= last.height {
			return b
		}
		return nil
	}
	switch {
	case part[0] == "genesis":
		if n.fault.Magic != 0 {
			return object{"network_magic": n.fault.Magic}
		}
		return object{"network_magic": magic}
	case part[0] == "epochs":
		return object{
			"min_fee_a": n.param("minFeeA", minFeeA), "min_fee_b": n.param("minFeeB", minFeeB), "max_tx_size": maxTxSize,
			"coins_per_utxo_size": strconv.FormatInt(n.param("coinsPerUTxOByte", coinsPerUTxOByte), 10),
		}
	case part[0] == "blocks":
		i := len(seen) - 1
		if part[1] != "latest" {
			i = slices.IndexFunc(seen, func(b *block) bool { return b.hash == part[1] || strconv.FormatInt(b.height, 10) == part[1] })
		}
		if i < 0 {
			return nil
		}
		return n.ofBlock(r, seen, i, part[2:])
	case part[0] == "txs":
		return n.ofTx(within(part[1]), part, within)
	case part[0] == "mempool":
		if slices.ContainsFunc(n.pool, func(m *move) bool { return m.id == part[1] }) {
			return object{"tx": object{"hash": part[1]}}
		}
	case part[0] == "addresses":
		return n.ofAddress(r, seen, part[1], part[2])
	}
	return nil
}

func (n *Node) ofBlock(r *http.Request, seen []*block, i int, rest []string) any {
	show := func(b *block) object {
		return object{
			"time": b.slot - zeroSlot + zeroTime, "height": b.height, "hash": b.hash, "slot": b.slot, "previous_block": b.parent, "tx_count": len(b.moves),
		}
	}
	switch strings.Join(rest, "/") {
	case "":
		return show(seen[i])
	case "next":
		list := []object{}
		for _, b := range seen[i+1:] {
			list = append(list, show(b))
		}
		return paged(r, list)
	case "txs/cbor":
		list := []object{}
		for _, m := range seen[i].moves {
			list = append(list, object{"tx_hash": m.id, "cbor": hex.EncodeToString(m.raw)})
		}
		if n.fault.Partial {
			list = list[:0]
		}
		return paged(r, list)
	}
	return nil
}

func paged[T any](r *http.Request, list []T) []T {
	count, page := 100, 1
	if v, err := strconv.Atoi(r.URL.Query().Get("count")); err == nil {
		count = v
	}
	if v, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil {
		page = v
	}
	from := min((page-1)*count, len(list))
	return list[from:min(from+count, len(list))]
}

func amounts(o out) []object {
	list := []object{{"unit": "lovelace", "quantity": strconv.FormatUint(o.coin, 10)}}
	for k, v := range o.tokens {
		list = append(list, object{"unit": strings.Replace(k, ".", "", 1), "quantity": strconv.FormatUint(v, 10)})
	}
	return list
}

func (n *Node) ofTx(b *block, part []string, within func(string) *block) any {
	if b == nil {
		return nil
	}
	m := n.find(part[1])
	switch strings.Join(part[2:], "/") {
	case "":
		return object{"hash": m.id, "block": b.hash, "block_height": b.height, "slot": b.slot}
	case "cbor":
		return object{"cbor": hex.EncodeToString(m.raw)}
	case "utxos":
		list := []object{}
		for i, o := range m.outs {
			x := object{"address": text(o.address), "amount": amounts(o), "output_index": i, "collateral": false, "reference_script_hash": nil, "consumed_by_tx": nil}
			if o.script {
				x["reference_script_hash"] = "00"
			}
			if by := n.spentBy[ref{m.id, uint64(i)}]; by != nil && within(by.id) != nil {
				x["consumed_by_tx"] = by.id
			}
			list = append(list, x)
		}
		return object{"hash": m.id, "inputs": []object{}, "outputs": list}
	}
	return nil
}

func (n *Node) ofAddress(r *http.Request, seen []*block, address, what string) any {
	list := []object{}
	from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	to, err := strconv.ParseInt(r.URL.Query().Get("to"), 10, 64)
	if err != nil {
		to = seen[len(seen)-1].height
	}
	known := false
	for _, b := range seen {
		for _, m := range b.moves {
			for i, o := range m.outs {
				if text(o.address) != address {
					continue
				}
				known = true
				if what == "utxos" && n.spentBy[ref{m.id, uint64(i)}] == nil {
					list = append(list, object{"tx_hash": m.id, "output_index": i, "amount": amounts(o)})
				}
			}
			if what == "transactions" && b.height >= from && b.height <= to && slices.ContainsFunc(m.outs, func(o out) bool { return text(o.address) == address }) {
				list = append(list, object{"tx_hash": m.id, "block_height": b.height})
			}
		}
	}
	if !known {
		return nil
	}
	return paged(r, list)
}
