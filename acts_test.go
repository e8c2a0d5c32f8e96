package cryptopay_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// operates names what each act of an operator is called in the audit log: each method of
// Operate that takes a Call.
var operates = map[string]outgoing.OperationKind{
	"Halt": outgoing.OpHalt, "Lift": outgoing.OpLift,
	"SpeedUp": outgoing.OpSpeedUp, "CancelTransaction": outgoing.OpCancel,
	"FillNonce": outgoing.OpFillNonce, "AdoptNonces": outgoing.OpAdoptNonce, "AdoptNonce": outgoing.OpAdoptNonce,
	"RetrySweep": outgoing.OpRetrySweep, "ResumeNetwork": outgoing.OpResume, "RecoverDeposits": outgoing.OpRecover,
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
	require.Len(t, seen, 24)

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
