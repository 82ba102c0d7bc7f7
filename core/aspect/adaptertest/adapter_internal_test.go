package adaptertest

import (
	"context"
	"reflect"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestAdapter_Check(t *testing.T) {
	t.Parallel()
	complete := Adapter{
		Endpoint: ruleset.Func("pay"), ID: "in.ID", Tenant: "in.Tenant",
		Code:  func(failpolicy.Status) int { return 0 },
		Start: func(testing.TB, *Program) (Server, error) { return Server{}, nil },
	}
	if err := complete.check(); err != nil {
		t.Errorf("a complete adapter: %v", err)
	}
	for _, name := range []string{"Endpoint", "ID", "Tenant", "Code", "Start"} {
		a := complete
		reflect.ValueOf(&a).Elem().FieldByName(name).SetZero()
		wantText(t, a.check(), "adaptertest: Adapter."+name+" is missing: set it to ")
	}
}

func TestServer_Check(t *testing.T) {
	t.Parallel()
	complete := Server{
		Aspect: &aspect.Aspect{}, Check: func() error { return nil },
		Hold: func(context.Context) *core.Hold { return nil },
		Call: func(context.Context, Call) Answer { return Answer{} },
	}
	if err := complete.check(); err != nil {
		t.Errorf("a complete server: %v", err)
	}
	for _, name := range []string{"Aspect", "Check", "Hold", "Call"} {
		s := complete
		reflect.ValueOf(&s).Elem().FieldByName(name).SetZero()
		wantText(t, s.check(), "adaptertest: Server."+name+" is missing: set it to ")
	}
}
