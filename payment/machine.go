package payment

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// Status is the state of a payment, as the wire writes it.
type Status string

// The statuses.
const (
	Waiting       Status = "waiting"
	PartiallyPaid Status = "partially_paid"
	Confirming    Status = "confirming"
	Confirmed     Status = "confirmed"
	Sending       Status = "sending"
	Completed     Status = "completed"
	Expired       Status = "expired"
	Failed        Status = "failed"
)

// trigger is what may move a payment.
type trigger string

// The triggers.
const (
	onCreate     trigger = "create"
	onDeposit    trigger = "deposit"
	onFinal      trigger = "final"
	onDropped    trigger = "dropped"
	onWindow     trigger = "window_end"
	onCancel     trigger = "cancel"
	onForwarding trigger = "forwarding"
	onForwarded  trigger = "forwarded"
	onReversed   trigger = "reversed"
	onReturned   trigger = "returned"
	onLate       trigger = "late"
)

type edge = fsm.Edge[Status, trigger]

var (
	open      = []Status{Waiting, PartiallyPaid}
	pending   = []Status{Confirming, PartiallyPaid}
	unsettled = []Status{Waiting, PartiallyPaid, Confirming}
	paid      = []Status{Confirmed, Sending, Completed}
	over      = []Status{Expired, Failed}
)

// Machine is the table of all moves of a payment.
var Machine = fsm.Machine[Status, trigger]{
	Name: "payment",
	About: "`partially_paid` is shown in webhooks; REST views show it as `waiting`. \"Live\" deposits are in a block or a mempool, " +
		"\"final\" ones have the currency's confirmations. \"Enough\" is at least amount_crypto less the tolerance. The window is the " +
		"half-open interval [created_at, expiry_time); it ends for a payment when the chain was read up to a tip asked for after expiry_time.",
	Initial: Waiting,
	States:  []Status{Waiting, PartiallyPaid, Confirming, Confirmed, Sending, Completed, Expired, Failed},
	Edges: []edge{
		{From: []Status{""}, Trigger: onCreate, To: Waiting, When: "the request is valid", Does: "a new address; no event"},
		{From: []Status{""}, Trigger: onDeposit, To: Confirming, When: "at a permanent address, at least the minimum", Does: "a payment over what came, without a window; deposit_received"},
		{From: open, Trigger: onDeposit, To: Confirming, When: "seen in time, live deposits are enough", Does: "deposit_received"},
		{From: []Status{Waiting}, Trigger: onDeposit, To: PartiallyPaid, When: "seen in time, live deposits are less", Does: "deposit_received"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: onDeposit, When: "one more, which changes nothing", Does: "deposit_received"},
		{From: paid, Trigger: onDeposit, When: "one more", Does: "deposit_received"},
		{From: []Status{Confirming}, Trigger: onFinal, To: Confirmed, When: "the final deposits alone are enough", Does: "credits those"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: onFinal, When: "the final ones are less"},
		{From: paid, Trigger: onFinal, Does: "credits it"},
		{From: pending, Trigger: onDropped, To: PartiallyPaid, When: "live deposits are less", Does: "window open or ended"},
		{From: pending, Trigger: onDropped, To: Waiting, When: "nothing is live, the window is open"},
		{From: pending, Trigger: onDropped, To: Failed, When: "nothing is live, the window ended; one that is in no block counts as gone 24 h after expiry_time"},
		{From: []Status{Confirming}, Trigger: onDropped, When: "the rest is enough"},
		{From: []Status{Waiting}, Trigger: onWindow, To: Expired, When: "nothing is live"},
		{From: []Status{PartiallyPaid}, Trigger: onWindow, To: Expired, When: "every live deposit is final", Does: "credits the part that came"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: onWindow, When: "some are not final"},
		{From: []Status{Waiting}, Trigger: onCancel, To: Expired, When: "the merchant cancels", Does: "later deposits go to suspense"},
		{From: []Status{Confirmed}, Trigger: onForwarding, To: Sending, When: "on account chains"},
		{From: []Status{Confirmed, Sending}, Trigger: onForwarded, To: Completed, When: "landed, deferred, nothing to forward, or 30 min passed", Does: "deposit_merged per deposit that merged"},
		{From: []Status{Confirmed, Sending, Completed, Expired, Failed}, Trigger: onReversed, When: "a deep reorg takes a credited deposit away", Does: "compensating posting, the host is told"},
		{From: pending, Trigger: onReversed, When: "the same, of a part that was credited before the payment came back", Does: "compensating posting, the host is told; then as dropped"},
		{From: over, Trigger: onReturned, To: Confirming, When: "a deposit that was in time is back within 24 h of the window's end; at a permanent address at any time"},
		{From: over, Trigger: onReturned, When: "a credited deposit that a reorg took away is back later", Does: "credits it when final"},
		{From: over, Trigger: onLate, To: Confirming, When: "policy credit, worth enough at the rate when seen"},
		{From: over, Trigger: onLate, When: "policy credit, worth less", Does: "credits it when final"},
		{From: []Status{PartiallyPaid}, Trigger: onLate, To: Confirming, When: "policy credit, the window ended, enough together with what is live"},
	},
}
