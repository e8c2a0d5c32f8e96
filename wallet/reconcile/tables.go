package reconcile

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/storage"
)

// LookRow is how one address was last looked at, in the network's partition under the address.
// Its Due is when it is looked at next.
type LookRow struct {
	// Looked is when a look last came to its end, or else when the row was made.
	Looked time.Time `db:"looked_at"`
	Waits  string    `db:"waits"` // why the last look has not come to its end: see Kind, and WaitsNode; "" = it has
	Since  time.Time `db:"waits_since"`
	// Until is when the watch of the address was to end, as of the last look; zero = never.
	Until time.Time `db:"watch_until"`
	// Height and Cut bound what Spot.Base sums up: transfers up to a block, and transactions
	// that had ended by a time. 0 = nothing.
	Height  int64           `db:"base_height"`
	Cut     time.Time       `db:"base_cut"`
	Reading Reading         `db:"reading,json"`
	Spots   map[string]Spot `db:"spots,json"` // by currency
	// Earlier says that the address was in use before the first look at its network, and that
	// no look at it has come to its end.
	Earlier bool `db:"earlier"`
}

// Reading is what the chain has told of an address, to be judged once it is final.
type Reading struct {
	At    time.Time                  `json:"at,omitzero"`
	From  int64                      `json:"from,omitempty"`  // the height that was read before it
	To    int64                      `json:"to,omitempty"`    // the head behind it
	Hash  string                     `json:"hash,omitempty"`  // of the block at To
	Head  time.Time                  `json:"head,omitzero"`   // when the node had that block for the first time: it may have stood still since
	Held  map[string]decimal.Decimal `json:"held,omitempty"`  // by each currency that was asked for
	Again bool                       `json:"again,omitempty"` // something moved meanwhile
}

// Spot is one currency of an address.
type Spot struct {
	Base      decimal.Decimal `json:"base,omitzero"`      // of the books: see LookRow.Height
	Explained decimal.Decimal `json:"explained,omitzero"` // what the chain holds beyond the books, explained
	Why       Kind            `json:"why,omitempty"`      // the last explanation
	Height    int64           `json:"height,omitempty"`   // up to which block it explains
	At        time.Time       `json:"at,omitzero"`
	// Counted says that Transfers and Came are of all transfers up to that block that the books had then.
	Counted   bool            `json:"counted,omitempty"`
	Transfers int             `json:"transfers,omitempty"`
	Came      decimal.Decimal `json:"came,omitzero"`
	Seen      bool            `json:"seen,omitempty"`    // while LookRow.Earlier: a look has come to its end in this currency
	Sent      int             `json:"sent,omitempty"`    // transactions of ours in Base whose rounding no look has explained
	Whole     time.Time       `json:"whole,omitzero"`    // when all that is stored was summed up last, by a look that had to wait
	Suspect   Kind            `json:"suspect,omitempty"` // what the last reading showed and one more must confirm
	Readings  int             `json:"readings,omitempty"`
}

// DifferenceRow is a difference that nothing explains, under "address/currency". It is there as
// long as the difference is.
type DifferenceRow struct {
	Network  string          `db:"network"`
	Tenant   string          `db:"tenant"`
	Address  string          `db:"address"`
	Currency string          `db:"currency"`
	Kind     Kind            `db:"kind"`
	Amount   decimal.Decimal `db:"amount"` // what the chain holds beyond the books; below 0: less
	Held     decimal.Decimal `db:"held"`   // by the chain
	Height   int64           `db:"height"` // of the chain then
	Since    time.Time       `db:"since"`
	Looked   time.Time       `db:"looked_at"`
	Halted   bool            `db:"halted"` // it halted payouts: Config.Halt
}

// PlaceRow is how far the addresses and transfers of a network were looked through. A network
// has one.
type PlaceRow struct {
	Seq     int64 `db:"seq"`      // of the last address that has a LookRow
	FinalAt int64 `db:"final_at"` // of the last transfers that were final
	// Earlier is the last address that was there before the first look.
	Earlier int64 `db:"earlier_seq"`
}

// placeID is the id of a network's only PlaceRow.
const placeID = "place"

// The tables of this package, in network partitions.
var (
	Looks       = storage.NewTable[LookRow]("looks", storage.Index("looked_at"), storage.Index("waits", "waits_since"))
	Differences = storage.NewTable[DifferenceRow]("differences", storage.Index("tenant", "currency"))
	Places      = storage.NewTable[PlaceRow]("look_places")
)

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{Looks.Table, Differences.Table, Places.Table}
}
