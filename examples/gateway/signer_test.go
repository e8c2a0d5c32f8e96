package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/networks"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// keyholder is the signer program with files of its own, as docs/signer.md sets it up.
type keyholder struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	said bytes.Buffer
	env  []string
}

// builtSigner is where the program is; TestMain takes it away.
var builtSigner = filepath.Join(os.TempDir(), fmt.Sprintf("cryptopay-signer-%d", os.Getpid()))

// buildSigner builds the program once for all tests.
var buildSigner = sync.OnceValues(func() (string, error) {
	file := builtSigner
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", file, "../signer").CombinedOutput()
	if err != nil {
		_, _ = os.Stderr.Write(out)
	}
	return file, err
})

func newKeyholder(t *testing.T, config map[string]any) *keyholder {
	t.Helper()
	k := certified(t)
	require.NoError(t, os.WriteFile(k.file("passphrase"), []byte("a passphrase of some length\n"), 0o600))
	k.believes()
	k.configure(config)
	k.run("new")
	require.NoError(t, os.WriteFile(k.file("accounts.json"), k.run("accounts"), 0o600))
	return k
}

// certified has certificates alone.
func certified(t *testing.T) *keyholder {
	t.Helper()
	k := &keyholder{t: t, dir: t.TempDir()}
	testenv.OpenSSL(t)
	out, err := exec.CommandContext(t.Context(), "../signer/certificates.sh", k.dir, "127.0.0.1").CombinedOutput()
	require.NoError(t, err, string(out))
	return k
}

// newModuleKeyholder has its keys in a hardware module.
func newModuleKeyholder(t *testing.T, config map[string]any) *keyholder {
	t.Helper()
	token := testenv.SoftHSM(t)
	k := certified(t)
	k.env = append(os.Environ(), "SOFTHSM2_CONF="+token.Conf)
	require.NoError(t, os.WriteFile(k.file("pin"), []byte(token.PIN+"\n"), 0o600))
	config["module"] = map[string]any{"library": token.Library, "token": token.Label, "pin": "pin"}
	k.believes()
	k.configure(config)
	require.NoError(t, os.WriteFile(k.file("accounts.json"), k.run("accounts"), 0o600))
	return k
}

// believes gives the signer what orders are proved with, and the gateway its key file.
func (k *keyholder) believes() {
	k.t.Helper()
	var out bytes.Buffer
	require.NoError(k.t, printMandates(k.file("gateway.key"), &out))
	require.NoError(k.t, os.WriteFile(k.file("mandates"), out.Bytes(), 0o600))
}

func (k *keyholder) configure(config map[string]any) {
	k.t.Helper()
	if _, err := os.Stat(k.file("mandates")); err == nil {
		config["mandates"] = "mandates"
	}
	config["listen"] = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(k.t)) // and at each start
	text, err := json.Marshal(config)
	require.NoError(k.t, err)
	require.NoError(k.t, os.WriteFile(k.file("signer.json"), text, 0o600))
}

func (k *keyholder) file(name string) string { return filepath.Join(k.dir, name) }

func (k *keyholder) command(args ...string) *exec.Cmd {
	k.t.Helper()
	program, err := buildSigner()
	require.NoError(k.t, err)
	cmd := exec.CommandContext(context.WithoutCancel(k.t.Context()), program, append([]string{"-ahead", "20", "-config", k.file("signer.json")}, args...)...)
	cmd.Env = k.env
	return cmd
}

func (k *keyholder) run(args ...string) []byte {
	k.t.Helper()
	cmd := k.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(k.t, err, errs.String())
	return out
}

// start serves and returns the settings of a gateway that asks it.
func (k *keyholder) start() map[string]string {
	k.t.Helper()
	k.cmd = k.command()
	k.cmd.Stderr = &k.said
	out, err := k.cmd.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, k.cmd.Start())
	k.t.Cleanup(func() { _ = k.cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(k.t, err, k.said.String())
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "signer is at ")
	require.True(k.t, ok, line)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return map[string]string{
		"CRYPTOPAY_SIGNER_URL": url, "CRYPTOPAY_SIGNER_CERTIFICATE": k.file("app.crt"), "CRYPTOPAY_SIGNER_KEY": k.file("app.key"),
		"CRYPTOPAY_SIGNER_CA": k.file("ca.crt"), "CRYPTOPAY_SIGNER_ACCOUNTS": k.file("accounts.json"),
		"CRYPTOPAY_KEY_FILE": k.file("gateway.key"),
	}
}

// stop ends it as an operator does.
func (k *keyholder) stop() {
	k.t.Helper()
	require.NoError(k.t, k.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(k.t, k.cmd.Wait(), k.said.String())
	require.NotContains(k.t, k.said.String(), `"level":"ERROR"`)
	require.NotContains(k.t, k.said.String(), "mandates_missing")
}

// ends ends a gateway that has paid with the signer, and then the signer, and returns the
// signer's log.
func (k *keyholder) ends(v *visitor) string {
	k.t.Helper()
	v.p.signal(syscall.SIGTERM)
	<-v.p.done
	k.stop()
	text, err := os.ReadFile(k.file("signed.log"))
	require.NoError(k.t, err)
	require.Contains(k.t, string(text), `"pays":[{`)
	require.NotContains(k.t, v.log.String(), "signer_refuses")
	return string(text)
}

// policyFor is a signer's configuration for a site, with room for all of a test.
func policyFor(s *site, currency string) map[string]any {
	limit := []any{map[string]any{"amount": "100000", "per": "24h"}}
	of := map[string]any{"pays": limit}
	if contract := s.settings["CRYPTOPAY_CONTRACT_"+currency]; contract != "" {
		of["contract"] = contract
	}
	return map[string]any{
		"networks":   map[string]any{string(s.network): map[string]any{"chain": s.settings["CRYPTOPAY_CHAIN_"+string(s.network)], "costs": limit}},
		"currencies": map[string]any{currency: of},
	}
}

// The gateway on a node of every kind takes a payment in and pays a withdrawal out, and the
// keys are in another program alone.
func TestFS07_GatewayPaysThroughTheSigner(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node, a signer and a gateway for each network")
	}
	t.Parallel()
	for _, c := range everyNode {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testenv.Draw(t, 2)
			s := c.open(t)
			k := newKeyholder(t, policyFor(s, c.currency))
			for name, value := range k.start() {
				s.settings[name] = value
			}
			v := visit(t, s, c.currency)
			v.comeIn()
			v.goOut()
			k.ends(v)
		})
	}
}

// everyNode is a node of every kind, with a currency on it.
var everyNode = []struct {
	name, currency string
	open           func(testing.TB) *site
}{
	{"Btcd", "BTC", openCoins("BTC", "simnet", "btcd", 330)},
	{"AnvilToken", "USDCERC20", openAnvil},
	{"LiteSVM", "SOL", openSolana},
	{"TronModelledToken", "USDTTRC20", openTron},
	{"XRPModelled", "XRP", openXRP},
	{"StellarModelled", "XLM", openStellar},
}

// The same with the keys in a hardware module. Between the payment and the payout the signer
// starts again, finds its keys, and makes none anew.
func TestFS07_GatewayPaysThroughAModule(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node, a signer and a gateway for each network")
	}
	t.Parallel()
	for _, c := range everyNode {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testenv.Draw(t, 2)
			s := c.open(t)
			k := newModuleKeyholder(t, policyFor(s, c.currency))
			for name, value := range k.start() {
				s.settings[name] = value
			}
			v := visit(t, s, c.currency)
			v.comeIn()
			k.stop()
			told, err := os.ReadFile(k.file("accounts.json"))
			require.NoError(t, err)
			require.Equal(t, string(told), string(k.run("accounts")))
			k.start()
			v.goOut()
			for _, said := range []string{k.ends(v), v.log.String(), k.said.String(), string(told)} {
				require.NotContains(t, said, "correct horse", "the PIN")
			}
		})
	}
}

// With a signer elsewhere the gateway makes and stores no seed, on simulated chains too.
func TestFS07_GatewayWithASignerHasNoSeed(t *testing.T) {
	t.Parallel()
	limit := []any{map[string]any{"amount": "1000000", "per": "24h"}}
	networks, all := map[string]any{}, []chain.Network{"ETH", "BTC", "SOL"}
	for _, n := range all {
		networks[string(n)] = map[string]any{"costs": limit}
	}
	k := newKeyholder(t, map[string]any{
		"networks": networks, "simulated": all, "currencies": map[string]any{"ETH": map[string]any{"pays": limit}, "SOL": map[string]any{"pays": limit}},
	})
	env := k.start()
	env["CRYPTOPAY_CLIENT_ID"], env["CRYPTOPAY_CLIENT_SECRET"], env["CRYPTOPAY_RATE_LIMITS"] = testClient, testSecret, "off"
	path := filepath.Join(t.TempDir(), "dev.db")
	s, err := readSettings([]string{"-store", "sqlite:" + path, "-networks", "ETH,BTC,SOL"}, func(name string) string { return env[name] })
	require.NoError(t, err)
	i := &inside{t: t, s: s}
	i.open()
	for _, n := range []string{"ETH", "SOL"} {
		p := i.ok("POST", "/payments/", body{"amount": "30", "currency": n})
		i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": n, "amount": p["amount_crypto"]})
		i.ok("POST", "/dev/mine", body{"blockchain": n, "blocks": 100})
		require.Equal(t, "completed", i.status(p["transaction_id"]))
		to := i.g.world.sims[map[string]int{"ETH": 0, "SOL": 2}[n]].Customer("supplier")
		w := i.ok("POST", "/withdrawal/", body{"price_amount": "10", "currency": n, "address": to})
		for range 5 {
			i.ok("POST", "/dev/mine", body{"blockchain": n, "blocks": 50})
		}
		require.Equal(t, "completed", i.ok("GET", "/withdrawal/"+w["withdrawal_id"].(string)+"/", nil)["status"])
	}
	require.NoError(t, i.g.close())
	k.stop()
	store, err := sqlite.Open(path, sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, store.Open(t.Context(), tables()...))
	_, _, found, err := seeds.One(t.Context(), store, storage.System, seedID)
	require.NoError(t, err)
	require.False(t, found)
}

// A withdrawal is paid. Then its rows are edited until all of them say that its transaction died.
// The signer has nothing to do with that database, and does not pay it again; nor what somebody
// makes up.
func TestFS02_SignerElsewherePaysAnOrderOnce(t *testing.T) {
	t.Parallel()
	limit := []any{map[string]any{"amount": "1000000", "per": "24h"}}
	k := newKeyholder(t, map[string]any{
		"networks": map[string]any{"ETH": map[string]any{"costs": limit}}, "simulated": []string{"ETH"}, "currencies": map[string]any{"ETH": map[string]any{"pays": limit}},
	})
	env := k.start()
	env["CRYPTOPAY_CLIENT_ID"], env["CRYPTOPAY_CLIENT_SECRET"], env["CRYPTOPAY_RATE_LIMITS"] = testClient, testSecret, "off"
	path := filepath.Join(t.TempDir(), "dev.db")
	s, err := readSettings([]string{"-store", "sqlite:" + path, "-networks", "ETH"}, func(name string) string { return env[name] })
	require.NoError(t, err)
	i := &inside{t: t, s: s}
	i.open()
	p := i.ok("POST", "/payments/", body{"amount": "30", "currency": "ETH"})
	i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "ETH", "amount": p["amount_crypto"]})
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 100})
	to := i.g.world.sims[0].Customer("supplier")
	w := i.ok("POST", "/withdrawal/", body{"price_amount": "5", "currency": "ETH", "address": to})["withdrawal_id"].(string)
	work := func() {
		for range 5 {
			i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 50})
		}
	}
	work()
	require.Equal(t, "completed", i.ok("GET", "/withdrawal/"+w+"/", nil)["status"])
	paid := i.g.world.sims[0].Balance(to, "ETH")
	saysUnpaid(t, path, w)
	work()
	require.Equal(t, paid.String(), i.g.world.sims[0].Balance(to, "ETH").String())
	require.NoError(t, i.g.close())
	k.stop()
	require.Contains(t, k.said.String(), "may still be paid by attempt "+w+"/1")
}

// saysUnpaid edits a store until it says that a withdrawal, which was paid, is to be paid again.
func saysUnpaid(t *testing.T, path, w string) {
	t.Helper()
	madeUp, err := mandate.Keys{mandate.Derive([]byte("another key"))}.SealEnding(mandate.Ending{Order: w, Dead: []mandate.Attempt{{ID: w + "/1"}}})
	require.NoError(t, err)
	for _, q := range []string{
		"DELETE FROM cryptopay_outcomes WHERE id = ?",
		"UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?",
		"UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1, tx = '', reached = 0, attempts = 8, endings = '[\"" + madeUp + "\"]' WHERE id = ?",
	} {
		require.EqualValues(t, 1, edit(t, path, q, w), q)
	}
}

// edit is what somebody does who can write to a store on SQLite, beside the gateway. It returns
// how many rows it has changed.
func edit(t *testing.T, path, query string, args ...any) int64 {
	t.Helper()
	db, err := sqlx.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	done, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
	n, err := done.RowsAffected()
	require.NoError(t, err)
	return n
}

// Half a signer is refused by the name of what is missing, and so is a seed beside it.
func TestFS07_HalfASignerIsRefused(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"CRYPTOPAY_SIGNER_URL": "https://127.0.0.1:1", "CRYPTOPAY_SIGNER_CERTIFICATE": "a", "CRYPTOPAY_SIGNER_KEY": "b", "CRYPTOPAY_SIGNER_CA": "c",
		"CRYPTOPAY_SIGNER_ACCOUNTS": "d",
	}
	read := func(edit func(map[string]string)) error {
		env := map[string]string{}
		for name, value := range whole {
			env[name] = value
		}
		edit(env)
		_, err := readSettings(nil, func(name string) string { return env[name] })
		return err
	}
	require.NoError(t, read(func(map[string]string) {}))
	for name := range whole {
		require.ErrorContains(t, read(func(env map[string]string) { delete(env, name) }), name+" is missing")
		require.NoError(t, checkNames(networks.Shipped(), []string{name + "=x"}))
	}
	err := read(func(env map[string]string) { env["CRYPTOPAY_MNEMONIC"] = "abandon abandon" })
	require.ErrorContains(t, err, "CRYPTOPAY_MNEMONIC")
	require.NotContains(t, err.Error(), "abandon")
}

// The gateway and its signer are killed with -9 in a busy run, one and the other: recipients
// are paid once, the books are sound, and no attempt was signed for two payloads.
func TestFS07_KilledGatewayAndSigner(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills processes")
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-kill.seed=%d", seed)
	limit := []any{map[string]any{"amount": "90000000", "per": "24h"}}
	networks, pays := map[string]any{}, map[string]any{}
	for _, n := range townNetworks {
		networks[string(n)] = map[string]any{"costs": limit}
	}
	for _, c := range currencies {
		pays[c.code] = map[string]any{"pays": limit}
	}
	k := newKeyholder(t, map[string]any{"networks": networks, "currencies": pays, "simulated": townNetworks})
	w := newTown(t, durable["sqlite"](t))
	w.env, w.key = k.start(), k.file("gateway.key")
	deaths := 0
	w.between = func(r *rand.Rand) {
		if r.IntN(2) == 0 {
			_ = k.cmd.Process.Kill()
			_ = k.cmd.Wait()
			k.start()
			deaths++
		}
	}
	killed(t, w, seed)
	require.Positive(t, deaths)
	k.stop()
	text, err := os.ReadFile(k.file("signed.log"))
	require.NoError(t, err)
	payloads, again := map[string]string{}, 0
	for one := range bytes.Lines(text) {
		var l signerd.Line
		require.NoError(t, json.Unmarshal(one, &l))
		if old, ok := payloads[l.Attempt]; ok {
			require.Equal(t, old, l.Payload, l.Attempt)
			again++
		}
		payloads[l.Attempt] = l.Payload
	}
	t.Logf("the signer was killed %d times, %d attempts were signed, %d of them again", deaths, len(payloads), again)
	// A registry that is lost is made from the log.
	all, err := filepath.Glob(k.file("registry.db*"))
	require.NoError(t, err)
	for _, file := range all {
		require.NoError(t, os.Remove(file))
	}
	require.ErrorContains(t, k.command().Run(), "exit status 1")
	k.run("rebuild")
	k.start()
	k.stop()
}

// TestFS02_GatewaysSignerAsksForMandates: the signer in the gateway signs no withdrawal that
// nobody ordered, whatever the rest of the process believes; until a store of a version before
// mandates is sealed it has to.
func TestFS02_GatewaysSignerAsksForMandates(t *testing.T) {
	t.Parallel()
	for name, unsealed := range map[string]time.Time{"sealed": {}, "not yet": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newInside(t, "ETH").g
			g.unsealed = unsealed
			signer, r := unordered(t, g)
			_, err := signer.Sign(t.Context(), r)
			if unsealed.IsZero() {
				require.ErrorIs(t, err, chain.ErrRefused)
				require.ErrorContains(t, err, "mandate")
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// unordered is a gateway's signer, and a request of a withdrawal that nobody ordered.
func unordered(t *testing.T, g *gateway) (chain.Signer, chain.SignRequest) {
	t.Helper()
	client := g.world.clients[0]
	ring, _, err := loadKeys(g.s.keyFile)
	require.NoError(t, err)
	source, signer, err := g.custody(t.Context(), ring,
		map[chain.Network]keys.Encode{"ETH": client.AddressOf}, map[chain.Network]keys.Chain{"ETH": client})
	require.NoError(t, err)
	ours, err := source.Derive(t.Context(), "ETH", 0, 1)
	require.NoError(t, err)
	in := chain.Intent{
		ID: "made-up", Purpose: chain.ForWithdrawal, Tenant: tenantID, Network: "ETH", Currency: "ETH",
		From: ours[0].Address, FromKey: ours[0].Key, To: "0x00000000000000000000000000000000000000a1", Amount: 1000, MaxCost: 1e9,
	}
	fee, err := client.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	u, err := client.Build(t.Context(), chain.Order{Intent: in, Fee: fee, Attempt: 1})
	require.NoError(t, err)
	return signer, chain.SignRequest{Intent: in, Attempt: "made-up/1", Unsigned: u, Keys: []chain.KeyRef{ours[0].Key}}
}
