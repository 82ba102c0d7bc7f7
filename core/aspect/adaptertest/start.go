package adaptertest

import (
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// start is what is judged before the first call.
func start(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"rule that matches nothing": matchesNothing,
		"as severe as it says":      asSevereAsItSays,
		"endpoint without a rule":   uncovered,
		"key that cannot work":      cannotWork,
		"rules for others":          rulesForOthers,
		"no rules":                  noRules,
	})
}

// other is a rule for an endpoint that is not there, but near.
func (b *bench) other() ruleset.Rule {
	return b.rule(func(r *ruleset.Rule) { r.Endpoint.Path += "s" })
}

// judged serves a rule file with settings and gives what Check says.
func (b *bench) judged(settings string, r ruleset.Rule) error {
	b.t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(settings+yaml(r)))
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
	wantText(t, b.judged("", b.other()), "locks.yaml:2:", "matches no", `did you mean "`+b.adapter.Endpoint.Label()+`"`)
}

func asSevereAsItSays(t *testing.T, b *bench) {
	if err := b.judged("unmatched: warn\n", b.other()); err != nil {
		t.Errorf("got %v", err)
	}
	if got := b.warned.texts(); len(got) != 1 || !strings.Contains(got[0], "matches no") {
		t.Errorf("observers were warned of %q", got)
	}
}

func uncovered(t *testing.T, b *bench) {
	err := b.judged("uncovered: error\nunmatched: ignore\n", b.other())
	wantText(t, err, b.adapter.Endpoint.Label(), "locks.yaml", "none: true")
}

// cannotWork: a rule that does not fit its endpoint is found by Check, and its handler
// never runs.
func cannotWork(t *testing.T, b *bench) {
	err := b.judged("", b.rule(func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.ID + "x}" }))
	wantText(t, err, "locks.yaml:3:", b.adapter.Endpoint.Label())
	if got := b.call(); got.OK || got.Code != b.adapter.Code(none.Status()) {
		t.Errorf("got %+v", got)
	}
	b.wantRan(0)
}

// rulesForOthers: rules of another transport are none of the adapter's business.
func rulesForOthers(_ *testing.T, b *bench) {
	other := ruleset.Func("close-day")
	if b.adapter.Endpoint.Transport == other.Transport {
		other = ruleset.HTTP("POST /days/close")
	}
	b.under(b.rule(), ruleset.Rule{Endpoint: other, Key: "day"})
	b.wantOK(b.call(), "paid", "")
}

func noRules(_ *testing.T, b *bench) {
	b.under()
	b.wantOK(b.call(), "paid", "")
}

// warnings keeps what an observer is warned of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: w.observeWarning}}
}

func (w *warnings) observeWarning(p *ruleset.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p.Error())
}

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// wantText checks that an error says all of the given things.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
}
