// Package overlay builds the library with wrong lines in it. It changes no file of
// the tree: `go build -overlay` takes a list of files and of what to read instead.
// For tools and tests only.
package overlay

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
)

// Chosen is the variable of the environment that names the edit which is on, in a
// program that was built with the list of Together.
const Chosen = "WRONG_LINE"

// Edit is one change of one file.
type Edit struct {
	ID      string
	File    string // from the module's root, with slashes
	At, End int    // the bytes that are replaced
	New     string // instead of them
}

// Apply is the text of the file with the edit in it.
func (e Edit) Apply(text []byte) []byte {
	return slices.Concat(text[:e.At], []byte(e.New), text[e.End:])
}

// core is the edit without what it leaves as it is at both of its ends.
func (e Edit) core(text []byte) Edit {
	for e.At < e.End && e.New != "" && text[e.At] == e.New[0] {
		e.At, e.New = e.At+1, e.New[1:]
	}
	for e.At < e.End && e.New != "" && text[e.End-1] == e.New[len(e.New)-1] {
		e.End, e.New = e.End-1, e.New[:len(e.New)-1]
	}
	return e
}

// Write writes the given files into dir, and beside them the list that -overlay takes.
// It returns the path of the list. Files are named from root, with slashes; root is
// absolute.
func Write(root, dir string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(root, filepath.FromSlash(file))] = to
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// Together writes a list with which one program holds many edits, so that it is built
// once. Beside each function that has an edit stands its wrong copy, and the right
// one calls the copy where Chosen names the edit. Edits that lie outside of functions,
// or in one that cannot be called again with its parameters, are not held: a program
// of their own has to be built for each.
func Together(root, dir string, edits []Edit) (list string, holds map[string]bool, err error) {
	byFile := map[string][]Edit{}
	for _, e := range edits {
		byFile[e.File] = append(byFile[e.File], e)
	}
	files, holds := map[string][]byte{}, map[string]bool{}
	for file, some := range byFile {
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file))) //nolint:gosec // a file of this module
		if err != nil {
			return "", nil, err
		}
		text, name, held, err := switched(raw, some)
		if err != nil {
			return "", nil, fmt.Errorf("overlay: %s: %w", file, err)
		}
		if len(held) == 0 {
			continue
		}
		for _, id := range held {
			holds[id] = true
		}
		files[file] = text
		files[path.Join(path.Dir(file), "wrong_line.go")] = fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar wrongLine = os.Getenv(%q)\n", name, Chosen)
	}
	list, err = Write(root, dir, files)
	return list, holds, err
}

// switched is a file with the wrong copies of its functions in it.
func switched(raw []byte, edits []Edit) (text []byte, pkg string, held []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", raw, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	var calls []Edit
	var copies strings.Builder
	for _, e := range edits {
		e = e.core(raw)
		n := slices.IndexFunc(file.Decls, func(d ast.Decl) bool { return at(d.Pos()) <= e.At && e.End <= at(d.End()) })
		if n < 0 {
			continue
		}
		f, ok := file.Decls[n].(*ast.FuncDecl)
		if !ok || f.Body == nil || e.At < at(f.Body.Lbrace) {
			continue
		}
		name := fmt.Sprintf("wrong_%s_%s", strings.ReplaceAll(e.ID, "-", "_"), f.Name.Name)
		call, ok := calling(f, name)
		if !ok {
			continue
		}
		fmt.Fprintf(&copies, "\n%s%s%s%s%s\n", raw[at(f.Pos()):at(f.Name.Pos())], name, raw[at(f.Name.End()):e.At], e.New, raw[e.End:at(f.End())])
		calls = append(calls, Edit{At: at(f.Body.Lbrace) + 1, New: fmt.Sprintf(" if wrongLine == %q { %s };", e.ID, call)})
		held = append(held, e.ID)
	}
	slices.SortStableFunc(calls, func(a, b Edit) int { return b.At - a.At })
	text = slices.Clone(raw)
	for _, c := range calls {
		c.End = c.At
		text = c.Apply(text)
	}
	return append(text, copies.String()...), file.Name.Name, held, nil
}

// calling is the statement that calls the copy of a function with its parameters;
// false where one of them has no name, or where the function recovers from a panic:
// only a function that is deferred itself can do that.
func calling(f *ast.FuncDecl, name string) (string, bool) {
	args, ok := names(f.Type.Params)
	if !ok || f.Name.Name == "_" || f.Name.Name == "init" || recovers(f) {
		return "", false
	}
	if last := len(args) - 1; last >= 0 {
		if _, many := f.Type.Params.List[len(f.Type.Params.List)-1].Type.(*ast.Ellipsis); many {
			args[last] += "..."
		}
	}
	if f.Type.TypeParams != nil {
		types, ok := names(f.Type.TypeParams)
		if !ok {
			return "", false
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	if f.Recv != nil {
		receiver, ok := names(f.Recv)
		if !ok {
			return "", false
		}
		name = receiver[0] + "." + name
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", true
	}
	return "return " + call, true
}

// names are those of a list of parameters; false where one has none.
func names(list *ast.FieldList) (out []string, all bool) {
	for _, p := range list.List {
		if len(p.Names) == 0 {
			return nil, false
		}
		for _, n := range p.Names {
			if n.Name == "_" {
				return nil, false
			}
			out = append(out, n.Name)
		}
	}
	return out, true
}

func recovers(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, is := call.Fun.(*ast.Ident)
			found = found || is && name.Name == "recover"
		}
		return !found
	})
	return found
}
