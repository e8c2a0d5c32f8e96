package safehttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/safehttp"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// get does what every client of the package does: ask, and read what comes.
func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// TestFN06_EveryExchangeEnds: by the time that the package's own client has, by
// that of a host's client, and by the caller's context.
func TestFN06_EveryExchangeEnds(t *testing.T) {
	t.Parallel()
	const soon = 200 * time.Millisecond
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := peertest.Serve(t, "127.0.0.1", answer)
			for _, c := range []*http.Client{
				safehttp.NewClient(1, soon),
				safehttp.Client(&http.Client{Transport: &http.Transport{}, Timeout: soon}, time.Hour),
				safehttp.Client(&http.Client{Transport: &http.Transport{}}, soon),
			} {
				require.Error(t, peertest.Ends(t, func() error { return get(t.Context(), c, base) }))
			}
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			require.Error(t, peertest.Ends(t, func() error { return get(ctx, safehttp.NewClient(1, time.Hour), base) }))
		})
	}
}

// An answer of 1xx is an error that says so, at once.
func TestFN06_SwitchingProtocolsIsAnError(t *testing.T) {
	t.Parallel()
	base := peertest.Serve(t, "127.0.0.1", peertest.Endless()["101 and silence"])
	err := peertest.Ends(t, func() error { return get(t.Context(), safehttp.NewClient(1, time.Hour), base) })
	var status *safehttp.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, http.StatusSwitchingProtocols, status.Status)
	require.ErrorContains(t, err, "101 Switching Protocols")
}

// What a good peer answers comes whole, over kept connections.
func TestGoodAnswersComeWhole(t *testing.T) {
	t.Parallel()
	body := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	c := safehttp.NewClient(1, time.Minute)
	require.Same(t, c, safehttp.Client(c, time.Second), "bounded already")
	for range 3 {
		resp, err := c.Get(server.URL)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Len(t, got, len(body))
	}
	c.CloseIdleConnections()
}

// deaf is a transport whose bodies heed no context, as after a 101.
type deaf struct{ body io.ReadCloser }

func (d deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: d.body, Request: req}, nil
}

// TestFN06_BodyOfAnyTransportEnds: the body is closed when the time is over.
func TestFN06_BodyOfAnyTransportEnds(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	c := safehttp.Client(&http.Client{Transport: deaf{r}}, 100*time.Millisecond)
	err := peertest.Ends(t, func() error { return get(t.Context(), c, "http://peer.example/") })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
