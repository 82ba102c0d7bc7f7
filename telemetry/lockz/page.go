package lockz

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/internal/ratelimit"
)

// scopeName is the instrumentation scope of the counter.
const scopeName = "github.com/interlock-go/interlock/telemetry/lockz"

// Page is an [http.Handler] that shows the locks of this process, and the observer that it
// knows them by. Make it with [New], one per process, and pass its [Page.Observer] to
// core.WithObserver: the adapters of that lock client notify it, too. It is safe for concurrent use. It runs a goroutine only
// while a ring of waiters is watched, which ends with the acquisition that has closed the ring.
type Page struct {
	cfg     config
	started time.Time
	host    string

	table     *table
	graph     *graph
	hot       *hotKeys
	refusals  history[event]
	incidents history[event]
	cycles    history[*cycle]
	lost      atomic.Int64
	lostAt    atomic.Int64 // Unix nanoseconds of the last loss; 0: none
	deadlocks metric.Int64Counter
	logged    ratelimit.Limiter

	acquireMark, holdMark byte // their addresses are keys of context values

	tickets     *tickets
	crossOrigin *http.CrossOriginProtection
	pages       *template.Template

	mu      sync.Mutex
	clients []*core.Client
}

// New makes a Page. The error has every problem of the options.
func New(opts ...Option) (*Page, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	t := newTable()
	p := &Page{cfg: cfg, started: time.Now(), table: t, graph: newGraph(t), hot: newHotKeys(), crossOrigin: http.NewCrossOriginProtection()}
	if p.host, err = os.Hostname(); err != nil {
		p.host = "an unknown host"
	}
	if p.tickets, err = newTickets(); err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	if p.pages, err = p.parsePages(); err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	p.deadlocks, err = cfg.meters.Meter(scopeName).Int64Counter("distributed_lock.deadlocks",
		metric.WithUnit("{deadlock}"), metric.WithDescription("rings of callers that wait for each other; made by package lockz"))
	if err != nil {
		return nil, fmt.Errorf("lockz: New: %w", err)
	}
	p.deadlocks.Add(context.Background(), 0) //nolint:forbidigo // no request: who asks for an increase must have seen 0
	return p, nil
}

// observeClient notes a client, until it is closed: the page shows its id and numbers, and lists and
// releases locks through it.
func (p *Page) observeClient(client *core.Client) (closed func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, client)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clients = slices.DeleteFunc(p.clients, func(c *core.Client) bool { return c == client })
	}
}

// open returns the clients that are open, in the order in which they were made.
func (p *Page) open() []*core.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.clients)
}

// clientOf finds an open client by its id.
func (p *Page) clientOf(id string) *core.Client {
	for _, c := range p.open() {
		if c.ID() == id {
			return c
		}
	}
	return nil
}
