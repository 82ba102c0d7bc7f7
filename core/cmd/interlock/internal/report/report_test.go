package report_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

func yaml(file string, line, column int) ruleset.Source {
	return ruleset.Source{Layer: ruleset.LayerYAML, File: file, Line: line, Column: column}
}

var findings = []report.Finding{
	{Severity: report.Error, Problem: &ruleset.Problem{Source: yaml("a,b:c.yaml", 3, 5), Field: "key", Message: "100% wrong\n  | x\r\n  write <y>"}},
	{Severity: report.Warning, Problem: &ruleset.Problem{Source: yaml("locks.yaml", 0, 0), Rule: "pay", Endpoint: ruleset.HTTP("POST /pay"), Message: "odd"}},
	{Severity: report.Note, Problem: &ruleset.Problem{Endpoint: ruleset.Func("close"), Message: "not checked"}},
}

func write(t *testing.T, format string) string {
	t.Helper()
	var out strings.Builder
	if err := report.Write(&out, format, findings, "3 findings"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite_Text(t *testing.T) {
	t.Parallel()
	want := "a,b:c.yaml:3:5: key: 100% wrong\n  | x\r\n  write <y>\n" +
		"locks.yaml: warning: rule \"pay\" of http POST /pay: odd\n" +
		"note: rule of func close: not checked\n" +
		"3 findings\n"
	if got := write(t, "text"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrite_GitHubEscapes(t *testing.T) {
	t.Parallel()
	want := "::error file=a%2Cb%3Ac.yaml,line=3,col=5::key: 100%25 wrong%0A  | x%0D%0A  write <y>\n" +
		"::warning file=locks.yaml::rule \"pay\" of http POST /pay: odd\n" +
		"::notice::rule of func close: not checked\n"
	if got := write(t, "github"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrite_EmptyJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := report.Write(&out, "json", nil, "nothing"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "[]\n" {
		t.Errorf("got %q", out.String())
	}
	if got := write(t, "json"); !strings.Contains(got, `"message": "100% wrong\n  | x\r\n  write <y>"`) {
		t.Errorf("the message was changed: %s", got)
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	list := []report.Finding{
		{Severity: report.Note, Problem: &ruleset.Problem{Message: "no file"}},
		{Severity: report.Error, Problem: &ruleset.Problem{Source: yaml("b.yaml", 1, 1), Message: "other file"}},
		{Severity: report.Error, Problem: &ruleset.Problem{Source: yaml("a.yaml", 10, 1), Message: "10"}},
		{Severity: report.Error, Problem: &ruleset.Problem{Source: yaml("a.yaml", 9, 7), Message: "9:7"}},
		{Severity: report.Error, Problem: &ruleset.Problem{Source: yaml("a.yaml", 9, 2), Message: "9:2"}},
	}
	report.Sort(list)
	var order []string
	for _, f := range list {
		order = append(order, f.Problem.Message)
	}
	if got := strings.Join(order, ", "); got != "9:2, 9:7, 10, other file, no file" {
		t.Errorf("got %s", got)
	}
	if n := report.Count(list, report.Error); n != 4 {
		t.Errorf("got %d errors, want 4", n)
	}
}
