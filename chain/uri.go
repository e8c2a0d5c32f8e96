package chain

import (
	"fmt"
	"math/big"
	"net/url"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// uriScheme is what wallets know a network's payment links by.
var uriScheme = map[Network]string{
	"BTC": "bitcoin", "LTC": "litecoin", "DOGE": "dogecoin", "SOL": "solana", "TRX": "tron",
	"XRP": "ripple", "ADA": "web+cardano", "XLM": "web+stellar:pay",
}

// PaymentURI is the link that a customer's wallet opens, and that a QR code
// carries: BIP21 for Bitcoin and its kind, EIP-681 for EVM networks (amounts in
// the smallest unit there), Solana Pay; elsewhere the usual scheme with an
// amount in whole coins. An address that does not fit into a link gives "".
func (r *Registry) PaymentURI(c *Currency, to Address, amount ledger.Amount, memo string) string {
	info := r.networks[c.Network]
	coins := ledger.PlainString(c.Decimal(amount))
	if to == "" || strings.ContainsFunc(string(to), reserved) || amount < 0 {
		return ""
	}
	if info.AddressType == "EVM" {
		units := new(big.Int).Mul(big.NewInt(int64(amount)), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Decimals-c.Scale)), nil))
		if c.Native() {
			return fmt.Sprintf("ethereum:%s@%d?value=%s", to, info.ChainID, units)
		}
		return fmt.Sprintf("ethereum:%s@%d/transfer?address=%s&uint256=%s", c.Contract, info.ChainID, to, units)
	}
	q := url.Values{"amount": {coins}}
	if c.Network == "XLM" {
		q.Set("destination", string(to))
	}
	if memo != "" {
		q.Set(memoKey(c.Network), memo)
	}
	if c.Network == "SOL" && !c.Native() {
		q.Set("spl-token", c.Contract)
	}
	if c.Network == "TRX" && !c.Native() {
		q.Set("token", c.Contract)
	}
	scheme := uriScheme[c.Network]
	if scheme == "" {
		scheme = strings.ToLower(string(c.Network))
	}
	// A space is %20 in a URI: what Encode writes is for forms.
	query := strings.ReplaceAll(q.Encode(), "+", "%20")
	if c.Network == "XLM" {
		return scheme + "?" + query
	}
	return scheme + ":" + string(to) + "?" + query
}

// reserved reports what would not stand for itself in a link (RFC 3986, 2.3).
func reserved(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~", r)
}

func memoKey(n Network) string {
	if n == "XRP" {
		return "dt" // destination tag
	}
	return "memo"
}
