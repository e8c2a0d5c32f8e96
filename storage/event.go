package storage

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is what a Change tells of, for whoever follows a partition: Change.Tell. It is a
// row of Events.
type Event struct {
	Kind   string          `db:"kind"`      // what happened, at most 200 bytes
	Object string          `db:"object"`    // what it happened to, at most 200 bytes; "" = none
	At     time.Time       `db:"at"`        // when
	Data   json.RawMessage `db:"data,json"` // nil = null
}

// Stream is the row of a partition that has events, its id StreamID. Each Change that
// tells of something raises its version and makes it due at the first event's At, so
// Claim finds partitions with news. Who claimed it and has passed the news on puts it
// back with its Last and no Due; a Change that came meanwhile makes that ErrConflict.
type Stream struct {
	Last int64 `db:"last"` // number of the newest event
}

// StreamID is the id of a partition's row in Streams.
const StreamID = "stream"

// Events and Streams are the tables of Change.Tell, in any partition. The events of a
// partition have the numbers 1, 2, 3 …, without a gap and in the order in which their
// Changes happened: a reader who has seen number n, and reads what comes behind
// EventID(n), misses nothing. Only Change.Tell adds events; Drop is for those that
// nobody needs any more, and no number is used again.
var (
	Events  = NewTable[Event]("stream_events")
	Streams = NewTable[Stream]("streams")
)

// EventID is the id of an event's row. Ids are in the order of their numbers.
func EventID(number int64) string { return fmt.Sprintf("%016d", number) }
