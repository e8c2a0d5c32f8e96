// Package look is what the pages of this module have in common: colours, type and spacing,
// which are the beginning of every stylesheet, and the icons.
//
// It promises: the static files of a page are named by their content, so that a browser may
// keep them for ever.
package look

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed look.css icons.svg mark.svg
var own embed.FS

// File is a static file. Its Name has a hash of its content.
type File struct {
	Name, Media string
	Body        []byte
}

var mediaTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Files are icons.svg, mark.svg and the files of a page's folder, by their names without the
// hash. Every stylesheet begins with the common one.
func Files(of fs.FS, folder string) (map[string]File, error) {
	out := map[string]File{}
	add := func(from fs.FS, name string) error {
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		kind := path.Ext(name)
		if mediaTypes[kind] == "" {
			return fmt.Errorf("look: %s is of no known kind", name)
		}
		if kind == ".css" {
			common, err := own.ReadFile("look.css")
			if err != nil {
				return err
			}
			body = append(common, body...)
		}
		sum := sha256.Sum256(body)
		base := path.Base(name)
		out[base] = File{strings.TrimSuffix(base, kind) + "." + hex.EncodeToString(sum[:8]) + kind, mediaTypes[kind], body}
		return nil
	}
	for _, name := range []string{"icons.svg", "mark.svg"} {
		if err := add(own, name); err != nil {
			return nil, err
		}
	}
	entries, err := fs.ReadDir(of, folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := add(of, folder+"/"+e.Name()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
