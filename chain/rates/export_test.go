package rates

import "time"

// Decoders are the live sources' own.
var Decoders = map[string]func(body []byte, token, fiat string, now time.Time) (Rate, error){
	"coingecko": decodeCoinGecko, "coinbase": decodeCoinbase, "kraken": decodeKraken, "binance": decodeBinance,
}

// Pairs is how many pairs a Median remembers.
func (m *Median) Pairs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pairs)
}
