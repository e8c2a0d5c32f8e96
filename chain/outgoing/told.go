package outgoing

import (
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// OrderKind is what an order is for that the house sends to itself.
type OrderKind string

// The kinds of orders that OrderChanged tells of.
const (
	OrderGas   OrderKind = "gas"   // gas for a deposit address, to pay for its sweep
	OrderMerge OrderKind = "merge" // merges coins that a payout needs
	OrderChild OrderKind = "child" // pays for a transaction that nodes keep waiting
	OrderFill  OrderKind = "fill"  // uses up a nonce that nothing of ours has
)

// OrderChanged is the event of an order of the house's own, which is not a payout or a
// sweep: it was made, has another state, or waits for another reason. The state of a payout
// is told by withdrawal.Changed, that of a sweep by treasury.SweepChanged. Amounts are in
// coins, "" where the process that told of it does not list their currency.
type OrderChanged struct {
	OrderID   string        `json:"order_id"`
	Kind      OrderKind     `json:"order_kind"`
	From      State         `json:"from"` // "" = it was made
	To        State         `json:"to"`
	Reason    Reason        `json:"reason,omitempty"` // what it waits for; of one that has failed, why
	Was       Reason        `json:"was,omitempty"`
	Tenant    string        `json:"tenant"`
	Network   chain.Network `json:"network"`
	Currency  string        `json:"currency"`
	Sender    chain.Address `json:"sender,omitempty"` // "" where coins are outputs
	Recipient chain.Address `json:"recipient"`
	Amount    string        `json:"amount,omitempty"` // "0" of a fill
	Tx        string        `json:"tx,omitempty"`
	// Cost is what the network took, in coins of Gas; "" where it is not known yet.
	Cost string `json:"cost,omitempty"`
	Gas  string `json:"gas,omitempty"`
}

// EventKind implements stream.Body.
func (OrderChanged) EventKind() string { return "outgoing.order_changed" }

// HaltChanged is the event of a halt by an operator: it has begun or was lifted. It is told in
// the partition of each network that the halt is of. One of every network is told in
// storage.System, too, with Network "".
type HaltChanged struct {
	Network  chain.Network `json:"network,omitempty"`  // "" = every network
	Currency string        `json:"currency,omitempty"` // "" = every currency
	Tenant   string        `json:"tenant,omitempty"`   // "" = every tenant
	Wide     bool          `json:"wide,omitempty"`     // it is of every network
	Halted   bool          `json:"halted"`             // false = it was lifted
	Reason   string        `json:"reason"`             // why it was halted
	Since    time.Time     `json:"since"`              // when that was
	By       string        `json:"by"`                 // who halted it
}

// EventKind implements stream.Body.
func (HaltChanged) EventKind() string { return "outgoing.halt_changed" }

// Operated is the event of an operator's call that has intervened: see Operation. A decision
// about money in suspense is told in the tenant's partition. A call that concerns every
// network is told in the partition of each and in storage.System, with the same OperationID.
type Operated struct {
	OperationID string        `json:"operation_id"`
	Operation   OperationKind `json:"operation"`
	By          string        `json:"by"`
	Reason      string        `json:"reason"`
	Network     chain.Network `json:"network,omitempty"` // "" = every one
	Tenant      string        `json:"tenant,omitempty"`  // "" = of no single tenant
	About       string        `json:"about,omitempty"`   // Operation.Object
	Before      string        `json:"before"`
	After       string        `json:"after"`
	Copied      bool          `json:"copied,omitempty"` // storage.System has the event, too
}

// EventKind implements stream.Body.
func (Operated) EventKind() string { return "outgoing.operated" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds {
	return stream.Join(stream.KindOf[OrderChanged](), stream.KindOf[HaltChanged](), stream.KindOf[Operated]())
}

// kindOf is what an order is for; "" where others tell of its state.
func kindOf(id string, p chain.Purpose) OrderKind {
	switch {
	case p == chain.ForGas:
		return OrderGas
	case p != chain.ForCancel:
		return ""
	case helps(id):
		return ParseID(id).Kind
	}
	return OrderFill
}

// tell adds the event of an order to the Change that writes it as v: was and waited are its
// state and reason as they are stored. Nothing is told where neither changes.
func (n *Sender) tell(c *storage.Change, id string, was State, waited Reason, v *IntentRow, o *Outcome) error {
	kind := kindOf(id, v.Purpose)
	if kind == "" || v.State == was && v.Reason == waited {
		return nil
	}
	b := OrderChanged{
		OrderID: id, Kind: kind, From: was, To: v.State, Reason: v.Reason, Was: waited, Tenant: v.Tenant,
		Network: v.Network, Currency: v.Currency, Sender: v.From, Recipient: v.To, Tx: v.Tx,
	}
	if n.Registry != nil {
		if cur, err := n.Registry.Currency(v.Currency); err == nil {
			b.Amount = cur.Decimal(v.Amount).String()
		}
	}
	if o != nil && o.CostTx != "" && n.gas != nil {
		b.Cost, b.Gas = n.gas.Decimal(o.Cost).String(), n.gas.Code
	}
	e, err := stream.Tell(b, id, n.Now())
	c.Tell = append(c.Tell, e)
	return err
}

// tellMade adds the events of new orders among the rows of a Change.
func (n *Sender) tellMade(c *storage.Change) error {
	for _, r := range c.Put {
		if r.Table != Intents.Table || r.Version > 0 {
			continue
		}
		v := Intents.Value(r)
		if err := n.tell(c, r.ID, "", "", &v, nil); err != nil {
			return err
		}
	}
	return nil
}

// tellHalts are the events of a change of a partition's halts.
func tellHalts(p storage.Partition, was, is []Halt, now time.Time) (out []storage.Event, err error) {
	network, _ := strings.CutPrefix(string(p), string(storage.Network("")))
	if p == storage.System {
		network = ""
	}
	tell := func(h Halt, halted bool) {
		e, failed := stream.Tell(HaltChanged{
			Network: chain.Network(network), Currency: h.Currency, Tenant: h.Tenant, Wide: h.Wide,
			Halted: halted, Reason: h.Reason, Since: h.Since, By: h.By,
		}, HaltsID, now)
		out, err = append(out, e), failed
	}
	has := func(list []Halt, s Scope) bool {
		return slices.ContainsFunc(list, func(h Halt) bool { return h.Scope == s })
	}
	for _, h := range was {
		if !has(is, h.Scope) && err == nil {
			tell(h, false)
		}
	}
	for _, h := range is {
		if !has(was, h.Scope) && err == nil {
			tell(h, true)
		}
	}
	return out, err
}

// told is the event of an Operation.
func (op *Operation) told(id string) (storage.Event, error) {
	return stream.Tell(Operated{
		OperationID: id, Operation: op.Kind, By: op.By, Reason: op.Reason, Network: op.Network, Tenant: op.Tenant, About: op.Object,
		Before: op.Before, After: op.After, Copied: op.Copied,
	}, id, op.At)
}
