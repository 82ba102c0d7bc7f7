package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/connect/orderspb"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

// service is an instance of the shop.
type service struct {
	locks  *core.Client
	rules  *ruleset.Live
	server *http.Server
	url    string
	served chan error // the result of Serve
}

// start starts an instance if its rules match its procedures.
func start(ctx context.Context, rdb redis.UniversalClient, s *settings) (_ *service, err error) {
	i := &service{served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(ctx))
		}
	}()
	if i.locks, err = core.New(rdb, core.WithPrefix("connect:")); err != nil {
		return nil, err
	}
	if i.rules, err = ruleset.Watch(s.rules); err != nil {
		return nil, err
	}
	handler, err := i.handler()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	i.url = "http://" + listener.Addr().String()
	i.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, Protocols: protocols()}
	go func() { i.served <- i.server.Serve(listener) }()
	return i, nil
}

// handler returns the service with its locks. The error lists every rule that matches no
// procedure and every invalid key.
func (i *service) handler() (http.Handler, error) {
	guard, err := connectlock.New(i.locks, connectlock.WithSet(i.rules), connectlock.WithStreamFallback("later", later))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(orderspb.NewOrdersHandler(shop{}, connect.WithInterceptors(guard.Interceptor())))
	return mux, guard.Check(orderspb.OrdersName)
}

// protocols returns HTTP/1 and, for gRPC, HTTP/2 without TLS.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// serveUntilDone prints commands to try and serves until ctx is done.
func (i *service) serveUntilDone(ctx context.Context, out io.Writer) error {
	fmt.Fprint(out, "try\n\n")
	fmt.Fprintf(out, "  curl -i -H 'Content-Type: application/json' -d '{\"orderId\": \"42\"}' %s%s\n", i.url, orderspb.OrdersPayProcedure)
	fmt.Fprintf(out, "  curl -i '%s%s?encoding=json&message=\\{\"orderId\":\"42\"\\}&connect=v1'\n", i.url, orderspb.OrdersShowProcedure)
	select {
	case <-ctx.Done():
		return nil
	case err := <-i.served:
		return err
	}
}

// close closes the parts of an instance in an order in which calls can finish: the server, the
// rules, the locks. Close the Redis client after it.
func (i *service) close(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if i.server != nil {
		err = i.server.Shutdown(ctx)
	}
	if i.rules != nil {
		err = errors.Join(err, i.rules.Close())
	}
	if i.locks != nil {
		err = errors.Join(err, i.locks.Close(ctx))
	}
	return err
}
