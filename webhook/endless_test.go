package webhook_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// TestFS01_FQ04_ReceiversThatNeverEnd: an attempt ends by its Timeout, whatever the
// receiver does. What had a status of 200 to 299 is delivered, and nothing else.
func TestFS01_FQ04_ReceiversThatNeverEnd(t *testing.T) {
	t.Parallel()
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: patience})
			to := peertest.Serve(t, outside, answer)
			r := peertest.Ends(t, func() webhook.Result {
				return n.Notify(t.Context(), []webhook.Delivery{{URL: to, Body: []byte("{}")}})[0]
			})
			require.Equal(t, r.Status == http.StatusOK, r.Err == nil, r.Err)
			require.Contains(t, []int{0, http.StatusSwitchingProtocols, http.StatusOK}, r.Status)
		})
	}
}
