package cryptopay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// logged is an audit log, read in pages of two.
func (h *host) logged(p storage.Partition) (out []cryptopay.Operation) {
	h.t.Helper()
	for after := int64(0); ; {
		some, err := h.app.Operate.AuditLog(h.t.Context(), p, after, 2)
		require.NoError(h.t, err)
		if len(some) == 0 {
			break
		}
		out, after = append(out, some...), some[len(some)-1].Number
	}
	var before []byte
	for n, op := range out {
		require.EqualValues(h.t, n+1, op.Number, "%s", p)
		require.Len(h.t, op.Hash, 32)
		require.Equal(h.t, before, op.Previous)
		before = op.Hash
	}
	return out
}

// kindsOf are the kinds of operations, in their order.
func kindsOf(all []cryptopay.Operation) []outgoing.OperationKind {
	out := []outgoing.OperationKind{}
	for _, op := range all {
		out = append(out, op.Kind)
	}
	return out
}

// breaks are what Verify finds in audit logs.
func (h *host) breaks() (out []string) {
	h.t.Helper()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for _, r := range reports {
		for _, c := range r.Contradictions {
			if c.Kind == "audit log" {
				out = append(out, c.ID+": "+c.Detail)
			}
		}
	}
	return out
}

// allowed puts a new address on the tenant's list, which is an act.
func (h *host) allowed(app *cryptopay.App, name string) error {
	_, _, err := app.Operate.AllowDestination(h.t.Context(), h.tenant, "ETH", string(h.chains["ETH"].Customer(name)), "", because(name))
	return err
}

// A tenant's audit log has his policy, destinations and approvals, a network's and the system's
// have halts, and the system's has credentials. Each entry says who and why, and has no secret.
func TestAudit_WhatPeopleDoIsChained(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		ctx := t.Context()
		i.asks()
		i.ruled(policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("100000")})
		require.NoError(t, i.allowed(i.app, "supplier"))
		to := i.chains["ETH"].Customer("supplier")
		w, other := i.asked("10", to), i.asked("20", to)
		_, err := i.app.Withdrawals.Approve(ctx, i.tenant, w.ID, "bob", "ticket 42", "finance")
		require.NoError(t, err)
		_, err = i.app.Withdrawals.Refuse(ctx, i.tenant, other.ID, "bob", "who is that?")
		require.NoError(t, err)
		dry := because("a try")
		dry.DryRun = true
		_, err = i.app.Operate.Halt(ctx, cryptopay.HaltScope{}, dry)
		require.NoError(t, err)
		_, err = i.app.Operate.Halt(ctx, cryptopay.HaltScope{}, because("a fire"))
		require.NoError(t, err)
		_, err = i.app.Operate.Lift(ctx, cryptopay.HaltScope{}, because("it is out"))
		require.NoError(t, err)
		credentials, err := auth.New(auth.Config{
			Store: i.store, Key: bytes.Repeat([]byte{8}, 32), Now: i.clock.Now, NewID: i.app.Config().NewID, Random: rand.Reader, Audit: i.app.Audit,
		})
		require.NoError(t, err)
		require.NoError(t, i.store.Open(ctx, append(cryptopay.Tables(), auth.Tables()...)...))
		by := auth.By{Name: "ann", Reason: "ticket 8"}
		app, secret, err := credentials.CreateApp(ctx, auth.NewApp{Tenant: i.tenant, Name: "shop", By: by})
		require.NoError(t, err)
		key, made, err := credentials.CreateKey(ctx, auth.NewKey{Tenant: i.tenant, Name: "till"})
		require.NoError(t, err)
		_, _, err = credentials.CreateKey(ctx, auth.NewKey{Tenant: i.tenant, Name: "again", Key: made})
		require.ErrorIs(t, err, auth.ErrExists)
		require.NoError(t, credentials.DeleteKey(ctx, i.tenant, key.ID, by))
		require.ErrorIs(t, credentials.DeleteKey(ctx, i.tenant, key.ID, by), auth.ErrNotFound)
		require.NoError(t, credentials.DeleteApp(ctx, i.tenant, app.ID, by))
		i.restart()

		tenants := i.logged(storage.Tenant(i.tenant))
		require.Equal(t, []outgoing.OperationKind{
			outgoing.OpSetPolicy, outgoing.OpAllowDestination, audit.Approve, audit.Refuse,
		}, kindsOf(tenants))
		approved := tenants[2]
		require.Equal(t, []string{"bob", "ticket 42", i.tenant, w.ID}, []string{approved.By, approved.Reason, approved.Tenant, approved.Object})
		require.Contains(t, approved.After, `"amount":"10"`)
		require.Contains(t, approved.After, "finance")
		require.Equal(t, []outgoing.OperationKind{outgoing.OpHalt, outgoing.OpLift}, kindsOf(i.logged(storage.Network("ETH"))))
		system := i.logged(storage.System)
		require.Equal(t, []outgoing.OperationKind{
			outgoing.OpHalt, outgoing.OpLift, audit.CreateApp, audit.CreateKey, audit.DeleteKey, audit.DeleteApp,
		}, kindsOf(system))
		require.Equal(t, []string{"ann", "ticket 8", i.tenant, app.ClientID}, []string{system[2].By, system[2].Reason, system[2].Tenant, system[2].Object})
		require.Equal(t, []string{"host", key.ID, "", `{"name":"till","scopes":"read write"}`}, []string{system[3].By, system[3].Object, system[3].Before, system[3].After})
		all, err := json.Marshal([]any{tenants, system})
		require.NoError(t, err)
		for _, no := range []string{secret, made, secret[4:20], made[4:20]} {
			require.NotContains(t, string(all), no)
		}
		require.Empty(t, i.breaks())
	})
}

// Acts at once in two processes are each in the log, once, and the log has no gap.
func TestAudit_ActsAtOnce(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		other := i.compose(i.configure)
		require.NoError(t, other.Open(t.Context(), cryptopay.Tables()...))
		const acts = 12
		done := make(chan error)
		for n := range acts {
			app := []*cryptopay.App{i.app, other}[n%2]
			go func() { done <- i.allowed(app, fmt.Sprint("supplier ", n)) }()
		}
		for range acts {
			require.NoError(t, <-done)
		}
		log := i.logged(storage.Tenant(i.tenant))
		require.Len(t, log, acts)
		reasons := map[string]bool{}
		for _, op := range log {
			reasons[op.Reason] = true
		}
		require.Len(t, reasons, acts)
		require.Empty(t, i.breaks())
	})
}

// A host makes keys for many merchants at one moment: each is made, and recorded.
func TestAudit_KeysForManyAtOnce(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		credentials, err := auth.New(auth.Config{
			Store: i.store, Key: bytes.Repeat([]byte{8}, 32), Now: i.clock.Now, NewID: i.app.Config().NewID, Random: rand.Reader, Audit: i.app.Audit,
		})
		require.NoError(t, err)
		require.NoError(t, i.store.Open(t.Context(), append(cryptopay.Tables(), auth.Tables()...)...))
		const many = 150
		done := make(chan error)
		for n := range many {
			go func() {
				key, _, err := credentials.CreateKey(t.Context(), auth.NewKey{Tenant: i.tenant, Name: fmt.Sprint("till ", n)})
				if err == nil && n%2 == 0 {
					err = credentials.DeleteKey(t.Context(), i.tenant, key.ID, auth.By{Name: "ann", Reason: "a slip"})
				}
				done <- err
			}()
		}
		var failed error
		for range many {
			failed = errors.Join(failed, <-done)
		}
		require.NoError(t, failed)
		require.Len(t, i.logged(storage.System), many+many/2)
		require.Empty(t, i.breaks())
	})
}

// Verify names each row of the log that somebody edited, also when acts were added afterwards.
func TestAudit_EditedRowsAreNamed(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		ctx := t.Context()
		scopes := map[string]struct {
			part storage.Partition
			act  func() error
		}{
			"tenant": {storage.Tenant(i.tenant), func() error { return i.allowed(i.app, i.app.Config().NewID()) }},
			"system": {storage.System, func() error {
				_, err := i.app.Operate.Halt(ctx, cryptopay.HaltScope{}, because("a look"))
				return err
			}},
		}
		for name, scope := range scopes {
			for range 6 {
				require.NoError(t, scope.act())
			}
			log, p := i.logged(scope.part), string(scope.part)
			require.Len(t, log, 6, name)
			require.Empty(t, i.breaks(), name)
			exec := func(query string, args ...any) {
				t.Helper()
				_, err := i.db.Exec(i.db.Rebind(query), args...)
				require.NoError(t, err)
			}
			rows := func() []storage.Row {
				t.Helper()
				out, err := i.store.Find(ctx, storage.Query{Table: outgoing.Operations.Table, Partition: scope.part, Order: []storage.Order{{Column: "number"}}})
				require.NoError(t, err)
				head, err := i.store.Rows(ctx, audit.Heads.Table, storage.Keys(scope.part, audit.HeadID)...)
				require.NoError(t, err)
				return append(out, head...)
			}
			was := rows()
			restore := func() {
				t.Helper()
				exec("DELETE FROM cryptopay_operations WHERE part = ?", p)
				exec("DELETE FROM cryptopay_audit_heads WHERE part = ?", p)
				put := make([]storage.Row, len(was))
				for n, r := range was {
					put[n] = r
					put[n].Version = 0
				}
				require.NoError(t, storage.CommitOne(ctx, i.store, storage.Change{ID: i.app.Config().NewID(), Partition: scope.part, Put: put}))
				require.Empty(t, i.breaks(), "as it was")
			}
			for what, c := range map[string]struct {
				edit func()
				want string
			}{
				"who":        {func() { exec("UPDATE cryptopay_operations SET actor = 'eve' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"why":        {func() { exec("UPDATE cryptopay_operations SET reason = 'none' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"what":       {func() { exec("UPDATE cryptopay_operations SET kind = 'lift' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"about what": {func() { exec("UPDATE cryptopay_operations SET object = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"of whom":    {func() { exec("UPDATE cryptopay_operations SET tenant = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"where":      {func() { exec("UPDATE cryptopay_operations SET network = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"before":     {func() { exec("UPDATE cryptopay_operations SET state_before = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"after":      {func() { exec("UPDATE cryptopay_operations SET state_after = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"when":       {func() { exec("UPDATE cryptopay_operations SET at = at + 1 WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"its id":     {func() { exec("UPDATE cryptopay_operations SET id = 'x' WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"its hash":   {func() { exec("UPDATE cryptopay_operations SET hash = previous WHERE part = ? AND number = 3", p) }, "/3: entry 3 was edited"},
				"taken out":  {func() { exec("UPDATE cryptopay_operations SET number = 0 WHERE part = ? AND number = 3", p) }, "/3: entry 3 is gone"},
				"deleted":    {func() { exec("DELETE FROM cryptopay_operations WHERE part = ? AND number IN (3, 4)", p) }, "/3: entries 3 to 4 are gone"},
				"the first":  {func() { exec("DELETE FROM cryptopay_operations WHERE part = ? AND number = 1", p) }, "/1: entry 1 is gone"},
				"the last":   {func() { exec("DELETE FROM cryptopay_operations WHERE part = ? AND number = 6", p) }, "/6: entry 6 is gone"},
				"all":        {func() { exec("DELETE FROM cryptopay_operations WHERE part = ?", p) }, "/1: entries 1 to 6 are gone"},
				"reordered": {func() {
					exec("UPDATE cryptopay_operations SET number = 9 - number WHERE part = ? AND number IN (4, 5)", p)
				}, "/4: entry 4 was edited"},
				"twice":      {func() { exec("UPDATE cryptopay_operations SET number = 5 WHERE part = ? AND number = 4", p) }, "/4: entry 4 is gone"},
				"the head":   {func() { exec("DELETE FROM cryptopay_audit_heads WHERE part = ?", p) }, "/0: the head is gone"},
				"the head's": {func() { exec("UPDATE cryptopay_audit_heads SET number = 5 WHERE part = ?", p) }, "/6: entries after the head, 5, were not written by this library"},
				"cut, and told": {func() {
					exec("DELETE FROM cryptopay_operations WHERE part = ? AND number > 4", p)
					exec("UPDATE cryptopay_audit_heads SET number = 4, hash = (SELECT hash FROM cryptopay_operations WHERE part = ? AND number = 4) WHERE part = ?", p, p)
				}, "/0: no key that is listed signed the head"},
			} {
				c.edit()
				require.Contains(t, strings.Join(i.breaks(), "\n"), p+c.want, "%s: %s", name, what)
				require.NoError(t, scope.act(), "what somebody has edited keeps nobody from acting")
				require.NotEmpty(t, i.breaks(), "%s: %s: an act covers it up", name, what)
				restore()
			}
			exec("UPDATE cryptopay_operations SET tenant = 'x' WHERE part = ?", p)
			require.GreaterOrEqual(t, len(i.breaks()), 6)
			restore()
		}
	})
}

// Who cuts the log off and puts an older head back is found by a seal of the journal.
func TestAudit_SealsHoldTheHead(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx, p := t.Context(), storage.Tenant(i.tenant)
	require.NoError(t, i.allowed(i.app, "one"))
	older, err := i.store.Rows(ctx, audit.Heads.Table, storage.Keys(p, audit.HeadID)...)
	require.NoError(t, err)
	require.NoError(t, i.allowed(i.app, "two"))
	i.clock.Advance(2 * time.Hour)
	i.mine(3)
	newest, ok, err := i.app.Seal(ctx, i.tenant, 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 2, newest.Audit)
	require.Empty(t, i.breaks())

	_, err = i.db.Exec("DELETE FROM cryptopay_operations WHERE part = ? AND number = 2", string(p))
	require.NoError(t, err)
	head := audit.Heads.Value(older[0])
	_, err = i.db.Exec("UPDATE cryptopay_audit_heads SET number = ?, hash = ?, mac = ? WHERE part = ?", head.Number, head.Hash, head.MAC, string(p))
	require.NoError(t, err)
	require.Equal(t, []string{string(p) + "/2: entries after 1 are gone: a seal of the journal has entry 2"}, i.breaks())
	require.NoError(t, i.allowed(i.app, "three"))
	require.Contains(t, strings.Join(i.breaks(), "\n"), "/2: entry 2 is another than the head or a seal says")

	_, err = i.db.Exec("UPDATE cryptopay_seals SET audit = 0, audit_hash = x'' WHERE part = ?", string(p))
	require.NoError(t, err)
	r, err := i.app.VerifyTenant(ctx, i.tenant)
	require.NoError(t, err)
	require.Equal(t, []seal.Finding{{Fault: seal.FaultSeal, Seal: newest.Number}}, r.Seals.Findings, "the seal covers what it says of the log")
}

// The key changes beside a log: Reseal signs its head with the newest, and it goes on.
func TestAudit_KeysAreRotated(t *testing.T) {
	t.Parallel()
	a, b := hostKey, bytes.Repeat([]byte{9}, 32)
	i := newInsider(t, "USDTERC20")
	act := func() {
		t.Helper()
		require.NoError(t, i.allowed(i.app, i.app.Config().NewID()))
		_, err := i.app.Operate.Halt(t.Context(), cryptopay.HaltScope{}, because("a look"))
		require.NoError(t, err)
	}
	act()
	for _, list := range [][][]byte{{a, b}, {b, a}} {
		i.keyed(list...)
		i.restart()
		require.Empty(t, i.breaks())
	}
	r, err := i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, r.AuditLogs, "of the tenant, the network and the system")
	r, err = i.app.Reseal(t.Context())
	require.NoError(t, err)
	require.Zero(t, r.AuditLogs)
	i.keyed(b)
	i.restart()
	require.Empty(t, i.breaks())
	act()
	require.Empty(t, i.breaks())
	require.Len(t, i.logged(storage.Tenant(i.tenant)), 2)
}

// What a version before the log has recorded stays in the list, and the log begins at the
// first act.
func TestAudit_OlderRecordsStayReadable(t *testing.T) {
	t.Parallel()
	h := newHost(t, 31, "ETH")
	older := outgoing.Operation{Kind: outgoing.OpHalt, By: "old", Reason: "an older version", At: h.clock.Now()}
	for _, p := range []storage.Partition{storage.System, storage.Tenant(h.tenant)} {
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
			ID: "older " + string(p), Partition: p, Put: []storage.Row{outgoing.Operations.Row("older", 0, time.Time{}, older)},
		}))
	}
	require.Empty(t, h.logged(storage.System))
	require.NoError(t, h.allowed(h.app, "supplier"))
	require.Len(t, h.logged(storage.Tenant(h.tenant)), 1)
	require.Empty(t, h.breaks())
	all, err := h.app.Operate.List(t.Context(), "", 10, 0)
	require.NoError(t, err)
	require.Len(t, all, 3)
}

// An act that is not done is not in the log.
func TestAudit_WhatFailsIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHost(t, 31, "ETH")
	failed := errors.New("the disk is full")
	err := storage.Decide(t.Context(), h.store, func(ctx context.Context) (storage.Change, error) {
		c := storage.Change{ID: "x", Partition: storage.System}
		return c, errors.Join(h.app.Audit(ctx, &c, audit.Act{Kind: "host_act", By: "ann"}), failed)
	})
	require.ErrorIs(t, err, failed)
	_, _, err = h.app.Operate.SetPolicy(t.Context(), h.tenant, 7, policy.Policy{}, because("a mistake"))
	require.ErrorIs(t, err, policy.ErrVersion)
	_, _, err = h.app.Operate.AllowDestination(t.Context(), h.tenant, chain.Network("ETH"), "no address", "", because("a mistake"))
	require.Error(t, err)
	require.Empty(t, h.logged(storage.System))
	require.Empty(t, h.logged(storage.Tenant(h.tenant)))
}

// The audit log names who froze a withdrawal, and who let it go on.
func TestAudit_HoldsAreRecorded(t *testing.T) {
	t.Parallel()
	h := rich(t, 32)
	id := h.withdraw("20", usdt)
	for range 2 {
		_, err := h.app.Withdrawals.Hold(t.Context(), h.tenant, id, "ann", "is it he?")
		require.NoError(t, err)
		_, err = h.app.Withdrawals.Release(t.Context(), h.tenant, id, "bob", "it is he")
		require.NoError(t, err)
	}
	said := h.logged(storage.Tenant(h.tenant))
	require.Equal(t, []outgoing.OperationKind{"hold_withdrawal", "release_withdrawal", "hold_withdrawal", "release_withdrawal"}, kindsOf(said))
	require.Equal(t, []string{"ann", "is it he?", id}, []string{said[0].By, said[0].Reason, said[0].Object})
	require.Equal(t, []string{"bob", "it is he", id}, []string{said[1].By, said[1].Reason, said[1].Object})
	require.Empty(t, h.breaks())
}

// A store without SQL has the same log.
func TestAudit_OnRedis(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	h := newHostOn(t, onRedis(t), 31, "ETH")
	done := make(chan error)
	for n := range 5 {
		go func() { done <- h.allowed(h.app, fmt.Sprint("supplier ", n)) }()
	}
	for range 5 {
		require.NoError(t, <-done)
	}
	_, err := h.app.Operate.Halt(t.Context(), cryptopay.HaltScope{}, because("a look"))
	require.NoError(t, err)
	require.Len(t, h.logged(storage.Tenant(h.tenant)), 5)
	require.Len(t, h.logged(storage.System), 1)
	require.Empty(t, h.breaks())
	rows, err := h.store.Find(t.Context(), storage.Query{Table: outgoing.Operations.Table, Partition: storage.Tenant(h.tenant), Order: []storage.Order{{Column: "number"}}})
	require.NoError(t, err)
	op := outgoing.Operations.Value(rows[2])
	op.By = "eve"
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
		ID: "eve", Partition: rows[2].Partition, Put: []storage.Row{outgoing.Operations.Row(rows[2].ID, rows[2].Version, time.Time{}, op)},
	}))
	require.Contains(t, strings.Join(h.breaks(), ""), "entry 3 was edited")
}
