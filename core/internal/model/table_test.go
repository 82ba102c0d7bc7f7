package model_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable_NamesExist checks that each name in the tables of doc.go is defined.
func TestTable_NamesExist(t *testing.T) {
	t.Parallel()
	promised, not := tables(t)
	model, rules := read(t, "*.tla"), read(t, "../history/trace.go")
	tests := read(t, "*_test.go") + read(t, "../../*_test.go") + read(t, "../*/*_test.go") + read(t, "../locktest/*/*_test.go")
	for _, row := range promised {
		names(t, row[1], model, `(?m)^%s ==`)
		names(t, row[2], rules, `(?m)^\t%s +=`)
		names(t, row[3], tests, `(?m)^func %s\(`)
	}
	for _, row := range not {
		names(t, strings.ReplaceAll(row[1], " breaks ", ", "), model, `(?m)^%s(\([a-z, ]+\))? ==`)
		names(t, row[2], tests, `(?m)^func %s\(`)
	}
	for _, name := range append(promises, "EveryTurnComes", "OrphansAreCleared") {
		if !strings.Contains(column(promised, 1), name) {
			t.Errorf("%s is in no row of doc.go", name)
		}
	}
}

// TestTable_EachPromiseHasARow checks that each promise in the documentation of core has a row in doc.go.
func TestTable_EachPromiseHasARow(t *testing.T) {
	t.Parallel()
	text := read(t, "../../doc.go")
	promised, not := tables(t)
	for _, section := range []struct {
		title string
		rows  [][]string
	}{{"What is promised", promised}, {"What is not promised, and what helps", not}} {
		_, after, _ := strings.Cut(text, "// # "+section.title+"\n")
		body, _, _ := strings.Cut(after, "// # ")
		sentences := strings.Split(body, "//   - ")[1:]
		if len(sentences) == 0 {
			t.Errorf("core/doc.go has no list %q", section.title)
		}
		for _, sentence := range sentences {
			sentence = plain(sentence)
			found := false
			for _, row := range section.rows {
				found = found || strings.Contains(sentence, row[0])
			}
			if !found {
				t.Errorf("no row of doc.go quotes this sentence of core/doc.go: %.80s", sentence)
			}
		}
		for _, row := range section.rows {
			if !strings.Contains(plain(text), row[0]) {
				t.Errorf("core/doc.go does not say %q", row[0])
			}
		}
	}
}

// plain returns the text of a comment as one line.
func plain(comment string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", " ")), " ")
}

// tables returns the rows of the two tables of doc.go, without their heads.
func tables(t *testing.T) (promised, not [][]string) {
	t.Helper()
	for line := range strings.Lines(read(t, "doc.go")) {
		cells := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "//"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "promised", cells[0] == "not promised":
		case len(cells) == 4:
			promised = append(promised, cells)
		case len(cells) == 3:
			not = append(not, cells)
		}
	}
	if len(promised) == 0 || len(not) == 0 {
		t.Fatal("doc.go has no tables")
	}
	return promised, not
}

func column(rows [][]string, n int) string {
	var all []string
	for _, row := range rows {
		all = append(all, row[n])
	}
	return strings.Join(all, ", ")
}

// names checks that a text defines each name in a cell.
func names(t *testing.T, cell, text, definition string) {
	t.Helper()
	if cell == "-" || strings.HasPrefix(cell, "left out: ") {
		return
	}
	for name := range strings.SplitSeq(cell, ", ") {
		if !regexp.MustCompile(strings.Replace(definition, "%s", regexp.QuoteMeta(name), 1)).MatchString(text) {
			t.Errorf("doc.go names %s, which does not exist", name)
		}
	}
}

// read returns the concatenated text of files.
func read(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
