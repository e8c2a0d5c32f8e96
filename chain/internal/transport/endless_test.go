package transport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// TestFN06_NodesThatNeverEnd: a request ends by its client's time, whatever the
// node does, and the error is ErrNode. Also with a client of the host's.
func TestFN06_NodesThatNeverEnd(t *testing.T) {
	t.Parallel()
	const soon = 300 * time.Millisecond
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := peertest.Serve(t, "127.0.0.1", answer)
			for _, c := range []*http.Client{
				transport.NewHTTP(1, soon), {Timeout: soon, Transport: &http.Transport{}},
			} {
				// More than a flood brings in that time, so that the size is not what ends it.
				e := &transport.Endpoint{HTTP: c, Max: 64 << 30, Refusals: []int{101}}
				require.ErrorIs(t, peertest.Ends(t, func() error {
					_, err := e.Post(t.Context(), base, []byte("{}"))
					return err
				}), chain.ErrNode)
				e.Max = 1 << 10
				require.ErrorIs(t, peertest.Ends(t, func() error {
					_, err := e.Get(t.Context(), base)
					return err
				}), chain.ErrNode)
			}
		})
	}
}
