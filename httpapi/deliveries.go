package httpapi

import (
	"context"
	"net/http"

	"github.com/cryptopay-go/cryptopay/webhook"
)

type deliveriesInput struct {
	Status   string `query:"status" rule:"enum=pending|delivered|failed|skipped"`
	Event    string `query:"event" about:"A type of event, such as payment_status_update."`
	ObjectID string `query:"object_id" rule:"max=200" about:"Id of a payment, withdrawal or transfer; of payment_deposit the deposit's."`
	Limit    int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset   int    `query:"offset" rule:"min=0" default:"0"`
}

type deliveryView struct {
	DeliveryID     string         `json:"delivery_id" about:"What X-Webhook-Id says, with ~ for /."`
	Event          string         `json:"event"`
	ObjectID       string         `json:"object_id"`
	URL            *string        `json:"url" about:"Where it goes, or went; null = nowhere, or to a URL that was set before the settings were last changed"`
	Status         webhook.Status `json:"status" rule:"enum=pending|delivered|failed|skipped" about:"skipped: no URL was set, or the event was not enabled."`
	Attempts       int            `json:"attempts"`
	ResponseStatus *int           `json:"response_status" about:"HTTP status of the last answer; null = there was none."`
	Error          *string        `json:"error" about:"Why the last attempt failed."`
	NextAttemptAt  *string        `json:"next_attempt_at" format:"date-time" about:"null = there is none."`
	CreatedAt      string         `json:"created_at" format:"date-time"`
}

type deliveriesView struct {
	Deliveries []deliveryView `json:"deliveries"`
	Total      int            `json:"total" about:"How many match."`
	Limit      int            `json:"limit"`
	Offset     int            `json:"offset"`
}

func (h *Handler) listDeliveries(ctx context.Context, c *Call, in deliveriesInput) (deliveriesView, error) {
	page, total, err := h.app.Webhooks.Log(ctx, c.Tenant(), webhook.LogFilter{
		Status: webhook.Status(in.Status), Type: in.Event, Object: in.ObjectID, Limit: in.Limit, Offset: in.Offset,
	})
	view := deliveriesView{Deliveries: make([]deliveryView, len(page)), Total: total, Limit: in.Limit, Offset: in.Offset}
	for i := range page {
		d := &page[i]
		view.Deliveries[i] = deliveryView{
			DeliveryID: pathID(d.ID), Event: d.Type, ObjectID: d.Object, URL: orNull(d.URL), Status: d.Status, Attempts: d.Attempts,
			Error: orNull(d.Why), NextAttemptAt: maybeStamp(d.Due), CreatedAt: stamp(d.Created),
		}
		if d.Response != 0 {
			view.Deliveries[i].ResponseStatus = &d.Response
		}
	}
	return view, err
}

type deliveryPath struct {
	ID string `path:"delivery_id"`
}

type resentView struct {
	DeliveryID string         `json:"delivery_id"`
	Status     webhook.Status `json:"status" rule:"enum=pending|delivered|failed|skipped"`
}

func (h *Handler) resendDelivery(ctx context.Context, c *Call, in deliveryPath) (resentView, error) {
	ok, err := h.app.Webhooks.Replay(ctx, c.Tenant(), fromPath(in.ID))
	if err == nil && !ok {
		err = fail(http.StatusNotFound, notFound.Code, "The delivery does not exist.", nil)
	}
	return resentView{DeliveryID: pathID(fromPath(in.ID)), Status: webhook.StatusPending}, err
}
