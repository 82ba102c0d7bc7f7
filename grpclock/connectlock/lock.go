package connectlock

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Lock returns an interceptor that runs one unary procedure while it holds a lock:
//
//	mux.Handle(ordersconnect.NewOrdersHandler(shop, connect.WithInterceptors(
//		connectlock.Lock(locks, ordersconnect.OrdersPayProcedure, "order:pay:#{req.order_id}"))))
//
// key is the Key of a [ruleset.Rule]. A rule after it sets other fields, and leaves Key and Endpoint empty. The name of the
// rule, the label in metrics and spans, is the procedure unless the rule has a Name. Other procedures, and the calls of a
// client, pass the interceptor. Streams, fallbacks, variables, several rules for a procedure, and rules in .proto and in
// files need a [Guard].
//
// Lock panics if the rule is wrong for the procedure, if no descriptor of the procedure is known, if the procedure is a
// stream, if its .proto file declares a rule, or if the procedure already has a Lock with another rule. A [Guard] of the
// same client checks its rules together with the rules of Lock. Observers get a warning if the program drops the
// interceptor without using it. [aspect.Of] returns the kill switch.
func Lock(locks *core.Client, procedure, key string, further ...ruleset.Rule) connect.Interceptor {
	locked, err := methodrules.Lock("connectlock", locks, procedure, key, further)
	if err != nil {
		panic(fmt.Sprintf("connectlock: Lock(%q): %s", procedure, strings.TrimPrefix(err.Error(), "ruleset: ")))
	}
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		locked.Use()
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if spec := req.Spec(); spec.IsClient || spec.Procedure != procedure {
				return next(ctx, req)
			}
			return response(methodcall.Unary(ctx, locked.Methods, locked.Entry, newUnaryCall(ctx, req, next)))
		}
	})
}
