package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
)

// turns is a clock whose long waits a test ends, one by one. Short ones end with their context.
type turns struct {
	cryptopay.Clock
	waits chan time.Duration // how long it is
	end   chan struct{}
}

func (c turns) Wait(ctx context.Context, d time.Duration) error {
	if d < verifyLeast {
		<-ctx.Done()
		return ctx.Err()
	}
	c.waits <- d
	select {
	case <-c.end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once is a clock whose first wait ends as if the context had ended right after it.
type once struct {
	cryptopay.Clock
	over bool
}

func (c *once) Wait(ctx context.Context, _ time.Duration) error {
	if c.over {
		return ctx.Err()
	}
	c.over = true
	return nil
}

// watched is a gateway that works, with money of a merchant, on a clock of turns.
type watched struct {
	*inside
	turns
	log  *bytes.Buffer // read it between turns
	path string        // of its store
	halt func()
}

func newWatched(t *testing.T, setting string) *watched {
	t.Helper()
	w := &watched{
		turns: turns{cryptopay.SystemClock{}, make(chan time.Duration, 1), make(chan struct{})},
		log:   new(bytes.Buffer), path: filepath.Join(t.TempDir(), "pay.db"),
	}
	env := map[string]string{"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_VERIFY": setting}
	s, err := readSettings([]string{"-store", "sqlite:" + w.path, "-networks", "ETH"}, func(k string) string { return env[k] })
	require.NoError(t, err)
	w.inside = &inside{t: t, s: s}
	w.open()
	t.Cleanup(func() { require.NoError(t, w.g.close()) })
	p := w.ok("POST", "/payments/", body{"amount": "30", "currency": "ETH"})
	w.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "ETH", "amount": p["amount_crypto"]})
	w.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 80})
	require.Equal(t, "completed", w.status(p["transaction_id"]))

	w.g.log = slog.New(slog.NewTextHandler(w.log, nil))
	w.g.world.clock.Clock = w.turns
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.g.work(ctx) }()
	w.halt = func() { cancel(); <-ended }
	t.Cleanup(w.halt)
	return w
}

// look ends a wait, and returns how long the next one is, which begins after the look.
func (w *watched) look() time.Duration {
	w.t.Helper()
	select {
	case w.end <- struct{}{}:
	case <-time.After(time.Minute):
		require.Fail(w.t, "nothing waits for a look")
	}
	return w.next()
}

func (w *watched) next() time.Duration {
	w.t.Helper()
	select {
	case d := <-w.waits:
		return d
	case <-time.After(time.Minute):
		require.Fail(w.t, "no look is waited for")
		return 0
	}
}

// figure is what /metrics shows.
func (w *watched) figure(name string) int64 {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), "GET", "/metrics", nil))
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(rec.Body.String())
	require.NotNil(w.t, m, name)
	v, err := strconv.ParseFloat(m[1], 64)
	require.NoError(w.t, err)
	return int64(v)
}

const (
	verifiedAt = "cryptopay_verify_timestamp_seconds"
	wrongBooks = "cryptopay_verify_unsound_tenants"
)

// A gateway proves its books by itself, soon after its start and then as often as it is set. What
// it finds is in the log and in the figures that alerts are made of, and goes when it is mended.
func TestFS02_GatewayVerifiesItsBooks(t *testing.T) {
	t.Parallel()
	w := newWatched(t, "7h")
	require.Equal(t, verifyFirst, w.next())
	require.Zero(t, w.figure(verifiedAt))
	began := time.Now()
	require.Equal(t, 7*time.Hour, w.look())
	require.GreaterOrEqual(t, w.figure(verifiedAt), began.Unix())
	require.Zero(t, w.figure(wrongBooks))
	require.NotContains(t, w.log.String(), "books_")

	change := func(account string, by int) {
		t.Helper()
		require.EqualValues(t, 1, edit(t, w.path, "UPDATE cryptopay_balances SET posted = posted + ? WHERE account LIKE ?", by, account))
	}
	change("wallet/%", 1)
	require.Equal(t, verifyAgain, w.look(), "what is found is looked at again")
	require.EqualValues(t, 1, w.figure(wrongBooks))
	require.Contains(t, w.log.String(), "level=WARN msg=books_doubted tenant="+tenantID)
	require.NotContains(t, w.log.String(), "level=ERROR", "it may have moved meanwhile")
	require.Equal(t, 2*verifyAgain, w.look())
	require.EqualValues(t, 1, w.figure(wrongBooks))
	require.Equal(t, 1, strings.Count(w.log.String(), "level=ERROR msg=books_wrong tenant="+tenantID))
	require.NotContains(t, w.log.String(), testSecret)
	for _, d := range []time.Duration{4 * verifyAgain, verifySlow, verifySlow} {
		require.Equal(t, d, w.look())
	}

	change("wallet/%", -1)
	w.log.Reset()
	require.Equal(t, 7*time.Hour, w.look())
	require.Zero(t, w.figure(wrongBooks))
	require.NotContains(t, w.log.String(), "books_")

	// What was there at one look alone may have moved meanwhile.
	change("fees/platform", 1)
	require.Equal(t, verifyAgain, w.look())
	change("fees/platform", -1)
	edit(t, w.path, "UPDATE cryptopay_payments SET net = net + 1")
	require.Equal(t, 2*verifyAgain, w.look())
	require.Equal(t, 2, strings.Count(w.log.String(), "level=WARN msg=books_doubted"), w.log.String())
	require.NotContains(t, w.log.String(), "level=ERROR")
	w.halt()
}

// A look that fails is logged and tried again, and takes no other work down. One that ends with the
// process is not logged.
func TestFS02_GatewayCannotVerifyItsBooks(t *testing.T) {
	t.Parallel()
	w := newWatched(t, "7h")
	require.Equal(t, verifyFirst, w.next())
	edit(t, w.path, "ALTER TABLE cryptopay_tenants RENAME TO away")
	require.Equal(t, verifyAgain, w.look(), "it is tried again")
	require.Contains(t, w.log.String(), "level=ERROR msg=books_not_verified error=")
	require.Zero(t, w.figure(verifiedAt))
	edit(t, w.path, "ALTER TABLE away RENAME TO cryptopay_tenants")
	require.Equal(t, 7*time.Hour, w.look())
	require.Positive(t, w.figure(verifiedAt))

	app := w.g.app
	w.g.app = nil
	require.Equal(t, verifyAgain, w.look())
	require.Contains(t, w.log.String(), "panicked")
	w.g.app = app
	w.halt()

	w.log.Reset()
	w.g.world.clock.Clock = &once{Clock: cryptopay.SystemClock{}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.g.verify(ended)
	require.Empty(t, w.log.String(), "the end of the process is no fault")
}

// Without the setting there is no look: another process has it.
func TestFS02_GatewayIsToldNotToVerify(t *testing.T) {
	t.Parallel()
	w := newWatched(t, "off")
	w.halt()
	require.Empty(t, w.waits)
	require.Zero(t, w.figure(verifiedAt))
	w.g.verify(t.Context()) // returns
	for bad, ok := range map[string]bool{"": true, "off": true, "1m": true, "36h": true, "0": false, "59s": false, "-24h": false, "daily": false, "24": false} {
		s, err := readSettings(nil, func(k string) string { return map[string]string{"CRYPTOPAY_VERIFY": bad}[k] })
		if !ok {
			require.ErrorContains(t, err, "CRYPTOPAY_VERIFY must be off, or at least 1m", bad)
			continue
		}
		require.NoError(t, err, bad)
		require.Equal(t, bad == "off", s.verify == 0, bad)
		if bad == "" {
			require.Equal(t, 24*time.Hour, s.verify)
		}
	}
	_, err := readSettings([]string{"-config", written(t, "verify: daily")}, func(string) string { return "" })
	require.ErrorContains(t, err, ":1:9: verify must be off")
	s, err := readSettings([]string{"-config", written(t, "verify: off")}, func(string) string { return "" })
	require.NoError(t, err)
	require.Zero(t, s.verify)
}
