// Package report writes the findings of a check for people and for machines.
//
// It handles findings and formats, but does not look for findings. The commands call it, and package inspect
// creates the findings.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the program would not start
	Warning Severity = "warning" // the program would start, but may not do what its author meant
	Note    Severity = "note"    // a change, or a mistake that the check could not look for
)

// Finding is a problem with its severity.
type Finding struct {
	Severity Severity
	Problem  *ruleset.Problem
}

// Sort orders findings by their place. Findings without a file come last. Findings with
// the same place keep their order.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		p, q := a.Problem.Source, b.Problem.Source
		return cmp.Or(cmp.Compare(cmp.Or(p.File, last), cmp.Or(q.File, last)), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
	})
}

// last is greater than the names of all files.
const last = "\xff"

// Count returns the number of findings with a severity.
func Count(findings []Finding, s Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Formats lists the formats that [Write] supports.
func Formats() []string { return []string{"text", "json", "github"} }

// Write writes the findings in a format of [Formats]. summary is the last line of
// the text. Other formats have no summary.
func Write(w io.Writer, format string, findings []Finding, summary string) error {
	switch format {
	case "json":
		return writeJSON(w, findings)
	case "github":
		return each(w, findings, annotation)
	default:
		if err := each(w, findings, Line); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, summary)
		return err
	}
}

func each(w io.Writer, findings []Finding, format func(Finding) string) error {
	for _, f := range findings {
		if _, err := fmt.Fprintln(w, format(f)); err != nil {
			return err
		}
	}
	return nil
}

// Line returns the text of the problem. The severity follows its place, unless it is an error.
func Line(f Finding) string {
	if f.Severity == Error {
		return f.Problem.Error()
	}
	text := string(f.Severity) + ": " + f.Problem.Text()
	if at := f.Problem.Position(); at != "" {
		text = at + ": " + text
	}
	return text
}

// object is a finding as JSON. Unknown fields are empty or zero.
type object struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Endpoint string   `json:"endpoint"`
	Rule     string   `json:"rule"`
	Field    string   `json:"field"`
	Message  string   `json:"message"`
}

func writeJSON(w io.Writer, findings []Finding) error {
	objects := make([]object, len(findings))
	for i, f := range findings {
		p := f.Problem
		objects[i] = object{
			Severity: f.Severity, File: p.Source.File, Line: p.Source.Line, Column: p.Source.Column,
			Endpoint: p.Endpoint.String(), Rule: p.Rule, Field: p.Field, Message: p.Message,
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(objects)
}

// annotation returns a workflow command of GitHub Actions.
func annotation(f Finding) string {
	command := map[Severity]string{Error: "error", Warning: "warning", Note: "notice"}[f.Severity]
	var properties []string
	if s := f.Problem.Source; s.File != "" {
		properties = append(properties, "file="+property.Replace(s.File))
		if s.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", s.Line))
		}
		if s.Column > 0 {
			properties = append(properties, fmt.Sprintf("col=%d", s.Column))
		}
	}
	if len(properties) > 0 {
		command += " " + strings.Join(properties, ",")
	}
	return "::" + command + "::" + data.Replace(f.Problem.Text())
}

// The characters that would end a message, or a property, of a workflow command.
var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
