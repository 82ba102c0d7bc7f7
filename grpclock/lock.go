package grpclock

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Lock returns an interceptor that runs one unary method while it holds a lock:
//
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recovery, authentication,
//		grpclock.Lock(locks, orderspb.Orders_Pay_FullMethodName, "order:pay:#{req.order_id}")))
//
// key is the Key of a [ruleset.Rule]. A rule after it sets other fields, and leaves Key and Endpoint empty. The name of the
// rule, the label in metrics and spans, is the method unless the rule has a Name. Other methods pass the interceptor.
// Streams, fallbacks, variables, several rules for a method, rules in .proto and in files, and servers of unknown services
// need a [Guard].
//
// Lock panics if the rule is wrong for the method, if no descriptor of the method is known, if the method is a stream, if
// its .proto file declares a rule, or if the method already has a Lock with another rule. A [Guard] of the same client
// checks its rules together with the rules of Lock. Observers get a warning if the program drops the interceptor without
// using it. [aspect.Of] returns the kill switch.
func Lock(locks *core.Client, method, key string, further ...ruleset.Rule) grpc.UnaryServerInterceptor {
	locked, err := methodrules.Lock("grpclock", locks, method, key, further)
	if err != nil {
		panic(fmt.Sprintf("grpclock: Lock(%q): %s", method, strings.TrimPrefix(err.Error(), "ruleset: ")))
	}
	var mismatches nameMismatches
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		locked.Use()
		e := locked.Entry
		if info.FullMethod != method {
			if matched, differs := matchedMethod(ctx, info.FullMethod); !differs || matched != method {
				return handler(ctx, req)
			}
			e = mismatches.entry(method, info.FullMethod)
		}
		return methodcall.Unary(ctx, locked.Methods, e, &unaryCall{call: call{ctx: ctx, method: info.FullMethod}, req: req, handler: handler})
	}
}
