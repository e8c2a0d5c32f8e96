package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// told makes something happen that a webhook tells, and returns the webhook.
func (d *desk) told() webhook.Delivery {
	d.t.Helper()
	p := d.create("30")
	_, err := d.app.Payments.Cancel(d.t.Context(), d.tenant, p.ID)
	require.NoError(d.t, err)
	d.heard = nil
	require.NoError(d.t, d.app.Step(d.t.Context()))
	require.Len(d.t, d.heard, 1)
	return d.heard[0]
}

// TestFS08_AnOperatorEndsALeakedSecret: with a rotation or after it. The audit log says who did what and
// why, and nothing but the rotation shows a secret.
func TestFS08_AnOperatorEndsALeakedSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	show := func() object { return parsed[object](d, "webhooks", "show", "-tenant", "shop") }
	because := func(args ...string) object {
		return parsed[object](d, append([]string{"webhooks"}, append(args, "-tenant", "shop", "-reason", "ticket 42", "-by", "ann")...)...)
	}
	signed := func(by ...string) {
		t.Helper()
		got := d.told()
		require.NoError(t, webhook.Verify(got.Header, got.Body, d.clock.Now(), 0, by[0]))
		for _, no := range by[1:] {
			require.ErrorIs(t, webhook.Verify(got.Header, got.Body, d.clock.Now(), 0, no), webhook.ErrSignature)
			require.ErrorIs(t, webhook.VerifyBody(got.Header, got.Body, no), webhook.ErrSignature)
		}
	}
	require.Empty(t, show()["url"])
	set := because("set", "-url", "https://shop.example/hook", "-events", "payment_status_update,deposit_received")
	require.Equal(t, []any{"https://shop.example/hook", []any{"payment_status_update", "deposit_received"}}, []any{set["url"], set["events"]})
	one := because("rotate")["secret"].(string)
	two := because("rotate")["secret"].(string)
	require.Len(t, one, 43)
	require.NotEqual(t, one, two)
	signed(one)
	signed(two)
	because("end-previous")
	signed(two, one)
	three := because("rotate", "-end-previous")["secret"].(string)
	signed(three, two, one)
	require.Equal(t, "****"+three[39:], show()["masked_secret"])

	var kinds []string
	log := parsed[list](d, "audit", "-tenant", "shop")
	for _, e := range log {
		require.Equal(t, []any{"ann", "ticket 42", "webhooks"}, []any{e["by"], e["reason"], e["object"]})
		kinds = append(kinds, e["kind"].(string))
	}
	require.Equal(t, []string{"set_webhooks", "set_webhooks", "set_webhooks", "set_webhooks", "set_webhooks"}, kinds)
	all := d.ok("audit", "-tenant", "shop", "-json") + d.ok("webhooks", "show", "-tenant", "shop") + d.log.String()
	for _, secret := range []string{one, two, three} {
		require.NotContains(t, all, secret)
	}
	for wrong, args := range map[string][]string{
		"-tenant":               {"rotate"},
		"no such tenant":        {"rotate", "-tenant", "nobody"},
		"-url or -events":       {"set", "-tenant", "shop"},
		"unusable callback URL": {"set", "-tenant", "shop", "-url", "https://10.0.0.1/"},
		"unknown event type":    {"set", "-tenant", "shop", "-events", "payments"},
	} {
		_, _, err := d.run(append([]string{"webhooks"}, append(args, "-reason", "x")...)...)
		require.ErrorContains(t, err, wrong)
	}
	_, _, err := d.run("webhooks", "rotate", "-tenant", "shop")
	require.ErrorContains(t, err, "-reason")
	rows, err := d.store.Find(t.Context(), storage.Query{Table: webhook.SettingsTable.Table, Partition: storage.Tenant("nobody"), Limit: 1})
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Empty(t, because("set", "-events", "all")["events"])
}
