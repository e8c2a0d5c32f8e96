package client

import (
	"context"
	"net/url"
)

// CreatePayout is up to 1,000 withdrawals to be made at once.
type CreatePayout struct {
	// Withdrawals are made and held all, or none is. An IdempotencyKey of one of them is not sent.
	Withdrawals []CreateWithdrawal `json:"withdrawals"`

	// IdempotencyKey makes the call safe across restarts of the caller. "" = one
	// is made for this call.
	IdempotencyKey string `json:"-"`
}

// Payout is what became of it.
type Payout struct {
	PayoutID    string       `json:"payout_id"`
	Count       int          `json:"count"`       // of a payout that was just made
	Counts      PayoutCounts `json:"counts"`      // of one that was read
	Withdrawals []Withdrawal `json:"withdrawals"` // in the order of the request
}

// PayoutCounts are how many of a payout's withdrawals have each status.
type PayoutCounts struct {
	Pending    int `json:"pending"`
	Processing int `json:"processing"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
}

// CreatePayout creates withdrawals; their whole cost is held from then on. Where one of them
// cannot be made none is: Error.Details names each, as in "withdrawals[3].address".
func (c *Client) CreatePayout(ctx context.Context, in CreatePayout) (p Payout, err error) {
	err = c.create(ctx, "/payouts/", in.IdempotencyKey, in, &p)
	return p, err
}

// Payout is one payout by its payout_id, with its withdrawals as they are now.
func (c *Client) Payout(ctx context.Context, id string) (p Payout, err error) {
	err = c.get(ctx, "/payouts/"+url.PathEscape(id)+"/", nil, &p)
	return p, err
}
