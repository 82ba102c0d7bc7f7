package grpclock

import (
	"context"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
)

// The header that tells an answer without the lock from a real one, and its values.
const (
	HeaderLockStatus = "x-lock-status"
	LockSkipped      = "skipped"
	LockNull         = "null"
	LockUnlocked     = "unlocked"
)

// HeaderLockToken is the header that has the fencing token of the lock, as a decimal
// number: see [WithTokenHeader].
const HeaderLockToken = "x-lock-token"

// TrailerPushback is the trailer that clients with a retry policy obey: the
// milliseconds to wait before the next attempt.
const TrailerPushback = "grpc-retry-pushback-ms"

// ReasonMisconfigured is the reason in the ErrorInfo of a method whose rule is
// broken (see [Guard.Check]), and of a call that the program itself has spoilt: see
// [failpolicy.FaultServer].
const ReasonMisconfigured = "LOCK_MISCONFIGURED"

// Status is the answer to a refused caller: the code and the message, one ErrorInfo
// and, with a hint, one RetryInfo.
func Status(refused *aspect.RefusedError) *status.Status {
	code := codes.Code(refused.Status.GRPC)
	if code == codes.OK {
		code = codes.Internal // a refusal never becomes a success
	}
	details := []protoadapt.MessageV1{errorInfo(reasonOf(refused))}
	if refused.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
	}
	return detailed(status.New(code, refused.Message), details...)
}

// reasonOf is the cause's, but blames no request for what the program is at fault for.
func reasonOf(refused *aspect.RefusedError) string {
	if refused.Fault == failpolicy.FaultServer {
		return ReasonMisconfigured
	}
	return refused.Cause.Reason()
}

func errorInfo(reason string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: reason, Domain: failpolicy.Domain}
}

// detailed adds details; the status itself is worth more than they are.
func detailed(st *status.Status, details ...protoadapt.MessageV1) *status.Status {
	with, err := st.WithDetails(details...)
	if err != nil {
		return st
	}
	return with
}

// statusError is the error of a refusal. Client and text see the status, the
// server's own interceptors reach the reason by unwrapping.
type statusError struct {
	status *status.Status
	reason error
	spoilt bool // the method is misconfigured
}

// Error is the text of the status.
func (e *statusError) Error() string { return e.status.Err().Error() }

// GRPCStatus is what grpc sends.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// Unwrap is the reason, which is not for clients.
func (e *statusError) Unwrap() error { return e.reason }

// misconfigured is the answer of a method whose lock cannot work.
func misconfigured(reason error) error {
	st := status.New(codes.Internal, "the lock of this method is misconfigured")
	return &statusError{status: detailed(st, errorInfo(ReasonMisconfigured)), reason: reason, spoilt: true}
}

// refuse is the error for a refused caller.
func (g *Guard) refuse(ctx context.Context, refused *aspect.RefusedError) error {
	if g.config.mapper != nil {
		if err := g.config.mapper(ctx, refused); err != nil {
			return err
		}
	}
	return &statusError{status: Status(refused), reason: refused}
}

// pushback is the trailer for a hint, nil without one.
func pushback(refused *aspect.RefusedError) metadata.MD {
	if refused.RetryAfter <= 0 {
		return nil
	}
	return metadata.Pairs(TrailerPushback, strconv.FormatInt(refused.RetryAfter.Milliseconds(), 10))
}

// lockStatus is the header for an answer without the lock.
func lockStatus(value string) metadata.MD { return metadata.Pairs(HeaderLockStatus, value) }

// showToken is the header for the token of a grant: nil where none is to be shown, or a
// guard outside has shown it.
func (g *Guard) showToken(p *passage, grant aspect.Grant) metadata.MD {
	if grant.Token == 0 || !g.config.showToken || p.shows(grant.Token) {
		return nil
	}
	p.token = grant.Token
	return metadata.Pairs(HeaderLockToken, strconv.FormatInt(grant.Token, 10))
}

// canceled reports whether a handler's error is a cancellation in gRPC's words.
func canceled(err error) bool {
	code := status.Code(err)
	return code == codes.Canceled || code == codes.DeadlineExceeded
}
