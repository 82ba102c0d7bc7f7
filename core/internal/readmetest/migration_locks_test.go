package readmetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

type charge struct{ OrderID string }

// try runs a rule around a function that returns the key of its lock.
func try(t *testing.T, srv *redistest.Server, rule ruleset.Rule, order string, run func()) error {
	t.Helper()
	locks, err := core.New(srv.Client(), core.WithPrefix("shop:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := locks.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	locking, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	rule.Name, rule.WaitTime = "pay", ruleset.NoWait
	pay, err := aspect.Wrap(locking, rule, func(context.Context, charge) (bool, error) {
		run()
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pay(t.Context(), charge{OrderID: order})
	return err
}

func cause(err error) failpolicy.Cause {
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		return refused.Cause
	}
	return ""
}

// TestMigration_Rename runs each step while another holder has the old or the new key.
func TestMigration_Rename(t *testing.T) {
	t.Parallel()
	before, after := "lock.pay#{in.OrderID}", "order:pay:#{in.OrderID}"
	steps := []ruleset.Rule{{Key: before}, {Keys: []string{before, after}}, {Key: after}}
	text := rows(t, migrating, "Rename a key")
	for held, busy := range map[string][]bool{
		"shop:lock.pay42":   {true, true, false},
		"shop:order:pay:42": {false, true, true},
	} {
		srv := redistest.New(t)
		srv.Take(held, time.Minute)
		for i, rule := range steps {
			if got := cause(try(t, srv, rule, "42", func() {})) == failpolicy.Busy; got != busy[i] {
				t.Errorf("%s held, step %d: got busy: %t", held, i, got)
			}
			for _, template := range rule.Templates() {
				template = strings.ReplaceAll(template, "in.OrderID", "path.orderId")
				if !strings.Contains(text[i][1], `"`+template+`"`) {
					t.Errorf("step %d of the table has no %s", i, template)
				}
			}
		}
	}
}

// TestMigration_OtherLayouts runs a rule whose key is also the key of a lock4j lock, which is a string.
func TestMigration_OtherLayouts(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	java := srv.Client()
	rule := ruleset.Rule{Key: `lock4j:pay#{"#"}#{in.OrderID}`, KeyFormat: ruleset.Strict}
	err := try(t, srv, rule, "42", func() {
		took, err := java.SetNX(t.Context(), "shop:lock4j:pay#42", "uuid", time.Minute).Result()
		if took || err != nil {
			t.Errorf("SET NX on a held lock: got %t, %v", took, err)
		}
		if err := java.Get(t.Context(), "shop:lock4j:pay#42").Err(); err == nil {
			t.Error("GET on a held lock: got no error")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := java.Set(t.Context(), "shop:lock4j:pay#42", "uuid", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	err = try(t, srv, rule, "42", func() { t.Error("the function ran although a lock of another layout is held") })
	if got := cause(err); got != failpolicy.Backend {
		t.Errorf("a string on the key: got cause %q (%v), want backend", got, err)
	}
}

// TestMigration_RenameByReload compares the rules of each step with the rules of every other step. Only a
// reload that jumps over a step is refused.
func TestMigration_RenameByReload(t *testing.T) {
	t.Parallel()
	var sets []*ruleset.Set
	for _, row := range rows(t, migrating, "Rename a key") {
		text := "rules:\n  - http: POST /orders/:orderId/pay\n    " + plain(row[1]) + "\n"
		set, err := ruleset.Load("step "+row[0], []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	for from, old := range sets {
		for to, next := range sets {
			jump := from-to == 2 || to-from == 2
			problems, _ := ruleset.CompareLocks(old, next)
			if refused := len(problems) > 0; refused != jump {
				t.Errorf("from step %d to %d: got refused: %t", from, to, refused)
			}
		}
	}
}
