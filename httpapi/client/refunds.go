package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// CreateRefund asks for a refund of a payment. Amount is required.
type CreateRefund struct {
	Amount      string `json:"amount"`            // what leaves the wallet, fees included; "all" = all that is left
	Address     string `json:"address,omitempty"` // "" = the customer names it by Refund.ClaimURL
	Memo        string `json:"memo,omitempty"`
	Reason      string `json:"reason,omitempty"`
	CallbackURL string `json:"callback_url,omitempty"`
	// IdempotencyKey names this refund: sent again, also by another process and within 24
	// hours, it is not made again. Defaults to one of this call alone.
	IdempotencyKey string `json:"-"`
}

// Refund gives a customer money back.
type Refund struct {
	RefundID      string     `json:"refund_id"`
	TransactionID *string    `json:"transaction_id"` // nil = of money in suspense
	SuspenseID    *string    `json:"suspense_id"`    // nil = of a payment
	WithdrawalID  *string    `json:"withdrawal_id"`  // nil until there is an address
	Status        string     `json:"status"`         // "awaiting_address", or the withdrawal's
	Amount        string     `json:"amount"`         // what leaves the wallet
	Currency      string     `json:"currency"`
	Address       *string    `json:"address"`
	Memo          *string    `json:"memo"`
	Reason        *string    `json:"reason"`
	FailureReason *string    `json:"failure_reason"`
	WaitingReason *string    `json:"waiting_reason"`
	WaitingSince  *time.Time `json:"waiting_since"`
	ExpiresAt     *time.Time `json:"expires_at"` // of ClaimURL
	ClaimURL      *string    `json:"claim_url"`  // whoever has it gets the money; nil = there is none
	CallbackURL   *string    `json:"callback_url"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`
}

// RefundFilter selects refunds; zero fields select all.
type RefundFilter struct {
	TransactionID, SuspenseID string
	Status                    string
	DateFrom, DateTo          string // inclusive: a datetime or a date
	Limit, Offset             int    // Limit 1 to 100, default 20
}

// Claim is what a claim link gives.
type Claim struct {
	Amount   string `json:"amount"` // the network's fee comes off it
	Currency string `json:"currency"`
	Status   string `json:"status"`
}

// CreateRefund gives back what a payment received, or a part of it.
func (c *Client) CreateRefund(ctx context.Context, transactionID string, in CreateRefund) (r Refund, err error) {
	err = c.create(ctx, "/payments/"+url.PathEscape(transactionID)+"/refunds/", in.IdempotencyKey, in, &r)
	return r, err
}

// Refund is one refund by its id.
func (c *Client) Refund(ctx context.Context, id string) (r Refund, err error) {
	err = c.get(ctx, "/refunds/"+url.PathEscape(id)+"/", nil, &r)
	return r, err
}

// Refunds lists refunds, newest first, and says how many match.
func (c *Client) Refunds(ctx context.Context, f RefundFilter) (page []Refund, total int64, err error) {
	var answer struct {
		Refunds []Refund `json:"refunds"`
		Total   int64    `json:"total"`
	}
	q := query{}.text("transaction_id", f.TransactionID).text("suspense_id", f.SuspenseID).text("status", f.Status).
		text("date_from", f.DateFrom).text("date_to", f.DateTo).number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/refunds/", url.Values(q), &answer)
	return answer.Refunds, answer.Total, err
}

// CancelRefund ends a refund that waits for its address, or is pending. It may be repeated.
func (c *Client) CancelRefund(ctx context.Context, id string) (r Refund, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/refunds/" + url.PathEscape(id) + "/cancel/", again: true}, &r)
	return r, err
}

// Claim is what a claim link gives, by its token: the last part of Refund.ClaimURL.
func (c *Client) Claim(ctx context.Context, token string) (got Claim, err error) {
	err = c.get(ctx, "/claim/"+url.PathEscape(token)+"/", nil, &got)
	return got, err
}

// UseClaim has the refund of a claim link sent to an address, with a memo where its network
// needs one. It works once, and is sent once: after an unknown outcome look at the refund.
func (c *Client) UseClaim(ctx context.Context, token, address, memo string) (got Claim, err error) {
	in := struct {
		Address string `json:"address"`
		Memo    string `json:"memo,omitempty"`
	}{address, memo}
	err = c.do(ctx, call{method: http.MethodPost, path: "/claim/" + url.PathEscape(token) + "/", body: in}, &got)
	return got, err
}
