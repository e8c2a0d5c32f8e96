package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// Event is a webhook that was received and verified. Events may come twice and
// out of order: remember ID, or look at the object itself.
type Event struct {
	ID        string          `json:"-"` // the same on every attempt
	Event     string          `json:"event"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// Decode reads the data of an event into a struct of yours.
func (e *Event) Decode(into any) error { return decode(e.Data, into) }

// Errors of ReadEvent: not from the service, or replayed.
var (
	ErrSignature = webhook.ErrSignature
	ErrStale     = webhook.ErrStale
)

const maxEvent = 1 << 20

// ReadEvent reads a delivery on the receiver's side and verifies its signature
// with the webhook secret; for a day after a change of the secret give both. now
// is the receiver's time. Answer 2xx when it has been dealt with: anything else
// has it sent again.
func ReadEvent(r *http.Request, now time.Time, secrets ...string) (*Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
	if err != nil {
		return nil, fmt.Errorf("client: reading the event: %w", err)
	}
	if len(body) > maxEvent {
		return nil, errors.New("client: the event is too large")
	}
	if err := webhook.Verify(r.Header, body, now, 0, secrets...); err != nil {
		return nil, err
	}
	e := &Event{ID: r.Header.Get(webhook.HeaderStandardID)}
	if err := decode(body, e); err != nil {
		return nil, err
	}
	return e, nil
}
