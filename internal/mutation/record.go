package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is what became of the mutants of one package.
type result struct {
	dir       string   // of the package, from the module's root
	commits   []string // at which tests ran
	seed      uint64
	drawn     int      // mutants to run
	none      int      // of these: those that do not compile
	killed    []mutant // of these: those that a test found
	survivors []mutant // of these: those that none found
	brief     int      // survivors that did not meet all tests
	minutes   float64
	all       []mutant // that the package has
}

// ran is how many mutants met the tests: all that were drawn, unless time was up.
func (r *result) ran() int { return len(r.killed) + len(r.survivors) }

func (r *result) percent() float64 {
	return 100 * float64(len(r.killed)) / float64(max(r.ran(), 1))
}

// count adds what became of a mutant.
func (r *result) count(m mutant, e entry) {
	switch e.Verdict {
	case killed:
		r.killed = append(r.killed, m)
	case survives:
		r.survivors = append(r.survivors, m)
		if e.Brief {
			r.brief++
		}
	case uncompiled:
		r.none++
	}
	if !slices.Contains(r.commits, e.Commit) {
		r.commits = append(r.commits, e.Commit)
	}
	r.minutes += e.Seconds / 60
}

// The section of a package in the record stands between these lines.
func begin(dir string) string { return fmt.Sprintf("<!-- mutation: %s -->\n", dir) }
func end(dir string) string   { return fmt.Sprintf("<!-- mutation: end of %s -->\n", dir) }

var section = regexp.MustCompile(`(?m)^<!-- mutation: (?:end of )?(\S+) -->\n`)

// record puts the section of a package in the place of its last one, or of the next
// package by name. A person's reason stays where its survivor is in the code.
func record(text string, r *result) string {
	before, rest, there := strings.Cut(text, begin(r.dir))
	old, after, ended := strings.Cut(rest, end(r.dir))
	if !there || !ended {
		before, after, old = text, "", ""
		for _, at := range section.FindAllStringSubmatchIndex(text, -1) {
			if text[at[2]:at[3]] > r.dir {
				before, after = text[:at[0]], text[at[0]:]
				break
			}
		}
		if after == "" {
			before = strings.TrimRight(before, "\n") + "\n\n"
		} else {
			after = "\n" + after
		}
	}
	return overview(before + begin(r.dir) + r.section(reasons(old)) + end(r.dir) + after)
}

var (
	table = regexp.MustCompile(`(?s)<!-- mutation table -->\n.*<!-- mutation table -->\n`)
	// figures are what the section of a package opens with: commit, seed, mutants, of all, killed, percent, survivors.
	figures = regexp.MustCompile(`\n\| ([^|]*) \| (\d+) \| (\d+) of (\d+) \| (\d+) \(([\d.]+%)\) \| (\d+) \|`)
)

// overview puts the figures of all packages into the table at the top. A record that
// has no place for it stays without.
func overview(text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- mutation table -->\n| package | mutants | killed | equivalent | open | killed of those that differ |\n|---|---|---|---|---|---|\n")
	for _, at := range section.FindAllStringSubmatchIndex(text, -1) {
		dir := text[at[2]:at[3]]
		own, _, _ := strings.Cut(text[at[1]:], end(dir))
		f := figures.FindStringSubmatch(own)
		if f == nil || !strings.HasPrefix(text[at[0]:], begin(dir)) {
			continue
		}
		waiting := strings.Count(own, "| "+open+" |\n")
		killed, _ := strconv.Atoi(f[5])
		survivors, _ := strconv.Atoi(f[7])
		fmt.Fprintf(&b, "| [%s](#%s) | %s of %s | %s (%s) | %d | %d | %.1f%% |\n", dir, strings.ReplaceAll(dir, "/", ""), f[3], f[4], f[5], f[6],
			survivors-waiting, waiting, 100*float64(killed)/float64(max(killed+waiting, 1)))
	}
	b.WriteString("<!-- mutation table -->\n")
	return table.ReplaceAllLiteralString(text, b.String())
}

// identity is what a survivor is known by from run to run. Its line may have moved.
func (m *mutant) identity() string {
	return strings.Join([]string{m.File, m.function, string(m.kind), code(m.before), code(m.after)}, " | ")
}

// The columns of a survivor: place, function, kind, before, after, reason.
const columns = 6

// reasons are those that stand in a section, by identity.
func reasons(section string) map[string]string {
	out := map[string]string{}
	for row := range strings.Lines(section) {
		cells := strings.SplitN(strings.TrimSpace(row), " | ", columns)
		if len(cells) != columns {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(cells[0], "| "), ":")
		if reason := strings.TrimSpace(strings.TrimSuffix(cells[columns-1], "|")); reason != "" && reason != open {
			out[strings.Join(append([]string{file}, cells[1:columns-1]...), " | ")] = reason
		}
	}
	return out
}

// open is the reason of a survivor that nobody has looked at yet.
const open = "**open**"

// section is the record of a package. A mutant with a reason that was not drawn this
// time keeps its row: it is known to survive.
func (r *result) section(reasons map[string]string) string {
	row := func(m *mutant, reason string) string {
		return fmt.Sprintf("| %s | %s | %s |\n", m.place(), strings.TrimPrefix(m.identity(), m.File+" | "), reason)
	}
	var rows, kept []string
	drawn := map[string]bool{}
	for i := range r.killed {
		drawn[r.killed[i].identity()] = true
	}
	slices.SortFunc(r.survivors, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.At, b.At), cmp.Compare(a.New, b.New))
	})
	for i := range r.survivors {
		m := &r.survivors[i]
		drawn[m.identity()] = true
		reason, ok := reasons[m.identity()]
		if !ok {
			reason = open
		}
		rows = append(rows, row(m, reason))
	}
	for i := range r.all {
		m := &r.all[i]
		if reason, ok := reasons[m.identity()]; ok && !drawn[m.identity()] {
			kept = append(kept, row(m, reason))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", r.dir)
	fmt.Fprintf(&b, "| commit | seed | mutants | killed | survivors | minutes |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %s | %d | %d of %d | %d (%.1f%%) | %d | %.1f |\n", strings.Join(r.commits, ", "), r.seed, r.ran(), len(r.all), len(r.killed), r.percent(), len(r.survivors), r.minutes)
	if r.brief > 0 {
		fmt.Fprintf(&b, "\nOn %d of the survivors some tests did not run.\n", r.brief)
	}
	if len(rows)+len(kept) > 0 {
		fmt.Fprintf(&b, "\n| survivor | function | kind | before | after | reason |\n|---|---|---|---|---|---|\n")
		b.WriteString(strings.Join(append(rows, kept...), ""))
	}
	return b.String()
}

// code writes Go into a cell of a table.
func code(s string) string {
	if s == "" {
		return "nothing"
	}
	s = strings.ReplaceAll(s, "|", `\|`)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

// write puts a result into the record in a file.
func write(file string, r *result) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(record(string(text), r)), 0o600)
}
