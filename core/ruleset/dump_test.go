package ruleset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// samples are the rule files of a folder of testdata.
func samples(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("testdata/%s has %d samples (%v)", folder, len(paths), err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(text)
	}
	return texts
}

func dumpText(tb testing.TB, d ruleset.Dump) string {
	tb.Helper()
	var text bytes.Buffer
	if err := d.WriteText(&text); err != nil {
		tb.Fatal(err)
	}
	return text.String()
}

func dumpJSON(tb testing.TB, d ruleset.Dump) string {
	tb.Helper()
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		tb.Fatal(err)
	}
	return text.String()
}

func TestDump_OfEverySample(t *testing.T) {
	t.Parallel()
	texts := samples(t, "valid")
	dumps, err := filepath.Glob(filepath.Join("testdata", "valid", "*.dump.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range dumps {
		if name := strings.TrimSuffix(filepath.Base(path), ".dump.txt"); texts[name] == "" {
			t.Errorf("%s has no sample", path)
		}
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := ruleset.Load(name+".yaml", []byte(text), sampleOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, dumpText(t, set.Dump()), filepath.Join("valid", name+".dump")+".txt")
		})
	}
}

// sampleOptions are what the samples need of a program.
func sampleOptions() []ruleset.Option {
	return []ruleset.Option{ruleset.WithService("shop-api")}
}

var profileLine = regexp.MustCompile(`(?m)^ +profile: .*\n`)

func TestDump_TextIsARuleFileThatSaysTheSame(t *testing.T) {
	t.Parallel()
	for name, text := range samples(t, "valid") {
		set, err := ruleset.Load(name, []byte(text), sampleOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		dump := profileLine.ReplaceAllString(dumpText(t, set.Dump()), "") // its values are there
		again, err := ruleset.Load(name, []byte(dump))
		if err != nil {
			t.Errorf("%s: %v in\n%s", name, err, dump)
			continue
		}
		for _, c := range ruleset.Diff(set, again) {
			if c.Field != "profile" {
				t.Errorf("%s: %s", name, c)
			}
		}
	}
}

// layered is a set whose values come from everywhere.
func layered(t *testing.T) *ruleset.Set {
	t.Helper()
	pay := ruleset.GRPC("/shop.Orders/Pay")
	proto := func(line int) ruleset.Source {
		return ruleset.Source{Layer: ruleset.LayerProto, File: "shop/orders.proto", Line: line, Column: 5}
	}
	yaml := func(line, column int) ruleset.Source {
		return ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: line, Column: column}
	}
	set, err := ruleset.BuildSet([]ruleset.Declared{
		{Rule: ruleset.Rule{Endpoint: pay, Name: "pay", Key: "order:#{req.id}", Prefix: "shop:", WaitTime: ruleset.NoWait}},
		{Rule: ruleset.Rule{Endpoint: pay, Name: "pay", WaitTime: ruleset.WaitForever, MaxWaiters: 10}, Source: proto(12)},
		{
			Rule:   ruleset.Rule{Endpoint: pay, Name: "pay", Keys: []string{"order:#{req.id}", `who:#{metadata["x-user"]}`}, Profile: "checkout"},
			Source: yaml(3, 5), Fields: map[string]ruleset.Source{"keys": yaml(4, 11), "profile": yaml(6, 14), "dry_run": yaml(7, 14)},
		},
		{Rule: ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Orders/Ship"), OnBusy: failpolicy.Skip}, Source: yaml(9, 5)},
		{Rule: ruleset.Rule{Endpoint: ruleset.HTTP("GET /health"), None: true}, Source: yaml(11, 5)},
		{Rule: ruleset.Rule{
			Endpoint: ruleset.HTTP("*"), Key: "#{client_ip}", When: "size(query) > 0 && method != 'GET'", Debounce: 90 * time.Second,
			Message: "Try again & \"relax\" <3", Status: failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 423}, Lost: failpolicy.Status{HTTP: 502, GRPC: 15 /* DATA_LOSS */}},
		}},
	},
		ruleset.WithProfile("default", ruleset.Rule{OnBackend: failpolicy.NullResponse}),
		ruleset.WithProfile("checkout", ruleset.Rule{LeaseTime: 20 * time.Second}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestDump_NamesEveryLayer(t *testing.T) {
	t.Parallel()
	d := layered(t).Dump()
	d.Settings.Uncovered = ruleset.SeverityWarn
	golden.Assert(t, dumpText(t, d), "dump.txt")
	first := d
	first.Rules = d.Rules[:1] // with all layers
	golden.Assert(t, dumpJSON(t, first), "dump_json.txt")
	d.NoSources = true
	golden.Assert(t, dumpText(t, d), "dump_values.txt")
	golden.Assert(t, dumpJSON(t, d), "dump_values_json.txt")
}

func TestDump_OfNothing(t *testing.T) {
	t.Parallel()
	var none *ruleset.Set
	if got := dumpText(t, none.Dump()); got != "rules: []\n" {
		t.Errorf("an empty set: got %q", got)
	}
}

// Every setting of a file has its place, be it the default or not; one that the file does
// not have has none.
func TestDump_JSONHasThePlacesOfSettings(t *testing.T) {
	t.Parallel()
	lines := map[string]int{"disabled": 1, "allow_rekey": 2, "unmatched": 3, "uncovered": 4}
	set := load(t, "locks.yaml", "disabled: true\nallow_rekey: false\nunmatched: error\nuncovered: warn\nrules: []\n")
	var got struct {
		Settings map[string]struct {
			Value  any
			Source *struct {
				Layer, File  string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal([]byte(dumpJSON(t, set.Dump())), &got); err != nil {
		t.Fatal(err)
	}
	for name, setting := range got.Settings {
		line, at := lines[name], setting.Source
		switch {
		case line == 0 && at != nil:
			t.Errorf("%s is not in the file, and comes from %v", name, at)
		case line > 0 && (at == nil || at.Layer != "yaml" || at.File != "locks.yaml" || at.Line != line || at.Column != len(name)+3):
			t.Errorf("%s = %v comes from %v", name, setting.Value, at)
		}
	}
	if len(got.Settings) != 5 || got.Settings["dry_run"].Value != false || got.Settings["uncovered"].Value != "warn" {
		t.Errorf("got %v", got.Settings)
	}
}

func TestDump_WithoutSourcesIsTheSameForEveryLayer(t *testing.T) {
	t.Parallel()
	code := mustSet(t, ruleset.Rule{Endpoint: ruleset.HTTP("POST /pay"), Name: "pay", Key: "a", LeaseTime: time.Minute, OnBusy: failpolicy.Skip})
	file, err := ruleset.Load("locks.yaml", []byte("rules:\n- {http: POST /pay, name: pay, key: a, lease_time: 60s, on_busy: skip}\n"))
	if err != nil {
		t.Fatal(err)
	}
	values := func(set *ruleset.Set) (string, string) {
		d := set.Dump()
		d.NoSources = true
		return dumpText(t, d), dumpJSON(t, d)
	}
	text, document := values(code)
	fileText, fileDocument := values(file)
	if text != fileText || document != fileDocument {
		t.Errorf("got\n%s%s\nwant\n%s%s", fileText, fileDocument, text, document)
	}
	if dumpText(t, code.Dump()) == dumpText(t, file.Dump()) {
		t.Error("the sources are the same, too")
	}
}

func TestDump_SpellsValuesSoThatYAMLReadsThemBack(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "order:1", "a: b", "a:", "#{path.id}", "a #b", "- a", "*", "yes", "Null", "10s", "0x1F", "1.5", "~", "a'b", `a"b`, `'"`, `\d`, `\d'`,
		" a", "a ", "{a}", "[a]", "a, b", "é", "日本", "\u00a0a", "\ufeffa", "a\u2028b", "!a", "&a", "@a", "a/b", "/a", "? a", "|", ">", "%a", "`a`", "=", "<<",
		strings.Repeat("long", 30),
	} {
		set := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("close day"), Key: key, Message: key, Keys: nil})
		dump := dumpText(t, set.Dump())
		again, err := ruleset.Load("dump", []byte(dump))
		if err != nil {
			t.Errorf("%q: %v in\n%s", key, err, dump)
			continue
		}
		if r := again.Rules()[0]; r.Key != key || r.Message != key {
			t.Errorf("%q: got key %q, message %q from\n%s", key, r.Key, r.Message, dump)
		}
	}
}

func TestDump_SpellsTimesBriefly(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"10s": 10 * time.Second, "10m": 10 * time.Minute, "1h": time.Hour, "1h10m": 70 * time.Minute, "100h0m1s": 100*time.Hour + time.Second,
		"1.5s": 1500 * time.Millisecond, "87600h": ruleset.MaxDuration, "1ms": time.Millisecond, "watchdog": ruleset.Watchdog,
	} {
		set := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("x"), Key: "a", LeaseTime: d})
		if got := dumpText(t, set.Dump()); !strings.Contains(got, " "+want+" ") {
			t.Errorf("%s: want %s in\n%s", d, want, got)
		}
	}
}

func TestDump_KeepsACommentOnItsLine(t *testing.T) {
	t.Parallel()
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("x"), Key: "a", Profile: "a\nb: c"}},
		ruleset.WithProfile("a\nb: c", ruleset.Rule{LeaseTime: time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	if got := dumpText(t, set.Dump()); !strings.Contains(got, `# "profile a\nb: c"`+"\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestDump_ReportsTheErrorOfTheWriter(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	d := layered(t).Dump()
	if err := d.WriteText(failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func ExampleDump_WriteText() {
	set, err := ruleset.Load("locks.yaml", []byte(`
dry_run: true
rules:
  - http: POST /orders/:id/pay
    key: "order:pay:#{path.id}"
    profile: quick
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := set.Dump().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// dry_run:  true  # locks.yaml:2:10
	// rules:
	//   - http:         POST /orders/:id/pay    # locks.yaml:4:11
	//     key:          "order:pay:#{path.id}"  # locks.yaml:5:10
	//     kind:         reentrant               # default
	//     wait_time:    3s                      # profile quick
	//     lease_time:   10s                     # profile quick
	//     on_busy:      error                   # default
	//     on_backend:   error                   # default
	//     on_key:       error                   # default
	//     on_overload:  error                   # default
	//     on_lost:      cancel                  # default
	//     key_format:   encode                  # default
	//     profile:      quick                   # locks.yaml:6:14
	//     dry_run:      true                    # locks.yaml:2:10
}
