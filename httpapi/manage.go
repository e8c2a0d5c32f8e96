package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// tenants are those whose treasury the caller may see: his own, and a global
// administrator's all.
func (h *Handler) tenants(ctx context.Context, c *Call) ([]string, error) {
	if c.Who.Role != auth.GlobalAdmin {
		return []string{c.Tenant()}, nil
	}
	const page = 1000
	var out []string
	for {
		some, total, err := h.app.Wallets.Tenants(ctx, page, len(out))
		for _, t := range some {
			out = append(out, t.ID)
		}
		if err != nil || len(some) == 0 || int64(len(out)) >= total {
			return out, err
		}
	}
}

type heldInput struct {
	Blockchain string `path:"blockchain" about:"Such as ETH, BSC, TRX or SOL."`
	Token      string `query:"token" about:"Defaults to USDT where the blockchain has it, else to its own coin."`
}

type heldView struct {
	Blockchain string `json:"blockchain"`
	Token      string `json:"token"`
	Hot        Figure `json:"hot_wallet_balance" about:"On addresses that withdrawals are paid from, as last synchronized."`
	Cold       Figure `json:"cold_wallet_balance" about:"Not immediately available for withdrawals, as last synchronized."`
	Custody    Figure `json:"custody_balance" about:"On deposit addresses and not forwarded yet, and with custodians."`
	Total      Figure `json:"total_balance" about:"The sum of the three."`
}

func viewHeld(t *treasury.Total) heldView {
	return heldView{
		Blockchain: string(t.Currency.Network), Token: t.Currency.Token,
		Hot: plain(t.Hot), Cold: plain(t.Cold), Custody: plain(t.Custody), Total: plain(t.Sum()),
	}
}

func (h *Handler) heldOf(ctx context.Context, c *Call, in heldInput) (heldView, error) {
	currency, err := h.held(in)
	if err != nil {
		return heldView{}, err
	}
	tenants, err := h.tenants(ctx, c)
	if err != nil {
		return heldView{}, err
	}
	all, err := h.app.Treasury.Holdings(ctx, tenants...)
	for i := range all.Totals {
		if all.Totals[i].Currency.Code == currency.Code {
			return viewHeld(&all.Totals[i]), err
		}
	}
	return viewHeld(&treasury.Total{Currency: currency}), err
}

// held finds the currency that is asked for.
func (h *Handler) held(in heldInput) (*chain.Currency, error) {
	network, err := h.cfg.Registry.Network(in.Blockchain)
	if err != nil {
		var codes []string
		for _, n := range h.cfg.Registry.Networks() {
			codes = append(codes, string(n.Code))
		}
		return nil, fail(http.StatusBadRequest, "invalid_request", "The blockchain is invalid. Known are "+strings.Join(codes, ", ")+".", nil)
	}
	if in.Token == "" {
		in.Token = h.usualToken(network)
	}
	currency, err := h.cfg.Registry.Pair(string(network.Code), in.Token)
	if err != nil {
		var tokens []string
		for _, c := range h.cfg.Registry.On(network.Code) {
			tokens = append(tokens, c.Token)
		}
		return nil, fail(http.StatusBadRequest, "invalid_request", "The token is not one of "+string(network.Code)+", which has "+strings.Join(tokens, ", ")+".", nil)
	}
	return currency, nil
}

// usualToken is what a request means that names a network and no token.
func (h *Handler) usualToken(network chain.NetworkInfo) string {
	if _, err := h.cfg.Registry.Pair(string(network.Code), "USDT"); err == nil {
		return "USDT"
	}
	gas, err := h.cfg.Registry.Gas(network.Code)
	if err != nil {
		return ""
	}
	return gas.Token
}

type holdingsInput struct {
	Wallets bool `query:"include_wallets" default:"true"`
	Custody bool `query:"include_custody" default:"true"`
}

type holdingsView struct {
	Totals   []heldView       `json:"total_balances"`
	Wallets  []walletHeldView `json:"wallets" about:"[] where include_wallets is false"`
	Accounts []custodyView    `json:"custody_accounts" about:"[] where include_custody is false"`
	Updated  *string          `json:"last_updated" format:"date-time" about:"null before the first synchronization"`
}

type walletHeldView struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Blockchain string  `json:"blockchain"`
	Address    string  `json:"address"`
	Cold       bool    `json:"is_cold_wallet"`
	Balance    Figure  `json:"balance"`
	Token      string  `json:"token"`
	LastCheck  *string `json:"last_check" format:"date-time"`
}

type custodyView struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	ExternalID *string `json:"external_id"`
	Active     bool    `json:"is_active"`
	LastSync   *string `json:"last_sync" format:"date-time"`
}

func (h *Handler) listHoldings(ctx context.Context, c *Call, in holdingsInput) (holdingsView, error) {
	tenants, err := h.tenants(ctx, c)
	if err != nil {
		return holdingsView{}, err
	}
	all, err := h.app.Treasury.Holdings(ctx, tenants...)
	view := holdingsView{
		Totals: make([]heldView, 0, len(all.Totals)), Wallets: []walletHeldView{}, Accounts: []custodyView{}, Updated: maybeStamp(all.Updated),
	}
	for i := range all.Totals {
		view.Totals = append(view.Totals, viewHeld(&all.Totals[i]))
	}
	for i := range all.Wallets {
		if in.Wallets {
			view.Wallets = append(view.Wallets, viewWalletHeld(&all.Wallets[i]))
		}
	}
	for _, a := range all.Accounts {
		if in.Custody {
			view.Accounts = append(view.Accounts, custodyView{a.ID, a.Name, orNull(a.ExternalID), a.Active, maybeStamp(a.ReadAt)})
		}
	}
	return view, err
}

func viewWalletHeld(w *treasury.WalletHolding) walletHeldView {
	return walletHeldView{
		ID: w.ID, Name: w.Name, Blockchain: string(w.Network), Address: string(w.Address), Cold: w.Cold,
		Balance: plain(w.Amount), Token: w.Currency.Token, LastCheck: maybeStamp(w.ReadAt),
	}
}

type syncView struct {
	WalletsUpdated  int                `json:"wallets_updated"`
	WalletErrors    []walletErrorView  `json:"wallet_errors"`
	AccountsUpdated int                `json:"custody_accounts_updated"`
	AccountErrors   []accountErrorView `json:"custody_errors"`
	Time            string             `json:"sync_time" format:"date-time"`
}

type walletErrorView struct {
	WalletID   string `json:"wallet_id"`
	Blockchain string `json:"blockchain"`
	Error      string `json:"error"`
}

type accountErrorView struct {
	AccountID string `json:"account_id"`
	Error     string `json:"error"`
}

func (h *Handler) syncHoldings(ctx context.Context, c *Call, _ none) (syncView, error) {
	tenants, err := h.tenants(ctx, c)
	if err != nil {
		return syncView{}, err
	}
	all, err := h.app.Treasury.Sync(ctx, tenants...)
	view := syncView{
		WalletsUpdated: all.WalletsUpdated, WalletErrors: []walletErrorView{},
		AccountsUpdated: all.AccountsUpdated, AccountErrors: []accountErrorView{}, Time: stamp(all.At),
	}
	for _, e := range all.WalletErrors {
		view.WalletErrors = append(view.WalletErrors, walletErrorView{e.Wallet, string(e.Network), e.Reason})
	}
	for _, e := range all.AccountErrors {
		view.AccountErrors = append(view.AccountErrors, accountErrorView{e.Account, e.Reason})
	}
	return view, err
}
