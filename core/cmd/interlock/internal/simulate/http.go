package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// HTTP tells what the rules do with an HTTP request, such as "POST",
// "/orders/42/pay?x=1". A body without a Content-Type is JSON if it looks like that,
// else a form. The error is a [*NoMatchError] if no rule concerns the request.
func (p *Program) HTTP(ctx context.Context, method, target string, header http.Header, body []byte) ([]Answer, error) {
	r, err := request(ctx, method, target, header, body)
	if err != nil {
		return nil, err
	}
	route, params, err := p.route(method, r.URL.Path)
	if err != nil {
		return nil, err
	}
	rules, err := p.rulesOf(route.Endpoint())
	switch others := p.otherMethods(r.URL.Path); {
	case err != nil && len(others) > 0 && !slices.Contains(others, method):
		return nil, noMatchf("no rule is for %s, but for %s", route.Endpoint(), strings.Join(others, ", "))
	case err != nil:
		return nil, err
	}
	if httpcall.IsPreflight(r) && !slices.ContainsFunc(rules, func(rule *ruleset.Resolved) bool { return rule.Endpoint.Method == method }) {
		return nil, noMatchf("a CORS preflight takes no lock, because no rule for %s names OPTIONS", route.Endpoint())
	}
	host := &httpHost{params: params, route: route, clientIP: p.Variables["client_ip"]}
	c := httpvars.Config{PathParams: routes.Params(route.Path)}
	if !routes.OfNetHTTP(route.Path) {
		c.CookieValue = httpcall.GinCookie
	}
	if c.Registered, host.values, err = p.registered(); err != nil {
		return nil, err
	}
	v, schema, err := p.Routes.At(c, route.Body)
	if err != nil {
		return nil, err
	}
	env := &known{Request: v.Request(r, host), names: schema.Variables(), body: route.Body}
	env.anyRoute = p.Routes == nil && strings.HasSuffix(rules[0].Endpoint.Path, "*")
	return answers(aspect.Site{Endpoint: route.Endpoint(), Schema: schema}, rules, env)
}

// known is the [keyexpr.Env] of a request, as far as that is known.
type known struct {
	*httpvars.Request

	names    []string     // by slot
	body     *shape.Shape // nil: it may be anything
	anyRoute bool         // a wildcard concerns it: which route serves it is not known
}

func (k *known) Value(slot int) (any, error) {
	if k.anyRoute && k.names[slot] == "route" {
		return nil, &keyexpr.EvalError{
			Reason: keyexpr.ReasonInternal, Subject: "route",
			Detail: "is not known: the rule is for many, such as /orders/:id; give those of the program with --routes",
		}
	}
	v, err := k.Request.Value(slot)
	if v == nil || err != nil || k.body == nil || k.names[slot] != "body" {
		return v, err
	}
	document, _ := k.Body()
	if v, err = k.body.Value(document); err != nil {
		return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: "needs a body of JSON", Err: err}
	}
	return v, nil
}

func request(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Request, error) {
	address, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, fmt.Errorf("%s is no path: write one such as /orders/42/pay?x=1", target)
	}
	r := &http.Request{Method: method, URL: address, Header: header.Clone(), Host: header.Get("Host"), Body: http.NoBody}
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", guessType(body))
	}
	return r.WithContext(ctx), nil
}

func guessType(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}

// route finds the route of a path, and the values of its parameters.
func (p *Program) route(method, path string) (routes.Route, map[string]string, error) {
	if p.Routes != nil {
		route, params, ok := routes.Match(p.Routes.Routes, method, path)
		if !ok {
			return route, nil, noMatchf("no route serves %s %s", method, path)
		}
		return route, params, nil
	}
	var named []routes.Route
	for _, r := range p.Set.Rules() {
		if e := r.Endpoint; e.Transport == ruleset.TransportHTTP && !strings.HasSuffix(e.Path, "*") {
			named = append(named, routes.Route{Method: e.Method, Path: e.Path})
		}
	}
	route, params, ok := routes.Match(named, method, path)
	if !ok {
		route = routes.Route{Path: path} // for rules with wildcards
	}
	route.Method = method
	return route, params, nil
}

// otherMethods are those under which rules are for a path.
func (p *Program) otherMethods(path string) (methods []string) {
	for _, r := range p.Set.Rules() {
		method := r.Endpoint.Method
		if r.Endpoint.Transport != ruleset.TransportHTTP || slices.Contains(methods, method) {
			continue
		}
		if route, _, err := p.route(method, path); err == nil && len(p.Set.Lookup(route.Endpoint())) > 0 {
			methods = append(methods, method)
		}
	}
	return methods
}

// registered are the variables that have a value and that the program does not tell of;
// and the values of these and of its own.
func (p *Program) registered() (list []httpvars.Registered, values []any, err error) {
	own := p.Routes.Registered()
	for _, name := range p.names("client_ip") {
		if !slices.Contains(own, name) {
			list, values = append(list, httpvars.Registered{Name: name}), append(values, p.Variables[name])
		}
	}
	for _, name := range own {
		var value any // nil is unset
		if text, given := p.Variables[name]; given {
			typ := p.Routes.Variables[name]
			if value, err = typ.Given(text); err != nil {
				return nil, nil, fmt.Errorf("the variable %s is %s: write it as JSON of its type", name, text)
			}
		}
		values = append(values, value)
	}
	return list, values, nil
}

// httpHost is what a router knows of the request: the [httpvars.Host].
type httpHost struct {
	params   map[string]string
	route    routes.Route
	clientIP string
	values   []any // of the registered variables
}

func (h *httpHost) PathValue(name string) string  { return h.params[name] }
func (h *httpHost) Route() string                 { return h.route.Endpoint().Path }
func (h *httpHost) ClientIP() string              { return h.clientIP }
func (h *httpHost) Registered(i int) (any, error) { return h.values[i], nil }
