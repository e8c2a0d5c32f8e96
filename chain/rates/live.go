package rates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/internal/safehttp"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Live is a Source that reads one public price interface over HTTP.
type Live struct {
	name   string
	base   string
	client *http.Client
	now    func() time.Time
	path   func(token, fiat string) (string, error)
	decode func(body []byte, token, fiat string, now time.Time) (Rate, error)
}

// LiveOptions are shared by the live sources.
type LiveOptions struct {
	// Now defaults to the wall clock.
	Now func() time.Time
	// Client defaults to one with a transport and a timeout of its own, without
	// redirects and without the environment's proxy. Its Timeout bounds a question;
	// one without is given 10 seconds.
	Client *http.Client
	// Base replaces the scheme and host, for a proxy or a paid plan.
	Base string
}

// patience bounds a question, also one of a Client that has no Timeout.
const patience = 10 * time.Second

var errPair = errors.New("rates: this source does not know the pair")

// CoinGecko reads /simple/price (docs.coingecko.com).
func CoinGecko(o LiveOptions) *Live {
	return live("coingecko", "https://api.coingecko.com", o, func(token, fiat string) (string, error) {
		id, ok := geckoIDs[token]
		if !ok {
			return "", errPair
		}
		q := url.Values{"ids": {id}, "vs_currencies": {strings.ToLower(fiat)}, "include_last_updated_at": {"true"}, "precision": {"full"}}
		return "/api/v3/simple/price?" + q.Encode(), nil
	}, decodeCoinGecko)
}

// Coinbase reads /v2/prices/{pair}/spot (docs.cdp.coinbase.com).
func Coinbase(o LiveOptions) *Live {
	return live("coinbase", "https://api.coinbase.com", o, func(token, fiat string) (string, error) {
		return "/v2/prices/" + url.PathEscape(token+"-"+fiat) + "/spot", nil
	}, decodeCoinbase)
}

// Kraken reads /0/public/Ticker (docs.kraken.com); the price is the last trade's.
func Kraken(o LiveOptions) *Live {
	return live("kraken", "https://api.kraken.com", o, func(token, fiat string) (string, error) {
		return "/0/public/Ticker?" + url.Values{"pair": {krakenName(token) + fiat}}.Encode(), nil
	}, decodeKraken)
}

// Binance reads /api/v3/ticker/price (developers.binance.com). It quotes coins
// in USDT where USD is asked for: a USDT off its peg by more than the Median's
// spread leaves it out. It does not price USDT itself.
func Binance(o LiveOptions) *Live {
	return live("binance", "https://api.binance.com", o, func(token, fiat string) (string, error) {
		if fiat == "USD" {
			fiat = "USDT"
		}
		if token == fiat {
			return "", errPair
		}
		return "/api/v3/ticker/price?" + url.Values{"symbol": {token + fiat}}.Encode(), nil
	}, decodeBinance)
}

// geckoIDs are CoinGecko's names of the shipped tokens.
var geckoIDs = map[string]string{
	"BTC": "bitcoin", "ETH": "ethereum", "MATIC": "polygon-ecosystem-token", "BNB": "binancecoin", "AVAX": "avalanche-2",
	"SOL": "solana", "TRX": "tron", "LTC": "litecoin", "DOGE": "dogecoin", "XRP": "ripple", "ADA": "cardano",
	"XLM": "stellar", "USDT": "tether", "USDC": "usd-coin", "DAI": "dai",
	"XDAI": "xdai", "CELO": "celo", "S": "sonic-3", "EURC": "euro-coin", "PYUSD": "paypal-usd",
}

func live(name, base string, o LiveOptions,
	path func(token, fiat string) (string, error),
	decode func(body []byte, token, fiat string, now time.Time) (Rate, error),
) *Live {
	if o.Base != "" {
		base = strings.TrimSuffix(o.Base, "/")
	}
	if o.Client == nil {
		o.Client = safehttp.NewClient(2, patience)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Live{name: name, base: base, client: safehttp.Client(o.Client, patience), now: o.Now, path: path, decode: decode}
}

// Name says which source it is.
func (l *Live) Name() string { return l.name }

// maxAnswer bounds what is read of an answer; they have a few hundred bytes.
const maxAnswer = 64 << 10

// Price asks for one pair.
func (l *Live) Price(ctx context.Context, token, fiat string) (Rate, error) {
	if !symbol(token) || !symbol(fiat) {
		return Rate{}, errPair
	}
	path, err := l.path(token, fiat)
	if err != nil {
		return Rate{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, nil)
	if err != nil {
		return Rate{}, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return Rate{}, fmt.Errorf("rates: no answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		return Rate{}, fmt.Errorf("rates: the answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Rate{}, fmt.Errorf("rates: answered %d", resp.StatusCode)
	}
	return l.decode(body, token, fiat, l.now())
}

func symbol(s string) bool {
	for i := range len(s) {
		if (s[i] < 'A' || s[i] > 'Z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return len(s) >= 2 && len(s) <= 12
}

func decodeCoinGecko(body []byte, token, fiat string, now time.Time) (Rate, error) {
	var v map[string]map[string]json.Number
	if err := decodeJSON(body, &v); err != nil {
		return Rate{}, err
	}
	coin := v[geckoIDs[token]]
	at, err := coin["last_updated_at"].Int64()
	if err != nil || at > now.Unix()+60 {
		return Rate{}, errors.New("rates: no usable time in the answer")
	}
	return rate(coin[strings.ToLower(fiat)].String(), token, fiat, time.Unix(at, 0).UTC())
}

func decodeCoinbase(body []byte, token, fiat string, now time.Time) (Rate, error) {
	var v struct {
		Data struct{ Amount, Base, Currency string }
	}
	if err := decodeJSON(body, &v); err != nil {
		return Rate{}, err
	}
	if v.Data.Base != token || v.Data.Currency != fiat {
		return Rate{}, errPair
	}
	return rate(v.Data.Amount, token, fiat, now)
}

func decodeKraken(body []byte, token, fiat string, now time.Time) (Rate, error) {
	var v struct {
		Error  []string
		Result map[string]struct{ C []string }
	}
	if err := decodeJSON(body, &v); err != nil {
		return Rate{}, err
	}
	if len(v.Error) > 0 || len(v.Result) != 1 {
		return Rate{}, errPair
	}
	for pair, t := range v.Result {
		if len(t.C) > 0 && krakenPair(pair, token, fiat) {
			return rate(t.C[0], token, fiat, now)
		}
	}
	return Rate{}, errPair
}

// krakenPair says whether a pair as Kraken writes it is the one asked for: the
// oldest of its assets have an X before coins and a Z before money.
func krakenPair(pair, token, fiat string) bool {
	token = krakenName(token)
	for _, t := range []string{token, "X" + token} {
		if pair == t+fiat || pair == t+"Z"+fiat {
			return true
		}
	}
	return false
}

func krakenName(token string) string {
	switch token {
	case "BTC":
		return "XBT"
	case "DOGE":
		return "XDG"
	}
	return token
}

func decodeBinance(body []byte, token, fiat string, now time.Time) (Rate, error) {
	var v struct{ Symbol, Price string }
	if err := decodeJSON(body, &v); err != nil {
		return Rate{}, err
	}
	want := token + fiat
	if fiat == "USD" {
		want = token + "USDT"
	}
	if v.Symbol != want {
		return Rate{}, errPair
	}
	return rate(v.Price, token, fiat, now)
}

func decodeJSON(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return errJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errJSON // something follows
	}
	return nil
}

var errJSON = errors.New("rates: the answer is not the documented JSON")

// rate reads a price of at most 40 characters, exactly.
func rate(price, token, fiat string, at time.Time) (Rate, error) {
	if price == "" || len(price) > 40 {
		return Rate{}, errors.New("rates: no price in the answer")
	}
	p, err := parse(price)
	if err != nil || !p.IsPositive() {
		return Rate{}, errors.New("rates: the price is not a positive number")
	}
	return Rate{Token: token, Fiat: fiat, Price: p, At: at}, nil
}

// parse reads a number as JSON writes it, exactly, whatever the host has set in
// the decimal package: cheap coins come as 9.5e-06.
func parse(s string) (decimal.Decimal, error) {
	digits, power := s, int64(0)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if power, err = strconv.ParseInt(s[i+1:], 10, 8); err != nil {
			return decimal.Decimal{}, ledger.ErrSyntax
		}
		digits = s[:i]
	}
	d, err := ledger.ParsePlain(digits)
	if err != nil {
		return d, err
	}
	return d.Shift(int32(power)), nil
}
