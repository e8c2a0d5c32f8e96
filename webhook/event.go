package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// The event types.
const (
	PaymentStatusUpdate    = "payment_status_update"
	DepositReceived        = "deposit_received"
	DepositMerged          = "deposit_merged"
	WithdrawalStatusUpdate = "withdrawal_status_update"
	TransferStatusUpdate   = "transfer_status_update"
	WithdrawalWaiting      = "withdrawal_waiting"
	PaymentDeposit         = "payment_deposit"
	RefundUpdate           = "refund_update"
)

// Status is how far a delivery has come.
type Status string

// The states of a delivery.
const (
	StatusPending   Status = "pending"
	StatusDelivered Status = "delivered"
	StatusFailed    Status = "failed"  // given up, Event.Error says why; can be replayed
	StatusSkipped   Status = "skipped" // no URL is configured or the event is not enabled, and the host has no Notifier of its own
)

// Event is one row of the outbox, in the tenant's partition: put in the same
// Change as what it tells about. Due is its next attempt.
type Event struct {
	Type     string    `db:"type"`
	Object   string    `db:"object"` // id of the payment, withdrawal, transfer or deposit; with more behind a slash, where events of another kind are numbered for themselves
	Seq      int64     `db:"seq"`    // per object, 1, 2, 3 … without a gap
	URL      string    `db:"url"`    // the object's own callback; "" = the tenant's
	Body     string    `db:"body"`   // the exact bytes that are signed and sent
	Created  time.Time `db:"created_at"`
	Status   Status    `db:"status"`
	Attempts int       `db:"attempts"`
	Response int       `db:"response"` // last HTTP status, 0 = none
	Error    string    `db:"error"`    // last failure, without secrets
	Done     time.Time `db:"done_at"`  // when it ended; of a pending one: when it was replayed or first held back, zero = never
}

// Events is the outbox.
var Events = storage.NewTable[Event]("events",
	storage.Unique("object", "seq"),
	storage.Index("status", "created_at"), storage.Index("created_at"), storage.Index("type", "created_at"),
)

// NewEvent makes the outbox row of one event: id derived from object and seq,
// due at once. data is the event's documented data; it is encoded here, once,
// as the body {event, data, timestamp}. Put takes it into a Change.
func NewEvent(typ, object string, seq int64, url string, data any, now time.Time) (storage.Row, error) {
	body, err := json.Marshal(struct {
		Event     string `json:"event"`
		Data      any    `json:"data"`
		Timestamp string `json:"timestamp"`
	}{typ, data, Timestamp(now)})
	if err != nil {
		return storage.Row{}, fmt.Errorf("webhook: encoding %s of %s: %w", typ, object, err)
	}
	return Events.Row(fmt.Sprintf("%s/%06d", object, seq), 0, now, Event{
		Type: typ, Object: object, Seq: seq, URL: url, Body: string(body), Created: now, Status: StatusPending,
	}), nil
}

// Timestamp writes a time as every event and view does: RFC 3339, UTC,
// milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
