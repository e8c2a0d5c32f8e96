package observe_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/observe"
)

// The table of the documents is the metrics, in their order, with their labels and words.
func TestE10_MetricsAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/observe.md")
	require.NoError(t, err)
	type row struct{ name, kind, labels, help string }
	var documented, there []row
	line := regexp.MustCompile("(?m)^\\| `(cryptopay_\\w+)` \\| (\\w+) \\| (.*?) \\| (.*) \\|$")
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row{m[1], m[2], strings.ReplaceAll(m[3], "`", ""), m[4]})
	}
	name := regexp.MustCompile(`^cryptopay_[a-z_]+$`)
	for _, m := range observe.Metrics() {
		kind := "gauge"
		if m.Counter {
			kind = "counter"
		}
		require.Regexp(t, name, m.Name)
		require.Equal(t, m.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		there = append(there, row{m.Name, kind, strings.Join(m.Labels, ", "), m.Help})
		for _, l := range m.Labels {
			require.Contains(t, []string{"part", "network", "state", "reason", "currency", "status", "consumer", "worker", "by", "kind", "node"}, l, "labels have few values")
		}
	}
	there = append(there, row{observe.Steps, "histogram", "worker", observe.StepsHelp})
	require.Equal(t, there, documented)
	names := make([]string, len(there))
	for i := range there {
		names[i] = there[i].name
	}
	slices.Sort(names)
	require.Len(t, slices.Compact(names), len(there), "names are used once")
}
