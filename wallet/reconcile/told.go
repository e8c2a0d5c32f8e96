package reconcile

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// DifferenceChanged is the event of a difference between the books and the chain: it was named,
// or has ended. It is told in the network's partition. Amounts are in coins of Currency.
type DifferenceChanged struct {
	Network  chain.Network `json:"network"`
	Tenant   string        `json:"tenant"`
	Address  chain.Address `json:"address"`
	Currency string        `json:"currency"`
	Kind     Kind          `json:"difference"`
	Amount   string        `json:"amount"` // what the chain holds beyond the books; below 0: less
	Held     string        `json:"held"`   // by the chain
	Height   int64         `json:"height"`
	Since    time.Time     `json:"since"`
	Ended    string        `json:"ended,omitempty"` // "gone" or "accepted"; "" = it was named
}

// EventKind implements stream.Body.
func (DifferenceChanged) EventKind() string { return "reconcile.difference_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds { return stream.KindOf[DifferenceChanged]() }

func told(d *DifferenceRow, ended string, now time.Time) (storage.Event, error) {
	return stream.Tell(DifferenceChanged{
		Network: chain.Network(d.Network), Tenant: d.Tenant, Address: chain.Address(d.Address), Currency: d.Currency, Kind: d.Kind,
		Amount: d.Amount.String(), Held: d.Held.String(), Height: d.Height, Since: d.Since, Ended: ended,
	}, d.id(), now)
}

func (d *DifferenceRow) id() string { return differenceID(d.Address, d.Currency) }

func differenceID(address, currency string) string { return address + "/" + currency }
