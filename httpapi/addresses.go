package httpapi

import (
	"context"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

type validateAddressInput struct {
	Address    string `json:"address" rule:"required,max=255"`
	Currency   string `json:"currency" rule:"max=20" about:"Combined code. At least one of currency, blockchain and type is required."`
	Blockchain string `json:"blockchain"`
	Type       string `json:"type" about:"Address type such as EVM, TRX or SOL."`
	Token      string `json:"token"`
	Memo       string `json:"memo" rule:"max=255" about:"Checked where given, on networks that have memos."`
}

func (in *validateAddressInput) input() withdrawal.AddressInput {
	return withdrawal.AddressInput{
		Address: in.Address, Currency: in.Currency, Blockchain: in.Blockchain, Type: in.Type, Token: in.Token, Memo: in.Memo,
	}
}

type addressView struct {
	IsValid      bool    `json:"is_valid"`
	Address      string  `json:"address" about:"As given."`
	Type         *string `json:"type" about:"null if invalid."`
	Blockchain   *string `json:"blockchain" about:"null where only a type was given."`
	Token        *string `json:"token"`
	Currency     *string `json:"currency"`
	ErrorMessage *string `json:"error_message" about:"null when valid."`
}

func (h *Handler) validateAddress(ctx context.Context, call *Call, in validateAddressInput) (addressView, error) {
	asked := in.input()
	asked.Tenant = call.Tenant()
	a, err := h.app.Withdrawals.ValidateAddress(ctx, asked)
	if err != nil {
		return addressView{}, err
	}
	view := addressView{
		IsValid: a.Reason == "", Address: in.Address, Blockchain: orNull(string(a.Network)), Token: orNull(a.Token), ErrorMessage: orNull(a.Reason),
	}
	if view.IsValid {
		view.Type = orNull(a.Type)
	}
	if a.Currency != nil {
		view.Currency = &a.Currency.Code
	}
	return view, nil
}

// checkAddress finds what else is wrong with a request that is wrong already.
func (h *Handler) checkAddress(_ context.Context, _ *Call, in validateAddressInput) error {
	return h.app.Withdrawals.CheckAddress(in.input())
}
