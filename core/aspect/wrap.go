package aspect

import (
	"context"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Wrap puts a rule around a function. Keys and conditions see the argument as
// `in`, with Go's field names: "order:#{in.OrderID}". The rule's Name is the label
// in metrics; default: its Endpoint, then the function's own name.
//
// The returned function has the semantics of [Point.Run]: refused it returns a
// [*RefusedError]; skipped or null it returns the zero value and nil.
func Wrap[In, Out any](a *Aspect, rule ruleset.Rule, fn func(context.Context, In) (Out, error)) (func(context.Context, In) (Out, error), error) {
	panic("unbuilt")
}
