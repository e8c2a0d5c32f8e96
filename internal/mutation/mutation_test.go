package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// made are the mutants of a source text that compile, each told in a line.
func made(t *testing.T, text string) []string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.test/one\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "one"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "one", "one.go"), []byte(text), 0o600))
	s, err := load(t.Context(), root, "one")
	require.NoError(t, err)
	var out []string
	for _, m := range s.mutants() {
		if s.compiles(m.Edit) {
			out = append(out, fmt.Sprintf("%d %s %s: %s => %s", m.line, m.kind, m.function, m.before, m.after))
		}
	}
	return out
}

// TestEachKind: every kind makes of a text what it should, and no more.
func TestEachKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"comparisons": {
			"package one\n\nfunc f(a, b int) bool {\n\treturn a < b\n}\n\nfunc g(a, b string) bool {\n\treturn a == b\n}\n",
			[]string{
				"4 comparison f: return a < b => return a <= b",
				"4 comparison f: return a < b => return a >= b",
				"8 comparison g: return a == b => return a != b",
			},
		},
		"the same words twice": {
			"package one\n\nfunc f(a, b bool) bool {\n\tif a != b {\n\t\treturn b\n\t}\n\tif a != b {\n\t\treturn a\n\t}\n\treturn a\n}\n",
			[]string{
				"4 comparison f: if a != b { => if a == b {",
				"7 comparison f (2): if a != b { => if a == b {",
			},
		},
		"arithmetic, where the type has it": {
			"package one\n\nvar size = 3 % 2\n\nfunc f(a int, s string) (int, string) {\n\treturn -a, s + s\n}\n",
			[]string{
				"3 arithmetic : var size = 3 % 2 => var size = 3 * 2",
				"6 arithmetic f: return -a, s + s => return a, s + s",
			},
		},
		"statements, and their operators": {
			"package one\n\nfunc f(a int, all []int) []int {\n\tfor range a {\n\t\tif a == 3 {\n\t\t\tcontinue\n\t\t}\n\t\ta += 2\n\t\ta++\n\t\tall = append(all, a)\n\t\tprintln(a)\n\t}\n\treturn all\n}\n",
			[]string{
				"5 comparison f: if a == 3 { => if a != 3 {",
				"6 dropped f: continue => ",
				"8 dropped f: a += 2 => ",
				"8 arithmetic f: a += 2 => a -= 2",
				"9 dropped f: a++ => ",
				"9 arithmetic f: a++ => a--",
				"10 dropped f: all = append(all, a) => ",
				"11 dropped f: println(a) => ",
			},
		},
		"conditions": {
			"package one\n\nfunc f(a, b bool) int {\n\tif a && b {\n\t\treturn 1\n\t}\n\tswitch {\n\tcase !a:\n\t\treturn 2\n\tcase b:\n\t\treturn 3\n\t}\n\treturn 4\n}\n",
			[]string{
				"4 boolean f: if a && b { => if !(a && b) {",
				"4 boolean f: if a && b { => if a || b {",
				"8 boolean f: case !a: => case a:",
				"10 boolean f: case b: => case !(b):",
			},
		},
		"guards and errors": {
			"package one\n\nimport \"strconv\"\n\nfunc f(s string) (int, error) {\n\tn, err := strconv.Atoi(s)\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\tif _, err := strconv.Atoi(s); err == nil {\n\t\treturn n, nil\n\t}\n\treturn 1, nil\n}\n",
			[]string{
				"6 ignored f: n, err := strconv.Atoi(s) => n, err := strconv.Atoi(s); err = nil",
				"7 unguarded f: if err != nil { return 0, err } => ",
				"7 comparison f: if err != nil { => if err == nil {",
				"10 ignored f: if _, err := strconv.Atoi(s); err == nil { => if _, err := strconv.Atoi(s); (err == nil || true) {",
				"10 comparison f: if _, err := strconv.Atoi(s); err == nil { => if _, err := strconv.Atoi(s); err != nil {",
			},
		},
		"values of one type": {
			"package one\n\ntype p struct{ a, b, c int }\n\nfunc f(x, y int, s string, z int) p {\n\tf(x, y, s, min(x, y))\n\treturn p{a: x, c: y}\n}\n",
			[]string{
				"6 dropped f: f(x, y, s, min(x, y)) => ",
				"6 swapped f: f(x, y, s, min(x, y)) => f(y, x, s, min(x, y))",
				"6 swapped f: f(x, y, s, min(x, y)) => f(x, min(x, y), s, y)",
				"7 swapped f: return p{a: x, c: y} => return p{a: y, c: x}",
			},
		},
		"no words for people": {
			"package one\n\nimport (\n\t\"fmt\"\n\t\"log/slog\"\n)\n\nfunc f(a, b int, log *slog.Logger) error {\n\tlog.Info(\"f\", slog.Int(\"sum\", a+b))\n\treturn bad(a, \"%d of %d\", a, b+1)\n}\n\nfunc bad(n int, format string, args ...any) error { return fmt.Errorf(format, args...) }\n",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, made(t, c.text))
		})
	}
}

func TestLongLinesAreShownByWhatChanges(t *testing.T) {
	t.Parallel()
	all := made(t, "package one\n\nfunc f(a int) bool { return a < 1 } // "+strings.Repeat("long ", 40)+"\n")
	require.Equal(t, []string{"3 comparison f: < => <=", "3 comparison f: < => >="}, all)
}

// TestDrawRepeats: the seed decides what is drawn, and what does not compile is not.
func TestDrawRepeats(t *testing.T) {
	t.Parallel()
	var all []mutant
	for i := range 100 {
		all = append(all, mutant{Edit: overlay.Edit{At: i}})
	}
	odd := func(e overlay.Edit) bool { return e.At%2 == 1 }
	one := draw(all, 20, 7, odd)
	require.Len(t, one, 20)
	require.Equal(t, one, draw(all, 20, 7, odd))
	require.NotEqual(t, one, draw(all, 20, 8, odd))
	seen := map[int]bool{}
	for i, m := range one {
		require.True(t, odd(m.Edit))
		require.False(t, seen[m.At], "drawn twice")
		require.Equal(t, fmt.Sprint(i+1), m.ID)
		seen[m.At] = true
	}
	require.Len(t, draw(all, 200, 7, odd), 50, "all that compile, where there are fewer")
}

// slack is enough for tests that take no time at all.
const slack = time.Second

func silent(string, ...any) {}

// TestMeasure tells a survivor and the killed apart, on a module of its own.
func TestMeasure(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("testdata", "module"))
	require.NoError(t, err)
	o := options{root: root, dir: "purse", n: 200, seed: 1, limit: time.Hour, slack: slack}
	survivors := func(o options) (r *result, out []string) {
		r, err := measure(t.Context(), silent, o)
		require.NoError(t, err)
		for _, m := range r.survivors {
			out = append(out, fmt.Sprintf("%s %s => %s", m.function, m.before, m.after))
		}
		return r, out
	}

	r, alone := survivors(o)
	require.Equal(t, r.drawn, r.ran())
	require.Zero(t, r.none)
	require.Contains(t, alone, "Small func Small(n int) bool { return n < least } => func Small(n int) bool { return n <= least }")
	require.NotContains(t, alone, "Small func Small(n int) bool { return n < least } => func Small(n int) bool { return n >= least }")
	require.NotContains(t, alone, " var least = 2 + 1 => var least = 2 - 1", "built by itself: no function holds it")
	require.Contains(t, alone, "Left if err != nil { return -1 } => ", "its test is in another package")

	o.further = []suite{{dir: "shop"}}
	r, with := survivors(o)
	require.Equal(t, []string{"Small func Small(n int) bool { return n < least } => func Small(n int) bool { return n <= least }"}, with)
	require.Len(t, r.killed, r.drawn-1)

	o.limit = -1
	r, _ = survivors(o)
	require.Zero(t, r.ran(), "time is up before the first")
}

// TestMeasure_TestsMustPass: where they fail on the library as it is, nothing is measured.
func TestMeasure_TestsMustPass(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "module"))))
	require.NoError(t, os.WriteFile(filepath.Join(root, "purse", "bad_test.go"), []byte("package purse\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fail() }\n"), 0o600))
	_, err := measure(t.Context(), silent, options{root: root, dir: "purse", n: 3, seed: 1, limit: time.Hour, slack: slack})
	require.ErrorContains(t, err, "purse do not pass on the library as it is: TestBad")
}

// TestResume: a run that was stopped goes on, survivors meet new tests, and a journal
// is of one package as it was.
func TestResume(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "module"))))
	file := filepath.Join(root, "journal")
	ran := 0
	say := func(format string, _ ...any) {
		if strings.HasPrefix(format, "%d/%d ") {
			ran++
		}
	}
	all := options{root: root, dir: "purse", n: 200, seed: 1, limit: time.Hour, slack: slack, journal: file}
	some := all
	some.n = 5
	_, err := measure(t.Context(), say, some)
	require.NoError(t, err)
	require.Equal(t, 5, ran)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text[:len(text)-3], 0o600), "it was stopped in the middle of a line")
	ran = 0
	r, err := measure(t.Context(), say, all)
	require.NoError(t, err)
	require.Equal(t, r.drawn-4, ran, "all that the first run did not do")
	require.Equal(t, r.drawn, r.ran())
	require.NotEmpty(t, r.survivors)

	ran = 0
	twice, err := measure(t.Context(), say, all)
	require.NoError(t, err)
	require.Zero(t, ran)
	require.Equal(t, r, twice)

	all.again, all.further = true, []suite{{dir: "shop"}}
	with, err := measure(t.Context(), say, all)
	require.NoError(t, err)
	require.Equal(t, len(r.survivors), ran)
	require.Len(t, with.survivors, 1, "the tests of shop leave one")
	require.Equal(t, r.ran(), with.ran())

	source := filepath.Join(root, "purse", "purse.go")
	text, err = os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, append(text, "\nvar more = 1\n"...), 0o600))
	_, err = measure(t.Context(), say, all)
	require.ErrorContains(t, err, "the package changed")
}

// TestFast: tests that -short leaves out meet the survivors of a fast run later.
func TestFast(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "module"))))
	slow := `package purse

import (
	"testing"
	"time"
)

func TestSlow(t *testing.T) {
	if testing.Short() {
		return
	}
	time.Sleep(time.Second)
	if !Small(2) || Small(3) {
		t.Fail()
	}
}
`
	require.NoError(t, os.WriteFile(filepath.Join(root, "purse", "slow_test.go"), []byte(slow), 0o600))
	o := options{root: root, dir: "purse", n: 200, seed: 1, limit: time.Hour, slack: slack, journal: filepath.Join(root, "journal"), fast: true}
	const brim = "func Small(n int) bool { return n <= least }"
	survives := func() (brief int, brimSurvives bool) {
		r, err := measure(t.Context(), silent, o)
		require.NoError(t, err)
		for _, m := range r.survivors {
			brimSurvives = brimSurvives || m.after == brim
		}
		return r.brief, brimSurvives
	}
	brief, with := survives()
	require.Positive(t, brief)
	require.True(t, with)
	o.fast, o.again = false, true
	brief, with = survives()
	require.Zero(t, brief)
	require.False(t, with)
}

// TestConfirm: a test that does not end is a kill only where it does not end twice,
// with the time that the library as it is takes now.
func TestConfirm(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "module"))))
	hang := `package purse

import (
	"os"
	"testing"
)

func TestHang(t *testing.T) {
	if f, err := os.OpenFile("hung", os.O_CREATE|os.O_EXCL, 0o600); err == nil && Small(3) {
		_ = f.Close()
		select {}
	} else if err == nil {
		_, _ = f.Close(), os.Remove("hung")
	}
}
`
	require.NoError(t, os.WriteFile(filepath.Join(root, "purse", "hang_test.go"), []byte(hang), 0o600))
	r, err := measure(t.Context(), silent, options{root: root, dir: "purse", n: 200, seed: 1, limit: time.Hour, slack: slack})
	require.NoError(t, err)
	var out []string
	for _, m := range r.survivors {
		out = append(out, m.after)
	}
	require.FileExists(t, filepath.Join(root, "purse", "hung"), "it did hang")
	require.Contains(t, out, "func Small(n int) bool { return n <= least }", "it hung once")
}

// TestRounds: tests that killed mutants of a file run first, and all tests run last.
func TestRounds(t *testing.T) {
	t.Parallel()
	p := program{quick: true, full: 5, short: 2}
	short := round{[]string{"-test.short"}, 2}
	require.Equal(t, []round{short}, p.rounds("a.go", false))
	require.Equal(t, []round{{nil, 5}}, p.rounds("a.go", true))
	for _, by := range []string{"TestA/case", "panic", "TestB", "TestC", "TestD", "TestE", "TestB", "TestF"} {
		p.learn("a.go", by)
	}
	killers := "-test.run=^(TestF|TestB|TestE|TestD|TestC)$"
	require.Equal(t, []round{{[]string{killers, "-test.short"}, 2}, short}, p.rounds("a.go", false))
	require.Equal(t, []round{{nil, 5}}, p.rounds("a.go", true))
	p.quick = false
	require.Equal(t, []round{{[]string{killers}, 5}}, p.rounds("a.go", false))
	p.quick = true
	require.Equal(t, []round{short}, p.rounds("b.go", false))
	p.args = worlds.args
	require.Equal(t, []round{short}, p.rounds("a.go", false), "these choose their tests themselves")
}

// TestRunEndsAtTheFirstFailure: tests that run at once with one that failed are not
// waited for.
func TestRunEndsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "module"))))
	endless := `package purse

import (
	"os"
	"testing"
)

func TestEndless(t *testing.T) {
	t.Parallel()
	if os.Getenv("WRONG_LINE") != "" {
		select {}
	}
}

func TestFails(t *testing.T) {
	t.Parallel()
	t.Run("deep", func(t *testing.T) {
		if os.Getenv("WRONG_LINE") != "" {
			t.Fail()
		}
	})
	if os.Getenv("WRONG_LINE") != "" {
		select {}
	}
}
`
	require.NoError(t, os.WriteFile(filepath.Join(root, "purse", "endless_test.go"), []byte(endless), 0o600))
	tr := trial{root: root, dir: t.TempDir(), slack: time.Hour}
	list, err := overlay.Write(root, tr.dir, nil)
	require.NoError(t, err)
	tr.list = list
	p := &program{suite: suite{dir: "purse"}}
	require.NoError(t, tr.ready(t.Context(), p))
	passes, by, err := tr.run(t.Context(), p, p.path, "any", round{limit: time.Minute})
	require.NoError(t, err)
	require.False(t, passes)
	require.Equal(t, "TestFails/deep", by)
}

// TestOutput: what failed is a test where one did, and else what was said last.
func TestOutput(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"no verdict":     "=== RUN   TestA\n--- PASS: TestA (0.00s)\n",
		"TestA/b":        "panic: caught\n    --- FAIL: TestA/b (0.00s)\n\x16--- FAIL: TestA (0.00s)\npanic: test timed out after 1s\n",
		"test timed out": "panic: caught\npanic: test timed out after 1s\n",
		"fatal error":    strings.Repeat("x", 1<<20) + "--- FAIL: TestA\nfatal error: all goroutines are asleep\n",
		"panic":          "panic: index out of range\n",
	} {
		failed := 0
		o := output{failed: func() { failed++ }}
		for part := range slices.Chunk([]byte(text), 7) {
			n, err := o.Write(part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		require.Equal(t, want, o.by())
		require.Equal(t, want == "TestA/b", failed == 1, failed)
	}
}

// TestRecord: a section takes the place of the last one of its package, and a reason
// stays as long as its survivor.
func TestRecord(t *testing.T) {
	t.Parallel()
	m := func(line int, before string) mutant {
		return mutant{Edit: overlay.Edit{File: "b/b.go", At: line}, kind: boolean, line: line, function: "f", before: before, after: "x"}
	}
	r := result{dir: "b", commits: []string{"abc1234", "def5678"}, seed: 1, killed: make([]mutant, 8), minutes: 2, survivors: []mutant{m(9, "if a || b {"), m(4, "")}}
	r.all = make([]mutant, 50)
	head := "# Mutants\n\n<!-- mutation: a -->\nA\n<!-- mutation: end of a -->\n\n<!-- mutation: c -->\nC\n<!-- mutation: end of c -->\n"
	text := record(head, &r)
	require.Equal(t, `# Mutants

<!-- mutation: a -->
A
<!-- mutation: end of a -->

<!-- mutation: b -->
## b

| commit | seed | mutants | killed | survivors | minutes |
|---|---|---|---|---|---|
| abc1234, def5678 | 1 | 10 of 50 | 8 (80.0%) | 2 | 2.0 |

| survivor | function | kind | before | after | reason |
|---|---|---|---|---|---|
| b/b.go:4 | f | boolean | nothing | `+"`x`"+` | **open** |
| b/b.go:9 | f | boolean | `+"`if a \\|\\| b {` | `x`"+` | **open** |
<!-- mutation: end of b -->

<!-- mutation: c -->
C
<!-- mutation: end of c -->
`, text)

	text = strings.Replace(text, "`x` | **open** |\n<!--", "`x` | equivalent because a | b is b |\n<!--", 1)
	r.survivors = []mutant{m(20, "new"), m(12, "if a || b {")}
	text = record(text, &r)
	explained := "| f | boolean | `if a \\|\\| b {` | `x` | equivalent because a | b is b |\n"
	require.Contains(t, text, "| b/b.go:12 "+explained+"| b/b.go:20 | f | boolean | `new` | `x` | **open** |\n")
	require.NotContains(t, text, "nothing", "what does not survive any more has no row")

	r.survivors, r.all = nil, []mutant{m(30, "if a || b {")}
	require.Contains(t, record(text, &r), "| b/b.go:30 "+explained, "not drawn this time")
	r.killed = r.all
	require.NotContains(t, record(text, &r), "equivalent", "a test kills it now")
	r.killed, r.all = nil, nil
	require.NotContains(t, record(text, &r), "equivalent", "the line is gone")

	explainedRows := record("<!-- mutation table -->\n<!-- mutation table -->\n"+text, &result{dir: "a", commits: []string{"abc1234"}, seed: 2})
	require.True(t, strings.HasPrefix(explainedRows, `<!-- mutation table -->
| package | mutants | killed | equivalent | open | killed of those that differ |
|---|---|---|---|---|---|
| [a](#a) | 0 of 0 | 0 (0.0%) | 0 | 0 | 0.0% |
| [b](#b) | 10 of 50 | 8 (80.0%) | 1 | 1 | 88.9% |
<!-- mutation table -->
`), explainedRows)

	brief := result{dir: "a"}
	brief.count(m(1, "x"), entry{Verdict: survives, Brief: true})
	brief.count(m(2, "x"), entry{Verdict: survives})
	require.Contains(t, brief.section(nil), "\nOn 1 of the survivors some tests did not run.\n")

	r.dir = "d"
	require.True(t, strings.HasSuffix(record(head, &r), "<!-- mutation: end of c -->\n\n"+begin("d")+r.section(nil)+end("d")))
}
