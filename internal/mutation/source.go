package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// source is one package of the module, read and type-checked. Its tests are no part
// of it.
type source struct {
	importPath string
	set        *token.FileSet
	names      []string // of the files, from the module's root, with slashes
	texts      [][]byte
	files      []*ast.File
	info       types.Info
	imports    types.Importer
}

// load reads the package in the directory dir of the module at root.
func load(ctx context.Context, root, dir string) (*source, error) {
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly", "./"+dir)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("mutation: go list ./%s: %w", dir, err)
	}
	s := &source{set: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	compiled := map[string]string{} // what the compiler made of each imported package
	for all := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := all.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		compiled[p.ImportPath] = p.Export
		if p.DepOnly {
			continue
		}
		s.importPath = p.ImportPath
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			s.names, s.texts = append(s.names, path.Join(dir, f)), append(s.texts, text)
		}
	}
	s.imports = importer.ForCompiler(s.set, "gc", func(p string) (io.ReadCloser, error) { return os.Open(compiled[p]) })
	return s, s.check()
}

// check parses the files and finds their types.
func (s *source) check() error {
	for i, name := range s.names {
		f, err := parser.ParseFile(s.set, name, s.texts[i], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
	}
	return s.types(s.files, &s.info)
}

func (s *source) types(files []*ast.File, info *types.Info) error {
	c := types.Config{Importer: s.imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	_, err := c.Check(s.importPath, s.set, files, info)
	return err
}

// compiles says whether the package has its types right with the edit. To ask this
// takes a hundredth of what the compiler takes.
func (s *source) compiles(e overlay.Edit) bool {
	i := slices.Index(s.names, e.File)
	f, err := parser.ParseFile(s.set, e.File, e.Apply(s.texts[i]), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := slices.Clone(s.files)
	files[i] = f
	return s.types(files, nil) == nil
}
