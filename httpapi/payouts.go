package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

type createPayoutInput struct {
	Withdrawals []createWithdrawalInput `json:"withdrawals" rule:"required,min=1,max=1000" about:"What POST /withdrawal/ takes, in the order of the answer. All are made, or none is."`
}

func (in *createPayoutInput) list(by string) []withdrawal.CreateInput {
	out := make([]withdrawal.CreateInput, len(in.Withdrawals))
	for i := range out {
		out[i] = in.Withdrawals[i].input()
		out[i].By = by
	}
	return out
}

type createdPayoutView struct {
	PayoutID    string           `json:"payout_id" format:"uuid"`
	Count       int              `json:"count" about:"How many withdrawals were made."`
	Withdrawals []withdrawalView `json:"withdrawals" about:"In the order of the request."`
}

type payoutView struct {
	PayoutID    string           `json:"payout_id" format:"uuid"`
	Counts      payoutCounts     `json:"counts" about:"How many of the withdrawals have each status."`
	Withdrawals []withdrawalView `json:"withdrawals" about:"As they are now, in the order of the request."`
}

type payoutCounts struct {
	Pending    int `json:"pending"`
	Processing int `json:"processing"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
}

func (h *Handler) viewWithdrawals(list []withdrawal.Withdrawal) []withdrawalView {
	out := make([]withdrawalView, len(list))
	for i := range list {
		out[i] = h.viewWithdrawal(&list[i])
	}
	return out
}

func (h *Handler) createPayout(ctx context.Context, c *Call, in createPayoutInput) (createdPayoutView, error) {
	p, err := h.app.Withdrawals.CreatePayout(ctx, c.Tenant(), c.Key, in.list(c.Who.Client))
	c.Replayed = p.Replayed
	return createdPayoutView{p.ID, len(p.Withdrawals), h.viewWithdrawals(p.Withdrawals)}, h.payoutError(ctx, c, err)
}

// checkPayout finds what else is wrong with a request that is wrong already.
func (h *Handler) checkPayout(ctx context.Context, c *Call, in createPayoutInput) error {
	return h.payoutError(ctx, c, h.app.Withdrawals.CheckPayout(in.list(c.Who.Client)))
}

// payoutError is what a merchant is told of withdrawals that refuse a payout: every bad field of
// each of them, with the line of a table where it stands. What is no fault of the request's is told
// as it is of one withdrawal. Beside a fault of the request's it stands in the log alone.
func (h *Handler) payoutError(ctx context.Context, c *Call, err error) error {
	var items *withdrawal.PayoutError
	if !errors.As(err, &items) {
		return err
	}
	var wrong fields
	var first error
	ours := map[string]error{} // by their text: an outage is met by many withdrawals
	if items.Other != nil {
		ours[items.Other.Error()] = items.Other
	}
	for _, i := range slices.Sorted(maps.Keys(items.Items)) {
		where := ""
		if i < len(c.lines) {
			where = atLine(c.lines[i])
		}
		for _, err := range items.Items[i] {
			if wrong.withdrawal(i, err, where) {
				continue
			}
			ours[err.Error()] = err
			first = cmp.Or(first, fmt.Errorf("withdrawals[%d]: %w", i, err))
		}
	}
	if len(wrong) == 0 {
		return first
	}
	for _, text := range slices.Sorted(maps.Keys(ours)) {
		h.o.Log.WarnContext(ctx, "payout_fault_unanswered", "tenant", c.Tenant(), "request_id", c.ID, "error", ours[text])
	}
	return &invalidError{Fields: wrong}
}

// withdrawal adds the fields of one withdrawal of a payout that an error names. It returns false
// where the error is not the request's fault.
func (f *fields) withdrawal(i int, err error, where string) bool {
	a, known := toAnswer(err)
	if !known || a.Status >= http.StatusInternalServerError {
		return false
	}
	named := false
	for field, v := range a.Details {
		messages, _ := v.([]string)
		for _, m := range messages {
			f.add(fmt.Sprintf("withdrawals[%d].%s", i, field), m+where)
			named = true
		}
	}
	switch {
	case named:
	case a.Code == notFound.Code:
		f.add(fmt.Sprintf("withdrawals[%d].account_id", i), "is no wallet"+where)
	default:
		f.add(fmt.Sprintf("withdrawals[%d]", i), a.Message+where)
	}
	return true
}

type payoutPath struct {
	ID string `path:"payout_id"`
}

func (h *Handler) getPayout(ctx context.Context, c *Call, in payoutPath) (payoutView, error) {
	p, err := h.app.Withdrawals.Payout(ctx, c.Tenant(), in.ID)
	if errors.Is(err, withdrawal.ErrNotFound) {
		err = fail(http.StatusNotFound, notFound.Code, "The payout does not exist.", nil)
	}
	n := p.Counts()
	counts := payoutCounts{n[withdrawal.Pending], n[withdrawal.Processing], n[withdrawal.Completed], n[withdrawal.Failed], n[withdrawal.Cancelled]}
	return payoutView{p.ID, counts, h.viewWithdrawals(p.Withdrawals)}, err
}
