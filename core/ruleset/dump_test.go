package ruleset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

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

func TestDump_Samples(t *testing.T) {
	t.Parallel()
	texts := samples(t, "valid")
	dumps, err := filepath.Glob(filepath.Join("testdata", "valid", "*.dump.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range dumps {
		if name := strings.TrimSuffix(filepath.Base(path), ".dump.txt"); texts[name] == "" {
			t.Errorf("%s: got no sample with that name, want one", path)
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

var profileLine = regexp.MustCompile(`(?m)^ +profile: .*\n`)

func TestDump_LoadsAgain(t *testing.T) {
	t.Parallel()
	for name, text := range samples(t, "valid") {
		set, err := ruleset.Load(name, []byte(text), sampleOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		dump := profileLine.ReplaceAllString(dumpText(t, set.Dump()), "") // the dump has the values of the profile
		again, err := ruleset.Load(name, []byte(dump))
		if err != nil {
			t.Errorf("%s: got error %v, want a dump that Load accepts:\n%s", name, err, dump)
			continue
		}
		for _, c := range ruleset.Diff(set, again) {
			if c.Field != "profile" {
				t.Errorf("%s: got the change %s after loading the dump, want none", name, c)
			}
		}
	}
}

// newLayeredSet returns a set with values from every layer.
func newLayeredSet(t *testing.T) *ruleset.Set {
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

func TestDump_Layers(t *testing.T) {
	t.Parallel()
	d := newLayeredSet(t).Dump()
	d.Settings.Uncovered = ruleset.SeverityWarn
	golden.Assert(t, dumpText(t, d), "dump.txt")
	first := d
	first.Rules = d.Rules[:1] // the rule with all layers
	golden.Assert(t, dumpJSON(t, first), "dump_json.txt")
	d.NoSources = true
	golden.Assert(t, dumpText(t, d), "dump_values.txt")
	golden.Assert(t, dumpJSON(t, d), "dump_values_json.txt")
}

func TestDump_EmptySet(t *testing.T) {
	t.Parallel()
	var none *ruleset.Set
	if got := dumpText(t, none.Dump()); got != "rules: []\n" {
		t.Errorf("dump of a nil set: got %q, want %q", got, "rules: []\n")
	}
}

// A setting that the file contains has a source, even if its value is the default. Other settings have none.
func TestDump_SettingSources(t *testing.T) {
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
			t.Errorf("%s is not in the file: got the source %+v, want none", name, *at)
		case line > 0 && (at == nil || at.Layer != "yaml" || at.File != "locks.yaml" || at.Line != line || at.Column != len(name)+3):
			t.Errorf("%s: got the source %+v, want locks.yaml:%d:%d", name, at, line, len(name)+3)
		}
	}
	if len(got.Settings) != 5 || got.Settings["dry_run"].Value != false || got.Settings["uncovered"].Value != "warn" {
		t.Errorf("got %v, want 5 settings, with dry_run: false and uncovered: warn", got.Settings)
	}
}

func TestDump_NoSources(t *testing.T) {
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
		t.Errorf("the dump of the file is\n%s%s\nwant the dump of the rule in code\n%s%s", fileText, fileDocument, text, document)
	}
	if dumpText(t, code.Dump()) == dumpText(t, file.Dump()) {
		t.Error("the dumps with sources are equal, want different sources")
	}
}

func TestDump_QuotedValues(t *testing.T) {
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
			t.Errorf("%q: got error %v, want a dump that Load accepts:\n%s", key, err, dump)
			continue
		}
		if r := again.Rules()[0]; r.Key != key || r.Message != key {
			t.Errorf("got key %q, message %q, want both %q, from\n%s", r.Key, r.Message, key, dump)
		}
	}
}

func TestDump_Times(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"10s": 10 * time.Second, "10m": 10 * time.Minute, "1h": time.Hour, "1h10m": 70 * time.Minute, "100h0m1s": 100*time.Hour + time.Second,
		"1.5s": 1500 * time.Millisecond, "87600h": ruleset.MaxDuration, "1ms": time.Millisecond, "watchdog": ruleset.Watchdog,
	} {
		set := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("x"), Key: "a", LeaseTime: d})
		if got := dumpText(t, set.Dump()); !strings.Contains(got, " "+want+" ") {
			t.Errorf("lease time %s: got\n%s\nwant it to contain %q", d, got, " "+want+" ")
		}
	}
}

func TestDump_CommentOnOneLine(t *testing.T) {
	t.Parallel()
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("x"), Key: "a", Profile: "a\nb: c"}},
		ruleset.WithProfile("a\nb: c", ruleset.Rule{LeaseTime: time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	if got := dumpText(t, set.Dump()); !strings.Contains(got, `# "profile a\nb: c"`+"\n") {
		t.Errorf("got\n%s\nwant the name of the profile quoted, on one line", got)
	}
}

func TestDump_WriteText_WriterFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	d := newLayeredSet(t).Dump()
	if err := d.WriteText(failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
