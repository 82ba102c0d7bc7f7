package lockz

import (
	"fmt"
	"html/template"
	"os"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Page is an [http.Handler] that shows the locks of this process. Create one per process with [New] and pass
// its [Page.Observer] to core.WithObserver. The adapters of the lock client then notify the observer, too. A
// Page is safe for concurrent use. It runs a goroutine only while it watches a ring of waiters; the goroutine
// stops when the acquisition that closed the ring ends.
type Page struct {
	cfg       config
	process   identity
	tracker   *tracker
	fleet     fleet
	releases  *releases
	templates *template.Template
}

// New creates a Page. Its error lists every problem of the options.
func New(opts ...Option) (*Page, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	p := &Page{cfg: cfg, process: identity{
		service: printable(cfg.service, maxName), host: printable(host, maxName), pid: os.Getpid(), started: time.Now(),
	}}
	if p.tracker, err = newTracker(&cfg); err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	p.fleet = fleet{p.tracker, cfg.names()}
	if p.releases, err = newReleases(p.tracker, &cfg); err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	if p.templates, err = parseTemplates(&p.tracker.clients, &p.cfg); err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	return p, nil
}

// Observer returns the observer to pass to core.WithObserver, for every lock client of the process.
func (p *Page) Observer() *core.Observer { return p.tracker.observer() }
