package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// limiting is a node that counts its requests, and answers the next ones of them that it was asked too often.
type limiting struct {
	next   int
	status int
	retry  string
	body   string
	came   int
}

func (l *limiting) RoundTrip(*http.Request) (*http.Response, error) {
	l.came++
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`[{"id":1,"result":1}]`))}
	if l.next > 0 {
		l.next--
		resp.StatusCode, resp.Body = l.status, io.NopCloser(strings.NewReader(l.body))
		if l.retry != "" {
			resp.Header.Set("Retry-After", l.retry)
		}
	}
	return resp, nil
}

// TestFN16_ANodeThatNamesAWaitIsLeftAlone: whatever it was asked, no call of this process reaches it before the wait is
// over, for five minutes at most, and each is told how long that is. One that names none is asked again.
func TestFN16_ANodeThatNamesAWaitIsLeftAlone(t *testing.T) {
	t.Parallel()
	const seconds = time.Second
	for name, c := range map[string]struct {
		limiting
		rests time.Duration
	}{
		"429":               {limiting{status: 429, retry: "120"}, 120 * seconds},
		"503":               {limiting{status: 503, retry: "30"}, 30 * seconds},
		"an hour":           {limiting{status: 429, retry: "3600"}, 5 * time.Minute},
		"an allowance":      {limiting{status: 402}, 5 * time.Minute},
		"in the words":      {limiting{status: 403, body: `{"Error":"the query server is suspended for 30s: frequency limit"}`}, 30 * seconds},
		"in a call's error": {limiting{status: 200, body: `[{"id":1,"error":{"code":-32005,"message":"request rate exceeded","data":{"backoff_seconds":30}}}]`}, 30 * seconds},
		"no wait":           {limiting{status: 429}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := &c.limiting
				node.next = 1
				b, err := transport.NewBudget("some", 0)
				require.NoError(t, err)
				n := &transport.RPC{Endpoint: transport.Endpoint{HTTP: &http.Client{Transport: node}, Max: 1 << 20, Budget: b}, URL: "http://node", Batch: 10}
				send := transport.NewCall("send")
				if err := n.Do(t.Context(), send); err == nil {
					require.Error(t, send.Err)
				}
				require.Equal(t, 1, node.came)
				if c.rests > 0 {
					for _, method := range []string{"balance", "nonce"} {
						var limited *chain.LimitedError
						require.ErrorAs(t, n.Do(t.Context(), transport.NewCall(method)), &limited)
						require.Equal(t, c.rests, limited.After)
					}
					_, err := n.Get(t.Context(), "http://node/fee")
					require.ErrorIs(t, err, chain.ErrNode)
					require.Equal(t, c.rests, b.Usage().Resting)
					time.Sleep(c.rests - seconds)
					var limited *chain.LimitedError
					require.ErrorAs(t, n.Do(t.Context(), transport.NewCall("fee")), &limited)
					require.Equal(t, seconds, limited.After, "what is left of it")
					require.Equal(t, 1, node.came, "nothing has reached it")
					time.Sleep(seconds)
				}
				require.Zero(t, b.Usage().Resting)
				require.NoError(t, n.Do(t.Context(), transport.NewCall("send")))
				require.Equal(t, 2, node.came)
			})
		})
	}
}

// TestFN16_WhatWaitsForABudgetHearsOfTheWait: calls that wait for room when the node names a wait are not sent after it.
func TestFN16_WhatWaitsForABudgetHearsOfTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := &limiting{status: 429, retry: "60"}
		b, err := transport.NewBudget("some", 60)
		require.NoError(t, err)
		n := &transport.RPC{Endpoint: transport.Endpoint{HTTP: &http.Client{Transport: node}, Max: 1 << 20, Budget: b}, URL: "http://node", Batch: 1}
		for range 10 {
			require.NoError(t, n.Do(t.Context(), transport.NewCall("m")))
		}
		failed := make(chan error, 1)
		go func() { failed <- n.Do(t.Context(), transport.NewCall("m")) }()
		synctest.Wait()
		b.Heed(&chain.LimitedError{After: time.Minute}) // as another call hears it
		var limited *chain.LimitedError
		require.ErrorAs(t, <-failed, &limited)
		require.Equal(t, 10, node.came)
		require.Zero(t, b.Usage().Waiting)
	})
}
