package storage

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Kinds of activity.
const (
	ActivityPayment    = "payment"
	ActivityWithdrawal = "withdrawal"
)

// Activity is one line of a tenant's unified history: the present state of one
// payment or withdrawal. Its row's id is the payment's or withdrawal's id. It
// is put in the same Change as what it describes, so that lists, statistics
// and exports read one table. Fee + Net = Amount.
type Activity struct {
	Kind      string          `db:"kind"` // ActivityPayment or ActivityWithdrawal
	Status    string          `db:"status"`
	Currency  ledger.Asset    `db:"currency"`
	Amount    ledger.Amount   `db:"amount"` // units of Currency, as Fee and Net
	Fee       ledger.Amount   `db:"fee"`
	Net       ledger.Amount   `db:"net"`
	Address   string          `db:"address"`
	TxHash    string          `db:"tx_hash"`
	Reference string          `db:"reference"` // the merchant's: order_id or custom_id
	CreatedAt time.Time       `db:"created_at"`
	UpdatedAt time.Time       `db:"updated_at"`
	Metadata  json.RawMessage `db:"metadata,json"` // an object; nil = null
}

// Activities is the table of Activity, in the tenant's partition. Its one index has no column
// that changes: lines of one status or currency are found by what they are of.
var Activities = NewTable[Activity]("activity", Index("created_at", ColID), Short("kind", "status", "currency"))

// ActivityRow makes the row that brings id's line to a, whether it is there
// already or not. It reads the line's version, so that a stranger's write in
// between is ErrConflict. changed is false where the line is as it should be: it need not
// be written then.
func ActivityRow(ctx context.Context, s Store, p Partition, id string, a Activity) (row Row, changed bool, err error) {
	have, row, ok, err := Activities.One(ctx, s, p, id)
	if err != nil {
		return Row{}, false, err
	}
	if ok {
		was, err := Activities.Encode(have)
		if err != nil {
			return Row{}, false, err
		}
		is, err := Activities.Encode(a)
		if err != nil {
			return Row{}, false, err
		}
		changed = !slices.Equal(was, is)
	}
	return Activities.Row(id, row.Version, time.Time{}, a), changed || !ok, nil
}

// Tables lists the tables that every store needs, whichever domains use it.
// They go to Store.Open together with the domains' own.
func Tables() []*Table {
	return []*Table{OnceTable.Table, Activities.Table, Counters.Table, Events.Table, Streams.Table}
}
