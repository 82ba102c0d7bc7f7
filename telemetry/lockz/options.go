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

// Option configures a [Page]. If an option is given twice, the last one counts.
type Option func(*config) error

type config struct {
	rawKeys   bool
	fleet     bool
	authorize func(*http.Request) error // nil: no request may release a lock
	operator  func(*http.Request) string
	service   string
	traceURL  string // contains traceMark; empty: no links
	rulesURL  string // contains ruleMark; empty: no links
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

func (c *config) names() keyNames { return keyNames{c.rawKeys} }

// WithRawKeys shows keys as they are in Redis, on the page and in logs. Long keys are cut, and unprintable
// characters are escaped. Default: only the [core.KeyHash] of a key is shown.
func WithRawKeys() Option {
	return func(c *config) error {
		c.rawKeys = true
		return nil
	}
}

// WithAuthorizer allows a request to release a lock by force if allow returns nil; see the package comment.
// The page also calls allow for each request of the page itself, and shows buttons only if it returns nil.
// So allow must be fast and safe for concurrent use. Default: no request may release a lock.
func WithAuthorizer(allow func(*http.Request) error) Option {
	return func(c *config) error {
		if allow == nil {
			return errNil("WithAuthorizer", "a function, or leave the option out so that no request may release a lock")
		}
		c.authorize = allow
		return nil
	}
}

// WithOperator sets the function that names the operator of a request in the log of forced releases.
// Default: the user name of HTTP Basic authentication, if the request has one, and the address of the
// connection.
func WithOperator(name func(*http.Request) string) Option {
	return func(c *config) error {
		if name == nil {
			return errNil("WithOperator", "a function, or leave the option out")
		}
		c.operator = name
		return nil
	}
}

// WithFleet adds a view of all locks in the Redis of this process's clients, including locks that other
// processes hold. Each request of the view reads a limited number of keys with [core.Client.Locks].
// Default: off.
func WithFleet() Option {
	return func(c *config) error {
		c.fleet = true
		return nil
	}
}

// WithService sets the name of the service in the title of the page. Default: the name of the program.
func WithService(name string) Option {
	return func(c *config) error {
		if name == "" {
			return errors.New("lockz: WithService(\"\"): want a name, or leave the option out for the name of the program")
		}
		c.service = name
		return nil
	}
}

// The placeholders of URL patterns.
const (
	traceMark = "{trace_id}"
	ruleMark  = "{rule}"
)

// WithTraceURL links each trace id on the page to pattern, in which {trace_id} stands for the id, such as
// https://grafana.example/explore/trace/{trace_id}. Default: no links.
func WithTraceURL(pattern string) Option {
	return func(c *config) error {
		c.traceURL = pattern
		return checkPattern("WithTraceURL", pattern, traceMark, "https://grafana.example/explore/trace/{trace_id}")
	}
}

// WithDashboardURL links the name of each rule to its metrics: rates, waits and hold times, which the page
// does not show. In pattern, {rule} stands for the name. An example is
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

// WithLogger sets the logger for deadlocks and forced releases. Default: the value of [slog.Default] when [New]
// is called.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errNil("WithLogger", "a logger, or leave the option out for the default one")
		}
		c.logger = l
		return nil
	}
}

// WithMeterProvider sets the provider of the counter distributed_lock.deadlocks. Default: the global
// provider, even if the program sets it later.
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

// operatorOf returns the user name of HTTP Basic authentication, if the request has one, and the
// address.
func operatorOf(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user + " at " + r.RemoteAddr
	}
	return r.RemoteAddr
}
