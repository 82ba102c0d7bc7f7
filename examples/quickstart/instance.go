package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/examples/quickstart/shop"
)

// instance is a running instance of the shop and a customer's client for it.
type instance struct {
	kind   string // gin or grpc
	addr   string
	locks  *core.Client
	aspect *aspect.Aspect // for the kill switch
	http   *http.Client   // the client of a Gin instance
	conn   *grpc.ClientConn
	close  func()
}

func serveGin(s *shop.Shop) (*instance, error) {
	engine, guard, err := s.HTTP()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("HTTP server", "error", err)
		}
	})
	transport := &http.Transport{MaxIdleConnsPerHost: 1_000}
	return &instance{
		addr:   listener.Addr().String(),
		aspect: guard.Aspect(),
		http:   &http.Client{Transport: transport},
		close: func() {
			transport.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
				_ = server.Close()
			}
			running.Wait()
		},
	}, nil
}

func serveGRPC(s *shop.Shop) (*instance, error) {
	server, guard, err := s.GRPC()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(listener); err != nil {
			s.Log.Error("gRPC server", "error", err)
		}
	})
	return &instance{
		addr:   addr,
		aspect: guard.Aspect(),
		conn:   conn,
		close: func() {
			_ = conn.Close()
			server.GracefulStop()
			running.Wait()
		},
	}, nil
}
