// Package fsm holds state machines as data: one table of edges per machine,
// that decisions are checked against and documents are made from.
//
// A machine does not decide. Where one trigger leads to several states the
// domain's pure decision picks one, by the condition that the edge states in
// words, and Move says whether the table allows it. So the table, the document
// and the code cannot drift apart: a move that is not in the table is an error,
// and fsmtest fails where MACHINE.md or the golden product is stale.
package fsm

import (
	"errors"
	"fmt"
	"slices"
)

// ErrIllegal wraps every refusal of a move that the table does not have. It
// means a bug in the caller, or a request that comes too late or too early.
var ErrIllegal = errors.New("fsm: no such move")

// Machine is a state machine with states S and triggers T, both the strings
// that are stored and shown. The empty S is "(none)": where nothing exists yet.
type Machine[S, T ~string] struct {
	Name    string
	About   string // one paragraph for the document
	Initial S      // the state that creation leads to
	States  []S    // all of them, in the order to show
	Edges   []Edge[S, T]
}

// Edge is one legal move.
type Edge[S, T ~string] struct {
	From    []S // "" = nothing exists yet
	Trigger T
	To      S      // "" = the state stays as it is
	When    string // the condition, in words; "" = always
	Does    string // what else the move causes, in words
}

// Target is the state that the edge leads to from a state.
func (e *Edge[S, T]) target(from S) S {
	if e.To == "" {
		return from
	}
	return e.To
}

// Targets lists the states that a trigger may lead to from a state, in the
// order of the table, without doubles. None: the move is illegal.
func (m *Machine[S, T]) Targets(from S, trigger T) []S {
	var out []S
	for i := range m.Edges {
		e := &m.Edges[i]
		if e.Trigger != trigger || !slices.Contains(e.From, from) {
			continue
		}
		if to := e.target(from); !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// Next is the one state that a trigger leads to. The error wraps ErrIllegal
// where there is none, and is of another kind where the table has several: then
// the caller decides and asks Move.
func (m *Machine[S, T]) Next(from S, trigger T) (S, error) {
	switch t := m.Targets(from, trigger); len(t) {
	case 0:
		return "", fmt.Errorf("%w: %s: %s in state %s", ErrIllegal, m.Name, trigger, show(from))
	case 1:
		return t[0], nil
	default:
		return "", fmt.Errorf("fsm: %s: %s in state %s has several ends, decide one: %v", m.Name, trigger, show(from), t)
	}
}

// Move says whether the table has a move from one state to another by a
// trigger. Errors wrap ErrIllegal.
func (m *Machine[S, T]) Move(from S, trigger T, to S) error {
	if slices.Contains(m.Targets(from, trigger), to) {
		return nil
	}
	return fmt.Errorf("%w: %s: %s from %s to %s", ErrIllegal, m.Name, trigger, show(from), show(to))
}

// Can reports whether a trigger means anything in a state.
func (m *Machine[S, T]) Can(from S, trigger T) bool { return len(m.Targets(from, trigger)) > 0 }

// Triggers lists all triggers in the order in which the table first names them.
func (m *Machine[S, T]) Triggers() []T {
	var out []T
	for i := range m.Edges {
		if t := m.Edges[i].Trigger; !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// Ends lists the states that no edge leaves for another state.
func (m *Machine[S, T]) Ends() []S {
	var out []S
	for _, s := range m.States {
		if !slices.ContainsFunc(m.Edges, func(e Edge[S, T]) bool {
			return slices.Contains(e.From, s) && e.target(s) != s
		}) {
			out = append(out, s)
		}
	}
	return out
}

// Check says whether the table is sound: states known and not doubled, every
// edge with a trigger and a state to start from, every state reachable from
// (none), the initial state the end of creation, and no two edges that a reader
// could not tell apart.
func (m *Machine[S, T]) Check() error {
	for i, s := range m.States {
		if s == "" || slices.Contains(m.States[:i], s) {
			return fmt.Errorf("fsm: %s: state %s is empty or given twice", m.Name, show(s))
		}
	}
	known := func(s S) bool { return s == "" || slices.Contains(m.States, s) }
	type key struct {
		from, to S
		trigger  T
		when     string
	}
	seen := map[key]bool{}
	for i := range m.Edges {
		e := &m.Edges[i]
		if e.Trigger == "" || len(e.From) == 0 || !known(e.To) {
			return fmt.Errorf("fsm: %s: edge %d has no trigger, no start or an unknown end", m.Name, i)
		}
		for _, f := range e.From {
			k := key{f, e.target(f), e.Trigger, e.When}
			if !known(f) || k.to == "" || seen[k] {
				return fmt.Errorf("fsm: %s: edge %d starts in an unknown state, ends nowhere or is there twice: %s by %s", m.Name, i, show(f), e.Trigger)
			}
			seen[k] = true
		}
	}
	return m.reachable()
}

func (m *Machine[S, T]) reachable() error {
	reached := map[S]bool{"": true}
	for grown := true; grown; {
		grown = false
		for i := range m.Edges {
			e := &m.Edges[i]
			for _, f := range e.From {
				if to := e.target(f); reached[f] && !reached[to] {
					reached[to], grown = true, true
				}
			}
		}
	}
	for _, s := range m.States {
		if !reached[s] {
			return fmt.Errorf("fsm: %s: state %s cannot be reached", m.Name, s)
		}
	}
	if !slices.ContainsFunc(m.Edges, func(e Edge[S, T]) bool { return slices.Contains(e.From, "") && e.To == m.Initial }) {
		return fmt.Errorf("fsm: %s: nothing is created in the initial state %s", m.Name, show(m.Initial))
	}
	return nil
}

func show[S ~string](s S) string {
	if s == "" {
		return "(none)"
	}
	return string(s)
}
