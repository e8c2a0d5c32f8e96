package rates_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
)

var noon = time.Unix(1795176000, 0).UTC() // of the answers in testdata

func now() time.Time { return noon }

// answers serves one answer to every question and keeps the last question.
func answers(t testing.TB, status int, body string) (base string, asked *atomic.Value) {
	asked = new(atomic.Value)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.RequestURI())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func file(t testing.TB, name string) string {
	b, err := os.ReadFile("testdata/" + name + ".json")
	require.NoError(t, err)
	return string(b)
}

var sources = map[string]func(rates.LiveOptions) *rates.Live{
	"coingecko": rates.CoinGecko, "coinbase": rates.Coinbase, "kraken": rates.Kraken, "binance": rates.Binance,
}

func TestLive_Documented(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, answer, token, fiat, price, asked string }{
		{"coingecko", "coingecko_btc_usd", "BTC", "USD", "67187.3358936566", "/api/v3/simple/price?ids=bitcoin&include_last_updated_at=true&precision=full&vs_currencies=usd"},
		{"coingecko", "coingecko_dai_eur", "DAI", "EUR", "0.92", "/api/v3/simple/price?ids=dai&include_last_updated_at=true&precision=full&vs_currencies=eur"},
		{"coinbase", "coinbase_btc_usd", "BTC", "USD", "67190.125", "/v2/prices/BTC-USD/spot"},
		{"kraken", "kraken_btc_usd", "BTC", "USD", "67195.00000", "/0/public/Ticker?pair=XBTUSD"},
		{"kraken", "kraken_doge_usd", "DOGE", "USD", "0.16125", "/0/public/Ticker?pair=XDGUSD"},
		{"binance", "binance_btc_usdt", "BTC", "USD", "67189.99000000", "/api/v3/ticker/price?symbol=BTCUSDT"},
	} {
		base, asked := answers(t, 200, file(t, c.answer))
		l := sources[c.source](rates.LiveOptions{Now: now, Base: base + "/"})
		require.Equal(t, c.source, l.Name())
		r, err := l.Price(t.Context(), c.token, c.fiat)
		require.NoError(t, err, c.answer)
		want, err := ledger.ParsePlain(c.price)
		require.NoError(t, err)
		require.True(t, want.Equal(r.Price), "%s: %s", c.answer, r.Price)
		require.Equal(t, [3]any{c.token, c.fiat, noon}, [3]any{r.Token, r.Fiat, r.At})
		require.Equal(t, c.asked, asked.Load())
	}
}

// TestW18_NoPriceIsNoPrice: errors that come with status 200, another pair,
// nonsense, and numbers that are none.
func TestW18_NoPriceIsNoPrice(t *testing.T) {
	t.Parallel()
	for source, bodies := range map[string][]string{
		"coingecko": {
			file(t, "coingecko_limited"), file(t, "coingecko_unknown"), `{"ethereum":{"usd":2500,"last_updated_at":1795176000}}`,
			`{"bitcoin":{"eur":60000,"last_updated_at":1795176000}}`, `{"bitcoin":{"usd":67000}}`, `{"bitcoin":{"usd":67000,"last_updated_at":1795176061}}`,
			`{"bitcoin":{"usd":null,"last_updated_at":1795176000}}`, `{"bitcoin":{"usd":0,"last_updated_at":1795176000}}`, `{"bitcoin":{"usd":-1,"last_updated_at":1795176000}}`,
			`{"bitcoin":{"usd":1e400,"last_updated_at":1795176000}}`, `{"bitcoin":{"usd":1e99999999999,"last_updated_at":1795176000}}`,
			`{"bitcoin":{"usd":NaN,"last_updated_at":1795176000}}`, `{"bitcoin":{"usd":"NaN","last_updated_at":1795176000}}`, `{"bitcoin":{"usd":67000,"last_updated_at":1.5}}`,
		},
		"coinbase": {
			file(t, "coinbase_unknown"), `{"data":{"amount":"2500","base":"ETH","currency":"USD"}}`, `{"data":{"amount":"60000","base":"BTC","currency":"EUR"}}`,
			`{"data":{"amount":"","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"NaN","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"Infinity","base":"BTC","currency":"USD"}}`,
			`{"data":{"amount":"67,000.1","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"0x10","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"1_000","base":"BTC","currency":"USD"}}`,
			`{"data":{"amount":"0.000","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"-67000","base":"BTC","currency":"USD"}}`, `{"data":{"amount":67000,"base":"BTC","currency":"USD"}}`,
			`{"data":{"amount":"` + strings.Repeat("9", 41) + `","base":"BTC","currency":"USD"}}`, `{"data":{"amount":" 67000","base":"BTC","currency":"USD"}}`,
			`{"data":{"amount":"1e2147483647","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"1e","base":"BTC","currency":"USD"}}`, `{"data":{"amount":"e5","base":"BTC","currency":"USD"}}`,
		},
		"kraken": {
			file(t, "kraken_unknown"), file(t, "kraken_limited"), file(t, "kraken_doge_usd"), `{"error":[],"result":{}}`, `{"error":[],"result":{"XXBTZUSD":{"c":[]}}}`,
			`{"error":[],"result":{"XETHZUSD":{"c":["2500","1"]}}}`, `{"error":[],"result":{"XXBTZEUR":{"c":["60000","1"]}}}`,
			`{"error":[],"result":{"XXBTZUSD":{"c":["67000","1"]},"XETHZUSD":{"c":["2500","1"]}}}`, `{"error":["EService:Busy"],"result":{"XXBTZUSD":{"c":["67000","1"]}}}`,
		},
		"binance": {
			file(t, "binance_unknown"), `{"symbol":"ETHUSDT","price":"2500"}`, `{"symbol":"BTCUSDC","price":"67000"}`, `{"symbol":"BTCUSDT"}`, `{"symbol":"BTCUSDT","price":67000}`,
		},
	} {
		good := map[string]string{"coingecko": "coingecko_btc_usd", "coinbase": "coinbase_btc_usd", "kraken": "kraken_btc_usd", "binance": "binance_btc_usdt"}[source]
		bodies = append(bodies, "", "null", "[]", `"x"`, "<html>502</html>", "{", file(t, good)+"{}", file(t, good)+"x")
		for _, body := range bodies {
			base, _ := answers(t, 200, body)
			r, err := sources[source](rates.LiveOptions{Now: now, Base: base}).Price(t.Context(), "BTC", "USD")
			require.Error(t, err, "%s: %s", source, body)
			require.Zero(t, r)
		}
		for _, status := range []int{204, 301, 302, 400, 429, 500, 503} {
			base, _ := answers(t, status, file(t, good))
			_, err := sources[source](rates.LiveOptions{Now: now, Base: base}).Price(t.Context(), "BTC", "USD")
			require.Error(t, err, "%s: %d", source, status)
		}
		base, asked := answers(t, 200, file(t, good))
		for _, pair := range [][2]string{{"", "USD"}, {"BTC", ""}, {"btc", "USD"}, {"BTC/../x", "USD"}, {"BTC", "USD&x=y"}, {"B", "USD"}, {"ABCDEFGHIJKLM", "USD"}} {
			_, err := sources[source](rates.LiveOptions{Now: now, Base: base}).Price(t.Context(), pair[0], pair[1])
			require.Error(t, err, pair)
		}
		require.Nil(t, asked.Load(), "nothing of that is asked for")
	}
}

func TestLive_Bounds(t *testing.T) {
	t.Parallel()
	// A body without an end is not read to the end.
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pad := strings.Repeat(" ", 1<<16)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(pad)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	_, err := rates.Coinbase(rates.LiveOptions{Base: endless.URL}).Price(t.Context(), "BTC", "USD")
	require.ErrorContains(t, err, "bytes")
	// One that is whole but too long is no answer, even if its start is one.
	base, _ := answers(t, 200, file(t, "coinbase_btc_usd")+strings.Repeat(" ", 70<<10))
	_, err = rates.Coinbase(rates.LiveOptions{Base: base}).Price(t.Context(), "BTC", "USD")
	require.ErrorContains(t, err, "bytes")
	// Redirects lead nowhere.
	target, asked := answers(t, 200, file(t, "coinbase_btc_usd"))
	redirect := httptest.NewServer(http.RedirectHandler(target, http.StatusFound))
	t.Cleanup(redirect.Close)
	_, err = rates.Coinbase(rates.LiveOptions{Base: redirect.URL}).Price(t.Context(), "BTC", "USD")
	require.Error(t, err)
	require.Nil(t, asked.Load())
	_, err = rates.Coinbase(rates.LiveOptions{Base: "http://127.0.0.1:1"}).Price(t.Context(), "BTC", "USD")
	require.Error(t, err)
	_, err = rates.Coinbase(rates.LiveOptions{Base: ":"}).Price(t.Context(), "BTC", "USD")
	require.Error(t, err)
	_, err = rates.Binance(rates.LiveOptions{Base: base}).Price(t.Context(), "USDT", "USD")
	require.Error(t, err)
	_, err = rates.CoinGecko(rates.LiveOptions{Base: base}).Price(t.Context(), "NOSUCH", "USD")
	require.Error(t, err)
}

// TestI07_GlobalsOfTheHost flips what a host may have set; alone, as it is
// everybody's.
//
//nolint:paralleltest // it changes globals
func TestI07_GlobalsOfTheHost(t *testing.T) {
	read := func() string {
		var out strings.Builder
		var all []rates.Source
		for name, answer := range map[string]string{"coinbase": "coinbase_btc_usd", "kraken": "kraken_btc_usd", "binance": "binance_btc_usdt", "coingecko": "coingecko_btc_usd"} {
			base, _ := answers(t, 200, file(t, answer))
			all = append(all, sources[name](rates.LiveOptions{Now: now, Base: base}))
		}
		m, err := rates.NewMedian(rates.MedianConfig{Sources: all, Now: now})
		require.NoError(t, err)
		r, err := m.Rate(t.Context(), "BTC", "USD")
		require.NoError(t, err)
		fmt.Fprintln(&out, ledger.PlainString(r.Price))
		base, _ := answers(t, 200, file(t, "coingecko_dai_eur"))
		r, err = rates.CoinGecko(rates.LiveOptions{Now: now, Base: base}).Price(t.Context(), "DAI", "EUR")
		require.NoError(t, err)
		fmt.Fprintln(&out, ledger.PlainString(r.Price))
		r, err = rates.NewFixed(now, "USD", map[string]string{"BTC": "67000.000000000000000000000000000000000001"}).Rate(t.Context(), "BTC", "USD")
		require.NoError(t, err)
		fmt.Fprintln(&out, ledger.PlainString(r.Price))
		return out.String()
	}
	before := read()
	require.Equal(t, "67190.057500000\n0.92\n67000.000000000000000000000000000000000001\n", before)
	precision, trim, science, quotes, exponent, transport, client := decimal.DivisionPrecision, decimal.TrimTrailingZeros, decimal.UseScientificNotation,
		decimal.MarshalJSONWithoutQuotes, decimal.MaxDecodeExponent, http.DefaultTransport, http.DefaultClient
	defer func() {
		decimal.DivisionPrecision, decimal.TrimTrailingZeros, decimal.UseScientificNotation = precision, trim, science
		decimal.MarshalJSONWithoutQuotes, decimal.MaxDecodeExponent, http.DefaultTransport, http.DefaultClient = quotes, exponent, transport, client
	}()
	decimal.DivisionPrecision, decimal.TrimTrailingZeros, decimal.UseScientificNotation = 1, !trim, true
	decimal.MarshalJSONWithoutQuotes, decimal.MaxDecodeExponent = true, 0
	http.DefaultTransport, http.DefaultClient = nil, nil
	require.Equal(t, before, read())
}

func FuzzLive(f *testing.F) {
	for _, name := range []string{"coingecko_btc_usd", "coinbase_btc_usd", "kraken_btc_usd", "binance_btc_usdt", "coingecko_limited", "kraken_unknown"} {
		f.Add(file(f, name))
	}
	f.Fuzz(func(t *testing.T, body string) {
		for name, decode := range rates.Decoders {
			r, err := decode([]byte(body), "BTC", "USD", noon)
			if err != nil {
				require.Zero(t, r, name)
				continue
			}
			require.True(t, r.Price.IsPositive(), name)
			require.LessOrEqual(t, r.Price.NumDigits(), 40)
			require.LessOrEqual(t, r.At.Unix(), noon.Unix()+60)
			require.Equal(t, "BTCUSD", r.Token+r.Fiat)
		}
	})
}
