package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Tab is an open page of a Browser.
type Tab struct {
	b  *Browser
	id int
}

// Open shows a page. with are the settings of browser.cjs's open.
func (b *Browser) Open(url string, with map[string]any) *Tab {
	b.t.Helper()
	all := map[string]any{"url": url}
	for k, v := range with {
		all[k] = v
	}
	p := &Tab{b: b}
	b.Do("open", all, &p.id)
	return p
}

// OpenLike shows a page to whoever looks at p: with its cookies.
func (p *Tab) OpenLike(url string, with map[string]any) *Tab {
	p.b.t.Helper()
	all := map[string]any{"like": p.id}
	for k, v := range with {
		all[k] = v
	}
	return p.b.Open(url, all)
}

// Do gives a command about the page.
func (p *Tab) Do(what string, args map[string]any, out any) {
	p.b.t.Helper()
	all := map[string]any{"page": p.id}
	for k, v := range args {
		all[k] = v
	}
	p.b.Do(what, all, out)
}

// See waits until the page shows each of some texts.
func (p *Tab) See(texts ...string) {
	p.b.t.Helper()
	for _, text := range texts {
		p.Do("see", map[string]any{"text": text}, nil)
	}
}

// Sees is See and Audit.
func (p *Tab) Sees(picture string, texts ...string) {
	p.b.t.Helper()
	p.See(texts...)
	p.Audit(picture)
}

// Audit takes a picture and fails the test where axe finds anything, or where the page is
// wider than the screen.
func (p *Tab) Audit(picture string) {
	p.b.t.Helper()
	p.Shot(picture)
	var found []string
	p.Do("axe", nil, &found)
	if len(found) > 0 {
		p.b.t.Fatalf("%s: %v", picture, found)
	}
	var wider int
	p.Do("run", map[string]any{"expression": "document.documentElement.scrollWidth - document.documentElement.clientWidth"}, &wider)
	if wider != 0 {
		p.b.t.Fatalf("%s scrolls to the side", picture)
	}
}

// Shot takes a picture of the whole page.
func (p *Tab) Shot(picture string) {
	p.b.t.Helper()
	p.Do("shot", map[string]any{"file": filepath.Join(p.b.folder, picture+".png")}, nil)
}

// Run evaluates an expression in the page.
func (p *Tab) Run(expression string) (out any) {
	p.b.t.Helper()
	p.Do("run", map[string]any{"expression": expression}, &out)
	return out
}

// Click presses what a selector names, and waits for the page that it leads to.
func (p *Tab) Click(selector string) {
	p.b.t.Helper()
	p.Do("click", map[string]any{"selector": selector}, nil)
}

// Fill writes into a field.
func (p *Tab) Fill(selector, text string) {
	p.b.t.Helper()
	p.Do("fill", map[string]any{"selector": selector, "text": text}, nil)
}

// URL is where the page is.
func (p *Tab) URL() (url string) {
	p.b.t.Helper()
	p.Do("url", nil, &url)
	return url
}

// Close ends the page, and fails the test where its console complained, where it asked anybody
// else for anything, or where it loaded more than so many bytes.
func (p *Tab) Close(most int) {
	p.b.t.Helper()
	var end struct {
		Problems []string
		Bytes    int
	}
	p.Do("close", nil, &end)
	if len(end.Problems) > 0 || end.Bytes > most {
		p.b.t.Fatalf("a page loaded %d bytes, at most %d; its console: %q", end.Bytes, most, end.Problems)
	}
}

// pictures is where screenshots are kept: CRYPTOPAY_SCREENSHOTS, or .tools/screenshots where
// there is .tools, each test's in a folder of its own; or else the test's artefacts.
func pictures(t testing.TB) string {
	to := os.Getenv("CRYPTOPAY_SCREENSHOTS")
	if tools := filepath.Join(repository(), ".tools"); to == "" {
		if _, err := os.Stat(tools); err != nil {
			return t.ArtifactDir()
		}
		to = filepath.Join(tools, "screenshots")
	}
	to = filepath.Join(to, t.Name())
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return to
}
