// Package pods is a shop of several instances ("pods") in one process, which have the troubles
// that the dashboard is for: its rules stand in locks.yaml, its customers in load.go, and what
// can be done to it in trouble.go.
package pods

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// What operators look for.
const (
	Prefix   = "example-shop:" // begins the keys of the shop in Redis
	PagePath = "/debug/locks"  // of the live page of each pod
)

// rules is what each pod finds in its rule file when it starts.
//
//go:embed locks.yaml
var rules string

// Shop is the running pods.
type Shop struct {
	pods   []*pod
	admin  *redis.Client
	dir    string
	client *client
}

// Open starts n pods. newClient makes the connection to Redis of each one. The pods log to log.
func Open(n int, newClient func() *redis.Client, log *slog.Logger) (_ *Shop, err error) {
	gin.SetMode(gin.ReleaseMode)
	s := &Shop{admin: newClient(), client: newCaller()}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "interlock-shop-"); err != nil {
		return nil, err
	}
	for i := range n {
		file := filepath.Join(s.dir, fmt.Sprintf("pod-%d.yaml", i+1))
		if err := replace(file, rules); err != nil {
			return nil, err
		}
		p, err := startPod(newClient(), file, log)
		if err != nil {
			return nil, err
		}
		s.pods = append(s.pods, p)
		if err := s.client.dial(p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Addrs are the addresses of the pods, host and port: of /metrics too.
func (s *Shop) Addrs() (addrs []string) {
	for _, p := range s.pods {
		addrs = append(addrs, p.webAddr)
	}
	return addrs
}

// Close ends all pods. Load must have returned.
func (s *Shop) Close() {
	s.client.close()
	for _, p := range s.pods {
		p.close()
	}
	_ = s.admin.Close()
	_ = os.RemoveAll(s.dir)
}

// replace writes a file as a whole: nobody sees half of it.
func replace(path, text string) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// patience is how long an orderly end may take.
func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 3*time.Second)
}
