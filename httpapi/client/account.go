package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Balances is everything that the account has, by combined currency code.
type Balances struct {
	Account     map[string]AccountBalance    `json:"account"`
	SubAccounts map[string]SubAccountBalance `json:"sub_accounts"`
	Statistics  struct {
		Currencies       int64 `json:"currencies_count"`
		SubAccounts      int64 `json:"subaccounts_count"`
		TotalDeposits    int64 `json:"total_deposits"`
		TotalWithdrawals int64 `json:"total_withdrawals"`
	} `json:"statistics"`
}

// AccountBalance is the master account's.
type AccountBalance struct {
	Amount        string `json:"amount"`
	PendingAmount string `json:"pending_amount"`
}

// SubAccountBalance is of all wallets together, and of each.
type SubAccountBalance struct {
	TotalAmount  string `json:"total_amount"`
	TotalPending string `json:"total_pending"`
	Accounts     []struct {
		AccountName      string `json:"account_name"`
		AccountID        string `json:"account_id"`
		Amount           string `json:"amount"`
		PendingAmount    string `json:"pending_amount"`
		AvailableBalance string `json:"available_balance"`
	} `json:"accounts"`
}

// BalanceHistory is one page of an account's movements.
type BalanceHistory struct {
	History []BalanceChange `json:"history"`
	Total   int64           `json:"total"`
	Limit   int             `json:"limit"`
	Offset  int             `json:"offset"`
}

// BalanceChange is one movement; Amount is signed.
type BalanceChange struct {
	Timestamp    time.Time `json:"timestamp"`
	Currency     string    `json:"currency"`
	Type         string    `json:"type"`
	Amount       string    `json:"amount"`
	BalanceAfter string    `json:"balance_after"`
}

// BalanceHistoryFilter selects movements; zero fields select all.
type BalanceHistoryFilter struct {
	WalletID       string // or external_id; "" = the master account
	Currency, Type string
	Limit, Offset  int
}

// TransactionFilter selects payments and withdrawals; zero fields select all.
type TransactionFilter struct {
	Type, Status, Currency string
	From, To               time.Time
	Page, PageSize         int // PageSize 1 to 100, default 20
}

// Transactions is one page of the unified history.
type Transactions struct {
	Count    int64         `json:"count"`
	Next     *string       `json:"next"`
	Previous *string       `json:"previous"`
	Results  []Transaction `json:"results"`
}

// Transaction is a payment or a withdrawal in the unified history.
type Transaction struct {
	ID                string         `json:"id"`
	Type              string         `json:"type"` // payment, withdrawal
	TransactionID     string         `json:"transaction_id"`
	WithdrawalID      string         `json:"withdrawal_id"`
	Amount            string         `json:"amount"`
	Currency          string         `json:"currency"`
	Status            string         `json:"status"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
	Reference         *string        `json:"reference"`
	BlockchainAddress string         `json:"blockchain_address"`
	TransactionHash   *string        `json:"transaction_hash"`
	FeeAmount         string         `json:"fee_amount"`
	NetAmount         string         `json:"net_amount"`
	Metadata          map[string]any `json:"metadata"`
}

// RateQuery asks for a rate. To is required; Amount defaults to 1, From to USD.
type RateQuery struct {
	Amount, From, To string
	FeePercentage    string
	FeePaidByUser    bool
	Full             bool
}

// Rate is what an amount comes to. The last three are there where Full was
// asked for.
type Rate struct {
	CurrencyFrom    string       `json:"currency_from"`
	CurrencyTo      string       `json:"currency_to"`
	Amount          json.Number  `json:"amount"`
	EstimatedAmount json.Number  `json:"estimated_amount"`
	Rate            json.Number  `json:"rate"`
	FeePercentage   *json.Number `json:"fee_percentage"`
	FeeAmount       *json.Number `json:"fee_amount"`
	Timestamp       *time.Time   `json:"timestamp"`
}

// Tenant is the account.
type Tenant struct {
	Name                string  `json:"name"`
	TransactionFee      string  `json:"transaction_fee"`
	IsFeePaidByUser     bool    `json:"is_fee_paid_by_user"`
	WebhookCallbackURL  *string `json:"webhook_callback_url"`
	WebhookSecretMasked *string `json:"webhook_secret_masked"`
}

// WebhookSetup answers a setup. Secret is there once, the first time; keep it.
type WebhookSetup struct {
	CallbackURL  string `json:"callback_url"`
	Secret       string `json:"secret"`
	MaskedSecret string `json:"masked_secret"`
	Message      string `json:"message"`
}

// Webhooks are the settings.
type Webhooks struct {
	CallbackURL   *string    `json:"callback_url"`
	MaskedSecret  *string    `json:"masked_secret"`
	EnabledEvents []string   `json:"enabled_events"` // empty = all
	CreatedAt     *time.Time `json:"created_at"`
	UpdatedAt     *time.Time `json:"updated_at"`
}

// UpdateWebhooks changes the settings; nil leaves as it is.
type UpdateWebhooks struct {
	WebhookURL    *string   `json:"webhook_url,omitempty"`
	WebhookSecret *string   `json:"webhook_secret,omitempty"`
	EnabledEvents *[]string `json:"enabled_events,omitempty"`
	EndPrevious   bool      `json:"end_previous,omitempty"` // the secret before signs nothing any more: for one that has leaked
}

// WebhookTest is what became of a test delivery.
type WebhookTest struct {
	DeliveryID     string  `json:"delivery_id"`
	EventType      string  `json:"event_type"`
	Status         string  `json:"status"` // delivered, failed
	ResponseStatus *int    `json:"response_status"`
	DurationMS     int64   `json:"duration_ms"`
	Error          *string `json:"error"`
}

// Balances is the overview of all balances.
func (c *Client) Balances(ctx context.Context) (b Balances, err error) {
	err = c.get(ctx, "/user/balances/", nil, &b)
	return b, err
}

// BalanceHistory lists the movements of the master account, or of a wallet, newest first.
func (c *Client) BalanceHistory(ctx context.Context, f BalanceHistoryFilter) (page BalanceHistory, err error) {
	q := query{}.text("wallet_id", f.WalletID).text("currency", f.Currency).text("type", f.Type).number("limit", f.Limit).number("offset", f.Offset)
	err = c.get(ctx, "/user/balances/history/", url.Values(q), &page)
	return page, err
}

// Transactions lists payments and withdrawals together, newest first.
func (c *Client) Transactions(ctx context.Context, f TransactionFilter) (page Transactions, err error) {
	q := query{}.text("type", f.Type).text("status", f.Status).text("currency", f.Currency).
		text("date_from", instant(f.From)).text("date_to", instant(f.To)).number("page", f.Page).number("page_size", f.PageSize)
	err = c.get(ctx, "/transactions/transactions/", url.Values(q), &page)
	return page, err
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Rate converts an amount.
func (c *Client) Rate(ctx context.Context, in RateQuery) (r Rate, err error) {
	q := query{}.text("amount", in.Amount).text("currency_from", in.From).text("currency_to", in.To).text("fee_percentage", in.FeePercentage).
		flag("is_fee_paid_by_user", in.FeePaidByUser).flag("full", in.Full)
	err = c.get(ctx, "/rates/", url.Values(q), &r)
	return r, err
}

// Currencies lists the codes that payments may be made in.
func (c *Client) Currencies(ctx context.Context) ([]string, error) {
	var answer struct {
		Currencies []string `json:"currencies"`
	}
	err := c.get(ctx, "/currencies/", nil, &answer)
	return answer.Currencies, err
}

// Me is the account that the application belongs to.
func (c *Client) Me(ctx context.Context) (t Tenant, err error) {
	err = c.get(ctx, "/user/me/", nil, &t)
	return t, err
}

// SetUpWebhooks sets the URL that events go to. It is sent once, as only the
// first answer ever shows the secret: where that answer was lost, replace the
// secret with EditWebhooks.
func (c *Client) SetUpWebhooks(ctx context.Context, callbackURL string) (w WebhookSetup, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/user/webhooks/", body: map[string]string{"callback_url": callbackURL}}, &w)
	return w, err
}

// Webhooks are the settings as they stand.
func (c *Client) Webhooks(ctx context.Context) (w Webhooks, err error) {
	err = c.get(ctx, "/user/webhooks/", nil, &w)
	return w, err
}

// EditWebhooks changes the settings. A new secret is sent once: sent again, it
// would take the place of the one before, which signs for another day, or until
// EndPrevious.
func (c *Client) EditWebhooks(ctx context.Context, in UpdateWebhooks) (w Webhooks, err error) {
	err = c.do(ctx, call{method: http.MethodPatch, path: "/user/webhooks/", body: in, again: in.WebhookSecret == nil}, &w)
	return w, err
}

// TestWebhook has an event with sample data delivered now.
func (c *Client) TestWebhook(ctx context.Context, eventType string) (t WebhookTest, err error) {
	err = c.do(ctx, call{method: http.MethodPost, path: "/user/webhooks/test/", body: map[string]string{"event_type": eventType}}, &t)
	return t, err
}
