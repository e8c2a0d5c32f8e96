package httpapi

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
)

// pricingInput are the fields that decide what a customer has to send. price_amount
// and pay_currency are the second listing's names for amount and currency.
type pricingInput struct {
	Amount        Number `json:"amount" about:"In price_currency, at most 2 places. Required."`
	PriceAmount   Number `json:"price_amount" about:"Another name of amount."`
	Currency      string `json:"currency" about:"Combined code; required unless blockchain and token are given."`
	PayCurrency   string `json:"pay_currency" about:"Another name of currency."`
	Blockchain    string `json:"blockchain"`
	Token         string `json:"token"`
	PriceCurrency string `json:"price_currency" default:"USD"`
	FixedRate     *bool  `json:"is_fixed_rate" about:"Defaults to true."`
	FeeByUser     *bool  `json:"is_fee_paid_by_user" about:"Defaults to the account's setting."`
}

func (in *pricingInput) pricing() (payment.Pricing, error) {
	amount, currency := in.Amount.Text, in.Currency
	var wrong fields
	if amount == "" {
		amount = in.PriceAmount.Text
	} else if in.PriceAmount.Given && !in.PriceAmount.Decimal().Equal(in.Amount.Decimal()) {
		wrong.add("price_amount", "does not agree with amount")
	}
	if currency == "" {
		currency = in.PayCurrency
	} else if in.PayCurrency != "" && in.PayCurrency != currency {
		wrong.add("pay_currency", "does not agree with currency")
	}
	if len(wrong) > 0 {
		return payment.Pricing{}, &invalidError{Fields: wrong}
	}
	return payment.Pricing{
		Amount: amount, PriceCurrency: in.PriceCurrency, Currency: currency, Blockchain: in.Blockchain, Token: in.Token,
		FixedRate: in.FixedRate, FeeByUser: in.FeeByUser,
	}, nil
}

type createPaymentInput struct {
	pricingInput
	OrderID       string `json:"order_id" rule:"max=100"`
	Description   string `json:"order_description" rule:"max=5000"`
	CallbackURL   string `json:"callback_url" rule:"max=2048"`
	CustomID      string `json:"custom_id" rule:"max=64"`
	CustomerEmail string `json:"customer_email" rule:"max=254"`
	WalletID      string `json:"wallet_id" rule:"max=64" about:"wallet_id or external_id of the wallet that is credited; the master account where omitted."`
	ExpiryMinutes *int   `json:"expiry_minutes" rule:"min=1,max=1440"`
}

func (in *createPaymentInput) input() (payment.CreateInput, error) {
	p, err := in.pricing()
	return payment.CreateInput{
		Pricing: p, OrderID: in.OrderID, Description: in.Description, CallbackURL: in.CallbackURL, CustomID: in.CustomID,
		CustomerEmail: in.CustomerEmail, WalletID: in.WalletID, ExpiryMinutes: in.ExpiryMinutes,
	}, err
}

// paymentView is the detail view.
type paymentView struct {
	TransactionID    string         `json:"transaction_id" format:"uuid"`
	Blockchain       string         `json:"blockchain"`
	Currency         string         `json:"currency"`
	Status           payment.Status `json:"status"`
	AmountUSD        string         `json:"amount_usd" format:"decimal" about:"In the price currency, 2 places."`
	AmountCrypto     string         `json:"amount_crypto" format:"decimal" about:"What the customer must send, 8 places."`
	Address          string         `json:"address"`
	Token            string         `json:"token"`
	TransactionHash  *string        `json:"transaction_hash"`
	OrderID          string         `json:"order_id"`
	OrderDescription string         `json:"order_description"`
	CallbackURL      string         `json:"callback_url"`
	ExpiryTime       string         `json:"expiry_time" format:"date-time"`
	CreatedAt        string         `json:"created_at" format:"date-time"`
	UpdatedAt        string         `json:"updated_at" format:"date-time"`
	FixedRate        bool           `json:"is_fixed_rate"`
	FeePaidByUser    bool           `json:"is_fee_paid_by_user"`
	WalletID         string         `json:"wallet_id,omitempty"`
	CustomerEmail    string         `json:"customer_email,omitempty"`
	paymentProgress
	Suspense []suspenseView `json:"suspense" about:"What came to the address and does not count for the payment."`
}

// paymentProgress is what both views of a payment show of its money.
type paymentProgress struct {
	AmountReceived        string  `json:"amount_received" format:"decimal" about:"What came and is final, 8 places."`
	AmountPending         string  `json:"amount_pending" format:"decimal" about:"What came and is not final yet."`
	AmountMissing         string  `json:"amount_missing" format:"decimal" about:"What the customer still has to send; 0 once enough has come."`
	Confirmations         int64   `json:"confirmations" about:"The lowest among the deposits that are needed."`
	RequiredConfirmations int64   `json:"required_confirmations"`
	PaymentURI            string  `json:"payment_uri" about:"Link for the customer's wallet, or for a QR code: BIP21, EIP-681, Solana Pay, or the network's usual form. Over what is missing, else over amount_crypto."`
	Memo                  *string `json:"memo" about:"Memo or destination tag that address carries, for wallets that take the two apart: then with memo_address. null = none is needed."`
	MemoAddress           *string `json:"memo_address" about:"The account that memo is given with; null without memo."`
	CustomID              string  `json:"custom_id"`
	AddressID             *string `json:"address_id" about:"Of the permanent address that the payment's money came to; null for a payment of POST /payments/."`
	CheckoutURL           *string `json:"checkout_url" about:"Page that the customer pays on. null = the service has none."`
}

// suspenseView is one transfer that does not count.
type suspenseView struct {
	Amount          string `json:"amount" format:"decimal" about:"8 places."`
	Currency        string `json:"currency"`
	TransactionHash string `json:"transaction_hash"`
	Reason          string `json:"reason" about:"late, wrong_asset or unmatched."`
}

// detail is the detail view of a payment as it is stored.
func (h *Handler) detail(ctx context.Context, tenant string, p *payment.Payment) (paymentView, error) {
	progress, err := h.app.Payments.Progress(ctx, tenant, []payment.Payment{*p})
	if err != nil {
		return paymentView{}, err
	}
	view := h.viewPayment(tenant, p, progress[0])
	uncounted, err := h.app.Payments.Uncounted(ctx, tenant, p)
	for i := range uncounted {
		d := &uncounted[i]
		v := suspenseView{Currency: d.Currency, TransactionHash: d.Tx, Reason: d.SuspenseReason(), Amount: ledger.FixedString(d.Exact, cryptoPlaces)}
		view.Suspense = append(view.Suspense, v)
	}
	return view, err
}

// viewProgress is what both views show of a payment's money.
func (h *Handler) viewProgress(tenant string, p *payment.Payment, at payment.Progress) paymentProgress {
	scale, network, to := uint8(p.Scale), chain.Network(p.Network), chain.Address(p.Address)
	v := paymentProgress{
		AmountReceived: crypto(at.Received, scale), AmountPending: crypto(at.Pending, scale), AmountMissing: crypto(at.Missing, scale),
		Confirmations: at.Confirmations, RequiredConfirmations: at.Required, CustomID: p.CustomID, AddressID: orNull(p.AddressID),
	}
	account, memo, tagged := h.app.Untag(network, to)
	if tagged {
		to, v.Memo, v.MemoAddress = account, &memo, orNull(string(account))
	}
	due := at.Missing
	if due == 0 {
		due = p.Due
	}
	if c, err := h.cfg.Registry.Currency(p.Currency); err == nil {
		v.PaymentURI = h.cfg.Registry.PaymentURI(c, to, due, memo)
	}
	if h.o.CheckoutURL != nil {
		v.CheckoutURL = orNull(h.o.CheckoutURL(tenant, p.ID))
	}
	return v
}

// viewNew is the detail view of a payment that was just made.
func (h *Handler) viewNew(tenant string, p *payment.Payment) paymentView {
	return h.viewPayment(tenant, p, payment.Progress{Missing: p.Due, Required: h.app.Payments.Required(p)})
}

func (h *Handler) viewPayment(tenant string, p *payment.Payment, at payment.Progress) paymentView {
	return paymentView{
		paymentProgress: h.viewProgress(tenant, p, at), Suspense: []suspenseView{},
		TransactionID: p.ID, Blockchain: p.Network, Currency: p.Currency, Status: p.Shown(),
		AmountUSD: ledger.FixedString(p.Price, fiatPlaces), AmountCrypto: crypto(p.Due, uint8(p.Scale)), Address: p.Address, Token: p.Token,
		TransactionHash: orNull(p.Tx), OrderID: p.OrderID, OrderDescription: p.Description, CallbackURL: p.CallbackURL,
		ExpiryTime: stamp(p.ExpiresAt), CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
		FixedRate: p.FixedRate, FeePaidByUser: p.FeeByUser, WalletID: p.WalletRef, CustomerEmail: p.CustomerEmail,
	}
}

// paymentItem is the list view.
type paymentItem struct {
	TransactionID string         `json:"transaction_id" format:"uuid"`
	Blockchain    string         `json:"blockchain"`
	Currency      string         `json:"currency"`
	Status        payment.Status `json:"status"`
	AmountUSD     string         `json:"amount_usd" format:"decimal"`
	AmountCrypto  string         `json:"amount_crypto" format:"decimal"`
	Address       string         `json:"address"`
	Token         string         `json:"token"`
	OrderID       string         `json:"order_id"`
	CreatedAt     string         `json:"created_at" format:"date-time"`
	UpdatedAt     string         `json:"updated_at" format:"date-time"`
	paymentProgress
}

func (h *Handler) itemOfPayment(tenant string, p *payment.Payment, at payment.Progress) paymentItem {
	return paymentItem{
		paymentProgress: h.viewProgress(tenant, p, at),
		TransactionID:   p.ID, Blockchain: p.Network, Currency: p.Currency, Status: p.Shown(),
		AmountUSD: ledger.FixedString(p.Price, fiatPlaces), AmountCrypto: crypto(p.Due, uint8(p.Scale)), Address: p.Address, Token: p.Token,
		OrderID: p.OrderID, CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
	}
}

func (h *Handler) createPayment(ctx context.Context, c *Call, in createPaymentInput) (paymentView, error) {
	input, err := in.input()
	if err != nil {
		return paymentView{}, err
	}
	input.Key = c.Key
	c.once.Encode = func(result any) ([]byte, error) {
		p, _ := result.(payment.Payment)
		return json.Marshal(h.viewNew(c.Tenant(), &p))
	}
	p, err := h.app.Payments.Create(ctx, c.Tenant(), input)
	if err != nil || !p.Replayed {
		return h.viewNew(c.Tenant(), &p), err
	}
	c.Replayed = true
	return h.replayPayment(ctx, c.Tenant(), c.once.First())
}

// replayPayment is a stored first answer. Where the customer pays is shown as the payment
// says: the answer may have been edited. One that was stored before answers showed a
// payment's progress is completed with that of its creation.
func (h *Handler) replayPayment(ctx context.Context, tenant string, first []byte) (view paymentView, err error) {
	if err = json.Unmarshal(first, &view); err != nil {
		return view, err
	}
	p, err := h.app.Payments.Get(ctx, tenant, view.TransactionID)
	if err != nil {
		return paymentView{}, err
	}
	created := h.viewNew(tenant, &p)
	if view.AmountMissing != "" {
		created.RequiredConfirmations = view.RequiredConfirmations
	}
	view.Blockchain, view.Currency, view.Token, view.Address = created.Blockchain, created.Currency, created.Token, created.Address
	view.paymentProgress, view.Suspense = created.paymentProgress, created.Suspense
	return view, nil
}

// checkPayment finds what else is wrong with a request that is wrong already.
func (h *Handler) checkPayment(_ context.Context, _ *Call, in createPaymentInput) error {
	input, err := in.input()
	if err != nil {
		return err
	}
	return h.app.Payments.Check(input)
}

type listPaymentsInput struct {
	Limit      int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset     int    `query:"offset" rule:"min=0" default:"0"`
	Status     string `query:"status" rule:"enum=waiting|confirming|confirmed|sending|completed|expired|failed"`
	Currency   string `query:"currency"`
	Blockchain string `query:"blockchain"`
	Token      string `query:"token"`
	OrderID    string `query:"order_id" rule:"max=100"`
	CustomID   string `query:"custom_id" rule:"max=64"`
	DateFrom   string `query:"date_from" about:"Created at or after it: a datetime, or a date."`
	DateTo     string `query:"date_to" about:"Created at or before it: a datetime, or a date, which is meant whole."`
}

// paymentFilter reads the query; the error names everything that is wrong with it.
func (h *Handler) paymentFilter(in listPaymentsInput) (payment.Filter, error) {
	f := payment.Filter{
		Status: payment.Status(in.Status), Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token,
		OrderID: in.OrderID, CustomID: in.CustomID, Limit: in.Limit, Offset: in.Offset,
	}
	var wrong fields
	f.From, f.Before, wrong = period(in.DateFrom, in.DateTo)
	wrong.merge(h.app.Payments.CheckFilter(f))
	if len(wrong) > 0 {
		return f, &invalidError{Fields: wrong}
	}
	return f, nil
}

func (h *Handler) checkPaymentFilter(_ context.Context, _ *Call, in listPaymentsInput) error {
	_, err := h.paymentFilter(in)
	return err
}

type paymentsView struct {
	Count   int64         `json:"count" about:"How many match."`
	Total   int64         `json:"total" about:"How many there are."`
	Offset  int           `json:"offset"`
	Limit   int           `json:"limit"`
	Results []paymentItem `json:"results"`
}

func (h *Handler) listPayments(ctx context.Context, c *Call, in listPaymentsInput) (paymentsView, error) {
	f, err := h.paymentFilter(in)
	if err != nil {
		return paymentsView{}, err
	}
	page, count, total, err := h.app.Payments.List(ctx, c.Tenant(), f)
	view := paymentsView{Count: count, Total: total, Offset: in.Offset, Limit: in.Limit, Results: make([]paymentItem, 0, len(page))}
	if err != nil {
		return view, err
	}
	progress, err := h.app.Payments.Progress(ctx, c.Tenant(), page)
	if err != nil {
		return view, err
	}
	for i := range page {
		view.Results = append(view.Results, h.itemOfPayment(c.Tenant(), &page[i], progress[i]))
	}
	return view, nil
}

type paymentID struct {
	ID string `json:"transaction_id" rule:"required,format=uuid"`
}

func (h *Handler) getPayment(ctx context.Context, c *Call, in paymentID) (paymentView, error) {
	p, err := h.app.Payments.Get(ctx, c.Tenant(), in.ID)
	if err != nil {
		return paymentView{}, err
	}
	return h.detail(ctx, c.Tenant(), &p)
}

type limitsInput struct {
	Currency string `query:"currency" rule:"required"`
}

type paymentLimitsView struct {
	Currency   string `json:"currency"`
	MinAmount  Figure `json:"min_amount"`
	MaxAmount  Figure `json:"max_amount"`
	Blockchain string `json:"blockchain"`
	Token      string `json:"token"`
}

func (h *Handler) paymentLimits(ctx context.Context, _ *Call, in limitsInput) (paymentLimitsView, error) {
	c, err := h.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return paymentLimitsView{}, err
	}
	least, err := h.app.Payments.Minimums(ctx, c)
	return paymentLimitsView{
		Currency: c.Code, MinAmount: plain(least[c.Code]), MaxAmount: plain(c.Most()), Blockchain: string(c.Network), Token: c.Token,
	}, err
}

type quoteView struct {
	PriceAmount   string  `json:"price_amount" format:"decimal"`
	PriceCurrency string  `json:"price_currency"`
	Currency      string  `json:"currency"`
	Blockchain    string  `json:"blockchain"`
	Token         string  `json:"token"`
	AmountCrypto  string  `json:"amount_crypto" format:"decimal"`
	Rate          string  `json:"rate" format:"decimal"`
	FeeAmount     string  `json:"fee_amount" format:"decimal"`
	FixedRate     bool    `json:"is_fixed_rate"`
	FeePaidByUser bool    `json:"is_fee_paid_by_user"`
	MinAmount     string  `json:"min_amount" format:"decimal"`
	MaxAmount     string  `json:"max_amount" format:"decimal"`
	RateAt        string  `json:"rate_at" format:"date-time" about:"When the sources of the price named rate."`
	ExpiresAt     string  `json:"expires_at" format:"date-time" about:"When rate is too old to be used. An estimate binds nobody: a payment is priced anew when it is created, also before."`
	ForwardCost   *string `json:"forward_cost" format:"decimal" about:"What the service would pay the network at present to move such a payment on to its hot address, in currency, 8 places. null = it is not moved, or the cost is unknown."`
	BelowCost     bool    `json:"below_cost" about:"Moving the payment on would cost more than it brings at present: forward_cost is above amount_crypto. It is taken and credited all the same."`
}

func (h *Handler) estimatePayment(ctx context.Context, c *Call, in pricingInput) (quoteView, error) {
	p, err := in.pricing()
	if err != nil {
		return quoteView{}, err
	}
	q, err := h.app.Payments.Estimate(ctx, c.Tenant(), p)
	if err != nil {
		return quoteView{}, err
	}
	var forward *string
	if q.ForwardCost > 0 {
		forward = orNull(ledger.FixedString(q.Currency.Decimal(q.ForwardCost).RoundUp(cryptoPlaces), cryptoPlaces))
	}
	return quoteView{
		PriceAmount: ledger.FixedString(q.Price, fiatPlaces), PriceCurrency: q.PriceCurrency,
		Currency: q.Currency.Code, Blockchain: string(q.Currency.Network), Token: q.Currency.Token,
		AmountCrypto: crypto(q.Due, q.Currency.Scale), Rate: ledger.PlainString(q.Rate), FeeAmount: crypto(q.Fee, q.Currency.Scale),
		FixedRate: q.FixedRate, FeePaidByUser: q.FeeByUser, MinAmount: ledger.FixedString(q.Min.RoundUp(cryptoPlaces), cryptoPlaces), MaxAmount: ledger.FixedString(q.Currency.Most(), cryptoPlaces),
		RateAt: stamp(q.RateAt), ExpiresAt: stamp(q.ExpiresAt), ForwardCost: forward, BelowCost: q.BelowCost(),
	}, nil
}

func (h *Handler) checkPricing(_ context.Context, _ *Call, in pricingInput) error {
	p, err := in.pricing()
	if err != nil {
		return err
	}
	return h.app.Payments.Check(payment.CreateInput{Pricing: p})
}

type updatePaymentInput struct {
	ID            string  `path:"transaction_id"`
	OrderID       *string `json:"order_id" rule:"max=100"`
	Description   *string `json:"order_description" rule:"max=5000"`
	CallbackURL   *string `json:"callback_url" rule:"max=2048"`
	CustomerEmail *string `json:"customer_email" rule:"max=254"`
}

func (h *Handler) updatePayment(ctx context.Context, c *Call, in updatePaymentInput) (paymentView, error) {
	p, err := h.app.Payments.Update(ctx, c.Tenant(), in.ID, payment.Patch{
		OrderID: in.OrderID, Description: in.Description, CallbackURL: in.CallbackURL, CustomerEmail: in.CustomerEmail,
	})
	if err != nil {
		return paymentView{}, err
	}
	return h.detail(ctx, c.Tenant(), &p)
}

type paymentPath struct {
	ID string `path:"transaction_id"`
}

func (h *Handler) cancelPayment(ctx context.Context, c *Call, in paymentPath) (paymentView, error) {
	p, err := h.app.Payments.Cancel(ctx, c.Tenant(), in.ID)
	if err != nil {
		return paymentView{}, err
	}
	return h.detail(ctx, c.Tenant(), &p)
}

// shownStatus is a payment's status as REST shows it.
func shownStatus(s payment.Status) payment.Status {
	p := payment.Payment{Status: s}
	return p.Shown()
}

// crypto writes units of a scale with the interface's 8 places, rounded down.
func crypto(a ledger.Amount, scale uint8) string { return a.Format(scale, cryptoPlaces) }

// positive reads an integer of a path: 1, 2, 3 …
func positive(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0 && s[0] != '+' && s[0] != '0'
}
