package cryptopay_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// asks has the policy ask a person about every withdrawal, and keeps what the host hears of
// decisions.
func (i *insider) asks() *[]withdrawal.Decided {
	i.t.Helper()
	heard, configure := &[]withdrawal.Decided{}, i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			return withdrawal.AskReview, "large", nil
		}
		c.Consumers = []stream.Consumer{{Name: "approvals", Handle: func(_ context.Context, _ stream.Tx, e stream.Event) error {
			if d, ok := e.Body.(withdrawal.Decided); ok {
				*heard = append(*heard, d)
			}
			return nil
		}}}
	}
	i.restart()
	return heard
}

// asked orders a withdrawal that alice asks for and somebody has to approve.
func (i *insider) asked(amount string, to chain.Address) withdrawal.Withdrawal {
	i.t.Helper()
	w, err := i.app.Withdrawals.Create(i.t.Context(), i.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec(amount)), Currency: "USDTERC20", Address: string(to)}, By: "alice",
	})
	require.NoError(i.t, err)
	i.work(2)
	return i.withdrawalOf(w.ID)
}

func (i *insider) withdrawalOf(id string) withdrawal.Withdrawal {
	i.t.Helper()
	w, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, id)
	require.NoError(i.t, err)
	return w
}

// A withdrawal keeps who asked for it and each decision, the host hears of each with who and
// why, and who asked does not decide.
func TestApprovals_KeepAndTellWhoDecided(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	heard := i.asks()
	ctx, app := t.Context(), i.app.Withdrawals
	to := i.chains["ETH"].Customer("supplier")
	w, other := i.asked("100", to), i.asked("50", to)
	require.Equal(t, []any{"alice", 1}, []any{w.RequestedBy, w.ApprovalsRequired()})
	require.Len(t, w.Decisions, 1)
	require.Equal(t, []any{"", withdrawal.AnswerAsked, "large", ""}, []any{w.Decisions[0].By, w.Decisions[0].Answer, w.Decisions[0].Reason, w.Decisions[0].Rule})

	_, err := app.Approve(ctx, i.tenant, w.ID, "alice", "mine")
	require.ErrorIs(t, err, withdrawal.ErrOwnRequest)
	_, err = app.Refuse(ctx, i.tenant, w.ID, "alice", "mine")
	require.ErrorIs(t, err, withdrawal.ErrOwnRequest)
	var bad *withdrawal.InvalidError
	_, err = app.Approve(ctx, i.tenant, w.ID, "", "ticket 42")
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Fields, "by")
	_, err = app.Refuse(ctx, i.tenant, w.ID, "bob", "")
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Fields, "reason")
	_, err = app.Approve(ctx, i.tenant, w.ID, "bob", strings.Repeat("x", 1001))
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Fields, "reason")
	i.work(40)
	require.Zero(t, i.chains["ETH"].Balance(to, "USDTERC20").Sign())
	require.Empty(t, *heard)

	at := i.clock.Now()
	for range 2 { // the same answer again changes nothing
		w, err = app.Approve(ctx, i.tenant, w.ID, "bob", "ticket 42")
		require.NoError(t, err)
		i.work(1)
	}
	require.Len(t, w.Decisions, 2)
	d := w.Decisions[1]
	require.Equal(t, []any{"bob", withdrawal.AnswerApproved, "ticket 42"}, []any{d.By, d.Answer, d.Reason})
	require.True(t, d.At.Equal(at))
	_, err = app.Refuse(ctx, i.tenant, other.ID, "bob", "who is that?")
	require.NoError(t, err)
	other, err = app.Refuse(ctx, i.tenant, other.ID, "bob", "who is that?")
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Failed, 2, 1}, []any{other.Status, len(other.Decisions), other.ApprovalsRequired()})
	var state *withdrawal.StateError
	_, err = app.Approve(ctx, i.tenant, other.ID, "carol", "")
	require.ErrorAs(t, err, &state)
	i.work(60)
	require.Equal(t, withdrawal.Completed, i.withdrawalOf(w.ID).Status)
	require.Equal(t, w.Decisions, i.withdrawalOf(w.ID).Decisions)
	i.nothingFound()

	require.Len(t, *heard, 2)
	for n, want := range []withdrawal.Decided{
		{WithdrawalID: w.ID, Decision: withdrawal.AnswerApproved, By: "bob", Reason: "ticket 42", RequestedBy: "alice"},
		{WithdrawalID: other.ID, Decision: withdrawal.AnswerRefused, By: "bob", Reason: "who is that?", RequestedBy: "alice"},
	} {
		got := (*heard)[n]
		require.False(t, got.At.IsZero())
		got.At = want.At
		require.Equal(t, want, got)
	}
}

// Decisions that nobody made, and decisions that somebody edited, pay nothing: neither where
// they stand, nor where the request is given to somebody else so that who asked may approve.
func TestFS02_ForgedDecisionsPayNobody(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.asks()
		world, app, ctx := i.chains["ETH"], i.app.Withdrawals, t.Context()
		model := i.asked("10", world.Customer("model"))
		model, err := app.Approve(ctx, i.tenant, model.ID, "bob", "")
		require.NoError(t, err)
		i.work(40)
		require.Equal(t, withdrawal.Completed, i.withdrawalOf(model.ID).Status, "one that is as it was made is paid")
		const (
			free   = "frozen = 0, waiting = '', due = NOW"
			forged = `review = 'approved', decisions = '[{"by":"bob","at":"2026-01-01T00:00:00Z","decision":"approved"SEAL}]'`
		)
		swap := func(from, to string) string { return "decisions = replace(decisions, '" + from + "', '" + to + "')" }
		for name, c := range map[string]struct {
			does string // what bob does before the edit
			set  string // the SQL that edits the row
			then string // who approves after the edit
		}{
			"made up":                     {set: forged},
			"made up with a seal":         {set: strings.Replace(forged, "SEAL", `,"seal":"`+model.Decisions[1].Seal+`"`, 1) + ", approval = '" + model.Approval + "'"},
			"with its own mandate":        {set: forged + ", approval = mandate"},
			"the decision of another":     {set: "review = 'approved', decisions = (SELECT decisions FROM cryptopay_withdrawals WHERE id = 'MODEL'), approval = (SELECT approval FROM cryptopay_withdrawals WHERE id = 'MODEL')"},
			"another approver":            {does: "approve", set: swap(`"by":"bob"`, `"by":"eve"`)},
			"another reason":              {does: "approve", set: swap(`"reason":"fine"`, `"reason":"hush"`)},
			"another time":                {does: "approve", set: swap(`"at":"20`, `"at":"19`)},
			"its record is gone":          {does: "approve", set: "decisions = 'null'"},
			"no question any more":        {does: "approve", set: swap(`"decision":"asked"`, `"decision":"denied"`)},
			"its seal is gone":            {does: "approve", set: swap(`"seal":`, `"sale":`)},
			"a second, of the first":      {does: "approve", set: "decisions = substr(decisions, 1, length(decisions) - 1) || ',' || substr(decisions, 2)"},
			"a refusal":                   {does: "refuse", set: "status = 'pending', review = 'approved', " + swap("refused", "approved")},
			"asked for by nobody":         {set: "requested_by = ''", then: "alice"},
			"asked for by another":        {set: "requested_by = 'mallory'", then: "alice"},
			"asked for, without mandate":  {set: "requested_by = '', mandate = ''", then: "alice"},
			"a decision before it is one": {set: strings.Replace(forged, "review = 'approved', ", "", 1), then: "bob"},
		} {
			forged := strings.NewReplacer("SEAL", "", "MODEL", model.ID, "NOW", strconv.FormatInt(i.clock.Now().UnixMicro(), 10)).Replace(c.set + ", " + free)
			to := world.Customer(name)
			w := i.asked("10", to)
			switch c.does {
			case "approve":
				_, err := app.Hold(ctx, i.tenant, w.ID, "ann", "a look at it")
				require.NoError(t, err)
				_, err = app.Approve(ctx, i.tenant, w.ID, "bob", "fine")
				require.NoError(t, err)
			case "refuse":
				_, err := app.Refuse(ctx, i.tenant, w.ID, "bob", "fine")
				require.NoError(t, err)
				require.True(t, i.edit("UPDATE cryptopay_activity SET status = 'pending' WHERE id = ?", w.ID))
				// As much is held as before.
				_, err = i.db.Exec(i.db.Rebind("UPDATE cryptopay_balances SET held = held + ? WHERE account = 'wallet/master' AND asset = 'USDTERC20'"), int64(w.Requested))
				require.NoError(t, err)
			}
			require.True(t, i.edit("UPDATE cryptopay_withdrawals SET "+forged+" WHERE id = ?", w.ID), name)
			if c.then != "" {
				_, err := app.Approve(ctx, i.tenant, w.ID, c.then, "")
				require.ErrorIs(t, err, withdrawal.ErrAltered, name)
			}
			i.work(5)
			require.Zero(t, world.Balance(to, "USDTERC20").Sign(), name)
			require.True(t, i.finds(w.ID), "%s: Verify names it", name)
			require.NotEqual(t, withdrawal.Completed, i.withdrawalOf(w.ID).Status, name)
		}
	})
}

// Decisions outlive the key that sealed them: Reseal seals them with the newest.
func TestFM08_DecisionsAreSealedAgain(t *testing.T) {
	t.Parallel()
	a, b := hostKey, bytes.Repeat([]byte{9}, 32)
	i := newInsider(t, "USDTERC20")
	i.asks()
	to := i.chains["ETH"].Customer("supplier")
	w, refused := i.asked("10", to), i.asked("10", to)
	_, err := i.app.Withdrawals.Hold(t.Context(), i.tenant, w.ID, "ann", "a test")
	require.NoError(t, err)
	_, err = i.app.Withdrawals.Approve(t.Context(), i.tenant, w.ID, "bob", "fine")
	require.NoError(t, err)
	_, err = i.app.Withdrawals.Refuse(t.Context(), i.tenant, refused.ID, "bob", "no")
	require.NoError(t, err)
	i.keyed(a, b)
	i.restart()
	i.keyed(b, a)
	i.restart()
	_, err = i.app.Reseal(t.Context())
	require.NoError(t, err)
	i.keyed(b)
	i.restart()
	i.nothingFound()
	i.paid(w.ID)
	require.Equal(t, "bob", i.withdrawalOf(w.ID).Decisions[1].By)
}
