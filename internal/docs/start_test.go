package docs

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGettingStarted follows the page to the letter, in a module that is empty: its commands
// run in their order, a Go block whose first line names a file begins that file, and what the
// last command prints is the block of text. The module comes from a proxy that has this
// checkout as its only version.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles the library from a proxy")
	}
	env := proxy(t)
	dir := t.TempDir()
	sh := func(text string) string {
		t.Helper()
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &said
		out, err := cmd.Output()
		require.NoError(t, err, "%s\n%s\n%s", text, out, &said)
		return string(out)
	}
	p := onePage(t, start)
	var commands []string
	files, file, output := map[string]string{}, "", ""
	for _, b := range p.blocks {
		switch b.lang {
		case "sh":
			commands = append(commands, b.text)
		case "text":
			output = b.text
		case "go":
			if name, ok := strings.CutPrefix(strings.SplitN(b.text, "\n", 2)[0], "// "); ok && strings.HasSuffix(name, ".go") {
				file = name
			}
			files[file] += b.text + "\n"
		}
	}
	require.Len(t, commands, 2)
	require.Contains(t, files, "shop_test.go")
	sh(commands[0])
	dir = filepath.Join(dir, "shop")
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	printed := sh(commands[1])
	require.Regexp(t, `^ok  \tshop\t`, printed)
	_, printed, _ = strings.Cut(printed, "\n")
	require.Equal(t, output, printed)
}

// proxy serves this checkout as a version of the module, whose name follows from what is in
// it, and gives the environment in which the go command asks it first.
func proxy(t *testing.T) []string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	listed, err := git.Output()
	require.NoError(t, err)
	names := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	sum := sha256.New()
	contents := map[string][]byte{}
	for _, name := range names {
		if slices.ContainsFunc(names, func(other string) bool { // of a module of its own
			folder, found := strings.CutSuffix(other, "/go.mod")
			return found && strings.HasPrefix(name, folder+"/")
		}) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted, or a link
		}
		contents[name], err = os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		_, _ = fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(contents[name])) // a hash takes all
	}
	version := fmt.Sprintf("v0.0.0-test.h%x", sum.Sum(nil)[:6])
	dir := t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(module), "@v")
	require.NoError(t, os.MkdirAll(at, 0o700))
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, text := range contents {
		w, err := z.Create(module + "@" + version + "/" + name)
		require.NoError(t, err)
		_, err = io.Copy(w, bytes.NewReader(text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	for name, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version),
		version + ".mod": contents["go.mod"], version + ".zip": packed.Bytes(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), text, 0o600))
	}
	of := func(name string) string {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	cache := of("GOMODCACHE")
	t.Cleanup(func() { // what it put there is of this test alone
		_ = os.RemoveAll(filepath.Join(cache, filepath.FromSlash(module)+"@"+version))
		old, _ := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(module), "@v", version+".*"))
		for _, file := range old {
			_ = os.Remove(file)
		}
	})
	return append(os.Environ(),
		// Modules of others are those that this checkout was built with.
		"GOPROXY=file://"+dir+",file://"+cache+"/cache/download,"+of("GOPROXY"), "GOSUMDB=off",
		"GOFLAGS=-modcacherw", "GOWORK=off",
	)
}
