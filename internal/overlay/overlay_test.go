package overlay_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

const source = `package main

import "fmt"

type box[T any] struct{ v T }

func (b box[T]) get(_ ...int) T { return b.v }

func (b box[T]) with(v T) box[T] { b.v = v; return b }

func sum(from int, more ...int) (s int) {
	for _, n := range more {
		s += n
	}
	return from + s
}

func first[T any](all []T) T { return all[0] }

func safe(f func()) (err error) {
	defer caught(&err)
	f()
	return nil
}

func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

var start = sum(1)

func main() {
	fmt.Println(start, sum(1, 2, 3), first([]string{"a", "b"}), box[int]{1}.with(2).get(), safe(func() { panic("p") }))
}
`

// edit replaces the text old, which the source has once.
func edit(t *testing.T, id, old, instead string) overlay.Edit {
	t.Helper()
	require.Equal(t, 1, strings.Count(source, old), old)
	at := strings.Index(source, old)
	return overlay.Edit{ID: id, File: "main.go", At: at, End: at + len(old), New: instead}
}

// TestTogether: one program holds every edit that a second copy of a function can
// hold, and does what the chosen one says.
func TestTogether(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.go"), []byte(source), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.test/one\n\ngo 1.26\n"), 0o600))
	list, holds, err := overlay.Together(root, dir, []overlay.Edit{
		edit(t, "minus", "from + s", "from - s"),
		edit(t, "whole", "func first[T any](all []T) T { return all[0] }", "func first[T any](all []T) T { return all[1] }"),
		edit(t, "box-forgets", "b.v = v; return b", "return b"),
		edit(t, "unnamed", "return b.v }", "return *new(T) }"),
		edit(t, "recovers", `"%v"`, `"%q"`),
		edit(t, "variable", "sum(1)\n", "sum(7)\n"),
	})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"minus": true, "whole": true, "box-forgets": true}, holds)

	program := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-o", program, ".")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for id, want := range map[string]string{
		"":            "1 6 a 2 p\n",
		"minus":       "1 -4 a 2 p\n",
		"whole":       "1 6 b 2 p\n",
		"box-forgets": "1 6 a 1 p\n",
	} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), overlay.Chosen+"="+id)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, string(out), id)
	}
}

// TestWrite writes what the go command reads.
func TestWrite(t *testing.T) {
	t.Parallel()
	e := edit(t, "variable", "sum(1)\n", "sum(7)\n")
	name, err := overlay.Write("/src", t.TempDir(), map[string][]byte{"a/b.go": e.Apply([]byte(source)), "c.go": nil})
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var list struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &list))
	require.Len(t, list.Replace, 2)
	instead, err := os.ReadFile(list.Replace[filepath.FromSlash("/src/a/b.go")])
	require.NoError(t, err)
	require.Equal(t, strings.Replace(source, "sum(1)\n", "sum(7)\n", 1), string(instead))
}
