package client

import (
	"context"
	"net/url"
)

// Payout is a list of withdrawals that were made at once.
type Payout struct {
	PayoutID string `json:"payout_id"`
	Count    int    `json:"count"` // of a payout that was just made
	Counts   struct {
		Pending    int `json:"pending"`
		Processing int `json:"processing"`
		Completed  int `json:"completed"`
		Failed     int `json:"failed"`
		Cancelled  int `json:"cancelled"`
	} `json:"counts"` // of one that was read: its withdrawals by status
	Withdrawals []Withdrawal `json:"withdrawals"` // in the order of the request
}

// CreatePayout creates 1 to 1,000 withdrawals; their whole cost is held from then on. Where one of
// them cannot be made none is: Error.Details names each, as in "withdrawals[3].address". key makes
// the call safe across restarts of the caller, "" = one is made for this call; those of the list
// are not sent.
func (c *Client) CreatePayout(ctx context.Context, key string, list []CreateWithdrawal) (p Payout, err error) {
	in := struct {
		Withdrawals []CreateWithdrawal `json:"withdrawals"`
	}{list}
	err = c.create(ctx, "/payouts/", key, in, &p)
	return p, err
}

// Payout is one payout by its payout_id, with its withdrawals as they are now.
func (c *Client) Payout(ctx context.Context, id string) (p Payout, err error) {
	err = c.get(ctx, "/payouts/"+url.PathEscape(id)+"/", nil, &p)
	return p, err
}
