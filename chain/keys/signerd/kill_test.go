package signerd_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A signer that dies anywhere has not answered. Asked again it gives the signatures, counts
// them once, and signs nothing else for the attempt. The log has what was handed out, each
// line whole and after the one before.
func TestFS07_SignerKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, place := range []string{beforeBind, afterBind, inTheLog, afterLog} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			killedAt(t, newSigned(t, "ETH", 5, 4), place)
		})
		t.Run("module "+place, func(t *testing.T) {
			t.Parallel()
			killedAt(t, newModuleSigned(t, "ETH", 5, 4), place)
		})
	}
}

func killedAt(t *testing.T, h *thief, place string) {
	t.Helper()
	first := h.request(h.apart(0, wish{intent: "w0", attempt: "a0", amount: 2 * h.one()}))
	_, errs := h.ask(first)
	require.NoError(t, errs[0])
	r := h.request(h.apart(1, wish{intent: "w1", attempt: "a1", amount: 2 * h.one()}))
	other := h.request(h.apart(1, wish{intent: "w1", attempt: "a1", amount: h.one()}))
	h.signer.at(place, 1)
	_, errs = h.ask(r)
	require.Error(t, errs[0])
	require.NotErrorIs(t, errs[0], chain.ErrRefused, "nobody knows what it did")
	h.signer.died()
	bound := place != beforeBind
	h.signer.at("", 0)
	if bound {
		_, errs = h.ask(other)
		require.ErrorIs(t, errs[0], chain.ErrRefused)
		require.ErrorContains(t, errs[0], "another payload")
	}
	sigs, errs := h.ask(r)
	require.NoError(t, errs[0])
	again, errs := h.ask(r)
	require.NoError(t, errs[0])
	require.Equal(t, sigs, again)
	_, errs = h.ask(other)
	require.ErrorIs(t, errs[0], chain.ErrRefused)
	_, errs = h.ask(h.request(h.apart(2, wish{intent: "w2", attempt: "a2", amount: h.one() + 1})))
	require.ErrorContains(t, errs[0], "would pass the limit", "four coins of five are taken")
	_, errs = h.ask(h.request(h.apart(2, wish{intent: "w2", attempt: "a2", amount: h.one()})))
	require.NoError(t, errs[0])
	var attempts []string
	for _, l := range h.signer.lines() {
		attempts = append(attempts, l.Attempt)
	}
	want := []string{"a0", "a1", "a1", "a2"}
	if place == afterLog {
		want = []string{"a0", "a1", "a1", "a1", "a2"}
	}
	require.Equal(t, want, attempts)
	h.signer.kill()
	log, err := signerd.OpenLog(filepath.Join(h.signer.order.Dir, "signed.log"))
	require.NoError(t, err)
	require.Zero(t, log.Torn())
	require.NoError(t, log.Close())
}

// An answer that is lost on its way is asked for again, and is the same.
func TestFS07_LostAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	direct := h.signer.client(h.keyOf)
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: h.one()})
	var lost atomic.Int32
	h.signer.order.Addr = lossy(t, h.signer.order.Addr, &lost)
	sigs, errs := h.ask(r)
	require.NoError(t, errs[0])
	require.EqualValues(t, 1, lost.Load())
	require.Len(t, h.signer.lines(), 2, "the lost answer had signatures")
	again, errs := direct.SignMany(t.Context(), []chain.SignRequest{r})
	require.NoError(t, errs[0])
	require.Equal(t, sigs, again)
}

// lossy forwards connections, and cuts the first one when its answer comes.
func lossy(t *testing.T, to string, lost *atomic.Int32) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			var asked atomic.Int64
			go func() {
				_, _ = io.Copy(countWriter{out, &asked}, in)
				_ = out.Close()
			}()
			go func() {
				defer in.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := out.Read(buf)
					// The handshake's flights are small: the question has a payload in it.
					if asked.Load() > 2500 && lost.CompareAndSwap(0, 1) {
						return
					}
					if _, e := in.Write(buf[:n]); err != nil || e != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

type countWriter struct {
	io.Writer
	n *atomic.Int64
}

func (c countWriter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.Writer.Write(p)
}

// Nobody is an unknown outcome.
func TestFS07_UnreachableSignerIsNoRefusal(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	var pinger chain.Pinger = h.signer.client(h.keyOf)
	require.NoError(t, pinger.Ping(t.Context()))
	h.signer.kill()
	require.Error(t, pinger.Ping(t.Context()), "a probe tells, too")
	_, errs := h.ask(h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: 1}))
	require.Error(t, errs[0])
	require.NotErrorIs(t, errs[0], chain.ErrRefused)
}

// A line that was changed, taken out or moved is found at the start.
func TestFS07_ChangedLogIsRefused(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	for i := range 4 {
		_, errs := h.ask(h.request(h.apart(i, wish{intent: "w", attempt: "a" + string(rune('0'+i)), amount: h.one()})))
		require.NoError(t, errs[0])
	}
	h.signer.kill()
	path := filepath.Join(h.signer.order.Dir, "signed.log")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for name, changed := range map[string]string{
		"changed":   strings.Replace(string(text), `"amount":100000000`, `"amount":100000001`, 1),
		"taken out": lines[0] + lines[2] + lines[3],
		"moved":     lines[0] + lines[2] + lines[1] + lines[3],
		"first":     strings.Join(lines[1:], ""),
		"added":     string(text) + "{}\n",
	} {
		require.NotEqual(t, string(text), changed)
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		_, err := signerd.OpenLog(path)
		require.ErrorIs(t, err, signerd.ErrLog, name)
		require.False(t, h.signer.run(), name)
		h.signer.kill()
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	h.signer.start()
	_, errs := h.ask(h.request(h.apart(5, wish{intent: "w", attempt: "b", amount: h.one()})))
	require.NoError(t, errs[0])
}

// A registry that is older than the log forgets what was signed: the signer does not start,
// and is made whole from the log, counts and all.
func TestFS07_OlderRegistryIsRefusedAndRebuilt(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	r := h.request(h.apart(0, wish{intent: "w", attempt: "a", amount: 3 * h.one()}))
	sigs, errs := h.ask(r)
	require.NoError(t, errs[0])
	h.signer.kill()
	dir := h.signer.order.Dir
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, "registry.db"+end)); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	require.False(t, h.signer.run())
	h.signer.kill()
	require.Contains(t, h.signer.said.String(), "the registry is older than the log")

	h.signer.order.Rebuild = true
	h.signer.start()
	again, errs := h.ask(r)
	require.NoError(t, errs[0])
	require.Equal(t, sigs, again)
	_, errs = h.ask(h.request(h.apart(0, wish{intent: "w", attempt: "a", amount: h.one()})))
	require.ErrorContains(t, errs[0], "another payload")
	_, errs = h.ask(h.request(h.apart(1, wish{intent: "v", attempt: "b", amount: 3 * h.one()})))
	require.ErrorContains(t, errs[0], "would pass the limit")
}

// A request that is asked again is the last line of the log, and an older registry knows it.
// What was signed between is missed nevertheless: else the limit would begin anew, and a
// nonce would be signed for a second intent.
func TestFS07_OlderRegistryIsRefusedThoughItKnowsTheLastLine(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	first := h.request(h.apart(0, wish{intent: "w", attempt: "a", amount: h.one()}))
	_, errs := h.ask(first)
	require.NoError(t, errs[0])
	h.signer.kill()
	dir, older := h.signer.order.Dir, t.TempDir()
	require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
	h.signer.start()
	_, errs = h.ask(h.request(h.apart(1, wish{intent: "v", attempt: "b", amount: 4 * h.one()})))
	require.NoError(t, errs[0])
	_, errs = h.ask(first)
	require.NoError(t, errs[0])
	h.signer.kill()
	for _, end := range []string{"", "-wal", "-shm"} {
		text, err := os.ReadFile(filepath.Join(older, "registry.db"+end))
		if err == nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "registry.db"+end), text, 0o600))
		} else if err = os.Remove(filepath.Join(dir, "registry.db"+end)); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	require.False(t, h.signer.run())
	h.signer.kill()
	require.Contains(t, h.signer.said.String(), "lacks attempt b of ETH")
}

// Where the log cannot be written no signature is given, and nothing is lost by it.
func TestFS07_NoLogNoSignature(t *testing.T) { //nolint:paralleltest // it opens a log again: a process that another test starts has it open until its exec
	h := newThief(t, newSigner(t, keys.Limits{}), "ETH")
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	log, err := signerd.OpenLog(filepath.Join(h.signer.order.Dir, "signed.log"))
	require.NoError(t, err)
	c := inProcess(t, h, store, log)
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: coin})
	log.Through(func(f signerd.File) signerd.File { return full{f} })
	_, errs := c.SignMany(t.Context(), []chain.SignRequest{r})
	require.Error(t, errs[0])
	require.NotErrorIs(t, errs[0], chain.ErrRefused)
	require.ErrorContains(t, errs[0], "no space")
	sigs, errs := c.SignMany(t.Context(), []chain.SignRequest{r}) // there is space again
	require.NoError(t, errs[0])
	require.NotEmpty(t, sigs[0])
	require.Len(t, h.signer.lines(), 1)
}

// unwritable is a store on a full disk: reads succeed, and writes fail.
type unwritable struct {
	storage.Store
	full atomic.Bool
}

func (u *unwritable) Commit(ctx context.Context, changes ...storage.Change) []error {
	if !u.full.Load() {
		return u.Store.Commit(ctx, changes...)
	}
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = errors.New("database or disk is full")
	}
	return errs
}

// A signer whose store takes nothing any more signs nothing, and its health says so.
func TestFS07_HealthSaysThatTheStoreTakesNothing(t *testing.T) { //nolint:paralleltest // as above
	h := newThief(t, newSigner(t, keys.Limits{}), "ETH")
	store := &unwritable{Store: memory.New()}
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	log, err := signerd.OpenLog(filepath.Join(h.signer.order.Dir, "signed.log"))
	require.NoError(t, err)
	c := inProcess(t, h, store, log)
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: coin})
	store.full.Store(true)
	_, errs := c.SignMany(t.Context(), []chain.SignRequest{r})
	require.ErrorContains(t, errs[0], "full")
	require.Error(t, c.Ping(t.Context()))
	store.full.Store(false)
	_, errs = c.SignMany(t.Context(), []chain.SignRequest{r})
	require.NoError(t, errs[0])
	require.NoError(t, c.Ping(t.Context()))
}

// Questions that are answered at once get each its own signatures, and the log has a line of
// each after the one before.
func TestFS07_AnswersAtOnce(t *testing.T) { //nolint:paralleltest // it opens a log again: a process that another test starts has it open until its exec
	h := newThief(t, newSigner(t, keys.Limits{}), "ETH")
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	path := filepath.Join(h.signer.order.Dir, "signed.log")
	log, err := signerd.OpenLog(path)
	require.NoError(t, err)
	c := inProcess(t, h, store, log)
	const questions, requests = 12, 5
	var rs []chain.SignRequest
	for i := range questions * requests {
		id := fmt.Sprint("w", i)
		rs = append(rs, h.request(wish{intent: id, attempt: id, slots: []int{i}, amount: 1000}))
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(rs, requests) {
		all.Go(func() {
			sigs, errs := c.SignMany(t.Context(), part)
			for i, err := range errs {
				if assert.NoError(t, err) {
					_, err = h.client.Assemble(part[i].Unsigned, sigs[i])
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, log.Close())
	log, err = signerd.OpenLog(path)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	require.Len(t, h.signer.lines(), len(rs))
}

// full is a disk without space for all of a line.
type full struct{ signerd.File }

func (f full) Write(p []byte) (int, error) {
	n, _ := f.File.Write(p[:10])
	return n, errors.New("no space")
}

// inProcess serves in this process, over TLS as ever.
func inProcess(t testing.TB, h *thief, store storage.Store, log *signerd.Log) *signerd.Client {
	t.Helper()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	server, err := signerd.New(t.Context(), signerd.Config{
		Seed: seed, Registry: chain.MainnetRegistry(), Chains: map[chain.Network]signerd.Chain{h.sim.Network(): h.client},
		Store: store, Log: log, Now: time.Now, Limits: limitsOf(h.sim.Network(), h.gas.Code, 1<<60, 1<<60),
	})
	require.NoError(t, err)
	h.signer.order.Addr = serve(t, h, server)
	return h.signer.client(h.keyOf)
}

func serve(t testing.TB, h *thief, server *signerd.Server) string {
	t.Helper()
	var conf *tls.Config
	conf, err := filesIn(h.signer.order.Dir, "signer").ServerTLS()
	require.NoError(t, err)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l, conf) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}
