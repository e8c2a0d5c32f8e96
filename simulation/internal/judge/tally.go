package judge

import (
	"fmt"
	"strings"
)

// Count is how often one promise was asked, how often its premise held so that it
// could have failed, and how often it was broken.
type Count struct{ Asked, Able, Broken int }

// Tally counts promises by id.
type Tally map[string]Count

// Add adds another tally.
func (t Tally) Add(more Tally) {
	for id, c := range more {
		have := t[id]
		t[id] = Count{have.Asked + c.Asked, have.Able + c.Able, have.Broken + c.Broken}
	}
}

// Idle lists promises that are neither open nor rare and never could have failed.
func (t Tally) Idle() (out []string) {
	for _, p := range Table() {
		if p.Open == "" && !p.Rare && t[p.ID].Able == 0 {
			out = append(out, p.ID)
		}
	}
	return out
}

// String is the tally as a table.
func (t Tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s %10s %12s %7s\n", "promise", "asked", "could fail", "broken")
	for _, p := range Table() {
		c := t[p.ID]
		fmt.Fprintf(&b, "%-22s %10d %12d %7d", p.ID, c.Asked, c.Able, c.Broken)
		if p.Open != "" {
			fmt.Fprintf(&b, "  open: %s", p.Open)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
