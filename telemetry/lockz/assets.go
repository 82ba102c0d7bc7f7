package lockz

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed assets
var assets embed.FS //nolint:gochecknoglobals // it is read only

func parsePages() (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"ago": ago, "clock": clock, "spark": spark, "bars": bars, "rate": rate, "inc": func(i int) int { return i + 1 },
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}

// asset answers with the style sheet or the script.
func (p *Page) asset(w http.ResponseWriter, name string) {
	kinds := map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
	kind, ok := kinds[name]
	if !ok {
		p.tell(w, http.StatusNotFound, "Not found", "The page has no such part.")
		return
	}
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		p.tell(w, http.StatusNotFound, "Not found", "The page has no such part.")
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) //nolint:errcheck // the client is gone
}
