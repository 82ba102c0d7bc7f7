package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Two kinds of lock on one key would fail when they meet: Check says so, wherever the two
// rules are, and a reload that brings a second kind is refused.
func TestCheck_KindsOnOneKey(t *testing.T) {
	t.Parallel()
	const fenced = "which is a fenced lock for the rule of http POST /orders/:id/cancel, declared in the program: one key has one kind"
	guard, engine := newGuard(t), gin.New()
	p := &pushed{set: yaml(t, payRules("    kind: fenced\n"))}
	engine.Use(guard.Middleware(p))
	engine.POST(payPath, ok)
	cancel := ruleset.Rule{Key: "order:#{path.id}", Kind: ruleset.Fenced}
	if err := guard.Handle(engine, http.MethodPost, "/orders/:id/cancel", cancel, ok); err != nil {
		t.Fatal(err)
	}
	if err := guard.Check(engine); err != nil {
		t.Error(err)
	}
	wantText(t, p.push(yaml(t, "allow_rekey: true\n"+payRules("    kind: spin\n"))), "locks.yaml:6:11", "kind: a spin lock", fenced)

	ship := ruleset.Rule{Key: "order:#{path.id}"}
	if err := guard.Handle(engine, http.MethodPost, "/orders/:id/ship", ship, ok); err != nil {
		t.Fatal(err)
	}
	wantText(t, guard.Check(engine), "rule of http POST /orders/:id/ship: Kind: a reentrant lock", fenced, "write Kind: ruleset.Fenced")
}
