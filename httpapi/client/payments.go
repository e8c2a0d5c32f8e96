package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// CreatePayment is a payment to be made. Amount and either Currency or
// Blockchain and Token are required.
type CreatePayment struct {
	Amount           string `json:"amount"` // in PriceCurrency
	Currency         string `json:"currency,omitempty"`
	Blockchain       string `json:"blockchain,omitempty"`
	Token            string `json:"token,omitempty"`
	PriceCurrency    string `json:"price_currency,omitempty"` // default USD
	OrderID          string `json:"order_id,omitempty"`
	OrderDescription string `json:"order_description,omitempty"`
	CallbackURL      string `json:"callback_url,omitempty"`
	CustomID         string `json:"custom_id,omitempty"`
	IsFixedRate      *bool  `json:"is_fixed_rate,omitempty"`       // default true
	IsFeePaidByUser  *bool  `json:"is_fee_paid_by_user,omitempty"` // default: the account's
	CustomerEmail    string `json:"customer_email,omitempty"`
	WalletID         string `json:"wallet_id,omitempty"`
	ExpiryMinutes    int    `json:"expiry_minutes,omitempty"`

	// IdempotencyKey makes the call safe across restarts of the caller: keep it
	// with the order. "" = one is made for this call.
	IdempotencyKey string `json:"-"`
}

// Payment is the detail view of a payment.
type Payment struct {
	TransactionID    string    `json:"transaction_id"`
	Blockchain       string    `json:"blockchain"`
	Currency         string    `json:"currency"`
	Status           string    `json:"status"`
	AmountUSD        string    `json:"amount_usd"`
	AmountCrypto     string    `json:"amount_crypto"`
	Address          string    `json:"address"`
	Token            string    `json:"token"`
	TransactionHash  *string   `json:"transaction_hash"`
	OrderID          string    `json:"order_id"`
	OrderDescription string    `json:"order_description"`
	CallbackURL      string    `json:"callback_url"`
	ExpiryTime       time.Time `json:"expiry_time"`
	CreatedAt        time.Time `json:"created_at"`
	UpdatedAt        time.Time `json:"updated_at"`
	IsFixedRate      bool      `json:"is_fixed_rate"`
	IsFeePaidByUser  bool      `json:"is_fee_paid_by_user"`
	WalletID         string    `json:"wallet_id"`
	CustomerEmail    string    `json:"customer_email"`
	PaymentProgress
	Suspense []Suspense `json:"suspense"` // what came and does not count
}

// PaymentProgress is how far the money of a payment has come.
type PaymentProgress struct {
	AmountReceived        string  `json:"amount_received"` // final
	AmountPending         string  `json:"amount_pending"`  // seen, not final yet
	AmountMissing         string  `json:"amount_missing"`  // 0 once enough has come
	Confirmations         int64   `json:"confirmations"`
	RequiredConfirmations int64   `json:"required_confirmations"`
	PaymentURI            string  `json:"payment_uri"`  // for the customer's wallet
	Memo                  *string `json:"memo"`         // that Address carries; nil = none
	MemoAddress           *string `json:"memo_address"` // to give Memo with
	CustomID              string  `json:"custom_id"`
	AddressID             *string `json:"address_id"`
	CheckoutURL           *string `json:"checkout_url"`
}

// Suspense is a transfer that does not count for the payment whose address it came to.
type Suspense struct {
	Amount          string `json:"amount"`
	Currency        string `json:"currency"`
	TransactionHash string `json:"transaction_hash"`
	Reason          string `json:"reason"` // "late", "wrong_asset" or "unmatched"
}

// PaymentItem is a payment as lists show it.
type PaymentItem struct {
	TransactionID string    `json:"transaction_id"`
	Blockchain    string    `json:"blockchain"`
	Currency      string    `json:"currency"`
	Status        string    `json:"status"`
	AmountUSD     string    `json:"amount_usd"`
	AmountCrypto  string    `json:"amount_crypto"`
	Address       string    `json:"address"`
	Token         string    `json:"token"`
	OrderID       string    `json:"order_id"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	PaymentProgress
}

// PaymentFilter selects payments; zero fields select all.
type PaymentFilter struct {
	Status, Currency, Blockchain, Token string
	OrderID, CustomID                   string
	DateFrom, DateTo                    string // inclusive: a datetime or a date
	Limit, Offset                       int    // Limit 1 to 100, default 20
}

// Payments is one page of payments.
type Payments struct {
	Count   int64         `json:"count"` // match
	Total   int64         `json:"total"` // are there
	Offset  int           `json:"offset"`
	Limit   int           `json:"limit"`
	Results []PaymentItem `json:"results"`
}

// UpdatePayment changes a waiting payment; nil leaves as it is.
type UpdatePayment struct {
	OrderID          *string `json:"order_id,omitempty"`
	OrderDescription *string `json:"order_description,omitempty"`
	CallbackURL      *string `json:"callback_url,omitempty"`
	CustomerEmail    *string `json:"customer_email,omitempty"`
}

// PaymentQuote is what a payment would ask for.
type PaymentQuote struct {
	PriceAmount     string    `json:"price_amount"`
	PriceCurrency   string    `json:"price_currency"`
	Currency        string    `json:"currency"`
	Blockchain      string    `json:"blockchain"`
	Token           string    `json:"token"`
	AmountCrypto    string    `json:"amount_crypto"`
	Rate            string    `json:"rate"`
	FeeAmount       string    `json:"fee_amount"`
	IsFixedRate     bool      `json:"is_fixed_rate"`
	IsFeePaidByUser bool      `json:"is_fee_paid_by_user"`
	MinAmount       string    `json:"min_amount"`
	MaxAmount       *string   `json:"max_amount"`
	RateAt          time.Time `json:"rate_at"`      // when the sources named Rate
	ExpiresAt       time.Time `json:"expires_at"`   // when Rate is too old to be used
	ForwardCost     *string   `json:"forward_cost"` // in Currency; nil = nothing is moved on, or unknown
	BelowCost       bool      `json:"below_cost"`   // ForwardCost is above AmountCrypto
}

// PaymentLimits is what a payment may ask for, in whole coins.
type PaymentLimits struct {
	Currency   string      `json:"currency"`
	MinAmount  json.Number `json:"min_amount"`
	MaxAmount  json.Number `json:"max_amount"`
	Blockchain string      `json:"blockchain"`
	Token      string      `json:"token"`
}

// CreateAddress asks for the permanent address of ExternalID on a network. ExternalID and
// either Currency or Blockchain and Token are required.
type CreateAddress struct {
	Currency    string `json:"currency,omitempty"`
	Blockchain  string `json:"blockchain,omitempty"`
	Token       string `json:"token,omitempty"`
	ExternalID  string `json:"external_id"`
	WalletID    string `json:"wallet_id,omitempty"`
	CallbackURL string `json:"callback_url,omitempty"`
}

// Address is a permanent address: each deposit there is a payment.
type Address struct {
	AddressID   string     `json:"address_id"`
	Blockchain  string     `json:"blockchain"`
	Address     string     `json:"address"`
	Memo        *string    `json:"memo"`         // that Address carries; nil = none
	MemoAddress *string    `json:"memo_address"` // to give Memo with
	ExternalID  string     `json:"external_id"`
	WalletID    *string    `json:"wallet_id"` // nil = the master account
	CallbackURL *string    `json:"callback_url"`
	CreatedAt   time.Time  `json:"created_at"`
	RetiredAt   *time.Time `json:"retired_at"` // nil = in use
}

// Addresses is one page of permanent addresses.
type Addresses struct {
	Addresses []Address `json:"addresses"`
	Total     int64     `json:"total"` // match
	Limit     int       `json:"limit"`
	Offset    int       `json:"offset"`
}

// CreateAddress returns the permanent address of an external_id on a network. It is made
// where there is none, so the call may be repeated.
func (c *Client) CreateAddress(ctx context.Context, in CreateAddress) (a Address, err error) {
	err = c.ask(ctx, "/addresses/", in, &a)
	return a, err
}

// Addresses lists permanent addresses, newest first; externalID "" = all. limit is from 1 to
// 100, 0 = 20.
func (c *Client) Addresses(ctx context.Context, externalID string, limit, offset int) (page Addresses, err error) {
	q := query{}.text("external_id", externalID).number("limit", limit).number("offset", offset)
	err = c.get(ctx, "/addresses/", url.Values(q), &page)
	return page, err
}

// RetireAddress ends the use of a permanent address: what comes later goes to suspense. It may
// be repeated. CreateAddress takes it back into use.
func (c *Client) RetireAddress(ctx context.Context, addressID string) (a Address, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/addresses/" + url.PathEscape(addressID) + "/retire/", again: true}, &a)
	return a, err
}

// CreatePayment creates a payment with an address of its own.
func (c *Client) CreatePayment(ctx context.Context, in CreatePayment) (p Payment, err error) {
	err = c.create(ctx, "/payments/", in.IdempotencyKey, in, &p)
	return p, err
}

// Payment is one payment by its transaction_id.
func (c *Client) Payment(ctx context.Context, id string) (p Payment, err error) {
	err = c.ask(ctx, "/payments/status/", map[string]string{"transaction_id": id}, &p)
	return p, err
}

// Payments lists payments, newest first.
func (c *Client) Payments(ctx context.Context, f PaymentFilter) (page Payments, err error) {
	q := query{}.text("status", f.Status).text("currency", f.Currency).text("blockchain", f.Blockchain).text("token", f.Token).
		text("order_id", f.OrderID).text("custom_id", f.CustomID).text("date_from", f.DateFrom).text("date_to", f.DateTo).
		number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/payments/", url.Values(q), &page)
	return page, err
}

// PaymentLimits is the least and the most that a payment may ask for in a currency.
func (c *Client) PaymentLimits(ctx context.Context, currency string) (l PaymentLimits, err error) {
	err = c.get(ctx, "/payments/min-amount/", url.Values(query{}.text("currency", currency)), &l)
	return l, err
}

// EstimatePayment prices a payment and creates nothing.
func (c *Client) EstimatePayment(ctx context.Context, in CreatePayment) (q PaymentQuote, err error) {
	err = c.ask(ctx, "/payments/estimate/", in, &q)
	return q, err
}

// UpdatePayment changes what a waiting payment says.
func (c *Client) UpdatePayment(ctx context.Context, id string, in UpdatePayment) (p Payment, err error) {
	err = c.do(ctx, call{method: http.MethodPatch, path: "/payments/" + url.PathEscape(id) + "/", body: in, again: true}, &p)
	return p, err
}

// CancelPayment ends a payment for which nothing has come. It is sent once: after
// an unknown outcome look at the payment.
func (c *Client) CancelPayment(ctx context.Context, id string) (p Payment, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/payments/" + url.PathEscape(id) + "/cancel/"}, &p)
	return p, err
}
