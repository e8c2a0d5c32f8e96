package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// WithdrawalTerms say how much of what is withdrawn: exactly one of Amount and
// PriceAmount, and either Currency or Blockchain and Token.
type WithdrawalTerms struct {
	Amount        string `json:"amount,omitempty"`       // in whole coins
	PriceAmount   string `json:"price_amount,omitempty"` // in PriceCurrency
	PriceCurrency string `json:"price_currency,omitempty"`
	// FinalAmount: the figure is what the recipient gets, fees are added on top.
	FinalAmount bool   `json:"final_amount,omitempty"`
	Currency    string `json:"currency,omitempty"`
	Blockchain  string `json:"blockchain,omitempty"`
	Token       string `json:"token,omitempty"`
	Address     string `json:"address,omitempty"` // required to create one
}

// CreateWithdrawal is a withdrawal to be made.
type CreateWithdrawal struct {
	WithdrawalTerms
	Memo        string `json:"memo,omitempty"`
	CustomID    string `json:"custom_id,omitempty"`
	CallbackURL string `json:"callback_url,omitempty"`
	AccountID   string `json:"account_id,omitempty"` // wallet that pays; default the master account

	// IdempotencyKey makes the call safe across restarts of the caller. "" = one
	// is made for this call.
	IdempotencyKey string `json:"-"`
}

// Withdrawal is what became of it.
type Withdrawal struct {
	WithdrawalID          string     `json:"withdrawal_id"`
	CustomID              *string    `json:"custom_id"`
	Amount                string     `json:"amount"`
	RequestedAmount       string     `json:"requested_amount"`
	Fee                   string     `json:"fee"`
	PlatformFee           string     `json:"platform_fee"`
	NetworkFee            string     `json:"network_fee"`
	Blockchain            string     `json:"blockchain"`
	Token                 string     `json:"token"`
	Currency              string     `json:"currency"`
	Address               string     `json:"address"`
	Memo                  *string    `json:"memo"`
	Status                string     `json:"status"`
	TransactionHash       *string    `json:"transaction_hash"`
	Confirmations         int64      `json:"confirmations"`
	RequiredConfirmations int64      `json:"required_confirmations"`
	BatchID               *string    `json:"batch_id"`
	CallbackURL           *string    `json:"callback_url"`
	CreatedAt             time.Time  `json:"created_at"`
	UpdatedAt             time.Time  `json:"updated_at"`
	CompletedAt           *time.Time `json:"completed_at"`
	WaitingReason         *string    `json:"waiting_reason"` // why it is not completed yet; nil = it takes its course, or has ended
	WaitingSince          *time.Time `json:"waiting_since"`
	RequestedBy           *string    `json:"requested_by"` // the client that asked for it
	Rule                  *string    `json:"rule"`         // the rules of the policy that asked for approvals, delayed or refused it
	ApprovalsRequired     int        `json:"approvals_required"`
	Approvals             []Approval `json:"approvals"`
}

// Approval is what one client decided about a withdrawal.
type Approval struct {
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Decision string    `json:"decision"` // approved or refused
	Reason   *string   `json:"reason"`
}

// WithdrawalEstimate is what a withdrawal would cost.
type WithdrawalEstimate struct {
	RequestedAmount string `json:"requested_amount"`
	Fee             string `json:"fee"`
	Amount          string `json:"amount"`
	Currency        string `json:"currency"`
	Blockchain      string `json:"blockchain"`
	Token           string `json:"token"`
	PlatformFee     string `json:"platform_fee"`
	NetworkFee      string `json:"network_fee"`
}

// WithdrawalFilter selects withdrawals; zero fields select all.
type WithdrawalFilter struct {
	Status, Currency, Blockchain, Token, CustomID string
	StartDate, EndDate                            string // inclusive: a datetime or a date
	Sort                                          string // created_desc (default), created_asc, amount_desc, amount_asc
	Limit, Offset                                 int
}

// Withdrawals is one page of withdrawals.
type Withdrawals struct {
	Withdrawals []Withdrawal `json:"withdrawals"`
	Total       int64        `json:"total"`
	Limit       int          `json:"limit"`
	Offset      int          `json:"offset"`
}

// AddressCheck is what the service thinks of an address.
type AddressCheck struct {
	IsValid      bool    `json:"is_valid"`
	Address      string  `json:"address"`
	Type         *string `json:"type"`
	Blockchain   *string `json:"blockchain"`
	Token        *string `json:"token"`
	Currency     *string `json:"currency"`
	ErrorMessage *string `json:"error_message"`
}

// WithdrawalMinimum is the least that a recipient may get.
type WithdrawalMinimum struct {
	MinAmount  json.Number `json:"min_amount"`
	Currency   string      `json:"currency"`
	Blockchain string      `json:"blockchain"`
	Token      string      `json:"token"`
}

// WithdrawalLimit bounds the withdrawals of a currency. nil = there is no such bound.
type WithdrawalLimit struct {
	Currency       string  `json:"currency"`
	MinAmount      string  `json:"min_amount"` // of what the recipient gets
	MaxAmount      *string `json:"max_amount"` // of one withdrawal, fees included
	DailyLimit     *string `json:"daily_limit"`
	DailyUsed      *string `json:"daily_used"`
	DailyRemaining *string `json:"daily_remaining"`
}

// WithdrawalLimits are the bounds of a currency, "" = of all.
func (c *Client) WithdrawalLimits(ctx context.Context, currency string) ([]WithdrawalLimit, error) {
	var answer struct {
		Limits []WithdrawalLimit `json:"limits"`
	}
	err := c.get(ctx, "/withdrawal/limits/", url.Values(query{}.text("currency", currency)), &answer)
	return answer.Limits, err
}

// CreateWithdrawal creates a withdrawal; its whole cost is held from then on.
func (c *Client) CreateWithdrawal(ctx context.Context, in CreateWithdrawal) (w Withdrawal, err error) {
	err = c.create(ctx, "/withdrawal/", in.IdempotencyKey, in, &w)
	return w, err
}

// Withdrawal is one withdrawal by its withdrawal_id.
func (c *Client) Withdrawal(ctx context.Context, id string) (w Withdrawal, err error) {
	err = c.get(ctx, "/withdrawal/"+url.PathEscape(id)+"/", nil, &w)
	return w, err
}

// Withdrawals lists withdrawals.
func (c *Client) Withdrawals(ctx context.Context, f WithdrawalFilter) (page Withdrawals, err error) {
	q := query{}.text("status", f.Status).text("currency", f.Currency).text("blockchain", f.Blockchain).text("token", f.Token).text("custom_id", f.CustomID).
		text("start_date", f.StartDate).text("end_date", f.EndDate).text("sort", f.Sort).number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/withdrawal/", url.Values(q), &page)
	return page, err
}

// EstimateWithdrawal prices a withdrawal and creates nothing.
func (c *Client) EstimateWithdrawal(ctx context.Context, in WithdrawalTerms) (e WithdrawalEstimate, err error) {
	err = c.ask(ctx, "/withdrawal/estimate/", in, &e)
	return e, err
}

// CancelWithdrawal cancels a pending withdrawal. One that is cancelled already
// is no error.
func (c *Client) CancelWithdrawal(ctx context.Context, id string) (w Withdrawal, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/withdrawal/" + url.PathEscape(id) + "/cancel/", again: true}, &w)
	return w, err
}

// ApproveWithdrawal approves a withdrawal that waits for it. It takes a client with the role
// approver, other than the one that asked for the withdrawal. The reason may be "". The same
// answer again is no error.
func (c *Client) ApproveWithdrawal(ctx context.Context, id, reason string) (Withdrawal, error) {
	return c.decide(ctx, id, "approve", reason)
}

// RefuseWithdrawal is ApproveWithdrawal's other answer: the withdrawal fails. It takes a
// reason.
func (c *Client) RefuseWithdrawal(ctx context.Context, id, reason string) (Withdrawal, error) {
	return c.decide(ctx, id, "refuse", reason)
}

func (c *Client) decide(ctx context.Context, id, answer, reason string) (w Withdrawal, err error) {
	in := map[string]string{"reason": reason}
	err = c.do(ctx, call{method: http.MethodPost, path: "/withdrawal/" + url.PathEscape(id) + "/" + answer + "/", body: in, again: true}, &w)
	return w, err
}

// ValidateAddress checks an address for a currency, such as USDTTRC20.
func (c *Client) ValidateAddress(ctx context.Context, address, currency, memo string) (a AddressCheck, err error) {
	err = c.ask(ctx, "/withdrawal/validate-address/", struct {
		Address  string `json:"address"`
		Currency string `json:"currency"`
		Memo     string `json:"memo,omitempty"`
	}{address, currency, memo}, &a)
	return a, err
}

// WithdrawalMinimum is the least that may be withdrawn of a currency.
func (c *Client) WithdrawalMinimum(ctx context.Context, currency string) (m WithdrawalMinimum, err error) {
	err = c.ask(ctx, "/withdrawal/min-amount/", map[string]string{"currency": currency}, &m)
	return m, err
}
