package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/bounded"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
)

// samples are the types of bodies, by the values of --sample.
type samples struct {
	every   *shape.Shape // of routes that have none of their own
	byRoute map[string]*sample
}

type sample struct {
	body *shape.Shape
	used bool
}

// of is the type of a route's body: that of its sample, what the program says, or
// that of the sample for all.
func (s *samples) of(r routes.Route) *shape.Shape {
	if own := s.byRoute[r.Endpoint().Label()]; own != nil {
		own.used = true
		return own.body
	}
	return cmp.Or(r.Body, s.every)
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

func readSample(path string) (*shape.Shape, error) {
	document, err := bounded.File(path, bounded.Document)
	if err != nil {
		return nil, fmt.Errorf("--sample: %w", err)
	}
	body, err := shape.Sample(document, "the body in "+path)
	if err != nil {
		return nil, fmt.Errorf("--sample: %s: %w", path, err)
	}
	return body, nil
}
