package signerd_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
)

// Only a certificate of the one authority that is for clients and in its time is answered.
func TestFS07_OnlyTheAppsCertificateIsAnswered(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	s, dir := h.signer, h.signer.order.Dir
	s.ca.issue(t, dir, "ended", template{ended: true})
	newAuthority(t, "ca").issue(t, dir, "stranger", template{})
	s.ca.issue(t, dir, "notclient", template{server: true})
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: h.one()})
	for _, name := range []string{"ended", "stranger", "notclient"} {
		_, errs := s.clientAs(name, nil).SignMany(t.Context(), []chain.SignRequest{r})
		require.Error(t, errs[0], name)
		require.NotErrorIs(t, errs[0], chain.ErrRefused)
	}
	for name, conf := range map[string]*tls.Config{"none": {}, "old TLS": {MaxVersion: tls.VersionTLS12}} {
		good, err := filesIn(dir, "app").ClientTLS()
		require.NoError(t, err)
		conf.RootCAs = good.RootCAs
		if name == "old TLS" {
			conf.Certificates = good.Certificates
		}
		resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: conf}}).Post(s.url()+signerd.SignPath, "", strings.NewReader("{}")) //nolint:noctx // it ends
		if err == nil {
			resp.Body.Close()
		}
		require.Error(t, err, name)
	}
	resp, err := (&http.Client{}).Post("http"+strings.TrimPrefix(s.url(), "https")+signerd.SignPath, "", strings.NewReader("{}")) //nolint:noctx // it ends
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode, "plain HTTP")
	resp.Body.Close()
	require.Empty(t, s.lines())

	_, errs := h.ask(r)
	require.NoError(t, errs[0])
}

// The App speaks to no other server than the signer: not one with a certificate of another
// authority, nor one that shows a client's.
func TestFS07_OnlyTheSignersCertificateIsAsked(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	dir := h.signer.order.Dir
	asked := false
	for _, name := range []string{"stranger", "app"} {
		if name == "stranger" {
			newAuthority(t, "ca").issue(t, dir, name, template{server: true})
		}
		conf, err := filesIn(dir, name).ServerTLS()
		require.NoError(t, err)
		fake := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
		fake.TLS = conf
		fake.StartTLS()
		defer fake.Close()
		h.signer.order.Addr = strings.TrimPrefix(fake.URL, "https://")
		_, errs := h.ask(h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: 1}))
		require.ErrorContains(t, errs[0], "certificate")
		require.NotErrorIs(t, errs[0], chain.ErrRefused)
		require.False(t, asked)
	}
}

// A handler that somebody serves without TLS signs nothing.
func TestFS07_NothingIsSignedWithoutTLS(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	(&signerd.Server{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, signerd.SignPath, strings.NewReader("{}")))
	require.Equal(t, http.StatusForbidden, w.Code)
}

// raw posts a body with the App's certificate.
func (h *thief) raw(body io.Reader) (int, string) {
	h.t.Helper()
	conf, err := filesIn(h.signer.order.Dir, "app").ClientTLS()
	require.NoError(h.t, err)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
	defer c.CloseIdleConnections()
	resp, err := c.Post(h.signer.url()+signerd.SignPath, "application/json", body) //nolint:noctx // it ends
	require.NoError(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(h.t, err)
	return resp.StatusCode, string(text)
}

// What is no question is refused whole, and the signer goes on.
func TestFS07_GarbageIsNoQuestion(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	for _, body := range []string{
		"", "null", "[]", "{}", "\x00\xff", `{"requests":[]}`, `{"requests":[{}],"more":1}`, `{"requests":[{}]}{}`,
		`{"requests":[{"digests":[{"hash":"00"}]}]}`, `{"requests":[{"intent":{"amount":1.5}}]}`, `{"requests":[{"intent":{"amount":"1"}}]}`,
		`{"requests":[{"intent":{"amount":99999999999999999999}}]}`, strings.Repeat("[", 100_000),
		`{"requests":[{"attempt":"` + strings.Repeat("a", 201) + `"}]}`, `{"requests":[{"intent":{"id":"` + strings.Repeat("a", 201) + `"}}]}`,
		`{"requests":[` + strings.Repeat("{},", signerd.MaxRequests) + `{}]}`,
	} {
		status, text := h.raw(strings.NewReader(body))
		require.Equal(t, http.StatusBadRequest, status, "%.60q: %s", body, text)
	}
	status, text := h.raw(strings.NewReader(`{"requests":[{},{"intent":{"network":"ETH"},"network":"ETH","payload":"AAAA"}]}`))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 2, strings.Count(text, `"refused"`), text)
	status, _ = h.raw(strings.NewReader(`{"requests":[` + strings.Repeat(" ", signerd.MaxBody) + `]}`))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Empty(t, h.signer.lines())
	_, errs := h.ask(h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: h.one()}))
	require.NoError(t, errs[0])
}

// Lists of empty entries, whose values take hundreds of times the body's size, are not read
// to their end: what stands behind the bound is not looked at.
func TestFS07_LongListsAreNotRead(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	long := func(n int) string { return strings.Repeat("{},", n) + `{"unknown":1}` }
	for body, most := range map[string]int{
		`{"requests":[` + long(signerd.MaxRequests) + `]}`:          signerd.MaxRequests,
		`{"requests":[{"also":[` + long(1_000) + `]}]}`:             1_000,
		`{"requests":[{"digests":[` + long(10_000) + `]}]}`:         10_000,
		`{"requests":[{}],"hints":[` + long(10_000) + `]}`:          10_000,
		`{"requests":[` + strings.Repeat("{},", 5_000_000) + `{}]}`: signerd.MaxRequests,
	} {
		status, text := h.raw(strings.NewReader(body))
		require.Equal(t, http.StatusBadRequest, status, "%.60q", body)
		require.Contains(t, text, fmt.Sprintf("more than %d entries", most), "%.60q", body)
	}
	require.Empty(t, h.signer.lines())
}

// More requests than a question takes go in several, and one that is too large is refused
// by the App's side, alone.
func TestFS07_ManyAndLargeRequests(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 400)
	var rs []chain.SignRequest
	for i := range 2*signerd.MaxRequests + 1 {
		rs = append(rs, h.request(wish{intent: fmt.Sprint("w", i), attempt: fmt.Sprint("a", i), slots: []int{i}, amount: 1000}))
	}
	large := rs[7]
	large.Unsigned.Payload = bytes.Repeat([]byte{1}, signerd.MaxBody)
	rs[7] = large
	sigs, errs := h.ask(rs...)
	for i, err := range errs {
		if i == 7 {
			require.ErrorIs(t, err, chain.ErrRefused)
			continue
		}
		require.NoError(t, err)
		_, err = h.client.Assemble(rs[i].Unsigned, sigs[i])
		require.NoError(t, err)
	}
	require.Len(t, h.signer.lines(), len(rs)-1)
}

// A signer that does not answer is asked twice, and not for each hundred of the rest: who
// waits for it has a lease that ends.
func TestFS07_SilentSignerIsNotAskedForTheRest(t *testing.T) {
	t.Parallel()
	h := newThief(t, newSigner(t, limitsOf("ETH", "ETH", 1, 1), "ETH"), "ETH")
	conf, err := filesIn(h.signer.order.Dir, "signer").ServerTLS()
	require.NoError(t, err)
	var asked atomic.Int32
	fake := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	fake.TLS = conf
	fake.StartTLS()
	defer fake.Close()
	h.signer.order.Addr = strings.TrimPrefix(fake.URL, "https://")
	_, errs := h.ask(make([]chain.SignRequest, 5*signerd.MaxRequests)...)
	for _, err := range errs {
		require.ErrorContains(t, err, "status 503")
		require.NotErrorIs(t, err, chain.ErrRefused)
	}
	require.EqualValues(t, 2, asked.Load())
}

// The wire stays as it is: an App and a signer may be of two versions.
func TestFS07_WireIsGolden(t *testing.T) {
	t.Parallel()
	h := newThief(t, newSigner(t, limitsOf("ETH", "ETH", 1, 1), "ETH"), "ETH")
	var got []byte
	conf, err := filesIn(h.signer.order.Dir, "signer").ServerTLS()
	require.NoError(t, err)
	fake := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"answers":[{"refused":"chain: the signer refuses: why"}]}`)
	}))
	fake.TLS = conf
	fake.StartTLS()
	defer fake.Close()
	h.signer.order.Addr = strings.TrimPrefix(fake.URL, "https://")
	in := chain.Intent{
		ID: "i", Purpose: chain.ForSweep, Tenant: "t", Network: "ETH", Currency: "ETH", From: "f", FromKey: "k", Payer: "p", PayerKey: "q",
		To: "o", Memo: "m", Amount: 1, All: true, MaxCost: 2, Confirmations: 3,
	}
	_, err = h.signer.client(h.keyOf).Sign(t.Context(), chain.SignRequest{
		Intent: in, Also: []chain.Intent{{ID: "j"}}, Attempt: "a", Keys: []chain.KeyRef{"k"}, Endings: []string{"e"},
		Unsigned: chain.Unsigned{
			Network: "ETH", Payload: []byte{1, 2}, Spends: []string{"s"}, Digests: []chain.Digest{{Hash: [32]byte{3}, From: "f", Whole: true}},
			Outputs: []chain.Output{{To: "o"}},
		},
	})
	require.EqualError(t, err, "chain: the signer refuses: why")
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, got, "", "  "))
	golden := filepath.Join("testdata", "question.json")
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), indented.String()+"\n")
}

// health is what a signer says of itself.
type health struct {
	OK    bool
	Lines int64
	Hash  string
	Error string
}

func (h *thief) health() (out health) {
	h.t.Helper()
	conf, err := filesIn(h.signer.order.Dir, "app").ClientTLS()
	require.NoError(h.t, err)
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: conf}}).Get(h.signer.url() + "/v1/health") //nolint:noctx // it ends
	require.NoError(h.t, err)
	defer resp.Body.Close()
	require.NoError(h.t, json.NewDecoder(resp.Body).Decode(&out))
	require.Equal(h.t, out.OK, resp.StatusCode == http.StatusOK)
	return out
}

// The health of a signer says where its log ends.
func TestFS07_HealthNamesTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	before := h.health()
	require.True(t, before.OK)
	require.Equal(t, strings.Repeat("0", 64), before.Hash)
	for i := range 2 {
		_, errs := h.ask(h.request(h.apart(i, wish{intent: "w", attempt: fmt.Sprint("a", i), amount: h.one()})))
		require.NoError(t, errs[0])
		after := h.health()
		require.EqualValues(t, i+1, after.Lines)
		require.Equal(t, before.Hash, h.signer.lines()[i].Before)
		before = after
	}
}
