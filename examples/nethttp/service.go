package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

//go:embed locks.yaml
var locksYAML []byte

// service is an instance of the shop.
type service struct {
	locks  *core.Client
	rules  *ruleset.Live
	file   string
	server *http.Server
	url    string
	served chan error // the result of Serve
	folder string     // folder of the copy of the rule file; "": no copy
}

// start starts an instance if its rules match its routes.
func start(ctx context.Context, rdb redis.UniversalClient, s *settings) (_ *service, err error) {
	i := &service{file: s.rules, served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(ctx))
		}
	}()
	if err := i.copyRules(s.router); err != nil {
		return nil, err
	}
	if i.locks, err = core.New(rdb, core.WithPrefix("nethttp:")); err != nil {
		return nil, err
	}
	if i.rules, err = ruleset.Watch(i.file); err != nil {
		return nil, err
	}
	guard, err := httplock.New(i.locks, httplock.WithSet(i.rules), httplock.WithFallback("later", http.HandlerFunc(later)))
	if err != nil {
		return nil, err
	}
	handler, err := routes(s.router, guard)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	i.url = "http://" + listener.Addr().String()
	i.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	go func() { i.served <- i.server.Serve(listener) }()
	return i, nil
}

// copyRules copies the rule file of the program to a file that may be changed.
func (i *service) copyRules(router string) (err error) {
	if i.file != "" {
		return nil
	}
	if i.folder, err = os.MkdirTemp("", "nethttp-"); err != nil {
		return err
	}
	i.file = filepath.Join(i.folder, "locks.yaml")
	text := locksYAML
	if router == "echo" { // a rule spells a route as its router does
		text = bytes.ReplaceAll(text, []byte("{id}"), []byte(":id"))
	}
	return os.WriteFile(i.file, text, 0o600)
}

// serveUntilDone prints commands to try and serves until ctx is done.
func (i *service) serveUntilDone(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "the rules are in %s; try\n\n", i.file)
	fmt.Fprintf(out, "  curl -i -X POST %s/orders/42/pay & curl -i -X POST %[1]s/orders/42/pay\n", i.url)
	fmt.Fprintf(out, "  curl -i -X DELETE %s/carts/7\n", i.url)
	select {
	case <-ctx.Done():
		return nil
	case err := <-i.served:
		return err
	}
}

// close closes the parts of an instance in an order in which requests can finish: the server, the
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
	if i.folder != "" {
		err = errors.Join(err, os.RemoveAll(i.folder))
	}
	return err
}
