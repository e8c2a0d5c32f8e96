package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// meView is the tenant.
type meView struct {
	Name           string  `json:"name"`
	TransactionFee string  `json:"transaction_fee" format:"decimal" about:"Percent of a payment."`
	FeePaidByUser  bool    `json:"is_fee_paid_by_user" about:"What payments that do not say it do."`
	CallbackURL    *string `json:"webhook_callback_url"`
	MaskedSecret   *string `json:"webhook_secret_masked"`
}

func (h *Handler) getMe(ctx context.Context, c *Call, _ none) (meView, error) {
	t, err := h.app.Wallets.Tenant(ctx, c.Tenant())
	if err != nil {
		return meView{}, err
	}
	s, err := h.app.Webhooks.Get(ctx, c.Tenant())
	return meView{
		Name: t.Name, TransactionFee: percent(t.TransactionFee), FeePaidByUser: t.FeePaidByUser,
		CallbackURL: orNull(s.URL), MaskedSecret: orNull(s.MaskedSecret),
	}, err
}

// percent writes a percentage with at least two places.
func percent(d decimal.Decimal) string {
	if d.Exponent() < -fiatPlaces {
		return ledger.PlainString(d)
	}
	return ledger.FixedString(d, fiatPlaces)
}

type setupInput struct {
	CallbackURL string `json:"callback_url" rule:"required" about:"https, at most 2048 bytes; must not lead to a private address."`
}

// setupView has the secret in full the first time, and masked ever after.
type setupView struct {
	CallbackURL  string `json:"callback_url"`
	Secret       string `json:"secret,omitempty" about:"Only in the answer to the first setup."`
	MaskedSecret string `json:"masked_secret,omitempty" about:"In the answers to later ones."`
	Message      string `json:"message"`
}

func (h *Handler) setupWebhooks(ctx context.Context, c *Call, in setupInput) (setupView, error) {
	s, secret, err := h.app.Webhooks.Setup(ctx, c.Tenant(), in.CallbackURL, webhook.By{Name: c.Who.Client})
	view := setupView{CallbackURL: s.URL, Secret: secret}
	if view.Message = "Webhook set up. Keep the secret: it is not shown again."; secret == "" {
		view.MaskedSecret, view.Message = s.MaskedSecret, "Webhook updated. The secret stays as it is."
	}
	return view, err
}

// webhooksView is the webhook configuration: nulls before the first setup.
type webhooksView struct {
	CallbackURL   *string  `json:"callback_url"`
	MaskedSecret  *string  `json:"masked_secret"`
	EnabledEvents []string `json:"enabled_events" about:"[] = all"`
	CreatedAt     *string  `json:"created_at" format:"date-time"`
	UpdatedAt     *string  `json:"updated_at" format:"date-time"`
}

func viewWebhooks(s *webhook.Settings) webhooksView {
	return webhooksView{
		CallbackURL: orNull(s.URL), MaskedSecret: orNull(s.MaskedSecret), EnabledEvents: append([]string{}, s.Events...),
		CreatedAt: maybeStamp(s.Created), UpdatedAt: maybeStamp(s.Updated),
	}
}

func (h *Handler) getWebhooks(ctx context.Context, c *Call, _ none) (webhooksView, error) {
	s, err := h.app.Webhooks.Get(ctx, c.Tenant())
	return viewWebhooks(&s), err
}

type webhooksInput struct {
	WebhookURL    *string   `json:"webhook_url"`
	CallbackURL   *string   `json:"callback_url" about:"Another name of webhook_url."`
	Secret        *string   `json:"webhook_secret" about:"16 to 128 printable characters. The one before also signs for 24 hours, in X-Signature-Previous."`
	EndPrevious   bool      `json:"end_previous" about:"true: the secret before this or an earlier rotation signs nothing any more. For a secret that has leaked."`
	EnabledEvents *[]string `json:"enabled_events" about:"[] = all"`
}

// url is the new URL, and the name that it was given under.
func (in *webhooksInput) url() (url *string, name string) {
	if in.WebhookURL != nil {
		return in.WebhookURL, "webhook_url"
	}
	return in.CallbackURL, "callback_url"
}

// editWebhooks answers invalid_url where nothing but the URL is wrong, and
// invalid_request for anything else.
func (h *Handler) editWebhooks(ctx context.Context, c *Call, in webhooksInput) (webhooksView, error) {
	url, name := in.url()
	if wrong := invalid(h.checkWebhooks(ctx, c, in)); len(wrong) > 0 {
		if len(wrong) == 1 && len(wrong[name]) > 0 {
			return webhooksView{}, fail(http.StatusBadRequest, "invalid_url", "The callback URL is not valid.", map[string]any{name: wrong[name]})
		}
		return webhooksView{}, &invalidError{Fields: wrong}
	}
	s, err := h.app.Webhooks.Edit(ctx, c.Tenant(), webhook.Patch{
		URL: url, Secret: in.Secret, Events: in.EnabledEvents, EndPrevious: in.EndPrevious, By: webhook.By{Name: c.Who.Client},
	})
	return viewWebhooks(&s), err
}

func (h *Handler) checkWebhooks(_ context.Context, _ *Call, in webhooksInput) error {
	var wrong fields
	url, name := in.url()
	if url != nil {
		if err := h.app.Webhooks.CheckURL(*url); err != nil {
			wrong.add(name, strings.TrimPrefix(err.Error(), webhook.ErrURL.Error()+": "))
		}
	}
	if in.WebhookURL != nil && in.CallbackURL != nil && *in.WebhookURL != *in.CallbackURL {
		wrong.add("callback_url", "does not agree with webhook_url")
	}
	if in.Secret != nil && webhook.CheckSecret(*in.Secret) != nil {
		wrong.add("webhook_secret", "must have 16 to 128 printable characters")
	}
	if in.EnabledEvents != nil && webhook.CheckEvents(*in.EnabledEvents) != nil {
		wrong.add("enabled_events", "has an unknown event; known are "+strings.Join(webhook.EventTypes(), ", "))
	}
	if len(wrong) == 0 {
		return nil
	}
	return &invalidError{Fields: wrong}
}

type testInput struct {
	EventType string `json:"event_type" rule:"required" about:"Such as payment_status_update."`
}

type testView struct {
	DeliveryID     string  `json:"delivery_id"`
	EventType      string  `json:"event_type"`
	Status         string  `json:"status" rule:"enum=delivered|failed"`
	ResponseStatus *int    `json:"response_status" about:"null = there was no answer"`
	DurationMS     int64   `json:"duration_ms"`
	Error          *string `json:"error"`
}

func (h *Handler) testWebhooks(ctx context.Context, c *Call, in testInput) (testView, error) {
	id, r, err := h.app.Webhooks.Test(ctx, c.Tenant(), in.EventType, sample(in.EventType, c.Now))
	if err != nil {
		return testView{}, err
	}
	view := testView{DeliveryID: id, EventType: in.EventType, Status: string(webhook.StatusDelivered), DurationMS: r.Duration.Milliseconds()}
	if r.Status != 0 {
		view.ResponseStatus = &r.Status
	}
	if r.Err != nil {
		why, resolved := r.Why()
		if !resolved {
			view.DurationMS = 0 // it would tell the two apart
		}
		view.Status, view.Error = string(webhook.StatusFailed), &why
	}
	return view, nil
}

type feesView struct {
	Fees []feeView `json:"fees"`
}

type feeView struct {
	Currency string `json:"currency"`
	Amount   string `json:"amount" format:"decimal"`
}

func (h *Handler) getFees(ctx context.Context, c *Call, _ none) (feesView, error) {
	fees, err := h.app.Wallets.PlatformFees(ctx, c.Tenant())
	view := feesView{Fees: make([]feeView, 0, len(fees))}
	for _, f := range fees {
		scale, err := h.app.Scale(f.Currency)
		if err != nil {
			return view, err
		}
		view.Fees = append(view.Fees, feeView{f.Currency, crypto(f.Amount, scale)})
	}
	return view, err
}
