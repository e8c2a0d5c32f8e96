package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository, seen from this folder.
const root = "../.."

// page is one Markdown file.
type page struct {
	path   string // from the repository's root, with slashes
	lines  []string
	blocks []block
}

// block is one fenced block of a page.
type block struct {
	line int    // of its first line of text, from 1
	lang string // what stands behind the fence
	text string
}

// pages reads every Markdown file of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var out []page
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, parse(filepath.ToSlash(rel), string(text)))
		}
		return nil
	}))
	require.Greater(t, len(out), 15)
	return out
}

// onePage reads one Markdown file.
func onePage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return parse(path, string(text))
}

// parse takes the fenced blocks out of a page; the lines that are left keep their numbers.
func parse(path, text string) page {
	p := page{path: path}
	var open *block
	var body []string
	for i, line := range strings.Split(text, "\n") {
		fence, found := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case found && open == nil:
			open, body = &block{line: i + 2, lang: strings.TrimSpace(fence)}, nil
			line = ""
		case found:
			open.text = strings.Join(body, "\n") + "\n"
			p.blocks = append(p.blocks, *open)
			open, line = nil, ""
		case open != nil:
			body = append(body, line)
			line = ""
		}
		p.lines = append(p.lines, line)
	}
	return p
}

var heading = regexp.MustCompile(`^(#+)\s+(.*)$`)

// headings returns the page's headings at a depth, 0 = at any.
func (p *page) headings(depth int) []string {
	var out []string
	for _, line := range p.lines {
		if m := heading.FindStringSubmatch(line); m != nil && (depth == 0 || len(m[1]) == depth) {
			out = append(out, m[2])
		}
	}
	return out
}

// section is the lines between a heading and the next one that is not deeper.
func (p *page) section(name string) []string {
	var out []string
	in, depth := false, 0
	for _, line := range p.lines {
		m := heading.FindStringSubmatch(line)
		switch {
		case m != nil && m[2] == name:
			in, depth = true, len(m[1])
		case m != nil && in && len(m[1]) <= depth:
			return out
		case in:
			out = append(out, line)
		}
	}
	return out
}

var (
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_\- ]+`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors are the page's, as GitHub makes them of its headings.
func (p *page) anchors() map[string]bool {
	out := map[string]bool{}
	for _, h := range p.headings(0) {
		h = linkText.ReplaceAllString(h, "$1")
		out[strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(h), ""), " ", "-")] = true
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: every relative link of every page leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				target, anchor, _ := strings.Cut(m[1], "#")
				to := p.path
				if target != "" {
					to = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))
				}
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s:%d: no file %s", p.path, i+1, to)
					continue
				}
				if anchor == "" {
					continue
				}
				if at := onePage(t, to); !at.anchors()[anchor] {
					t.Errorf("%s:%d: no heading #%s in %s", p.path, i+1, anchor, to)
				}
			}
		}
	}
}

var (
	mentioned = regexp.MustCompile(`\b(docs/[a-z0-9/-]+\.md)\b`)
	makeWord  = regexp.MustCompile("`make ([a-z-]+)")
	goRun     = regexp.MustCompile(`\bgo (?:run|build|test) (?:-o \S+ |-tags \S+ )?(\./[\w/.-]+)`)
	makeRule  = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

// TestCommands: targets of make, packages of go commands and pages that the documents name exist.
func TestCommands(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, m := range makeRule.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	require.True(t, targets["test"])
	for _, p := range pages(t) {
		text := strings.Join(p.lines, "\n")
		for _, b := range p.blocks {
			text += "\n" + b.text
			for _, line := range strings.Split(b.text, "\n") {
				if word, found := strings.CutPrefix(strings.TrimSpace(line), "make "); found && b.lang == "sh" {
					text += "\n`make " + word
				}
			}
		}
		for _, m := range makeWord.FindAllStringSubmatch(text, -1) {
			require.True(t, targets[m[1]], "%s: make %s", p.path, m[1])
		}
		for _, m := range goRun.FindAllStringSubmatch(text, -1) {
			folder := strings.TrimSuffix(strings.TrimSuffix(m[1], "..."), ".")
			_, err := os.Stat(filepath.Join(root, folder))
			require.NoError(t, err, "%s: %s", p.path, m[0])
		}
		if p.path == "CHANGELOG.md" {
			continue // it says what was where
		}
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(root, m[1]))
			require.NoError(t, err, "%s names %s", p.path, m[1])
		}
	}
}
