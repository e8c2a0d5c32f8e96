//go:build planted

package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/simulation/internal/planted"
)

// found is what the worlds made of one bug.
type found struct {
	bug    planted.Bug
	worlds []caught // one of each first seed
}

// counts are how many worlds each try took, ascending; those in vain are last.
func (f *found) counts() []int {
	var out []int
	for _, w := range f.worlds {
		n := w.Worlds
		if n == 0 || w.Invariant == "panic" || w.Invariant == setup { // to fall over is not to be found
			n = *limit + 1
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (f *found) median() int { return f.counts()[len(f.worlds)/2] }

func (f *found) all() bool { return f.counts()[len(f.worlds)-1] <= *limit }

func (f *found) none() bool { return f.counts()[0] > *limit }

// good is what is asked: the bug is found, whatever the first seed; in the library
// as it is nothing is.
func (f *found) good() bool {
	if f.bug.File == "" {
		return f.none()
	}
	return f.all()
}

func (f *found) verdict() string {
	switch {
	case f.all():
		return "yes"
	case f.none():
		return "no"
	}
	return "some"
}

// by are the promises that were broken.
func (f *found) by() string {
	var out []string
	for _, w := range f.worlds {
		if w.Worlds > 0 && !slices.Contains(out, w.Invariant) {
			out = append(out, w.Invariant)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// seeds tells how many worlds it took: the median, and each.
func (f *found) seeds() string {
	if f.none() {
		return fmt.Sprintf("> %d", *limit)
	}
	return fmt.Sprintf("%d %v", f.median(), f.counts())
}

// render writes the table of docs/evidence/reliability.md.
func render(all []found) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| bug | package | what the wrong line does | found | by | median worlds |\n|---|---|---|---|---|---|\n")
	for i := range all {
		f := &all[i]
		where := "`" + path.Dir(f.bug.File) + "`"
		if f.bug.Store != "" {
			where += " (" + f.bug.Store + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d |\n", f.bug.ID, where, f.bug.What, f.verdict(), f.by(), f.median())
	}
	n := 0
	for i := range all {
		if all[i].all() {
			n++
		}
	}
	fmt.Fprintf(&b, "\n%d of %d were found from each of three first seeds, within %d worlds; half of all within %d.\n", n, len(all), *limit, overall(all))
	return b.String()
}

// overall is the median of the bugs' medians.
func overall(all []found) int {
	if len(all) == 0 {
		return 0
	}
	var out []int
	for i := range all {
		out = append(out, all[i].median())
	}
	slices.Sort(out)
	return out[len(out)/2]
}

// The table stands between these lines.
const (
	begin = "<!-- planted: written by `make planted` -->\n"
	end   = "<!-- planted: end -->\n"
)

func between(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("hunt: %s lacks the lines %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+table+end+after), 0o600)
}
