package stream

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Event is one event as a consumer gets it. Partition and Number name it: no other event
// has both.
type Event struct {
	storage.Event
	Partition storage.Partition
	Number    int64
	// Body is the event's Data as the type of its Kind, nil where this program does not
	// know the kind: a newer version of it has told of that.
	Body Body
}

// Body is what an event of one kind tells.
type Body interface{ EventKind() string }

// Tell is an event for Change.Tell. Its error is of a Body that cannot be written as JSON.
func Tell(b Body, object string, at time.Time) (storage.Event, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return storage.Event{}, fmt.Errorf("stream: event %s of %s: %w", b.EventKind(), object, err)
	}
	return storage.Event{Kind: b.EventKind(), Object: object, At: at, Data: data}, nil
}

// Kinds reads bodies, by kind.
type Kinds map[string]func(json.RawMessage) (Body, error)

// KindOf is the entry of a type in Kinds.
func KindOf[T Body]() Kinds {
	var zero T
	return Kinds{zero.EventKind(): func(data json.RawMessage) (Body, error) {
		var b T
		err := json.Unmarshal(data, &b)
		return b, err
	}}
}

// Join is all of some Kinds.
func Join(all ...Kinds) Kinds {
	out := Kinds{}
	for _, k := range all {
		maps.Copy(out, k)
	}
	return out
}

// Event is the stored row with its Body.
func (k Kinds) Event(r storage.Row, number int64) (Event, error) {
	e := Event{Event: storage.Events.Value(r), Partition: r.Partition, Number: number}
	read := k[e.Kind]
	if read == nil {
		return e, nil
	}
	body, err := read(e.Data)
	if err != nil {
		return e, fmt.Errorf("stream: event %d of %s, %s: %w", number, r.Partition, e.Kind, err)
	}
	e.Body = body
	return e, nil
}

// Tx is where a consumer writes what belongs to an event. Both are nil where the store
// has no transactions of a host, and for events that are of no tenant.
type Tx struct {
	SQL   *sql.Tx
	Store storage.Tx
}

// Consumer is code of the host that hears events.
type Consumer struct {
	// Name is where its places are kept: letters, digits, - and _, at most 60. Another name
	// is another consumer, which hears everything again.
	Name string
	// Handle does what an event asks for. It writes through tx and does not end it. An error
	// rolls back what it wrote; the event comes again. ctx ends a little before the event
	// may be given to another process. It is called by one goroutine per partition.
	Handle func(ctx context.Context, tx Tx, e Event) error
	// Since passes over events from before it. Defaults to all that are kept. What was
	// registered first counts.
	Since time.Time
	// Tries is after how many failures in a row an event becomes a dead letter. Defaults to
	// 12, which take some five hours.
	Tries int
}

const defaultTries = 12

// pause is how long an event waits after its nth failure.
func pause(n int) time.Duration {
	return min(time.Second<<min(2*(n-1), 20), time.Hour)
}

func (c *Consumer) check() error {
	if c.Handle == nil {
		return fmt.Errorf("stream: consumer %q has no Handle", c.Name)
	}
	if c.Tries < 0 {
		return fmt.Errorf("stream: consumer %q: Tries must not be negative", c.Name)
	}
	return checkName(c.Name)
}

func checkName(name string) error {
	ok := name != "" && len(name) <= 60
	for _, r := range name {
		ok = ok && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if !ok {
		return fmt.Errorf("stream: consumer %q: a Name has 1 to 60 letters, digits, - and _", name)
	}
	return nil
}

// errStale: others deal with the consumer's events in this partition at the same time.
var errStale = errors.New("stream: the place has moved")
