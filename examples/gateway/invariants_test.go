package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// settle waits until all that was asked for has come to its end.
func (m *merchant) settle(ctx context.Context, g *gateway) error {
	paid := 0
	for _, q := range m.all {
		if q.kind == "payment" && q.paid {
			paid++
		}
	}
	eq := func(column string, v any) []storage.Cond {
		return []storage.Cond{{Column: column, Op: storage.Eq, Value: v}}
	}
	type open struct {
		q    storage.Query
		want int64
	}
	var all []open // deposits that are still to be forwarded, and told of
	for _, n := range townNetworks {
		for _, where := range [][]storage.Cond{
			{{Column: "state", Op: storage.Eq, Value: incoming.Final}, {Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone}, {Column: "internal", Op: storage.Eq, Value: false}, {Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment}},
			eq("forward", incoming.Forwarding),
			{{Column: storage.ColDue, Op: storage.Ne, Value: time.Time{}}},
		} {
			all = append(all, open{storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Where: where}, 0})
		}
	}
	left := func() (string, error) {
		for _, open := range append(all, []open{
			{storage.Query{Table: withdrawal.Withdrawals.Table, Where: eq("status", withdrawal.Pending)}, 0},
			{storage.Query{Table: withdrawal.Withdrawals.Table, Where: eq("status", withdrawal.Processing)}, 0},
			{storage.Query{Table: wallet.TransferRows.Table, Where: eq("status", wallet.TransferPending)}, 0},
			{storage.Query{Table: payment.Payments.Table, Where: eq("status", payment.Completed)}, int64(paid)},
			{storage.Query{Table: webhook.Events.Table, Where: eq("status", webhook.StatusPending)}, 0},
		}...) {
			if open.q.Partition == "" {
				open.q.Partition = storage.Tenant(tenantID)
			}
			n, err := g.store.Count(ctx, open.q)
			if err != nil {
				return "", err
			}
			if n != open.want {
				return fmt.Sprintf("%s: %d of %v, not %d", open.q.Table.Name, n, open.q.Where, open.want), nil
			}
		}
		return "", nil
	}
	for {
		what, err := left()
		if err != nil || what == "" {
			return err
		}
		if err := (fast{}).Wait(ctx, 3*time.Second); err != nil {
			return fmt.Errorf("it does not come to its end: %s; open intents: %v: %w", what, waits(g), err)
		}
	}
}

// waits counts open intents by network, purpose, state and what they wait for.
func waits(g *gateway) map[string]int {
	out := map[string]int{}
	for _, n := range townNetworks {
		for offset := 0; ; offset += 500 {
			rows, err := g.store.Find(context.Background(), storage.Query{
				Table: outgoing.Intents.Table, Partition: storage.Network(string(n)), Limit: 500, Offset: offset,
				Where: []storage.Cond{{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed}}},
			})
			if err != nil {
				out[err.Error()]++
				return out
			}
			for _, row := range rows {
				i := outgoing.Intents.Value(row)
				out[fmt.Sprint(n, " ", i.Purpose, " ", i.Currency, " ", i.State, " ", i.Reason)]++
			}
			if len(rows) < 500 {
				break
			}
		}
	}
	rows, err := g.store.Find(context.Background(), storage.Query{
		Table: withdrawal.Withdrawals.Table, Partition: storage.Tenant(tenantID), Limit: 100,
		Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: withdrawal.Pending}},
	})
	if err != nil {
		out[err.Error()]++
	}
	for _, row := range rows {
		w := withdrawal.Withdrawals.Value(row)
		out[fmt.Sprint("withdrawal ", w.Currency, " ", w.Stage, " ", w.Waiting, " ", w.Reason)]++
	}
	return out
}

// listed reads a whole list over the interface, by the field that holds our key.
func (m *merchant) listed(ctx context.Context, method, path, list string, key func(body) string) (map[string]body, error) {
	out, r := map[string]body{}, newRandom(1)
	for offset := 0; ; offset += 100 {
		target, in := path, any(nil)
		if method == http.MethodGet {
			target += fmt.Sprintf("?limit=100&offset=%d", offset)
		} else {
			in = body{"limit": 100, "offset": offset}
		}
		_, v, err := m.ask(ctx, r, method, target, "", in, 0)
		if err != nil {
			return nil, err
		}
		page, ok := v[list].([]any)
		if !ok {
			return nil, fmt.Errorf("%s: %v", path, v)
		}
		for _, x := range page {
			x := x.(body)
			if _, twice := out[key(x)]; twice {
				m.fault("%s is there twice", key(x))
			}
			out[key(x)] = x
		}
		if len(page) < 100 {
			return out, nil
		}
	}
}

// check holds the end against what was answered, what the chains did and what
// the receiver got. What was given up is there whole, or not at all.
func (m *merchant) check(g *gateway) (resolved, there int) {
	t, ctx := m.w.t, m.w.t.Context()
	text := func(field string) func(body) string {
		return func(v body) string {
			s, _ := v[field].(string)
			_, key, found := strings.Cut(s, "?key=")
			if found {
				return key
			}
			return s
		}
	}
	lists := map[string]map[string]body{}
	var err error
	lists["payment"], err = m.listed(ctx, http.MethodGet, "/payments/", "results", text("order_id"))
	require.NoError(t, err)
	lists["withdrawal"], err = m.listed(ctx, http.MethodGet, "/withdrawal/", "withdrawals", text("custom_id"))
	require.NoError(t, err)
	lists["transfer"], err = m.listed(ctx, http.MethodPost, "/wallets/transfer-history/", "transfers", text("callback_url"))
	require.NoError(t, err)

	flow := map[string]decimal.Decimal{} // what all wallets must hold, by currency
	count := map[string]int{}
	for key, q := range m.all {
		v, found := lists[q.kind][key]
		if q.id == "" {
			if resolved++; found {
				there++
			}
		} else {
			require.True(t, found, "%s %s was answered and is gone", q.kind, key)
		}
		if !found {
			if q.kind == "withdrawal" {
				require.Empty(t, m.w.sims[networkOf(q.currency)].Transfers(q.to), "%s was paid and is not there", key)
			}
			continue
		}
		count[q.kind]++
		flow[q.currency] = flow[q.currency].Add(m.checkOne(g, q, v))
	}
	for kind, all := range lists {
		require.Len(t, all, count[kind], "nobody asked for the rest of the %ss", kind)
	}
	m.checkBooks(g, flow)
	m.checkWebhooks(g)
	for _, c := range m.w.sims {
		require.NoError(t, c.Audit())
	}
	require.Empty(t, m.faults)
	return resolved, there
}

func networkOf(currency string) chain.Network {
	if currency == "BTC" {
		return "BTC"
	}
	return "AVAX"
}

// checkOne holds one against the chain and returns what it brought to wallets.
func (m *merchant) checkOne(g *gateway, q *request, v body) decimal.Decimal {
	t := m.w.t
	number := func(field string) decimal.Decimal { return decimal.RequireFromString(v[field].(string)) }
	c := m.w.sims[networkOf(q.currency)]
	switch q.kind {
	case "payment":
		if !q.paid {
			require.Contains(t, []any{"waiting", "expired"}, v["status"], v)
			return decimal.Zero
		}
		require.Equal(t, q.id, v["transaction_id"])
		require.Equal(t, "completed", v["status"], v)
		return q.amount
	case "withdrawal":
		require.Equal(t, "completed", v["status"], v)
		got := c.Transfers(q.to)
		require.Len(t, got, 1, "the recipient of %s is paid once: %v; %s", q.key, v, m.ordersTo(g, q))
		require.Equal(t, q.currency, got[0].Currency)
		require.True(t, got[0].Amount.Equal(q.amount), "%s: %s, not %s", q.key, got[0].Amount, q.amount)
		return number("amount").Add(number("fee")).Neg()
	default:
		require.Equal(t, "completed", v["status"], v)
		require.True(t, number("amount").Equal(q.amount))
		return decimal.Zero
	}
}

// ordersTo tells of all orders to a withdrawal's recipient, with their attempts.
func (m *merchant) ordersTo(g *gateway, q *request) string {
	var out strings.Builder
	part := storage.Network(string(networkOf(q.currency)))
	of := func(t *storage.Table, column string, v any) []storage.Row {
		rows, err := g.store.Find(m.w.t.Context(), storage.Query{Table: t, Partition: part, Where: []storage.Cond{{Column: column, Op: storage.Eq, Value: v}}, Limit: 50})
		require.NoError(m.w.t, err)
		return rows
	}
	for _, i := range of(outgoing.Intents.Table, "to_address", string(q.to)) {
		fmt.Fprintf(&out, "\norder %+v", outgoing.Intents.Value(i))
		for _, a := range of(outgoing.Attempts.Table, "intent", i.ID) {
			fmt.Fprintf(&out, "\n  attempt %+v", outgoing.Attempts.Value(a))
		}
	}
	return out.String()
}

// checkBooks: the wallets hold what came less what went, and Verify finds nothing.
func (m *merchant) checkBooks(g *gateway, flow map[string]decimal.Decimal) {
	t := m.w.t
	reports, err := g.app.Verify(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, reports)
	for i := range reports {
		require.True(t, reports[i].Sound(), "%+v", reports[i])
	}
	balances, err := g.store.Balances(t.Context(), storage.Tenant(tenantID))
	require.NoError(t, err)
	have := map[string]decimal.Decimal{}
	for _, b := range balances {
		if !strings.HasPrefix(string(b.Account), "wallet/") {
			continue
		}
		require.Zero(t, b.Held, b)
		c, err := g.world.registry.Currency(string(b.Asset))
		require.NoError(t, err)
		have[c.Code] = have[c.Code].Add(c.Decimal(b.Posted))
	}
	for _, c := range currencies {
		require.Equal(t, flow[c.code].StringFixed(8), have[c.code].StringFixed(8), c.code)
	}
}

// checkWebhooks: every event was delivered, as it was stored, and none besides.
func (m *merchant) checkWebhooks(g *gateway) {
	t, box := m.w.t, m.w.box
	box.mu.Lock()
	defer box.mu.Unlock()
	require.Empty(t, box.faults)
	n := 0
	for offset := 0; ; offset += 500 {
		rows, err := g.store.Find(t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant(tenantID), Limit: 500, Offset: offset})
		require.NoError(t, err)
		for _, row := range rows {
			e := webhook.Events.Value(row)
			if e.Type == webhook.WithdrawalWaiting { // for endpoints that name it
				continue
			}
			require.Equal(t, webhook.StatusDelivered, e.Status, "%s: %s", row.ID, e.Error)
			require.Equal(t, e.Body, box.bodies[row.ID], row.ID)
			n++
		}
		if len(rows) < 500 {
			break
		}
	}
	require.Len(t, box.bodies, n)
}
