package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/examples/declared/orders"
	"github.com/interlock-go/interlock/examples/declared/orderspb"
	"github.com/interlock-go/interlock/failpolicy"
)

// client calls the service.
type client struct {
	web, rpc string
	http     *http.Client
	conn     *grpc.ClientConn
	orders   orderspb.OrdersClient
	service  *orders.Service
}

func newClient(web, rpc string, service *orders.Service) (*client, error) {
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &client{
		web: web, rpc: rpc, http: &http.Client{Transport: &http.Transport{}},
		conn: conn, orders: orderspb.NewOrdersClient(conn), service: service,
	}, nil
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	_ = c.conn.Close()
}

// call calls an endpoint about a subject. The answer is its status and, if it has one,
// the status of the lock: "409", "204 skipped", "ABORTED", "OK". A failure of
// the service is an error.
type call func(ctx context.Context, c *client, subject string) (answer string, err error)

// post posts to a path, in which %s is the subject.
func post(path string) call {
	return func(ctx context.Context, c *client, subject string) (string, error) {
		url := "http://" + c.web + strings.ReplaceAll(path, "%s", subject)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
		if err != nil {
			return "", err
		}
		res, err := c.http.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if res.StatusCode >= http.StatusInternalServerError {
			return "", fmt.Errorf("POST %s: %s: %s", url, res.Status, body)
		}
		return words(fmt.Sprint(res.StatusCode), res.Header.Get(failpolicy.StatusHeader)), err
	}
}

func payRPC(ctx context.Context, c *client, subject string) (string, error) {
	var header metadata.MD
	_, err := c.orders.Pay(ctx, &orderspb.PayRequest{OrderId: subject}, grpc.Header(&header))
	return rpcAnswer(header, err)
}

func shipRPC(ctx context.Context, c *client, subject string) (string, error) {
	var header metadata.MD
	req := &orderspb.ShipRequest{OrderId: subject, Address: &orderspb.Address{Country: "NO"}}
	_, err := c.orders.Ship(ctx, req, grpc.Header(&header))
	return rpcAnswer(header, err)
}

// followRPC reads the stream to its end.
func followRPC(ctx context.Context, c *client, subject string) (string, error) {
	stream, err := c.orders.Follow(ctx, &orderspb.FollowRequest{OrderId: subject})
	for err == nil {
		_, err = stream.Recv()
	}
	if err == io.EOF { //nolint:errorlint // the end of a stream is never wrapped
		err = nil
	}
	return rpcAnswer(nil, err)
}

// closeDay calls the function, which has no route or method.
func closeDay(ctx context.Context, c *client, subject string) (string, error) {
	report, err := c.service.CloseDay(ctx, orders.Day{Shop: subject})
	if err == nil && report == (orders.Report{}) {
		return "no report", nil
	}
	return report.Text, err
}

// rpcAnswer returns the answer of a method: OK, or ABORTED if a lock was taken. Any
// other status is an error.
func rpcAnswer(header metadata.MD, err error) (string, error) {
	switch status.Code(err) {
	case codes.OK:
		return words("OK", header.Get(failpolicy.StatusHeader)...), nil
	case codes.Aborted:
		return failpolicy.Busy.Status().GRPC.String(), nil
	default:
		return "", err
	}
}

func words(first string, more ...string) string {
	return strings.TrimSpace(first + " " + strings.Join(more, " "))
}
