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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// child is what a process that is going to be killed has to know.
type child struct {
	File      string            `json:"file"`
	URL       string            `json:"url"`
	ID        int64             `json:"id"`
	Now       time.Time         `json:"now"`
	Contracts map[string]string `json:"contracts"` // by currency
	Place     string            `json:"place"`
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
)

// halt says where the process stands and stays there.
func halt(place string) {
	fmt.Println(reached + place)
	select {}
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
	s := setup{
		store: store, clock: cryptopay.NewManualClock(c.Now), client: haltingClient{client, c.Place},
		registry: registry, notifier: &inbox{},
	}
	if c.Place == signed {
		s.signer = func(s chain.Signer) chain.Signer { return haltingSigner{s} }
	}
	app := compose(t, s)
	require.NoError(t, app.Step(t.Context()))
	t.Fatal("there was nothing to send")
}

// killed runs a child on the file until it stands at the place, and ends it as
// a power cut would.
func killed(t *testing.T, c child) {
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
	lines := bufio.NewScanner(out)
	there := false
	for !there && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		there = lines.Text() == reached+c.Place
	}
	require.NoError(t, cmd.Process.Kill()) // SIGKILL
	_ = cmd.Wait()                         // it was killed
	require.True(t, there, "the child said: %s", said.String())
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

				killed(t, child{
					File: file, URL: n.url, ID: n.id.Int64(), Now: h.clock.Now(), Contracts: n.contracts(usual), Place: place,
				})

				h.restart(open)
				defer func() { require.NoError(t, h.store.Close()) }()
				before := h.attempts()
				require.Len(t, before, map[string]int{signed: 0, stored: 1, sent: 1}[place])
				h.sound()
				w = h.paidOnce(w, supplier)
				after := h.attempts()
				require.Len(t, after, 1, "nothing is built a second time")
				require.Equal(t, after[0].ID, w.Tx)
				for i := range before {
					require.Equal(t, outgoing.Attempts.Value(before[i]).Raw, outgoing.Attempts.Value(after[i]).Raw)
				}
				h.sound("withdrawal_status_update:completed")
			})
		}
	}
}
