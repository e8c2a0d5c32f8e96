package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"
	"rsc.io/qr"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// world is everybody else: the networks, the customers, the supplier.
type world interface {
	clients() []chain.Client
	networks() []chain.Network
	currencies() []string
	registry() *chain.Registry
	fund(ctx context.Context, to chain.Address, currency string, amount decimal.Decimal) error
	pay(ctx context.Context, to chain.Address, currency string, amount decimal.Decimal) (tx string, err error)
	supplier() string
	mine(ctx context.Context) error
	save(ctx context.Context, s storage.Store) error
	close() error
}

// shop is the host program: the embedded App and what it stands on.
type shop struct {
	app      *cryptopay.App
	store    *sqlite.Store
	world    world
	registry *chain.Registry
	inbox    *inbox
	pages    *checkout.Handler
	paid     []string // the payments of this run
	file     string
	tenant   string
	started  time.Time
	clock    *clock
}

// The demonstration's own passphrase: a real host asks a person or a vault.
const passphrase = "quickstart: never for real money"

func openShop(ctx context.Context, file, kind, rpc string) (*shop, error) {
	s := &shop{file: file, started: time.Now(), clock: &clock{}}
	tables := append(append(cryptopay.Tables(), keys.Tables()...), worlds.Table)
	if err := sqlite.Migrate(ctx, file, tables...); err != nil {
		return nil, err
	}
	var err error
	if s.store, err = sqlite.Open(file, sqlite.Options{}); err != nil {
		return nil, err
	}
	if err := s.store.Open(ctx, tables...); err != nil {
		return nil, err
	}
	if s.world, err = newWorld(ctx, s.store, s.clock, kind, rpc); err != nil {
		return nil, err
	}
	s.registry = s.world.registry()
	seed, err := loadSeed(file + ".seed")
	if err != nil {
		return nil, err
	}
	if s.inbox, err = listen(); err != nil {
		return nil, err
	}
	return s, s.compose(ctx, seed)
}

// loadSeed opens the sealed seed beside the database, made at the first run.
func loadSeed(file string) (*keys.Seed, error) {
	seed, err := keys.Load(file, []byte(passphrase))
	if !errors.Is(err, os.ErrNotExist) {
		return seed, err
	}
	words, err := keys.NewMnemonic(rand.Reader)
	if err != nil {
		return nil, err
	}
	if seed, err = keys.FromMnemonic(words, ""); err != nil {
		return nil, err
	}
	return seed, seed.Save(file, []byte(passphrase), rand.Reader)
}

// compose is the embedding itself.
func (s *shop) compose(ctx context.Context, seed *keys.Seed) error {
	accounts, err := seed.Accounts(s.registry.Networks())
	if err != nil {
		return err
	}
	encode, chains := map[chain.Network]keys.Encode{}, map[chain.Network]keys.Chain{}
	for _, c := range s.world.clients() {
		encode[c.Network()], chains[c.Network()] = c.AddressOf, c
	}
	source, err := keys.NewSource(accounts, encode)
	if err != nil {
		return err
	}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: chains, Registry: keys.StoreRegistry{Store: s.store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	if err != nil {
		return err
	}
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: s.world.clients(), Registry: s.registry,
		Addresses: source, Signer: signer, Clock: s.clock,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{"BTC": "60000", "ETH": "2000", "USDT": "1", "USDC": "1", "DAI": "1"}),
		Key:   []byte("quickstart key, 32 bytes, public"),
		// The receiver is this very program, so loopback is allowed.
		Callbacks: webhook.Guard{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		return err
	}
	if err := s.app.Open(ctx, append(keys.Tables(), worlds.Table)...); err != nil {
		return err
	}
	if s.pages, err = checkout.New(s.app, checkout.Options{BaseURL: s.inbox.base()}); err != nil {
		return err
	}
	api, err := httpapi.New(s.app, httpapi.Options{Login: nobody{}, BaseURL: s.inbox.base(), CheckoutURL: s.pages.URL})
	if err != nil {
		return err
	}
	s.inbox.mux.Handle("/checkout/", s.pages)
	s.inbox.mux.Handle("/", api)
	return nil
}

// nobody may call the REST interface here: it is served for its reference, which is public.
type nobody struct{}

// Identify implements httpapi.Login.
func (nobody) Identify(*http.Request) (who auth.Identity, known bool, err error) {
	return who, false, nil
}

func (s *shop) close(ctx context.Context) error {
	return errors.Join(s.world.save(ctx, s.store), s.world.close(), s.inbox.server.Close(), s.store.Close())
}

// clock runs with the wall, plus what was skipped: simulated chains need not
// wait for their blocks.
type clock struct {
	cryptopay.SystemClock
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.SystemClock.Now().Add(c.offset)
}

func (c *clock) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// until lets the chain grow and the library work until done says so, and shows
// what changes.
func (s *shop) until(ctx context.Context, done func() (bool, string, error)) error {
	last := ""
	for range 400 {
		if err := s.app.Step(ctx); err != nil {
			return err
		}
		ok, state, err := done()
		if err != nil {
			return err
		}
		if state != last {
			fmt.Println("  ", state)
			last = state
		}
		if ok {
			return nil
		}
		if err := s.world.mine(ctx); err != nil {
			return err
		}
		s.clock.skip(12 * time.Second)
	}
	return fmt.Errorf("nothing moved for 400 blocks, last seen: %s", last)
}

// confirmations of the transfer that a transaction made to us.
func (s *shop) confirmations(ctx context.Context, n chain.Network, tx string) (int64, error) {
	p := storage.Network(string(n))
	rows, err := s.store.Find(ctx, storage.Query{
		Table: incoming.Sightings.Table, Partition: p, Where: []storage.Cond{
			{Column: storage.ColID, Op: storage.Gt, Value: tx + ":"}, {Column: storage.ColID, Op: storage.Lt, Value: tx + ";"}, // see incoming.Key
		},
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	cursor, _, _, err := incoming.Cursors.One(ctx, s.store, p, incoming.CursorID)
	v := incoming.Sightings.Value(rows[0])
	return v.Confirmations(cursor.Head), err
}

// float is what the operator has of a gas currency.
func (s *shop) float(ctx context.Context, gas *chain.Currency) (decimal.Decimal, error) {
	balances, err := s.store.Balances(ctx, storage.Tenant(s.tenant), ledger.Float)
	for _, b := range balances {
		if b.Asset == gas.Asset() {
			return gas.Decimal(b.Posted), err
		}
	}
	return decimal.Zero, err
}

// inbox is the merchant's own webhook receiver. Its server has the pages for customers, too.
type inbox struct {
	server    *http.Server
	mux       *http.ServeMux
	address   string
	mu        sync.Mutex
	secrets   []string
	good, bad int
}

func listen() (*inbox, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &inbox{address: l.Addr().String(), mux: http.NewServeMux()}
	i.mux.Handle("/webhooks", i)
	i.server = &http.Server{Handler: i.mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = i.server.Serve(l) }()
	return i, nil
}

func (i *inbox) base() string { return "http://" + i.address }
func (i *inbox) url() string  { return i.base() + "/webhooks" }

// newSecret replaces the shop's secret; the one before stays good for a day.
func (i *inbox) newSecret() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // never fails
	i.mu.Lock()
	defer i.mu.Unlock()
	i.secrets = append(i.secrets, hex.EncodeToString(raw))
	return i.secrets[len(i.secrets)-1]
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	i.mu.Lock()
	defer i.mu.Unlock()
	// The shop's clock runs ahead of the wall on simulated chains.
	if err != nil || webhook.Verify(r.Header, body, time.Now(), 365*24*time.Hour, i.secrets...) != nil {
		i.bad++
		http.Error(w, "bad signature", http.StatusBadRequest)
		return
	}
	i.good++
}

func (i *inbox) counts() (good, bad int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.good, i.bad
}

// terminal draws a text as a QR code, two modules a character.
func terminal(text string) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for y := -2; y < code.Size+2; y += 2 {
		for x := -2; x < code.Size+2; x++ {
			switch upper, lower := code.Black(x, y), code.Black(x, y+1); {
			case upper && lower:
				b.WriteByte(' ')
			case upper:
				b.WriteRune('▄')
			case lower:
				b.WriteRune('▀')
			default:
				b.WriteRune('█')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
