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

type refundPath struct {
	ID string `path:"refund_id"`
}

func (h *Handler) getRefund(ctx context.Context, c *Call, in refundPath) (refundView, error) {
	r, err := h.app.Refunds.Get(ctx, c.Tenant(), in.ID)
	return h.viewRefund(&r), err
}

func (h *Handler) cancelRefund(ctx context.Context, c *Call, in refundPath) (refundView, error) {
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
