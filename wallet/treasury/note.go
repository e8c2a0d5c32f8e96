package treasury

import (
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Why a sweep waits. One that was handed over waits for what its order, or that of its gas,
// waits for: where none of these says it, the reason is the outgoing.Reason of that order.
const (
	WaitBelowCost = "below_cost"       // forwarding costs more than the allowed share of what the address holds
	WaitForMore   = "waits_for_more"   // it may go, and the tenant's policy would have it cost less of what it moves: see Config.Patience
	WaitNoPrice   = "no_price"         // the value cannot be judged: no price of the currency or of the gas
	WaitNoFee     = "no_fee"           // the network gives no estimate
	WaitGasShort  = "gas_float_short"  // the house lacks coins for the network's fee
	WaitDailyCap  = "daily_cap"        // the day's limit on the cost of forwarding is used up
	WaitRefused   = "refused"          // the last transaction failed: a token's issuer, a signer or a node refused it
	WaitEmpty     = "nothing_there"    // the address holds nothing of the currency, and no sweep of ours explains it
	WaitHalted    = "halted"           // an operator, the host or the library has halted the network, the currency or the tenant
	WaitTurn      = "other_sweep"      // another sweep of the address is under way, and goes first
	WaitGasStays  = "gas_did_not_help" // the address stayed short of gas after several transfers
)

// SweepNote is what is known of one sweep beside its state: what its address holds, what
// was spent on it, and why it waits. It has the sweep's id and is written in the same
// Change as the sweep. A sweep of an earlier version has none until it is looked at.
type SweepNote struct {
	Tenant   string `db:"tenant"`
	Address  string `db:"address"`
	Currency string `db:"currency"`
	// Amount is what the address held when it was last looked at, in the currency's units;
	// before the first look the sum of the deposits, or 0 where that is not known.
	Amount ledger.Amount `db:"amount"`
	// Waiting is one of the Wait… constants or the outgoing.Reason of an order that was handed
	// over; "" while the coins are on their way.
	Waiting string    `db:"waiting"`
	Since   time.Time `db:"since"` // when it began to wait for this reason
	// Next is when it is looked at again. It is looked at earlier when forwarding costs at most
	// DueBelow, or when wakeDear comes to it. Zero = at no time of its own.
	Next time.Time `db:"next"`
	// Alerted is the reason of which the operator was told, once it had lasted.
	Alerted string `db:"alerted"`
	// DueBelow is the cost of a typical sweep, in the currency's units, at or below which
	// the sweep is due again; −1 where it does not wait for that.
	DueBelow ledger.Amount `db:"due_below"`
	Tries    int           `db:"tries"` // transactions in a row that failed
	// Spent is the bound of the gas transfers and the cost of the failed tries so far, Sent
	// the gas that was transferred, and MaxCost the bound of the sweep itself, all in units
	// of the gas currency. Spent with MaxCost stays below the allowed share of Amount, and
	// where gas is to be sent, so does Spent with Sent.
	Spent   ledger.Amount `db:"spent"`
	Sent    ledger.Amount `db:"sent"`
	MaxCost ledger.Amount `db:"max_cost"`
	// Gas and GasCost are the amount and the bound of the last gas transfer; both are
	// part of Sent and Spent. The amount is kept until it lands, the bound until its cost
	// is known.
	Gas     ledger.Amount `db:"gas"`
	GasCost ledger.Amount `db:"gas_cost"`
	// Payout is the payout that needs the coins, and Allowed what the move may cost for
	// it, in units of the gas currency.
	Payout  string        `db:"payout"`
	Allowed ledger.Amount `db:"allowed"`
}

// coming reports whether the sweep was handed over and lacks no gas, or was made due and not
// looked at since.
func (n *SweepNote) coming() bool {
	return n.Waiting == "" || n.Waiting != WaitGasShort && n.DueBelow < 0 && n.Next.IsZero()
}

// allowedFor is what the sweep was allowed to cost for a payout so far.
func (n *SweepNote) allowedFor(payout string) ledger.Amount {
	if n.Payout != payout {
		return 0
	}
	return n.Allowed
}

// price is what the sweep costs at the present cost of a typical one, with what was
// spent on it before.
func (n *SweepNote) price(typical costs) (ledger.Amount, error) {
	price, err := n.Spent.Add(typical.move)
	if err == nil && n.Sent < typical.move { // its gas has to be sent yet
		price, err = price.Add(typical.fund)
	}
	return price, err
}

// SweepNotes is in network partitions, by the sweep's id.
var SweepNotes = storage.NewTable[SweepNote]("sweep_notes",
	storage.Index("currency", "due_below"),
	storage.Index("tenant", "currency", "amount"),
)
