package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// payer is a gateway in development on ETH whose signer is in this program, with what it takes
// to pay a supplier.
type payer struct {
	*inside
	dir string
	env map[string]string
}

func newPayer(t *testing.T, env map[string]string) *payer {
	t.Helper()
	p := &payer{&inside{t: t}, t.TempDir(), map[string]string{
		"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_RATE_LIMITS": "off",
	}}
	for name, value := range env {
		p.env[name] = strings.ReplaceAll(value, "DIR", p.dir)
	}
	p.start()
	in := p.ok("POST", "/payments/", body{"amount": "300", "currency": "ETH"})
	p.ok("POST", "/dev/pay", body{"address": in["address"], "currency": "ETH", "amount": in["amount_crypto"]})
	p.work()
	t.Cleanup(func() { require.NoError(t, p.g.close()) })
	return p
}

// ownStore are the settings of a signer with a store of its own.
func ownStore() map[string]string {
	return map[string]string{"CRYPTOPAY_SIGNER_STORE": "sqlite:DIR/signer.db"}
}

func (p *payer) file(name string) string { return filepath.Join(p.dir, name) }

func (p *payer) read(command ...string) (settings, error) {
	args := append([]string{"-store", "sqlite:" + p.file("dev.db"), "-networks", "ETH"}, command...)
	return readSettings(args, func(name string) string { return p.env[name] })
}

// operator runs the operator's command with a store of the signer.
func (p *payer) operator(own string) error {
	p.t.Helper()
	old := p.env["CRYPTOPAY_SIGNER_STORE"]
	defer func() { p.env["CRYPTOPAY_SIGNER_STORE"] = old }()
	p.env["CRYPTOPAY_SIGNER_STORE"] = own
	s, err := p.read("operator", "halts")
	require.NoError(p.t, err)
	return operate(p.t.Context(), s, slog.New(slog.DiscardHandler), io.Discard, io.Discard)
}

func (p *payer) start() {
	p.t.Helper()
	var err error
	p.s, err = p.read()
	require.NoError(p.t, err)
	p.open()
}

// refused is why a gateway with other settings does not start.
func (p *payer) refused(name, value string) error {
	p.t.Helper()
	old := p.env[name]
	defer func() { p.env[name] = old }()
	p.env[name] = value
	s, err := p.read()
	require.NoError(p.t, err)
	g, err := open(p.t.Context(), s, slog.New(slog.DiscardHandler))
	if err == nil {
		require.NoError(p.t, g.close())
	}
	return err
}

func (p *payer) stop() {
	p.t.Helper()
	require.NoError(p.t, p.g.close())
}

func (p *payer) work() {
	p.t.Helper()
	for range 4 {
		p.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 50})
	}
}

// advance moves the clock. Tokens of before are over.
func (p *payer) advance(hours int) {
	p.t.Helper()
	p.ok("POST", "/dev/advance", body{"seconds": hours * 3600})
	token, err := p.g.auth.Token(p.t.Context(), testClient, testSecret, "")
	require.NoError(p.t, err)
	p.token = token.AccessToken
}

func (p *payer) supplier() chain.Address { return p.g.world.sims[0].Customer("supplier") }

func (p *payer) withdraw(coins string) (id string) {
	p.t.Helper()
	return p.ok("POST", "/withdrawal/", body{"amount": coins, "final_amount": true, "currency": "ETH", "address": p.supplier()})["withdrawal_id"].(string)
}

func (p *payer) is(id string) string {
	p.t.Helper()
	return p.ok("GET", "/withdrawal/"+id+"/", nil)["status"].(string)
}

// got is what the supplier has, in coins.
func (p *payer) got() string {
	p.t.Helper()
	return p.g.world.sims[0].Balance(p.supplier(), "ETH").String()
}

// forgets deletes what the App's store remembers of what was signed.
func (p *payer) forgets() {
	p.t.Helper()
	for _, table := range keys.Tables() {
		edit(p.t, p.file("dev.db"), "DELETE FROM cryptopay_"+table.Name+" WHERE part <> 'system'") //nolint:gosec // names of this test
	}
}

// A withdrawal is paid. Then the App's store is edited until it says that nothing was paid, and
// that nothing was signed. A signer with a store of its own does not pay again. One without
// it does, which is what the warning at its start is about.
func TestFS02_EditedStoreAndASignersStoreApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env map[string]string
		got string
	}{
		"its own":   {ownStore(), "0.01"},
		"the App's": {nil, "0.02"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayer(t, c.env)
			w := p.withdraw("0.01")
			p.work()
			require.Equal(t, "completed", p.is(w))
			require.Equal(t, "0.01", p.got())
			saysUnpaid(t, p.file("dev.db"), w)
			p.forgets()
			p.work()
			require.Equal(t, c.got, p.got())
		})
	}
}

// A withdrawal is ordered, the App's store is backed up, the withdrawal is paid, and the backup
// is put back. The chain is where it was. The operator says that the signer goes on at the
// chain's nonce, and it still does not pay again.
func TestFS02_RestoredStoreAndASignersStoreApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env map[string]string
		got string
	}{
		"its own":   {ownStore(), "0.01"},
		"the App's": {nil, "0.02"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayer(t, c.env)
			w := p.withdraw("0.01")
			p.stop()
			backup, err := os.ReadFile(p.file("dev.db"))
			require.NoError(t, err)
			p.start()
			p.work()
			require.Equal(t, "completed", p.is(w))
			p.stop()
			require.NoError(t, os.Rename(p.file("dev.db"), p.file("lost.db")))
			require.NoError(t, os.WriteFile(p.file("dev.db"), backup, 0o600))
			edit(t, p.file("dev.db"), "ATTACH '"+p.file("lost.db")+"' AS lost; DELETE FROM cryptopay_gateway_worlds; INSERT INTO cryptopay_gateway_worlds SELECT * FROM lost.cryptopay_gateway_worlds")
			p.start()
			require.Equal(t, "pending", p.is(w))
			p.work()
			_, err = p.g.app.Operate.AdoptNonces(t.Context(), "ETH", nil, cryptopay.Call{By: "ann", Reason: "a restore"})
			require.NoError(t, err)
			p.work()
			require.Equal(t, c.got, p.got())
		})
	}
}

// ceilings of a day: so much of ETH to others, and more than enough for the network.
func ceilings(t *testing.T, pays string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "limits.json")
	text := `{"networks": {"ETH": {"costs": [{"amount": "1", "per": "24h"}]}}, "currencies": {"ETH": {"pays": [{"amount": "` + pays + `", "per": "24h"}]}}}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// A withdrawal above the limit of a day waits with its reason, also after a restart, and is paid
// on the next day.
func TestFS07_GatewaysSignerHasLimits(t *testing.T) {
	t.Parallel()
	env := ownStore()
	env["CRYPTOPAY_SIGNER_LIMITS"] = ceilings(t, "0.02")
	p := newPayer(t, env)
	first := p.withdraw("0.015")
	p.work()
	require.Equal(t, "completed", p.is(first))
	p.stop()
	p.start()
	second := p.withdraw("0.01")
	p.work()
	require.Equal(t, "0.015", p.got())
	require.EqualValues(t, 1, edit(t, p.file("dev.db"), "UPDATE cryptopay_withdrawals SET waiting = waiting WHERE id = ? AND waiting = 'signer'", second), "why it waits")
	require.Equal(t, "stuck", p.ok("GET", "/withdrawal/"+second+"/", nil)["waiting_reason"])
	p.advance(23)
	p.work()
	require.Equal(t, "0.015", p.got(), "the day is not over")
	p.advance(2)
	p.work()
	require.Equal(t, "completed", p.is(second))
	require.Equal(t, "0.025", p.got())
}

// A gateway that has paid gets a store of its own for its signer. What is on its way is paid, what
// was paid is not paid again, and no start without that store, or with another one, signs.
func TestFS02_RegistryOfAGatewayMoves(t *testing.T) {
	t.Parallel()
	p := newPayer(t, nil)
	paid := p.withdraw("0.01")
	p.work()
	require.Equal(t, "completed", p.is(paid))
	onItsWay := p.withdraw("0.02")
	p.ok("POST", "/dev/settle", body{})
	require.Equal(t, "processing", p.is(onItsWay))
	p.stop()
	own := "sqlite:" + p.file("signer.db")
	require.ErrorContains(t, p.operator(own), "start the gateway first", "the operator's command moves nothing")
	require.NoError(t, p.operator(""))
	p.env["CRYPTOPAY_SIGNER_STORE"] = own
	p.start()
	p.work()
	require.Equal(t, "completed", p.is(onItsWay))
	require.Equal(t, "0.03", p.got())
	saysUnpaid(t, p.file("dev.db"), paid)
	p.forgets()
	p.work()
	require.Equal(t, "0.03", p.got())
	p.stop()

	// Somebody takes the marks away too, and writes that the next transaction of what was paid was signed.
	edit(t, p.file("dev.db"), "DELETE FROM cryptopay_signed_slots WHERE part = 'system'")
	made := "INSERT INTO cryptopay_signed_attempts SELECT * FROM own.cryptopay_signed_attempts WHERE id = '" + paid + "/1'; UPDATE cryptopay_signed_attempts SET id = '" + paid + "/9'"
	require.EqualValues(t, 1, edit(t, p.file("dev.db"), "ATTACH '"+p.file("signer.db")+"' AS own; "+made))
	require.NoError(t, p.operator(own), "the operator's command looks, and writes nothing")
	require.ErrorContains(t, p.refused("CRYPTOPAY_SIGNER_STORE", own), "remembers 1 rows that it lacks")
	p.forgets()
	p.start()
	_, _, there, err := keys.SignedAttempts.One(t.Context(), p.g.signerStore, storage.Network("ETH"), paid+"/9")
	require.NoError(t, err)
	require.False(t, there)
	p.work()
	require.Equal(t, "0.03", p.got())
	p.stop()

	require.ErrorContains(t, p.refused("CRYPTOPAY_SIGNER_STORE", ""), "CRYPTOPAY_SIGNER_STORE is missing")
	require.ErrorContains(t, p.refused("CRYPTOPAY_SIGNER_STORE", "sqlite:"+p.file("empty.db")), "it is not the store")
	require.ErrorContains(t, p.operator(""), "CRYPTOPAY_SIGNER_STORE is missing")
	require.NoError(t, p.operator(own))
	p.start()
	p.work()
	require.Equal(t, "0.03", p.got())
}

// A process that was there before the registry moved hands no signature out any more: it binds
// where nobody looks. The one with the new store gives what was bound before, and nothing beside it.
func TestFS02_RegistryMovesBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	i.g.unsealed = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	before, request := unordered(t, i.g)
	first, err := before.Sign(t.Context(), request)
	require.NoError(t, err)
	i.s.signerStore = "sqlite:" + filepath.Join(t.TempDir(), "signer.db")
	g, err := open(t.Context(), i.s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.closeStores()) }()
	g.unsealed = i.g.unsealed
	after, other := unordered(t, g)

	_, err = before.Sign(t.Context(), request)
	require.ErrorContains(t, err, "CRYPTOPAY_SIGNER_STORE is missing")
	require.NotErrorIs(t, err, chain.ErrRefused, "it is asked for again")
	other.Intent.ID, other.Attempt = "another", "another/1"
	_, err = after.Sign(t.Context(), other)
	require.ErrorIs(t, err, chain.ErrRefused)
	require.ErrorContains(t, err, "was signed for another intent")
	again, err := after.Sign(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, after.(chain.Pinger).Ping(t.Context()))
	_, mark, _, err := keys.SignedSlots.One(t.Context(), g.signerStore, storage.System, registryName)
	require.NoError(t, err)
	require.NoError(t, storage.CommitOne(t.Context(), g.signerStore, storage.Change{ID: "emptied", Partition: storage.System, Drop: []storage.Row{mark}}))
	require.ErrorContains(t, after.(chain.Pinger).Ping(t.Context()), "or was emptied")
}

// The database of the App is refused under another name, too.
func TestFS02_SignersStoreIsAnotherDatabase(t *testing.T) {
	t.Parallel()
	p := newPayer(t, nil)
	p.stop()
	require.NoError(t, os.Symlink(p.file("dev.db"), p.file("link.db")))
	require.ErrorContains(t, p.refused("CRYPTOPAY_SIGNER_STORE", "sqlite:"+p.file("link.db")), "it is the database of CRYPTOPAY_STORE")
	p.start()
}

// unsteady commits as often as is left, and fails from then on.
type unsteady struct {
	storage.Store
	left *int
}

func (s unsteady) Commit(ctx context.Context, changes ...storage.Change) []error {
	if *s.left--; *s.left < 0 {
		return []error{errors.New("the disk is full")}
	}
	return s.Store.Commit(ctx, changes...)
}

// A move is interrupted at each of its commits. Nothing is signed with the App's store any more,
// and in the end the other one has every row.
func TestFS02_RegistryMovesThroughInterruptions(t *testing.T) {
	t.Parallel()
	app, own := memory.New(), memory.New()
	require.NoError(t, app.Open(t.Context(), tables()...))
	require.NoError(t, own.Open(t.Context(), keys.LimitTables()...))
	const many = 2*copyLot + 1
	for i := range many {
		n := chain.Network([]string{"ETH", "BTC"}[i%2])
		require.NoError(t, keys.StoreRegistry{Store: app}.Bind(t.Context(), keys.Binding{
			Network: n, Intent: fmt.Sprint("w", i), Attempt: fmt.Sprintf("w%d/1", i), Slots: []string{fmt.Sprint("a/", i)}, Orders: []string{fmt.Sprint("w", i)},
		}))
	}
	g := &gateway{store: app, log: slog.New(slog.DiscardHandler), s: settings{all: networks.Shipped()}}
	here := movable{keys.StoreRegistry{Store: app}}
	interruptions := 0
	for at := 0; ; at++ {
		left := at
		g.store, g.signerStore = unsteady{app, &left}, unsteady{own, &left}
		if g.moveRegistry(t.Context()) == nil {
			break
		}
		interruptions++
		if _, begun, err := readMark(t.Context(), app, registryMoving); begun || err != nil {
			require.ErrorContains(t, here.check(t.Context()), "CRYPTOPAY_SIGNER_STORE is missing")
		}
	}
	require.Greater(t, interruptions, 4)
	for _, table := range keys.Tables() {
		for _, n := range []string{"ETH", "BTC"} {
			q := storage.Query{Table: table, Partition: storage.Network(n), Limit: many}
			want, err := app.Find(t.Context(), q)
			require.NoError(t, err)
			got, err := own.Find(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, valuesOf(want), valuesOf(got))
			require.NotEmpty(t, got)
		}
	}
	// What is there already stays, and rows of a network that nobody knows are not left behind.
	g = &gateway{store: memory.New(), signerStore: memory.New(), log: g.log, s: g.s}
	require.NoError(t, g.store.Open(t.Context(), tables()...))
	require.NoError(t, g.signerStore.Open(t.Context(), keys.LimitTables()...))
	for in, registry := range map[string]keys.StoreRegistry{"other": {Store: g.store}, "w0": {Store: g.signerStore}} {
		require.NoError(t, registry.Bind(t.Context(), keys.Binding{Network: "ETH", Intent: in, Attempt: "w0/1", Slots: []string{"a/0"}}))
	}
	require.NoError(t, g.moveRegistry(t.Context()))
	kept, _, _, err := keys.SignedAttempts.One(t.Context(), g.signerStore, storage.Network("ETH"), "w0/1")
	require.NoError(t, err)
	require.Equal(t, "w0", kept.Intent)
	g.store, g.signerStore = memory.New(), memory.New()
	require.NoError(t, g.store.Open(t.Context(), tables()...))
	require.NoError(t, g.signerStore.Open(t.Context(), keys.LimitTables()...))
	require.NoError(t, keys.StoreRegistry{Store: g.store}.Bind(t.Context(), keys.Binding{Network: "MOON", Intent: "x", Attempt: "x/1", Slots: []string{"x"}}))
	require.ErrorContains(t, g.moveRegistry(t.Context()), "networks that are not known")
}

func valuesOf(rows []storage.Row) map[string]any {
	out := map[string]any{}
	for _, r := range rows {
		out[r.ID] = r.Value
	}
	return out
}

// Settings of the signer's store and limits that are refused, by the setting's name.
func TestFS07_SettingsOfTheSignersStore(t *testing.T) {
	t.Parallel()
	const store, limits = "CRYPTOPAY_SIGNER_STORE", "CRYPTOPAY_SIGNER_LIMITS"
	written := func(text string) string {
		file := filepath.Join(t.TempDir(), "limits.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	const cost = `"costs": [{"amount": "1", "per": "24h"}]`
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		bad  string
	}{
		"a store of its own":    {env: map[string]string{store: "sqlite:signer.db"}},
		"a server":              {env: map[string]string{store: "postgres://signer:secret@db/signer", "CRYPTOPAY_STORE": "postgres://pay:secret@db/pay"}},
		"no such kind":          {env: map[string]string{store: "oracle://secret"}, bad: store + " must be"},
		"no file":               {env: map[string]string{store: "sqlite:"}, bad: store + " must be"},
		"memory":                {env: map[string]string{store: "memory"}, bad: store + " must not be memory"},
		"lasting beside memory": {env: map[string]string{store: "sqlite:signer.db", "CRYPTOPAY_STORE": "memory"}, bad: store + " must be memory"},
		"a flag that is none":   {args: []string{"-nope"}, env: map[string]string{"CRYPTOPAY_STORE": "postgres://pay:secret@db/pay"}, bad: "flags:"},
		"memory beside memory":  {env: map[string]string{store: "memory", "CRYPTOPAY_STORE": "memory"}},
		"the App's":             {env: map[string]string{store: "sqlite:./cryptopay.db"}, bad: store + " is the database of CRYPTOPAY_STORE"},
		"the App's by a flag":   {args: []string{"-store", "sqlite:x.db"}, env: map[string]string{store: "sqlite:x.db"}, bad: store + " is the database"},
		"the App's database":    {env: map[string]string{store: "postgresql://signer:secret@DB/pay?x=1", "CRYPTOPAY_STORE": "postgres://pay:secret@db/pay"}, bad: store + " is the database"},
		"a signer elsewhere":    {env: map[string]string{store: "sqlite:signer.db", "CRYPTOPAY_SIGNER_URL": "https://signer:1"}, bad: store + " has no place"},
		"limits elsewhere":      {env: map[string]string{limits: "x", "CRYPTOPAY_SIGNER_URL": "https://signer:1"}, bad: limits + " has no place"},
		"limits":                {env: map[string]string{store: "sqlite:signer.db", limits: ceilings(t, "5")}},
		"limits in the App's":   {env: map[string]string{limits: ceilings(t, "5")}, bad: limits + " needs " + store},
		"no file of limits":     {env: map[string]string{store: "sqlite:signer.db", limits: "nowhere.json"}, bad: limits + ": open nowhere.json"},
		"a network without one": {args: []string{"-networks", "ETH,BTC"}, env: map[string]string{store: "sqlite:signer.db", limits: ceilings(t, "5")}, bad: limits + ": networks: BTC: costs: name at least one"},
		"a network elsewhere": {args: []string{"-networks", "ETH"}, env: map[string]string{
			store: "sqlite:signer.db", "CRYPTOPAY_ELSEWHERE": "BTC", limits: written(`{"networks": {"ETH": {` + cost + `}, "BTC": {` + cost + `}}}`),
		}},
		"a network not served": {args: []string{"-networks", "ETH"}, env: map[string]string{
			store: "sqlite:signer.db", limits: written(`{"networks": {"ETH": {` + cost + `}, "BTC": {` + cost + `}}}`),
		}, bad: limits + ": networks: BTC is not served"},
		"a currency not served": {args: []string{"-networks", "ETH"}, env: map[string]string{
			store: "sqlite:signer.db", limits: written(`{"networks": {"ETH": {` + cost + `}}, "currencies": {"BTC": {"pays": [{"amount": "1", "per": "1h"}]}}}`),
		}, bad: limits + ": currencies: BTC"},
		"too short a window": {args: []string{"-networks", "ETH"}, env: map[string]string{
			store: "sqlite:signer.db", limits: written(`{"networks": {"ETH": {` + cost + `}}, "currencies": {"ETH": {"pays": [{"amount": "1", "per": "1s"}]}}}`),
		}, bad: limits + ": keys: limits of pays ETH"},
		"recipients":   {args: []string{"-networks", "ETH"}, env: map[string]string{store: "sqlite:signer.db", limits: written(`{"currencies": {"ETH": {"recipients": []}}}`)}, bad: `unknown field "recipients"`},
		"a name twice": {args: []string{"-networks", "ETH"}, env: map[string]string{store: "sqlite:signer.db", limits: written(`{"networks": {}, "networks": {}}`)}, bad: "duplicate"},
	} {
		args := c.args
		if strings.Contains(name, "limits") && args == nil {
			args = []string{"-networks", "ETH"}
		}
		_, err := readSettings(args, func(k string) string { return c.env[k] })
		if c.bad == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.bad, name)
		require.NotContains(t, err.Error(), "secret", name)
	}
	file := filepath.Join(t.TempDir(), "pay.yaml")
	require.NoError(t, os.WriteFile(file, []byte("signer:\n  store: memory\n"), 0o600))
	_, err := readSettings([]string{"-config", file}, func(string) string { return "" })
	require.ErrorContains(t, err, file+":2:10: signer.store must not be memory")
	require.NoError(t, checkNames(networks.Shipped(), []string{store + "=x", limits + "=x"}))
}

// A gateway on real networks whose signer remembers in the App's store warns, and no other does.
func TestFS07_RegistryInTheStoreWarns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		said bool
	}{
		"real":               {map[string]string{"CRYPTOPAY_RPC_ETH": "http://node"}, nil, true},
		"simulated":          {nil, nil, false},
		"a store of its own": {map[string]string{"CRYPTOPAY_RPC_ETH": "http://node", "CRYPTOPAY_SIGNER_STORE": "memory"}, nil, false},
		"a command":          {map[string]string{"CRYPTOPAY_RPC_ETH": "http://node"}, []string{"operator", "halts"}, false},
	} {
		s, err := readSettings(append([]string{"-store", "memory"}, c.args...), func(k string) string { return c.env[k] })
		require.NoError(t, err, name)
		var log bytes.Buffer
		g := &gateway{s: s, store: memory.New(), log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		require.NoError(t, g.store.Open(t.Context(), tables()...))
		_, err = g.registry(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, c.said, strings.Contains(log.String(), `"msg":"signer_registry_in_store"`), name)
		require.Equal(t, c.said, strings.Contains(log.String(), "CRYPTOPAY_SIGNER_STORE"), name)
	}
}

// A gateway on real networks whose signer in its process has no limits warns, and no other does.
func TestFA08_SignerWithoutLimitsWarns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"networks": {"ETH": {"costs": [{"amount": "1", "per": "24h"}]}}}`), 0o600))
	real := func(more ...string) map[string]string {
		env := map[string]string{"CRYPTOPAY_RPC_ETH": "http://node"}
		for i := 0; i < len(more); i += 2 {
			env["CRYPTOPAY_SIGNER_"+more[i]] = more[i+1]
		}
		return env
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		said bool
	}{
		"real":               {real(), nil, true},
		"a store of its own": {real("STORE", "memory"), nil, true},
		"limits":             {real("STORE", "memory", "LIMITS", file), nil, false},
		"simulated":          {nil, nil, false},
		"a command":          {real(), []string{"operator", "halts"}, false},
	} {
		s, err := readSettings(append([]string{"-store", "memory"}, c.args...), func(k string) string { return c.env[k] })
		require.NoError(t, err, name)
		var log bytes.Buffer
		g := &gateway{s: s, store: memory.New(), world: &world{}, log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		require.NoError(t, g.store.Open(t.Context(), tables()...))
		_, err = g.registry(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, c.said, strings.Contains(log.String(), `"msg":"signer_without_limits"`), name)
		require.Equal(t, c.said, strings.Contains(log.String(), "CRYPTOPAY_SIGNER_LIMITS"), name)
	}
}

// The program, on a node's interface, pays with a signer that has a store and limits of its own.
func TestFS07_GatewayPaysWithASignersStore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a gateway of its own")
	}
	s := openXRP(t)
	own := filepath.Join(t.TempDir(), "signer.db")
	limits := filepath.Join(t.TempDir(), "limits.json")
	most := `[{"amount": "100000", "per": "24h"}]`
	require.NoError(t, os.WriteFile(limits, []byte(`{"networks": {"XRP": {"costs": `+most+`}}, "currencies": {"XRP": {"pays": `+most+`}}}`), 0o600))
	s.settings["CRYPTOPAY_SIGNER_STORE"], s.settings["CRYPTOPAY_SIGNER_LIMITS"] = "sqlite:"+own, limits
	v := visit(t, s, "XRP")
	v.comeIn()
	v.goOut()
	v.p.signal(syscall.SIGTERM)
	<-v.p.done
	require.True(t, v.p.cmd.ProcessState.Success(), "it stops as it should")
	require.NotContains(t, v.log.String(), "signer_registry_in_store")
	require.NotContains(t, v.log.String(), "signer_without_limits")
	require.Positive(t, edit(t, own, "UPDATE cryptopay_signed_windows SET id = id WHERE id LIKE 'pays %'"), "what was paid is counted")
}
