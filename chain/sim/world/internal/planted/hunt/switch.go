//go:build planted

package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain/sim/world/internal/planted"
)

// One program holds all bugs that lie within a function, so that it is built once:
// beside each such function stands its wrong copy, and the right one calls it where
// the environment names the bug. The others are built one by one.

// chosen is the variable of the environment that names the bug.
const chosen = "PLANTED"

// together writes the overlay of the one program, and says which bugs it holds.
func together(root, dir string, bugs []planted.Bug) (overlay string, holds map[string]bool, err error) {
	byFile := map[string][]planted.Bug{}
	for _, b := range bugs {
		if b.File != "" {
			byFile[b.File] = append(byFile[b.File], b)
		}
	}
	replace, holds := map[string]string{}, map[string]bool{}
	add := func(at, text string) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(root, filepath.FromSlash(at))] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for file, some := range byFile {
		text, name, held, err := switched(root, some)
		if err != nil {
			return "", nil, err
		}
		if len(held) == 0 {
			continue
		}
		for _, id := range held {
			holds[id] = true
		}
		if err := add(file, text); err != nil {
			return "", nil, err
		}
		on := path.Join(path.Dir(file), "planted_on.go")
		if _, ok := replace[filepath.Join(root, filepath.FromSlash(on))]; ok {
			continue
		}
		if err := add(on, fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar plantedOn = os.Getenv(%q)\n", name, chosen)); err != nil {
			return "", nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(dir, "together.json")
	return overlay, holds, os.WriteFile(overlay, list, 0o600)
}

// switched is a file with the wrong copies of its functions in it.
func switched(root string, bugs []planted.Bug) (text, pkg string, held []string, err error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(bugs[0].File)))
	if err != nil {
		return "", "", nil, err
	}
	file, at, err := parse(raw)
	if err != nil {
		return "", "", nil, err
	}
	type edit struct {
		at   int
		text string
	}
	var edits []edit
	var copies strings.Builder
	for i := range bugs {
		b := &bugs[i]
		mutated, err := b.Mutate(root)
		if err != nil {
			return "", "", nil, err
		}
		begin := strings.Index(string(raw), b.Old)
		n := slices.IndexFunc(file.Decls, func(d ast.Decl) bool { return at(d.Pos()) <= begin && begin+len(b.Old) <= at(d.End()) })
		if n < 0 {
			continue
		}
		f, ok := file.Decls[n].(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name + "_" + strings.ReplaceAll(b.ID, "-", "_")
		call, ok := calling(f, name)
		if !ok {
			continue
		}
		wrong, place, err := parse(mutated)
		if err != nil {
			return "", "", nil, err
		}
		w := wrong.Decls[n].(*ast.FuncDecl)
		fmt.Fprintf(&copies, "\n%s%s%s\n", mutated[place(w.Pos()):place(w.Name.Pos())], name, mutated[place(w.Name.End()):place(w.End())])
		edits = append(edits, edit{at(f.Body.Lbrace) + 1, fmt.Sprintf(" if plantedOn == %q { %s };", b.ID, call)})
		held = append(held, b.ID)
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return b.at - a.at })
	text = string(raw)
	for _, e := range edits {
		text = text[:e.at] + e.text + text[e.at:]
	}
	return text + copies.String(), file.Name.Name, held, nil
}

func parse(text []byte) (*ast.File, func(token.Pos) int, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	return f, func(p token.Pos) int { return set.Position(p).Offset }, err
}

// calling is the statement that calls the copy of a function with its parameters;
// false where one of them has no name.
func calling(f *ast.FuncDecl, name string) (string, bool) {
	if f.Type.TypeParams != nil || f.Body == nil {
		return "", false
	}
	var args []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", false
		}
		_, many := p.Type.(*ast.Ellipsis)
		for _, n := range p.Names {
			if n.Name == "_" {
				return "", false
			}
			args = append(args, n.Name)
		}
		if many {
			args[len(args)-1] += "..."
		}
	}
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", false
		}
		name = f.Recv.List[0].Names[0].Name + "." + name
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", true
	}
	return "return " + call, true
}
