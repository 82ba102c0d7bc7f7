package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/inspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
)

// check is the command of that name.
type check struct {
	program

	samples []string
	against string
	strict  bool
	format  string
}

func newCheck() *command {
	c := &check{}
	return &command{
		name:     "check",
		synopsis: "LOCKS.yaml [flags]",
		summary:  "find what is wrong with a rule file",
		text: `Checks a rule file as the program would at its start, as far as it is told about the
program. Exit code 1 if there are errors, with --strict also if there are warnings.

Examples:
  interlock check locks.yaml
  interlock check locks.yaml --descriptors image.binpb --routes routes.json --strict
  interlock check locks.yaml --sample order.json --sample 'POST /login=login.json'
  git show main:locks.yaml > old.yaml && interlock check locks.yaml --against old.yaml`,
		flags: c.flags,
		run:   c.run,
	}
}

func (c *check) flags(set *pflag.FlagSet) {
	c.imageFlag(set)
	c.routesFlag(set)
	c.serviceFlag(set)
	set.StringArrayVar(&c.samples, "sample", nil, "`file` with a JSON body: fields that it lacks are errors; or 'POST /path=file' for one route")
	set.StringVar(&c.against, "against", "", "the rule `file` in force: shows what changes, and what must not")
	set.BoolVar(&c.strict, "strict", false, "warnings count as errors")
	set.StringVar(&c.format, "format", "text", "`format` of the output: text, json or github (annotations of a workflow)")
}

func (c *check) run(_ context.Context, std streams, args []string) error {
	if err := oneOf("format", c.format, report.Formats()); err != nil {
		return err
	}
	path, err := onlyRuleFile(args)
	if err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return err
	}
	bodies, err := readSamples(c.samples)
	if err != nil {
		return err
	}
	findings, rules, err := c.findings(path, bodies)
	if err != nil {
		return err
	}
	report.Sort(findings)
	if err := report.Write(std.out, c.format, findings, path+": "+rules+verdict(findings)); err != nil {
		return err
	}
	if report.Count(findings, report.Error) > 0 || c.strict && report.Count(findings, report.Warning) > 0 {
		return errProblems
	}
	return nil
}

// findings loads the rules and judges them. What is wrong with the file itself is a
// finding, and nothing else is known then. rules counts them for the summary.
func (c *check) findings(path string, bodies *samples) (found []report.Finding, rules string, err error) {
	set, err := ruleset.LoadFile(path, c.options()...)
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		for _, p := range invalid.Problems {
			found = append(found, report.Finding{Severity: report.Error, Problem: p})
		}
		return found, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	in := &inspect.Inputs{File: path, Set: set, Routes: c.routes, Image: c.image, Body: bodies.of}
	if c.against != "" {
		old, err := ruleset.LoadFile(c.against, c.options()...)
		if err != nil {
			return nil, "", fmt.Errorf("--against: %w", err)
		}
		found = inspect.Against(old, in)
	}
	result := inspect.Run(in)
	return append(found, result.Findings...), counted(result.Rules, "rule") + ": ", nil
}

// verdict sums the findings up.
func verdict(findings []report.Finding) string {
	var parts []string
	for _, s := range []report.Severity{report.Error, report.Warning, report.Note} {
		if n := report.Count(findings, s); n > 0 {
			parts = append(parts, counted(n, string(s)))
		}
	}
	if len(parts) == 0 {
		return "no problems"
	}
	return strings.Join(parts, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// samples are the types of bodies.
type samples struct {
	every   *shape.Type            // of routes that have none of their own
	byRoute map[string]*shape.Type // by method and path
}

// of is the type of a route's body: what the program says, or a sample.
func (s *samples) of(r routes.Route) *shape.Type {
	label := r.Endpoint().Label()
	switch {
	case s.byRoute[label] != nil:
		return s.byRoute[label]
	case r.Body != nil:
		return shape.Described(r.Body).Body("the body of " + label)
	default:
		return s.every
	}
}

// readSamples reads the values of --sample.
func readSamples(values []string) (*samples, error) {
	s := &samples{byRoute: map[string]*shape.Type{}}
	for _, value := range values {
		route, path, one := strings.Cut(value, "=")
		if !one {
			path = value
		}
		document, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		body, err := shape.Sample(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		typ := body.Body("the body in " + path)
		switch {
		case one:
			s.byRoute[ruleset.HTTP(route).Label()] = typ
		case s.every != nil:
			return nil, usagef("--sample %s: two files for all routes: say which is for which, such as --sample 'POST /orders=%s'", path, path)
		default:
			s.every = typ
		}
	}
	return s, nil
}

// oneOf reports a value of a flag that is none of the known ones.
func oneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usagef("--%s %s: write %s", flag, value, strings.Join(known, ", "))
}
