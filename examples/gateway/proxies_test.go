package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxied asks for a token as a proxy on this machine hands it on, for the client at from.
func proxied(t *testing.T, base, from, id, secret string) int {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/o/token/", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", from)
	answer, err := http.DefaultClient.Do(r) //nolint:forbidigo // the proxy of a test
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// A stranger who floods the token endpoint through the operator's proxy uses up his own limit,
// and a merchant behind the same proxy logs in. Without the setting the header is not believed.
func TestFA08_FS04_StrangersFloodLocksNobodyOutBehindAProxy(t *testing.T) {
	t.Parallel()
	shop := []string{"CRYPTOPAY_CLIENT_ID=shop", "CRYPTOPAY_CLIENT_SECRET=a-secret-of-the-shop-7"}
	args := []string{"-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC"}
	flood := func(base string, from func(i int) string) (refused int) {
		for i := range 40 {
			if proxied(t, base, from(i), "nobody", "a-wrong-secret-0123") == http.StatusTooManyRequests {
				refused++
			}
		}
		return refused
	}
	stranger := func(int) string { return "203.0.113.9" }

	for _, proxies := range []string{"127.0.0.1", "10.0.0.0/8, 127.0.0.0/8"} {
		g := start(t, t.TempDir(), append([]string{"CRYPTOPAY_TRUSTED_PROXIES=" + proxies}, shop...), args...)
		require.NotEmpty(t, g.base, g.errors.String())
		require.NotZero(t, flood(g.base, stranger))
		require.Equal(t, http.StatusOK, proxied(t, g.base, "198.51.100.4", "shop", "a-secret-of-the-shop-7"))
		g.stop(t)
	}
	for _, proxies := range []string{"", "10.0.0.0/8"} {
		g := start(t, t.TempDir(), append([]string{"CRYPTOPAY_TRUSTED_PROXIES=" + proxies}, shop...), args...)
		require.NotEmpty(t, g.base, g.errors.String())
		require.NotZero(t, flood(g.base, func(i int) string { return fmt.Sprint("203.0.113.", i) }), "whoever connects could call himself anything")
		g.stop(t)
	}
}

// What is no address of a proxy is refused at the start, by the setting's name.
func TestFA08_WrongProxiesAreRefused(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]string{
		"proxy.example":        "must be addresses or prefixes",
		"10.0.0.0/33":          "must be addresses or prefixes",
		"10.0.0.1,10.0.0":      "must be addresses or prefixes",
		"fe80::1%eth0":         "must be addresses or prefixes",
		"0.0.0.0/0":            "must not be all addresses",
		"127.0.0.1, ::/0":      "must not be all addresses",
		"::ffff:10.0.0.0/104":  "must be addresses or prefixes",
		"127.0.0.1:8080":       "must be addresses or prefixes",
		"https://10.0.0.1/":    "must be addresses or prefixes",
		"10.0.0.0/8 and more!": "must be addresses or prefixes",
	} {
		_, err := readSettings(nil, func(k string) string { return map[string]string{"CRYPTOPAY_TRUSTED_PROXIES": proxies}[k] })
		require.ErrorContains(t, err, "CRYPTOPAY_TRUSTED_PROXIES "+want, proxies)
		file := written(t, "log: info\ntrusted_proxies: [\""+strings.ReplaceAll(proxies, ",", "\",\"")+"\"]")
		_, err = readSettings([]string{"-config", file}, func(string) string { return "" })
		require.ErrorContains(t, err, ":2:18: trusted_proxies "+want, proxies)
	}
	for proxies, want := range map[string]string{
		"10.1.2.3":                        "[10.1.2.3/32]",
		"10.1.2.3/8,::1":                  "[10.0.0.0/8 ::1/128]",
		"::ffff:10.1.2.3, 2001:db8::/32 ": "[10.1.2.3/32 2001:db8::/32]",
	} {
		s, err := readSettings(nil, func(k string) string { return map[string]string{"CRYPTOPAY_TRUSTED_PROXIES": proxies}[k] })
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprint(s.proxies))
	}
}
