package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Deposit is a transfer that came to a payment's address.
type Deposit struct {
	DepositID             string    `json:"deposit_id"`
	Amount                string    `json:"amount"`
	Currency              string    `json:"currency"`
	TransactionHash       string    `json:"transaction_hash"`
	Status                string    `json:"status"` // seen, final, gone
	Role                  string    `json:"role"`   // counted, late, unmatched, below_dust
	Confirmations         int64     `json:"confirmations"`
	RequiredConfirmations int64     `json:"required_confirmations"`
	Timestamp             time.Time `json:"timestamp"`
}

// SuspenseEntry is money that came late, in another asset or for no payment.
type SuspenseEntry struct {
	SuspenseID      string    `json:"suspense_id"`
	Amount          string    `json:"amount"`
	Currency        string    `json:"currency"`
	Address         string    `json:"address"`
	TransactionHash string    `json:"transaction_hash"`
	TransactionID   *string   `json:"transaction_id"` // the payment that has the address; nil = none
	Reason          string    `json:"reason"`         // late, wrong_asset, wrong_network, below_minimum, unmatched
	Screening       *string   `json:"screening"`      // held, refused: the operator decides about it; nil = neither
	Status          string    `json:"status"`         // open, credited, refunded, ignored
	RefundID        *string   `json:"refund_id"`      // the refund that has the money
	CreatedAt       time.Time `json:"created_at"`
}

// SuspenseFilter selects money in suspense; zero fields select all.
type SuspenseFilter struct {
	Status, Reason string
	Limit, Offset  int // Limit 1 to 100, default 20
}

// ResolveSuspense is a decision about money in suspense. Action and Reason are required.
type ResolveSuspense struct {
	Action   string `json:"action"`              // credit, refund, ignore
	WalletID string `json:"wallet_id,omitempty"` // of credit; default the master account
	Address  string `json:"address,omitempty"`   // of refund, required there: the customer's
	Memo     string `json:"memo,omitempty"`      // of refund
	Reason   string `json:"reason"`
}

// Delivery is a webhook, and how far its delivery is.
type Delivery struct {
	DeliveryID     string     `json:"delivery_id"`
	Event          string     `json:"event"`
	ObjectID       string     `json:"object_id"`
	URL            *string    `json:"url"`
	Status         string     `json:"status"` // pending, delivered, failed, skipped
	Attempts       int        `json:"attempts"`
	ResponseStatus *int       `json:"response_status"`
	Error          *string    `json:"error"`
	NextAttemptAt  *time.Time `json:"next_attempt_at"`
	CreatedAt      time.Time  `json:"created_at"`
}

// DeliveryFilter selects webhooks; zero fields select all.
type DeliveryFilter struct {
	Status, Event, ObjectID string
	Limit, Offset           int // Limit 1 to 100, default 20
}

// Deposits lists what came to a payment's address, whether it counts or not, oldest first, and
// says how many there are.
func (c *Client) Deposits(ctx context.Context, transactionID string, limit, offset int) (page []Deposit, total int64, err error) {
	var answer struct {
		Deposits []Deposit `json:"deposits"`
		Total    int64     `json:"total"`
	}
	q := query{}.number("limit", limit).number("offset", offset)
	err = c.get(ctx, "/payments/"+url.PathEscape(transactionID)+"/deposits/", url.Values(q), &answer)
	return answer.Deposits, answer.Total, err
}

// Suspense lists money that came otherwise, newest first, and says how much matches. It takes
// a client with the role tenant_admin.
func (c *Client) Suspense(ctx context.Context, f SuspenseFilter) (page []SuspenseEntry, total int64, err error) {
	var answer struct {
		Suspense []SuspenseEntry `json:"suspense"`
		Total    int64           `json:"total"`
	}
	q := query{}.text("status", f.Status).text("reason", f.Reason).number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/suspense/", url.Values(q), &answer)
	return answer.Suspense, answer.Total, err
}

// ResolveSuspense decides about money in suspense. It takes a client with the scope admin, and
// is sent once: after an unknown outcome look at the entry.
func (c *Client) ResolveSuspense(ctx context.Context, suspenseID string, in ResolveSuspense) (e SuspenseEntry, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/suspense/" + url.PathEscape(suspenseID) + "/resolve/", body: in}, &e)
	return e, err
}

// Deliveries lists webhooks, newest first, and says how many match.
func (c *Client) Deliveries(ctx context.Context, f DeliveryFilter) (page []Delivery, total int64, err error) {
	var answer struct {
		Deliveries []Delivery `json:"deliveries"`
		Total      int64      `json:"total"`
	}
	q := query{}.text("status", f.Status).text("event", f.Event).text("object_id", f.ObjectID).number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/webhooks/deliveries/", url.Values(q), &answer)
	return answer.Deliveries, answer.Total, err
}

// Resend has a webhook delivered again, under the same id. It is sent once.
func (c *Client) Resend(ctx context.Context, deliveryID string) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/webhooks/deliveries/" + url.PathEscape(deliveryID) + "/resend/"}, nil)
}
