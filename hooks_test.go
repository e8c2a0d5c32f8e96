package cryptopay_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// rooms are the fields of a Config that refine a room.
var rooms = []string{"Payments", "Withdrawals", "Treasury", "Outgoing"}

// asked notes which hooks of the host were called.
type asked struct {
	mu    sync.Mutex
	hooks map[string]int
}

// answers are what a host's hooks say that do not mind, where it is not the zero
// value: anything that is none of the App's business goes on.
func answers() map[string]any {
	return map[string]any{
		"Withdrawals.MaxCost": ledger.MaxAmount, "Withdrawals.Policy": withdrawal.Allow, "Withdrawals.Confirmations": int64(1),
		"Payments.Screen":         payment.Allow,
		"Outgoing.CheckGasBudget": true,
	}
}

// listen sets every function of the rooms' Configs that a host may set to one that
// says neutral things and is noted. It returns their names.
func (a *asked) listen(t *testing.T, cfg *cryptopay.Config) (settable []string) {
	t.Helper()
	for _, room := range rooms {
		fields := reflect.ValueOf(cfg).Elem().FieldByName(room)
		for i := range fields.NumField() {
			field, name := fields.Field(i), room+"."+fields.Type().Field(i).Name
			if field.Kind() != reflect.Func {
				continue
			}
			hook := reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.hooks[name]++
				var out []reflect.Value
				for k := range field.Type().NumOut() {
					v := reflect.New(field.Type().Out(k)).Elem()
					if answer, ok := answers()[name]; ok && k == 0 {
						v.Set(reflect.ValueOf(answer))
					}
					out = append(out, v)
				}
				return out
			})
			was := reflect.New(field.Type()).Elem()
			field.Set(hook)
			if _, err := cryptopay.New(*cfg); err != nil {
				require.ErrorContains(t, err, "Config."+name+" must be left out")
				field.Set(was)
				continue
			}
			settable = append(settable, name)
		}
	}
	return settable
}

// TestFT05_EveryHookOfAHostIsAsked: what a host may set is asked, and nothing that
// it says nothing against stops for it.
func TestFT05_EveryHookOfAHostIsAsked(t *testing.T) {
	t.Parallel()
	h := newHost(t, 51, "ETH", "BTC")
	a := &asked{hooks: map[string]int{}}
	var settable []string
	review := false
	h.configure = func(c *cryptopay.Config) {
		settable = a.listen(t, c)
		policy := c.Withdrawals.Policy
		c.Withdrawals.Policy = func(ctx context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			if review {
				return withdrawal.AskReview, "somebody should look", nil
			}
			return policy(ctx, w)
		}
	}
	h.restart()
	ctx := t.Context()
	for _, currency := range []string{"ETH", "BTC"} {
		h.earn(currency, "300")
		w, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms:       withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: currency, Address: string(h.chains[chain.Network(currency)].Customer("supplier"))},
			CallbackURL: "https://shop.example/hook",
		})
		require.NoError(t, err)
		h.mine(40)
		w, err = h.app.Withdrawals.Get(ctx, h.tenant, w.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, w.Status, "waiting for %s", w.Waiting)
	}

	_, err := h.app.Payments.Estimate(ctx, h.tenant, payment.Pricing{Amount: "20", Currency: "ETH"})
	require.NoError(t, err)

	// What a person should look at: late money, and a withdrawal under review.
	minute := 1
	p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: "20", Currency: "ETH"}, ExpiryMinutes: &minute, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(t, err)
	h.mine(10)
	_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "ETH", dec("0.01"))
	require.NoError(t, err)
	review = true
	_, err = h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec("0.01")), Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier"))},
	})
	require.NoError(t, err)
	h.mine(20)
	_, err = h.app.Treasury.Sync(ctx, h.tenant)
	require.NoError(t, err)

	elsewhere := []string{
		"Outgoing.Raise",  // of fees that rose: see TestFT06_SpeedUpRaisesTheBound
		"Outgoing.Payer",  // of networks where another can pay: see chain/solana
		"Treasury.Notify", // of sweeps that wait for long: see TestFT06_WhatWaitsIsTold
		"Outgoing.Source", // of coins that a deep reorg took away
	}
	for _, name := range settable {
		if !slices.Contains(elsewhere, name) {
			require.Positive(t, a.hooks[name], "%s is never asked", name)
		}
	}
	require.Greater(t, len(settable), 15, "%v", settable)
	h.sound()
}

// TestFT05_AHostsHaltStopsWhatWouldBeSent: a host's word is enough, and so is ours
// beside a host that minds nothing.
func TestFT05_AHostsHaltStopsWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	h := newHost(t, 52, "ETH")
	var why string
	var stopped string
	h.configure = func(c *cryptopay.Config) {
		c.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { return why, nil }
		c.Withdrawals.Halted = func(context.Context, string, string) (string, error) { return stopped, nil }
	}
	h.restart()
	h.earn("ETH", "300")
	ctx := t.Context()
	pay := func() string {
		w, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: ptr(dec("0.01")), Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier"))},
		})
		require.NoError(t, err)
		for range 10 {
			h.clock.Advance(15 * time.Second)
			h.chains["ETH"].Mine(1)
			_ = h.app.Step(ctx) // a halted network is an error of it
		}
		return w.ID
	}
	get := func(id string) withdrawal.Withdrawal {
		w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
		require.NoError(t, err)
		return w
	}
	halt := func(reason string) {
		part := storage.Network("ETH")
		cursor, row, ok, err := incoming.Cursors.One(ctx, h.store, part, incoming.CursorID)
		require.NoError(t, err)
		require.True(t, ok)
		cursor.Halted = reason
		require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
			ID: "halt/" + reason, Partition: part, Put: []storage.Row{incoming.Cursors.Row(row.ID, row.Version, row.Due, cursor)},
		}))
	}
	for name, stop := range map[string]struct{ on, off func() }{
		"the host, at the sending":    {func() { why = "an incident" }, func() { why = "" }},
		"the host, at the hand-over":  {func() { stopped = "the host says so" }, func() { stopped = "" }},
		"the App, beside a host's no": {func() { halt("a fork") }, func() { halt("") }},
	} {
		stop.on()
		id := pay()
		w := get(id)
		require.Equal(t, withdrawal.Pending, w.Status, name)
		require.Equal(t, "halted", w.Waiting, name)
		require.Empty(t, w.Tx, name)
		stop.off()
		h.clock.Advance(10 * time.Minute)
		h.mine(30)
		require.Equal(t, withdrawal.Completed, get(id).Status, name)
	}
	h.sound()
}

// TestFT05_RefusalsAddUp: either refusal refuses, the lower bound counts, and either
// may know an address.
func TestFT05_RefusalsAddUp(t *testing.T) {
	t.Parallel()
	h := newHost(t, 53, "ETH")
	refused := errors.New("refused by the host")
	most := ledger.MaxAmount
	theirs := h.chains["ETH"].Customer("a partner")
	h.configure = func(c *cryptopay.Config) {
		url := func(url string) error {
			if strings.Contains(url, "blocked") {
				return refused
			}
			return nil
		}
		c.Payments.CheckURL, c.Withdrawals.CheckURL = url, url
		c.Withdrawals.Own = func(_ context.Context, _ chain.Network, a chain.Address) (string, bool, error) {
			return "partner", a == theirs, nil
		}
		c.Withdrawals.MaxCost = func(context.Context, chain.Intent) (ledger.Amount, error) { return most, nil }
	}
	h.restart()
	h.earn("ETH", "300")
	ctx := t.Context()
	for _, url := range []string{"https://blocked.example/hook", "ftp://shop.example/hook"} {
		var bad *payment.InvalidError
		_, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "20", Currency: "ETH"}, CallbackURL: url})
		require.ErrorAs(t, err, &bad, url)
		require.Equal(t, []string{"callback_url"}, slices.Collect(maps.Keys(bad.Fields)))
	}
	pay := func(to chain.Address, url string) (withdrawal.Withdrawal, error) {
		return h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: ptr(dec("0.01")), Currency: "ETH", Address: string(to)}, CallbackURL: url,
		})
	}
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	for _, to := range []chain.Address{hot, theirs} {
		var bad *chain.AddressError
		_, err := pay(to, "")
		require.ErrorAs(t, err, &bad, to)
	}
	supplier := h.chains["ETH"].Customer("supplier")
	for _, url := range []string{"https://blocked.example/hook", "ftp://shop.example/hook"} {
		var bad *withdrawal.InvalidError
		_, err := pay(supplier, url)
		require.ErrorAs(t, err, &bad, url)
	}
	first, err := pay(supplier, "")
	require.NoError(t, err)
	h.mine(30)
	first, err = h.app.Withdrawals.Get(ctx, h.tenant, first.ID)
	require.NoError(t, err)
	require.Less(t, first.MaxCost, most, "ours is lower")
	most = first.MaxCost - 1
	second, err := pay(supplier, "")
	require.NoError(t, err)
	h.mine(30)
	second, err = h.app.Withdrawals.Get(ctx, h.tenant, second.ID)
	require.NoError(t, err)
	require.Equal(t, most, second.MaxCost, "theirs is lower")
}

// TestFR01_WhatTheAppFillsInIsRefused: by name, all at once; and what an App was made
// of makes another one.
func TestFR01_WhatTheAppFillsInIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, 54, "ETH")
	called := 0
	h.configure = func(c *cryptopay.Config) {
		c.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { called++; return "", nil }
		wrong := *c
		wrong.Payments.RateAge = time.Minute
		wrong.Payments.Store, wrong.Withdrawals.Now, wrong.Outgoing.ChangeAddress = c.Store, time.Now, func(context.Context, string) (chain.Derived, error) {
			return chain.Derived{}, nil
		}
		_, err := cryptopay.New(wrong)
		require.ErrorContains(t, err, "Config.Payments.Store, Config.Payments.RateAge, Config.Withdrawals.Now, Config.Outgoing.ChangeAddress must be left out")
		wrong = *c
		wrong.OutgoingOn = map[chain.Network]outgoing.Config{"ETH": {Now: time.Now}}
		_, err = cryptopay.New(wrong)
		require.ErrorContains(t, err, "Config.OutgoingOn[ETH].Now must be left out")
	}
	h.restart()
	cfg := h.app.Config()
	cfg.Key = make([]byte, 32)
	for range 3 {
		again, err := cryptopay.New(cfg)
		require.NoError(t, err, "what an App was made of makes another one")
		cfg = again.Config()
		cfg.Key = make([]byte, 32)
	}
	why, err := cfg.Outgoing.Halted(t.Context(), chain.Intent{})
	require.NoError(t, err)
	require.Empty(t, why)
	require.Equal(t, 1, called, "it is the host's own hook, asked once")
}

// Whatever a host's policy gives as its reason is kept as far as it can be: a withdrawal that
// a person must look at waits for that person, and does not ask the policy for ever.
func TestFT05_APolicysReasonOfAnyBytes(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			return withdrawal.AskReview, "the screening said \x00\xff", nil
		}
	}
	h.restart()
	h.float("ETH", "1")
	h.business()
	list, _, err := h.app.Withdrawals.List(t.Context(), h.tenant, withdrawal.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, withdrawal.ShownReview, list[0].WaitingReason())
	require.Contains(t, list[0].Reason, "the screening said")
}
