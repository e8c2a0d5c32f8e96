package incoming

import (
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// HaltChanged is the event of a halt that the library has begun or ended. The library halts a
// network after a fork below its final blocks. Nothing is credited or sent there until an
// operator resumes it. The library halts a currency whose logs and balances differ, or of which
// a payout or sweep brought less than was ordered. Payouts of that currency wait until an operator lifts the halt.
type HaltChanged struct {
	Network  chain.Network `json:"network"`
	Currency string        `json:"currency,omitempty"` // "" = the whole network
	Halted   bool          `json:"halted"`             // false = it has ended
	Reason   string        `json:"reason"`             // why it was halted
	Height   int64         `json:"height,omitempty"`   // of a whole network: up to where it was read
}

// EventKind implements stream.Body.
func (HaltChanged) EventKind() string { return "incoming.halt_changed" }

// Forked is the event of a fork that was followed: blocks were replaced by others.
type Forked struct {
	Network   chain.Network `json:"network"`
	Height    int64         `json:"height"`     // of the lowest block that both branches have
	Head      int64         `json:"head"`       // up to where the branch that was left had been read
	TakenBack int           `json:"taken_back"` // transfers of ours on the branch that was left; they wait to be in a block again
	Gone      int           `json:"gone"`       // of them, those that were final: they count for nothing until they are found again
}

// EventKind implements stream.Body.
func (Forked) EventKind() string { return "incoming.forked" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds {
	return stream.Join(stream.KindOf[HaltChanged](), stream.KindOf[Forked]())
}

// haltObject is what the halts of a network are called as the object of their events.
const haltObject = "halt"

// tellHalt adds the event of a halt to the Change that begins or ends it.
func tellHalt(c *storage.Change, h HaltChanged, now time.Time) error {
	e, err := stream.Tell(h, haltObject, now)
	c.Tell = append(c.Tell, e)
	return err
}

// telling adds the events of the currencies that a Change of transfers halts.
func (n *Network) telling(c storage.Change) (storage.Change, error) {
	for _, r := range c.Put {
		if r.Table != AssetHalts.Table {
			continue
		}
		h := HaltChanged{Network: n.name, Currency: r.ID, Halted: true, Reason: AssetHalts.Value(r).Reason}
		if err := tellHalt(&c, h, n.cfg.Now()); err != nil {
			return c, err
		}
	}
	return c, nil
}

// tellFork adds the event of a fork to the Change that follows it.
func (n *Network) tellFork(c *storage.Change, head, height int64) error {
	f := Forked{Network: n.name, Height: height, Head: head}
	for _, r := range c.Put {
		if r.Table != Sightings.Table {
			continue
		}
		if f.TakenBack++; Sightings.Value(r).State == Gone {
			f.Gone++
		}
	}
	e, err := stream.Tell(f, forkID, n.cfg.Now())
	c.Tell = append(c.Tell, e)
	return err
}
