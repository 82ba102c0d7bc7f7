// Package prometheus runs a Prometheus server that scrapes the shop and sends queries to it.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/interlock-go/interlock/examples/dashboards/internal/child"
)

// Interval is the time between two scrapes, and between two evaluations of the rules.
const Interval = time.Second

// Window is the time range of queries in the rules that Quick returns.
const Window = 15 * time.Second

// Config configures the server.
type Config struct {
	Path    string   // path of the program; empty: prometheus on PATH
	Targets []string // host:port of each pod
	Rules   string   // text of a rule file
	Job     string   // name of the service
}

// Server is a running Prometheus.
type Server struct {
	URL string
	API v1.API

	dir string
	cmd *exec.Cmd
}

// ErrMissing is returned by Start if Prometheus is not installed.
var ErrMissing = errors.New("prometheus is not installed: apt install prometheus, or name the program with -prometheus PATH")

// Start starts the program and returns when it is ready. Its data is in a temporary directory, which Close removes. The server
// listens on the loopback interface only.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	path := cfg.Path
	if path == "" {
		path = "prometheus"
	}
	if path, err = exec.LookPath(path); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	s := &Server{}
	if s.dir, err = os.MkdirTemp("", "interlock-prometheus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.run(path, &cfg); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Quick shortens the ranges and waiting times of rules, so that alerts fire within a demonstration. It does not change their
// conditions.
func Quick(rules string) string {
	rules = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(rules, "["+Window.String()+"]")
	return regexp.MustCompile(`for: \d+m`).ReplaceAllString(rules, "for: 1s")
}

func (s *Server) run(path string, cfg *Config) error {
	config := fmt.Sprintf(`global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: %[2]s
    static_configs: [{targets: ["%[3]s"]}]
`, Interval, cfg.Job, strings.Join(cfg.Targets, `", "`))
	for name, text := range map[string]string{"prometheus.yml": config, "rules.yml": cfg.Rules} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	s.URL = "http://" + addr
	client, err := api.NewClient(api.Config{Address: s.URL})
	if err != nil {
		return err
	}
	s.API = v1.NewAPI(client)
	log, err := os.Create(s.logFile())
	if err != nil {
		return err
	}
	defer log.Close() // the program has its own copy
	s.cmd = child.Command(path,
		"--config.file="+filepath.Join(s.dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(s.dir, "data"),
		"--web.listen-address="+addr,
		"--enable-feature=exemplar-storage")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	return s.cmd.Start()
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context) error {
	for {
		_, err := s.API.Buildinfo(ctx)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			said, _ := os.ReadFile(s.logFile()) //nolint:errcheck // the log is only an addition to the error
			return fmt.Errorf("prometheus does not answer: %w; its log:\n%s", err, said)
		}
	}
}

// Close stops the server and removes its data.
func (s *Server) Close() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // the error only reports the kill
	}
	_ = os.RemoveAll(s.dir)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
