package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// forbidden are addresses that nothing may ever be sent to: first, last and
// something in the middle of every special-purpose range of IANA's registries,
// metadata servers of the clouds, and the writings that hide an IPv4 address.
const forbidden = `
0.0.0.0 0.0.0.1 0.1.2.3 0.255.255.255 10.0.0.0 10.0.0.1 10.1.2.3 10.96.0.1 10.255.255.254 10.255.255.255
100.64.0.0 100.64.0.1 100.100.100.200 100.100.2.136 100.127.255.254 100.127.255.255
127.0.0.0 127.0.0.1 127.0.0.53 127.0.1.1 127.1.1.1 127.127.127.127 127.255.255.254 127.255.255.255
169.254.0.0 169.254.0.1 169.254.169.123 169.254.169.250 169.254.169.253 169.254.169.254 169.254.170.2 169.254.170.23 169.254.255.255
172.16.0.0 172.16.0.1 172.17.0.1 172.18.0.1 172.20.10.1 172.24.0.9 172.31.0.2 172.31.255.254 172.31.255.255
192.0.0.0 192.0.0.1 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.171 192.0.0.192 192.0.0.255
192.0.2.0 192.0.2.1 192.0.2.128 192.0.2.255 192.31.196.0 192.31.196.1 192.31.196.255 192.52.193.0 192.52.193.1 192.52.193.255
192.88.99.0 192.88.99.1 192.88.99.2 192.88.99.255 192.168.0.0 192.168.0.1 192.168.1.1 192.168.49.1 192.168.99.100 192.168.122.1 192.168.178.1 192.168.255.255
192.175.48.0 192.175.48.1 192.175.48.42 192.175.48.255 198.18.0.0 198.18.0.1 198.18.255.255 198.19.0.0 198.19.255.254 198.19.255.255
198.51.100.0 198.51.100.1 198.51.100.128 198.51.100.255 203.0.113.0 203.0.113.1 203.0.113.77 203.0.113.255
224.0.0.0 224.0.0.1 224.0.0.251 224.0.1.1 232.1.1.1 233.252.0.1 234.0.0.1 239.0.0.1 239.255.255.250 239.255.255.255
240.0.0.0 240.0.0.1 241.1.1.1 247.9.9.9 250.1.2.3 252.0.0.1 254.1.2.3 255.0.0.1 255.255.255.254 255.255.255.255
168.63.129.16
:: ::1 ::2 ::7f00:1 ::127.0.0.1 ::10.0.0.1 ::8.8.8.8 ::169.254.169.254 ::ffff 0:0:0:0:0:0:c0a8:1
::ffff:0.0.0.0 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:192.168.1.1 ::ffff:172.16.0.1 ::ffff:100.64.0.1 ::ffff:224.0.0.1 ::ffff:255.255.255.255 ::ffff:168.63.129.16
::ffff:0:127.0.0.1 ::ffff:0:10.0.0.1 ::ffff:0:8.8.8.8 0:0:0:0:fffe::1
64:ff9b:: 64:ff9b::1 64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8 64:ff9b::ffff:ffff
64:ff9b:1:: 64:ff9b:1::1 64:ff9b:1:0a00:0001:: 64:ff9b:1::10.0.0.1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
100:: 100::1 100::ffff:ffff:ffff:ffff 100:0:0:1:: 100:0:0:1::1 100:0:0:1:ffff:ffff:ffff:ffff
2001:: 2001::1 2001:0:7f00:1:: 2001:0:a9fe:a9fe:: 2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2001:1::1 2001:1::2 2001:1::3 2001:2:: 2001:2::1 2001:2:0:ffff::1 2001:3::1 2001:4:112::1 2001:10::1 2001:1f:ffff::1 2001:20::1 2001:2f::1 2001:30::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
2001:db8:: 2001:db8::1 2001:db8:1:2::3 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
2002:: 2002:7f00:1:: 2002:7f00:0001::1 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe::1 2002:808:808::1 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
2620:4f:8000:: 2620:4f:8000::1 2620:4f:8000::42 2620:4f:8000:ffff:ffff:ffff:ffff:ffff
3fff:: 3fff::1 3fff:abc::1 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
5f00:: 5f00::1 5f00:0:0:100:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff
4000::1 8000::1 a000::1 c000::1 e000::1 1000::1 200::1 400::1 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fc00:: fc00::1 fcff:ffff::1 fd00:: fd00::1 fd00:ec2::254 fd00:ec2::23 fd12:3456:789a::1 fd20:ce::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fe80:: fe80::1 fe80::a9fe:a9fe fe80::1%eth0 fe80::1%1 fe90::1 fea0::1 febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fec0:: fec0::1 fed0::1 feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe00::1 fe7f::1
ff00:: ff01::1 ff02::1 ff02::2 ff02::fb ff02::1:2 ff05::1:3 ff08::1 ff0e::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
`

// permitted are plain public addresses, some of them next to a forbidden range.
const permitted = `
1.0.0.0 1.1.1.1 8.8.8.8 9.9.9.9 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.31.195.255
192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
::ffff:8.8.8.8 2001:200::1 2001:4860:4860::8888 2001:db7::1 2001:db9::1 2003::1 2400:cb00::1 2606:4700:4700::1111 2620:4f:7fff::1 2a00:1450::1 3ffe::1 3fff:1000::1
`

func TestH02_ForbiddenAddresses(t *testing.T) {
	t.Parallel()
	var guard webhook.Guard
	bad, good := strings.Fields(forbidden), strings.Fields(permitted)
	require.GreaterOrEqual(t, len(bad), 200)
	for _, s := range bad {
		require.ErrorIs(t, guard.Address(netip.MustParseAddr(s)), webhook.ErrForbiddenAddress, s)
	}
	for _, s := range good {
		require.NoError(t, guard.Address(netip.MustParseAddr(s)), s)
	}
	require.ErrorIs(t, guard.Address(netip.Addr{}), webhook.ErrForbiddenAddress)

	for _, s := range bad { // at save, too, and by the same rules
		if strings.Contains(s, "%") {
			continue
		}
		require.ErrorIs(t, guard.URL("https://"+bracket(s)+"/x"), webhook.ErrForbiddenAddress, s)
	}
	for _, s := range good {
		require.NoError(t, guard.URL("https://"+bracket(s)+"/x"), s)
	}

	guard.Allow = []netip.Prefix{netip.MustParsePrefix("10.8.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	for _, s := range []string{"10.8.0.1", "::ffff:10.8.0.1", "fd00:1::7"} {
		require.NoError(t, guard.Address(netip.MustParseAddr(s)), s)
	}
	for _, s := range []string{"10.9.0.1", "::10.8.0.1", "64:ff9b::10.8.0.1", "fd00:2::7"} {
		require.Error(t, guard.Address(netip.MustParseAddr(s)), s)
	}
}

func bracket(s string) string {
	if strings.Contains(s, ":") {
		return "[" + s + "]"
	}
	return s
}

// FuzzH02_Address holds the guard against what the standard library knows of
// addresses: whatever it calls private, loopback, multicast and so on must be
// refused, in every writing.
func FuzzH02_Address(f *testing.F) {
	for _, s := range strings.Fields(forbidden + permitted) {
		a := netip.MustParseAddr(s).WithZone("")
		b := a.As16()
		f.Add(b[:])
	}
	var guard webhook.Guard
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		plain := ip.Unmap()
		special := plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() ||
			plain.IsUnspecified() || plain.IsInterfaceLocalMulticast() || !plain.IsGlobalUnicast()
		err := guard.Address(ip)
		if special {
			require.ErrorIs(t, err, webhook.ErrForbiddenAddress, ip)
		}
		require.Equal(t, err == nil, guard.Address(plain) == nil, "mapped and plain differ: %s", ip)
		if !ip.Is4() {
			require.Equal(t, err == nil, guard.Address(ip.WithZone("x")) == nil, "a zone changes the verdict: %s", ip)
		}
		require.Equal(t, err == nil, guard.URL("https://"+bracket(ip.String())+"/") == nil, ip)
	})
}

// TestFS12_DeniedRanges: what the host denies is refused although it is public or allowed, however
// the address or the range is written.
func TestFS12_DeniedRanges(t *testing.T) {
	t.Parallel()
	guard := webhook.Guard{
		Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Deny: []netip.Prefix{
			netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("::ffff:9.9.9.0/120"),
			netip.MustParsePrefix("2a00:64:ff9b::/96"), netip.MustParsePrefix("fd00:1::/32"),
		},
	}
	for _, s := range []string{
		"10.1.2.3", "::ffff:10.1.2.3", "8.8.8.8", "::ffff:8.8.8.8", "9.9.9.9", "::ffff:9.9.9.9", "2a00:64:ff9b::10.0.0.1", "2a00:64:ff9b::808:808", "fd00:1::1", "fd00:1::1%eth0",
	} {
		ip := netip.MustParseAddr(s)
		require.ErrorIs(t, guard.Address(ip), webhook.ErrForbiddenAddress, s)
		require.ErrorIs(t, guard.URL("https://"+bracket(s)+"/x"), webhook.ErrURL, s)
	}
	for _, s := range []string{"10.2.0.1", "::ffff:10.2.0.1", "8.8.9.8", "9.9.8.9", "2a00:64:ff9b:0:0:1::1", "2a00:64:ff9c::1", "fd00:2::1"} {
		require.NoError(t, guard.Address(netip.MustParseAddr(s)), s)
		require.NoError(t, guard.URL("https://"+bracket(s)+"/x"), s)
	}
	all6 := webhook.Guard{Deny: []netip.Prefix{netip.MustParsePrefix("::/0")}}
	require.NoError(t, all6.Address(netip.MustParseAddr("::ffff:8.8.8.8")), "it is an IPv4 address")
	require.ErrorIs(t, all6.Address(netip.MustParseAddr("2a00::1")), webhook.ErrForbiddenAddress)
	require.ErrorIs(t, all6.Address(netip.MustParseAddr("::1")), webhook.ErrForbiddenAddress)
}

func TestH04_URLs(t *testing.T) {
	t.Parallel()
	var guard webhook.Guard
	long := strings.Repeat("a", 63)
	for _, s := range []string{
		"https://example.com", "https://example.com/", "https://EXAMPLE.com/Hook?a=b&c=%20d", "https://example.com:8443/x",
		"https://a.b.c.example.co.uk/x/y;z", "https://xn--bcher-kva.example/x", "https://with_underscore.example.com/", "https://1and1.com/",
		"https://8.8.8.8/", "https://[2606:4700:4700::1111]:8443/x", "https://" + long + ".example.com/", "HTTPS://example.com/",
	} {
		require.NoError(t, guard.URL(s), s)
	}
	bad := []string{
		"", " ", "example.com", "//example.com/x", "/x", "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/",
		"javascript:alert(1)", "unix:///var/run/docker.sock", "https:example.com", "https:///x", "https://", "https://?x", "https://#x", "https://:443/",
		"https://user@example.com/", "https://user:pass@example.com/", "https://@example.com/", "https://:@example.com/", "https://example.com@127.0.0.1/",
		"https://127.0.0.1\\@example.com/", "https://example.com\\.evil.com/", "https://example.com/x#frag", "https://example.com/x#", "https://example.com#",
		"https://127.1/", "https://127.0.1/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://017700000001/",
		"https://127.0.0.1.", "https://127.0.0.01/", "https://1.1.1.1.1/", "https://1.1.1/", "https://256.1.1.1/", "https://0/", "https://010.8.8.8/", "https://example.0x10/",
		"https://example.com./", "https://./", "https://../", "https://a..b/", "https://.example.com/", "https://-a.example.com/", "https://a-.example.com/",
		"https://" + long + "a.example.com/", "https://" + strings.Repeat(long+".", 4) + "com/", "https://ex ample.com/", "https://exa%6dple.com/", "https://ex%00ample.com/",
		"https://bücher.example/", "https://ⓔxample.com/", "https://127。0。0。1/", "https://１２７.0.0.1/", "https://example.com/\u2028", "https://example.com/\x00", "https://example.com/\r\nX: y",
		"https://example.com/ü", "https://example.com/\t", "\thttps://example.com/", "https://example.com/ ", "https://exa\u00admple.com/", "https://example.com/\xff",
		"https://example.com:/", "https://example.com:0/", "https://example.com:080/", "https://example.com:65536/", "https://example.com:-1/", "https://example.com:+1/",
		"https://example.com:8o/", "https://example.com:99999999999999999999/", "https://[::1", "https://::1/", "https://[::1]x/", "https://[fe80::1%25eth0]/", "https://[::ffff:127.0.0.1]/",
		"https://[::127.0.0.1]/", "https://[]/", "https://[example.com]/", "https://127.0.0.1/", "https://169.254.169.254/latest/meta-data/", "https://" + strings.Repeat("a/", 1100),
		"https://example.com/" + strings.Repeat("a", webhook.MaxURL), "https://exa!mple.com/", "https://exa$mple.com/", "https://example.com,127.0.0.1/", "https://*.example.com/",
	}
	for _, s := range bad {
		require.ErrorIs(t, guard.URL(s), webhook.ErrURL, "%q", s)
	}
	guard.AllowHTTP = true
	require.NoError(t, guard.URL("http://example.com/"))
	require.ErrorIs(t, guard.URL("ftp://example.com/"), webhook.ErrURL)
}

// FuzzH04_URL: what is accepted leads where it says, and can be written into a
// request, a log and a row as it is.
func FuzzH04_URL(f *testing.F) {
	for _, s := range []string{
		"https://example.com:8443/x?y=z", "https://[2606:4700::1]/", "https://127.0.0.1/", "https://a@b/", "https://0x7f.1/", "https://a./", "https://xn--a/",
		"http://example.com/", "https://example.com/\u00e9", "https://example.com/a b", "https://example.com/" + strings.Repeat("x", webhook.MaxURL), "https://example.com:0/", "https://[fe80::1%25eth0]/",
	} {
		f.Add(s)
	}
	var guard webhook.Guard
	f.Fuzz(func(t *testing.T, s string) {
		if guard.URL(s) != nil {
			return
		}
		require.LessOrEqual(t, len(s), webhook.MaxURL)
		rest, ok := strings.CutPrefix(strings.ToLower(s), "https://")
		require.True(t, ok, s)
		host := rest
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			host = rest[:i]
		}
		for _, c := range []byte("@\\#% \r\n\t\x00") {
			require.NotContains(t, host, string(c), s)
		}
		for _, c := range []byte(s) {
			require.True(t, c > ' ' && c < 0x7f, s)
		}
		if host[0] == '[' {
			host = host[1:strings.Index(host, "]")]
		} else if i := strings.LastIndexByte(host, ':'); i >= 0 {
			host = host[:i]
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			require.NoError(t, guard.Address(ip), s)
			return
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		require.NotEmpty(t, last, s)
		require.False(t, last[0] >= '0' && last[0] <= '9', s)
	})
}

// TestH04_BoundsOfURLs: each bound allows its last value and refuses the next.
func TestH04_BoundsOfURLs(t *testing.T) {
	t.Parallel()
	guard := &webhook.Guard{}
	of := func(n int) string { return strings.Repeat("x", n) }
	long := of(63) + "." + of(63) + "." + of(63) + "."
	for _, good := range []string{
		"https://az.AZ.a0z9.A_Z-a.zz", "https://z", "https://Z", "https://a", "https://A", "https://a.z9", "https://" + of(63) + ".de", "https://" + long + of(61),
		"https://x.de:1", "https://x.de:65535", "https://x.de/" + of(webhook.MaxURL-len("https://x.de/")), "https://x.de/!~",
	} {
		require.NoError(t, guard.URL(good), good)
	}
	for _, bad := range []string{
		"https://" + of(64) + ".de", "https://" + long + of(62), "https://x.de:0", "https://x.de:65536", "https://x.de:080", "https://x.de:",
		"https://x.de/" + of(webhook.MaxURL+1-len("https://x.de/")), "https://x.de/ ", "https://x.de/\x7f", "https://x.de/#", "https://x.0de", "https://x.9de", "https://-x.de", "https://x-.de", "https://x..de",
		"https://x`.de", "https://x{.de", "https://x~.de", "https://x!.de", "http://x.de", "",
	} {
		require.ErrorIs(t, guard.URL(bad), webhook.ErrURL, bad)
	}
}
