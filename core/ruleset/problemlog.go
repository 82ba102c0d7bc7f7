package ruleset

import (
	"errors"
	"log/slog"
	"strings"
)

// LogAttrs returns the log attributes for an error of a rule file. Each is one line, without the
// picture of the template.
//
//   - For a [*Problem]: "file", "line", "column", "rule", "endpoint", "field", "problem" and "hint", as far
//     as they are known.
//   - For an [*InvalidError]: "problems", a list.
//   - For any other error: "error", and for a panic "stack", a list.
func LogAttrs(err error) []slog.Attr {
	if p, ok := err.(*Problem); ok { //nolint:errorlint // an InvalidError wraps problems, too
		return p.logAttrs()
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return []slog.Attr{slog.Any("problems", invalid.lines())}
	}
	text, stack, panicked := strings.Cut(err.Error(), "\ngoroutine ")
	attrs := []slog.Attr{slog.String("error", oneLine(text))}
	if panicked {
		attrs = append(attrs, slog.Any("stack", strings.Split(strings.TrimSpace("goroutine "+stack), "\n")))
	}
	return attrs
}

// LogValue returns the group of [LogAttrs].
func (p *Problem) LogValue() slog.Value { return slog.GroupValue(p.logAttrs()...) }

// LogValue returns the list of the problems, each in one line.
func (e *InvalidError) LogValue() slog.Value { return slog.AnyValue(e.lines()) }

func (p *Problem) logAttrs() []slog.Attr {
	var attrs []slog.Attr
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("file", p.Source.File)
	if p.Source.Line > 0 {
		attrs = append(attrs, slog.Int("line", p.Source.Line), slog.Int("column", p.Source.Column))
	}
	text("rule", p.Rule)
	if !p.Endpoint.IsZero() {
		text("endpoint", p.Endpoint.String())
	}
	text("field", p.fieldName())
	problem, hint := oneLine(p.Message), ""
	if strings.Count(problem, ": write ") == 1 {
		problem, hint, _ = strings.Cut(problem, ": write ")
	}
	text("problem", problem)
	if hint != "" {
		text("hint", "write "+hint)
	}
	return attrs
}

func (e *InvalidError) lines() []string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = oneLine(p.Error())
	}
	return lines
}

// oneLine joins the lines of a message. It leaves out the pictures of templates: the lines that begin with a
// bar.
func oneLine(text string) string {
	var one strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "|"):
			continue
		case one.Len() == 0:
		case strings.HasPrefix(line, "write "):
			one.WriteString(": ")
		default:
			one.WriteString("; ")
		}
		one.WriteString(line)
	}
	return one.String()
}
