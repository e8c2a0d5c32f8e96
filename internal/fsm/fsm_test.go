package fsm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/fsm"
	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
)

type (
	door = fsm.Machine[string, string]
	edge = fsm.Edge[string, string]
)

func example() *door {
	return &door{
		Name: "door", About: "A door with a lock.", Initial: "shut", States: []string{"shut", "open", "locked", "gone"},
		Edges: []edge{
			{From: []string{""}, Trigger: "build", To: "shut"},
			{From: []string{"shut"}, Trigger: "push", To: "open", When: "pushed hard", Does: "squeaks"},
			{From: []string{"shut"}, Trigger: "push", When: "pushed softly"},
			{From: []string{"open"}, Trigger: "pull", To: "shut"},
			{From: []string{"shut"}, Trigger: "lock", To: "locked"},
			{From: []string{"open", "shut", "locked"}, Trigger: "burn", To: "gone"},
		},
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	m := example()
	fsmtest.Walk(t, m, "testdata/door.golden", "testdata/DOOR.md")
	require.Equal(t, []string{"open", "shut"}, m.Targets("shut", "push"))
	require.Equal(t, []string{"gone"}, m.Ends())
}

func TestCheckFindsUnsoundTables(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*door){
		"doubled state":      func(m *door) { m.States = append(m.States, "shut") },
		"unknown end":        func(m *door) { m.Edges[1].To = "ajar" },
		"unknown start":      func(m *door) { m.Edges[1].From = []string{"ajar"} },
		"no trigger":         func(m *door) { m.Edges[1].Trigger = "" },
		"unreachable":        func(m *door) { m.States = append(m.States, "ajar") },
		"edge twice":         func(m *door) { m.Edges = append(m.Edges, m.Edges[3]) },
		"nothing is created": func(m *door) { m.Initial = "open" },
		"creation stays":     func(m *door) { m.Edges[0].To = "" },
	} {
		m := example()
		spoil(m)
		require.Error(t, m.Check(), name)
	}
	require.NoError(t, example().Check())
}
