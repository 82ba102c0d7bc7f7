package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/inspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
)

// check is the command check.
type check struct {
	program

	against string
	strict  bool
	format  string
}

func newCheck() *command {
	c := &check{}
	return &command{
		name:     "check",
		synopsis: "[LOCKS.yaml] [flags]",
		summary:  "find the mistakes in a rule file",
		text: `Checks a rule file as the program does when it starts. The flags describe the program. Exit
code 1 if there are errors, with --strict also if there are warnings. - reads the rules from
the standard input. The command does not see rules that are written in Go.

Examples:
  interlock check locks.yaml
  interlock check locks.yaml --descriptors image.binpb --routes routes.json --strict
  interlock check --descriptors image.binpb
  git show main:locks.yaml | interlock check locks.yaml --against -`,
		flags: c.flags,
		run:   c.run,
	}
}

func (c *check) flags(set *pflag.FlagSet) {
	c.imageFlag(set)
	c.routesFlag(set)
	c.serviceFlag(set)
	set.StringVar(&c.against, "against", "", "the rule `file` in force: lists the changes, and those that a reload refuses")
	set.BoolVar(&c.strict, "strict", false, "warnings count as errors")
	set.StringVar(&c.format, "format", "text", "`format` of the output: text, json or github (annotations of a workflow)")
}

func (c *check) run(_ context.Context, std streams, args []string) error {
	if err := oneOf("format", c.format, report.Formats()); err != nil {
		return err
	}
	path, err := c.open(args)
	if err != nil {
		return err
	}
	file, old, err := c.read(path, std.in)
	if err != nil {
		return err
	}
	findings, summary, err := c.findings(file, old)
	if err != nil {
		return err
	}
	report.Sort(findings)
	if err := report.Write(std.out, c.format, findings, summary+verdict(findings)); err != nil {
		return err
	}
	if report.Count(findings, report.Error) > 0 || c.strict && report.Count(findings, report.Warning) > 0 {
		return errProblems
	}
	return nil
}

// read reads the rule file and the rule file in force. Each is nil if it was not given.
func (c *check) read(path string, stdin io.Reader) (file, old *rulefile.File, err error) {
	if path == rulefile.Stdin && c.against == rulefile.Stdin {
		return nil, nil, usagef("the two rule files cannot both come from the standard input: write one of them to a file")
	}
	if file, err = readRules(path, stdin); err != nil {
		return nil, nil, err
	}
	if old, err = readRules(c.against, stdin); err != nil {
		return nil, nil, fmt.Errorf("--against: %w", err)
	}
	return file, old, nil
}

// findings loads the rules and checks them. If the rules do not load, it returns only the problems of loading. summary is the
// beginning of the last line of the output.
func (c *check) findings(file, before *rulefile.File) (found []report.Finding, summary string, err error) {
	name := c.descriptors
	if file != nil {
		name = file.Name
	}
	set, err := c.set(file)
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		for _, p := range invalid.Problems {
			found = append(found, report.Finding{Severity: report.Error, Problem: p})
		}
		return found, name + ": ", nil
	}
	if err != nil {
		return nil, "", err
	}
	in := &inspect.Inputs{Name: name, File: file, Service: c.service, Set: set, Routes: c.routes, Image: c.image}
	if before != nil {
		old, err := c.set(before)
		if err != nil {
			return nil, "", errors.New("--against: " + err.Error()) // exit code 2: the comparison is not possible
		}
		found = inspect.Against(old, in)
	}
	result := inspect.Run(in)
	summary = fmt.Sprintf("%s: %s", name, countOf(len(set.Rules()), "rule"))
	if result.ProtoRules > 0 {
		summary += fmt.Sprintf(" and %d in .proto files", result.ProtoRules)
	}
	return append(found, result.Findings...), summary + ": ", nil
}

// verdict returns the number of findings of each severity as text.
func verdict(findings []report.Finding) string {
	var parts []string
	for _, s := range []report.Severity{report.Error, report.Warning, report.Note} {
		if s == report.Note && len(parts) == 0 {
			parts = []string{"no problems"}
		}
		if n := report.Count(findings, s); n > 0 {
			parts = append(parts, countOf(n, string(s)))
		}
	}
	return strings.Join(parts, ", ")
}
