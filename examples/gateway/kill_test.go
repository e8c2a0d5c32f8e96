package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// child makes this test's own program run the gateway instead.
const child = "CRYPTOPAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	testClient = "test-client"
	testSecret = "test-secret-of-some-length"
)

// process is a gateway in a process of its own, on one SQLite file.
type process struct {
	t    *testing.T
	dir  string
	env  []string
	mu   sync.Mutex
	cmd  *exec.Cmd
	base atomic.Pointer[string]
	bear atomic.Pointer[string]
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start runs the program and waits until it says where it is.
func (p *process) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), os.Args[0], "-addr", "127.0.0.1:0", "-store", "sqlite:"+filepath.Join(p.dir, "gateway.db"), "-networks", "ETH", "-log", "error")
	cmd.Env = append(append(os.Environ(), child+"=1", "CRYPTOPAY_CLIENT_ID="+testClient, "CRYPTOPAY_CLIENT_SECRET="+testSecret,
		"CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS=1", "CRYPTOPAY_RATE_LIMITS=off", "CRYPTOPAY_TRANSACTION_FEE=0"), p.env...)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	cmd.Stderr = os.Stderr
	require.NoError(p.t, cmd.Start())
	p.cmd = cmd
	var said []byte
	buf := make([]byte, 4096)
	for listening.Find(said) == nil {
		n, err := out.Read(buf)
		said = append(said, buf[:n]...)
		require.NoError(p.t, err, "the gateway ended: %s", said)
	}
	base := string(listening.Find(said))
	p.base.Store(&base)
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

var httpClient = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// try sends one request; the error says that the outcome is unknown.
func (p *process) try(method, path, key string, body any) (int, map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, *p.base.Load()+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.token())
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := httpClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	var v map[string]any
	err = json.NewDecoder(res.Body).Decode(&v)
	return res.StatusCode, v, err
}

// must repeats a request, with its key, until there is an answer.
func (p *process) must(method, path, key string, body any) (int, map[string]any) {
	for {
		status, v, err := p.try(method, path, key, body)
		if err == nil && status < http.StatusInternalServerError {
			return status, v
		}
		if p.t.Context().Err() != nil {
			p.t.Error(errors.Join(err, p.t.Context().Err()))
			return 0, nil
		}
	}
}

func (p *process) token() string {
	if t := p.bear.Load(); t != nil {
		return *t
	}
	return ""
}

func (p *process) login() {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, *p.base.Load()+"/o/token/", bytes.NewReader([]byte("grant_type=client_credentials")))
	require.NoError(p.t, err)
	r.SetBasicAuth(testClient, testSecret)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := httpClient.Do(r)
	require.NoError(p.t, err)
	defer res.Body.Close()
	var v struct {
		AccessToken string `json:"access_token"`
	}
	require.NoError(p.t, json.NewDecoder(res.Body).Decode(&v))
	require.NotEmpty(p.t, v.AccessToken)
	p.bear.Store(&v.AccessToken)
}

// mailbox is a receiver that checks signatures and keeps the last status told
// of each object.
type mailbox struct {
	mu     sync.Mutex
	secret string
	status map[string]map[string]bool // id → statuses told
	bad    int
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || webhook.VerifyBody(r.Header, body, m.secret) != nil {
		m.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var e struct {
		Data struct {
			Transaction string `json:"transaction_id"`
			Withdrawal  string `json:"withdrawal_id"`
			Status      string `json:"status"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil || e.Data.Status == "" {
		return
	}
	id := e.Data.Transaction + e.Data.Withdrawal
	if m.status[id] == nil {
		m.status[id] = map[string]bool{}
	}
	m.status[id][e.Data.Status] = true
}

// The gateway is killed with -9 in a busy run, again and again, and started on
// the same file: what was answered is there, what was sent with a key took
// effect once, recipients are paid once, webhooks go on, the books are sound.
func TestL01_KilledGatewayLosesAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	const (
		workers = 4
		rounds  = 6
		kills   = 4
	)
	dir := t.TempDir()
	box := &mailbox{status: map[string]map[string]bool{}}
	receiver := httptest.NewServer(box)
	defer receiver.Close()
	p := &process{t: t, dir: dir}
	p.start()
	defer p.kill()
	p.login()
	_, v := p.must("POST", "/user/webhooks/", "", map[string]any{"callback_url": receiver.URL})
	box.mu.Lock()
	box.secret, _ = v["secret"].(string)
	box.mu.Unlock()
	require.NotEmpty(t, box.secret)

	// Something to withdraw.
	payment := func(key, amount string) (id, address string) {
		status, v := p.must("POST", "/payments/", key, map[string]any{"amount": amount, "currency": "USDTERC20", "order_id": key})
		if status != http.StatusCreated {
			t.Errorf("payment %s: %d %v", key, status, v)
			return "", ""
		}
		return v["transaction_id"].(string), v["address"].(string)
	}
	firstID, first := payment("first", "1000")
	p.must("POST", "/dev/pay/", "", map[string]any{"address": first, "currency": "USDTERC20", "amount": "1000"})
	p.must("POST", "/dev/mine/", "", map[string]any{"blockchain": "ETH", "blocks": 60})

	var (
		mu       sync.Mutex
		payments = map[string]string{firstID: first}
		paid     = map[string]string{} // withdrawal → recipient
		done     atomic.Int64
		wg       sync.WaitGroup
	)
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				key := fmt.Sprintf("busy-%d-%d", w, i)
				id, address := payment(key, "10")
				// A customer does not care whether we answer.
				_, _, _ = p.try("POST", "/dev/pay/", "", map[string]any{"address": address, "currency": "USDTERC20", "amount": "10"})
				to := fmt.Sprintf("0x%040x", 0xabc000+w*100+i)
				status, v := p.must("POST", "/withdrawal/", key, map[string]any{"amount": "5", "currency": "USDTERC20", "address": to, "final_amount": true})
				if status != http.StatusCreated {
					t.Errorf("withdrawal %s: %d %v", key, status, v)
					return
				}
				mu.Lock()
				payments[id] = address
				paid[v["withdrawal_id"].(string)] = to
				mu.Unlock()
				_, _, _ = p.try("POST", "/dev/mine/", "", map[string]any{"blockchain": "ETH", "blocks": 1})
				done.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	for k := range kills {
		target := int64((k + 1) * workers * rounds / (kills + 1))
		for done.Load() < target && t.Context().Err() == nil {
			select {
			case <-finished:
			default:
				_, _, _ = p.try("GET", "/status/", "", nil)
				continue
			}
			break
		}
		p.kill()
		p.start()
	}
	<-finished
	if t.Failed() {
		return
	}

	// Everything comes to its end.
	for range 6 {
		p.must("POST", "/dev/mine/", "", map[string]any{"blockchain": "ETH", "blocks": 40})
		p.must("POST", "/dev/advance/", "", map[string]any{"seconds": 3600})
	}
	p.login() // the token has outlived its hour
	_, list := p.must("GET", "/withdrawal/?limit=100", "", nil)
	require.EqualValues(t, len(paid), list["total"], "one withdrawal per key")
	for _, w := range list["withdrawals"].([]any) {
		w := w.(map[string]any)
		require.Equal(t, "completed", w["status"], w)
		require.Contains(t, paid, w["withdrawal_id"])
	}
	_, all := p.must("GET", "/payments/?limit=100", "", nil)
	require.EqualValues(t, len(payments), all["total"], "one payment per key")
	_, balances := p.must("GET", "/user/balances/", "", nil)
	have := balances["account"].(map[string]any)["USDTERC20"].(map[string]any)
	require.Equal(t, "0.00000000", have["pending_amount"])
	p.kill()

	// The other side of the books: what the chain says.
	s, err := readSettings([]string{"-store", "sqlite:" + filepath.Join(dir, "gateway.db"), "-networks", "ETH"}, func(string) string { return "" })
	require.NoError(t, err)
	g, err := open(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.close()) }()
	in, out := decimal.Zero, decimal.Zero
	for _, address := range payments {
		for _, tr := range g.world.sims[0].Transfers(chain.Address(address)) {
			if tr.Currency == "USDTERC20" {
				in = in.Add(tr.Amount)
			}
		}
	}
	for _, to := range paid {
		format := g.world.clients[0]
		canonical, err := format.ParseAddress(to)
		require.NoError(t, err)
		got := g.world.sims[0].Transfers(canonical)
		require.Len(t, got, 1, "the recipient is paid once")
		require.True(t, got[0].Amount.Equal(decimal.NewFromInt(5)))
	}
	for _, w := range list["withdrawals"].([]any) {
		out = out.Add(decimal.RequireFromString(w.(map[string]any)["requested_amount"].(string)))
	}
	require.Equal(t, in.Sub(out).StringFixed(8), have["amount"])
	reports, err := g.app.Verify(t.Context())
	require.NoError(t, err)
	for i := range reports {
		require.True(t, reports[i].Sound(), "%+v", reports[i])
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	require.Zero(t, box.bad)
	for id := range paid {
		require.True(t, box.status[id]["completed"], "the webhook of withdrawal %s came", id)
	}
}
