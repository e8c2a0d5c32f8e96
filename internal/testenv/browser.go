package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Browser is a Chromium that a test drives, as browser.cjs describes its commands.
type Browser struct {
	t    testing.TB
	in   io.WriteCloser
	out  *bufio.Reader
	told *bytes.Buffer

	folder string // of screenshots
}

// Chromium starts a browser without a window until the test ends.
func Chromium(t testing.TB) *Browser {
	t.Helper()
	const env = "CRYPTOPAY_CHROMIUM"
	program := find(env, "chromium-headless-shell")
	if program == "" {
		missing(t, "chromium-headless-shell", env)
	}
	node, modules := npm(t, "playwright-core")
	for _, name := range []string{"axe-core", "jsqr"} {
		npm(t, name)
	}
	b := &Browser{t: t, told: &bytes.Buffer{}, folder: pictures(t)}
	cmd := exec.Command(node, filepath.Join(repository(), "internal", "testenv", "browser.cjs"), modules, program)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.Stderr = b.told
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("testenv: chromium: %v", err)
	}
	b.in, b.out = in, bufio.NewReaderSize(out, 1<<20)
	t.Cleanup(func() {
		_ = b.in.Close() // it ends by itself
		_ = cmd.Wait()
	})
	return b
}

// Do gives one command and reads its answer into out, which may be nil. An error ends the
// test.
func (b *Browser) Do(what string, args map[string]any, out any) {
	b.t.Helper()
	all := map[string]any{"do": what}
	maps.Copy(all, args)
	line, err := json.Marshal(all)
	if err != nil {
		b.t.Fatalf("testenv: browser: %v", err)
	}
	if _, err := b.in.Write(append(line, '\n')); err != nil {
		b.t.Fatalf("testenv: browser: %v: %s", err, b.told)
	}
	told, err := b.out.ReadBytes('\n')
	if err != nil {
		b.t.Fatalf("testenv: browser: %v: %s", err, b.told)
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(told, &answer); err != nil || answer.Error != "" {
		b.t.Fatalf("testenv: browser: %s %v: %v %s", what, args, err, answer.Error)
	}
	if out != nil {
		if err := json.Unmarshal(answer.Value, out); err != nil {
			b.t.Fatalf("testenv: browser: %s: %v", what, err)
		}
	}
}
