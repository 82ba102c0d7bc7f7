// Package pods runs a shop with several instances ("pods") in one process, and causes the problems that the
// dashboard shows. locks.yaml contains the rules, load.go the customers and problem.go the problems.
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

// Names that operators search for.
const (
	Prefix   = "example-shop:" // prefix of the keys of the shop in Redis
	PagePath = "/debug/locks"  // path of the live page of each pod
)

// rules is the content of the rule file of each pod at its start.
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

// Open starts n pods. newClient creates the Redis client of each pod. The pods log to log.
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

// Addrs returns the addresses of the pods, host and port, which also serve /metrics.
func (s *Shop) Addrs() (addrs []string) {
	for _, p := range s.pods {
		addrs = append(addrs, p.webAddr)
	}
	return addrs
}

// Close stops all pods. Call it after Load returns.
func (s *Shop) Close() {
	s.client.close()
	for _, p := range s.pods {
		p.close()
	}
	_ = s.admin.Close()
	_ = os.RemoveAll(s.dir)
}

// replace replaces a file atomically.
func replace(path, text string) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// patience returns a context that limits the time of an orderly shutdown.
func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 3*time.Second)
}
