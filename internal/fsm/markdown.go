package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is the machine as a document: a diagram and the table of its edges.
func (m *Machine[S, T]) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# States of %s\n\nMade from the machine in the code by its test with `-update`; do not edit.\n", one(m.Name))
	if m.About != "" {
		fmt.Fprintf(&b, "\n%s\n", m.About)
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	for _, line := range m.arrows() {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	for _, s := range m.Ends() {
		fmt.Fprintf(&b, "    %s --> [*]\n", s)
	}
	b.WriteString("```\n\n| From | Trigger | Condition | To | Also |\n|---|---|---|---|---|\n")
	for i := range m.Edges {
		e := &m.Edges[i]
		from := make([]string, len(e.From))
		for j, f := range e.From {
			from[j] = show(f)
		}
		to := string(e.To)
		if to == "" {
			to = "stays"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.Join(from, ", "), cell(string(e.Trigger)), cell(e.When), to, cell(e.Does))
	}
	return b.String()
}

// arrows are the moves between different states, one line for each pair.
func (m *Machine[S, T]) arrows() []string {
	type pair struct{ from, to S }
	var order []pair
	labels := map[pair][]string{}
	for i := range m.Edges {
		e := &m.Edges[i]
		for _, f := range e.From {
			p := pair{f, e.target(f)}
			if p.from == p.to {
				continue
			}
			if labels[p] == nil {
				order = append(order, p)
			}
			if !slices.Contains(labels[p], string(e.Trigger)) {
				labels[p] = append(labels[p], string(e.Trigger))
			}
		}
	}
	out := make([]string, len(order))
	for i, p := range order {
		from := string(p.from)
		if from == "" {
			from = "[*]"
		}
		out[i] = fmt.Sprintf("%s --> %s: %s", from, p.to, strings.Join(labels[p], ", "))
	}
	return out
}

// Product is the whole State × Trigger table, one line for each pair, with all
// the states that it may lead to; "-" where the move is illegal. It is kept as
// a golden file, so that each change of a machine shows up in review.
func (m *Machine[S, T]) Product() string {
	var b strings.Builder
	for _, s := range append([]S{""}, m.States...) {
		for _, t := range m.Triggers() {
			targets := m.Targets(s, t)
			to := make([]string, len(targets))
			for i, s := range targets {
				to[i] = string(s)
			}
			if len(to) == 0 {
				to = []string{"-"}
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\n", show(s), t, strings.Join(to, " | "))
		}
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// one is a noun with its article.
func one(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
