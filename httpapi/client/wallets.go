package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Wallet is a sub-account.
type Wallet struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	ExternalID string    `json:"external_id"`
	WalletID   string    `json:"wallet_id"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
	Balances   []Balance `json:"balances"`
}

// Balance is what a wallet has of a currency.
type Balance struct {
	Currency         string `json:"currency"`
	Amount           string `json:"amount"`
	PendingAmount    string `json:"pending_amount"`
	AvailableBalance string `json:"available_balance"`
}

// Wallets is all of them.
type Wallets struct {
	Accounts []Wallet `json:"accounts"`
	Total    int64    `json:"total"`
}

// Account names a wallet.
type Account struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	ExternalID string `json:"external_id"`
	WalletID   string `json:"wallet_id"`
}

// WalletBalances are one wallet's balances.
type WalletBalances struct {
	Account  Account   `json:"account"`
	Balances []Balance `json:"balances"`
}

// WalletProof shows that a balance of a wallet stands in a seal of the account's journal. Root
// counts where it is the hash that the operator has published for SealNumber. The reference of
// the interface says what Leaf and Path are made of, and how to check them.
type WalletProof struct {
	Root       string     `json:"root"`
	SealNumber int64      `json:"seal_number"`
	SealedAt   time.Time  `json:"sealed_at"`
	Currency   string     `json:"currency"`
	Balance    string     `json:"balance"`
	Scale      int        `json:"scale"`
	Leaf       string     `json:"leaf"` // hex
	Path       []struct { // what is hashed before and behind the hash so far, in hex
		Before string `json:"before"`
		After  string `json:"after"`
	} `json:"path"`
}

// CreateWallet is a wallet to be made. Both texts are required, ExternalID is
// unique.
type CreateWallet struct {
	Name       string `json:"name"`
	ExternalID string `json:"external_id"`

	IdempotencyKey string `json:"-"` // "" = one is made for this call
}

// CreateTransfer moves money between the master account and a wallet, named by
// WalletID or ExternalID.
type CreateTransfer struct {
	WalletID    string `json:"wallet_id,omitempty"`
	ExternalID  string `json:"external_id,omitempty"`
	Currency    string `json:"currency,omitempty"` // or Blockchain and Token
	Blockchain  string `json:"blockchain,omitempty"`
	Token       string `json:"token,omitempty"`
	Amount      string `json:"amount"`
	CallbackURL string `json:"callback_url,omitempty"`

	IdempotencyKey string `json:"-"` // "" = one is made for this call
}

// TransferAccepted is the first answer to a transfer; it is done a little later.
type TransferAccepted struct {
	Status     string `json:"status"`
	TransferID string `json:"transfer_id"`
	Message    string `json:"message"`
}

// Transfer is what became of it.
type Transfer struct {
	TransferID   string     `json:"transfer_id"`
	WalletID     string     `json:"wallet_id"`
	ExternalID   string     `json:"external_id"`
	TransferType string     `json:"transfer_type"` // to_sub, to_master
	Currency     string     `json:"currency"`
	Amount       string     `json:"amount"`
	Status       string     `json:"status"` // pending, completed, failed
	Error        *string    `json:"error"`
	CallbackURL  *string    `json:"callback_url"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	CompletedAt  *time.Time `json:"completed_at"`
}

// TransferFilter selects transfers; zero fields select all.
type TransferFilter struct {
	WalletID     string `json:"wallet_id,omitempty"`
	ExternalID   string `json:"external_id,omitempty"`
	Status       string `json:"status,omitempty"`
	TransferType string `json:"transfer_type,omitempty"`
	Currency     string `json:"currency,omitempty"`
	Limit        int    `json:"limit,omitempty"`
	Offset       int    `json:"offset,omitempty"`
}

// Pagination says where a page is.
type Pagination struct {
	Total  int64 `json:"total"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
}

// Transfers is one page of transfers.
type Transfers struct {
	Account    *Account   `json:"account"` // nil = all wallets
	Transfers  []Transfer `json:"transfers"`
	Pagination Pagination `json:"pagination"`
}

// CreateWallet makes a wallet.
func (c *Client) CreateWallet(ctx context.Context, in CreateWallet) (w Wallet, err error) {
	err = c.create(ctx, "/wallets/", in.IdempotencyKey, in, &w)
	return w, err
}

// Wallets lists all wallets with their balances.
func (c *Client) Wallets(ctx context.Context) (all Wallets, err error) {
	err = c.get(ctx, "/wallets/", nil, &all)
	return all, err
}

// Wallet is one wallet by its wallet_id, or its number in digits.
func (c *Client) Wallet(ctx context.Context, id string) (w Wallet, err error) {
	err = c.get(ctx, "/wallets/"+url.PathEscape(id)+"/", nil, &w)
	return w, err
}

// WalletByNumber is one wallet by its number.
func (c *Client) WalletByNumber(ctx context.Context, number int64) (Wallet, error) {
	return c.Wallet(ctx, strconv.FormatInt(number, 10))
}

// WalletProof proves the newest sealed balance of a wallet, by its wallet_id or its number in
// digits, in a currency. The Error has the code not_found where no seal has one yet.
func (c *Client) WalletProof(ctx context.Context, id, currency string) (p WalletProof, err error) {
	err = c.get(ctx, "/wallets/"+url.PathEscape(id)+"/proof/", url.Values{"currency": {currency}}, &p)
	return p, err
}

// RenameWallet gives a wallet another name.
func (c *Client) RenameWallet(ctx context.Context, id, name string) (w Wallet, err error) {
	err = c.do(ctx, call{method: http.MethodPatch, path: "/wallets/" + url.PathEscape(id) + "/", body: map[string]string{"name": name}, again: true}, &w)
	return w, err
}

// DeleteWallet deletes an empty wallet. It is sent once.
func (c *Client) DeleteWallet(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/wallets/" + url.PathEscape(id) + "/"}, nil)
}

// WalletBalances are a wallet's, by its wallet_id or else its external_id.
func (c *Client) WalletBalances(ctx context.Context, walletID, externalID string) (b WalletBalances, err error) {
	err = c.ask(ctx, "/wallets/balances/", struct {
		WalletID   string `json:"wallet_id,omitempty"`
		ExternalID string `json:"external_id,omitempty"`
	}{walletID, externalID}, &b)
	return b, err
}

// TransferToWallet moves money from the master account to a wallet.
func (c *Client) TransferToWallet(ctx context.Context, in CreateTransfer) (t TransferAccepted, err error) {
	err = c.create(ctx, "/wallets/transfer-to-user/", in.IdempotencyKey, in, &t)
	return t, err
}

// TransferToMaster moves money from a wallet to the master account.
func (c *Client) TransferToMaster(ctx context.Context, in CreateTransfer) (t TransferAccepted, err error) {
	err = c.create(ctx, "/wallets/withdraw-to-master/", in.IdempotencyKey, in, &t)
	return t, err
}

// Transfers lists transfers, newest first.
func (c *Client) Transfers(ctx context.Context, f TransferFilter) (page Transfers, err error) {
	err = c.ask(ctx, "/wallets/transfer-history/", f, &page)
	return page, err
}
