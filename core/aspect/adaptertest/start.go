package adaptertest

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// start tests the problems that are found before the first call.
func start(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"rule that matches nothing": matchesNothing,
		"severity of the file":      severityOfTheFile,
		"endpoint without a rule":   endpointWithoutARule,
		"key that does not compile": brokenKey,
		"rules for others":          rulesForOthers,
		"no rules":                  noRules,
	})
}

// checkFile serves a rule file with settings and returns the error of Check.
func checkFile(b *bench, settings string, r ruleset.Rule) error {
	b.t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(settings+formatRuleFile(r)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.program.Set = set
	if err := b.serve(); err != nil {
		b.t.Fatal(err)
	}
	return b.server.Check()
}

func matchesNothing(t *testing.T, b *bench) {
	wantText(t, checkFile(b, "", b.other()), "locks.yaml:2:", "matches no", `did you mean "`+b.adapter.Endpoint.Label()+`"`)
}

func severityOfTheFile(t *testing.T, b *bench) {
	if err := checkFile(b, "unmatched: warn\n", b.other()); err != nil {
		t.Errorf("got %v", err)
	}
	if got := b.warned.texts(); len(got) != 1 || !strings.Contains(got[0], "matches no") {
		t.Errorf("observers got the warnings %q", got)
	}
}

func endpointWithoutARule(t *testing.T, b *bench) {
	err := checkFile(b, "uncovered: error\nunmatched: ignore\n", b.other())
	wantText(t, err, b.adapter.Endpoint.Label(), "locks.yaml", "none: true")
}

// brokenKey tests that Check reports a rule that does not fit its endpoint and that its handler never runs.
func brokenKey(t *testing.T, b *bench) {
	err := checkFile(b, "", b.rule(func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.ID + "x}" }))
	wantText(t, err, "locks.yaml:3:", b.adapter.Endpoint.Label())
	if got := b.call(); got.OK || got.Code != b.adapter.Code(none.Status()) {
		t.Errorf("got %+v", got)
	}
	b.wantRan(0)
}

// rulesForOthers tests that the adapter ignores rules for another transport.
func rulesForOthers(_ *testing.T, b *bench) {
	other := ruleset.Func("close-day")
	if b.adapter.Endpoint.Transport == other.Transport {
		other = ruleset.HTTP("POST /days/close")
	}
	b.serveUnder(b.rule(), ruleset.Rule{Endpoint: other, Key: "day"})
	b.wantOK(b.call(), "paid", "")
}

func noRules(_ *testing.T, b *bench) {
	b.serveUnder()
	b.wantOK(b.call(), "paid", "")
}
