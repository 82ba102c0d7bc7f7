package wire_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every promise and every test in the table of mechanisms exists.
func TestDoc_MechanismsNamePromisesAndTests(t *testing.T) {
	t.Parallel()
	doc := words(t, "doc.go")
	promises := words(t, filepath.Join("..", "..", "doc.go"))
	tests := ""
	for _, pattern := range []string{"*_test.go", "../../*_test.go", "../locktest/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			tests += words(t, file)
		}
	}
	rows := regexp.MustCompile(`(?m)^//\t([^|\n]+)\|([^|\n]+)\|([^|\n]+)$`).FindAllStringSubmatch(read(t, "doc.go"), -1)
	if len(rows) < 15 {
		t.Fatalf("%d rows in %.80q", len(rows), doc)
	}
	for _, row := range rows[1:] {
		if promise := strings.Join(strings.Fields(row[2]), " "); !strings.Contains(promises, promise) {
			t.Errorf("%s: package core does not promise %q", strings.TrimSpace(row[1]), promise)
		}
		for name := range strings.SplitSeq(row[3], ",") {
			if name = strings.TrimSpace(name); !strings.Contains(tests, "func "+name+"(") {
				t.Errorf("%s: the test %s does not exist", strings.TrimSpace(row[1]), name)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// words returns the text of a file without comment marks and line breaks.
func words(t *testing.T, file string) string {
	t.Helper()
	return strings.Join(strings.Fields(strings.ReplaceAll(read(t, file), "//", " ")), " ")
}
