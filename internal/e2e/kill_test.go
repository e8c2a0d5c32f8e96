package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// child is what a process that is going to be killed has to know.
type child struct {
	File      string            `json:"file"`
	URL       string            `json:"url"`
	ID        int64             `json:"id"`
	Now       time.Time         `json:"now"`
	Contracts map[string]string `json:"contracts"` // by currency
	Place     string            `json:"place"`
	// Writes is how many times it may change the store before it stands still,
	// Kept whether the last of them is still done. Unlimited at 0.
	Writes int  `json:"writes"`
	Kept   bool `json:"kept"`
}

// childEnv holds the child's order; set only in processes that this test starts.
const childEnv = "CRYPTOPAY_E2E_CHILD"

// reached is what the child says when it stands where it is to be killed.
const reached = "standing at "

// The places between the decision to pay and the record of it.
const (
	signed = "signed, not stored"
	stored = "stored, not sent"
	sent   = "sent, not recorded"
	wrote  = "at its last write"
)

// halt says where the process stands and stays there.
func halt(place string) {
	fmt.Println(reached + place)
	select {}
}

// printer delivers webhooks to the parent.
type printer struct{}

const webhookLine = "webhook "

func (printer) Notify(_ context.Context, all []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(all))
	for i, d := range all {
		fmt.Printf("%s%s\n", webhookLine, d.Body)
		out[i] = webhook.Result{Status: 200}
	}
	return out
}

// haltingStore stands still at its last write, before or after it.
type haltingStore struct {
	storage.Store
	left atomic.Int64
	kept bool
}

func (s *haltingStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	last := s.left.Add(-1) == 0
	if last && !s.kept {
		halt(wrote)
	}
	errs := s.Store.Commit(ctx, changes...)
	if last {
		halt(wrote)
	}
	return errs
}

type haltingSigner struct{ chain.Signer }

func (s haltingSigner) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	sigs, err := s.Signer.Sign(ctx, r)
	if err == nil {
		halt(signed)
	}
	return sigs, err
}

type haltingClient struct {
	*evm.Client
	place string
}

func (c haltingClient) Broadcast(ctx context.Context, s chain.Stored) error {
	if c.place == sent {
		if err := c.Client.Broadcast(ctx, s); err != nil {
			return err
		}
	}
	halt(c.place)
	return nil
}

// TestChild is the process that gets killed: it does what is due on the file
// until it stands where it was told to.
func TestChild(t *testing.T) {
	order := os.Getenv(childEnv)
	if order == "" {
		return // started by hand, not by TestL01
	}
	var c child
	require.NoError(t, json.Unmarshal([]byte(order), &c))
	registry := registryWith(t, c.ID, c.Contracts)
	client := newClient(t, registry, c.URL, c.ID)
	store, err := sqlite.Open(c.File, sqlite.Options{})
	require.NoError(t, err)
	s := setup{store: store, clock: cryptopay.NewManualClock(c.Now), client: client, registry: registry, notifier: printer{}}
	switch c.Place {
	case signed:
		s.signer = func(s chain.Signer) chain.Signer { return haltingSigner{s} }
	case stored, sent:
		s.client = haltingClient{client, c.Place}
	case wrote:
		limited := &haltingStore{Store: store, kept: c.Kept}
		limited.left.Store(int64(c.Writes))
		s.store = limited
	}
	app := compose(t, s)
	require.NoError(t, app.Step(t.Context()))
	fmt.Println(idle)
}

// idle is what the child says when nothing is due any more.
const idle = "nothing is due"

// live runs a child on the file until it stands at its place, and ends it as a
// power cut would. It returns the webhooks that went out, and whether the child
// got there before it had nothing to do.
func live(t *testing.T, c child) (hooks []webhook.Delivery, there bool) {
	t.Helper()
	order, err := json.Marshal(c)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+string(order))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said strings.Builder
	done := false
	for lines := bufio.NewScanner(out); !there && !done && lines.Scan(); {
		line := lines.Text()
		said.WriteString(line + "\n")
		if body, ok := strings.CutPrefix(line, webhookLine); ok {
			hooks = append(hooks, webhook.Delivery{Body: []byte(body)})
		}
		there, done = line == reached+c.Place, line == idle
	}
	require.NoError(t, cmd.Process.Kill()) // SIGKILL
	_ = cmd.Wait()                         // it was killed
	require.True(t, there || done, "the child said: %s", said.String())
	return hooks, there
}

func TestL01_W02_ProcessKilledBetweenSignAndBroadcastPaysOnce(t *testing.T) {
	t.Parallel()
	for _, place := range []string{signed, stored, sent} {
		for _, currency := range []string{"ETH", "USDTERC20"} {
			t.Run(strings.ReplaceAll(place, ", ", "_")+"/"+currency, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "shop.db")
				require.NoError(t, sqlite.Migrate(t.Context(), file, append(cryptopay.Tables(), keys.Tables()...)...))
				open := func(s *setup) {
					store, err := sqlite.Open(file, sqlite.Options{})
					require.NoError(t, err)
					s.store = store
				}
				n := openAnvil(t, usual)
				h := newHost(t, n, open)
				h.earn("300", currency)
				w := h.withdraw("100", currency, supplier)
				require.NoError(t, h.store.Close())

				_, there := live(t, child{
					File: file, URL: n.url, ID: n.id.Int64(), Now: h.clock.Now(), Contracts: n.contracts(usual), Place: place,
				})
				require.True(t, there)

				h.restart(open)
				defer func() { require.NoError(t, h.store.Close()) }()
				before := h.attempts()
				require.Len(t, before, map[string]int{signed: 0, stored: 1, sent: 1}[place])
				h.sound()
				w = h.paidOnce(w, supplier)
				after := h.attempts()
				require.Len(t, after, 1, "nothing is built a second time")
				require.Len(t, h.signed(w), 1, "nothing else is signed")
				require.Equal(t, after[0].ID, w.Tx)
				for i := range before {
					require.Equal(t, outgoing.Attempts.Value(before[i]).Raw, outgoing.Attempts.Value(after[i]).Raw)
				}
				h.sound("withdrawal_status_update:completed")
			})
		}
	}
}

// No process of this shop lives for more than a few writes, and every one is
// killed at or after its last.
func TestL01_EveryProcessIsKilledAndEverythingIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, currency := range testenv.Drawn(t, 1, []string{"ETH", "USDTERC20"}) {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "shop.db")
			require.NoError(t, sqlite.Migrate(t.Context(), file, append(cryptopay.Tables(), keys.Tables()...)...))
			n := openAnvil(t, usual)
			h := newHost(t, n, func(s *setup) {
				store, err := sqlite.Open(file, sqlite.Options{})
				require.NoError(t, err)
				s.store = store
			})
			defer func() { require.NoError(t, h.store.Close()) }()
			lives, kills := 0, 0
			until := func(done func() bool) {
				for !done() {
					require.Less(t, lives, 300, "it does not get on")
					n.commit()
					h.clock.Advance(blockTime)
					hooks, killed := live(t, child{
						File: file, URL: n.url, ID: n.id.Int64(), Now: h.clock.Now(), Contracts: n.contracts(usual),
						Place: wrote, Writes: 1 + lives%9, Kept: lives%2 == 0,
					})
					h.inbox.got = append(h.inbox.got, hooks...)
					if lives++; killed {
						kills++
					}
					h.sound()
				}
			}
			p := h.order("300", currency)
			n.pay(p.Address, currency, h.due(p))
			until(func() bool { return h.payment(p.ID).Status == payment.Completed })
			require.Equal(t, h.due(p).String(), h.available(currency))
			w := h.withdraw("100", currency, supplier)
			until(func() bool { return h.withdrawal(w.ID).Status == withdrawal.Completed })
			t.Logf("%d lives, %d kills", lives, kills)
			require.Greater(t, kills, 20)
			h.paidOnce(w, supplier)
			require.Len(t, h.attempts(), 1)
			require.Len(t, h.signed(w), 1, "nothing else is signed")
			h.sound("deposit_received", "payment_status_update:completed", "withdrawal_status_update:completed")
		})
	}
}
