package ruleset

import (
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// ruleFields is the table of the fields of a [Rule], in their order. A new field is a field of
// Rule, a row here, and a field of lock.proto of the same name. The comment of the field in Rule is its
// description in the JSON Schema.
var ruleFields = []*field[Rule]{ //nolint:gochecknoglobals // a table that is only read
	column("endpoint", endpointType{}, func(r *Rule) *Endpoint { return &r.Endpoint }).forOneRule(),
	column("name", labelType{}, func(r *Rule) *string { return &r.Name }).forOneRule(),
	column("key", textType{template}, func(r *Rule) *string { return &r.Key }).forOneRule().insteadOf("keys"),
	column("keys", listType{template}, func(r *Rule) *[]string { return &r.Keys }).forOneRule().insteadOf("key"),
	column("kind", kindType, func(r *Rule) *Kind { return &r.Kind }),
	column("wait_time", waitType, func(r *Rule) *time.Duration { return &r.WaitTime }),
	column("lease_time", leaseType, func(r *Rule) *time.Duration { return &r.LeaseTime }),
	column("max_hold", timeType{example: time.Minute}, func(r *Rule) *time.Duration { return &r.MaxHold }),
	column("on_busy", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnBusy }),
	column("on_backend", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnBackend }),
	column("on_key", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnKey }),
	column("on_overload", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnOverload }),
	column("on_lost", onLostType, func(r *Rule) *failpolicy.OnLost { return &r.OnLost }),
	column("fallback", textType{}, func(r *Rule) *string { return &r.Fallback }),
	column("when", conditionType{textType{lined}}, func(r *Rule) *string { return &r.When }),
	column("debounce", timeType{example: 5 * time.Second}, func(r *Rule) *time.Duration { return &r.Debounce }),
	column("max_waiters", numberType{0, math.MaxInt, "0, or leave it out, for the client's limit"}, func(r *Rule) *int { return &r.MaxWaiters }),
	column("permits", numberType{1, math.MaxInt32, "the number of calls that may run at once, across all instances: 1 to 2147483647"}, func(r *Rule) *int { return &r.Permits }),
	column("token", boolType{}, func(r *Rule) *bool { return &r.Token }),
	column("status", statusesType{}, func(r *Rule) *failpolicy.Statuses { return &r.Status }),
	column("response", documentType{textType{lined}}, func(r *Rule) *string { return &r.Response }),
	column("message", sentenceType{textType{strictyaml.Form{Lines: true, Blank: true, Long: true}}}, func(r *Rule) *string { return &r.Message }),
	column("prefix", prefixType{textType{strictyaml.Form{Blank: true}}}, func(r *Rule) *string { return &r.Prefix }),
	column("key_format", keyFormatType, func(r *Rule) *KeyFormat { return &r.KeyFormat }),
	column("profile", textType{}, func(r *Rule) *string { return &r.Profile }).forOneRule(),
	column("disabled", boolType{}, func(r *Rule) *bool { return &r.Disabled }),
	column("dry_run", boolType{}, func(r *Rule) *bool { return &r.DryRun }),
	column("none", boolType{}, func(r *Rule) *bool { return &r.None }).forOneRule(),
}

// settingFields is the table of the fields of [Settings], in their order.
var settingFields = []*field[Settings]{ //nolint:gochecknoglobals // a table that is only read
	column("disabled", boolType{}, func(s *Settings) *bool { return &s.Disabled }),
	column("dry_run", boolType{}, func(s *Settings) *bool { return &s.DryRun }),
	column("allow_rekey", boolType{}, func(s *Settings) *bool { return &s.AllowRekey }),
	column("unmatched", severityType, func(s *Settings) *Severity { return &s.Unmatched }),
	column("uncovered", severityType, func(s *Settings) *Severity { return &s.Uncovered }),
}

// The types of the fields that have special words or forms. A prefix and a message may be blank: a rule
// writes them to override the texts of its profile. A key may be blank here, because the check of the whole
// rule has a better message for it.
//
//nolint:gochecknoglobals // tables that are only read
var (
	template = strictyaml.Form{Blank: true, Long: true}
	lined    = strictyaml.Form{Lines: true, Long: true}

	waitType  = timeType{5 * time.Second, []time.Duration{NoWait, WaitForever}, map[string]string{"0": "none", "-1": "forever"}}
	leaseType = timeType{30 * time.Second, []time.Duration{Watchdog}, map[string]string{"-1": "watchdog"}}

	kindType      = wordType[Kind]{kindWords()}
	keyFormatType = wordType[KeyFormat]{wordsOf("key_format", []KeyFormat{Encode, Strict})}
	severityType  = wordType[Severity]{wordsOf("severity", []Severity{SeverityError, SeverityWarn, SeverityIgnore})}
	strategyType  = wordType[failpolicy.Strategy]{wordList{words(failpolicy.Strategies()), func(w string) error { return second(failpolicy.ParseStrategy(w)) }}}
	onLostType    = wordType[failpolicy.OnLost]{wordList{words(failpolicy.LossChoices()), func(w string) error { return second(failpolicy.ParseOnLost(w)) }}}
)

// field is a row of the table of the fields of S, which is [Rule] or [Settings]. Go, files, .proto files,
// dumps and checks use a field only through its row.
type field[S any] struct {
	name    string // outside Go; the name in Go follows from it
	single  bool   // profiles and defaults do not have it
	instead string // the other form of the field: setting one of them removes the other
	typ     any    // the typ of its values

	isZero func(s *S) bool
	lay    func(to, from *S)
	show   func(s *S) any
	read   func(d *strictyaml.Doc, v strictyaml.Value, to *S) bool
	set    func(to *S, part string, layer Layer, value any) error
	check  func(at Source, s *S) []string
}

// column returns the row of a field of S.
func column[S, V any, T typ[V]](name string, t T, at func(*S) *V) *field[S] {
	return &field[S]{
		name: name, typ: t,
		isZero: func(s *S) bool { return reflect.ValueOf(at(s)).Elem().IsZero() },
		lay:    func(to, from *S) { *at(to) = *at(from) },
		show:   func(s *S) any { return t.show(*at(s)) },
		read: func(d *strictyaml.Doc, v strictyaml.Value, to *S) bool {
			x, ok := t.read(d, v)
			if ok {
				*at(to) = x
			}
			return ok
		},
		set:   func(to *S, part string, layer Layer, value any) error { return t.set(at(to), part, layer, value) },
		check: func(place Source, s *S) []string { return t.check(place, *at(s)) },
	}
}

// forOneRule marks a field that profiles and defaults cannot have.
func (f *field[S]) forOneRule() *field[S] {
	f.single = true
	return f
}

// insteadOf names the other form of the field.
func (f *field[S]) insteadOf(other string) *field[S] {
	f.instead = other
	return f
}

// keysOf returns the keys of a mapping whose values are the fields of an S in the T.
func keysOf[S, T any](fields []*field[S], in func(*T) *S) []strictyaml.Key[T] {
	keys := make([]strictyaml.Key[T], len(fields))
	for i, f := range fields {
		read := func(d *strictyaml.Doc, v strictyaml.Value, to *T) bool { return f.read(d, v, in(to)) }
		keys[i] = strictyaml.Key[T]{Name: f.name, Field: f.name, Read: read}
	}
	return keys
}

// fieldNamed returns the field of a rule with a name outside Go, or nil.
func fieldNamed(name string) *field[Rule] {
	if i := slices.IndexFunc(ruleFields, func(f *field[Rule]) bool { return f.name == name }); i >= 0 {
		return ruleFields[i]
	}
	return nil
}

// Fields lists the names of the fields of a [Rule] outside Go, in their order.
func Fields() []string { return namesOf(ruleFields) }

func namesOf[S any](fields []*field[S]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// sharedFields lists the fields that profiles and defaults may have.
func sharedFields() []*field[Rule] {
	return slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return f.single })
}

// singleFields lists the fields that belong to a single rule.
func singleFields() []*field[Rule] {
	return slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return !f.single })
}
