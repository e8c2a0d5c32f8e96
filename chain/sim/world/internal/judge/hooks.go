package judge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Hook is a webhook as it arrived.
type Hook struct {
	Shop, Secret string
	Header       http.Header
	Body         []byte
	At           time.Time
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

// Refused is told of an attempt that a merchant's receiver did not answer well: its
// merchant need not know what it told.
func (j *Judge) Refused(shop string, at time.Time, body []byte) {
	j.Unheard(shop, at)
	var b struct{ Data map[string]any }
	if json.Unmarshal(body, &b) != nil {
		return
	}
	for _, field := range []string{"transaction_id", "withdrawal_id", "transfer_id"} {
		if id, ok := b.Data[field].(string); ok {
			j.refused[id]++
		}
	}
}

// Unheard is told when a receiver's answer did not come, also where it took the webhook.
func (j *Judge) Unheard(shop string, at time.Time) { j.trouble[shop] = at }

// Received judges a webhook that a merchant got.
func (j *Judge) Received(h Hook) {
	id := h.Header.Get("X-Webhook-Id")
	j.ask("H06", true, id != "" && signed(h), "%s got %q, and the documented signatures are others", h.Shop, id)
	key := h.Shop + "/" + id
	old, again := j.letters[key]
	j.ask("I12", again, old == string(h.Body), "webhook %s has come with two bodies", id)
	attempt, err := strconv.Atoi(h.Header.Get("X-Webhook-Attempt"))
	j.ask("H08", attempt > 1 || err != nil, err == nil && attempt <= 6, "webhook %s came as attempt %q of six", id, h.Header.Get("X-Webhook-Attempt"))
	if again {
		return
	}
	j.letters[key] = string(h.Body)
	var body struct {
		Event     string
		Data      map[string]json.RawMessage
		Timestamp string
	}
	err = json.Unmarshal(h.Body, &body)
	at, bad := time.Parse("2006-01-02T15:04:05.000Z", body.Timestamp)
	j.ask("envelope", true, err == nil && bad == nil && !at.IsZero(), "webhook %s has the body %s", id, h.Body)
	want, known := hookFields[body.Event]
	have := sorted(body.Data)
	j.ask("fields", true, known && slices.Equal(have, slices.Sorted(slices.Values(want))), "event %q has the fields %v", body.Event, have)
	j.told(h.Shop, body.Event, body.Data)
}

// told notes what an event says of its object.
func (j *Judge) told(shop, event string, data map[string]json.RawMessage) {
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
	j.edges[object] = append(j.edges[object], e)
	says := map[string]string{}
	for _, field := range lasting[event] {
		says[field] = text(field)
	}
	before, again := j.says[object]
	j.ask("I29", again, maps.Equal(before, says), "two events of %s say %v and %v", object, before, says)
	j.says[object] = says
}

// agrees holds what webhooks said of an object against its view.
func (j *Judge) agrees(shop *Shop) {
	check := func(object string, view map[string]string) {
		owner, known := j.claims[object]
		j.ask("I16", known, owner == shop.ID, "%s is of %s and was told to %s", object, shop.ID, owner)
		if says, told := j.says[object]; told {
			j.ask("I29", true, maps.Equal(says, view), "webhooks of %s say %v, and its view %v", object, says, view)
		}
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		check(p.ID, map[string]string{"pay_amount": j.places(p.Coin, p.Due), "pay_currency": p.Coin, "blockchain_address": p.Address})
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

// paths is I12 at the end: the changes that a merchant was told of one object lead,
// each taken once, from its first state to the one that it is in.
func (j *Judge) paths(s *Scene, shop *Shop) {
	left := map[string]bool{}
	for i := range shop.Outbox {
		left[shop.Outbox[i].Object] = true
	}
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
		able := !shop.Deaf && !left[object] && j.refused[object] < 6 && !s.Weather.Restored && (!s.Weather.Purged || !s.Weather.Deaf)
		j.ask("told", able && first != status, ok, "%s %s is %s, and its merchant was told %v", kind, object, status, j.edges[object])
		if deposits {
			j.ask("deposit-told", able, j.deposits[object] > 0, "payment %s was credited, and no deposit was told", object)
		}
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		check("payment", p.ID, waiting, p.Status, p.Received > 0)
	}
	for i := range shop.Payouts {
		check("withdrawal", shop.Payouts[i].ID, pending, shop.Payouts[i].Status, false)
	}
	for i := range shop.Transfers {
		check("transfer", shop.Transfers[i].ID, pending, shop.Transfers[i].Status, false)
	}
}
