package rates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"
)

// Source is one place that knows prices. It returns what it was told, with the
// time it was told for; it neither caches nor retries.
type Source interface {
	Name() string
	Price(ctx context.Context, token, fiat string) (Rate, error)
}

// MedianConfig refines a Median. Sources and Now are required.
type MedianConfig struct {
	Sources []Source
	Now     func() time.Time
	Log     *slog.Logger // Defaults to discarding.
	// Quorum is how many sources must agree. Defaults to 2, or to 1 where there
	// is one source.
	Quorum int
	// Spread is how far from the median, in basis points, a price may be before
	// it is left out. Defaults to 200 (2 %).
	Spread int64
	// CacheFor is how long an answer is used before the sources are asked again.
	// Defaults to 30 s.
	CacheFor time.Duration
	// MaxAge is the age after which a price is no price any more, also when the
	// sources do not answer. Defaults to 5 min.
	MaxAge time.Duration
	// Timeout bounds one round of questions. Defaults to 5 s.
	Timeout time.Duration
	// MaxChange, in basis points, is how far one answer may be from the last
	// before it is refused until MaxAge has passed. Defaults to 3000 (30 %).
	MaxChange int64
	// Retry is how long the sources are left alone after they gave no price.
	// Defaults to 3 s.
	Retry time.Duration
}

// Median asks several sources, leaves out what is old, absurd or far from the
// rest, and answers with the median of what remains. Safe for concurrent use;
// one pair is asked for once at a time.
type Median struct {
	cfg   MedianConfig
	mu    sync.Mutex
	pairs map[[2]string]*pair
}

type pair struct {
	turn  chan struct{} // of one: whoever holds it may read and write the rest
	last  Rate
	asked time.Time // when last was got
	tried time.Time // when err was got; zero after a success
	err   error
	users int // under Median.mu
}

// NewMedian checks the configuration. It does no I/O.
func NewMedian(cfg MedianConfig) (*Median, error) {
	if len(cfg.Sources) == 0 || cfg.Now == nil {
		return nil, errors.New("rates: Median needs Sources and Now")
	}
	if cfg.Quorum == 0 {
		cfg.Quorum = min(2, len(cfg.Sources))
	}
	if cfg.Quorum < 1 || cfg.Quorum > len(cfg.Sources) {
		return nil, fmt.Errorf("rates: a quorum of %d cannot come of %d sources", cfg.Quorum, len(cfg.Sources))
	}
	if cfg.Spread < 0 || cfg.MaxChange < 0 || cfg.CacheFor < 0 || cfg.MaxAge < 0 || cfg.Timeout < 0 || cfg.Retry < 0 {
		return nil, errors.New("rates: no bound of a Median may be negative")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	or(&cfg.Spread, 200)
	or(&cfg.MaxChange, 3000)
	or(&cfg.CacheFor, 30*time.Second)
	or(&cfg.MaxAge, 5*time.Minute)
	or(&cfg.Timeout, 5*time.Second)
	or(&cfg.Retry, 3*time.Second)
	return &Median{cfg: cfg, pairs: map[[2]string]*pair{}}, nil
}

func or[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// Rate implements Rates.
func (m *Median) Rate(ctx context.Context, token, fiat string) (Rate, error) {
	p := m.enter([2]string{token, fiat})
	defer m.leave([2]string{token, fiat}, p)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return Rate{}, fmt.Errorf("%w: %s in %s: %w", ErrUnavailable, token, fiat, ctx.Err())
	}
	now := m.cfg.Now()
	usable := !p.asked.IsZero() && age(now, p.last.At) <= m.cfg.MaxAge
	if usable && age(now, p.asked) < m.cfg.CacheFor {
		return p.last, nil
	}
	if p.tried.IsZero() || age(now, p.tried) >= m.cfg.Retry {
		m.renew(ctx, p, token, fiat, now, usable)
		usable = !p.asked.IsZero() && age(now, p.last.At) <= m.cfg.MaxAge
	}
	switch {
	case p.err == nil || usable && !errors.Is(p.err, errJump):
		return p.last, nil
	default:
		return Rate{}, p.err
	}
}

// errJump: the sources agree on a price that is too far from the last one. Not
// even the last one is given then: one of the two is wrong.
var errJump = errors.New("it moved too far at once")

// renew asks the sources and keeps what came of it.
func (m *Median) renew(ctx context.Context, p *pair, token, fiat string, now time.Time, usable bool) {
	fresh, err := m.ask(ctx, token, fiat, now)
	if err == nil && usable && apart(fresh.Price, p.last.Price, m.cfg.MaxChange) {
		err = fmt.Errorf("%w: %s in %s: %w", ErrUnavailable, token, fiat, errJump)
	}
	p.err = err
	if err == nil {
		p.last, p.asked, p.tried = fresh, now, time.Time{}
		return
	}
	if ctx.Err() == nil { // else it is the caller who gave up, not the sources
		p.tried = now
	}
	m.cfg.Log.WarnContext(ctx, "price_not_renewed", slog.String("token", token), slog.String("fiat", fiat), slog.Any("error", err))
}

func (m *Median) enter(key [2]string) *pair {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pairs[key]
	if p == nil {
		p = &pair{turn: make(chan struct{}, 1)}
		m.pairs[key] = p
	}
	p.users++
	return p
}

// leave forgets pairs that nobody has a price for: what is asked for may come
// from outside, and there is no end of names.
func (m *Median) leave(key [2]string, p *pair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.users--; p.users == 0 && p.asked.IsZero() && (p.tried.IsZero() || len(m.pairs) > maxPairs) {
		delete(m.pairs, key)
	}
}

// maxPairs is how many pairs without a price are remembered, so that their
// sources are left alone for Retry.
const maxPairs = 256

// age never is negative: a clock that went back makes nothing younger.
func age(now, at time.Time) time.Duration {
	d := now.Sub(at)
	if d < 0 {
		return -d
	}
	return d
}

func (m *Median) ask(ctx context.Context, token, fiat string, now time.Time) (Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	answers := make([]Rate, len(m.cfg.Sources))
	errs := make([]error, len(m.cfg.Sources))
	var g errgroup.Group
	for i, s := range m.cfg.Sources {
		g.Go(func() error {
			answers[i], errs[i] = s.Price(ctx, token, fiat)
			return nil
		})
	}
	_ = g.Wait() // the functions return no error
	var good []Rate
	for i, a := range answers {
		switch {
		case errs[i] != nil:
		case a.Token != token || a.Fiat != fiat:
			errs[i] = errors.New("price of another pair")
		case !a.Price.IsPositive() || a.Price.Exponent() < -40 || a.Price.Exponent() > 18 || a.Price.NumDigits() > 40:
			errs[i] = errors.New("absurd price")
		case age(now, a.At) > m.cfg.MaxAge:
			errs[i] = errors.New("old price")
		default:
			good = append(good, a)
			continue
		}
		errs[i] = fmt.Errorf("%s: %w", m.cfg.Sources[i].Name(), errs[i])
	}
	return m.agree(token, fiat, good, errors.Join(errs...))
}

// agree is the median of those that are near it, with the oldest one's time.
func (m *Median) agree(token, fiat string, good []Rate, failed error) (Rate, error) {
	if len(good) > 0 {
		mid := median(good)
		good = slices.DeleteFunc(good, func(r Rate) bool { return apart(r.Price, mid, m.cfg.Spread) })
	}
	if len(good) < m.cfg.Quorum {
		return Rate{}, fmt.Errorf("%w: %s in %s: %d of %d sources agree: %w", ErrUnavailable, token, fiat, len(good), m.cfg.Quorum,
			errors.Join(failed, errNoQuorum))
	}
	r := Rate{Token: token, Fiat: fiat, Price: median(good), At: good[0].At}
	for _, g := range good {
		if g.At.Before(r.At) {
			r.At = g.At
		}
	}
	return r, nil
}

var errNoQuorum = errors.New("no quorum")

// median is the middle price, or exactly between the two middle ones.
func median(rates []Rate) decimal.Decimal {
	s := slices.SortedFunc(slices.Values(rates), func(a, b Rate) int { return a.Price.Cmp(b.Price) })
	n := len(s)
	if n%2 == 1 {
		return s[n/2].Price
	}
	return s[n/2-1].Price.Add(s[n/2].Price).Mul(decimal.New(5, -1))
}

// apart says whether a is more than bp basis points of b away from it.
func apart(a, b decimal.Decimal, bp int64) bool {
	return a.Sub(b).Abs().Mul(decimal.New(10_000, 0)).GreaterThan(b.Mul(decimal.New(bp, 0)))
}
