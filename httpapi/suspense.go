package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
)

// Ids of deposits and of deliveries have slashes, which do not go well in a path. There, and
// in what names them, a tilde stands for a slash; a slash is taken too, as %2F.
func pathID(id string) string { return strings.ReplaceAll(id, "/", "~") }

func fromPath(id string) string { return strings.ReplaceAll(id, "~", "/") }

type depositsInput struct {
	ID     string `path:"transaction_id"`
	Limit  int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset int    `query:"offset" rule:"min=0" default:"0"`
}

type depositView struct {
	DepositID             string `json:"deposit_id"`
	Amount                string `json:"amount" format:"decimal" about:"8 places."`
	Currency              string `json:"currency"`
	TransactionHash       string `json:"transaction_hash"`
	Status                string `json:"status" rule:"enum=seen|final|gone" about:"final: it has its confirmations. gone: it is in no block and no mempool any more."`
	Role                  string `json:"role" rule:"enum=counted|late|unmatched|below_dust" about:"Only what is counted makes up the payment. unmatched: another asset, or a person has to look at it."`
	Confirmations         int64  `json:"confirmations"`
	RequiredConfirmations int64  `json:"required_confirmations"`
	Timestamp             string `json:"timestamp" format:"date-time" about:"When it was first seen."`
}

type depositsView struct {
	Deposits []depositView `json:"deposits"`
	Total    int64         `json:"total" about:"How many there are."`
	Limit    int           `json:"limit"`
	Offset   int           `json:"offset"`
}

func (h *Handler) listDeposits(ctx context.Context, c *Call, in depositsInput) (depositsView, error) {
	page, total, err := h.app.Payments.Arrivals(ctx, c.Tenant(), in.ID, in.Limit, in.Offset)
	view := depositsView{Deposits: make([]depositView, len(page)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range page {
		d := &page[i]
		view.Deposits[i] = depositView{
			DepositID: d.ID, Amount: h.app.Payments.ShownAmount(&d.Deposit), Currency: d.Currency, TransactionHash: d.Tx, Status: d.ShownStatus(),
			Role: d.ShownRole(), Confirmations: d.Confirmations, RequiredConfirmations: d.Required, Timestamp: stamp(d.FirstSeen),
		}
	}
	return view, err
}

type suspenseInput struct {
	Status string `query:"status" rule:"enum=open|credited|refunded|ignored"`
	Reason string `query:"reason" rule:"enum=late|wrong_asset|wrong_network|below_minimum|unmatched"`
	Limit  int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset int    `query:"offset" rule:"min=0" default:"0"`
}

// suspendedView is an entry of suspense.
type suspendedView struct {
	SuspenseID      string  `json:"suspense_id" about:"The deposit's id, with ~ for /."`
	Amount          string  `json:"amount" format:"decimal" about:"8 places."`
	Currency        string  `json:"currency"`
	Address         string  `json:"address"`
	TransactionHash string  `json:"transaction_hash"`
	TransactionID   *string `json:"transaction_id" format:"uuid" about:"The payment that has the address; null where none has."`
	Reason          string  `json:"reason" rule:"enum=late|wrong_asset|wrong_network|below_minimum|unmatched" about:"below_minimum: at a permanent address; it is credited when what waits there adds up to the minimum. unmatched: no payment had the address, it cannot be proved, or a person has to look at it."`
	Screening       *string `json:"screening" rule:"enum=held|refused" about:"held: the operator looks at it first, and resolveSuspense answers 409 until then. refused: the operator alone decides about it, and it never counts for a payment. null: neither."`
	Status          string  `json:"status" rule:"enum=open|credited|refunded|ignored"`
	RefundID        *string `json:"refund_id" format:"uuid" about:"The refund that has the money; null where none has."`
	CreatedAt       string  `json:"created_at" format:"date-time"`
}

type suspenseList struct {
	Suspense []suspendedView `json:"suspense"`
	Total    int64           `json:"total" about:"How many match."`
	Limit    int             `json:"limit"`
	Offset   int             `json:"offset"`
}

func (h *Handler) viewSuspended(d *payment.Suspended) suspendedView {
	return suspendedView{
		SuspenseID: pathID(d.ID), Amount: h.app.Payments.ShownAmount(&d.Deposit), Currency: d.Currency, Address: d.Address, TransactionHash: d.Tx,
		TransactionID: orNull(d.PaymentID), Reason: d.SuspenseReason(), Screening: screening(&d.Deposit), Status: string(d.SuspenseStatus()), CreatedAt: stamp(d.CreatedAt),
	}
}

// screening is what the host's screening made of a deposit, null where it counts as others do.
func screening(d *payment.Deposit) *string {
	if d.Role != payment.RoleHeld && d.Role != payment.RoleRefused {
		return nil
	}
	return orNull(string(d.Role))
}

func (h *Handler) listSuspense(ctx context.Context, c *Call, in suspenseInput) (suspenseList, error) {
	page, total, err := h.app.Payments.SuspenseList(ctx, c.Tenant(), payment.SuspenseFilter{
		Status: payment.SuspenseStatus(in.Status), Reason: in.Reason, Limit: in.Limit, Offset: in.Offset,
	})
	view := suspenseList{Suspense: make([]suspendedView, len(page)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range page {
		view.Suspense[i] = h.viewSuspended(&page[i])
		if err == nil && page[i].SuspenseStatus() == payment.SuspenseRefunded {
			view.Suspense[i].RefundID, err = h.refundOf(ctx, c.Tenant(), page[i].ID)
		}
	}
	return view, err
}

// refundOf is the refund that has the money of a deposit, nil where somebody sent it by hand.
func (h *Handler) refundOf(ctx context.Context, tenant, deposit string) (*string, error) {
	made, _, err := h.app.Refunds.List(ctx, tenant, refund.Filter{Deposit: deposit, Limit: payment.MaxPage})
	for i := range made {
		if s := made[i].Status; s != refund.Failed && s != refund.Cancelled {
			return &made[i].ID, err
		}
	}
	return nil, err
}

type resolveInput struct {
	ID       string `path:"suspense_id"`
	Action   string `json:"action" rule:"required,enum=credit|refund|ignore" about:"credit: to a wallet, in full and without fees. refund: to an address, less the fees of a withdrawal; should that end unpaid, it is open again. ignore: it stays where it is, and nobody is asked again."`
	WalletID string `json:"wallet_id" rule:"max=64" about:"Of credit: wallet_id or external_id; the master account where omitted."`
	Address  string `json:"address" rule:"max=255" about:"Of refund, required there: the customer's, as he named it."`
	Memo     string `json:"memo" rule:"max=255" about:"Of refund: memo or destination tag of the address."`
	Reason   string `json:"reason" rule:"required,max=1000" about:"Why; it is kept with the caller's client."`
}

// wrong says which fields do not belong to the action.
func (in *resolveInput) wrong() error {
	var bad fields
	if in.Action == "refund" && in.Address == "" {
		bad.add("address", "is required")
	}
	for field, given := range map[string]string{"address": in.Address, "memo": in.Memo} {
		if given != "" && in.Action != "refund" {
			bad.add(field, "belongs to refund")
		}
	}
	if in.WalletID != "" && in.Action != "credit" {
		bad.add("wallet_id", "belongs to credit")
	}
	if len(bad) > 0 {
		return &invalidError{Fields: bad}
	}
	return nil
}

func (h *Handler) checkResolve(_ context.Context, _ *Call, in resolveInput) error { return in.wrong() }

func (h *Handler) resolveSuspense(ctx context.Context, c *Call, in resolveInput) (suspendedView, error) {
	if err := in.wrong(); err != nil {
		return suspendedView{}, err
	}
	var (
		made refund.Refund
		d    payment.Suspended
		err  error
		by   = cryptopay.Call{By: c.Who.Client, Reason: in.Reason, Merchant: true}
	)
	switch in.Action {
	case "credit":
		d, _, err = h.app.Operate.CreditSuspense(ctx, c.Tenant(), fromPath(in.ID), in.WalletID, by)
	case "refund":
		if made, _, err = h.app.Operate.PayOutSuspense(ctx, c.Tenant(), fromPath(in.ID), in.Address, in.Memo, by); err == nil {
			d, err = h.app.Payments.SuspendedDeposit(ctx, c.Tenant(), made.Deposit)
		}
	default:
		d, _, err = h.app.Operate.IgnoreSuspense(ctx, c.Tenant(), fromPath(in.ID), by)
	}
	var (
		state   *payment.StateError
		missing *payment.NotFoundError
	)
	switch {
	case errors.As(err, &missing) && missing.Field != "wallet_id", errors.As(err, &state) && state.Status == "": // a fork may take it away meanwhile
		err = &payment.NotFoundError{Field: "suspense_id", ID: in.ID}
	case errors.As(err, &state) && state.Status == payment.Status(payment.SuspenseOpen):
		err = operatorDecides(state.Status)
	case errors.As(err, &state):
		err = fail(http.StatusConflict, invalidState.Code, "Somebody has decided about it already.", map[string]any{"current_status": state.Status})
	}
	view := h.viewSuspended(&d)
	view.RefundID = orNull(made.ID)
	return view, err
}

// operatorDecides is the answer about what the host's screening has held or refused.
func operatorDecides(current any) error {
	return fail(http.StatusConflict, invalidState.Code, "The operator decides about it.", map[string]any{"current_status": current})
}

// mayCancel refuses a merchant who would cancel the operator's refund of money that the host's
// screening has held or refused.
func (h *Handler) mayCancel(ctx context.Context, tenant, id string) error {
	r, err := h.app.Refunds.Get(ctx, tenant, id)
	if err != nil || r.Deposit == "" {
		return err
	}
	d, err := h.app.Payments.SuspendedDeposit(ctx, tenant, r.Deposit)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return nil
	case err == nil && screening(&d.Deposit) != nil:
		return operatorDecides(r.Status)
	}
	return err
}
