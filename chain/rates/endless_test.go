package rates_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// TestFN06_PriceSourcesThatNeverEnd: a question to each source ends by its
// client's time, whatever the source does.
func TestFN06_PriceSourcesThatNeverEnd(t *testing.T) {
	t.Parallel()
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := rates.LiveOptions{
				Base:   peertest.Serve(t, "127.0.0.1", answer),
				Client: &http.Client{Timeout: 300 * time.Millisecond, Transport: &http.Transport{}},
			}
			for _, s := range []*rates.Live{rates.CoinGecko(o), rates.Coinbase(o), rates.Kraken(o), rates.Binance(o)} {
				require.Error(t, peertest.Ends(t, func() error {
					_, err := s.Price(t.Context(), "BTC", "EUR")
					return err
				}), s.Name())
			}
		})
	}
}

// TestFN06_SourceThatSwitchesProtocols: its answer is an error at once,
// however long a question may take.
func TestFN06_SourceThatSwitchesProtocols(t *testing.T) {
	t.Parallel()
	hung := rates.Coinbase(rates.LiveOptions{
		Base:   peertest.Serve(t, "127.0.0.1", peertest.Endless()["101 and silence"]),
		Client: &http.Client{Timeout: time.Hour, Transport: &http.Transport{}},
	})
	err := peertest.Ends(t, func() error {
		_, err := hung.Price(t.Context(), "BTC", "USD")
		return err
	})
	require.ErrorContains(t, err, "101", "at once, not after the hour that it may take")
}
