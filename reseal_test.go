package cryptopay_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// listing keys, newest first, in every process and in the Signer.
func (i *insider) keyed(list ...[]byte) {
	i.t.Helper()
	before := i.configure
	i.mandates = cryptopay.MandateKeys(list...)
	i.configure = func(c *cryptopay.Config) {
		before(c)
		c.Key, c.Keys = nil, list
	}
}

// held orders a withdrawal that waits for Release.
func (i *insider) held(amount string, to chain.Address) withdrawal.Withdrawal {
	i.t.Helper()
	w := i.withdraw("USDTERC20", amount, to)
	w, err := i.app.Withdrawals.Hold(i.t.Context(), i.tenant, w.ID, "ann", "a test")
	require.NoError(i.t, err)
	return w
}

// paid releases a withdrawal and requires that it is paid.
func (i *insider) paid(id string) {
	i.t.Helper()
	_, err := i.app.Withdrawals.Release(i.t.Context(), i.tenant, id, "ann", "it is fine")
	require.NoError(i.t, err)
	i.work(40)
	got, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, id)
	require.NoError(i.t, err)
	require.Equal(i.t, withdrawal.Completed, got.Status, "waiting for %s: %s", got.Waiting, got.Reason)
}

func (i *insider) nothingFound() {
	i.t.Helper()
	i.sound()
	r, err := i.app.VerifyTenant(i.t.Context(), i.tenant)
	require.NoError(i.t, err)
	require.True(i.t, r.Sound(), "%+v", r)
}

// Keys are changed beside a withdrawal that waits, a secret and sealed journals: the old key
// is added, replaced, and taken away.
func TestFM08_KeysAreRotated(t *testing.T) {
	t.Parallel()
	a, b := hostKey, bytes.Repeat([]byte{9}, 32)
	i := newInsider(t, "USDTERC20")
	_, secret, err := i.app.Webhooks.Setup(t.Context(), i.tenant, "https://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	require.NotEmpty(t, secret)
	i.clock.Advance(2 * time.Hour) // the journal is sealed
	i.work(2)
	to := i.chains["ETH"].Customer("supplier")
	first, second := i.held("10", to), i.held("20", to)
	var wrong *cryptopay.KeyError
	require.ErrorAs(t, i.compose(func(c *cryptopay.Config) { c.Key = b }).Open(t.Context(), keys.Tables()...), &wrong)

	i.keyed(a, b)
	i.restart()
	i.nothingFound()
	i.keyed(b, a)
	i.restart()
	i.nothingFound()
	require.ErrorAs(t, i.compose(func(c *cryptopay.Config) { c.Key = b }).Open(t.Context(), keys.Tables()...), &wrong, "not all is sealed with it")
	third := i.held("30", to)
	r, err := i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Positive(t, r.Seals)
	r.Seals = 0
	require.Equal(t, cryptopay.Resealed{Withdrawals: 2, Secrets: 1}, r)
	i.paid(first.ID)
	again, err := i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Equal(t, cryptopay.Resealed{}, again)
	i.keyed(b)
	i.restart()
	i.nothingFound()
	i.paid(second.ID)
	i.paid(third.ID)
	opens, err := i.app.Webhooks.Opens(t.Context())
	require.NoError(t, err)
	require.True(t, opens)
	require.ErrorAs(t, i.compose(func(c *cryptopay.Config) { c.Key = a }).Open(t.Context(), keys.Tables()...), &wrong)
}

// A key that is gone from the list: Reseal and Verify name what it made, and nothing of it
// is paid or opened.
func TestFM08_KeyThatIsGoneIsNamed(t *testing.T) {
	t.Parallel()
	b := bytes.Repeat([]byte{9}, 32)
	i := newInsider(t, "USDTERC20")
	_, _, err := i.app.Webhooks.Setup(t.Context(), i.tenant, "https://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	w := i.held("10", i.chains["ETH"].Customer("supplier"))
	i.keyed(b)
	require.NoError(t, i.compose(i.configure).AdoptKeys(t.Context(), keys.Tables()...))
	i.restart()
	id := cryptopay.MandateKeys(hostKey)[0].ID
	r, err := i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Left, 2)
	require.Equal(t, w.ID, r.Left[0].ID)
	require.Contains(t, r.Left[0].Detail, id)
	require.Contains(t, r.Left[1].Detail, "tenant/"+i.tenant+"/webhook/1")
	i.named(w.ID)
	_, err = i.app.Withdrawals.Release(t.Context(), i.tenant, w.ID, "ann", "it is fine")
	require.NoError(t, err)
	i.work(10)
	i.keepsBack(w.ID)
}

// unsealed takes the store back to a version before mandates, which is taken for a time.
func (i *insider) unsealed(until time.Duration) {
	i.t.Helper()
	before := i.configure
	i.configure = func(c *cryptopay.Config) {
		before(c)
		c.UnsealedUntil = i.clock.Now().Add(until)
	}
	for _, q := range []string{
		"UPDATE cryptopay_withdrawals SET mandate = ''", "UPDATE cryptopay_intents SET mandate = ''",
		"DELETE FROM cryptopay_fingerprints WHERE id = 'store'",
	} {
		_, err := i.db.Exec(q)
		require.NoError(i.t, err)
	}
	i.restart()
}

// An upgraded store goes on: what waits is paid, what older processes still write is, too.
// Once the operator's time is over, a row without a mandate is refused.
func TestFU02_WithdrawalsOfAnEarlierVersionArePaidAndSealed(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	to := i.chains["ETH"].Customer("supplier")
	waits, late := i.held("10", to), i.held("20", to)
	i.mandates = nil // its operator gives the Signer keys once all is sealed
	before := i.configure
	i.unsealed(24 * time.Hour)
	require.Contains(t, i.log.heard(), "unsealed_rows_accepted")
	i.nothingFound()
	i.paid(waits.ID)
	r, err := i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Equal(t, cryptopay.Resealed{Withdrawals: 2, Seals: r.Seals}, r, "an older process may still write")
	older := i.held("30", to)
	i.edit("UPDATE cryptopay_withdrawals SET mandate = '' WHERE id = ?", older.ID)
	r, err = i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Equal(t, cryptopay.Resealed{Withdrawals: 1}, r)

	i.configure, i.mandates = before, cryptopay.MandateKeys(hostKey)
	i.restart()
	i.nothingFound()
	i.paid(older.ID)
	i.paid(late.ID)
	w := i.withdraw("USDTERC20", "10", to)
	i.edit("UPDATE cryptopay_withdrawals SET mandate = '' WHERE id = ?", w.ID)
	i.work(10)
	i.keepsBack(w.ID)
	i.edit("DELETE FROM cryptopay_fingerprints WHERE id = 'store'")
	require.ErrorIs(t, i.compose(i.configure).Open(t.Context(), keys.Tables()...), cryptopay.ErrStoreID)
}

// Rows without a mandate are taken until the operator's day.
func TestFU02_UnsealedUntilTheHostsDay(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w := i.held("10", i.chains["ETH"].Customer("supplier"))
	i.mandates = nil
	i.unsealed(time.Hour)
	taken, err := i.app.Unsealed(t.Context())
	require.NoError(t, err)
	require.True(t, taken)
	i.clock.Advance(time.Hour)
	_, err = i.app.Withdrawals.Release(t.Context(), i.tenant, w.ID, "ann", "it is fine")
	require.NoError(t, err)
	i.work(10)
	i.keepsBack(w.ID)
}
