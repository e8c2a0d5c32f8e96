package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/networks"
)

// TestCurrenciesPage writes the currencies that are shipped into docs/currencies.md.
func TestCurrenciesPage(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("# Currencies\n\nMade by a test with `-update`; do not edit. The first table is `chain.MainnetRegistry`, which a host has by default. The second is what\n" +
		"[the file of networks](registry.md) brings beside it: `networks.Shipped`.\n")
	write := func(title string, r *chain.Registry, not *chain.Registry) {
		fmt.Fprintf(&page, "\n## %s\n\n| code | network | token | least | most | confirmations | contract |\n|---|---|---|---|---|---|---|\n", title)
		for _, code := range r.Codes() {
			if not != nil {
				if _, err := not.Currency(code); err == nil {
					continue
				}
			}
			c, err := r.Currency(code)
			require.NoError(t, err)
			confirmations := fmt.Sprint(c.Confirmations)
			if c.WaitFinal {
				confirmations += ", final"
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c.Code, c.Network, c.Token, c.Min, c.Max, confirmations, c.Contract)
		}
	}
	ours := chain.MainnetRegistry()
	write("Shipped", ours, nil)
	more := networks.Shipped().Registry()
	write("In the file of networks", more, ours)
	const file = "../../docs/currencies.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(page.String()), 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), page.String(), "go test ./internal/docs -run TestCurrenciesPage -update writes it anew")
}
