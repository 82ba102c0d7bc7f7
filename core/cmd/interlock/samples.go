package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
)

// samples are the types of bodies, by the values of --sample.
type samples struct {
	every   *shape.Type // of routes that have none of their own
	byRoute map[string]*sample
}

type sample struct {
	body *shape.Type
	used bool
}

// of is the type of a route's body: that of its sample, what the program says, or
// that of the sample for all.
func (s *samples) of(r routes.Route) *shape.Type {
	label := r.Endpoint().Label()
	if own := s.byRoute[label]; own != nil {
		own.used = true
		return own.body
	}
	if r.Body != nil {
		return shape.Described(r.Body).Body("the body of " + label)
	}
	return s.every
}

// unused reports samples for routes that have no rule.
func (s *samples) unused() error {
	for route, own := range s.byRoute {
		if !own.used {
			return usagef("--sample %q=…: no rule is for that route: write it as in the rule or in the routes file", route)
		}
	}
	return nil
}

// readSamples reads the values of --sample.
func readSamples(values []string) (*samples, error) {
	s := &samples{byRoute: map[string]*sample{}}
	for _, value := range values {
		route, path, one := strings.Cut(value, "=")
		if one = one && strings.Contains(route, " "); !one {
			path = value
		}
		body, err := readSample(path)
		switch {
		case err != nil:
			return nil, err
		case one:
			s.byRoute[ruleset.HTTP(route).Label()] = &sample{body: body}
		case s.every != nil:
			return nil, usagef("--sample %s: two files for all routes: say which is for which, such as --sample 'POST /orders=%s'", path, path)
		default:
			s.every = body
		}
	}
	return s, nil
}

func readSample(path string) (*shape.Type, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--sample: %w", err)
	}
	body, err := shape.Sample(document)
	if err != nil {
		return nil, fmt.Errorf("--sample: %s: %w", path, err)
	}
	return body.Body("the body in " + path), nil
}
