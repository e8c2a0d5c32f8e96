package httpapi

import (
	"context"
	"strings"

	"github.com/cryptopay-go/cryptopay/refund"
)

// all is the word for the whole of an amount.
const all = "all"

type createRefundInput struct {
	ID          string `path:"transaction_id"`
	Amount      Number `json:"amount" rule:"required,or=all" about:"What leaves the wallet that was credited, in whole coins of the payment's currency; or all, which is all that is left to refund: what was received, less what forks took away and what its refunds took. The fees of a withdrawal come off it."`
	Address     string `json:"address" rule:"max=255" about:"The customer's, as he named it: never the sender's of the payment. Without it claim_url is where he names it."`
	Memo        string `json:"memo" rule:"max=255" about:"Memo or destination tag of the address; required on XRP and XLM."`
	Reason      string `json:"reason" rule:"max=1000" about:"Why; it is kept, and the customer does not see it."`
	CallbackURL string `json:"callback_url" rule:"max=2048" about:"Gets each refund_update of this refund."`
}

func (in *createRefundInput) input() refund.CreateInput {
	out := refund.CreateInput{
		Payment: in.ID, All: in.Amount.Text == all, Address: in.Address, Memo: in.Memo, Reason: in.Reason, CallbackURL: in.CallbackURL,
	}
	if !out.All {
		out.Amount = in.Amount.Pointer()
	}
	return out
}

// refundView is a refund.
type refundView struct {
	refund.Record
	ClaimURL *string `json:"claim_url" about:"Where the customer names his address, once, within 30 days. Whoever has it gets the money. null where there is an address, or the refund has ended."`
}

func (h *Handler) viewRefund(r *refund.Refund) refundView {
	v := refundView{Record: r.Record()}
	if token := h.app.Refunds.Token(r); token != "" {
		v.ClaimURL = orNull(strings.TrimSuffix(h.o.BaseURL, "/") + h.o.Prefix + "/claim/" + token + "/")
	}
	return v
}

func (h *Handler) createRefund(ctx context.Context, c *Call, in createRefundInput) (refundView, error) {
	input := in.input()
	input.Key, input.By = c.Key, c.Who.Client
	r, err := h.app.Refunds.Create(ctx, c.Tenant(), input)
	c.Replayed = r.Replayed
	return h.viewRefund(&r), err
}

// checkRefund finds what else is wrong with a request that is wrong already.
func (h *Handler) checkRefund(_ context.Context, _ *Call, in createRefundInput) error {
	return h.app.Refunds.Check(in.input())
}

type listRefundsInput struct {
	TransactionID string `query:"transaction_id" rule:"max=200" about:"Those of one payment."`
	SuspenseID    string `query:"suspense_id" rule:"max=200" about:"Those of one deposit that was in suspense."`
	Status        string `query:"status" rule:"enum=awaiting_address|pending|processing|completed|failed|cancelled"`
	DateFrom      string `query:"date_from" about:"Created at or after it: a datetime, or a date."`
	DateTo        string `query:"date_to" about:"Created at or before it: a datetime, or a date, which is meant whole."`
	Limit         int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset        int    `query:"offset" rule:"min=0" default:"0"`
}

// refundFilter reads the query; the error names everything that is wrong with it.
func (h *Handler) refundFilter(in listRefundsInput) (refund.Filter, error) {
	f := refund.Filter{
		Payment: in.TransactionID, Deposit: fromPath(in.SuspenseID), Status: refund.Status(in.Status), Limit: in.Limit, Offset: in.Offset,
	}
	var wrong fields
	f.From, f.Before, wrong = period(in.DateFrom, in.DateTo)
	wrong.merge(h.app.Refunds.CheckFilter(f))
	if len(wrong) > 0 {
		return f, &invalidError{Fields: wrong}
	}
	return f, nil
}

func (h *Handler) checkRefundFilter(_ context.Context, _ *Call, in listRefundsInput) error {
	_, err := h.refundFilter(in)
	return err
}

type refundsView struct {
	Refunds []refundView `json:"refunds"`
	Total   int64        `json:"total" about:"How many match."`
	Limit   int          `json:"limit"`
	Offset  int          `json:"offset"`
}

func (h *Handler) listRefunds(ctx context.Context, c *Call, in listRefundsInput) (refundsView, error) {
	f, err := h.refundFilter(in)
	if err != nil {
		return refundsView{}, err
	}
	page, total, err := h.app.Refunds.List(ctx, c.Tenant(), f)
	view := refundsView{Refunds: make([]refundView, len(page)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range page {
		view.Refunds[i] = h.viewRefund(&page[i])
	}
	return view, err
}

type refundPath struct {
	ID string `path:"refund_id"`
}

func (h *Handler) getRefund(ctx context.Context, c *Call, in refundPath) (refundView, error) {
	r, err := h.app.Refunds.Get(ctx, c.Tenant(), in.ID)
	return h.viewRefund(&r), err
}

func (h *Handler) cancelRefund(ctx context.Context, c *Call, in refundPath) (refundView, error) {
	if err := h.mayCancel(ctx, c.Tenant(), in.ID); err != nil {
		return refundView{}, err
	}
	r, err := h.app.Refunds.Cancel(ctx, c.Tenant(), in.ID)
	return h.viewRefund(&r), err
}

type claimPath struct {
	Token string `path:"token"`
}

type claimInput struct {
	claimPath
	Address string `json:"address" rule:"required,max=255" about:"Where the money goes. Nobody can take it back from a wrong one."`
	Memo    string `json:"memo" rule:"max=255" about:"Memo or destination tag of the address; required on XRP and XLM."`
}

// claimView is all that a customer sees of a refund.
type claimView struct {
	Amount   string        `json:"amount" format:"decimal" about:"8 places. The fees of the network come off it."`
	Currency string        `json:"currency"`
	Status   refund.Status `json:"status"`
}

func viewClaim(c refund.Claim) claimView {
	return claimView{Amount: crypto(c.Amount, uint8(c.Scale)), Currency: c.Currency, Status: c.Status} //nolint:gosec // a scale is at most 8
}

func (h *Handler) getClaim(ctx context.Context, _ *Call, in claimPath) (claimView, error) {
	c, err := h.app.Refunds.Offered(ctx, in.Token)
	return viewClaim(c), err
}

func (h *Handler) useClaim(ctx context.Context, _ *Call, in claimInput) (claimView, error) {
	c, err := h.app.Refunds.Claim(ctx, in.Token, in.Address, in.Memo)
	return viewClaim(c), err
}
