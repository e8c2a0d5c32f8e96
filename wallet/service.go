package wallet

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Config is what the service is made of. Store, Registry, Now and NewID are
// required.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	Now      func() time.Time
	NewID    func() string

	// Pending says whether something outside this package still expects to post
	// to a wallet, such as an open payment: it then cannot be deleted. Defaults
	// to no.
	Pending func(ctx context.Context, tenant, wallet string) (bool, error)
	// Marks are rows for the first Change in a tenant's partition: those that say that its
	// counters hold (see storage/tally). Defaults to none.
	Marks func(ctx context.Context) ([]storage.Row, error)
	// Activity says how many payments or withdrawals (storage.ActivityPayment …) show one
	// of these statuses; ok is false where that is not counted. Defaults to counting rows.
	Activity func(ctx context.Context, tenant, kind string, statuses []string) (n int64, ok bool, err error)
	// CheckURL refuses a callback URL, in words for the merchant. Defaults to no
	// check.
	CheckURL func(url string) error
	// MaxWallets is how many open sub-accounts a tenant may have. Defaults to
	// DefaultMaxWallets; below 0 is no bound.
	MaxWallets int
	// Lease is how long a worker keeps the transfers that it claimed. Defaults to
	// 1 minute.
	Lease time.Duration
	// Batch is how many transfers are claimed at once. Defaults to 100.
	Batch int
	// Log takes what operators should see. Defaults to discarding.
	Log *slog.Logger
}

// DefaultMaxWallets is Config.MaxWallets where it is left out.
const DefaultMaxWallets = 10_000

// Service keeps tenants, wallets and transfers. All methods may be called
// concurrently.
type Service struct {
	c        Config
	inFlight storage.InFlight
	// creating makes this process's own creations of wallets take turns, as
	// those of one tenant all draw from one sequence.
	creating [64]sync.Mutex
}

// New checks the Config and makes a Service. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Now == nil || c.NewID == nil {
		return nil, errors.New("wallet: Config needs Store, Registry, Now and NewID")
	}
	c.Store = storage.Joined(c.Store)
	or(&c.Lease, time.Minute)
	or(&c.Batch, 100)
	or(&c.MaxWallets, DefaultMaxWallets)
	if c.Pending == nil {
		c.Pending = func(context.Context, string, string) (bool, error) { return false, nil }
	}
	if c.Activity == nil {
		c.Activity = func(context.Context, string, string, []string) (int64, bool, error) { return 0, false, nil }
	}
	if c.Marks == nil {
		c.Marks = func(context.Context) ([]storage.Row, error) { return nil, nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{c: c}, nil
}

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{TenantRows.Table, WalletRows.Table, TransferRows.Table, sequences.Table}
}

// now is the clock in the precision of the store.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Microsecond) }

// turn is the lock that creations of a tenant's wallets take.
func (s *Service) turn(tenant string) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant)) // never fails
	return &s.creating[h.Sum32()%uint32(len(s.creating))]
}

func or[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}
