package checkout

import (
	"embed"
	"html/template"

	"github.com/cryptopay-go/cryptopay/httpapi/internal/look"
)

//go:embed static/*
var staticFiles embed.FS

//go:embed *.html
var pageFiles embed.FS

// assets are the paths of the static files, each with a hash of its content in its name.
type assets map[string]string

// loadAssets names the static files below a prefix. The second map has them by those names.
func loadAssets(prefix string) (assets, map[string]look.File, error) {
	files, err := look.Files(staticFiles, "static")
	if err != nil {
		return nil, nil, err
	}
	paths, served := assets{}, map[string]look.File{}
	for name, f := range files {
		paths[name], served[f.Name] = prefix+"/assets/"+f.Name, f
	}
	return paths, served, nil
}

// templates are those of the pages, read once.
func templates() (*template.Template, error) {
	return template.New("").Option("missingkey=error").ParseFS(pageFiles, "*.html")
}
