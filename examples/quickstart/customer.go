package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"path"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
)

// outcome is what became of a purchase.
type outcome string

const (
	sold    outcome = "sold"
	soldOut outcome = "sold out"
)

// buy buys one piece, over whatever the instance speaks. An outcome that is neither
// sold nor sold out is an error.
func (i *instance) buy(ctx context.Context, item string) (outcome, error) {
	if i.conn == nil {
		return i.buyHTTP(ctx, item)
	}
	_, err := shoppb.NewShopClient(i.conn).Buy(ctx, &shoppb.BuyRequest{Item: item})
	switch status.Code(err) {
	case codes.OK:
		return sold, nil
	case codes.FailedPrecondition:
		return soldOut, nil
	default:
		return "", err
	}
}

func (i *instance) buyHTTP(ctx context.Context, item string) (outcome, error) {
	answer, err := i.post(ctx, "/items/"+item+"/buy", nil)
	if err != nil {
		return "", err
	}
	switch answer.code {
	case http.StatusOK:
		return sold, nil
	case http.StatusGone:
		return soldOut, nil
	default:
		return "", fmt.Errorf("HTTP %d: %s", answer.code, answer.body)
	}
}

// httpAnswer is what a Gin instance answered.
type httpAnswer struct {
	code   int
	header http.Header
	body   []byte
	dump   string // as curl -i shows it
}

func (i *instance) post(ctx context.Context, path string, header http.Header) (*httpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+i.addr+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	res, err := i.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	dump, err := httputil.DumpResponse(res, true)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	return &httpAnswer{code: res.StatusCode, header: res.Header, body: bytes.TrimSpace(body), dump: string(dump)}, err
}

// problemType is the type of a problem document, empty for another body.
func (a *httpAnswer) problemType() string {
	var problem struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(a.body, &problem)
	return problem.Type
}

func (d *demo) curl(i *instance, path string) {
	d.out.command("curl -i -X POST 'http://%s%s'", i.addr, path)
}

// grpcAnswer is what a gRPC instance answered.
type grpcAnswer struct {
	status          *status.Status
	header, trailer metadata.MD
	reply           proto.Message
}

// invoke calls a method of the shop. An error status is an answer.
func (i *instance) invoke(ctx context.Context, method string, req, reply proto.Message) *grpcAnswer {
	a := &grpcAnswer{reply: reply}
	err := i.conn.Invoke(ctx, method, req, reply, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.status = status.Convert(err)
	return a
}

// code is the code as the wire names it, such as ABORTED.
func (a *grpcAnswer) code() string {
	if a.status.Code() == codes.OK {
		return "OK"
	}
	return failpolicy.Code(a.status.Code()).String()
}

// reason is the reason in the ErrorInfo, empty if there is none.
func (a *grpcAnswer) reason() string {
	for _, detail := range a.status.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func (d *demo) grpcurl(i *instance, method, request string) {
	d.out.command("grpcurl -plaintext -d '%s' %s %s", request, i.addr, path.Clean(method)[1:])
}

// show prints an answer with everything that the client's code can see.
func (d *demo) show(a *grpcAnswer) {
	d.out.line("%s %s", a.code(), a.status.Message())
	for _, detail := range a.status.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			d.out.line("  ErrorInfo  reason: %s  domain: %s", detail.GetReason(), detail.GetDomain())
		case *errdetails.RetryInfo:
			d.out.line("  RetryInfo  retry_delay: %s", detail.GetRetryDelay().AsDuration())
		default:
			d.out.line("  %T", detail)
		}
	}
	for key, values := range a.trailer {
		d.out.line("  trailer    %s: %s", key, values[0])
	}
	if lock := a.header.Get("x-lock-status"); len(lock) > 0 {
		d.out.line("  header     x-lock-status: %s", lock[0])
	}
	if a.status.Code() == codes.OK {
		d.out.line("  reply      {%v}", a.reply)
	}
}
