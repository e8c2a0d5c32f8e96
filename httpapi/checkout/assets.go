package checkout

import (
	"embed"
	"html/template"
	"path"
	"strings"
)

//go:embed static/*
var staticFiles embed.FS

//go:embed *.html
var pageFiles embed.FS

// assets are the paths of the static files, each with a hash of its content in its name.
type assets map[string]string

// asset is a static file.
type asset struct {
	media string
	body  []byte
}

var mediaTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// loadAssets names the static files below a prefix.
func loadAssets(prefix string) (assets, map[string]asset, error) {
	files, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, nil, err
	}
	paths, served := assets{}, map[string]asset{}
	for _, f := range files {
		body, err := staticFiles.ReadFile("static/" + f.Name())
		if err != nil {
			return nil, nil, err
		}
		kind := path.Ext(f.Name())
		name := strings.TrimSuffix(f.Name(), kind) + "." + sum(body) + kind
		paths[f.Name()], served[name] = prefix+"/assets/"+name, asset{mediaTypes[kind], body}
	}
	return paths, served, nil
}

// templates are those of the pages, read once.
func templates() (*template.Template, error) {
	return template.New("").Option("missingkey=error").ParseFS(pageFiles, "*.html")
}
