package methodcall

import (
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Answer is the error that a caller receives instead of a response: a status with details. Reason stays on the
// server.
type Answer struct {
	Code    failpolicy.Code
	Message string
	Details []proto.Message
	Reason  error
}

// codeInternal is the code INTERNAL of gRPC and Connect. This package links neither library.
const codeInternal failpolicy.Code = 13

// Refusal returns the answer to a refused caller. Its details are one ErrorInfo and, if the caller should
// try again, one RetryInfo.
func Refusal(refused *aspect.RefusedError) *Answer {
	a := &Answer{Code: refused.Status.GRPC, Message: refused.Message, Details: errorInfo(reasonOf(refused)), Reason: refused}
	if a.Code == 0 {
		a.Code = codeInternal // a refusal never becomes a success
	}
	if refused.RetryAfter > 0 {
		a.Details = append(a.Details, &errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
	}
	return a
}

// Broken returns the answer of a method whose lock is misconfigured.
func Broken(reason error) *Answer {
	return &Answer{
		Code: codeInternal, Message: "the lock of this method is misconfigured", Details: errorInfo(failpolicy.ReasonMisconfigured),
		Reason: &methodrules.MisconfiguredError{Reason: reason},
	}
}

func errorInfo(reason string) []proto.Message {
	return []proto.Message{&errdetails.ErrorInfo{Reason: reason, Domain: failpolicy.Domain}}
}

// reasonOf returns the reason of the cause. If the program is at fault, it returns
// [failpolicy.ReasonMisconfigured], which does not blame the request.
func reasonOf(refused *aspect.RefusedError) string {
	if refused.Misconfigured {
		return failpolicy.ReasonMisconfigured
	}
	return refused.Cause.Reason()
}

// lossRefusal returns the refusal of a stream whose lock is lost while its handler runs. With several
// rules, it names the last rule with a lock. The final answer to the caller names the right one.
func lossRefusal(point *aspect.Point, cause error) *aspect.RefusedError {
	rule := lastInForce(point.Rules())
	lost := aspect.Outcome{
		Verdict: aspect.VerdictLost, Cause: failpolicy.Lost, Rule: rule, Status: rule.Status.Status(failpolicy.Lost), Reason: cause,
	}
	return lost.Refusal()
}

// lastInForce returns the last rule that takes a lock, or the last rule if none does.
func lastInForce(rules []*ruleset.Resolved) *ruleset.Resolved {
	for _, r := range slices.Backward(rules) {
		if !r.Disabled && !r.DryRun {
			return r
		}
	}
	return rules[len(rules)-1]
}
