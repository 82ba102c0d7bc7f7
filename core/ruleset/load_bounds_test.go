package ruleset_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/thorough"
	"github.com/interlock-go/interlock/core/ruleset"
)

// soon is a bound on the time in which a file is answered, where INTERLOCK_TIMES=1 says that the machine
// has nothing else to do. Elsewhere the time limit of go test is the bound: what is not linear takes hours.
func soon() time.Duration {
	if os.Getenv("INTERLOCK_TIMES") == "1" {
		return 2 * time.Minute
	}
	return math.MaxInt64
}

// repeated is a text with n numbered parts.
func repeated(head, part, tail string, n int) string {
	var text strings.Builder
	text.WriteString(head)
	for i := range n {
		text.WriteString(strings.ReplaceAll(part, "#", fmt.Sprint(i)))
	}
	text.WriteString(tail)
	return text.String()
}

// bombs are files of less than 4 MiB that once took minutes, gigabytes, or both; each with
// the begin of its first problem.
func bombs() map[string]string {
	profiles := repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules:\n", 900)
	long := strings.Repeat("a", 3<<20)
	return map[string]string{
		"locks.yaml:903:31: rule of func f0: profile: unknown profile \"nope0\"": repeated(profiles, "- {func: f#, key: a, profile: nope#}\n", "", 49_000),
		"locks.yaml:3:9: rule of func a: keys: 290000 templates":                 repeated("rules:\n- func: a\n  keys: [", "a#,", "a]\n", 289_999),
		"locks.yaml:4:3: rule of func a: services: 280000 programs":              repeated("rules:\n- func: a\n  services:\n", "  - a#\n", "", 280_000),
		"locks.yaml: more than 300000 lines and values":                          repeated("{", "a#,", "a: b}\n", 300_001),
		"locks.yaml:2:1: rules: 60000 rules":                                     repeated("rules:\n", "- {func: f#, key: a}\n", "", 60_000),
		"locks.yaml:2:3: profiles: 60000 profiles":                               repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules: []\n", 60_000),
		"locks.yaml:2:5: profiles: a name of 3145728 bytes":                      repeated("profiles:\n  ? "+long+"\n  :\n", "    k#: a\n", "rules: []\n", 10_000),
		"locks.yaml:2:9: func: 3145728 bytes long":                               repeated("rules:\n- func: "+long+"\n", "  k#: a\n", "", 10_000),
		"locks.yaml:3:9: rule of func a: name: 3145728 bytes long":               repeated("rules:\n- func: a\n  name: "+long+"\n", "  k#: a\n", "", 10_000),
		"locks.yaml:2:3: rule of http GET /0: key: missing":                      repeated("rules:\n", "- {http: GET /#}\n", "", 50_000),
		"locks.yaml:3:3: rule of func f: name: declared twice":                   repeated("rules:\n", "- {func: f, key: a}\n", "", 50_000),
		"locks.yaml:2:19: rule \"n0\" of func f: name: beside none":              repeated("rules:\n", "- {func: f, name: n#, none: true}\n", "", 49_000),
		"locks.yaml:1:2: a0: unknown field":                                      repeated("{", "a#,", "a: b}\n", 299_000),
		"locks.yaml:1:28: rule of func a: on_busy: unknown strategy":             "rules: [{func: a, on_busy: " + long + "}]\n",
	}
}

// TestLoad_AnswersSoon: however a file is made, it is answered soon, and with a text
// that somebody can read. The bounds are far from what is measured, and further from what
// anything quadratic takes.
func TestLoad_AnswersSoon(t *testing.T) {
	t.Parallel()
	const maxProblems, maxText = 1000, 1 << 20
	largest := thorough.Or(4<<20, 1_200_000) // a file is read by one goroutine
	for want, text := range bombs() {
		if len(text) > largest {
			continue
		}
		start := time.Now()
		_, err := ruleset.Load("locks.yaml", []byte(text))
		if took := time.Since(start); took > soon() {
			t.Errorf("%s: took %s", want, took)
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok {
			t.Errorf("%s: got %v", want, err)
			continue
		}
		if first := invalid.Problems[0].Error(); !strings.HasPrefix(first, want) {
			t.Errorf("got %.200s, want %s", first, want)
		}
		if n, size := len(invalid.Problems), len(err.Error()); n > maxProblems || size > maxText {
			t.Errorf("%s: %d problems in %d bytes", want, n, size)
		}
	}
}

func TestLoad_SaysHowManyProblemsThereAreMore(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Load("locks.yaml", []byte(repeated("rules:\n", "- {http: GET /#}\n", "", 1_500)))
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || len(invalid.Problems) != 1000 {
		t.Fatalf("got %.200v, want 1000 problems", err)
	}
	if got, want := invalid.Problems[999].Error(), "locks.yaml:1001:3: and 501 more problems: correct those above first"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLoad_NamesAFewOfManyProfiles(t *testing.T) {
	t.Parallel()
	text := repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules: [{func: a, key: a, profile: p900x}]\n", 999)
	_, err := ruleset.Load("locks.yaml", []byte(text))
	want := `unknown profile "p900x": write "p900" (one of quick, normal, heavy, long, p0, p1, p2, p3, p4, p5, and 993 more)`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLoad_TakesFilesOfTheLargestSize: the bounds are above what rule files have.
func TestLoad_TakesFilesOfTheLargestSize(t *testing.T) {
	t.Parallel()
	const most = 17_000
	rules := thorough.Or(most, 1_000) // a file is read by one goroutine
	text := bigFile(rules)
	if size := len(text); rules == most && (size < 4_000_000 || size > 4<<20) {
		t.Fatalf("%d bytes", size)
	}
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil || len(set.Rules()) != rules {
		t.Fatalf("got %d rules, %v", len(set.Rules()), err)
	}
}

// TestLoad_ManyComments: a file that is all comments takes no longer than others of its
// size. Were every comment looked for from the start of the file, it would take hours.
func TestLoad_ManyComments(t *testing.T) {
	t.Parallel()
	const maxFileSize, maxProblems = 4 << 20, 1000
	const head = "rules:\n- http: POST /orders\n  key: order\n"
	for comment, want := range map[string]int{"  # one\n": 0, "  #{x}\n": maxProblems, "    #{\n": maxProblems, "#{x}\n": maxProblems} {
		text := head + strings.Repeat(comment, (maxFileSize-len(head))/len(comment))
		start := time.Now()
		_, err := ruleset.Load("locks.yaml", []byte(text))
		if took := time.Since(start); took > soon() {
			t.Errorf("%q: took %s", comment, took)
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if ok != (want > 0) || ok && len(invalid.Problems) != want {
			t.Fatalf("%q: got %.200v, want %d problems", comment, err, want)
		}
		if ok && !strings.HasPrefix(invalid.Problems[want-1].Message, "more problems follow") {
			t.Errorf("%q: got %v as the last problem", comment, invalid.Problems[want-1])
		}
	}
}
