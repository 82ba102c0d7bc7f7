package lockz

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Option configures a [Page]. Of an option that is given twice the last one counts.
type Option func(*config) error

type config struct {
	rawKeys   bool
	fleet     bool
	authorize func(*http.Request) error // nil: nobody may release
	operator  func(*http.Request) string
	service   string
	traceURL  string // with traceMark; empty: no links
	rulesURL  string // with ruleMark; empty: no links
	logger    *slog.Logger
	meters    metric.MeterProvider
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		service: filepath.Base(os.Args[0]), logger: slog.Default(), meters: otel.GetMeterProvider(), operator: operatorOf,
	}
	var errs []error
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, fmt.Errorf("lockz: New: option %d is nil", i+1))
			continue
		}
		errs = append(errs, opt(&cfg))
	}
	return cfg, errors.Join(errs...)
}

// WithRawKeys shows keys as they are in Redis, cut and with what cannot be printed escaped,
// in the page and in logs. Default: only [core.KeyHash] of them.
func WithRawKeys() Option {
	return func(c *config) error {
		c.rawKeys = true
		return nil
	}
}

// WithAuthorizer lets those release a lock by force for whose request allow returns nil; see
// the package comment. It is called for every request of the page too, which shows no button
// to others, so it must be quick, and safe for concurrent use. Default: nobody may.
func WithAuthorizer(allow func(*http.Request) error) Option {
	return func(c *config) error {
		if allow == nil {
			return errNil("WithAuthorizer", "a function, or leave the option out so that nobody may release")
		}
		c.authorize = allow
		return nil
	}
}

// WithOperator names who a request comes from, for the log of forced releases. Default: the
// user name of HTTP Basic authentication, if any, and the address of the connection.
func WithOperator(name func(*http.Request) string) Option {
	return func(c *config) error {
		if name == nil {
			return errNil("WithOperator", "a function, or leave the option out")
		}
		c.operator = name
		return nil
	}
}

// WithFleet adds a view of all locks in the Redis of the clients of this process, whoever
// holds them: at each request it looks at some keys, by [core.Client.Locks]. Default: off.
func WithFleet() Option {
	return func(c *config) error {
		c.fleet = true
		return nil
	}
}

// WithService sets the name of the service, in the title of the page. Default: the name of the
// program.
func WithService(name string) Option {
	return func(c *config) error {
		if name == "" {
			return errors.New("lockz: WithService(\"\"): want a name, or leave the option out for the name of the program")
		}
		c.service = name
		return nil
	}
}

// Where a trace id goes, and the name of a rule.
const (
	traceMark = "{trace_id}"
	ruleMark  = "{rule}"
)

// WithTraceURL makes the trace ids of the page links: to pattern, with the id in place of {trace_id},
// as in https://grafana.example/explore/trace/{trace_id}. Default: no links.
func WithTraceURL(pattern string) Option {
	return func(c *config) error {
		c.traceURL = pattern
		return checkPattern("WithTraceURL", pattern, traceMark, "https://grafana.example/explore/trace/{trace_id}")
	}
}

// WithDashboardURL makes the names of rules links to what metrics show of them, which the page does not
// repeat: rates, waits, how long holds last. pattern has {rule} in place of the name, as in
// https://grafana.example/d/interlock?var-rule={rule}. Default: no links.
func WithDashboardURL(pattern string) Option {
	return func(c *config) error {
		c.rulesURL = pattern
		return checkPattern("WithDashboardURL", pattern, ruleMark, "https://grafana.example/d/interlock?var-rule={rule}")
	}
}

func checkPattern(option, pattern, mark, example string) error {
	u, err := url.Parse(strings.ReplaceAll(pattern, mark, "0"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || !strings.Contains(pattern, mark) {
		return fmt.Errorf("lockz: %s(%q): want an http or https URL with %s in it, such as %s", option, pattern, mark, example)
	}
	return nil
}

// WithLogger sets where deadlocks and forced releases are logged. Default: [slog.Default] as
// it is when New is called.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errNil("WithLogger", "a logger, or leave the option out for the default one")
		}
		c.logger = l
		return nil
	}
}

// WithMeterProvider sets where the counter distributed_lock.deadlocks goes. Default: the
// global provider, also if it is set later.
func WithMeterProvider(m metric.MeterProvider) Option {
	return func(c *config) error {
		if m == nil {
			return errNil("WithMeterProvider", "a provider, or leave the option out for the global one")
		}
		c.meters = m
		return nil
	}
}

func errNil(option, want string) error {
	return fmt.Errorf("lockz: %s(nil): want %s", option, want)
}

// operatorOf is who a request comes from, as far as it tells without being asked.
func operatorOf(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user + " at " + r.RemoteAddr
	}
	return r.RemoteAddr
}
