package payment

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// noted records a decision, as an operator's calls do.
func noted(before, after Deposit) ([]storage.Row, []storage.Event, error) {
	return []storage.Row{storage.Counters.Row("noted/"+before.ID+"/"+string(before.Booking)+">"+string(after.Booking), 0, time.Time{}, storage.Counter{Value: 1})}, nil, nil
}

// statuses are how many entries of suspense have each status.
func (h *shop) statuses() map[SuspenseStatus]int64 {
	out := map[SuspenseStatus]int64{}
	for _, status := range suspenseStatuses() {
		page, n, err := h.s.SuspenseList(ctx, tenant, SuspenseFilter{Status: status})
		require.NoError(h.t, err)
		require.Len(h.t, page, int(n))
		if n > 0 {
			out[status] = n
		}
	}
	return out
}

// TestL01_FM04_ADecisionOverCrashes: where the commit fails nothing moved and nobody is
// recorded; where its answer is lost it is done once, and who asks again is told so.
func TestL01_FM04_ADecisionOverCrashes(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(s *Service, id string) error{
		"credit": func(s *Service, id string) error { _, err := s.Resolve(ctx, tenant, id, "w", noted); return err },
		"ignore": func(s *Service, id string) error { _, err := s.Ignore(ctx, tenant, id, noted); return err },
	} {
		h := newShop(t)
		p := h.create("100", usdt)
		x := h.transferOf(p, "USDCERC20", "50").final()
		id := x.deposit().ID
		h.posted()
		records := func() int {
			rows, err := h.store.Find(ctx, storage.Query{
				Table: storage.Counters.Table, Partition: storage.Tenant(tenant),
				Where: []storage.Cond{{Column: storage.ColID, Op: storage.Ge, Value: "noted/"}, {Column: storage.ColID, Op: storage.Lt, Value: "noted0"}},
			})
			require.NoError(t, err)
			return len(rows)
		}
		broken := errors.New("the connection broke")
		h.store.fail = func(storage.Change) error { return broken }
		require.ErrorIs(t, decide(h.s, id), broken, name)
		h.store.fail = nil
		require.Equal(t, map[SuspenseStatus]int64{SuspenseOpen: 1}, h.statuses(), name)
		require.Zero(t, records(), name)

		lost := &lostAnswers{Store: h.store, on: true}
		h.cfg.Store = lost
		s, err := New(h.cfg)
		require.NoError(t, err)
		require.ErrorIs(t, decide(s, id), storage.ErrUnknown, name)
		lost.on = false
		var state *StateError
		require.ErrorAs(t, decide(s, id), &state, name)
		require.Equal(t, 1, records(), name)
		if name == "credit" {
			require.Equal(t, Status(SuspenseCredited), state.Status)
			require.Equal(t, "50", h.balance(ledger.Wallet("w"), "USDCERC20"), "S −50, w +50, once")
			require.Equal(t, "0", h.balance(ledger.Suspense, "USDCERC20"))
			continue
		}
		require.Equal(t, Status(SuspenseIgnored), state.Status)
		require.Empty(t, h.posted(), "what is ignored stays in suspense, marked")
		require.Equal(t, "50", h.balance(ledger.Suspense, "USDCERC20"))
	}
}

// TestR03_FM04_AReorgAfterADecision: what was decided is taken back with the deposit, and the
// deposit waits for another decision when it is there again; counters follow.
func TestR03_FM04_AReorgAfterADecision(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transferOf(p, "USDCERC20", "50").final()
	id := x.deposit().ID
	_, err := h.s.Ignore(ctx, tenant, id)
	require.NoError(t, err)
	h.posted()
	require.Equal(t, map[SuspenseStatus]int64{SuspenseIgnored: 1}, h.statuses())
	x.gone()
	require.Equal(t, scenario("S −50, c +50"), h.posted())
	require.Empty(t, h.statuses())
	x.again().final()
	require.Equal(t, scenario("c −50, S +50"), h.posted())
	require.Equal(t, map[SuspenseStatus]int64{SuspenseOpen: 1}, h.statuses())
	_, err = h.s.Resolve(ctx, tenant, id, "w")
	require.NoError(t, err)
	x.gone()
	require.Empty(t, h.statuses())
	require.Equal(t, "0", h.balance(ledger.Wallet("w"), "USDCERC20"))
	differ, err := SuspenseTally.Check(ctx, h.store, storage.Tenant(tenant))
	require.NoError(t, err)
	require.Empty(t, differ)
}

// TestFM04_EachDepositIsTold: from its first sighting on, whether it counts or not, with what
// it was before; of dust nothing.
func TestFM04_EachDepositIsTold(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").seen().included().final()
	x.gone()
	x.again()
	y := h.transferOf(p, "USDCERC20", "50").final()
	z := h.transfer(p, "0.000001").final()
	require.Equal(t, []string{
		"null>seen counted", `"seen">final counted`, `"final">gone counted`, `"gone">seen counted`,
	}, h.told(x.deposit().ID))
	require.Equal(t, []string{"null>seen unmatched", `"seen">final unmatched`}, h.told(y.deposit().ID))
	require.Empty(t, h.told(z.deposit().ID))
}

// told is what payment_deposit says of a deposit.
func (h *shop) told(id string) (out []string) {
	rows, err := h.store.Find(ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Order: []storage.Order{{Column: "seq"}},
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: id}},
	})
	require.NoError(h.t, err)
	for i, r := range rows {
		e := webhook.Events.Value(r)
		require.EqualValues(h.t, i+1, e.Seq)
		require.Empty(h.t, e.URL)
		var body struct {
			Data struct {
				Was          json.RawMessage `json:"previous_status"`
				Status, Role string
			}
		}
		require.NoError(h.t, json.Unmarshal([]byte(e.Body), &body))
		out = append(out, string(body.Data.Was)+">"+body.Data.Status+" "+body.Data.Role)
	}
	return out
}
