package main

import (
	"context"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/failpolicy"
)

// grpcAnswer is the answer of an instance to a gRPC call.
type grpcAnswer struct {
	status          *status.Status
	header, trailer metadata.MD
	reply           proto.Message
}

// invoke calls a method of the instance and returns the answer, even if its status is an error.
func (i *instance) invoke(ctx context.Context, method string, req, reply proto.Message) *grpcAnswer {
	a := &grpcAnswer{reply: reply}
	err := i.conn.Invoke(ctx, method, req, reply, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.status = status.Convert(err)
	return a
}

// code returns the name of the status code, such as "ABORTED".
func (a *grpcAnswer) code() string {
	if a.status.Code() == codes.OK {
		return "OK"
	}
	return failpolicy.Code(a.status.Code()).String()
}

// reason returns the reason in the ErrorInfo of the status, "" if there is none.
func (a *grpcAnswer) reason() string {
	for _, detail := range a.status.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// grpcurl prints the command that makes the same call.
func (d *demo) grpcurl(i *instance, method, request string) {
	d.out.commandf("grpcurl -plaintext -d '%s' %s %s", request, i.addr, strings.TrimPrefix(method, "/"))
}

// showGRPC prints the status of an answer, its details, the metadata about the lock, and the reply.
func (d *demo) showGRPC(a *grpcAnswer) {
	d.out.linef("%s %s", a.code(), a.status.Message())
	for _, detail := range a.status.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			d.out.linef("  ErrorInfo  reason: %s  domain: %s", detail.GetReason(), detail.GetDomain())
		case *errdetails.RetryInfo:
			d.out.linef("  RetryInfo  retry_delay: %s", detail.GetRetryDelay().AsDuration())
		default:
			d.out.linef("  %T", detail)
		}
	}
	for _, pushback := range a.trailer.Get("grpc-retry-pushback-ms") {
		d.out.linef("  trailer    grpc-retry-pushback-ms: %s", pushback)
	}
	for _, lock := range a.header.Get(failpolicy.StatusHeader) {
		d.out.linef("  header     %s: %s", strings.ToLower(failpolicy.StatusHeader), lock)
	}
	if a.status.Code() == codes.OK {
		d.out.linef("  reply      {%v}", a.reply)
	}
	d.out.linef("")
}
