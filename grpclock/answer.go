package grpclock

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// trailerPushback is a trailer with the milliseconds to wait before the next attempt. Clients with a
// retry policy obey it.
const trailerPushback = "grpc-retry-pushback-ms"

// statusOf returns the status of an answer. If the details cannot be added, it returns the status without
// them.
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

// statusError is the error of an answer. Its text and the client's status do not contain the reason. The
// interceptors of the server unwrap it to the reason.
type statusError struct {
	status *status.Status
	reason error
}

func (e *statusError) Error() string              { return e.status.Err().Error() }
func (e *statusError) GRPCStatus() *status.Status { return e.status }
func (e *statusError) Unwrap() error              { return e.reason }
