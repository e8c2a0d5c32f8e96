package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// OnceFor is how long a first response is kept and replayed.
const OnceFor = 24 * time.Hour

// Errors of a key. Each means that nothing was done.
var (
	ErrIdempotencyMismatch = errors.New("storage: the idempotency key was used for another request")
	ErrInProgress          = errors.New("storage: a request with this idempotency key is still running")
	ErrIdempotencyKey      = errors.New("storage: an idempotency key must be text of at most 200 bytes without NUL")
)

// Once is one request under an idempotency key, as a service works on it: callers of a
// service give a Key in its input, and OnceOf makes a Once of it. The zero Once asks for
// nothing: its methods then do nothing.
//
// A service uses it like this, with now from its clock:
//
//	once, err := storage.OnceOf(ctx, input.Key, input)
//	leave, err := inFlight.Enter(p, once)   // ErrInProgress
//	defer leave()
//	err = storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
//		response, replay, err := once.Find(ctx, store, p, now) // ErrIdempotencyMismatch
//		if err != nil {
//			return storage.Change{}, err
//		}
//		if replay {
//			return storage.Change{}, once.Decode(response, &result)
//		}
//		…decide c and result…
//		return c, once.AddTo(&c, now, result)
//	})
//
// Where another process commits the same key first, the Change is ErrConflict
// and the next round of Decide finds that response.
type Once struct {
	Key         string // of the tenant, whatever it is used for; at most MaxOnceKey bytes
	Fingerprint string // tells the request from others: a digest of what it says
	// Encode gives the response to store. It is called when the decision is taken, and
	// again where it is taken again. Defaults to the result as JSON.
	Encode func(result any) ([]byte, error)

	known *firstResponse // what Find read last; nil = ask the store
	first []byte         // what Decode was given, where Encode is set
}

// MaxOnceKey is the length of the longest key, in bytes.
const MaxOnceKey = 200

// ofContent begins the fingerprints that OnceOf makes. Others are those of a door, or of a
// caller of an earlier version.
const ofContent = "content/"

// OnceOf is the Once of a call with this key and input. Inputs are the same where their
// fields say the same: a field named Key, and those that are zero, say nothing. "" is no
// key. Where ctx comes from a door that has a Once of this key, it is that one: see
// WithOnce. ErrIdempotencyKey where it cannot be stored.
func OnceOf(ctx context.Context, key string, input any) (*Once, error) {
	if key == "" {
		return &Once{}, nil
	}
	if door, ok := ctx.Value(doorKey{}).(*Once); ok && door.Key == key {
		return door, nil
	}
	if len(key) > MaxOnceKey || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return nil, ErrIdempotencyKey
	}
	text, err := json.Marshal(map[string]any{fmt.Sprintf("%T", input): said(reflect.ValueOf(input))})
	if err != nil {
		return nil, fmt.Errorf("storage: reading a request under a key: %w", err)
	}
	digest := sha256.Sum256(text)
	return &Once{Key: key, Fingerprint: ofContent + hex.EncodeToString(digest[:])}, nil
}

// said is what an input says, in one writing. A field that a later version adds changes nothing
// while it is zero.
func said(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case decimal.Decimal: // never written out: one of few characters may have very many digits
		digits := strings.TrimRight(x.Coefficient().String(), "0")
		if digits == "" {
			return "0"
		}
		return fmt.Sprintf("%se%d", digits, int64(x.Exponent())+int64(len(x.Coefficient().String())-len(digits)))
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	case json.Marshaler:
		return x
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return said(v.Elem())
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[fmt.Sprint(k)] = said(v.MapIndex(k))
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = said(v.Index(i))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Field(i)
			empty := f.IsZero() || (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0
			if name := v.Type().Field(i).Name; name != "Key" && !empty {
				out[name] = said(f)
			}
		}
		return out
	default:
		return v.Interface()
	}
}

type doorKey struct{}

// WithOnce is for a door, such as httpapi, that has read a request before it knows what its
// input is. What is called with the Once's Key in this context is compared by the Once's
// Fingerprint, finds what the Once has found already, and stores what its Encode makes.
func WithOnce(ctx context.Context, o *Once) context.Context {
	return context.WithValue(ctx, doorKey{}, o)
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

// OnceTable holds first responses, in the tenant's partition; those to requests for a new
// tenant in System.
var OnceTable = NewTable[OnceRow]("idempotency")

// Look reads what the store has under the key, for the Find that follows.
func (o *Once) Look(ctx context.Context, s Store, p Partition) error {
	v, row, _, err := OnceTable.One(ctx, s, p, o.Key)
	if err == nil {
		o.known = &firstResponse{v, row.Version}
	}
	return err
}

// Find looks for the key's first response. replay is true where there is one younger than
// OnceFor. An error that wraps ErrIdempotencyMismatch names a key that answered another
// request. It asks the store once, where Look has not, and again after each AddTo: what
// another process wrote meanwhile makes the Change of AddTo ErrConflict. So call it after
// Enter.
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
	case v.Fingerprint != o.Fingerprint && !o.foreign():
		return nil, false, o.mismatch()
	}
	return v.Response, true, nil
}

// foreign reports whether the first request's content cannot be compared with this one's:
// its fingerprint is one that an earlier version's caller made.
func (o *Once) foreign() bool {
	return strings.HasPrefix(o.Fingerprint, ofContent) && !strings.HasPrefix(o.known.row.Fingerprint, ofContent)
}

func (o *Once) mismatch() error { return fmt.Errorf("%w: %q", ErrIdempotencyMismatch, o.Key) }

// Decode reads a response that Find returned into a result. With an Encode the result stays
// as it is, and First returns the response. Of a first request whose content cannot be
// compared, what is no such result was the answer to another request.
func (o *Once) Decode(response []byte, result any) error {
	if o.Encode != nil {
		o.first = response
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(response))
	unlike := o.known != nil && o.foreign()
	if unlike {
		d.DisallowUnknownFields()
	}
	switch err := d.Decode(result); {
	case err != nil && unlike:
		return o.mismatch()
	case err != nil:
		return fmt.Errorf("storage: reading the first response to idempotency key %q: %w", o.Key, err)
	}
	return nil
}

// First is the response that a service found and did not decode, nil = none.
func (o *Once) First() []byte { return o.first }

// AddTo puts the response into the Change that causes it. Call it after Find.
func (o *Once) AddTo(c *Change, now time.Time, result any) error {
	if o.Key == "" {
		return nil
	}
	encode := o.Encode
	if encode == nil {
		encode = json.Marshal
	}
	response, err := encode(result)
	if err != nil {
		return fmt.Errorf("storage: encoding the response to keep: %w", err)
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

// Enter marks the key as running until leave is called, or returns an error that wraps
// ErrInProgress. leave is never nil.
func (f *InFlight) Enter(p Partition, o *Once) (leave func(), err error) {
	if o.Key == "" {
		return func() {}, nil
	}
	k := inFlightKey{p, o.Key}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, running := f.keys[k]; running {
		return func() {}, fmt.Errorf("%w: %q", ErrInProgress, o.Key)
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
