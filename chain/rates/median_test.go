package rates_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// market is the outside world: sources that say what a test wants, and a clock.
type market struct {
	t     *testing.T
	mu    sync.Mutex
	clock time.Time
	feeds []*feed
}

type feed struct {
	m     *market
	name  string
	price string // "" = an error
	lag   time.Duration
	asked atomic.Int64
	other string           // another token in the answer
	block chan struct{}    // hangs until closed or the context ends
	raw   *decimal.Decimal // in place of price
	hook  func()           // runs when it is asked
}

var errDown = errors.New("down")

func (f *feed) Name() string { return f.name }

func (f *feed) Price(ctx context.Context, token, fiat string) (rates.Rate, error) {
	f.asked.Add(1)
	if f.hook != nil {
		f.hook()
	}
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return rates.Rate{}, ctx.Err()
		}
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.price == "" && f.raw == nil {
		return rates.Rate{}, errDown
	}
	if f.other != "" {
		token = f.other
	}
	r := rates.Rate{Token: token, Fiat: fiat, At: f.m.clock.Add(-f.lag)}
	if f.raw != nil {
		r.Price = *f.raw
	} else {
		r.Price = decimal.RequireFromString(f.price)
	}
	return r, nil
}

func newMarket(t *testing.T, prices ...string) *market {
	m := &market{t: t, clock: noon}
	for i, p := range prices {
		m.feeds = append(m.feeds, &feed{m: m, name: fmt.Sprint("feed", i), price: p})
	}
	return m
}

func (m *market) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

func (m *market) median(edit ...func(*rates.MedianConfig)) *rates.Median {
	c := rates.MedianConfig{Now: m.now}
	for _, f := range m.feeds {
		c.Sources = append(c.Sources, f)
	}
	for _, e := range edit {
		e(&c)
	}
	r, err := rates.NewMedian(c)
	require.NoError(m.t, err)
	return r
}

func (m *market) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = m.clock.Add(d)
}

func (m *market) set(prices ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, p := range prices {
		m.feeds[i].price = p
	}
}

func is(t *testing.T, m *rates.Median, want string) rates.Rate {
	t.Helper()
	r, err := m.Rate(t.Context(), "BTC", "USD")
	require.NoError(t, err)
	require.True(t, decimal.RequireFromString(want).Equal(r.Price), "%s, not %s", r.Price, want)
	require.Equal(t, "BTCUSD", r.Token+r.Fiat)
	return r
}

func none(t *testing.T, m *rates.Median) error {
	t.Helper()
	r, err := m.Rate(t.Context(), "BTC", "USD")
	require.ErrorIs(t, err, rates.ErrUnavailable)
	require.Zero(t, r)
	return err
}

func TestMedian_Agreement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prices []string
		want   string // "" = none
	}{
		{[]string{"100"}, "100"},
		{[]string{"100", "101"}, "100.5"},
		{[]string{"100", "105"}, ""},
		{[]string{"100", "101", "102"}, "101"},
		{[]string{"100", "100.5", "1"}, "100.25"}, // an outlier counts for nothing
		{[]string{"100", "100.5", "1000000"}, "100.25"},
		{[]string{"100", "200", "300"}, ""},
		{[]string{"100", "100", "200", "200"}, ""},
		{[]string{"100", "", "100.2"}, "100.1"},
		{[]string{"100", "", ""}, ""}, // one voice is no agreement
		{[]string{"", "", ""}, ""},
		{[]string{"0.000000001", "0.000000001", "0.00000000101"}, "0.000000001"},
		{[]string{"100", "100", "-100"}, "100"},
		{[]string{"100", "0", "0"}, ""},
		{[]string{"3", "1", "2", "2", "2"}, "2"},
	} {
		m := newMarket(t, c.prices...)
		r := m.median()
		if c.want == "" {
			none(t, r)
		} else {
			is(t, r, c.want)
		}
	}
	m := newMarket(t, "100", "100", "")
	require.ErrorIs(t, none(t, m.median(func(c *rates.MedianConfig) { c.Quorum = 3 })), errDown, "it says who failed and why")
}

func TestW18_AbsurdPrices(t *testing.T) {
	t.Parallel()
	huge, tiny, long := decimal.New(1, 1<<30), decimal.New(1, -1<<30), decimal.RequireFromString("1"+fmt.Sprintf("%050d", 1))
	for _, bad := range []decimal.Decimal{huge, tiny, long, {}, decimal.New(-5, 0)} {
		m := newMarket(t, "100", "100")
		m.feeds[0].raw, m.feeds[1].raw = &bad, &bad
		none(t, m.median())
	}
	m := newMarket(t, "100", "100", "100") // an answer for another pair
	m.feeds[0].other, m.feeds[1].other = "ETH", "ETH"
	none(t, m.median())
}

// TestW18_Jump: a price that moves too far at once is not believed until the
// last good one is too old to contradict it; meanwhile there is none at all.
func TestW18_Jump(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "67000", "67000")
	r := m.median()
	is(t, r, "67000")
	m.set("0.67", "0.67") // somebody's decimal point
	m.advance(31 * time.Second)
	none(t, r)
	m.advance(10 * time.Second)
	none(t, r)
	m.set("66000", "66000")
	m.advance(10 * time.Second)
	is(t, r, "66000")
	m.set("30000", "30000") // a real crash
	for range 9 {
		m.advance(31 * time.Second)
		none(t, r)
	}
	m.advance(31 * time.Second)
	is(t, r, "30000")
	m.set("38999", "38999") // within 30 %
	m.advance(31 * time.Second)
	is(t, r, "38999")
}

func TestMedian_CacheAndAge(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "100", "100")
	r := m.median()
	is(t, r, "100")
	m.set("101", "101")
	m.advance(29 * time.Second)
	is(t, r, "100")
	require.EqualValues(t, 1, m.feeds[0].asked.Load())
	m.advance(time.Second)
	is(t, r, "101")

	// The sources fail: the last price serves as long as it is young enough.
	m.set("", "")
	got := m.now()
	m.advance(5 * time.Minute)
	require.Equal(t, got, is(t, r, "101").At)
	m.advance(3 * time.Second)
	none(t, r)
	m.set("102", "")
	m.advance(3 * time.Second)
	none(t, r) // one alone is not enough, however long it takes
	m.set("102", "102")
	m.advance(3 * time.Second)
	is(t, r, "102")

	// Prices that are old already when they come are none.
	m.advance(time.Hour)
	m.feeds[0].lag = 5*time.Minute + time.Second
	none(t, r)
	m.advance(time.Minute)
	m.feeds[0].lag = 4 * time.Minute
	require.Equal(t, m.now().Add(-4*time.Minute), is(t, r, "102").At, "as old as the oldest of them")
	m.advance(time.Minute + time.Second) // and it ages on
	m.set("", "")
	none(t, r)
}

func TestMedian_Clock(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "100", "100")
	r := m.median()
	is(t, r, "100")
	for range 5 { // a clock that stands still asks no more
		is(t, r, "100")
	}
	require.EqualValues(t, 1, m.feeds[0].asked.Load())
	m.set("101", "101")
	m.advance(-time.Hour) // back: what comes from the future is no younger for it
	is(t, r, "101")
	m.set("", "")
	m.advance(-time.Hour)
	none(t, r)
	m.set("102", "102")
	m.advance(100 * 365 * 24 * time.Hour)
	is(t, r, "102")
	m.advance(5 * time.Second)
	m.feeds[0].lag, m.feeds[1].lag = -10*time.Minute, -10*time.Minute // sources in the future
	m.advance(time.Minute)
	is(t, r, "102") // the last one still serves
	require.Less(t, r.Pairs(), 2)
}

// TestMedian_SourcesAreLeftAlone: after a failure nobody hammers them.
func TestMedian_SourcesAreLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "", "")
	var logs bytes.Buffer
	r := m.median(func(c *rates.MedianConfig) { c.Log = slog.New(slog.NewTextHandler(&logs, nil)) })
	for range 50 {
		none(t, r)
	}
	require.EqualValues(t, 1, m.feeds[0].asked.Load())
	require.Contains(t, logs.String(), "price_not_renewed")
	m.advance(3 * time.Second)
	m.set("100", "100")
	is(t, r, "100")
	// Whoever gives up takes nobody's answer away.
	m.advance(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.feeds[0].block, m.feeds[1].block = make(chan struct{}), make(chan struct{})
	_, err := r.Rate(ctx, "BTC", "USD")
	require.ErrorIs(t, err, rates.ErrUnavailable)
	close(m.feeds[0].block)
	close(m.feeds[1].block)
	is(t, r, "100")
}

// TestMedian_NamesWithoutEnd: asking for what nobody has fills no memory.
func TestMedian_NamesWithoutEnd(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "", "")
	r := m.median()
	for i := range 5000 {
		_, err := r.Rate(t.Context(), fmt.Sprint("T", i), "USD")
		require.ErrorIs(t, err, rates.ErrUnavailable)
	}
	require.LessOrEqual(t, r.Pairs(), 300)
}

func TestMedian_Concurrent(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "100", "100", "100")
	r := m.median()
	gate := make(chan struct{})
	m.feeds[0].block = gate
	var wg sync.WaitGroup
	var good atomic.Int64
	for range 50 {
		wg.Go(func() {
			if got, err := r.Rate(t.Context(), "BTC", "USD"); err == nil && got.Price.Equal(decimal.New(100, 0)) {
				good.Add(1)
			}
		})
	}
	// One who does not want to wait need not, and another pair is not held up.
	for m.feeds[0].asked.Load() == 0 {
		m.now()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := r.Rate(ctx, "BTC", "USD")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(gate)
	wg.Wait()
	require.EqualValues(t, 50, good.Load())
	require.EqualValues(t, 1, m.feeds[0].asked.Load(), "one pair is asked for once at a time")

	rng := rand.New(rand.NewPCG(1, 1))
	tokens := make([]string, 400)
	for i := range tokens {
		tokens[i] = fmt.Sprint("T", rng.IntN(20))
	}
	for _, token := range tokens {
		wg.Go(func() {
			got, err := r.Rate(t.Context(), token, "EUR")
			if err != nil || got.Token != token {
				t.Errorf("%s: %v %v", token, got, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 21, r.Pairs())
}

func TestMedian_SlowSource(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "100", "100", "100")
	m.feeds[2].block = make(chan struct{}) // never answers
	begin := time.Now()
	is(t, m.median(func(c *rates.MedianConfig) { c.Timeout = 50 * time.Millisecond }), "100")
	require.Less(t, time.Since(begin), 10*time.Second)
}

func TestNewMedianRefuses(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "1", "1")
	good := rates.MedianConfig{Sources: []rates.Source{m.feeds[0], m.feeds[1]}, Now: now}
	for name, edit := range map[string]func(c *rates.MedianConfig){
		"no sources": func(c *rates.MedianConfig) { c.Sources = nil },
		"no clock":   func(c *rates.MedianConfig) { c.Now = nil },
		"quorum":     func(c *rates.MedianConfig) { c.Quorum = 3 },
		"no quorum":  func(c *rates.MedianConfig) { c.Quorum = -1 },
		"spread":     func(c *rates.MedianConfig) { c.Spread = -1 },
		"age":        func(c *rates.MedianConfig) { c.MaxAge = -1 },
	} {
		c := good
		edit(&c)
		_, err := rates.NewMedian(c)
		require.Error(t, err, name)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	f := rates.NewFixed(now, "USD", map[string]string{"BTC": "67000.5"})
	r, err := f.Rate(t.Context(), "BTC", "USD")
	require.NoError(t, err)
	require.Equal(t, noon, r.At)
	for _, pair := range [][2]string{{"BTC", "EUR"}, {"ETH", "USD"}} {
		_, err = f.Rate(t.Context(), pair[0], pair[1])
		require.ErrorIs(t, err, rates.ErrUnavailable)
	}
	f.Set("ETH", "EUR", decimal.New(25, 2))
	_, err = f.Rate(t.Context(), "ETH", "EUR")
	require.NoError(t, err)
	for _, bad := range []string{"0", "-1", "NaN", "", "1e5"} {
		require.Panics(t, func() { rates.NewFixed(now, "USD", map[string]string{"BTC": bad}) }, bad)
	}
}
