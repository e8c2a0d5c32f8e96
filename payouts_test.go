package cryptopay_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// payoutStores are stores of each kind.
func payoutStores() map[string]func(t *testing.T) storage.Store {
	return map[string]func(t *testing.T) storage.Store{
		"memory": func(*testing.T) storage.Store { return memory.New() },
		"sqlite": func(t *testing.T) storage.Store {
			s, _ := onSQLite(t)
			return s
		},
		"postgres": func(t *testing.T) storage.Store {
			skipServer(t)
			s, err := postgres.Open(onPostgres(t), postgres.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"mariadb": func(t *testing.T) storage.Store {
			skipServer(t)
			s, err := mysql.Open(onMariaDB(t), mysql.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"redis": func(t *testing.T) storage.Store {
			skipServer(t)
			return onRedis(t)
		},
	}
}

// suppliers are n requests of an amount each, to a supplier each.
func (h *host) suppliers(n int, amount string) []withdrawal.CreateInput {
	out := make([]withdrawal.CreateInput, n)
	for i := range out {
		out[i] = withdrawal.CreateInput{
			Terms:    withdrawal.Terms{Amount: ptr(dec(amount)), FinalAmount: true, Currency: "USDTERC20", Address: string(h.chains["ETH"].Customer(fmt.Sprint("supplier", i)))},
			CustomID: fmt.Sprint("invoice-", i),
		}
	}
	return out
}

// by is a list that somebody asks for.
func by(who string, list []withdrawal.CreateInput) []withdrawal.CreateInput {
	for i := range list {
		list[i].By = who
	}
	return list
}

// A thousand withdrawals are one Change on every store: each is a withdrawal as one that was
// made alone, and what is missing for the last refuses all.
func TestPayout_AThousandInOneChange(t *testing.T) {
	t.Parallel()
	for kind, open := range payoutStores() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHostOn(t, open(t), 3, "ETH")
			h.step()
			ctx, app := t.Context(), h.app.Withdrawals
			p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "90000", Currency: "USDTERC20"}})
			require.NoError(t, err)
			_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", dec("90000"))
			require.NoError(t, err)
			h.mine(30)

			most := h.suppliers(1000, "20")
			too := h.suppliers(1000, "20")
			too[999].Amount = ptr(dec("80000"))
			var short *withdrawal.InsufficientError
			_, err = app.CreatePayout(ctx, h.tenant, "k", by("alice", too))
			require.ErrorAs(t, err, &short)
			require.True(t, short.Requested.GreaterThan(dec("99980")), "the sum: %s", short.Requested)
			require.Equal(t, "90000", short.Available.String())
			_, total, err := app.List(ctx, h.tenant, withdrawal.Filter{})
			require.NoError(t, err)
			require.Zero(t, total)

			made, err := app.CreatePayout(ctx, h.tenant, "k", by("alice", most))
			require.NoError(t, err)
			again, err := app.CreatePayout(ctx, h.tenant, "k", by("alice", most))
			require.NoError(t, err)
			require.True(t, again.Replayed)
			require.Equal(t, made.Withdrawals, again.Withdrawals)
			stored, err := app.Payout(ctx, h.tenant, made.ID)
			require.NoError(t, err)
			require.Equal(t, made.Withdrawals, stored.Withdrawals)
			ids := make([]string, len(made.Withdrawals))
			for i, w := range made.Withdrawals {
				require.Equal(t, most[i].CustomID, w.CustomID)
				require.NotEmpty(t, w.Mandate)
				ids[i] = w.ID
			}
			rows, err := h.store.Rows(ctx, withdrawal.Withdrawals.Table, storage.Keys(storage.Tenant(h.tenant), ids...)...)
			require.NoError(t, err)
			for _, r := range rows {
				require.Equal(t, rows[0].Change, r.Change)
			}
			h.sound()
			report, err := h.app.VerifyTenant(ctx, h.tenant)
			require.NoError(t, err)
			require.True(t, report.Sound(), "%+v", report)
		})
	}
}

// Rules of a window count what goes out of a payout, one after the other, and a rule that refuses
// one refuses that one.
func TestPayout_RulesSeeEachOfThem(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.ruled(
			policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("1000"), Per: policy.Duration(24 * time.Hour)},
			policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("500"), Then: policy.Refuse},
		)
		in := i.suppliers(15, "100")
		in[7].Amount = ptr(dec("600"))
		for n := range in {
			in[n].FinalAmount = false
		}
		p, err := i.app.Withdrawals.CreatePayout(t.Context(), i.tenant, "", by("alice", in))
		require.NoError(t, err, "2,000 cover 14 × 100 + 600")
		i.work(60)
		ids := make([]string, len(p.Withdrawals))
		for n, w := range p.Withdrawals {
			ids[n] = w.ID
		}
		require.Equal(t, map[string]int{"completed  ": 10, "failed  large": 1, "pending approval daily": 4}, i.states(ids))
		require.Equal(t, withdrawal.Failed, i.withdrawalOf(ids[7]).Status)
		require.Contains(t, i.withdrawalOf(ids[7]).Reason, "rule large")
		_, err = i.app.Withdrawals.Approve(t.Context(), i.tenant, ids[14], "alice", "mine")
		require.ErrorIs(t, err, withdrawal.ErrOwnRequest, "who asked for a payout asked for each of it")
		p, err = i.app.Withdrawals.Payout(t.Context(), i.tenant, p.ID)
		require.NoError(t, err)
		require.Equal(t, map[withdrawal.Status]int{withdrawal.Completed: 10, withdrawal.Failed: 1, withdrawal.Pending: 4}, p.Counts())
		i.nothingFound()
	})
}

// Whoever edits the list of a payout pays nothing by it, and does not show another tenant's.
func TestPayout_AnEditedListPaysNothing(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx, app := t.Context(), i.app.Withdrawals
	p, err := app.CreatePayout(ctx, i.tenant, "", i.suppliers(2, "10"))
	require.NoError(t, err)
	require.True(t, i.edit("UPDATE cryptopay_payouts SET withdrawals = ? WHERE id = ?", `["`+p.Withdrawals[0].ID+`","another"]`, p.ID))
	_, err = app.Payout(ctx, i.tenant, p.ID)
	require.ErrorIs(t, err, withdrawal.ErrAltered)
	i.work(60)
	for _, w := range p.Withdrawals {
		require.Equal(t, withdrawal.Completed, i.withdrawalOf(w.ID).Status)
	}
	i.nothingFound()
}

// A person approves all of a payout at one moment: each of them is approved, and recorded.
func TestPayout_IsApprovedAtOnce(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.ruled(policy.Rule{Name: "all", Of: policy.KindAmount, Over: dec("1")})
		in := i.suppliers(150, "10")
		p, err := i.app.Withdrawals.CreatePayout(t.Context(), i.tenant, "", by("alice", in))
		require.NoError(t, err)
		done := make(chan error)
		for n := range in {
			go func() {
				_, err := i.app.Withdrawals.Approve(t.Context(), i.tenant, p.Withdrawals[n].ID, "bob", "payday")
				done <- err
			}()
		}
		var failed error
		for range in {
			failed = errors.Join(failed, <-done)
		}
		require.NoError(t, failed)
		require.Empty(t, i.breaks())
	})
}
