package treasury

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// SweepChanged is the event of a sweep that was planned, has another state, waits for
// another reason, or has waited for Config.StuckAfter. Amounts are in coins, "" where the
// process that told of it does not list their currency.
type SweepChanged struct {
	SweepID string     `json:"sweep_id"`
	From    SweepState `json:"from"` // "" = it was planned
	To      SweepState `json:"to"`
	// Reason is what it waits for: one of the Wait… constants or an outgoing.Reason; "" = it
	// waits for nothing that is known.
	Reason   string        `json:"reason,omitempty"`
	Was      string        `json:"was,omitempty"`
	Detail   string        `json:"detail,omitempty"` // in words, for a person
	Since    time.Time     `json:"since,omitzero"`   // when it began to wait for Reason
	Long     bool          `json:"long,omitempty"`   // a person should look: it has waited for Config.StuckAfter
	Tenant   string        `json:"tenant"`
	Network  chain.Network `json:"network"`
	Currency string        `json:"currency"`
	Address  chain.Address `json:"address"`        // the deposit address
	Deposits int           `json:"deposits"`       // how many it forwards
	Amount   string        `json:"amount"`         // what the address held when it was last looked at
	MaxCost  string        `json:"max_cost"`       // the most that the sweep itself may cost, in coins of Gas; "0" = not decided
	GasSent  string        `json:"gas_sent"`       // gas that was transferred to the address for it, in coins of Gas
	Cost     string        `json:"cost,omitempty"` // what its transaction took, in coins of Gas with 8 places; "" = not known
	Tx       string        `json:"tx,omitempty"`   // once it has landed
	Gas      string        `json:"gas,omitempty"`  // the network's own currency
}

// EventKind implements stream.Body.
func (SweepChanged) EventKind() string { return "treasury.sweep_changed" }

// FundsChanged is the event of a tenant's gas on a network: the operator's coins were too few
// to set a network fee aside, or bear it again. What was refused waits as WaitGasShort until
// the hot address is topped up or what is set aside comes back. It is told again once a
// reservation was looked at, which what waits has done within an hour. Amounts are in coins
// of Currency.
type FundsChanged struct {
	Network  chain.Network `json:"network"`
	Tenant   string        `json:"tenant"`
	Currency string        `json:"currency"` // the network's own
	Short    bool          `json:"short"`    // false = the funds are enough again
	Needed   string        `json:"needed"`   // the reservation that was refused
	Free     string        `json:"free"`     // what the operator has there and is not set aside
}

// EventKind implements stream.Body.
func (FundsChanged) EventKind() string { return "treasury.funds_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds {
	return stream.Join(stream.KindOf[SweepChanged](), stream.KindOf[FundsChanged]())
}

// tellFunds adds the event of a gas float to the Change that writes it as g. free is what was
// not set aside before.
func (t *Treasury) tellFunds(c *storage.Change, gas *chain.Currency, in chain.Intent, was, g GasFloat, free ledger.Amount) error {
	if (was.Lacking > 0) == (g.Lacking > 0) {
		return nil
	}
	e, err := stream.Tell(FundsChanged{
		Network: gas.Network, Tenant: in.Tenant, Currency: gas.Code, Short: g.Lacking > 0,
		Needed: gas.Decimal(max(was.Lacking, g.Lacking)).String(), Free: gas.Decimal(free).String(),
	}, "funds/"+gas.Code, t.cfg.Now())
	c.Tell = append(c.Tell, e)
	return err
}

// write adds a sweep and its note to a Change, and tells of it where there is something to
// tell.
func (t *Treasury) write(c *storage.Change, j *job, due time.Time) error {
	c.Put = append(c.Put, j.rows(due)...)
	return t.tell(c, j)
}

// tell adds the event of a sweep that a Change writes.
func (t *Treasury) tell(c *storage.Change, j *job) error {
	long := j.note.Alerted != "" && j.note.Alerted != j.told.Alerted
	if j.s.State == j.from && j.note.Waiting == j.told.Waiting && !long {
		return nil
	}
	b := SweepChanged{
		SweepID: j.row.ID, From: j.from, To: j.s.State, Reason: j.note.Waiting, Was: j.told.Waiting, Since: j.note.Since, Long: long,
		Tenant: j.s.Tenant, Network: chain.Network(j.s.Network), Currency: j.s.Currency, Address: chain.Address(j.s.Address),
		Deposits: len(j.s.Deposits), Tx: j.s.Tx,
	}
	switch j.s.State {
	case SweepDone: // it has ended, and what it waited for has
		b.Reason, b.Since, b.Cost = "", time.Time{}, j.s.Reason
	case SweepReplaced:
		b.Reason, b.Since, b.Detail = "", time.Time{}, j.s.Reason
	default:
		b.Detail = j.s.Reason
	}
	coins := func(cur *chain.Currency, err error, a ledger.Amount) string {
		if err != nil {
			return ""
		}
		return cur.Decimal(a).String()
	}
	cur, err := t.cfg.Registry.Currency(j.s.Currency)
	b.Amount = coins(cur, err, j.note.Amount)
	gas, err := t.cfg.Registry.Gas(b.Network)
	b.MaxCost, b.GasSent = coins(gas, err, j.note.MaxCost), coins(gas, err, j.note.Sent)
	if err == nil {
		b.Gas = gas.Code
	}
	e, err := stream.Tell(b, j.row.ID, t.cfg.Now())
	c.Tell = append(c.Tell, e)
	return err
}

// stored notes that a sweep and its note are in the store as they stand.
func (j *job) stored() { j.from, j.told = j.s.State, j.note }
