package grpclock

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// trailerPushback is the trailer that clients with a retry policy obey: the
// milliseconds to wait before the next attempt.
const trailerPushback = "grpc-retry-pushback-ms"

// statusOf is the status of an answer, which is worth more than its details.
func statusOf(a *methodcall.Answer) *status.Status {
	bare := status.New(codes.Code(a.Code), a.Message)
	details := make([]protoadapt.MessageV1, len(a.Details))
	for i, d := range a.Details {
		details[i] = protoadapt.MessageV1Of(d)
	}
	if with, err := bare.WithDetails(details...); err == nil {
		return with
	}
	return bare
}

// statusError is the error of an answer. Client and text see the status, the
// server's own interceptors reach the reason by unwrapping.
type statusError struct {
	status *status.Status
	reason error
}

func (e *statusError) Error() string              { return e.status.Err().Error() }
func (e *statusError) GRPCStatus() *status.Status { return e.status }
func (e *statusError) Unwrap() error              { return e.reason }
