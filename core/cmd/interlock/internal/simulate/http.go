package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
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
	route, params, rules, err := p.route(method, r.URL.Path)
	if err != nil {
		return nil, err
	}
	host := &httpHost{params: params, route: route, clientIP: p.Variables["client_ip"]}
	c := httpvars.Config{PathParams: routes.Params(route.Path), CookieValue: cookieValue}
	if route.Body != nil {
		c.Body = shape.Described(route.Body).Body("the body").Go
	}
	if c.Registered, host.values, err = p.registered(); err != nil {
		return nil, err
	}
	v, err := httpvars.New(c)
	if err != nil {
		return nil, err
	}
	site := aspect.Site{Endpoint: route.Endpoint(), Schema: v.Schema(), Fallbacks: fallbacks(rules)}
	var env keyexpr.Env = v.Request(r, host)
	if p.Routes == nil && strings.HasSuffix(rules[0].Endpoint.Path, "*") {
		env = withoutRoute(site.Schema, env)
	}
	return answers(site, rules, env)
}

// routeless are the variables of a request that a wildcard concerns: which of the
// program's routes serves it is not known.
type routeless struct {
	keyexpr.Env

	slot int // of the route
}

func withoutRoute(s *keyexpr.Schema, env keyexpr.Env) keyexpr.Env {
	if slot, ok := s.Slot("route"); ok {
		return &routeless{env, slot}
	}
	return env
}

// Value implements [keyexpr.Env].
func (r *routeless) Value(slot int) (any, error) {
	if slot == r.slot {
		return nil, &keyexpr.EvalError{
			Reason: keyexpr.ReasonInternal, Subject: "route",
			Detail: "is not known: the rule is for many, such as /orders/:id; give those of the program with --routes",
		}
	}
	return r.Env.Value(slot)
}

// Size implements [keyexpr.Sized].
func (r *routeless) Size() int { return keyexpr.SizeOf(r.Env) }

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

// cookieValue is a cookie's value as gin's handlers see it.
func cookieValue(raw string) string {
	value, err := url.QueryUnescape(raw)
	if err != nil {
		return ""
	}
	return value
}

func guessType(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}

// route finds the route of a path and its rules.
func (p *Program) route(method, path string) (routes.Route, map[string]string, []*ruleset.Resolved, error) {
	if p.Routes != nil {
		route, params, ok := routes.Match(p.Routes.Routes, method, path)
		if !ok {
			return route, nil, nil, noMatchf("no route serves %s %s", method, path)
		}
		return p.at(route, params)
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
	return p.at(route, params)
}

// at are the rules of a route.
func (p *Program) at(route routes.Route, params map[string]string) (routes.Route, map[string]string, []*ruleset.Resolved, error) {
	rules := p.Set.Lookup(route.Endpoint())
	switch {
	case len(rules) == 0:
		return route, nil, nil, noMatchf("no rule is for %s", route.Endpoint())
	case rules[0].None:
		return route, nil, nil, unlocked(route.Endpoint(), rules[0].Source("none"))
	default:
		return route, params, rules, nil
	}
}

// registered are the variables of the program, and those that have a value, with the
// values.
func (p *Program) registered() ([]httpvars.Registered, []any, error) {
	var list []httpvars.Registered
	var values []any
	if p.Routes != nil {
		for _, v := range p.Routes.Registered() {
			value, err := typed(p.Variables, v.Name, v.Type.Go)
			if err != nil {
				return nil, nil, err
			}
			list, values = append(list, httpvars.Registered{Name: v.Name, Type: v.Type.Go}), append(values, value)
		}
	}
	for _, name := range p.names("client_ip") {
		if !slices.ContainsFunc(list, func(r httpvars.Registered) bool { return r.Name == name }) {
			list = append(list, httpvars.Registered{Name: name})
			values = append(values, p.Variables[name])
		}
	}
	return list, values, nil
}

// typed reads the value of a variable of a type; nil if it has none.
func typed(variables map[string]string, name string, t reflect.Type) (any, error) {
	text, given := variables[name]
	if !given {
		return nil, nil //nolint:nilnil // nil is unset
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String {
		return text, nil
	}
	value := reflect.New(t)
	if err := json.Unmarshal([]byte(text), value.Interface()); err != nil {
		if t.Kind() == reflect.Interface {
			return text, nil
		}
		return nil, fmt.Errorf("the variable %s is %s: write it as JSON of its type", name, text)
	}
	return value.Elem().Interface(), nil
}

// httpHost is what a router knows of the request.
type httpHost struct {
	params   map[string]string
	route    routes.Route
	clientIP string
	values   []any // of the registered variables
}

// PathValue implements [httpvars.Host].
func (h *httpHost) PathValue(name string) string { return h.params[name] }

// Route implements [httpvars.Host].
func (h *httpHost) Route() string { return h.route.Endpoint().Path }

// ClientIP implements [httpvars.Host].
func (h *httpHost) ClientIP() string { return h.clientIP }

// Registered implements [httpvars.Host].
func (h *httpHost) Registered(i int) (any, error) { return h.values[i], nil }
