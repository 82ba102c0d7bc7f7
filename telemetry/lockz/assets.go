package lockz

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/core"
)

//go:embed assets
var assets embed.FS

func (p *Page) parsePages() (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"ago": ago, "count": count, "inc": func(i int) int { return i + 1 }, "dec": func(i int) int { return i - 1 },
		"holder": p.shortHolder, "traceURL": p.traceURL, "ruleURL": p.ruleURL, "id": rowID,
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}

// shortHolder cuts the id of a client of this process off a holder field: the page shows the id at its top.
func (p *Page) shortHolder(field string) string {
	clients := p.open()
	for i, c := range clients {
		number, own := strings.CutPrefix(field, c.ID()+":")
		switch {
		case own && len(clients) == 1:
			return ":" + number
		case own:
			return fmt.Sprintf("client %d:%s", i+1, number)
		}
	}
	return field
}

// traceURL returns the link to a trace. It returns "" without [WithTraceURL].
func (p *Page) traceURL(id string) string {
	return strings.ReplaceAll(p.cfg.traceURL, traceMark, id)
}

// ruleURL returns the link to the metrics of a rule. It returns "" without [WithDashboardURL].
func (p *Page) ruleURL(name string) string {
	return strings.ReplaceAll(p.cfg.rulesURL, ruleMark, url.QueryEscape(name))
}

// rowID makes the id of a row, by which the page finds it again when it is renewed.
func rowID(parts ...any) string { return "r" + core.KeyHash(fmt.Sprintln(parts...)) }

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
