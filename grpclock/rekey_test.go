package grpclock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

// Nobody called Check, nor any method: those that a file names keep their locks.
func TestReload_WithoutCheckKeepsTheLocksOfMethodsThatWereNotCalled(t *testing.T) {
	t.Parallel()
	entry := func(endpoint, fields string) string { return "  - {grpc: " + endpoint + ", " + fields + "}\n" }
	file := func(entries ...string) string { return "rules:\n" + strings.Join(entries, "") }
	service, plain, refuse := entry("/till.v1.Till/*", "key: old"), tillMethod("Plain"), tillMethod("Refuse")
	const own = "till:#{req.item}" // of the .proto
	for name, tt := range map[string]struct {
		old, next string
		want      string // "" where it is let through
	}{
		"from a wildcard":            {file(service), file(service, entry(plain, "key: new")), `in place of "old"`},
		"from a wildcard, same key":  {file(service), file(service, entry(plain, "key: old, wait_time: 1s")), ""},
		"from a wildcard, to none":   {file(service), file(service, entry(plain, "none: true")), ""},
		"to a wildcard":              {file(service, entry(plain, "key: new")), file(service), `in place of "new"`},
		"from the .proto":            {elsewhere, file(entry(refuse, "key: new")), `in place of "` + own + `"`},
		"from the .proto by both":    {elsewhere, file(entry(refuse, "keys: ['"+own+"', new]")), ""},
		"to the .proto":              {file(entry(refuse, "key: new")), elsewhere, `in place of "new"`},
		"of the .proto, prefix":      {elsewhere, file(entry(refuse, "prefix: 'new:'")), `in place of "` + own + `"`},
		"of the .proto, not the key": {elsewhere, file(entry(refuse, "wait_time: 1s")), ""},
		"without a descriptor":       {file(entry("/away.v1.Away/*", "key: old")), file(entry("/away.v1.Away/Go", "key: new")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := openRules(t, tt.old)
			prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules))
			err := rules.change(t, tt.next)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if allowed := rules.change(t, "allow_rekey: true\n"+tt.next); allowed != nil {
				t.Errorf("refused though it is allowed: %v", allowed)
			}
		})
	}
}

// Descriptors that were given count as those of the program.
func TestReload_WithoutCheckKnowsGivenDescriptors(t *testing.T) {
	t.Parallel()
	files, _ := readLate(t, late(t, payLock, ""), nil)
	rules := openRules(t, elsewhere)
	prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithSet(rules))
	err := rules.change(t, "rules:\n  - {grpc: /late.v1.Orders/Pay, key: new}\n")
	if err == nil || !strings.Contains(err.Error(), `in place of`) {
		t.Errorf("got %v", err)
	}
}

// A mistake in a key makes another lock of it: the mistake is the news.
func TestReload_TellsAMistakeAndNotTheOtherLockThatItMakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fields, want string }{
		"in the key":       {`key: "till:#{req.itm}"`, "write req.item"},
		"in the condition": {`key: new, when: req.amont > 1`, "write req.amount"},
		"in the response":  {`key: new, on_busy: null_response, response: '{"txt": "a"}'`, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := openRules(t, elsewhere)
			prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules)).checked()
			err := rules.change(t, tillFile("Refuse", tt.fields))
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok || len(invalid.Problems) != 1 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want only %s", err, tt.want)
			}
		})
	}
}
