package auth

import (
	linked "container/list"
	"context"
	"sync"
	"time"
)

// How wrong credentials slow somebody down: the first few are free, then each doubles
// the wait, up to a minute. A quiet while forgets them.
const (
	freeGuesses = 10 // of one client's secret, from one address
	freeWrong   = 60 // of one kind of credential, from one address
	spareReads  = 20 // a second, of one kind and address that has to wait: of what cannot be guessed
	firstWait   = time.Second
	longestWait = time.Minute
	forgotten   = 10 * time.Minute
)

// maxGuesses bounds how many counts are kept, and how many credentials are remembered as
// right. The one that was used longest ago goes.
const maxGuesses = 20_000

// The kinds of credentials that are counted apart.
const (
	ofClients = "client"
	ofTokens  = "token"
	ofKeys    = "key"
)

type addressKey struct{}

// WithAddress names where a request comes from: wrong credentials are counted by it, so
// that nobody is made to wait for the guesses of another address. Give one name to all
// addresses that one customer of a provider has, such as the /64 of IPv6. Requests
// without one are counted as if they came from one address.
func WithAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

func addressOf(ctx context.Context) string {
	a, _ := ctx.Value(addressKey{}).(string)
	return a
}

// guesses counts wrong credentials, in this process only: n processes let through n
// times as many. It is asked before anything is read. Its memory is bounded. Counts are
// of an address, and of an address and a client: guesses from elsewhere slow nobody. A
// credential that was right before is always looked at, so that one who shares an
// address with somebody who guesses goes on.
type guesses struct {
	mu     sync.Mutex
	counts recent[guessKey, guess]
	good   recent[string, holder] // by keyed hash
}

// holder is whose credential it was when it was right last. It says what to read beside
// the credential, and opens nothing: the credential is read at each use.
type holder struct{ client, tenant string }

type guessKey struct{ kind, address, client string }

type guess struct {
	wrong  int32
	last   int64 // µs, of the last one counted
	second int64 // in which so many were
	spared int32 // looked at all the same
}

// attempt is one use of a credential.
type attempt struct {
	keys []guessKey
	free []int32
	hash string // of the credential, keyed
	who  holder // for right
	made bool   // it has the form of one that we made, which nobody can guess
	now  time.Time
}

// attempt describes a use of a credential; client is "" but for client credentials.
func (s *Service) attempt(ctx context.Context, kind, client, hash string) attempt {
	address := addressOf(ctx)
	a := attempt{keys: []guessKey{{kind: kind, address: address}}, free: []int32{freeWrong}, hash: hash, now: s.now()}
	if kind == ofClients {
		a.keys, a.free = append(a.keys, guessKey{kind, address, client}), append(a.free, freeGuesses)
	}
	return a
}

// holder is whose a credential was; ok is false where it is not remembered.
func (g *guesses) holder(hash string) (h holder, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.good.get(hash)
}

// wait is how long the address still has to wait, 0 where the credential is looked at.
func (g *guesses) wait(a attempt) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.good.get(a.hash); ok {
		return 0
	}
	left := g.left(a)
	if left > 0 && a.made && g.spare(a) {
		return 0
	}
	return left
}

// spare reports whether a credential is looked at although its address has to wait: it
// cannot be guessed, and may be right, such as a token that another process issued to
// somebody behind the same address.
func (g *guesses) spare(a attempt) bool {
	v, _ := g.counts.get(a.keys[0])
	if second := a.now.Unix(); v.second != second {
		v.second, v.spared = second, 0
	}
	if v.spared >= spareReads {
		return false
	}
	v.spared++
	g.counts.put(a.keys[0], v)
	return true
}

func (g *guesses) left(a attempt) (left time.Duration) {
	for i, k := range a.keys {
		v, _ := g.counts.get(k)
		since := v.since(a.now)
		if since < forgotten {
			left = max(left, waitAfter(v.wrong, a.free[i])-since)
		}
	}
	return left
}

// wrong counts a credential that opened nothing, and says how long others that came at
// the same time have made it wait: 0 where it counted.
func (g *guesses) wrong(a attempt) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good.drop(a.hash)
	if left := g.left(a); left > 0 {
		return left
	}
	for _, k := range a.keys {
		v, _ := g.counts.get(k)
		if v.since(a.now) >= forgotten {
			v.wrong = 0
		}
		v.wrong, v.last = min(v.wrong+1, 1<<20), a.now.UnixMicro()
		g.counts.put(k, v)
	}
	return 0
}

// right forgets the wrong secrets of a client from this address. The count of the
// address stays: who has one right credential is not free to guess others.
func (g *guesses) right(a attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good.put(a.hash, a.who)
	for _, k := range a.keys[1:] {
		g.counts.drop(k)
	}
}

// since is the time from the last wrong one; a clock that was set back makes nobody wait
// longer.
func (v guess) since(now time.Time) time.Duration {
	return time.Duration(max(0, now.UnixMicro()-v.last)) * time.Microsecond
}

// waitAfter is the wait that follows the n-th wrong credential.
func waitAfter(n, free int32) time.Duration {
	if n < free {
		return 0
	}
	if n -= free; n > 10 {
		return longestWait
	}
	return min(firstWait<<n, longestWait)
}

// recent is a map of at most maxGuesses keys: the one used longest ago goes.
type recent[K comparable, V any] struct {
	at    map[K]*linked.Element
	order linked.List // of *used[K, V], the latest last
}

type used[K comparable, V any] struct {
	key   K
	value V
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	e, ok := r.at[k]
	if !ok {
		return v, false
	}
	r.order.MoveToBack(e)
	return e.Value.(*used[K, V]).value, true
}

func (r *recent[K, V]) put(k K, v V) {
	if e, ok := r.at[k]; ok {
		e.Value.(*used[K, V]).value = v
		r.order.MoveToBack(e)
		return
	}
	if r.at == nil {
		r.at = map[K]*linked.Element{}
	}
	for len(r.at) >= maxGuesses {
		r.drop(r.order.Front().Value.(*used[K, V]).key)
	}
	r.at[k] = r.order.PushBack(&used[K, V]{k, v})
}

func (r *recent[K, V]) drop(k K) {
	if e, ok := r.at[k]; ok {
		r.order.Remove(e)
		delete(r.at, k)
	}
}
