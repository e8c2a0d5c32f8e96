package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ErrURL wraps every refusal of a callback URL.
var ErrURL = errors.New("webhook: unusable callback URL")

// ErrForbiddenAddress says that the name leads to an address that is never delivered to.
var ErrForbiddenAddress = errors.New("webhook: the address is private or reserved")

// MaxURL is the length of the longest callback URL, in bytes.
const MaxURL = 2048

// forbidden is every range that is not plain public unicast, from the IANA
// special-purpose registries for IPv4 and IPv6, with the translation ranges
// through which a private IPv4 address could be reached.
var forbidden = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"168.63.129.16/32", // a platform's metadata server on a public address
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32",
	"2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, s := range all {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Guard decides which addresses are delivered to.
type Guard struct {
	// Allow lists ranges that are delivered to although they are private.
	Allow []netip.Prefix
	// Deny lists ranges that are never delivered to, although they are public or in Allow: a
	// NAT64 prefix of the site's own, or public addresses of internal services. An IPv4 range
	// also denies its addresses mapped into IPv6, and may itself be written so. Defaults to none.
	Deny []netip.Prefix
	// AllowHTTP accepts http beside https.
	AllowHTTP bool
}

// Address says whether a connection to ip may be made; the error wraps
// ErrForbiddenAddress. An IPv4 address mapped into IPv6 counts as the IPv4 one.
func (g *Guard) Address(ip netip.Addr) error {
	ip = ip.WithZone("").Unmap()
	for _, p := range g.Deny {
		if at := p.Addr(); at.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(at.Unmap(), p.Bits()-96)
		}
		if p.Contains(ip) {
			return fmt.Errorf("%w: %s", ErrForbiddenAddress, ip)
		}
	}
	for _, p := range g.Allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if !ip.IsValid() || ip.Is6() && !globalUnicast6.Contains(ip) {
		return fmt.Errorf("%w: %s", ErrForbiddenAddress, ip)
	}
	for _, p := range forbidden {
		if p.Contains(ip) {
			return fmt.Errorf("%w: %s", ErrForbiddenAddress, ip)
		}
	}
	return nil
}

// globalUnicast6 is all that IANA has assigned for global unicast so far.
var globalUnicast6 = netip.MustParsePrefix("2000::/3")

// URL checks a callback URL before it is stored; the error wraps ErrURL. It
// accepts https (http where allowed) with a host name or an address in its
// usual writing, and nothing that could hide where it leads.
func (g *Guard) URL(s string) error {
	_, err := g.parse(s)
	return err
}

func (g *Guard) parse(s string) (*url.URL, error) {
	if s == "" || len(s) > MaxURL {
		return nil, fmt.Errorf("%w: it must have 1 to %d characters", ErrURL, MaxURL)
	}
	for i := range len(s) {
		switch {
		case s[i] <= ' ' || s[i] >= 0x7f || s[i] == '\\':
			return nil, fmt.Errorf("%w: it has a character outside printable ASCII", ErrURL)
		case s[i] == '#': // an empty fragment, too, which the parsed URL no longer shows
			return nil, fmt.Errorf("%w: it must have no fragment", ErrURL)
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be parsed", ErrURL)
	}
	return u, g.parts(u)
}

func (g *Guard) parts(u *url.URL) error {
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !g.AllowHTTP):
		return fmt.Errorf("%w: the scheme must be https", ErrURL)
	case u.User != nil:
		return fmt.Errorf("%w: it must not carry credentials", ErrURL)
	case u.Opaque != "" || u.Host == "":
		return fmt.Errorf("%w: it must have a host", ErrURL)
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 || p[0] == '0' {
			return fmt.Errorf("%w: the port is not one", ErrURL)
		}
	}
	return g.host(u.Hostname())
}

func (g *Guard) host(h string) error {
	if ip, err := netip.ParseAddr(h); err == nil {
		if ip.Zone() != "" {
			return fmt.Errorf("%w: an address with a zone", ErrURL)
		}
		if err := g.Address(ip); err != nil {
			return fmt.Errorf("%w: %w", ErrURL, err)
		}
		return nil
	}
	if len(h) > 253 {
		return fmt.Errorf("%w: the host name is too long", ErrURL)
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if !label(l) {
			return fmt.Errorf("%w: the host name is not one", ErrURL)
		}
	}
	// A last label that begins with a digit is no top-level domain but an
	// address in a writing (octal, hex, one number) that resolvers disagree on.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return fmt.Errorf("%w: an address must be written in the usual form", ErrURL)
	}
	return nil
}

func label(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
