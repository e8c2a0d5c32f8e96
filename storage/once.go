package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// OnceFor is how long a first response is kept and replayed.
const OnceFor = 24 * time.Hour

// Errors of idempotent requests. Both mean that nothing was done.
var (
	ErrIdempotencyMismatch = errors.New("storage: idempotency key was used for another request")
	ErrInProgress          = errors.New("storage: a request with this idempotency key is still running")
)

// Once makes one request take effect once. The zero Once asks for nothing: its
// methods then do nothing.
//
// A service uses it like this, with now from its clock:
//
//	leave, err := inFlight.Enter(p, once)   // ErrInProgress
//	defer leave()
//	err = storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
//		response, replay, err := once.Find(ctx, store, p, now) // ErrIdempotencyMismatch
//		if err != nil || replay {
//			return storage.Change{}, err
//		}
//		…decide c, and let once.Encode see what it decided…
//		return c, once.AddTo(&c, now)
//	})
//
// Where another process commits the same key first, the Change is ErrConflict
// and the next round of Decide finds that response.
type Once struct {
	Key         string // the client's key with the route it was sent to; at most 200 bytes
	Fingerprint string // digest of the request's body
	// Encode gives the response to store. It is called by AddTo, when the
	// decision is taken, and again where it is taken again.
	Encode func() ([]byte, error)

	known *firstResponse // what Find read last; nil = ask the store
}

// firstResponse is what the store has under a key. Version 0 = nothing.
type firstResponse struct {
	row     OnceRow
	version int64
}

// OnceRow is what is kept of a first request. Its row's id is the Key, and it
// is due when it may be forgotten.
type OnceRow struct {
	Fingerprint string    `db:"fingerprint"`
	Response    []byte    `db:"response"`
	CreatedAt   time.Time `db:"created_at"`
}

// OnceTable holds first responses, in the tenant's partition.
var OnceTable = NewTable[OnceRow]("idempotency")

// Look reads what the store has under the key, for the Find that follows.
func (o *Once) Look(ctx context.Context, s Store, p Partition) error {
	v, row, _, err := OnceTable.One(ctx, s, p, o.Key)
	if err == nil {
		o.known = &firstResponse{v, row.Version}
	}
	return err
}

// Find looks for the key's first response. replay is true where there is one
// younger than OnceFor; ErrIdempotencyMismatch where it answered another body.
// It asks the store once, where Look has not, and again after each AddTo: what another
// process wrote meanwhile makes the Change of AddTo ErrConflict. So call it after Enter.
func (o *Once) Find(ctx context.Context, s Store, p Partition, now time.Time) (response []byte, replay bool, err error) {
	if o.Key == "" {
		return nil, false, nil
	}
	if o.known == nil {
		if err := o.Look(ctx, s, p); err != nil {
			return nil, false, err
		}
	}
	v := &o.known.row
	switch {
	case o.known.version == 0 || !now.Before(v.CreatedAt.Add(OnceFor)):
		return nil, false, nil
	case v.Fingerprint != o.Fingerprint:
		return nil, false, ErrIdempotencyMismatch
	}
	return v.Response, true, nil
}

// AddTo puts the response into the Change that causes it. Call it after Find.
func (o *Once) AddTo(c *Change, now time.Time) error {
	if o.Key == "" {
		return nil
	}
	var response []byte
	if o.Encode != nil {
		var err error
		if response, err = o.Encode(); err != nil {
			return fmt.Errorf("storage: encoding the response to keep: %w", err)
		}
	}
	var version int64 // of an outlived response, which this one replaces
	if o.known != nil {
		version = o.known.version
	}
	o.known = nil
	c.Put = append(c.Put, OnceTable.Row(o.Key, version, now.Add(OnceFor),
		OnceRow{Fingerprint: o.Fingerprint, Response: response, CreatedAt: now}))
	return nil
}

// InFlight knows the keys whose first request is running in this process. The
// zero value is ready.
type InFlight struct {
	mu   sync.Mutex
	keys map[inFlightKey]struct{}
}

type inFlightKey struct {
	p   Partition
	key string
}

// Enter marks the key as running until leave is called, or says ErrInProgress.
// leave is never nil.
func (f *InFlight) Enter(p Partition, o Once) (leave func(), err error) {
	if o.Key == "" {
		return func() {}, nil
	}
	k := inFlightKey{p, o.Key}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, running := f.keys[k]; running {
		return func() {}, ErrInProgress
	}
	if f.keys == nil {
		f.keys = map[inFlightKey]struct{}{}
	}
	f.keys[k] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.keys, k)
	}, nil
}

// PurgeOnce forgets at most max outlived responses, of any partition, and says
// how many. lease is how long another process keeps off the rows it took.
func PurgeOnce(ctx context.Context, s Store, now time.Time, lease time.Duration, max int) (int, error) {
	rows, err := s.Claim(ctx, Claim{Table: OnceTable.Table, Now: now, Until: now.Add(lease), Max: max})
	if len(rows) == 0 {
		return 0, err
	}
	changes := make([]Change, len(rows))
	for i, r := range rows {
		// The id is long where the key is; the creation time and version keep
		// it apart from every other purge.
		changes[i] = Change{
			ID:        "purge/" + strconv.FormatInt(r.Version, 36) + "/" + strconv.FormatInt(Micros(OnceTable.Value(r).CreatedAt), 36) + "/" + clip(r.ID, 60),
			Partition: r.Partition,
			Drop:      []Row{r},
		}
	}
	n := 0
	for _, err := range s.Commit(ctx, changes...) {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, ErrConflict): // replaced meanwhile: in use again
			return n, err
		}
	}
	return n, err
}

func clip(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
	}
	return s
}
