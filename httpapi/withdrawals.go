package httpapi

import (
	"context"
	"net/http"

	"github.com/cryptopay-go/cryptopay/internal/person"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// termsInput are the fields that decide what a withdrawal costs.
type termsInput struct {
	Amount        Number `json:"amount" about:"In whole coins. Exactly one of amount and price_amount."`
	PriceAmount   Number `json:"price_amount" about:"In price_currency, at most 2 places; converted once, rounded down."`
	PriceCurrency string `json:"price_currency" default:"USD"`
	FinalAmount   bool   `json:"final_amount" default:"false" about:"The figure is what the recipient gets; fees are added on top."`
	Currency      string `json:"currency" about:"Combined code. Either it, or blockchain and token."`
	Blockchain    string `json:"blockchain"`
	Token         string `json:"token"`
}

func (in *termsInput) terms(address string) withdrawal.Terms {
	return withdrawal.Terms{
		Amount: in.Amount.Pointer(), PriceAmount: in.PriceAmount.Pointer(), PriceCurrency: in.PriceCurrency, FinalAmount: in.FinalAmount,
		Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token, Address: address,
	}
}

type createWithdrawalInput struct {
	termsInput
	Address     string `json:"address" rule:"required,max=255"`
	Memo        string `json:"memo" rule:"max=255" about:"Memo or destination tag; required on XRP and XLM, a note of the merchant elsewhere."`
	CustomID    string `json:"custom_id" rule:"max=64"`
	CallbackURL string `json:"callback_url" rule:"max=2048"`
	AccountID   string `json:"account_id" rule:"max=255" about:"wallet_id or external_id of the wallet that pays; the master account where omitted."`
}

func (in *createWithdrawalInput) input() withdrawal.CreateInput {
	return withdrawal.CreateInput{
		Terms: in.terms(in.Address), Memo: in.Memo, CustomID: in.CustomID, CallbackURL: in.CallbackURL, AccountID: in.AccountID,
	}
}

// withdrawalView is the Withdrawal object.
type withdrawalView struct {
	WithdrawalID          string            `json:"withdrawal_id" format:"uuid"`
	CustomID              *string           `json:"custom_id"`
	Amount                string            `json:"amount" format:"decimal" about:"What the recipient receives, 8 places."`
	RequestedAmount       string            `json:"requested_amount" format:"decimal"`
	Fee                   string            `json:"fee" format:"decimal" about:"platform_fee plus network_fee."`
	PlatformFee           string            `json:"platform_fee" format:"decimal"`
	NetworkFee            string            `json:"network_fee" format:"decimal" about:"As quoted at creation."`
	Blockchain            string            `json:"blockchain"`
	Token                 string            `json:"token"`
	Currency              string            `json:"currency"`
	Address               string            `json:"address"`
	Memo                  *string           `json:"memo"`
	Status                withdrawal.Status `json:"status"`
	TransactionHash       *string           `json:"transaction_hash"`
	Confirmations         int64             `json:"confirmations"`
	RequiredConfirmations int64             `json:"required_confirmations"`
	BatchID               *string           `json:"batch_id" about:"The same for all that one transaction pays; null where it pays this one alone, and until it is signed. It may change until the withdrawal is completed."`
	CallbackURL           *string           `json:"callback_url"`
	CreatedAt             string            `json:"created_at" format:"date-time"`
	UpdatedAt             string            `json:"updated_at" format:"date-time"`
	CompletedAt           *string           `json:"completed_at" format:"date-time"`
	WaitingReason         *string           `json:"waiting_reason" about:"Why it is not completed yet: approval, review, halted, hot_short, gas_short, fee_too_high, consolidating, delivered_less, below_cost, stuck or reorged. null = it waits for its turn or its confirmations alone, or has ended well. A completed one has a reason while no block has its payment, or while somebody has to decide about what it brought less."`
	WaitingSince          *string           `json:"waiting_since" format:"date-time" about:"When waiting_reason began."`
	RequestedBy           *string           `json:"requested_by" about:"The client that asked for it; null where it is not known."`
	Rule                  *string           `json:"rule" about:"The rules of the service's policy that asked for approvals, delayed or refused it, with commas between; null = none did."`
	ApprovalsRequired     int               `json:"approvals_required" about:"How many people have to approve it, as the service's policy says; 0 = nobody."`
	Approvals             []approvalView    `json:"approvals" about:"What people decided about it, oldest first."`
}

// approvalView is one decision about a withdrawal.
type approvalView struct {
	By       string            `json:"by" about:"The client that decided."`
	At       string            `json:"at" format:"date-time"`
	Decision withdrawal.Answer `json:"decision" rule:"enum=approved|refused"`
	Reason   *string           `json:"reason"`
}

func (h *Handler) viewWithdrawal(w *withdrawal.Withdrawal) withdrawalView {
	scale := h.app.Withdrawals.Scale(w)
	reason := orNull(w.WaitingReason())
	var since *string
	if reason != nil {
		since = maybeStamp(w.WaitingSince)
	}
	approvals := []approvalView{}
	for _, d := range w.Decisions {
		if d.Human() {
			approvals = append(approvals, approvalView{d.By, stamp(d.At), d.Answer, orNull(d.Reason)})
		}
	}
	return withdrawalView{
		WaitingReason: reason, WaitingSince: since, RequestedBy: orNull(w.RequestedBy), Rule: orNull(w.Rule()), ApprovalsRequired: w.ApprovalsRequired(), Approvals: approvals,
		WithdrawalID: w.ID, CustomID: orNull(w.CustomID),
		Amount: crypto(w.Amount, scale), RequestedAmount: crypto(w.Requested, scale), Fee: crypto(w.Fee(), scale),
		PlatformFee: crypto(w.PlatformFee, scale), NetworkFee: crypto(w.NetworkFee, scale),
		Blockchain: w.Network, Token: w.Token, Currency: w.Currency, Address: w.Address, Memo: orNull(w.Memo), Status: w.Status,
		TransactionHash: orNull(w.Tx), Confirmations: w.Confirmations, RequiredConfirmations: w.Required,
		BatchID: orNull(w.BatchID), CallbackURL: orNull(w.CallbackURL),
		CreatedAt: stamp(w.CreatedAt), UpdatedAt: stamp(w.UpdatedAt), CompletedAt: maybeStamp(w.CompletedAt),
	}
}

func (h *Handler) createWithdrawal(ctx context.Context, c *Call, in createWithdrawalInput) (withdrawalView, error) {
	input := in.input()
	input.Key, input.By = c.Key, c.Who.Client
	w, err := h.app.Withdrawals.Create(ctx, c.Tenant(), input)
	c.Replayed = w.Replayed
	return h.viewWithdrawal(&w), err
}

// checkWithdrawal finds what else is wrong with a request that is wrong already.
func (h *Handler) checkWithdrawal(_ context.Context, _ *Call, in createWithdrawalInput) error {
	return h.app.Withdrawals.Check(in.input())
}

type listWithdrawalsInput struct {
	Status     string `query:"status" rule:"enum=pending|processing|completed|failed|cancelled"`
	Currency   string `query:"currency"`
	Blockchain string `query:"blockchain"`
	Token      string `query:"token"`
	CustomID   string `query:"custom_id" rule:"max=64"`
	StartDate  string `query:"start_date" about:"Inclusive: a datetime, or a date, which is its whole day in UTC."`
	EndDate    string `query:"end_date" about:"Inclusive, as start_date."`
	Limit      int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset     int    `query:"offset" rule:"min=0" default:"0"`
	Sort       string `query:"sort" rule:"enum=created_desc|created_asc|amount_desc|amount_asc" default:"created_desc"`
}

// filter reads the query; the error names everything that is wrong with it.
func (h *Handler) withdrawalFilter(in listWithdrawalsInput) (withdrawal.Filter, error) {
	f := withdrawal.Filter{
		Status: withdrawal.Status(in.Status), Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token, CustomID: in.CustomID,
		Sort: withdrawal.Sort(in.Sort), Limit: in.Limit, Offset: in.Offset,
	}
	var err error
	var wrong fields
	f.From, f.Before, err = withdrawal.DateRange(in.StartDate, in.EndDate)
	wrong.merge(err)
	wrong.merge(h.app.Withdrawals.CheckFilter(f))
	if len(wrong) > 0 {
		return f, &invalidError{Fields: wrong}
	}
	return f, nil
}

type withdrawalsView struct {
	Withdrawals []withdrawalView `json:"withdrawals"`
	Total       int64            `json:"total" about:"How many match."`
	Limit       int              `json:"limit"`
	Offset      int              `json:"offset"`
}

func (h *Handler) listWithdrawals(ctx context.Context, c *Call, in listWithdrawalsInput) (withdrawalsView, error) {
	f, err := h.withdrawalFilter(in)
	if err != nil {
		return withdrawalsView{}, err
	}
	page, total, err := h.app.Withdrawals.List(ctx, c.Tenant(), f)
	return withdrawalsView{h.viewWithdrawals(page), total, in.Limit, in.Offset}, err
}

func (h *Handler) checkWithdrawalFilter(_ context.Context, _ *Call, in listWithdrawalsInput) error {
	_, err := h.withdrawalFilter(in)
	return err
}

type withdrawalPath struct {
	ID string `path:"withdrawal_id"`
}

func (h *Handler) getWithdrawal(ctx context.Context, c *Call, in withdrawalPath) (withdrawalView, error) {
	w, err := h.app.Withdrawals.Get(ctx, c.Tenant(), in.ID)
	return h.viewWithdrawal(&w), err
}

type withdrawalID struct {
	ID string `json:"withdrawal_id" rule:"required,format=uuid"`
}

func (h *Handler) withdrawalStatus(ctx context.Context, c *Call, in withdrawalID) (withdrawalView, error) {
	w, err := h.app.Withdrawals.Get(ctx, c.Tenant(), in.ID)
	return h.viewWithdrawal(&w), err
}

func (h *Handler) cancelWithdrawal(ctx context.Context, c *Call, in withdrawalPath) (withdrawalView, error) {
	w, err := h.app.Withdrawals.Get(ctx, c.Tenant(), in.ID)
	if err == nil {
		err = h.mayEnd(ctx, c.Tenant(), &w)
	}
	if err != nil {
		return withdrawalView{}, err
	}
	w, err = h.app.Withdrawals.Cancel(ctx, c.Tenant(), in.ID)
	return h.viewWithdrawal(&w), err
}

type approveInput struct {
	ID     string `path:"withdrawal_id"`
	Reason string `json:"reason" rule:"max=1000" about:"Why; it is kept with the caller's client."`
}

func (h *Handler) approveWithdrawal(ctx context.Context, c *Call, in approveInput) (withdrawalView, error) {
	return h.decide(ctx, c, in.ID, withdrawal.AnswerApproved, in.Reason)
}

type refuseInput struct {
	ID     string `path:"withdrawal_id"`
	Reason string `json:"reason" rule:"required,max=1000" about:"Why; it is kept with the caller's client."`
}

func (h *Handler) refuseWithdrawal(ctx context.Context, c *Call, in refuseInput) (withdrawalView, error) {
	return h.decide(ctx, c, in.ID, withdrawal.AnswerRefused, in.Reason)
}

// mayEnd is mayCancel of the refund whose withdrawal w is; others may be ended.
func (h *Handler) mayEnd(ctx context.Context, tenant string, w *withdrawal.Withdrawal) error {
	id, ok := refund.OfWithdrawal(w)
	if !ok {
		return nil
	}
	return h.mayCancel(ctx, tenant, id)
}

// decide gives a caller's answer to the policy's question: a merchant's approver does not
// decide before the policy has asked.
func (h *Handler) decide(ctx context.Context, c *Call, id string, a withdrawal.Answer, reason string) (withdrawalView, error) {
	w, err := h.app.Withdrawals.Get(ctx, c.Tenant(), id)
	by := c.Who.Client
	switch {
	case err != nil:
		return withdrawalView{}, err
	case !person.Same(w.RequestedBy, by) && w.Review != withdrawal.ReviewWanted && !w.Decided(by, a):
		return withdrawalView{}, &withdrawal.StateError{ID: id, Current: w.Status}
	case a == withdrawal.AnswerApproved:
		var roles []string
		if name := c.Who.Role.Name(); name != "" {
			roles = []string{name}
		}
		w, err = h.app.Withdrawals.Approve(ctx, c.Tenant(), id, by, reason, roles...)
	default:
		if err = h.mayEnd(ctx, c.Tenant(), &w); err != nil {
			return withdrawalView{}, err
		}
		w, err = h.app.Withdrawals.Refuse(ctx, c.Tenant(), id, by, reason)
	}
	return h.viewWithdrawal(&w), err
}

type estimateInput struct {
	termsInput
	Address string `json:"address" rule:"max=255" about:"Makes the network fee more exact."`
}

type estimateView struct {
	RequestedAmount string `json:"requested_amount" format:"decimal"`
	Fee             string `json:"fee" format:"decimal"`
	Amount          string `json:"amount" format:"decimal" about:"What the recipient would receive."`
	Currency        string `json:"currency"`
	Blockchain      string `json:"blockchain"`
	Token           string `json:"token"`
	PlatformFee     string `json:"platform_fee" format:"decimal"`
	NetworkFee      string `json:"network_fee" format:"decimal"`
}

func (h *Handler) estimateWithdrawal(ctx context.Context, c *Call, in estimateInput) (estimateView, error) {
	e, err := h.app.Withdrawals.Estimate(ctx, c.Tenant(), in.terms(in.Address))
	if err != nil {
		return estimateView{}, err
	}
	cur := e.Currency
	return estimateView{
		RequestedAmount: crypto(e.Requested, cur.Scale), Fee: crypto(e.Fee(), cur.Scale), Amount: crypto(e.Amount, cur.Scale),
		Currency: cur.Code, Blockchain: string(cur.Network), Token: cur.Token,
		PlatformFee: crypto(e.PlatformFee, cur.Scale), NetworkFee: crypto(e.NetworkFee, cur.Scale),
	}, nil
}

func (h *Handler) checkEstimate(_ context.Context, _ *Call, in estimateInput) error {
	_, err := h.app.Withdrawals.CheckTerms(in.terms(in.Address))
	return err
}

type feeEstimateInput struct {
	Amount     Number `json:"amount" rule:"required" about:"In whole coins, above 0."`
	Blockchain string `json:"blockchain"`
	Token      string `json:"token" about:"Without it and without currency: USDT where the blockchain has it, else its own coin."`
	Currency   string `json:"currency" about:"Combined code, instead of blockchain and token."`
	Address    string `json:"address" rule:"max=255" about:"Makes the fee more exact."`
}

func (h *Handler) feeTerms(in *feeEstimateInput) withdrawal.Terms {
	t := withdrawal.Terms{Amount: in.Amount.Pointer(), Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token, Address: in.Address}
	if t.Currency == "" && t.Blockchain != "" && t.Token == "" {
		if network, err := h.cfg.Registry.Network(t.Blockchain); err == nil {
			t.Token = h.usualToken(network)
		}
	}
	return t
}

type feeEstimateView struct {
	Currency string `json:"currency"`
	Fee      Figure `json:"fee" about:"In the withdrawal's currency: platform fee and network fee."`
}

func (h *Handler) estimateFee(ctx context.Context, c *Call, in feeEstimateInput) (feeEstimateView, error) {
	if in.Amount.Decimal().Sign() <= 0 {
		return feeEstimateView{}, fail(http.StatusUnprocessableEntity, "invalid_amount", "The amount must be greater than 0.",
			map[string]any{"amount": []string{"must be greater than 0"}})
	}
	if err := h.checkFeeNetwork(ctx, c, in); err != nil {
		return feeEstimateView{}, err
	}
	e, err := h.app.Withdrawals.FeeEstimate(ctx, c.Tenant(), h.feeTerms(&in))
	if err != nil {
		return feeEstimateView{}, err
	}
	return feeEstimateView{e.Currency.Code, plain(e.Currency.Decimal(e.Fee()))}, nil
}

// checkFeeNetwork refuses what is no blockchain at all: one that lacks the token
// is a currency that does not exist.
func (h *Handler) checkFeeNetwork(_ context.Context, _ *Call, in feeEstimateInput) error {
	if in.Blockchain == "" || in.Currency != "" {
		return nil
	}
	if _, err := h.cfg.Registry.Network(in.Blockchain); err != nil {
		return bad("blockchain", "is not supported")
	}
	return nil
}

type minAmountInput struct {
	Currency   string `json:"currency" about:"Combined code. Either it, or blockchain and token."`
	Blockchain string `json:"blockchain"`
	Token      string `json:"token"`
}

type minAmountView struct {
	MinAmount  Figure `json:"min_amount" about:"The least that a recipient may get."`
	Currency   string `json:"currency"`
	Blockchain string `json:"blockchain"`
	Token      string `json:"token"`
}

func (h *Handler) withdrawalMinimum(_ context.Context, _ *Call, in minAmountInput) (minAmountView, error) {
	c, err := h.app.Withdrawals.MinAmount(in.Currency, in.Blockchain, in.Token)
	if err != nil {
		return minAmountView{}, err
	}
	return minAmountView{Figure(c.MinWithdrawal), c.Code, string(c.Network), c.Token}, nil
}

type spendableView struct {
	Currency         string `json:"currency"`
	Blockchain       string `json:"blockchain"`
	Token            string `json:"token"`
	AvailableBalance string `json:"available_balance" format:"decimal"`
	MinAmount        string `json:"min_amount" format:"decimal"`
}

type spendablesView struct {
	Currencies []spendableView `json:"currencies"`
}

func (h *Handler) availableCurrencies(ctx context.Context, c *Call, _ none) (spendablesView, error) {
	list, err := h.app.Withdrawals.AvailableCurrencies(ctx, c.Tenant())
	view := spendablesView{Currencies: make([]spendableView, len(list))}
	for i, s := range list {
		view.Currencies[i] = spendableView{
			Currency: s.Currency.Code, Blockchain: string(s.Currency.Network), Token: s.Currency.Token,
			AvailableBalance: crypto(s.Available, s.Currency.Scale), MinAmount: crypto(s.Min, s.Currency.Scale),
		}
	}
	return view, err
}

type withdrawalLimitsInput struct {
	Currency string `query:"currency" about:"Combined code; all currencies where omitted."`
}

type withdrawalLimitView struct {
	Currency       string  `json:"currency"`
	MinAmount      string  `json:"min_amount" format:"decimal" about:"Of what the recipient gets."`
	MaxAmount      *string `json:"max_amount" format:"decimal" about:"Of one withdrawal, fees included; null = none."`
	DailyLimit     *string `json:"daily_limit" format:"decimal" about:"Of a day, UTC, fees included; null = none."`
	DailyUsed      *string `json:"daily_used" format:"decimal" about:"null where there is no daily limit."`
	DailyRemaining *string `json:"daily_remaining" format:"decimal"`
}

type withdrawalLimitsView struct {
	Limits []withdrawalLimitView `json:"limits"`
}

func (h *Handler) withdrawalLimits(ctx context.Context, c *Call, in withdrawalLimitsInput) (withdrawalLimitsView, error) {
	list, err := h.app.Withdrawals.Limits(ctx, c.Tenant(), in.Currency)
	view := withdrawalLimitsView{Limits: make([]withdrawalLimitView, len(list))}
	for i, l := range list {
		shown := func(a ledger.Amount) *string { return orNull(crypto(a, l.Currency.Scale)) }
		line := withdrawalLimitView{Currency: l.Currency.Code, MinAmount: crypto(l.Min, l.Currency.Scale)}
		if l.Max > 0 {
			line.MaxAmount = shown(l.Max)
		}
		if l.Daily > 0 {
			line.DailyLimit, line.DailyUsed, line.DailyRemaining = shown(l.Daily), shown(l.Used), shown(max(0, l.Daily-l.Used))
		}
		view.Limits[i] = line
	}
	return view, err
}
