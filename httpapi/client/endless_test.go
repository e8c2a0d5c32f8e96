package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// TestFN06_ServiceThatNeverEnds: a call ends by the time of its http.Client,
// whatever answers it.
func TestFN06_ServiceThatNeverEnds(t *testing.T) {
	t.Parallel()
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(client.Options{
				BaseURL: peertest.Serve(t, "127.0.0.1", answer), ClientID: "id", ClientSecret: "secret", Attempts: 1,
				HTTP: &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{}},
			})
			require.NoError(t, err)
			require.Error(t, peertest.Ends(t, func() error {
				_, err := c.Me(t.Context())
				return err
			}))
		})
	}
}
