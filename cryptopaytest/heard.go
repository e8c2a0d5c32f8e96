package cryptopaytest

import (
	"context"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// heard is all that was told: to merchants, and to the host's program.
type heard struct {
	mu       sync.Mutex
	webhooks []webhook.Delivery
	events   []stream.Event
}

// listen hears beside the host's own Notifier and Consumers.
func (h *heard) listen(c *cryptopay.Config) {
	c.Notifier = &notifier{h, c.Notifier}
	c.Consumers = append(slices.Clone(c.Consumers), stream.Consumer{
		Name: "cryptopaytest", Handle: func(_ context.Context, _ stream.Tx, e stream.Event) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			again := func(o stream.Event) bool { return o.Partition == e.Partition && o.Number == e.Number }
			if !slices.ContainsFunc(h.events, again) {
				h.events = append(h.events, e)
			}
			return nil
		},
	})
}

// notifier takes every webhook. own may refuse it, nil = nobody does.
type notifier struct {
	heard *heard
	own   webhook.Notifier
}

// Notify implements webhook.Notifier.
func (n *notifier) Notify(ctx context.Context, deliveries []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(deliveries))
	for i := range out {
		out[i].Status = 200
	}
	if n.own != nil {
		out = n.own.Notify(ctx, deliveries)
	}
	n.heard.mu.Lock()
	defer n.heard.mu.Unlock()
	n.heard.webhooks = append(n.heard.webhooks, deliveries...)
	return out
}

// Webhooks are all that were delivered, or tried to be, oldest first.
func (h *Host) Webhooks() []webhook.Delivery {
	h.heard.mu.Lock()
	defer h.heard.mu.Unlock()
	return slices.Clone(h.heard.webhooks)
}

// Events are all that a consumer hears, each once, in the order of its tenant.
func (h *Host) Events() []stream.Event {
	h.heard.mu.Lock()
	defer h.heard.mu.Unlock()
	return slices.Clone(h.heard.events)
}
