package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// walletView is a sub-account with its balances.
type walletView struct {
	ID         int64         `json:"id" about:"1, 2, 3 … of the account."`
	Name       string        `json:"name"`
	ExternalID string        `json:"external_id" about:"The merchant's own identifier."`
	WalletID   string        `json:"wallet_id" format:"uuid"`
	Created    string        `json:"created" format:"date-time"`
	Updated    string        `json:"updated" format:"date-time"`
	Balances   []balanceView `json:"balances" about:"Currencies that the wallet ever had."`
}

// balanceView is what a wallet has of one currency.
type balanceView struct {
	Currency  string `json:"currency"`
	Amount    string `json:"amount" format:"decimal" about:"The total, 8 places."`
	Pending   string `json:"pending_amount" format:"decimal" about:"Of it, in withdrawals and transfers under way."`
	Available string `json:"available_balance" format:"decimal" about:"The rest."`
}

// accountView is a sub-account as look-ups name it.
type accountView struct {
	ID         string `json:"id" format:"uuid" about:"The same as wallet_id."`
	Name       string `json:"name"`
	ExternalID string `json:"external_id"`
	WalletID   string `json:"wallet_id" format:"uuid"`
}

func viewAccount(w *wallet.Wallet) accountView {
	return accountView{ID: w.ID, Name: w.Name, ExternalID: w.ExternalID, WalletID: w.ID}
}

func (h *Handler) viewWallet(w *wallet.Wallet, balances []wallet.Balance) (walletView, error) {
	shown, err := h.viewBalances(balances)
	return walletView{
		ID: w.Number, Name: w.Name, ExternalID: w.ExternalID, WalletID: w.ID,
		Created: stamp(w.CreatedAt), Updated: stamp(w.UpdatedAt), Balances: shown,
	}, err
}

func (h *Handler) viewBalances(balances []wallet.Balance) ([]balanceView, error) {
	out := make([]balanceView, 0, len(balances))
	for _, b := range balances {
		scale, err := h.app.Scale(b.Currency)
		if err != nil {
			return nil, err
		}
		out = append(out, balanceView{b.Currency, crypto(b.Amount, scale), crypto(b.Pending, scale), crypto(b.Available, scale)})
	}
	return out, nil
}

type walletsView struct {
	Accounts []walletView `json:"accounts"`
	Total    int64        `json:"total"`
}

type walletsInput struct {
	Limit  int `query:"limit" rule:"min=1,max=1000" default:"1000"`
	Offset int `query:"offset" rule:"min=0" default:"0"`
}

func (h *Handler) listWallets(ctx context.Context, c *Call, in walletsInput) (walletsView, error) {
	list, total, err := h.app.Wallets.List(ctx, c.Tenant(), in.Limit, in.Offset)
	if err != nil {
		return walletsView{}, err
	}
	view := walletsView{Accounts: make([]walletView, len(list)), Total: total}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	balances, err := h.app.Wallets.Balances(ctx, c.Tenant(), ids...)
	for i := range list {
		if err == nil {
			view.Accounts[i], err = h.viewWallet(&list[i], balances[list[i].ID])
		}
	}
	return view, err
}

type createWalletInput struct {
	Name       string `json:"name" rule:"required,max=255"`
	ExternalID string `json:"external_id" rule:"required,max=64" about:"The merchant's own identifier; unique."`
}

func (h *Handler) createWallet(ctx context.Context, c *Call, in createWalletInput) (walletView, error) {
	w, err := h.app.Wallets.Create(ctx, c.Tenant(), wallet.CreateInput{Name: in.Name, ExternalID: in.ExternalID, Key: c.Key})
	if err != nil {
		return walletView{}, err
	}
	c.Replayed = w.Replayed
	return h.viewWallet(&w, nil)
}

func (h *Handler) checkWallet(_ context.Context, _ *Call, in createWalletInput) error {
	return h.app.Wallets.Check(wallet.CreateInput{Name: in.Name, ExternalID: in.ExternalID})
}

type walletPath struct {
	ID string `path:"id" about:"The wallet's id or wallet_id."`
}

// subAccount finds a wallet as a path names it. The master account is no
// sub-account: no path has it.
func (h *Handler) subAccount(ctx context.Context, c *Call, id string) (wallet.Wallet, error) {
	w, err := h.app.Wallets.Get(ctx, c.Tenant(), id)
	if err == nil && w.ID == wallet.Master {
		err = wallet.ErrNotFound
	}
	return w, err
}

// show is a wallet with its present balances.
func (h *Handler) show(ctx context.Context, c *Call, w *wallet.Wallet) (walletView, error) {
	balances, err := h.app.Wallets.Balances(ctx, c.Tenant(), w.ID)
	if err != nil {
		return walletView{}, err
	}
	return h.viewWallet(w, balances[w.ID])
}

func (h *Handler) getWallet(ctx context.Context, c *Call, in walletPath) (walletView, error) {
	w, err := h.subAccount(ctx, c, in.ID)
	if err != nil {
		return walletView{}, err
	}
	return h.show(ctx, c, &w)
}

type updateWalletInput struct {
	ID         string  `path:"id" about:"The wallet's id or wallet_id."`
	Name       *string `json:"name" rule:"min=1,max=255"`
	ExternalID *string `json:"external_id" about:"Cannot be changed."`
}

func (h *Handler) updateWallet(ctx context.Context, c *Call, in updateWalletInput) (walletView, error) {
	if err := h.checkUpdateWallet(ctx, c, in); err != nil {
		return walletView{}, err
	}
	w, err := h.subAccount(ctx, c, in.ID)
	if err == nil && in.Name != nil {
		w, err = h.app.Wallets.Rename(ctx, c.Tenant(), w.ID, *in.Name)
	}
	if err != nil {
		return walletView{}, err
	}
	return h.show(ctx, c, &w)
}

func (h *Handler) checkUpdateWallet(_ context.Context, _ *Call, in updateWalletInput) error {
	if in.ExternalID != nil {
		return bad("external_id", "cannot be changed")
	}
	return nil
}

func (h *Handler) deleteWallet(ctx context.Context, c *Call, in walletPath) (none, error) {
	w, err := h.subAccount(ctx, c, in.ID)
	if err == nil {
		err = h.app.Wallets.Delete(ctx, c.Tenant(), w.ID)
	}
	return none{}, err
}

type lookupInput struct {
	WalletID   string `json:"wallet_id" about:"wallet_id or external_id is required; wallet_id wins."`
	ExternalID string `json:"external_id"`
}

type lookupView struct {
	Account  accountView   `json:"account"`
	Balances []balanceView `json:"balances" about:"Currencies that the wallet ever had."`
}

func (h *Handler) walletBalances(ctx context.Context, c *Call, in lookupInput) (lookupView, error) {
	w, err := h.app.Wallets.Find(ctx, c.Tenant(), in.WalletID, in.ExternalID)
	if err != nil {
		return lookupView{}, err
	}
	return h.lookup(ctx, c, &w)
}

func (h *Handler) walletBalance(ctx context.Context, c *Call, in walletPath) (lookupView, error) {
	w, err := h.subAccount(ctx, c, in.ID)
	if err != nil {
		return lookupView{}, err
	}
	return h.lookup(ctx, c, &w)
}

func (h *Handler) lookup(ctx context.Context, c *Call, w *wallet.Wallet) (lookupView, error) {
	balances, err := h.app.Wallets.Balances(ctx, c.Tenant(), w.ID)
	if err != nil {
		return lookupView{}, err
	}
	shown, err := h.viewBalances(balances[w.ID])
	return lookupView{Account: viewAccount(w), Balances: shown}, err
}

type proofInput struct {
	ID       string `path:"id" about:"The wallet's id or wallet_id."`
	Currency string `query:"currency" rule:"required" about:"Combined code."`
}

// proofView shows that a wallet's balance stands in a seal of the account's journal.
type proofView struct {
	Root       string      `json:"root" about:"The seal's hash, SHA-256, in hex. Compare it with the one that the operator has published for seal_number."`
	SealNumber int64       `json:"seal_number" about:"1, 2, 3 … of the account's seals."`
	SealedAt   string      `json:"sealed_at" format:"date-time"`
	Currency   string      `json:"currency"`
	Balance    string      `json:"balance" format:"decimal" about:"The wallet's total, as sealed. The leaf has it exactly."`
	Scale      uint8       `json:"scale" about:"Decimal places of the units in the leaf."`
	Leaf       string      `json:"leaf" about:"The sealed movement with the balance after it, in hex."`
	Path       []proofStep `json:"path" about:"h = SHA-256(leaf); then, for each step, h = SHA-256(before, h, after). The last h is root."`
}

// proofStep is what is hashed before and behind the hash so far.
type proofStep struct {
	Before string `json:"before" about:"Hex."`
	After  string `json:"after" about:"Hex."`
}

func (h *Handler) walletProof(ctx context.Context, c *Call, in proofInput) (proofView, error) {
	scale, err := h.app.Scale(in.Currency) // also of one that is no longer listed: it may be in the balances
	if errors.Is(err, chain.ErrCurrency) {
		err = bad("currency", "is not supported")
	}
	if err != nil {
		return proofView{}, err
	}
	w, err := h.subAccount(ctx, c, in.ID)
	if err != nil {
		return proofView{}, err
	}
	p, ok, err := h.app.ProveBalance(ctx, c.Tenant(), w.ID, in.Currency)
	if err == nil && !ok {
		err = fail(http.StatusNotFound, "not_found", "No seal has a balance of this wallet in this currency yet. A new balance is in the next seal.", nil)
	}
	if err != nil {
		return proofView{}, err
	}
	return proofView{
		Root: hex.EncodeToString(p.Seal.Hash), SealNumber: p.Seal.Number, SealedAt: stamp(p.Seal.At),
		Currency: in.Currency, Balance: crypto(p.Entry.After, scale), Scale: scale, Leaf: hex.EncodeToString(p.Leaf),
		Path: []proofStep{{Before: hex.EncodeToString(p.Before), After: hex.EncodeToString(p.After)}},
	}, nil
}

type transferInput struct {
	WalletID    string `json:"wallet_id" about:"The wallet's wallet_id or external_id. Required, or external_id."`
	ExternalID  string `json:"external_id"`
	Currency    string `json:"currency" about:"Combined code; required unless blockchain and token are given."`
	Blockchain  string `json:"blockchain"`
	Token       string `json:"token"`
	Amount      Number `json:"amount" rule:"required"`
	CallbackURL string `json:"callback_url" rule:"max=2048" about:"Told when the transfer has ended: transfer_status_update."`
}

func (h *Handler) transferOf(in *transferInput, to wallet.Direction) (wallet.TransferInput, error) {
	out := wallet.TransferInput{
		Direction: to, WalletID: in.WalletID, ExternalID: in.ExternalID, Currency: in.Currency,
		Amount: in.Amount.Decimal(), CallbackURL: in.CallbackURL,
	}
	if in.Blockchain == "" && in.Token == "" {
		return out, nil
	}
	var wrong fields
	switch code := h.pair(in.Blockchain, in.Token); {
	case in.Blockchain == "":
		wrong.add("blockchain", "is required with token")
	case in.Token == "":
		wrong.add("token", "is required with blockchain")
	case in.Currency != "" && in.Currency != code:
		wrong.add("currency", "does not agree with blockchain and token")
	default:
		out.Currency = code
		return out, nil
	}
	wrong.merge(h.app.Wallets.CheckTransfer(out))
	return out, &invalidError{Fields: wrong}
}

// pair is the code of a token on a network. Where there is none it is what no
// code is written like, so that the service refuses it after all else was looked
// at.
func (h *Handler) pair(network, token string) string {
	c, err := h.cfg.Registry.Pair(network, token)
	if err != nil {
		return token + "@" + network
	}
	return c.Code
}

type transferView struct {
	Status     string `json:"status" rule:"enum=accepted"`
	TransferID string `json:"transfer_id" format:"uuid"`
	Message    string `json:"message"`
}

func (h *Handler) transferToUser(ctx context.Context, c *Call, in transferInput) (transferView, error) {
	return h.transfer(ctx, c, &in, wallet.ToSub)
}

func (h *Handler) withdrawToMaster(ctx context.Context, c *Call, in transferInput) (transferView, error) {
	return h.transfer(ctx, c, &in, wallet.ToMaster)
}

func (h *Handler) transfer(ctx context.Context, c *Call, in *transferInput, to wallet.Direction) (transferView, error) {
	input, err := h.transferOf(in, to)
	if err != nil {
		return transferView{}, err
	}
	input.Key = c.Key
	t, err := h.app.Wallets.CreateTransfer(ctx, c.Tenant(), input)
	if err != nil {
		return transferView{}, err
	}
	c.Replayed = t.Replayed
	return transferView{"accepted", t.ID, "The transfer was accepted."}, nil
}

func (h *Handler) checkTransfer(_ context.Context, _ *Call, in transferInput) error {
	input, err := h.transferOf(&in, wallet.ToSub) // the direction does not matter here
	if err != nil {
		return err
	}
	return h.app.Wallets.CheckTransfer(input)
}

type transfersInput struct {
	WalletID   string `json:"wallet_id" about:"wallet_id or external_id, or the wallet_id of one that was deleted; every wallet's transfers where omitted."`
	ExternalID string `json:"external_id"`
	Status     string `json:"status" rule:"enum=pending|completed|failed"`
	Type       string `json:"transfer_type" rule:"enum=to_sub|to_master"`
	Currency   string `json:"currency"`
	Limit      int    `json:"limit" rule:"min=1,max=100" default:"20"`
	Offset     int    `json:"offset" rule:"min=0" default:"0"`
}

// transferRecord is a transfer in a history; events show the same fields.
type transferRecord struct {
	TransferID  string                `json:"transfer_id" format:"uuid"`
	WalletID    string                `json:"wallet_id" format:"uuid"`
	ExternalID  string                `json:"external_id"`
	Type        wallet.Direction      `json:"transfer_type"`
	Currency    string                `json:"currency"`
	Amount      string                `json:"amount" format:"decimal"`
	Status      wallet.TransferStatus `json:"status"`
	Error       *string               `json:"error"`
	CallbackURL *string               `json:"callback_url"`
	CreatedAt   string                `json:"created_at" format:"date-time"`
	UpdatedAt   string                `json:"updated_at" format:"date-time"`
	CompletedAt *string               `json:"completed_at" format:"date-time"`
}

type pagination struct {
	Total  int64 `json:"total"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
}

type transfersView struct {
	Account    *accountView     `json:"account" about:"The wallet asked for, null = all."`
	Transfers  []transferRecord `json:"transfers"`
	Pagination pagination       `json:"pagination"`
}

func (h *Handler) transferHistory(ctx context.Context, c *Call, in transfersInput) (transfersView, error) {
	if err := h.checkTransfers(ctx, c, in); err != nil {
		return transfersView{}, err
	}
	view := transfersView{Pagination: pagination{Limit: in.Limit, Offset: in.Offset}}
	f := wallet.TransferFilter{
		Status: wallet.TransferStatus(in.Status), Direction: wallet.Direction(in.Type), Currency: in.Currency, Limit: in.Limit, Offset: in.Offset,
	}
	if in.WalletID != "" || in.ExternalID != "" {
		w, err := h.app.Wallets.FindPast(ctx, c.Tenant(), in.WalletID, in.ExternalID)
		if err != nil {
			return view, err
		}
		account := viewAccount(&w)
		f.Wallet, view.Account = w.ID, &account
	}
	list, total, err := h.app.Wallets.TransferHistory(ctx, c.Tenant(), f)
	view.Pagination.Total = total
	view.Transfers = make([]transferRecord, len(list))
	for i := range list {
		if err == nil {
			view.Transfers[i], err = h.viewTransfer(&list[i])
		}
	}
	return view, err
}

func (h *Handler) checkTransfers(_ context.Context, _ *Call, in transfersInput) error {
	return h.known(in.Currency)
}

func (h *Handler) viewTransfer(t *wallet.Transfer) (transferRecord, error) {
	scale, err := h.app.Scale(t.Currency)
	return transferRecord{
		TransferID: t.ID, WalletID: t.Wallet, ExternalID: t.ExternalID, Type: t.Direction, Currency: t.Currency,
		Amount: crypto(t.Amount, scale), Status: t.Status, Error: orNull(t.Error), CallbackURL: orNull(t.CallbackURL),
		CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt), CompletedAt: maybeStamp(t.CompletedAt),
	}, err
}

// known refuses a currency of a list's filter that is none of ours; "" = none
// was given.
func (h *Handler) known(currency string) error {
	if _, err := h.cfg.Registry.Currency(currency); currency != "" && err != nil {
		return bad("currency", "is not supported")
	}
	return nil
}
