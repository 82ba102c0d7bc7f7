package orders

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// patience is the time for which a server waits for its last calls.
const patience = 5 * time.Second

// serving holds the running servers.
type serving struct {
	http    *http.Server
	running sync.WaitGroup
}

// Start starts both servers on free ports and returns their addresses.
func (s *Service) Start() (httpAddr, grpcAddr string, err error) {
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	rpc, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = web.Close()
		return "", "", err
	}
	s.serving.http = &http.Server{Handler: s.engine, ReadHeaderTimeout: patience}
	s.serving.running.Go(func() { _ = s.serving.http.Serve(web) }) //nolint:errcheck // ends with Close
	s.serving.running.Go(func() { _ = s.server.Serve(rpc) })       //nolint:errcheck // ends with Close
	return web.Addr().String(), rpc.Addr().String(), nil
}

func (s *Service) stop() {
	s.server.GracefulStop()
	if s.serving.http == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.serving.http.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		_ = s.serving.http.Close()
	}
	s.serving.running.Wait()
}
