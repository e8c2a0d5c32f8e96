package payment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

// TestTransitions walks every row of the payment's table.
func TestTransitions(t *testing.T) {
	t.Parallel()
	const over = time.Hour + time.Second
	for name, c := range map[string]struct {
		set    []func(*shop)
		coin   string
		do     func(h *shop, p Payment)
		status Status
		typ    Type
		events []string
		legs   string
	}{
		"create": {do: func(*shop, Payment) {}, status: Waiting, events: []string{}},
		"enough in the mempool": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").seen() },
			status: Confirming, typ: TypeFull, events: []string{"deposit_received", "waiting>confirming"},
		},
		"enough within the tolerance": {
			do:     func(h *shop, p Payment) { h.transfer(p, "99.5").seen() },
			status: Confirming, typ: TypeFull, events: []string{"deposit_received", "waiting>confirming"},
		},
		"a unit below the tolerance": {
			do:     func(h *shop, p Payment) { h.transfer(p, "99.499999").seen() },
			status: PartiallyPaid, typ: TypePartial, events: []string{"deposit_received", "waiting>partially_paid"},
		},
		"enough in a block": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").included() },
			status: Confirming, typ: TypeFull, events: []string{"deposit_received", "waiting>confirming"},
		},
		"two make it enough": {
			do:     func(h *shop, p Payment) { h.transfer(p, "60").seen(); h.transfer(p, "40").seen() },
			status: Confirming, typ: TypeFull,
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming"},
		},
		"final alone enough, the rest follows": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "50").seen()
				h.transfer(p, "100").final()
				x.final()
			},
			status: Confirmed, typ: TypeOver, legs: "c −100, w +99, P +1; then c −50, w +49.5, P +0.5",
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming", "confirming>confirmed"},
		},
		"dropped, short": {
			do:     func(h *shop, p Payment) { h.transfer(p, "60").seen(); h.transfer(p, "40").seen().gone() },
			status: PartiallyPaid, typ: TypePartial,
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming", "confirming>partially_paid"},
		},
		"dropped, nothing live, open": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").seen().gone() },
			status: Waiting, events: []string{"deposit_received", "waiting>confirming", "confirming>waiting"},
		},
		"partial dropped, nothing live, open": {
			do:     func(h *shop, p Payment) { h.transfer(p, "40").seen().gone() },
			status: Waiting, events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>waiting"},
		},
		"dropped, rest enough": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").seen(); h.transfer(p, "40").seen().gone() },
			status: Confirming, typ: TypeFull, events: []string{"deposit_received", "waiting>confirming", "deposit_received"},
		},
		"dropped after the window, some live": {
			do: func(h *shop, p Payment) {
				h.transfer(p, "60").included()
				x := h.transfer(p, "40").included()
				h.after(over)
				x.gone()
			},
			status: PartiallyPaid, typ: TypePartial,
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming", "confirming>partially_paid"},
		},
		"dropped after the window, nothing live": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "100").included()
				h.after(over)
				x.gone()
			},
			status: Failed, events: []string{"deposit_received", "waiting>confirming", "confirming>failed"},
		},
		"partial dropped after the window, nothing live": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "40").included()
				h.after(over)
				x.gone()
			},
			status: Failed, events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>failed"},
		},
		"forwarding": {
			do: func(h *shop, p Payment) {
				h.transfer(p, "100").final().forward(incoming.Forwarding, "")
			},
			status: Sending, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>sending"},
		},
		"forwarded": {
			do: func(h *shop, p Payment) {
				h.transfer(p, "100").final().forward(incoming.Forwarding, "").forward(incoming.Forwarded, "sweep")
			},
			status: Completed, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>sending", "sending>completed", "deposit_merged"},
		},
		"one forwarded, one not yet": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "60").final()
				h.transfer(p, "40").final()
				x.forward(incoming.Forwarded, "sweep")
			},
			status: Sending, typ: TypeFull, legs: "c −60, w +59.4, P +0.6; then c −40, w +39.6, P +0.4",
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming", "confirming>confirmed", "confirmed>sending", "deposit_merged"},
		},
		"deferred": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").final().forward(incoming.Deferred, "") },
			status: Completed, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>completed"},
		},
		"30 minutes pass": {
			do: func(h *shop, p Payment) {
				h.transfer(p, "100").final().forward(incoming.Forwarding, "")
				h.after(30*time.Minute - time.Second)
				require.Equal(h.t, Sending, h.get(p).Status)
				h.after(time.Second)
			},
			status: Completed, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>sending", "sending>completed"},
		},
		"nothing to forward on UTXO chains": {
			coin:   "BTC",
			do:     func(h *shop, p Payment) { h.transfer(p, "0.00166667").final() },
			status: Completed, typ: TypeFull, legs: "c −0.00166667, w +0.00165001, P +0.00001666",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>completed"},
		},
		"window ends, nothing came": {
			do:     func(h *shop, p Payment) { h.after(over) },
			status: Expired, events: []string{"waiting>expired"},
		},
		"window ends, partial final": {
			do:     func(h *shop, p Payment) { h.transfer(p, "40").final(); h.after(over) },
			status: Expired, typ: TypePartial, legs: "c −40, w +39.6, P +0.4",
			events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired"},
		},
		"window ends, partial unconfirmed": {
			do:     func(h *shop, p Payment) { h.transfer(p, "40").included(); h.after(over) },
			status: PartiallyPaid, typ: TypePartial, events: []string{"deposit_received", "waiting>partially_paid"},
		},
		"window ended, partial becomes final": {
			do:     func(h *shop, p Payment) { x := h.transfer(p, "40").included(); h.after(over); x.final() },
			status: Expired, typ: TypePartial, legs: "c −40, w +39.6, P +0.4",
			events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired"},
		},
		"window ended, enough becomes final": {
			do:     func(h *shop, p Payment) { x := h.transfer(p, "100").included(); h.after(over); x.final() },
			status: Confirmed, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed"},
		},
		"mempool only, 24 h past": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "100").seen()
				h.after(25*time.Hour - time.Second)
				require.Equal(h.t, Confirming, h.get(p).Status)
				h.after(2 * time.Second)
				require.Equal(h.t, Failed, h.get(p).Status)
				x.final()
			},
			status: Failed, events: []string{"deposit_received", "waiting>confirming", "confirming>failed"},
			legs: "c −100, S +100",
		},
		"mempool only beside a final part, 24 h past": {
			do: func(h *shop, p Payment) {
				h.transfer(p, "60").final()
				h.transfer(p, "40").seen()
				h.after(26 * time.Hour)
			},
			status: Expired, typ: TypePartial, legs: "c −60, w +59.4, P +0.6",
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming", "confirming>partially_paid", "partially_paid>expired"},
		},
		"cancelled": {
			do: func(h *shop, p Payment) {
				_, err := h.s.Cancel(ctx, tenant, p.ID)
				require.NoError(h.t, err)
				h.transfer(p, "100").final()
			},
			status: Expired, events: []string{"waiting>expired"}, legs: "c −100, S +100",
		},
		"credited deposit reversed": {
			do:     func(h *shop, p Payment) { h.transfer(p, "100").final().forward(incoming.NotNeeded, "").gone() },
			status: Completed, typ: TypeFull, legs: "c −100, w +99, P +1; then c +100, w −99, P −1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>completed"},
		},
		"credited partial reversed, back within 24 h": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "40").final()
				h.after(over)
				x.gone()
				x.again().final()
			},
			status: Expired, typ: TypePartial, legs: "c −40, w +39.6, P +0.4; then c +40, w −39.6, P −0.4; then c −40, w +39.6, P +0.4",
			events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired", "expired>confirming", "confirming>partially_paid", "partially_paid>expired"},
		},
		"credited partial reversed, back later": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "40").final()
				h.after(over)
				x.gone()
				h.after(48 * time.Hour)
				x.again().final()
			},
			status: Expired, typ: TypePartial, legs: "c −40, w +39.6, P +0.4; then c +40, w −39.6, P −0.4; then c −40, w +39.6, P +0.4",
			events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired"},
		},
		"returns within 24 h": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "100").included()
				h.after(over)
				x.gone()
				h.after(23 * time.Hour)
				x.final()
			},
			status: Confirmed, typ: TypeFull, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>failed", "failed>confirming", "confirming>confirmed"},
		},
		"returns later than 24 h": {
			do: func(h *shop, p Payment) {
				x := h.transfer(p, "100").included()
				h.after(over)
				x.gone()
				h.after(24 * time.Hour)
				x.final()
			},
			status: Failed, legs: "c −100, S +100",
			events: []string{"deposit_received", "waiting>confirming", "confirming>failed"},
		},
		"late, default": {
			do:     func(h *shop, p Payment) { h.after(over); h.transfer(p, "100").final() },
			status: Expired, legs: "c −100, S +100", events: []string{"waiting>expired"},
		},
		"late, credited": {
			set:    []func(*shop){creditLate},
			do:     func(h *shop, p Payment) { h.after(over); h.transfer(p, "99.5").final() },
			status: Confirmed, typ: TypeLate, legs: "c −99.5, w +98.505, P +0.995",
			events: []string{"waiting>expired", "deposit_received", "expired>confirming", "confirming>confirmed"},
		},
		"late, credited, less": {
			set:    []func(*shop){creditLate},
			do:     func(h *shop, p Payment) { h.after(over); h.transfer(p, "99").final() },
			status: Expired, typ: TypeLate, legs: "c −99, w +98.01, P +0.99",
			events: []string{"waiting>expired", "deposit_received"},
		},
		"late, credited, worth less than when it was priced": {
			set: []func(*shop){creditLate}, coin: "ETH",
			do: func(h *shop, p Payment) {
				h.after(over)
				h.price["ETH"] = "1900"
				h.transfer(p, "0.05").final()
			},
			status: Expired, typ: TypeLate, legs: "c −0.05, w +0.0495, P +0.0005",
			events: []string{"waiting>expired", "deposit_received"},
		},
		"late, credited, seen before the expiry was decided": {
			set: []func(*shop){creditLate},
			do: func(h *shop, p Payment) {
				h.tipRead = p.CreatedAt
				h.after(over)
				h.transfer(p, "100").final()
				require.Equal(h.t, Waiting, h.get(p).Status)
				h.tipRead = h.now
				h.step()
			},
			status: Confirmed, typ: TypeLate, legs: "c −100, w +99, P +1",
			events: []string{"deposit_received", "waiting>expired", "expired>confirming", "confirming>confirmed"},
		},
		"late, credited, dropped": {
			set:    []func(*shop){creditLate},
			do:     func(h *shop, p Payment) { h.after(over); h.transfer(p, "100").seen().gone() },
			status: Failed, events: []string{"waiting>expired", "deposit_received", "expired>confirming", "confirming>failed"},
		},
		"late on top of a part": {
			set: []func(*shop){creditLate},
			do: func(h *shop, p Payment) {
				h.transfer(p, "40").final()
				h.after(over)
				h.transfer(p, "60").final()
			},
			status: Confirmed, typ: TypeLate, legs: "c −40, w +39.6, P +0.4; then c −60, w +59.4, P +0.6",
			events: []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired", "deposit_received", "expired>confirming", "confirming>confirmed"},
		},
		"late on top of the whole": {
			set: []func(*shop){creditLate},
			do: func(h *shop, p Payment) {
				h.transfer(p, "100").final().forward(incoming.NotNeeded, "")
				h.after(over)
				h.transfer(p, "10").final()
			},
			status: Completed, typ: TypeOver, legs: "c −100, w +99, P +1; then c −10, w +9.9, P +0.1",
			events: []string{"deposit_received", "waiting>confirming", "confirming>confirmed", "confirmed>completed", "deposit_received"},
		},
		"late beside a part that is not final": {
			set: []func(*shop){creditLate},
			do: func(h *shop, p Payment) {
				h.transfer(p, "40").included()
				h.after(over)
				h.transfer(p, "60").included()
			},
			status: Confirming, typ: TypeLate,
			events: []string{"deposit_received", "waiting>partially_paid", "deposit_received", "partially_paid>confirming"},
		},
		"late, cancelled, policy credit": {
			set: []func(*shop){creditLate},
			do: func(h *shop, p Payment) {
				_, err := h.s.Cancel(ctx, tenant, p.ID)
				require.NoError(h.t, err)
				h.transfer(p, "100").final()
			},
			status: Expired, events: []string{"waiting>expired"}, legs: "c −100, S +100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t, c.set...)
			if c.coin == "" {
				c.coin = usdt
			}
			p := h.create("100", c.coin)
			c.do(h, p)
			h.step()
			got := h.get(p)
			require.Equal(t, c.status, got.Status)
			require.Equal(t, c.typ, got.Type)
			require.Equal(t, c.events, h.events(p))
			require.Equal(t, scenario(c.legs), h.posted())
			require.Equal(t, got.Received, got.Net+got.Platform+got.NetworkTaken)
		})
	}
}
