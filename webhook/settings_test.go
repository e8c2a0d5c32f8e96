package webhook_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	for _, good := range []string{strings.Repeat("x", webhook.MinSecret), strings.Repeat("~", webhook.MaxSecret)} {
		require.NoError(t, webhook.CheckSecret(good))
	}
	for _, bad := range []string{"", strings.Repeat("x", webhook.MinSecret-1), strings.Repeat("x", webhook.MaxSecret+1), strings.Repeat("é", 20), "a secret with spaces in it", "a-secret-with-a-nul\x00"} {
		require.ErrorIs(t, webhook.CheckSecret(bad), webhook.ErrSecret, "%q", bad)
	}
}

func TestCheckEvents(t *testing.T) {
	t.Parallel()
	require.NoError(t, webhook.CheckEvents(nil))
	require.NoError(t, webhook.CheckEvents(webhook.EventTypes()))
	for _, bad := range []string{"", "payment", "PAYMENT_STATUS_UPDATE"} {
		require.ErrorIs(t, webhook.CheckEvents([]string{webhook.DepositReceived, bad}), webhook.ErrEventType, "%q", bad)
	}
}

// What a tenant set before it set a URL is there when it looks.
func TestSettingsBeforeAnyURL(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		v, err := w.svc.Edit(t.Context(), "a", webhook.Patch{})
		require.NoError(t, err)
		require.Equal(t, webhook.Settings{}, v, "nothing is no edit")
		events := []string{webhook.DepositMerged}
		v, err = w.svc.Edit(t.Context(), "a", webhook.Patch{Events: &events})
		require.NoError(t, err)
		require.Equal(t, events, v.Events)
		require.Equal(t, start, v.Created)
		got, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, v, got)
		_, full, err := w.svc.Setup(t.Context(), "a", "https://shop.example/", webhook.By{})
		require.NoError(t, err)
		require.NotEmpty(t, full, "it was not shown yet")
	})
}

// A tenant that set nothing has no settings, also when a secret was made for it: its payment
// has a callback of its own, and that is signed.
func TestSettingsOfATenantThatSetNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.emit("a", "p1", 1, "https://shop.example/p1", 1)
		require.Equal(t, 1, w.step())
		require.Len(t, w.sent, 1)
		v, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, webhook.Settings{}, v)
	})
}

// Where the secret does not open, Setup changes nothing.
func TestK01_SetupOfASecretThatDoesNotOpen(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		events := []string{webhook.DepositMerged}
		before, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Events: &events})
		require.NoError(t, err)
		w.key = 8
		w.restart()
		_, _, err = w.svc.Setup(t.Context(), "a", "https://shop.example/", webhook.By{})
		require.ErrorIs(t, err, secret.ErrSealed)
		after, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// Opens tells the key that the secrets were sealed with from another one. With no secret
// there is none that does not open; a store that does not answer says nothing.
func TestK01_OpensTellsTheKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		opens := func() bool {
			t.Helper()
			yes, err := w.svc.Opens(t.Context())
			require.NoError(t, err)
			return yes
		}
		require.True(t, opens())
		w.setup("a")
		require.True(t, opens())
		w.key = 8
		w.restart()
		require.False(t, opens())
		w.serve(&failing.Store{Store: w.store, FailAt: 1})
		yes, err := w.svc.Opens(t.Context())
		require.ErrorIs(t, err, failing.ErrGone)
		require.False(t, yes)
	})
}

// Sealed again with a new key, both secrets of a rotation sign without the key before.
func TestK01_ResealedSecretsSign(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		previous, current := w.setup("a"), "the-current-secret"
		_, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Secret: &current})
		require.NoError(t, err)
		w.older, w.key = []byte{w.key}, 8
		w.restart()
		for _, want := range []int{2, 0} {
			n, left, err := w.svc.Reseal(t.Context(), "a")
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, want, n)
		}
		w.older = nil
		w.restart()
		w.emit("a", "p1", 1, "", 1)
		require.Equal(t, 1, w.step())
		require.True(t, w.verifies(w.sent[0], current))
		require.True(t, w.verifies(w.sent[0], previous))
	})
}

// Without randomness there is no secret, and without the store's answer nothing is set.
func TestSettingsThatCannotBeMade(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.serve(&failing.Store{Store: w.store, FailAt: 1})
		_, _, err := w.svc.Setup(t.Context(), "a", "https://shop.example/", webhook.By{})
		require.ErrorIs(t, err, failing.ErrGone)
		none := errors.New("no entropy")
		w.random = iotest.ErrReader(none)
		w.serve(w.store)
		_, _, err = w.svc.Setup(t.Context(), "a", "https://shop.example/", webhook.By{})
		require.ErrorIs(t, err, none)
		_, _, there, err := webhook.SettingsTable.One(t.Context(), w.store, storage.Tenant("a"), "settings")
		require.NoError(t, err)
		require.False(t, there)
	})
}

// TestFS08_APreviousSecretIsEndedAtOnce: a secret that leaked signs nothing any more, whether it is
// ended with its rotation or later. What is stored of it is gone.
func TestFS08_APreviousSecretIsEndedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		fresh, end := "the-secret-after-the-leak", webhook.Patch{EndPrevious: true}
		for i, patches := range map[string][]webhook.Patch{
			"with":   {{Secret: &fresh, EndPrevious: true}},
			"later":  {{Secret: &fresh}, end},
			"again":  {{Secret: &fresh}, {Secret: &fresh, EndPrevious: true}},
			"twice":  {{Secret: &fresh, EndPrevious: true}, end},
			"beside": {{Secret: &fresh}, {Events: &[]string{}, EndPrevious: true}},
		} {
			leaked := w.setup(i)
			for _, p := range patches {
				_, err := w.svc.Edit(t.Context(), i, p)
				require.NoError(t, err)
			}
			w.emit(i, "p1", 1, "", 1)
			require.Equal(t, 1, w.step())
			d := w.sent[len(w.sent)-1]
			require.True(t, w.verifies(d, fresh), i)
			require.False(t, w.verifies(d, leaked), i)
			require.ErrorIs(t, webhook.VerifyBody(d.Header, d.Body, leaked), webhook.ErrSignature, i)
			require.Empty(t, d.Header.Get(webhook.HeaderSignaturePrevious), i)
			require.Len(t, strings.Fields(d.Header.Get(webhook.HeaderStandardSignature)), 1, i)
			v, _, _, err := webhook.SettingsTable.One(t.Context(), w.store, storage.Tenant(i), "settings")
			require.NoError(t, err)
			require.Empty(t, v.Previous, i)
			require.True(t, v.PreviousEnd.IsZero(), i)
			why, err := w.svc.Altered(t.Context(), i)
			require.NoError(t, err)
			require.Empty(t, why)
		}
		// The one that signs now stays, whoever ends the one before where there is none.
		only := w.setup("only")
		_, err := w.svc.Edit(t.Context(), "only", end)
		require.NoError(t, err)
		w.emit("only", "p1", 1, "", 1)
		require.Equal(t, 1, w.step())
		require.True(t, w.verifies(w.sent[len(w.sent)-1], only))
	})
}

// TestFS08_SettingsAreRecorded: who changed a tenant's URL, events or secret is recorded with what
// it was before. No part of a secret is.
func TestFS08_SettingsAreRecorded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, mine := webhook.By{Name: "ann", Reason: "ticket 42"}, "a-secret-of-the-merchants-own"
		last := func(by, reason, before, after string) {
			t.Helper()
			act := w.acts[len(w.acts)-1]
			require.Equal(t, []any{audit.SetWebhooks, by, reason, "a", true}, []any{act.Kind, act.By, act.Reason, act.Tenant, act.Tell})
			for _, c := range []struct {
				want  string
				shown any
			}{{before, act.Before}, {after, act.After}} {
				if c.want == "" {
					require.Nil(t, c.shown)
					continue
				}
				got, err := json.Marshal(c.shown)
				require.NoError(t, err)
				require.JSONEq(t, c.want, string(got))
			}
		}
		_, full, err := w.svc.Setup(t.Context(), "a", "https://a.example/1", ann)
		require.NoError(t, err)
		first := `{"url":"https://a.example/1","events":[],"secret":1,"secret_shown":true}`
		last("ann", "ticket 42", "", first)
		_, _, err = w.svc.Setup(t.Context(), "a", "https://eve.example/", webhook.By{})
		require.NoError(t, err)
		second := `{"url":"https://eve.example/","events":[],"secret":1,"secret_shown":true}`
		last("host", "", first, second)
		_, err = w.svc.Edit(t.Context(), "a", webhook.Patch{Secret: &mine, By: ann})
		require.NoError(t, err)
		third := `{"url":"https://eve.example/","events":[],"secret":2,"secret_shown":true,"previous_signs_until":"` + webhook.Timestamp(w.now.Add(24*time.Hour)) + `"}`
		last("ann", "ticket 42", second, third)
		_, err = w.svc.Edit(t.Context(), "a", webhook.Patch{EndPrevious: true, Events: &[]string{webhook.PaymentDeposit}, By: ann})
		require.NoError(t, err)
		last("ann", "ticket 42", third, `{"url":"https://eve.example/","events":["payment_deposit"],"secret":2,"secret_shown":true}`)
		require.Len(t, w.acts, 4)

		// A call that is repeated, one of nothing, one that is refused, and a secret that the
		// service makes for a callback's signature: nobody changed anything.
		for _, p := range []webhook.Patch{{Secret: &mine, By: ann}, {EndPrevious: true}, {By: ann}, {URL: ptr("https://eve.example/")}} {
			_, err = w.svc.Edit(t.Context(), "a", p)
			require.NoError(t, err)
		}
		_, err = w.svc.Edit(t.Context(), "a", webhook.Patch{URL: ptr("https://10.0.0.1/")})
		require.ErrorIs(t, err, webhook.ErrURL)
		w.emit("b", "p1", 1, "https://b.example/", 1)
		require.Equal(t, 1, w.step())
		require.Len(t, w.acts, 4)
		all, err := json.Marshal(w.acts)
		require.NoError(t, err)
		for _, secret := range []string{full, mine} {
			require.NotContains(t, string(all), secret)
			require.NotContains(t, string(all), secret[len(secret)-4:])
		}
	})
}

// TestFE13_NoSettingsOfAnUnknownTenant: no row and no secret are made for one.
func TestFE13_NoSettingsOfAnUnknownTenant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		none := errors.New("no such tenant")
		w.known = func(tenant string) error {
			if tenant != "a" {
				return none
			}
			return nil
		}
		_, _, err := w.svc.Setup(t.Context(), "nobody", "https://shop.example/", webhook.By{})
		require.ErrorIs(t, err, none)
		require.ErrorContains(t, err, `"nobody"`)
		_, err = w.svc.Edit(t.Context(), "nobody", webhook.Patch{URL: ptr("https://shop.example/")})
		require.ErrorIs(t, err, none)
		_, _, err = w.svc.Test(t.Context(), "nobody", webhook.PaymentStatusUpdate, nil)
		require.ErrorIs(t, err, none)
		rows, err := w.store.Find(t.Context(), storage.Query{Table: webhook.SettingsTable.Table, Limit: 1})
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Empty(t, w.acts)
		require.NotEmpty(t, w.setup("a"))
	})
}
