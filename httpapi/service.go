package httpapi

import (
	"context"
)

type statusView struct {
	Status string `json:"status" about:"ok"`
}

func (h *Handler) getStatus(context.Context, *Call, none) (statusView, error) {
	return statusView{Status: "ok"}, nil
}

type maintenanceView struct {
	Maintenance bool    `json:"maintenance"`
	Message     *string `json:"message"`
	StartsAt    *string `json:"starts_at" format:"date-time"`
	EndsAt      *string `json:"ends_at" format:"date-time"`
}

func (h *Handler) getMaintenance(ctx context.Context, _ *Call, _ none) (maintenanceView, error) {
	m := h.o.Maintenance(ctx)
	return maintenanceView{m.On, orNull(m.Message), maybeStamp(m.StartsAt), maybeStamp(m.EndsAt)}, nil
}

func (h *Handler) getOpenAPI(context.Context, *Call, none) (*page, error) {
	return &page{"application/json", h.doc}, nil
}
