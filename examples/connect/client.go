package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/connect/orderspb"
	"github.com/interlock-go/interlock/failpolicy"
)

// try calls the service in each protocol. Another program holds the locks of order 42 and of
// a tenant for some time.
func (i *service) try(ctx context.Context, out io.Writer) error {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	var errs []error
	for _, protocol := range []struct {
		name   string
		option connect.ClientOption
	}{{"Connect", connect.WithHTTPGet()}, {"gRPC", connect.WithGRPC()}, {"gRPC-Web", connect.WithGRPCWeb()}} {
		c := &client{ctx: ctx, out: out, orders: orderspb.NewOrdersClient(&http.Client{Transport: transport}, i.url, protocol.option)}
		fmt.Fprintln(out, protocol.name)
		c.want("Pay", c.pay, "paid 42")
		errs = append(errs, i.locks.MultiLock("order:42", "import:acme", "screen:42").Do(ctx, func(context.Context) error {
			fmt.Fprintln(out, "  while another program holds the locks")
			c.want("Pay", c.pay, "aborted: this order is already being paid", "LOCK_BUSY", "again in")
			c.want("Import", c.importAll, "later")
			c.want("Follow", c.follow, "lock status skipped")
			c.want("Show", c.show, "order 42")
			return nil
		}, core.WaitTime(0)))
		fmt.Fprintln(out, "  and then")
		c.want("Import", c.importAll, "paid 42 43")
		c.want("Follow", c.follow, "packed 42, sent 42")
		errs = append(errs, c.wrong...)
	}
	return errors.Join(errs...)
}

type client struct {
	ctx    context.Context //nolint:containedctx // the lifetime of the client
	out    io.Writer
	orders orderspb.OrdersClient
	wrong  []error
}

// want makes a call, prints the answer and records each expected text that is missing.
func (c *client) want(what string, call func() (string, error), parts ...string) {
	answer, err := call()
	if err != nil {
		answer = describe(err)
	}
	fmt.Fprintf(c.out, "    %s: %s\n", what, answer)
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			c.wrong = append(c.wrong, fmt.Errorf("%s: no %q in %s", what, part, answer))
		}
	}
}

// describe returns an error with its details.
func describe(err error) string {
	parts := []string{err.Error()}
	if e, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range e.Details() {
			value, _ := detail.Value() //nolint:errcheck // details of other types are not printed
			switch d := value.(type) {
			case *errdetails.ErrorInfo:
				parts = append(parts, d.GetReason())
			case *errdetails.RetryInfo:
				parts = append(parts, fmt.Sprint("again in ", d.GetRetryDelay().AsDuration()))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func (c *client) pay() (string, error) {
	reply, err := c.orders.Pay(c.ctx, &orderspb.PayRequest{OrderId: "42"})
	return reply.GetReceipt(), err
}

func (c *client) show() (string, error) {
	reply, err := c.orders.Show(c.ctx, &orderspb.FollowRequest{OrderId: "42"})
	return reply.GetText(), err
}

func (c *client) importAll() (string, error) {
	ctx, info := connect.NewClientContext(c.ctx)
	info.RequestHeader().Set("X-Tenant", "acme")
	stream, err := c.orders.Import(ctx)
	if err != nil {
		return "", err
	}
	for _, id := range []string{"42", "43"} {
		if err := stream.Send(&orderspb.PayRequest{OrderId: id}); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	reply, err := stream.CloseAndReceive()
	return reply.GetReceipt(), err
}

func (c *client) follow() (string, error) {
	stream, err := c.orders.Follow(c.ctx, &orderspb.FollowRequest{OrderId: "42"})
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	var events []string
	for stream.Receive() {
		events = append(events, stream.Msg().GetText())
	}
	if status := stream.ResponseHeader().Get(failpolicy.StatusHeader); status != "" {
		events = append(events, "lock status "+status)
	}
	return strings.Join(events, ", "), stream.Err()
}
