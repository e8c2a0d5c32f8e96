package httpapi

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
)

type createPermanentInput struct {
	Currency    string `json:"currency" about:"Combined code; or blockchain and token. Of the currency only its network counts."`
	Blockchain  string `json:"blockchain"`
	Token       string `json:"token"`
	ExternalID  string `json:"external_id" rule:"required,max=64" about:"What you call whom the address is for."`
	WalletID    string `json:"wallet_id" rule:"max=64" about:"wallet_id or external_id of the wallet that is credited; the master account where omitted."`
	CallbackURL string `json:"callback_url" about:"Of the payments that deposits make."`
}

func (in *createPermanentInput) input() payment.AddressInput {
	return payment.AddressInput{
		Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token, ExternalID: in.ExternalID, WalletID: in.WalletID, CallbackURL: in.CallbackURL,
	}
}

// permanentView is a permanent address.
type permanentView struct {
	AddressID   string  `json:"address_id" format:"uuid" about:"What address_id of its payments says."`
	Blockchain  string  `json:"blockchain"`
	Address     string  `json:"address"`
	Memo        *string `json:"memo" about:"Memo or destination tag that address carries, for wallets that take the two apart: then with memo_address. null = none is needed."`
	MemoAddress *string `json:"memo_address" about:"The account that memo is given with; null without memo."`
	ExternalID  string  `json:"external_id"`
	WalletID    *string `json:"wallet_id" about:"As it was given; null = the master account."`
	CallbackURL *string `json:"callback_url"`
	CreatedAt   string  `json:"created_at" format:"date-time"`
	RetiredAt   *string `json:"retired_at" format:"date-time" about:"null = the address is in use. What comes after it goes to suspense."`
}

func (h *Handler) viewPermanent(a *payment.PermanentAddress) permanentView {
	v := permanentView{
		AddressID: a.ID, Blockchain: a.Network, Address: a.Address, ExternalID: a.ExternalID, WalletID: orNull(a.WalletRef), CallbackURL: orNull(a.CallbackURL),
		CreatedAt: stamp(a.CreatedAt), RetiredAt: maybeStamp(a.RetiredAt),
	}
	if account, memo, ok := h.app.Untag(chain.Network(a.Network), chain.Address(a.Address)); ok {
		v.Memo, v.MemoAddress = &memo, orNull(string(account))
	}
	return v
}

func (h *Handler) createAddress(ctx context.Context, c *Call, in createPermanentInput) (permanentView, error) {
	a, made, err := h.app.Payments.PermanentAddress(ctx, c.Tenant(), in.input())
	c.Existed = !made
	return h.viewPermanent(&a), err
}

// checkPermanent finds what else is wrong with a request that is wrong already.
func (h *Handler) checkPermanent(_ context.Context, _ *Call, in createPermanentInput) error {
	return h.app.Payments.CheckAddress(in.input())
}

type listPermanentInput struct {
	ExternalID string `query:"external_id" rule:"max=64"`
	Limit      int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset     int    `query:"offset" rule:"min=0" default:"0"`
}

type permanentList struct {
	Addresses []permanentView `json:"addresses"`
	Total     int64           `json:"total" about:"How many match."`
	Limit     int             `json:"limit"`
	Offset    int             `json:"offset"`
}

func (h *Handler) listAddresses(ctx context.Context, c *Call, in listPermanentInput) (permanentList, error) {
	page, total, err := h.app.Payments.PermanentAddresses(ctx, c.Tenant(), payment.AddressFilter{ExternalID: in.ExternalID, Limit: in.Limit, Offset: in.Offset})
	view := permanentList{Addresses: make([]permanentView, len(page)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range page {
		view.Addresses[i] = h.viewPermanent(&page[i])
	}
	return view, err
}

type permanentPath struct {
	ID string `path:"address_id"`
}

func (h *Handler) retireAddress(ctx context.Context, c *Call, in permanentPath) (permanentView, error) {
	a, err := h.app.Payments.RetireAddress(ctx, c.Tenant(), in.ID)
	return h.viewPermanent(&a), err
}
