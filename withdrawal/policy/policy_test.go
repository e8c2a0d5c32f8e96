package policy_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// open is a Service over an empty store.
func open(t *testing.T) *policy.Service {
	t.Helper()
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), policy.Tables()...))
	s, err := policy.New(policy.Config{
		Store: store, Registry: chain.MainnetRegistry(), Rates: rates.NewFixed(time.Now, "USD", nil),
		Parse: func(_ chain.Network, s string) (chain.Address, error) { return chain.Address(s), nil },
		Now:   func() time.Time { return time.Unix(1_800_000_000, 0) }, NewID: uuid.NewString,
	})
	require.NoError(t, err)
	return s
}

// A wrong policy is refused with the name of each field that is wrong, and changes nothing.
func TestWrongPoliciesNameTheirFields(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, row := range []struct{ text, field string }{
		{`{"rules":[{"name":"","of":"amount","over":"1"}]}`, "rules[0].name"},
		{`{"rules":[{"name":"Large","of":"amount","over":"1"}]}`, "rules[0].name"},
		{`{"rules":[{"name":"a","of":"amount","over":"1"},{"name":"a","of":"amount","over":"2"}]}`, "rules[1].name"},
		{`{"rules":[{"name":"a","of":"value","over":"1"}]}`, "rules[0].of"},
		{`{"rules":[{"name":"a","of":"amount","over":"-1"}]}`, "rules[0].over"},
		{`{"rules":[{"name":"a","of":"count","over":"1.5","per":"1h"}]}`, "rules[0].over"},
		{`{"rules":[{"name":"a","of":"destination","over":"1"}]}`, "rules[0].over"},
		{`{"rules":[{"name":"a","of":"sum","over":"1"}]}`, "rules[0].per"},
		{`{"rules":[{"name":"a","of":"sum","over":"1","per":"745h"}]}`, "rules[0].per"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","per":"1h"}]}`, "rules[0].per"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","currency":"DOGGY"}]}`, "rules[0].currency"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","each_destination":true}]}`, "rules[0].each_destination"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","then":"maybe"}]}`, "rules[0].then"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","then":"refuse","needs":[{"count":1}]}]}`, "rules[0].needs"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","needs":[{"count":0}]}]}`, "rules[0].needs[0].count"},
		{`{"rules":[{"name":"a","of":"amount","over":"1","needs":[{"count":1},{"count":2}]}]}`, "rules[0].needs[1].role"},
	} {
		var p policy.Policy
		require.NoError(t, json.Unmarshal([]byte(row.text), &p), row.text)
		_, err := s.Set(t.Context(), "shop", 0, p, "ann", "ticket 7")
		var bad *policy.InvalidError
		require.ErrorAs(t, err, &bad, row.text)
		require.Len(t, bad.Fields, 1, row.text)
		require.Contains(t, bad.Fields, row.field, row.text)
	}
	_, err := s.Set(t.Context(), "shop", 0, policy.Policy{}, "", "")
	var bad *policy.InvalidError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Fields, "by")
	require.Contains(t, bad.Fields, "reason")
	v, err := s.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Zero(t, v.Number)
}

// Each version is kept, and who sets one names the version that it replaces.
func TestVersionsAreKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	large := func(over int64) policy.Policy {
		return policy.Policy{Rules: []policy.Rule{{Name: "large", Of: policy.KindAmount, Over: decimal.NewFromInt(over)}}}
	}
	for n := range int64(2) {
		v, err := s.Set(t.Context(), "shop", n, large(10+n), "ann", "ticket 7")
		require.NoError(t, err)
		require.Equal(t, n+1, v.Number)
		require.Equal(t, policy.Review, v.Rules[0].Then)
		require.Equal(t, []withdrawal.Need{{Count: 1}}, v.Rules[0].Needs)
	}
	_, err := s.Set(t.Context(), "shop", 1, large(100), "bob", "ticket 8")
	require.ErrorIs(t, err, policy.ErrVersion)
	first, err := s.Find(t.Context(), "shop", 1)
	require.NoError(t, err)
	require.Equal(t, "10", first.Rules[0].Over.String())
	now, err := s.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, []any{int64(2), "11", "ann"}, []any{now.Number, now.Rules[0].Over.String(), now.By})
	other, err := s.Get(t.Context(), "another")
	require.NoError(t, err)
	require.Empty(t, other.Rules)
	_, err = s.Find(t.Context(), "shop", 3)
	require.ErrorIs(t, err, policy.ErrUnknown)
}

// A process may stand still between any two looks at its clock.
func TestColdIsClaimedBySlowProcesses(t *testing.T) {
	t.Parallel()
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), policy.Tables()...))
	now := time.Unix(1_800_000_000, 0)
	s, err := policy.New(policy.Config{
		Store: store, Registry: chain.MainnetRegistry(), Rates: rates.NewFixed(time.Now, "USD", nil),
		Parse: func(_ chain.Network, s string) (chain.Address, error) { return chain.Address(s), nil },
		Now: func() time.Time {
			now = now.Add(time.Hour)
			return now
		}, NewID: uuid.NewString,
		ColdAddress: func(context.Context, *chain.Currency, string) (chain.Address, string, error) { return "cold", "", nil },
	})
	require.NoError(t, err)
	ceiling := decimal.NewFromInt(10)
	_, err = s.Set(t.Context(), "shop", 0, policy.Policy{Cold: []policy.Cold{{Currency: "ETH", Address: "cold", Ceiling: ceiling, Target: ceiling}}}, "ann", "ticket 7")
	require.NoError(t, err)
	got, err := s.ClaimCold(t.Context(), time.Minute, 10, func(string) bool { return true }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "shop", got[0].Tenant)
}
