package cryptopay_test

import (
	"crypto/rand"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// operates names what each act of an operator is called in the audit log: each method of
// Operate that takes a Call.
var operates = map[string]outgoing.OperationKind{
	"Halt": outgoing.OpHalt, "Lift": outgoing.OpLift,
	"SpeedUp": outgoing.OpSpeedUp, "CancelTransaction": outgoing.OpCancel,
	"FillNonce": outgoing.OpFillNonce, "AdoptNonces": outgoing.OpAdoptNonce, "AdoptNonce": outgoing.OpAdoptNonce,
	"RetrySweep": outgoing.OpRetrySweep, "ReplaceHot": outgoing.OpReplaceHot, "ResumeNetwork": outgoing.OpResume, "RecoverDeposits": outgoing.OpRecover,
	"CreditSuspense": outgoing.OpCreditSuspense, "IgnoreSuspense": outgoing.OpIgnoreSuspense, "RefundSuspense": outgoing.OpRefundSuspense,
	"PayOutSuspense": outgoing.OpPayOutSuspense, "ReleaseSuspense": outgoing.OpReleaseSuspense,
	"SetPolicy": outgoing.OpSetPolicy, "AllowDestination": outgoing.OpAllowDestination, "RemoveDestination": outgoing.OpRemoveDestination,
	"PayOutFees": outgoing.OpPayOutFees, "WithdrawOperatorFunds": outgoing.OpWithdrawFloat, "CancelHousePayment": outgoing.OpCancelHouse,
	"Adjust": outgoing.OpAdjust, "ResolveTopUp": outgoing.OpResolveTopUp, "BookRefillCost": outgoing.OpRefillCost,
	"ProposeRefill": outgoing.OpRefill, "TakeRefill": outgoing.OpRefill, "CancelRefill": outgoing.OpRefill,
}

// looks are the methods of Operate that change nothing.
var looks = []string{"AuditLog", "HeldTopUps", "Halts", "HousePayments", "HousePayment", "List", "NoncesBeyond", "Refills", "Refill", "ShowRefill", "Transactions"}

// decides names what each decision of a person about a withdrawal is called in the audit log;
// "" = nobody decides by the method: it reads, is a merchant's, or a worker's.
var decides = map[string]string{
	"Approve": audit.Approve, "Refuse": audit.Refuse, "Hold": audit.Hold, "Release": audit.Release, "TakeDelivered": audit.Take, "PayMissing": audit.Pay,
}

// sets names what each call that changes a tenant's webhooks, or a caller's credentials, is called in
// the audit log: each method of their services that takes who calls it.
var sets = map[string]string{
	"Setup": audit.SetWebhooks, "Edit": audit.SetWebhooks,
	"CreateApp": audit.CreateApp, "DeleteApp": audit.DeleteApp, "DeleteAppIf": audit.DeleteApp, "CreateKey": audit.CreateKey, "DeleteKey": audit.DeleteKey,
}

// setsNothing are the methods of those services that change nothing that somebody has set. A client
// gets tokens and revokes its own. What Replay does is recorded by the command that calls it.
var setsNothing = []string{
	"Altered", "CheckURL", "Dispatch", "Get", "List", "Log", "Opens", "Replay", "Reseal", "Step", "Test", "Wants",
	"AppByClient", "Apps", "Check", "CheckKey", "Keys", "Purge", "Revoke", "Token", "Unmoved", "Verify",
}

// A new act of an operator is in the audit log, or this test asks where it is.
func TestAudit_EveryActHasAKind(t *testing.T) {
	t.Parallel()
	call := reflect.TypeFor[cryptopay.Call]()
	operate := reflect.TypeFor[*cryptopay.Operate]()
	seen := map[outgoing.OperationKind]bool{}
	for i := range operate.NumMethod() {
		m := operate.Method(i)
		acts := false
		for k := range m.Type.NumIn() {
			acts = acts || m.Type.In(k) == call
		}
		require.NotEqual(t, acts, slices.Contains(looks, m.Name), "%s takes a Call, or changes nothing", m.Name)
		if acts {
			require.NotEmpty(t, operates[m.Name], "%s is in no audit log", m.Name)
			seen[operates[m.Name]] = true
		}
	}
	require.Equal(t, len(operates)+len(looks), operate.NumMethod())
	require.Len(t, seen, 25)

	by := []reflect.Type{
		reflect.TypeFor[webhook.By](), reflect.TypeFor[webhook.Patch](), reflect.TypeFor[auth.By](), reflect.TypeFor[auth.NewApp](), reflect.TypeFor[auth.NewKey](),
	}
	methods := map[string]bool{}
	for _, service := range []reflect.Type{reflect.TypeFor[*webhook.Service](), reflect.TypeFor[*auth.Service]()} {
		for i := range service.NumMethod() {
			m := service.Method(i)
			acts := false
			for k := range m.Type.NumIn() {
				acts = acts || slices.Contains(by, m.Type.In(k))
			}
			require.NotEqual(t, acts, slices.Contains(setsNothing, m.Name), "%s takes who calls it, or changes nothing", m.Name)
			require.Equal(t, acts, sets[m.Name] != "", "%s is in no audit log", m.Name)
			methods[m.Name] = true
		}
	}
	require.Len(t, methods, len(sets)+len(setsNothing))

	// Whoever decides about a withdrawal gives a name and a reason: two texts after its id.
	text := reflect.TypeFor[string]()
	service := reflect.TypeFor[*withdrawal.Service]()
	found := 0
	for i := range service.NumMethod() {
		m := service.Method(i)
		if n := m.Type.NumIn(); n < 6 || m.Type.In(2) != text || m.Type.In(3) != text || m.Type.In(4) != text || m.Type.In(5) != text {
			require.Empty(t, decides[m.Name])
			continue
		}
		require.NotEmpty(t, decides[m.Name], "%s is in no audit log", m.Name)
		found++
	}
	require.Len(t, decides, found)
}

// A withdrawal that a person freezes and lets go again is in the tenant's log, with who and why,
// in the Change that does it. Without a name nothing is done.
func TestAudit_HoldAndRelease(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.asks()
		ctx := t.Context()
		w := i.asked("10", i.chains["ETH"].Customer("supplier"))
		for _, act := range []func(by string) error{
			func(by string) error {
				_, err := i.app.Withdrawals.Hold(ctx, i.tenant, w.ID, by, "ticket 42")
				return err
			},
			func(by string) error {
				_, err := i.app.Withdrawals.Release(ctx, i.tenant, w.ID, by, "it is fine")
				return err
			},
		} {
			before := i.withdrawalOf(w.ID)
			var bad *withdrawal.InvalidError
			require.ErrorAs(t, act(" "), &bad)
			require.Contains(t, bad.Fields, "by")
			require.Equal(t, before.Frozen, i.withdrawalOf(w.ID).Frozen)
			require.NoError(t, act("bob"))
			require.NotEqual(t, before.Frozen, i.withdrawalOf(w.ID).Frozen)
		}
		log := i.logged(storage.Tenant(i.tenant))
		n := len(log) - 2
		require.Equal(t, []outgoing.OperationKind{audit.Hold, audit.Release}, kindsOf(log)[n:])
		for k, reason := range []string{"ticket 42", "it is fine"} {
			op := log[n+k]
			require.Equal(t, []string{"bob", reason, i.tenant, w.ID}, []string{op.By, op.Reason, op.Tenant, op.Object})
			require.Contains(t, op.After, `"amount":"10"`)
		}
		told, err := i.store.Count(ctx, storage.Query{Table: storage.Events.Table, Partition: storage.Tenant(i.tenant), Where: []storage.Cond{
			{Column: "kind", Op: storage.Eq, Value: outgoing.Operated{}.EventKind()},
		}})
		require.NoError(t, err)
		require.EqualValues(t, 2, told, "the host hears who did it")
		require.Empty(t, i.breaks())
	})
}

// operated are the events of operations in a partition, as the host hears them.
func (h *host) operated(p storage.Partition) (out []outgoing.Operated) {
	h.t.Helper()
	for e, err := range storage.All(h.t.Context(), h.store, storage.Query{Table: storage.Events.Table, Partition: p, Where: []storage.Cond{
		{Column: "kind", Op: storage.Eq, Value: outgoing.Operated{}.EventKind()},
	}}) {
		require.NoError(h.t, err)
		var o outgoing.Operated
		require.NoError(h.t, json.Unmarshal(storage.Events.Value(e).Data, &o))
		out = append(out, o)
	}
	return out
}

// TestFS08_WhoSetWebhooksIsKnown: who turned a tenant's webhooks to another URL, or its secret to
// another one, is in the tenant's audit log, and the host hears of it. No secret is in either. Of a
// tenant that does not exist nothing is made.
func TestFS08_WhoSetWebhooksIsKnown(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		ctx, mine, url := t.Context(), "a-secret-of-the-merchants-own", "https://eve.example/hook"
		_, full, err := i.app.Webhooks.Setup(ctx, i.tenant, "https://shop.example/hook", webhook.By{Name: "ann", Reason: "ticket 42"})
		require.NoError(t, err)
		_, err = i.app.Webhooks.Edit(ctx, i.tenant, webhook.Patch{URL: &url, Secret: &mine, EndPrevious: true, By: webhook.By{Name: "eve"}})
		require.NoError(t, err)
		log, told := i.logged(storage.Tenant(i.tenant)), i.operated(storage.Tenant(i.tenant))
		require.Equal(t, []outgoing.OperationKind{audit.SetWebhooks, audit.SetWebhooks}, kindsOf(log))
		require.Len(t, told, 2)
		for n, want := range []struct{ by, reason, before, after string }{
			{"ann", "ticket 42", `{"url":"","events":[],"secret":1,"secret_shown":false}`, `{"url":"https://shop.example/hook","events":[],"secret":1,"secret_shown":true}`},
			{"eve", "", `{"url":"https://shop.example/hook","events":[],"secret":1,"secret_shown":true}`, `{"url":"https://eve.example/hook","events":[],"secret":2,"secret_shown":true}`},
		} {
			require.Equal(t, []string{want.by, want.reason, i.tenant, "webhooks", want.before, want.after},
				[]string{log[n].By, log[n].Reason, log[n].Tenant, log[n].Object, log[n].Before, log[n].After})
			k := slices.IndexFunc(told, func(o outgoing.Operated) bool { return o.OperationID == log[n].ID })
			require.GreaterOrEqual(t, k, 0)
			require.Equal(t, []string{string(audit.SetWebhooks), want.by, want.before, want.after}, []string{string(told[k].Operation), told[k].By, told[k].Before, told[k].After})
		}
		all, err := json.Marshal([]any{log, told})
		require.NoError(t, err)
		for _, secret := range []string{full, mine} {
			require.NotContains(t, string(all), secret)
			require.NotContains(t, string(all), secret[len(secret)-4:])
		}
		_, _, err = i.app.Webhooks.Setup(ctx, "nobody", url, webhook.By{})
		require.ErrorIs(t, err, wallet.ErrNoTenant)
		require.EqualError(t, err, `webhook: settings of tenant "nobody": wallet: no such tenant`)
		_, err = i.app.Webhooks.Edit(ctx, "nobody", webhook.Patch{URL: &url})
		require.ErrorIs(t, err, wallet.ErrNoTenant)
		rows, err := i.store.Find(ctx, storage.Query{Table: webhook.SettingsTable.Table, Partition: storage.Tenant("nobody"), Limit: 1})
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Empty(t, i.breaks())
	})
}

// TestFS08_TheHostHearsOfCredentials: the system's partition has an event of each credential that is made or deleted,
// in the Change that does it.
func TestFS08_TheHostHearsOfCredentials(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		ctx := t.Context()
		credentials, err := auth.New(auth.Config{
			Store: i.store, Key: hostKey, Now: i.clock.Now, NewID: i.app.Config().NewID, Random: rand.Reader, Audit: i.app.Audit,
		})
		require.NoError(t, err)
		require.NoError(t, i.store.Open(ctx, append(cryptopay.Tables(), auth.Tables()...)...))
		by := auth.By{Name: "ann", Reason: "ticket 8"}
		app, secret, err := credentials.CreateApp(ctx, auth.NewApp{Tenant: i.tenant, Name: "shop", By: by})
		require.NoError(t, err)
		key, made, err := credentials.CreateKey(ctx, auth.NewKey{Tenant: i.tenant, Name: "till", By: by})
		require.NoError(t, err)
		require.NoError(t, credentials.DeleteKey(ctx, i.tenant, key.ID, by))
		require.NoError(t, credentials.DeleteApp(ctx, i.tenant, app.ID, by))
		told := i.operated(storage.System)
		var got []string
		for _, o := range told {
			require.Equal(t, []string{"ann", "ticket 8", i.tenant}, []string{o.By, o.Reason, o.Tenant})
			got = append(got, string(o.Operation)+" "+o.About)
		}
		require.ElementsMatch(t, []string{
			audit.CreateApp + " " + app.ClientID, audit.CreateKey + " " + key.ID, audit.DeleteKey + " " + key.ID, audit.DeleteApp + " " + app.ClientID,
		}, got)
		all, err := json.Marshal(told)
		require.NoError(t, err)
		require.NotContains(t, string(all), secret)
		require.NotContains(t, string(all), made)
	})
}
