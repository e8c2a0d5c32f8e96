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

// Trigger is what may move a payment.
type Trigger string

// The triggers.
const (
	OnCreate     Trigger = "create"
	OnDeposit    Trigger = "deposit"
	OnFinal      Trigger = "final"
	OnDropped    Trigger = "dropped"
	OnWindow     Trigger = "window_end"
	OnCancel     Trigger = "cancel"
	OnForwarding Trigger = "forwarding"
	OnForwarded  Trigger = "forwarded"
	OnReversed   Trigger = "reversed"
	OnReturned   Trigger = "returned"
	OnLate       Trigger = "late"
)

type edge = fsm.Edge[Status, Trigger]

var (
	open      = []Status{Waiting, PartiallyPaid}
	pending   = []Status{Confirming, PartiallyPaid}
	unsettled = []Status{Waiting, PartiallyPaid, Confirming}
	paid      = []Status{Confirmed, Sending, Completed}
	over      = []Status{Expired, Failed}
)

// Machine is the table of all moves of a payment.
var Machine = fsm.Machine[Status, Trigger]{
	Name: "payment",
	About: "`partially_paid` is shown in webhooks; REST views show it as `waiting`. \"Live\" deposits are in a block or a mempool, " +
		"\"final\" ones have the currency's confirmations. \"Enough\" is at least amount_crypto less the tolerance. The window is the " +
		"half-open interval [created_at, expiry_time); it ends for a payment when the chain was read up to a tip asked for after expiry_time.",
	Initial: Waiting,
	States:  []Status{Waiting, PartiallyPaid, Confirming, Confirmed, Sending, Completed, Expired, Failed},
	Edges: []edge{
		{From: []Status{""}, Trigger: OnCreate, To: Waiting, When: "the request is valid", Does: "a new address; no event"},
		{From: []Status{""}, Trigger: OnDeposit, To: Confirming, When: "at a permanent address, at least the minimum", Does: "a payment over what came, without a window; deposit_received"},
		{From: open, Trigger: OnDeposit, To: Confirming, When: "seen in time, live deposits are enough", Does: "deposit_received"},
		{From: []Status{Waiting}, Trigger: OnDeposit, To: PartiallyPaid, When: "seen in time, live deposits are less", Does: "deposit_received"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: OnDeposit, When: "one more, which changes nothing", Does: "deposit_received"},
		{From: paid, Trigger: OnDeposit, When: "one more", Does: "deposit_received"},
		{From: []Status{Confirming}, Trigger: OnFinal, To: Confirmed, When: "the final deposits alone are enough", Does: "credits those"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: OnFinal, When: "the final ones are less"},
		{From: paid, Trigger: OnFinal, Does: "credits it"},
		{From: pending, Trigger: OnDropped, To: PartiallyPaid, When: "live deposits are less", Does: "window open or ended"},
		{From: pending, Trigger: OnDropped, To: Waiting, When: "nothing is live, the window is open"},
		{From: pending, Trigger: OnDropped, To: Failed, When: "nothing is live, the window ended; one that is in no block counts as gone 24 h after expiry_time"},
		{From: []Status{Confirming}, Trigger: OnDropped, When: "the rest is enough"},
		{From: []Status{Waiting}, Trigger: OnWindow, To: Expired, When: "nothing is live"},
		{From: []Status{PartiallyPaid}, Trigger: OnWindow, To: Expired, When: "every live deposit is final", Does: "credits the part that came"},
		{From: []Status{PartiallyPaid, Confirming}, Trigger: OnWindow, When: "some are not final"},
		{From: []Status{Waiting}, Trigger: OnCancel, To: Expired, When: "the merchant cancels", Does: "later deposits go to suspense"},
		{From: []Status{Confirmed}, Trigger: OnForwarding, To: Sending, When: "on account chains"},
		{From: []Status{Confirmed, Sending}, Trigger: OnForwarded, To: Completed, When: "landed, deferred, nothing to forward, or 30 min passed", Does: "deposit_merged per deposit that merged"},
		{From: []Status{Confirmed, Sending, Completed, Expired, Failed}, Trigger: OnReversed, When: "a deep reorg takes a credited deposit away", Does: "compensating posting, the host is told"},
		{From: pending, Trigger: OnReversed, When: "the same, of a part that was credited before the payment came back", Does: "compensating posting, the host is told; then as dropped"},
		{From: over, Trigger: OnReturned, To: Confirming, When: "a deposit that was in time is back within 24 h of the window's end"},
		{From: over, Trigger: OnReturned, When: "a credited deposit that a reorg took away is back later", Does: "credits it when final"},
		{From: over, Trigger: OnLate, To: Confirming, When: "policy credit, worth enough at the rate when seen"},
		{From: over, Trigger: OnLate, When: "policy credit, worth less", Does: "credits it when final"},
		{From: []Status{PartiallyPaid}, Trigger: OnLate, To: Confirming, When: "policy credit, the window ended, enough together with what is live"},
	},
}
