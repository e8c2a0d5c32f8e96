package cryptopaytest

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// underWay tells how many things are on their way, and where all of it stands.
func (h *Host) underWay() (where string, count int64) {
	h.t.Helper()
	in := func(t *storage.Table, column string, values any) {
		n, err := h.Store.Count(h.t.Context(), storage.Query{Table: t, Where: []storage.Cond{{Column: column, Op: storage.In, Value: values}}})
		h.must(err)
		where += fmt.Sprint(n, " ", t.Name, ", ")
		count += n
	}
	in(payment.Payments.Table, "status", []payment.Status{payment.Confirming, payment.Confirmed, payment.Sending})
	in(withdrawal.Withdrawals.Table, "status", []withdrawal.Status{withdrawal.Pending, withdrawal.Processing})
	in(incoming.Sightings.Table, "state", []incoming.State{incoming.Seen, incoming.Included})
	in(outgoing.Intents.Table, "state", []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed})
	for _, n := range h.o.Networks {
		count += int64(len(h.Chains[n].Mempool()))
		where += fmt.Sprint(h.Chains[n].Mempool(), " on ", n, ", ")
	}
	h.heard.mu.Lock()
	defer h.heard.mu.Unlock()
	return fmt.Sprint(where, len(h.heard.webhooks), " webhooks, ", len(h.heard.events), " events"), count
}
