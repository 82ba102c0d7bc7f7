package methodcall

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Answer is what a caller gets instead of a reply: a status with details. Reason is
// behind it, and not for clients.
type Answer struct {
	Code    failpolicy.Code
	Message string
	Details []proto.Message
	Reason  error
}

// codeInternal is INTERNAL of gRPC and Connect, which this package does not link.
const codeInternal failpolicy.Code = 13

// Refusal is the answer to a refused caller: one ErrorInfo and, with a hint, one
// RetryInfo.
func Refusal(refused *aspect.RefusedError) *Answer {
	a := &Answer{Code: refused.Status.GRPC, Message: refused.Message, Details: info(reasonOf(refused)), Reason: refused}
	if a.Code == 0 {
		a.Code = codeInternal // a refusal never becomes a success
	}
	if refused.RetryAfter > 0 {
		a.Details = append(a.Details, &errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
	}
	return a
}

// Broken is the answer of a method whose lock cannot work.
func Broken(reason error) *Answer {
	return &Answer{
		Code: codeInternal, Message: "the lock of this method is misconfigured", Details: info(failpolicy.ReasonMisconfigured),
		Reason: &methodrules.MisconfiguredError{Reason: reason},
	}
}

func info(reason string) []proto.Message {
	return []proto.Message{&errdetails.ErrorInfo{Reason: reason, Domain: failpolicy.Domain}}
}

// reasonOf is the cause's, but blames no request for what the program is at fault for.
func reasonOf(refused *aspect.RefusedError) string {
	if refused.Misconfigured {
		return failpolicy.ReasonMisconfigured
	}
	return refused.Cause.Reason()
}
