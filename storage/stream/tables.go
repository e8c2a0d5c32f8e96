package stream

import (
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// registration is the row of a consumer in storage.System, under its name.
type registration struct {
	Since   time.Time `db:"since"` // events before it are passed over
	Created time.Time `db:"created_at"`
}

// Place says how far a consumer has come in a partition. Its id is the consumer's name. It
// is due while there may be events that it has not seen.
type Place struct {
	Consumer string    `db:"consumer"`
	Seen     int64     `db:"seen"`  // number of the last event that was handled or put aside
	Tries    int       `db:"tries"` // failures in a row of the next
	Error    string    `db:"error"` // of the last of them
	Updated  time.Time `db:"updated_at"`
}

// Letter is a dead letter: an event that a consumer did not handle. Its id is made by
// letterID.
type Letter struct {
	Consumer string    `db:"consumer"`
	Number   int64     `db:"number"` // of the event, in the letter's partition
	Object   string    `db:"object"`
	Kind     string    `db:"kind"`
	Error    string    `db:"error"` // of its last try; of what died before it where it was put behind that
	At       time.Time `db:"at"`    // when it was put aside
}

// The tables of this package.
var (
	registrations = storage.NewTable[registration]("consumers")
	Places        = storage.NewTable[Place]("consumer_places")
	Letters       = storage.NewTable[Letter]("dead_letters", storage.Index("consumer", "object"))
)

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{registrations.Table, Places.Table, Letters.Table}
}

// letterID keeps the letters of a consumer in the order of their numbers.
func letterID(consumer string, number int64) string { return consumer + "/" + storage.EventID(number) }
