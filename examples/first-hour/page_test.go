package firsthour_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage_Works follows the page block by block.
func TestPage_Works(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a dozen programs")
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	for _, b := range blocksOf(string(page)) {
		r.follow(b)
	}
}

// block is a fenced block with the comment above it, such as <!-- write: main.go -->.
type block struct {
	line     int // of the block
	do       string
	argument string
	text     string
}

var fenced = regexp.MustCompile("(?ms)^(?:<!-- (\\w+)(?:: ([^\n]*))? -->\n)?```\\w*\n(.*?)^```$")

func blocksOf(page string) (list []block) {
	for _, m := range fenced.FindAllStringSubmatchIndex(page, -1) {
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return page[m[2*i]:m[2*i+1]]
		}
		list = append(list, block{line: 1 + strings.Count(page[:m[0]], "\n"), do: group(1), argument: group(2), text: group(3)})
	}
	return list
}

// follow does what the comment of a block says:
//
//	write: FILE          the block is the file
//	append: FILE         the block goes to the end of the file
//	insert: FILE LINE    the block goes below the only line that contains LINE
//	replace: FILE LINE   the block replaces that line, or the function that begins there
//	run                  the commands succeed
//	fail                 the last command fails
//	start                the service starts; a service that runs is stopped before
//	interrupt            the service is terminated during the commands, which succeed; it exits with 0
//	see                  the output of the last commands has these lines in this order; … is any text
//	see: any order       the same in any order
//	log                  the service writes these lines after the last commands
//	skip: REASON         nothing
func (r *reader) follow(b block) {
	r.t.Helper()
	b.text = r.ports.Replace(b.text)
	file, line, _ := strings.Cut(b.argument, " ")
	if b.do != "log" && b.do != "see" {
		r.logged = r.service.size()
	}
	switch b.do {
	case "write":
		r.write(b, file, b.text)
	case "append":
		r.write(b, file, r.read(b, file)+b.text)
	case "insert":
		before, found, after := r.find(b, file, line)
		r.write(b, file, before+found+b.text+after)
	case "replace":
		before, _, after := r.find(b, file, line)
		r.write(b, file, before+b.text+after)
	case "run", "fail", "interrupt":
		r.last = b
		r.perform(b)
	case "start":
		r.start(b)
	case "see":
		r.see(b)
	case "log":
		r.await(b)
	case "skip":
	default:
		r.t.Fatalf("README.md:%d: a comment above the block has to say what the test does with it: see follow", b.line)
	}
}

// missing returns the first line of want that is not in the output. … in a line is any text.
func missing(output, want string, anyOrder bool) string {
	rest := strings.ReplaceAll(output, "\r\n", "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimSuffix(line, "\n")
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		at := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringIndex(rest)
		switch {
		case at == nil:
			return line
		case !anyOrder:
			rest = rest[at[1]:]
		}
	}
	return ""
}
