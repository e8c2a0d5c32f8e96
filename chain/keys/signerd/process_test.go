package signerd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// child makes this test's own program be a signer, in a process of its own.
const child = "CRYPTOPAY_TEST_SIGNER"

func TestMain(m *testing.M) {
	if text := os.Getenv(making); text != "" {
		if err := makeKeys(text); err != nil {
			fmt.Fprintln(os.Stderr, "accounts:", err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(child); text != "" {
		if err := live(text); err != nil {
			fmt.Fprintln(os.Stderr, "signer:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// order is what such a signer has to know.
type order struct {
	Dir      string
	Addr     string
	Networks []chain.Network
	Limits   keys.Limits
	Allow    map[string][]signerd.Recipient
	Mandates mandate.Keys
	Skip     time.Duration  // of its clock
	Rebuild  bool           // its registry from the log, first
	Module   *testenv.Token // has its keys
	Die      string         // a place at which it dies, at the
	Nth      int            // nth time
}

// The places of a signer.
const (
	beforeBind = "before it is bound"
	afterBind  = "bound, not in the log"
	inTheLog   = "in the middle of a line of the log"
	afterLog   = "in the log, not answered"
)

// deadly is a store, and deadlyFile a log, that die at a place.
type deadly struct {
	storage.Store
	order *order
}

type deadlyFile struct {
	signerd.File
	*deadly
}

func (d *deadly) at(place string) bool {
	if d.order.Die == place {
		d.order.Nth--
	}
	return d.order.Die == place && d.order.Nth == 0
}

func (d *deadly) die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // it takes a moment
}

func (d *deadly) Commit(ctx context.Context, changes ...storage.Change) []error {
	if d.at(beforeBind) {
		d.die()
	}
	errs := d.Store.Commit(ctx, changes...)
	if d.at(afterBind) {
		d.die()
	}
	return errs
}

func (d deadlyFile) Close() error { return d.File.Close() }

func (d deadlyFile) Write(p []byte) (int, error) {
	if d.at(inTheLog) {
		_, _ = d.File.Write(p[:len(p)*2/3])
		d.die()
	}
	return d.File.Write(p)
}

func (d deadlyFile) Sync() error {
	err := d.File.Sync()
	if d.at(afterLog) {
		d.die()
	}
	return err
}

func live(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	go func() { // it ends when the test is gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var seed *keys.Seed
	var holder keys.Holder
	var err error
	if o.Module == nil {
		seed, err = keys.FromMnemonic(mnemonic, "")
	} else {
		holder, err = openModule(ctx, o.Module)
	}
	if err != nil {
		return err
	}
	path := filepath.Join(o.Dir, "registry.db")
	if err := sqlite.Migrate(ctx, path, keys.LimitTables()...); err != nil {
		return err
	}
	store, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Open(ctx, keys.LimitTables()...); err != nil {
		return err
	}
	log, err := signerd.OpenLog(filepath.Join(o.Dir, "signed.log"))
	if err != nil {
		return err
	}
	if o.Rebuild {
		if _, err := signerd.Rebuild(ctx, log, store, o.Limits); err != nil {
			return err
		}
	}
	d := &deadly{Store: store, order: &o}
	log.Through(func(f signerd.File) signerd.File { return deadlyFile{f, d} })
	chains := map[chain.Network]signerd.Chain{}
	for _, n := range o.Networks {
		chains[n] = simulated(n, time.Now).Client()
	}
	now := func() time.Time { return time.Now().Add(o.Skip) }
	server, err := signerd.New(ctx, signerd.Config{
		Seed: seed, Keys: holder, Registry: chain.MainnetRegistry(), Chains: chains, Store: d, Limits: o.Limits, Allow: o.Allow, Mandates: o.Mandates, Log: log, Now: now,
		Slog: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	t, err := filesIn(o.Dir, "signer").ServerTLS()
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	fmt.Println("at", l.Addr())
	return server.Serve(ctx, l, t)
}

// simulated is a network as both processes know it.
func simulated(n chain.Network, now func() time.Time) *sim.Chain {
	return sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: 1, Now: now, Finality: 20})
}

// signer is a signer in a process of its own, with all that outlives it.
type signer struct {
	t     testing.TB
	order order
	ca    *authority

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	said lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newSigner(t testing.TB, limits keys.Limits, networks ...chain.Network) *signer {
	t.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePort(t))) // at each start: who asks for any port does not get it meanwhile
	s := &signer{t: t, order: order{Dir: t.TempDir(), Addr: addr, Networks: networks, Limits: limits}, ca: newAuthority(t, "ca")}
	s.ca.write(t, s.order.Dir)
	s.ca.issue(t, s.order.Dir, "signer", template{server: true})
	s.ca.issue(t, s.order.Dir, "app", template{})
	t.Cleanup(func() { s.kill(); s.noSecrets() })
	return s
}

// run starts the signer; false: it ended before it served.
func (s *signer) run() bool {
	s.t.Helper()
	if testing.Short() {
		s.t.Skip("starts processes")
	}
	text, err := json.Marshal(s.order)
	require.NoError(s.t, err)
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+string(text))
	if s.order.Module != nil {
		cmd.Env = append(cmd.Env, "SOFTHSM2_CONF="+s.order.Module.Conf)
	}
	cmd.Stderr = &s.said
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	_, err = cmd.StdinPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	lines := bufio.NewScanner(out)
	ok := lines.Scan()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.done = cmd, done
	return ok
}

func (s *signer) start() {
	s.t.Helper()
	require.True(s.t, s.run(), "the signer ended: %s", &s.said)
}

// kill ends it as a power cut does.
func (s *signer) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
		s.cmd = nil
	}
}

// at runs it again, to die at a place.
func (s *signer) at(place string, nth int) {
	s.t.Helper()
	s.kill()
	s.order.Die, s.order.Nth = place, nth
	s.start()
}

// died waits until it has died of itself.
func (s *signer) died() { <-s.done }

func (s *signer) url() string { return "https://" + s.order.Addr }

// client is the App's side.
func (s *signer) client(keyOf keyOf) *signerd.Client {
	s.t.Helper()
	return s.clientAs("app", keyOf)
}

type keyOf = func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error)

func (s *signer) clientAs(name string, find keyOf) *signerd.Client {
	s.t.Helper()
	t, err := filesIn(s.order.Dir, name).ClientTLS()
	require.NoError(s.t, err)
	if find == nil {
		find = func(context.Context, chain.Network, chain.Address) (chain.KeyRef, bool, error) { return "", false, nil }
	}
	c, err := signerd.NewClient(signerd.ClientConfig{URL: s.url(), TLS: t, KeyOf: find, Timeout: 2 * time.Minute})
	require.NoError(s.t, err)
	return c
}

// noSecrets: nothing that was said or written has a key or the words.
func (s *signer) noSecrets() {
	log, err := os.ReadFile(filepath.Join(s.order.Dir, "signed.log"))
	if !errors.Is(err, os.ErrNotExist) { // it never ran
		require.NoError(s.t, err)
	}
	for _, text := range []string{s.said.String(), string(log)} {
		for _, secret := range []string{"abandon", "PRIVATE", "xprv", "horse"} {
			require.NotContains(s.t, text, secret)
		}
	}
}

func (s *signer) lines() (out []signerd.Line) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.order.Dir, "signed.log"))
	require.NoError(s.t, err)
	for one := range bytes.Lines(text) {
		var l signerd.Line
		require.NoError(s.t, json.Unmarshal(one, &l))
		out = append(out, l)
	}
	return out
}

func filesIn(dir, name string) signerd.Files {
	return signerd.Files{Certificate: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"), CA: filepath.Join(dir, "ca.crt")}
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

func (a *authority) write(t testing.TB, dir string) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), text, 0o600))
}

// template is what is odd about a certificate.
type template struct {
	server bool
	ended  bool
}

func (a *authority) issue(t testing.TB, dir, name string, odd template) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(100 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if odd.server {
		form.ExtKeyUsage, form.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if odd.ended {
		form.NotAfter = time.Now().Add(-time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	files := filesIn(dir, name)
	require.NoError(t, os.WriteFile(files.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}), 0o600))
}
