package incoming

import (
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// State is what the chain says of a transfer.
type State string

// The states of a Sighting. Gone means: in no block and no mempool of ours, or
// conflicted in a block. A gone transfer that is mined again is included again;
// where it had been final before, under the next Generation.
const (
	Seen     State = "seen"     // in the mempool
	Included State = "included" // in a block
	Final    State = "final"    // has its confirmations
	Gone     State = "gone"
)

// Forward is what treasury has done about a final deposit on a deposit address.
type Forward string

// The ways of a final deposit.
const (
	ForwardNone Forward = ""           // nothing decided yet
	Forwarding  Forward = "forwarding" // a sweep is under way
	Forwarded   Forward = "forwarded"  // the sweep has landed
	Deferred    Forward = "deferred"   // not worth it now: dust, cost, no gas float, failed sweep
	NotNeeded   Forward = "not_needed" // UTXO networks, shared addresses
)

// Sighting is one transfer to an address of ours: fact and queue at once. It
// lives in the network's partition under the id Key(Tx, Ordinal); Due is set
// whenever its owner has not handled its last change.
type Sighting struct {
	Network    string `db:"network"`
	Tx         string `db:"tx"`
	Ordinal    int    `db:"ordinal"`
	Generation int    `db:"generation"` // 1, and +1 each time it is mined again after having been final
	State      State  `db:"state"`
	Address    string `db:"address"` // ours
	Tenant     string `db:"tenant"`  // owner of the address
	Purpose    Use    `db:"purpose"` // of the address
	From       string `db:"from_address"`
	Memo       string `db:"memo"`
	Currency   string `db:"currency"` // "" = not one of ours; then Contract says which
	Contract   string `db:"contract"`
	// Exact is what the chain says, in whole coins; Amount the same in ledger
	// units, rounded down; −1 where it does not fit: quarantined.
	Exact  decimal.Decimal `db:"exact"`
	Amount ledger.Amount   `db:"amount"`

	Height    int64     `db:"height"` // 0 while in the mempool
	BlockHash string    `db:"block_hash"`
	BlockTime time.Time `db:"block_time"`
	// FinalAt is the height at which it is final; 0 = unknown. Seen after a fork:
	// the height that the new branch must reach without it to make it gone. Gone:
	// above 0 where it had been final.
	FinalAt   int64     `db:"final_at"`
	FirstSeen time.Time `db:"first_seen"`
	// InheritedFrom is the tx whose first sighting counts for this one: it
	// spends an input of it and pays the same address.
	InheritedFrom string   `db:"inherited_from"`
	Spends        []string `db:"spends,json"`
	Internal      bool     `db:"internal"` // made by a stored attempt of ours: no deposit
	Unproven      bool     `db:"unproven"`

	Forward    Forward `db:"forward"`
	ForwardTx  string  `db:"forward_tx"`
	ForwardFee string  `db:"forward_fee"` // "0.00010000": shown in deposit_merged
}

// Sightings is the table of transfers, in network partitions.
var Sightings = storage.NewTable[Sighting]("sightings",
	storage.Index("state", "forward", "final_at"),
	storage.Index("address", "state"),
	storage.Index("address", "height"),
	storage.Short("tx"),
)

// anyForward is the condition that finds Sightings by state and final_at along their index.
var anyForward = storage.Cond{Column: "forward", Op: storage.In, Value: []Forward{ForwardNone, Forwarding, Forwarded, Deferred, NotNeeded}}

// Key is a Sighting's id: the transfer's identity whichever block it is in.
func Key(tx string, ordinal int) string { return fmt.Sprintf("%s:%d", tx, ordinal) }

// Key is the Sighting's own id.
func (s *Sighting) Key() string { return Key(s.Tx, s.Ordinal) }

// Generated is the id that ledger transactions use: it differs each time the
// transfer is mined again after a reversal.
func (s *Sighting) Generated() string {
	return fmt.Sprintf("%s/%s/%d", s.Network, s.Key(), s.Generation)
}

// Confirmations of the sighting when the chain's head is at height head.
func (s *Sighting) Confirmations(head int64) int64 {
	if s.Height == 0 || head < s.Height || s.State == Gone || s.State == Seen {
		return 0
	}
	return head - s.Height + 1
}

// Proof is a Sighting that is final on the chain. It is made by this package
// alone, from a stored Sighting and a stored watermark, and crediting takes
// nothing else: money before finality cannot be written.
type Proof struct{ s Sighting }

// Sighting is what was proven.
func (p Proof) Sighting() Sighting { return p.s }

// Valid reports whether the proof was made by this package.
func (p Proof) Valid() bool { return p.s.Tx != "" }

// Fact is what a Handler gets: a stored Sighting as it stands now, the chain's
// head, and the proof where it is final.
type Fact struct {
	Sighting Sighting
	Version  int64 // of the stored row
	Head     int64 // height up to which the chain was read
	Final    Proof // Valid() only where Sighting.State is Final
}

// Handler takes one Fact and makes everything that follows from it durable
// before it returns nil; an error leaves the Sighting due again later. It may
// see the same Fact twice, and miss states that passed quickly. A Generation
// above 1 says that every one before it is gone: a Handler that credited one and
// was not told so (its process died, or it refused) takes that back first. Two
// processes may bring two Facts of one Sighting at once: the lower Version is
// then the older.
type Handler func(ctx context.Context, f Fact) error

// Use is what an address of ours is for.
type Use string

// The uses of addresses.
const (
	UsePayment Use = "payment" // handed out to one payment
	UseHot     Use = "hot"     // the tenant's hot address
	UseChange  Use = "change"  // change of our own transactions on UTXO networks
	// UseAccount is the tenant's account on a network where payments share one: what
	// comes there under no address of ours has lost its way.
	UseAccount Use = "account"
	// UseRetired is a hot address that was replaced: see Pool.ReplaceHot. It is watched for ever.
	// Payouts that were signed go on from it, and sweeps empty it.
	UseRetired Use = "retired"
)

// hot reports whether much comes to and leaves an address of this use, or did.
func (u Use) hot() bool { return u == UseHot || u == UseRetired }

// AddressRow is the directory entry of one derived address, in the network's
// partition under the address itself. Seq is dense: 1, 2, 3 … as they were
// derived; a scanner knows by it whether it has them all. The row of a free
// address is due: that is how a process claims it to lease it to a tenant.
type AddressRow struct {
	Seq     int64     `db:"seq"`
	Index   int64     `db:"key_index"`
	Key     string    `db:"key_ref"`
	Tenant  string    `db:"tenant"` // "" until leased
	Use     Use       `db:"use_for"`
	Created time.Time `db:"created_at"`
	// WatchUntil ends scanning of an old payment address; zero = for ever.
	WatchUntil time.Time `db:"watch_until"`
}

// Addresses is the directory, in network partitions.
var Addresses = storage.NewTable[AddressRow]("addresses",
	storage.Unique("seq"),
	storage.Index("tenant", "use_for"),
)

// Holding is what an address held of the native coin after a block, when all of it was
// explained, in the network's partition under the address. An address has one once it
// sent a transaction, and a hot one always. Under the address and "/before" is an older
// one, to which a fork goes back; under "round" is the last round, by its height.
type Holding struct {
	Amount decimal.Decimal `db:"amount"` // whole coins, exact
	Nonce  int64           `db:"nonce"`  // the next one
	Height int64           `db:"height"`
}

// Holdings is the table of them. A fork drops those above it.
var Holdings = storage.NewTable[Holding]("holdings", storage.Index("height"))

// Cursor is how far a network was read, one row per network, id "cursor".
type Cursor struct {
	Trail Trail `db:"trail"`
	Head  int64 `db:"head"`
	// Final is the watermark: the highest block that the network itself called
	// final, 0 where it has no such notion. It falls by an operator's hand alone.
	Final int64 `db:"final"`
	// TipRead is when the tip was last read whose blocks are all processed: an
	// expiry before it can be decided.
	TipRead  time.Time `db:"tip_read"`
	HeadTime time.Time `db:"head_time"` // block time of the head
	Halted   string    `db:"halted"`    // why the network is halted, "" = it is not
}

// Cursors is the table of cursors, in network partitions.
var Cursors = storage.NewTable[Cursor]("cursors")

// CursorID is the id of a network's only cursor.
const CursorID = "cursor"

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{Sightings.Table, Addresses.Table, Holdings.Table, Cursors.Table, AssetHalts.Table, Unlisted.Table, Missing.Table, Forks.Table}
}
