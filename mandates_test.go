package cryptopay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// keepsBack requires that a withdrawal was not paid: it waits with a reason, the host was
// told, and Verify names it.
func (i *insider) keepsBack(id string) {
	i.t.Helper()
	got, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, id)
	require.NoError(i.t, err)
	require.Equal(i.t, withdrawal.Pending, got.Status)
	require.Equal(i.t, withdrawal.WaitingAltered, got.Waiting)
	require.True(i.t, i.told[withdrawal.NoticeAltered])
	i.named(id)
}

// Rows that are edited alike agree with each other. The withdrawal is not paid all the
// same, because nobody who writes to the database can make its mandate.
func TestFS02_RowsThatAgreeAreNotPaidWithoutAMandate(t *testing.T) {
	t.Parallel()
	const (
		order = "UPDATE cryptopay_withdrawals SET "
		line  = "UPDATE cryptopay_activity SET "
		of    = " WHERE id = 'ORDER'"
	)
	for name, edits := range map[string][]string{
		"address":                 {order + "address = 'THIEF'" + of, line + "address = 'THIEF'" + of},
		"amount":                  {order + "amount = amount + 50000000, requested = requested + 50000000" + of, line + "amount = amount + 50000000, net = net + 50000000" + of},
		"amount out of a fee":     {order + "amount = amount + network_fee, network_fee = 0" + of, line + "net = amount, fee = 0" + of},
		"no mandate":              {order + "address = 'THIEF', mandate = ''" + of, line + "address = 'THIEF'" + of},
		"the mandate of another":  {order + "address = 'THIEF', mandate = (SELECT mandate FROM cryptopay_withdrawals WHERE id = 'OTHER')" + of, line + "address = 'THIEF'" + of},
		"a mandate that was made": {order + "address = 'THIEF', mandate = 'FORGED'" + of, line + "address = 'THIEF'" + of},
		"the id of another": {
			"DELETE FROM cryptopay_withdrawals" + of, "DELETE FROM cryptopay_activity" + of,
			"UPDATE cryptopay_withdrawals SET id = 'ORDER' WHERE id = 'OTHER'", "UPDATE cryptopay_activity SET id = 'ORDER' WHERE id = 'OTHER'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			other := i.withdraw("USDTERC20", "300", i.thief)
			_, err := i.app.Withdrawals.Hold(t.Context(), i.tenant, other.ID, "ann", "a test")
			require.NoError(t, err)
			w := i.withdraw("USDTERC20", "100", to)
			terms := w.Terms()
			terms.Store, terms.To = "made up", i.thief
			forged := cryptopay.MandateKeys(bytes.Repeat([]byte{8}, 32)).Make(terms)
			for _, edit := range edits {
				require.True(t, i.edit(strings.NewReplacer("THIEF", string(i.thief), "ORDER", w.ID, "OTHER", other.ID, "FORGED", forged).Replace(edit)))
			}
			if name == "the id of another" {
				i.edit("UPDATE cryptopay_withdrawals SET frozen = 0, waiting = '', due = ? WHERE id = ?", i.clock.Now().UnixMicro(), w.ID)
			}
			i.work(30)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			i.keepsBack(w.ID)
		})
	}
}

// The wallet that pays is the one that was ordered to.
func TestFS02_WithdrawalOfAnotherWalletIsNotPaid(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w := i.withdraw("USDTERC20", "100", i.chains["ETH"].Customer("supplier"))
	require.True(t, i.edit("UPDATE cryptopay_withdrawals SET wallet = 'another' WHERE id = ?", w.ID))
	_, err := i.db.Exec("UPDATE cryptopay_balances SET account = 'wallet/another' WHERE account = 'wallet/master' AND asset = 'USDTERC20'")
	require.NoError(t, err)
	i.work(30)
	require.Zero(t, i.chains["ETH"].Balance(i.chains["ETH"].Customer("supplier"), "USDTERC20").Sign())
	i.keepsBack(w.ID)
}

// The memo says whose the coins are at the recipient's.
func TestFS02_EditedMemoIsNotPaid(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{"sent_memo = '666', memo = '666'", "sent_memo = '666'", "memo = '666'", "sent_memo = ''"} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "XRP")
			world, to := i.chains["XRP"], i.chains["XRP"].Customer("exchange")
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("100")), Currency: "XRP", Address: string(to)}, Memo: "777",
			})
			require.NoError(t, err)
			before := world.Balance(to, "XRP")
			require.True(t, i.edit("UPDATE cryptopay_withdrawals SET "+edit+" WHERE id = ?", w.ID))
			i.work(30)
			require.True(t, before.Equal(world.Balance(to, "XRP")))
			i.keepsBack(w.ID)
		})
	}
}

// The payout side checks the mandate of what it was handed: an order is not signed whose
// rows were all edited alike after it was handed over. Where the App does not ask, the
// Signer refuses.
func TestFS02_EditedOrderHasNoMandate(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"all rows alike": {
			"UPDATE cryptopay_intents SET to_address = 'THIEF' WHERE purpose = 'withdrawal'",
			"UPDATE cryptopay_withdrawals SET address = 'THIEF' WHERE id = 'ORDER'", "UPDATE cryptopay_activity SET address = 'THIEF' WHERE id = 'ORDER'",
		},
		"its mandate":      {"UPDATE cryptopay_intents SET mandate = 'x' WHERE purpose = 'withdrawal'"},
		"it has none":      {"UPDATE cryptopay_intents SET mandate = '' WHERE purpose = 'withdrawal'"},
		"another purpose":  {"UPDATE cryptopay_intents SET to_address = 'THIEF', purpose = 'sweep' WHERE purpose = 'withdrawal'"},
		"another currency": {"UPDATE cryptopay_intents SET currency = 'ETH' WHERE purpose = 'withdrawal'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			_, err := i.app.Withdrawals.Step(t.Context()) // handed over, and nothing signed yet
			require.NoError(t, err)
			for _, edit := range edits {
				i.edit(strings.NewReplacer("THIEF", string(i.thief), "ORDER", w.ID).Replace(edit))
			}
			before := world.Balance(to, "ETH")
			i.work(30)
			require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
			require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			require.True(t, before.Equal(world.Balance(to, "ETH")))
			heard := i.log.heard()
			require.True(t, strings.Contains(heard, "order_altered") || strings.Contains(heard, "signer_refuses"), heard)
			i.named(w.ID)
		})
	}
}

// A row that was copied from another store with the same key is no order here.
func TestFS02_OrderOfAnotherStoreIsNotPaid(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w := i.withdraw("USDTERC20", "100", i.thief)
	terms := w.Terms()
	of, err := mandate.Of(w.Mandate)
	require.NoError(t, err)
	terms.Store = of.Store
	require.Equal(t, w.Mandate, cryptopay.MandateKeys(hostKey).Make(terms))
	terms.Store = "another"
	i.edit("UPDATE cryptopay_withdrawals SET mandate = ? WHERE id = ?", cryptopay.MandateKeys(hostKey).Make(terms), w.ID)
	i.work(30)
	require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
	i.keepsBack(w.ID)
}

// The store's id cannot be edited, deleted or taken back to a time before seals.
func TestFS02_StoreIDIsNotEdited(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"edited":  "UPDATE cryptopay_fingerprints SET sum = 'x' WHERE id = 'store'",
		"another": "UPDATE cryptopay_fingerprints SET sum = 'x' || sum WHERE id = 'store'",
		"deleted": "DELETE FROM cryptopay_fingerprints WHERE id = 'store'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			i.withdraw("USDTERC20", "100", i.thief)
			i.edit(edit)
			require.ErrorIs(t, i.compose(i.configure).Open(t.Context()), cryptopay.ErrStoreID)
		})
	}
}

// silent is a signer that does not answer.
type silent struct{ chain.Signer }

func (silent) Sign(context.Context, chain.SignRequest) ([]chain.Signature, error) {
	return nil, context.DeadlineExceeded
}

// A transaction that was stored before it was signed, and edited since, is not signed: also
// by a Signer that asks for no mandate.
func TestFS02_EditedPlanIsNotSigned(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	i.mandates = nil
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Signer = silent{c.Signer}
	}
	i.restart()
	world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
	w := i.withdraw("USDTERC20", "100", to)
	i.work(3)
	var stored []byte
	require.NoError(t, i.db.Get(&stored, "SELECT plan FROM cryptopay_intents WHERE id = ?", w.ID))
	var plan map[string]any
	var order struct {
		Intent chain.Intent
		Fee    chain.Fee
		Nonce  uint64
	}
	require.NoError(t, json.Unmarshal(stored, &plan))
	require.NoError(t, json.Unmarshal(stored, &order))
	order.Intent.To = i.thief
	built, err := world.Client().Build(t.Context(), chain.Order{Intent: order.Intent, Fee: order.Fee, Nonce: order.Nonce, Attempt: 1})
	require.NoError(t, err)
	plan["Intent"], plan["Unsigned"] = order.Intent, built
	edited, err := json.Marshal(plan)
	require.NoError(t, err)
	i.edit("UPDATE cryptopay_intents SET plan = ? WHERE id = ?", edited, w.ID)
	i.configure = configure
	i.restart()
	i.work(30)
	require.Zero(t, world.Balance(i.thief, "USDTERC20").Sign())
	require.Contains(t, i.log.heard(), "order_altered")
	i.edit("UPDATE cryptopay_intents SET plan = ? WHERE id = ?", stored, w.ID)
	i.work(60)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String(), "as it was ordered")
}

// A withdrawal that waits for a person is not let out by an edit: the approval is a MAC of
// its own, which the policy's yes or Approve makes.
func TestFS02_EditedApprovalLetsNothingOut(t *testing.T) {
	t.Parallel()
	const order = `INSERT INTO cryptopay_intents SELECT part, 'ORDER', 1, 'x', NOW, purpose, tenant, network, currency, from_address, from_key, 'RECIPIENT', memo, AMOUNT, all_funds,
		max_cost, confirmations, 'queued', '', 0, '', -1, plan, filling, 0, 0, 0, 0, created_at, updated_at, 0, 0,
		(SELECT mandate FROM cryptopay_withdrawals WHERE id = 'ORDER'), 'null', 'null' FROM cryptopay_intents WHERE purpose = 'withdrawal'`
	for name, edits := range map[string][]string{
		"an unknown review":        {"review = 'x', waiting = '', due = NOW"},
		"review":                   {"review = 'approved', waiting = '', due = NOW"},
		"stage":                    {"stage = 'handing', review = '', waiting = '', max_cost = 1000000000, due = NOW"},
		"the approval of another":  {"review = 'approved', waiting = '', due = NOW, approval = (SELECT approval FROM cryptopay_withdrawals WHERE id = 'OTHER')"},
		"its mandate for approval": {"review = 'approved', waiting = '', due = NOW, approval = mandate"},
		"an order":                 {order},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			verdict := withdrawal.Allow
			configure := i.configure
			i.configure = func(c *cryptopay.Config) {
				configure(c)
				c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
					return verdict, "large", nil
				}
			}
			i.restart()
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			other := i.withdraw("USDTERC20", "50", world.Customer("another"))
			i.work(30)
			verdict = withdrawal.AskReview
			w := i.withdraw("USDTERC20", "100", to)
			i.work(2)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.WaitingReview, got.Waiting)
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			for _, edit := range edits {
				if name != "an order" {
					edit = "UPDATE cryptopay_withdrawals SET " + edit + " WHERE id = 'ORDER'"
				}
				i.edit(strings.NewReplacer("ORDER", w.ID, "OTHER", other.ID, "NOW", strconv.FormatInt(i.clock.Now().UnixMicro(), 10), "RECIPIENT", string(to),
					"AMOUNT", strconv.FormatInt(int64(w.Amount), 10)).Replace(edit))
			}
			i.work(30)
			require.Zero(t, world.Balance(to, "USDTERC20").Sign())
			i.named(w.ID)
			if name == "an order" {
				require.Contains(t, i.log.heard(), "order_altered")
				return
			}
			i.keepsBack(w.ID)
			i.edit("UPDATE cryptopay_withdrawals SET review = 'wanted', stage = '', approval = '', max_cost = 0, waiting = 'review', due = 0 WHERE id = ?", w.ID)
			_, err = i.app.Withdrawals.Approve(t.Context(), i.tenant, w.ID, "approver", "")
			require.NoError(t, err)
			i.work(40)
			require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String(), "approved")
		})
	}
}

// Whoever edits the database makes the store look like one of a version before mandates, and
// waits for the next start. Nothing of it is believed.
func TestFS02_NoStoreIsMadeToLookUnsealed(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"no mandate": nil,
		"no id":      {"DELETE FROM cryptopay_fingerprints WHERE id = 'store'", "UPDATE cryptopay_intents SET mandate = ''"},
		"nothing":    {"DELETE FROM cryptopay_fingerprints", "DELETE FROM cryptopay_abilities", "UPDATE cryptopay_intents SET mandate = ''"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			i.mandates = nil // a Signer that asks for none, as one on another machine
			i.restart()
			w := i.withdraw("USDTERC20", "100", i.chains["ETH"].Customer("supplier"))
			for _, q := range append(edits, "UPDATE cryptopay_withdrawals SET mandate = '', approval = ''") {
				_, err := i.db.Exec(q)
				require.NoError(t, err)
			}
			i.edit("UPDATE cryptopay_withdrawals SET address = ? WHERE id = ?", i.thief, w.ID)
			i.edit("UPDATE cryptopay_activity SET address = ? WHERE id = ?", i.thief, w.ID)
			app := i.compose(i.configure)
			if err := app.Open(t.Context(), keys.Tables()...); edits == nil {
				require.NoError(t, err)
				i.app = app
			} else {
				require.ErrorIs(t, err, cryptopay.ErrUnsealed)
			}
			i.work(30)
			require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
			taken, err := i.app.Unsealed(t.Context())
			require.NoError(t, err)
			require.False(t, taken, "nor is a credential without a seal")
		})
	}
}
