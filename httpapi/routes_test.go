package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoutesPage: docs/routes.md lists each operation of the document. -update writes it.
func TestRoutesPage(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			Summary  string
			Tags     []string
			Security []map[string][]string
		}
	}
	require.NoError(t, json.Unmarshal(documentOf(newWorld(t).api), &document))
	type route struct{ group, path, method, scopes, about string }
	var all []route
	for path, methods := range document.Paths {
		for method, op := range methods {
			scopes := "none"
			if len(op.Security) > 0 {
				scopes = "any"
				if of := op.Security[0]["oauth2"]; len(of) > 0 {
					scopes = strings.Join(of, ", ")
				}
			}
			all = append(all, route{op.Tags[0], path, strings.ToUpper(method), scopes, op.Summary})
		}
	}
	slices.SortFunc(all, func(a, b route) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.path, b.path), strings.Compare(a.method, b.method))
	})
	page := strings.Builder{}
	page.WriteString("# Routes of the REST interface\n\nMade by a test from the service's own document with `-update`; do not edit. `/docs/` of the service shows each with its fields, errors and examples.\n")
	for i, r := range all {
		if i == 0 || r.group != all[i-1].group {
			fmt.Fprintf(&page, "\n## %s\n\n| route | scope | what it does |\n|---|---|---|\n", r.group)
		}
		fmt.Fprintf(&page, "| `%s %s` | %s | %s |\n", r.method, r.path, r.scopes, r.about)
	}
	const file = "../docs/routes.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(page.String()), 0o600))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, page.String(), string(have), "go test ./httpapi -run TestRoutesPage -update writes it")
}
