package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// Store is a storage.Store in Redis. Make it with New.
type Store struct {
	client redis.UniversalClient
	keys   keys
	o      Options
	own    bool
	lane   *lane.Lane
	tables atomic.Pointer[open] // nil = not open; replaced, never changed

	doubts    atomic.Int64 // raised whenever a server may be another
	settledAt atomic.Int64 // up to which doubt the settings were read
	checking  sync.Mutex

	opening sync.Mutex
	watched bool // under opening
}

// open is what the store was opened with.
type open struct {
	tables  verdict.Tables
	layouts map[*storage.Table]*layout
}

var (
	_ storage.Store = (*Store)(nil)
	_ storage.Clock = (*Store)(nil)
	_ lane.Target   = (*Store)(nil)
)

// Loss is something that a setting of the servers can lose.
type Loss string

// What may be lost where Options.AllowLoss says so; see the package's text.
const (
	LastSecond Loss = "last second" // appendfsync everysec
	Failover   Loss = "failover"    // replicas that may become masters
)

// Options of a Store.
type Options struct {
	// Prefix begins every key, so that a server may be shared. It holds no
	// brace. Defaults to "cryptopay".
	Prefix string
	// AllowLoss names what the operator accepts to lose. Defaults to nothing.
	AllowLoss []Loss
	// Lane is how commits are grouped. Defaults to 8 shards and at most 100
	// Changes at once: a server does nothing else while it commits them.
	Lane lane.Config
}

// New makes a Store over a client of one server (*redis.Client, also of
// Sentinels) or of a cluster (*redis.ClusterClient) that the host keeps and
// closes. Nothing is asked of the servers before Open.
//
// A client may send a commit again whose answer was lost: a Change takes effect
// once.
func New(client redis.UniversalClient, o Options) *Store {
	if o.Prefix == "" {
		o.Prefix = "cryptopay"
	}
	if o.Lane.Shards == 0 {
		o.Lane.Shards = 8
	}
	if o.Lane.MaxBatch == 0 {
		o.Lane.MaxBatch = 100
	}
	s := &Store{client: client, keys: keys{o.Prefix}, o: o}
	s.lane = lane.New(s, o.Lane)
	return s
}

// Own hands the client over: Close closes it.
func (s *Store) Own() *Store {
	s.own = true
	return s
}

// Open implements storage.Store. Tables of an earlier Open stay open.
func (s *Store) Open(ctx context.Context, tables ...*storage.Table) error {
	if strings.ContainsAny(s.o.Prefix, "{}") {
		return errors.New("redisstore: Options.Prefix must not hold a brace")
	}
	if err := s.checkClient(); err != nil {
		return err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if !s.watched {
		if err := s.watch(ctx); err != nil {
			return err
		}
		s.watched = true
	}
	if err := s.check(ctx, false); err != nil {
		return err
	}
	now := &open{tables: verdict.Tables{}, layouts: map[*storage.Table]*layout{}}
	if old := s.tables.Load(); old != nil {
		maps.Copy(now.tables, old.tables)
		maps.Copy(now.layouts, old.layouts)
	}
	if err := s.declare(ctx, "", layoutVersion); err != nil {
		return err
	}
	for _, t := range tables {
		if now.tables[t] {
			continue
		}
		l := layoutOf(t)
		if err := s.declare(ctx, t.Name, l.declaration()); err != nil {
			return err
		}
		now.tables[t], now.layouts[t] = true, l
	}
	s.tables.Store(now)
	return nil
}

// declare writes down how a table is stored, or compares with what stands there.
func (s *Store) declare(ctx context.Context, table, words string) error {
	first, err := s.client.HSetNX(ctx, s.keys.schema(), table, words).Result()
	if err != nil || first {
		return failed("opening", err)
	}
	there, err := s.client.HGet(ctx, s.keys.schema(), table).Result()
	if err != nil {
		return failed("opening", err)
	}
	if there != words {
		return fmt.Errorf("%w: redisstore: table %q is stored as %q and declared as %q: run Migrate", storage.ErrSchema, table, there, words)
	}
	return nil
}

// failed says what could not be done; nil stays nil.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisstore: %s: %w", what, err)
}

// Close implements storage.Store. A host's client stays open.
func (s *Store) Close() error {
	s.tables.Store(nil)
	if s.own {
		return s.client.Close()
	}
	return nil
}

// opened also ends those whose context has ended: the client looks at it only
// while it waits for a connection.
func (s *Store) opened(ctx context.Context) (*open, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := s.tables.Load()
	if o == nil {
		return nil, storage.ErrClosed
	}
	return o, nil
}

func (s *Store) layout(ctx context.Context, t *storage.Table) (*layout, error) {
	o, err := s.opened(ctx)
	if err != nil {
		return nil, err
	}
	l := o.layouts[t]
	if l == nil {
		return nil, fmt.Errorf("%w: table was not opened", storage.ErrMalformed)
	}
	return l, nil
}

// Now implements storage.Clock: the time of the server that has tag 0.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	v, err := s.run(ctx, timeScript, []evaluation{{keys: []string{s.keys.schema()}}})[0].StringSlice()
	if err != nil {
		return time.Time{}, failed("asking the time", err)
	}
	var parts [2]int64
	for i := range parts {
		if i >= len(v) {
			return time.Time{}, errForeign
		}
		if parts[i], err = strconv.ParseInt(v[i], 10, 64); err != nil {
			return time.Time{}, failed("asking the time", err)
		}
	}
	return time.Unix(parts[0], parts[1]*1000).UTC(), nil
}
