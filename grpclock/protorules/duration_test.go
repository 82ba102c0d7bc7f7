package protorules_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Options and rule files take the same texts for the same times.
func TestDurations_AreThoseOfARuleFile(t *testing.T) {
	t.Parallel()
	texts := []string{
		"10s", "250ms", "1m30s", "1.5h", "1ms", "none", "forever", "watchdog", // some of them right
		"", " ", "10", "0", "0s", "-5s", "10 s", "10S", "10sec", "1d", "soon", "None", "FOREVER", "infinite", "1us", "100000h", "5s5", "+5s", ".5s", "1e3s", "٣s",
	}
	for _, field := range []string{"wait_time", "lease_time", "debounce"} {
		for _, text := range texts {
			file := fmt.Sprintf("rules:\n  - {grpc: /shop.v1.Orders/Pay, key: k, %s: %q}\n", field, text)
			fromFile, inFile := ruleset.Load("locks.yaml", []byte(file))
			declared, problems := protorules.Of(pay(t, lock(fmt.Sprintf("key: \"k\" %s: %q", field, text))))
			fromOption, inOption := ruleset.BuildSet(declared)
			if inOption == nil {
				inOption = ruleset.Invalid(problems...)
			}
			if (inFile == nil) != (inOption == nil) {
				t.Errorf("%s: %q: in a file: %v, in an option: %v", field, text, inFile, inOption)
				continue
			}
			if inFile != nil {
				continue
			}
			a, b := fromFile.Rules()[0], fromOption.Rules()[0]
			if a.WaitTime != b.WaitTime || a.LeaseTime != b.LeaseTime || a.Debounce != b.Debounce {
				t.Errorf("%s: %q: in a file %v, %v, %v; in an option %v, %v, %v", field, text, a.WaitTime, a.LeaseTime, a.Debounce, b.WaitTime, b.LeaseTime, b.Debounce)
			}
		}
	}
}

// What a rule file says of a number, an option says in its quotes.
func TestDurations_WithoutAUnitAreToldAsInARuleFile(t *testing.T) {
	t.Parallel()
	times := regexp.MustCompile(`\d+(\.\d+)?(ms|s|h)\b`)
	for _, text := range []string{"1", "5", "99", "100", "1.5", "2500.5", "86400", "86401", "10000000", "10000000000h"} {
		file := fmt.Sprintf("rules:\n  - {grpc: /shop.v1.Orders/Pay, key: k, debounce: %s}\n", text)
		_, err := ruleset.Load("locks.yaml", []byte(file))
		_, problems := protorules.Of(pay(t, lock(fmt.Sprintf("key: \"k\" debounce: %q", text))))
		if err == nil || len(problems) != 1 {
			t.Fatalf("%s: got %v and %v, want a problem of each", text, err, problems)
		}
		_, said, _ := strings.Cut(err.Error(), ": write ")
		want := times.ReplaceAllString(said, `"$0"`)
		if !strings.HasSuffix(problems[0].Message, ": write "+want) {
			t.Errorf("%s: got %q, want it to end with %q", text, problems[0].Message, want)
		}
	}
}
