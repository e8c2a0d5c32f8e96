// Package redislimit is limit.Limiter over Redis: one count for all processes
// that share it.
//
// It promises what package limit does. Each Take is one Lua script, so it is
// judged and counted at once, and one round trip. Counters expire by themselves.
// The keys of one Take carry the same hash tag, so it works on a cluster. What
// stands in Redis is a digest of the key, never the key.
//
// It needs Redis 4 or newer, or what speaks its protocol and Lua. A Redis that
// loses its memory or evicts keys (maxmemory-policy) forgets counts, no more: it
// is no place for money, and none is kept here.
package redislimit

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/httpapi/limit"
)

//go:embed take.lua
var source string

var take = redis.NewScript(source)

// Limiter counts in Redis. It may be used concurrently.
type Limiter struct {
	client redis.UniversalClient
	prefix string
}

// New counts under keys that begin with prefix, which has no braces and is the
// same in every process. The client stays the caller's.
func New(client redis.UniversalClient, prefix string) *Limiter {
	return &Limiter{client, prefix}
}

// Take is limit.Limiter's. Where Redis does not answer, the error says so and
// the request may or may not have been counted: whether it is let in is the
// caller's to decide.
func (l *Limiter) Take(ctx context.Context, key string, now time.Time, rules ...limit.Rule) (limit.State, error) {
	if err := limit.Check(rules); err != nil || len(rules) == 0 {
		return limit.State{Allowed: err == nil}, err
	}
	keys := make([]string, len(rules))
	args := make([]any, 0, 1+2*len(rules))
	args = append(args, now.UnixMicro())
	tag := digest(key)
	for i, r := range rules {
		keys[i] = l.prefix + "{" + tag + "}" + r.Name
		args = append(args, r.Max, max(r.Window.Microseconds(), 1))
	}
	got, err := take.Run(ctx, l.client, keys, args...).StringSlice()
	if err != nil {
		return limit.State{}, fmt.Errorf("redislimit: %w", err)
	}
	windows, err := parse(got, len(rules))
	if err != nil {
		return limit.State{}, err
	}
	return limit.Judge(rules, windows), nil
}

// parse reads what the script answers: start (µs) and count of each window as it
// stood before the request.
func parse(got []string, n int) ([]limit.Window, error) {
	if len(got) != 2*n {
		return nil, fmt.Errorf("redislimit: %d values instead of %d", len(got), 2*n)
	}
	windows := make([]limit.Window, n)
	for i := range windows {
		start, err := strconv.ParseInt(got[2*i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("redislimit: reading a window's start: %w", err)
		}
		count, err := strconv.Atoi(got[2*i+1])
		if err != nil {
			return nil, fmt.Errorf("redislimit: reading a window's count: %w", err)
		}
		windows[i] = limit.Window{Start: time.UnixMicro(start).UTC(), Count: count}
	}
	return windows, nil
}

// digest is short, and keeps who called out of Redis. It has no braces, so it is
// a whole hash tag.
func digest(key string) string {
	d := sha256.Sum256([]byte(key))
	return hex.EncodeToString(d[:16])
}
