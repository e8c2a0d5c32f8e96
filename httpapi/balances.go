package httpapi

import (
	"context"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// overviewView is everything that an account has. Amounts include what is held.
type overviewView struct {
	Account     map[string]masterBalance `json:"account" about:"Of the master account, by combined code."`
	SubAccounts map[string]subBalance    `json:"sub_accounts" about:"Of all wallets together, by combined code."`
	Statistics  statisticsView           `json:"statistics"`
}

type masterBalance struct {
	Amount  string `json:"amount" format:"decimal"`
	Pending string `json:"pending_amount" format:"decimal"`
}

type subBalance struct {
	Total    string           `json:"total_amount" format:"decimal"`
	Pending  string           `json:"total_pending" format:"decimal"`
	Accounts []accountBalance `json:"accounts"`
}

type accountBalance struct {
	Name      string `json:"account_name"`
	ID        string `json:"account_id" format:"uuid" about:"The wallet's wallet_id."`
	Amount    string `json:"amount" format:"decimal"`
	Pending   string `json:"pending_amount" format:"decimal"`
	Available string `json:"available_balance" format:"decimal"`
}

type statisticsView struct {
	Currencies  int64 `json:"currencies_count"`
	SubAccounts int64 `json:"subaccounts_count"`
	Deposits    int64 `json:"total_deposits" about:"Payments that were credited."`
	Withdrawals int64 `json:"total_withdrawals" about:"Withdrawals that were completed."`
}

func (h *Handler) overview(ctx context.Context, c *Call, _ none) (overviewView, error) {
	o, err := h.app.Wallets.Overview(ctx, c.Tenant())
	if err != nil {
		return overviewView{}, err
	}
	view := overviewView{
		Account: make(map[string]masterBalance, len(o.Account)), SubAccounts: make(map[string]subBalance, len(o.SubAccounts)),
		Statistics: statisticsView{o.Statistics.Currencies, o.Statistics.SubAccounts, o.Statistics.Deposits, o.Statistics.Withdrawals},
	}
	for _, b := range o.Account {
		scale, err := h.app.Scale(b.Currency)
		if err != nil {
			return view, err
		}
		view.Account[b.Currency] = masterBalance{crypto(b.Amount, scale), crypto(b.Pending, scale)}
	}
	for i := range o.SubAccounts {
		b := &o.SubAccounts[i]
		scale, err := h.app.Scale(b.Currency)
		if err != nil {
			return view, err
		}
		view.SubAccounts[b.Currency] = viewSubBalance(b, scale)
	}
	return view, nil
}

func viewSubBalance(b *wallet.SubBalance, scale uint8) subBalance {
	view := subBalance{Total: crypto(b.Total, scale), Pending: crypto(b.Pending, scale), Accounts: make([]accountBalance, len(b.Accounts))}
	for i := range b.Accounts {
		a := &b.Accounts[i]
		view.Accounts[i] = accountBalance{
			Name: a.Wallet.Name, ID: a.Wallet.ID,
			Amount: crypto(a.Amount, scale), Pending: crypto(a.Pending, scale), Available: crypto(a.Available, scale),
		}
	}
	return view
}

type historyInput struct {
	WalletID string `query:"wallet_id" rule:"max=64" about:"wallet_id or external_id, or the wallet_id of one that was deleted; the master account where omitted."`
	Currency string `query:"currency"`
	Type     string `query:"type" rule:"enum=deposit|withdrawal|transfer_in|transfer_out|fee|refund|adjustment"`
	Limit    int    `query:"limit" rule:"min=1,max=100" default:"50"`
	Offset   int    `query:"offset" rule:"min=0" default:"0"`
}

type historyView struct {
	History []movementView `json:"history"`
	Total   int64          `json:"total"`
	Limit   int            `json:"limit"`
	Offset  int            `json:"offset"`
}

type movementView struct {
	Timestamp    string      `json:"timestamp" format:"date-time"`
	Currency     string      `json:"currency"`
	Type         ledger.Kind `json:"type" rule:"enum=deposit|withdrawal|transfer_in|transfer_out|fee|refund|adjustment"`
	Amount       string      `json:"amount" format:"decimal" about:"Signed: what leaves the account is negative."`
	BalanceAfter string      `json:"balance_after" format:"decimal"`
}

func (h *Handler) balanceHistory(ctx context.Context, c *Call, in historyInput) (historyView, error) {
	f := wallet.HistoryFilter{Currency: in.Currency, Type: ledger.Kind(in.Type), Limit: in.Limit, Offset: in.Offset}
	if in.WalletID != "" {
		w, err := h.app.Wallets.FindPast(ctx, c.Tenant(), in.WalletID, "")
		if err != nil {
			return historyView{}, err
		}
		f.Wallet = w.ID
	}
	entries, total, err := h.app.Wallets.History(ctx, c.Tenant(), f)
	view := historyView{History: make([]movementView, len(entries)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range entries {
		if err == nil {
			view.History[i], err = h.viewMovement(&entries[i])
		}
	}
	return view, err
}

func (h *Handler) checkHistory(_ context.Context, _ *Call, in historyInput) error {
	return h.known(in.Currency)
}

func (h *Handler) viewMovement(e *wallet.HistoryEntry) (movementView, error) {
	scale, err := h.app.Scale(e.Currency)
	return movementView{
		Timestamp: stamp(e.At), Currency: e.Currency, Type: e.Type,
		Amount: crypto(e.Amount, scale), BalanceAfter: crypto(e.BalanceAfter, scale),
	}, err
}
