package connectlock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/grpclock/connectlock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// callCounter is an interceptor that counts unary calls.
type callCounter struct {
	passThrough
	calls atomic.Int32
}

func (c *callCounter) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		c.calls.Add(1)
		return next(ctx, req)
	}
}

// A client of grpc-go gets the status and its details. It does not retry, because it received headers before
// the status.
func TestGRPCGo_StatusWithoutRetry(t *testing.T) {
	t.Parallel()
	attempts := &callCounter{}
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	b.serve(attempts, b.guard.Interceptor())
	roots := x509.NewCertPool()
	roots.AddCert(b.server.Certificate())
	conn, err := grpc.NewClient(b.server.Listener.Addr().String(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})),
		grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := shoppb.NewOrdersClient(conn)
	if got, err := client.Pay(t.Context(), order("1")); err != nil || got.GetReceipt() != "paid 1" {
		t.Errorf("got %v, %v; want paid 1", got, err)
	}
	b.redis.Take("order:1", time.Hour)
	attempts.calls.Store(0)
	_, err = client.Pay(t.Context(), order("1"))
	var info *errdetails.ErrorInfo
	for _, d := range status.Convert(err).Details() {
		if m, ok := d.(*errdetails.ErrorInfo); ok {
			info = m
		}
	}
	if status.Code(err) != codes.Aborted || info.GetReason() != "LOCK_BUSY" || attempts.calls.Load() != 1 {
		t.Errorf("got %v with %v after %d attempts; want ABORTED, LOCK_BUSY, one", err, info, attempts.calls.Load())
	}
}
