package judge

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hook is a webhook as it arrived.
type Hook struct {
	Shop, Secret string
	Header       http.Header
	Body         []byte
	At           time.Time
	Lossy        bool  // a process may have lost count of its attempts
	Refused      error // what the library's own check of it says, for receivers
}

// hookFields are the fields of each event, as documented: no more and no less.
var hookFields = map[string][]string{
	"payment_status_update": {
		"transaction_id", "status", "previous_status", "payment_type", "order_id", "price_amount", "price_currency", "pay_amount", "pay_currency",
		"blockchain_address", "transaction_hash", "confirmations", "merchant_received_usd", "payment_history", "metadata",
	},
	"deposit_received": {"transaction_id", "deposit_id", "amount", "transaction_hash", "confirmations", "blockchain_network", "token", "timestamp"},
	"withdrawal_status_update": {
		"withdrawal_id", "status", "previous_status", "amount", "currency", "address", "transaction_hash", "network_fee", "custom_id", "metadata",
	},
	"deposit_merged": {
		"deposit_id", "transaction_id", "wallet_id", "amount", "currency", "token", "blockchain_network", "from_address", "to_address",
		"transaction_hash", "merge_transaction_hash", "network_fee", "timestamp",
	},
	"withdrawal_waiting": {"withdrawal_id", "waiting_reason", "waiting_since", "currency", "amount"},
	"payment_deposit": {
		"deposit_id", "transaction_id", "amount", "currency", "transaction_hash", "status", "previous_status", "role", "confirmations",
		"required_confirmations", "timestamp",
	},
	"transfer_status_update": {
		"transfer_id", "wallet_id", "external_id", "transfer_type", "currency", "amount", "status", "error", "callback_url",
		"created_at", "updated_at", "completed_at", "previous_status",
	},
}

// lasting are the fields that every event of one object says alike.
var lasting = map[string][]string{
	"payment_status_update":    {"pay_amount", "pay_currency", "blockchain_address"},
	"withdrawal_status_update": {"amount", "currency", "address", "custom_id", "network_fee"},
	"transfer_status_update":   {"amount", "currency", "transfer_type", "wallet_id"},
}

// letter is what is known of a webhook.
type letter struct {
	body    string
	tries   int       // attempts, by their own number
	last    time.Time // of them
	taken   bool      // a receiver has taken it
	waiting bool      // it was seen to wait
	given   bool      // it was seen to be given up
	created time.Time // where it was seen to wait
}

// Refused is told of an attempt that a merchant's receiver did not answer well: its
// merchant need not know what it told.
func (j *Judge) Refused(h Hook) {
	j.Unheard(h.Shop, h.At)
	j.tried(&h)
	j.heard(h.Shop, h.Header.Get("X-Webhook-Id"), string(h.Body))
}

// Unheard is told when a receiver's answer did not come, also where it took the webhook.
func (j *Judge) Unheard(shop string, at time.Time) { j.trouble[shop] = at }

// pauses are how long after an attempt that failed the next one comes.
var pauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}

// held is how long an attempt may be put off: by who has it in hand, or because its host
// does not answer.
const held = 10 * time.Minute

// tried is H08: attempts are numbered, six at most, and keep their distance.
func (j *Judge) tried(h *Hook) *letter {
	key := h.Shop + "/" + h.Header.Get("X-Webhook-Id")
	l := j.letters[key]
	if l == nil {
		l = &letter{}
		j.letters[key] = l
	}
	attempt := h.Header.Get("X-Webhook-Attempt")
	n, err := strconv.Atoi(attempt)
	before, at := l.tries, l.last
	j.ask("H08", before > 0 || n > 1 || err != nil, err == nil && n <= len(pauses)+1, "webhook %s came as attempt %q of six", key, attempt)
	j.ask("H08", before > 0 && !h.Lossy, n == before+1, "webhook %s came as attempt %d after attempt %d", key, n, before)
	// Stored times have no more places than a microsecond.
	far := n != before+1 || before > len(pauses) || before == 0 || h.At.Sub(at) >= pauses[before-1]-time.Microsecond
	j.ask("H08", before > 0 && !h.Lossy, far, "attempt %d of webhook %s came %s after the one before", n, key, h.At.Sub(at))
	l.tries, l.last = n, h.At
	return l
}

// Received judges a webhook that a merchant got.
func (j *Judge) Received(h Hook) {
	id := h.Header.Get("X-Webhook-Id")
	j.ask("H06", true, id != "" && signed(h) && h.Refused == nil, "%s got %q, and the documented signatures are others: %v", h.Shop, id, h.Refused)
	l := j.tried(&h)
	again := l.taken
	l.taken = true
	j.heard(h.Shop, id, string(h.Body))
	if again {
		return
	}
	var body struct {
		Event     string
		Data      map[string]json.RawMessage
		Timestamp string
	}
	err := json.Unmarshal(h.Body, &body)
	at, bad := time.Parse("2006-01-02T15:04:05.000Z", body.Timestamp)
	j.ask("envelope", true, err == nil && bad == nil && !at.IsZero(), "webhook %s has the body %s", id, h.Body)
	want, known := hookFields[body.Event]
	have := sorted(body.Data)
	j.ask("fields", true, known && slices.Equal(have, slices.Sorted(slices.Values(want))), "event %q has the fields %v", body.Event, have)
}

// heard notes what a webhook says, the first time that it is heard of: from a receiver
// or from the list of what waits.
func (j *Judge) heard(shop, id, body string) *letter {
	key := shop + "/" + id
	l := j.letters[key]
	if l == nil {
		l = &letter{}
		j.letters[key] = l
	}
	j.ask("I12", l.body != "", l.body == "" || l.body == body, "webhook %s has two bodies", key)
	if l.body != "" {
		return l
	}
	l.body = body
	var b struct {
		Event string
		Data  map[string]json.RawMessage
	}
	err := json.Unmarshal([]byte(body), &b)
	j.ask("envelope", true, err == nil, "webhook %s has the body %s", key, body)
	j.told(shop, id, b.Event, b.Data)
	return l
}

// outbox is I12 and I27 after every step: what waits to be told is what was stored, and
// is not lost; each change of state that has happened is told by one event.
func (j *Judge) outbox(s *Scene, shop *Shop) {
	waits := map[string]bool{}
	for i := range shop.Outbox {
		o := &shop.Outbox[i]
		waits[shop.ID+"/"+o.ID] = true
		l := j.heard(shop.ID, o.ID, o.Body)
		l.waiting, l.given, l.created = true, o.Failed, o.Created
		most := max(held, pauses[min(max(o.Attempts, 1), len(pauses))-1]) + s.Weather.Skew
		j.ask("H08", !o.Failed && o.Attempts > 0, o.Attempts <= len(pauses) && !o.Next.After(s.Now.Add(most)),
			"webhook %s of %s is due at %s after attempt %d", o.ID, o.Object, o.Next, o.Attempts)
	}
	for i := range shop.Sent {
		o := &shop.Sent[i]
		l := j.heard(shop.ID, o.ID, o.Body)
		j.ask("I12", !s.Weather.Restored, l.taken, "webhook %s of %s is called delivered, and its receiver never took it", o.ID, o.Object)
	}
	for _, key := range sorted(j.letters) {
		if l := j.letters[key]; l.waiting && strings.HasPrefix(key, shop.ID+"/") && !waits[key] {
			l.waiting = false
			j.ask("I12", !s.Weather.Restored, l.taken || l.given || s.Weather.Purged && s.Now.Sub(l.created) >= alone, "webhook %s waits no more, and its receiver never took it", key)
		}
	}
	j.ordered(s, shop)
	j.paths(s, shop)
	j.befallen(s, shop)
}

// ordered is that the events of one object are numbered as they happened.
func (j *Judge) ordered(s *Scene, shop *Shop) {
	if !shop.Verified {
		return
	}
	all := slices.Concat(shop.Outbox, shop.Sent)
	slices.SortFunc(all, func(a, b Letter) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Seq, b.Seq)) })
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		if a.Object == b.Object {
			j.ask("I27", true, b.Seq == a.Seq+1 || s.Weather.Purged && b.Seq > a.Seq, "events %d and %d of %s follow each other", a.Seq, b.Seq, a.Object)
		}
	}
}

// told notes what an event says of its object.
func (j *Judge) told(shop, id, event string, data map[string]json.RawMessage) {
	text := func(field string) string {
		var s string
		_ = json.Unmarshal(data[field], &s) // null, or no text, is ""
		return s
	}
	object, table := text("transaction_id"), payEdges
	switch event {
	case "withdrawal_status_update":
		object, table = text("withdrawal_id"), outEdges
	case "transfer_status_update":
		object, table = text("transfer_id"), moveEdges
	case "deposit_received":
		j.deposits[object]++
	case "deposit_merged":
		deposit := shop + "/" + text("deposit_id")
		j.ask("merged", true, j.merges[deposit] == "", "events %s and %s tell that deposit %s was merged", j.merges[deposit], id, deposit)
		j.merges[deposit] = id
	case "payment_deposit":
		deposit := text("deposit_id")
		if object == "" { // no payment has the address
			object = deposit
		}
		j.befell(id, deposit, text("previous_status"), text("status"), text("role"))
	case "withdrawal_waiting":
		object = text("withdrawal_id")
		if id > j.waits[object].event { // ids of one object are numbered
			j.waits[object] = waitTold{event: id, reason: text("waiting_reason")}
		}
	}
	owner, known := j.claims[object]
	j.ask("I16", known, owner == shop, "%s of %s was told to %s", object, owner, shop)
	j.claims[object] = shop
	if lasting[event] == nil {
		return
	}
	e := edge{text("previous_status"), text("status")}
	j.ask("I13", true, direct(table, e), "%s was told to go from %s to %s", object, e.from, e.to)
	if event == "payment_status_update" {
		kind := text("payment_type")
		ok := paid(e.to) && (kind == "full" || kind == "over") || e.to == expired && (kind == "partial" || kind == "")
		j.ask("payment-type", paid(e.to) || e.to == expired, ok, "%s is told as %s with the type %q", object, e.to, kind)
	}
	if event == "withdrawal_status_update" {
		j.ask("frozen", j.frozen[object], e.to != processing, "withdrawal %s goes out although an operator holds it", object)
		j.ask("refused", e.from == pending, e.to != failed || j.refusing, "withdrawal %s has failed before it was picked up, and nobody has refused it", object)
	}
	j.edges[object] = append(j.edges[object], e)
	says := map[string]string{}
	for _, field := range lasting[event] {
		says[field] = text(field)
	}
	before, again := j.says[object]
	if amount := before["pay_amount"]; again && event == "payment_status_update" && amount != says["pay_amount"] {
		j.restated[object] = true // what came to a permanent address may change until it is credited
		before["pay_amount"] = says["pay_amount"]
	}
	j.ask("I29", again, maps.Equal(before, says), "two events of %s say %v and %v", object, before, says)
	j.says[object] = says
}

// agrees holds what webhooks said of an object against its view.
func (j *Judge) agrees(s *Scene, shop *Shop) {
	check := func(object string, view map[string]string) {
		owner, known := j.claims[object]
		j.ask("I16", known, owner == shop.ID, "%s is of %s and was told to %s", object, shop.ID, owner)
		_, edited := s.Edited[object] // it was told as a thief had it
		says, told := j.says[object]
		if told && view["pay_amount"] == "" {
			says = maps.Clone(says)
			delete(says, "pay_amount")
			delete(view, "pay_amount")
		}
		if told && !edited {
			j.ask("I29", true, maps.Equal(says, view), "webhooks of %s say %v, and its view %v", object, says, view)
		}
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		due := j.places(p.Coin, p.Due)
		told := j.edges[p.ID]
		if p.AddressID != "" && (!paid(p.Status) || len(told) == 0 || told[len(told)-1].to != p.Status) {
			due = "" // the newest webhook is on its way
		}
		check(p.ID, map[string]string{"pay_amount": due, "pay_currency": p.Coin, "blockchain_address": p.Address})
		j.ask("I29", j.restated[p.ID], p.AddressID != "", "two events of payment %s say different amounts", p.ID)
	}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		check(p.ID, map[string]string{
			"amount": j.places(p.Coin, p.Amount), "currency": p.Coin, "address": p.Address, "custom_id": p.CustomID, "network_fee": j.places(p.Coin, p.Network),
		})
	}
	for i := range shop.Transfers {
		t := &shop.Transfers[i]
		check(t.ID, map[string]string{"amount": j.places(t.Coin, t.Amount), "currency": t.Coin, "transfer_type": t.Direction, "wallet_id": t.Wallet})
	}
}

// places writes an amount as every answer does: with 8 places, rounded down.
func (j *Judge) places(coin string, units int64) string {
	return j.coin(coin).whole(units).Truncate(8).StringFixed(8)
}

// signed computes the signatures as the documents have them, by nothing of the library's.
func signed(h Hook) bool {
	sum := func(parts ...[]byte) []byte {
		mac := hmac.New(sha256.New, []byte(h.Secret))
		_, _ = mac.Write(bytes.Join(parts, []byte("."))) // a hash takes all
		return mac.Sum(nil)
	}
	whole := sum([]byte(h.Header.Get("Webhook-Id")), []byte(h.Header.Get("Webhook-Timestamp")), h.Body)
	return h.Header.Get("X-Signature") == hex.EncodeToString(sum(h.Body)) &&
		h.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(whole)
}

// paths is I27 after every step: the changes that were told of one object, or wait to
// be, lead, each taken once, from its first state to the one that it is in.
func (j *Judge) paths(s *Scene, shop *Shop) {
	able := !s.Weather.Restored && (!s.Weather.Purged || !s.Weather.Deaf)
	check := func(kind, object, first, status string, deposits bool) {
		sum := map[string]int{first: 1}
		sum[status]--
		for _, e := range j.edges[object] {
			sum[e.from]--
			sum[e.to]++
		}
		ok := true
		for _, n := range sum {
			ok = ok && n == 0
		}
		j.ask("I27", able && first != status, ok, "%s %s is %s, and its merchant is told %v", kind, object, status, j.edges[object])
		j.ask("deposit-told", able && deposits, j.deposits[object] > 0, "payment %s was credited, and no deposit is told", object)
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		check("payment", p.ID, waiting, p.Status, p.Received > 0)
	}
	for i := range shop.Payouts {
		check("withdrawal", shop.Payouts[i].ID, pending, shop.Payouts[i].Status, false)
		j.waitTold(s, &shop.Payouts[i])
	}
	for i := range shop.Transfers {
		check("transfer", shop.Transfers[i].ID, pending, shop.Transfers[i].Status, false)
	}
}
