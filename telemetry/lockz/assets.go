package lockz

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
)

//go:embed assets
var assets embed.FS

func parsePages() (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"ago": ago, "clock": clock, "spark": spark, "bars": bars, "rate": rate, "within": within, "button": buttonFor, "count": count, "inc": func(i int) int { return i + 1 },
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}

// asset answers with the style sheet or the script.
func (p *Page) asset(w http.ResponseWriter, r *http.Request, name string) {
	switch name {
	case "page.css":
		http.ServeFileFS(w, r, assets, "assets/page.css")
	case "page.js":
		http.ServeFileFS(w, r, assets, "assets/page.js")
	default:
		p.tell(w, r, http.StatusNotFound, "Not found", "The page has no such part.")
	}
}
