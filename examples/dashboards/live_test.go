package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/examples/dashboards/board"
	"github.com/interlock-go/interlock/examples/dashboards/internal/backend"
	"github.com/interlock-go/interlock/examples/dashboards/internal/pods"
	"github.com/interlock-go/interlock/examples/dashboards/internal/prometheus"
	"github.com/interlock-go/interlock/telemetry"
)

// requirePrograms skips the test if a program is missing. With INTERLOCK_REQUIRE_PROMETHEUS=1, which the check of the project
// sets, the test fails instead.
func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("INTERLOCK_REQUIRE_PROMETHEUS") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// scene is the shop with its Redis and its customers, and a Prometheus that scrapes it.
type scene struct {
	redis *backend.Redis
	shop  *pods.Shop
	prom  *prometheus.Server
	began time.Time
}

func newScene(t *testing.T) *scene {
	t.Helper()
	redis.SetLogger(silent{})
	ctx := t.Context()
	s := &scene{began: time.Now()}
	var err error
	if s.redis, err = backend.Open(ctx, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.redis.Close)
	if s.shop, err = pods.Open(3, s.redis.Client, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.shop.Close)
	rules, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	s.prom, err = prometheus.Start(ctx, prometheus.Config{Targets: s.shop.Addrs(), Rules: prometheus.Quick(string(rules)), Job: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.prom.Close)
	customers, leave := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.shop.Load(customers)
	}()
	t.Cleanup(func() {
		leave()
		<-gone
	})
	// Prometheus sees an increase only after it has scraped the value before.
	if err := s.prom.Await(ctx, "count(max_over_time(distributed_lock_client_info[1m] offset 2s)) == 3"); err != nil {
		t.Fatal(err)
	}
	return s
}

// question is a query and its purpose.
type question struct {
	about, expr string
}

func (s *scene) questions(t *testing.T) (all []question) {
	t.Helper()
	for _, row := range board.Rows() {
		for i := range row.Panels {
			for _, expr := range row.Panels[i].Exprs() {
				all = append(all, question{"panel " + row.Panels[i].Title, expr})
			}
		}
	}
	for _, a := range board.Annotations() {
		all = append(all, question{"annotation " + a.Name, a.Expr})
	}
	recording, alerts, err := s.prom.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recording {
		all = append(all, question{"recording rule " + r.Name, r.Query}, question{"record " + r.Name, r.Name})
	}
	for _, a := range alerts {
		all = append(all,
			question{"condition of alert " + a.Name, a.Query},
			question{"firing alert " + a.Name, `ALERTS{alertstate="firing", alertname="` + a.Name + `"}`})
	}
	if len(recording) == 0 || len(alerts) == 0 {
		t.Fatal("Prometheus loaded no rules")
	}
	return all
}

// unanswered returns the questions that have not had a result above zero so far.
func (s *scene) unanswered(t *testing.T, questions []question) (rest []question) {
	t.Helper()
	for _, q := range questions {
		series, err := s.prom.Range(t.Context(), q.expr, s.began)
		if err != nil {
			t.Fatal(err)
		}
		if !above(series) {
			rest = append(rest, q)
		}
	}
	return rest
}

func above(series model.Matrix) bool {
	for _, s := range series {
		for _, v := range s.Values {
			if f := float64(v.Value); f > 0 && !math.IsInf(f, 0) {
				return true
			}
		}
	}
	return false
}

// A real Prometheus scrapes the shop during each of its problems. Every query of the panels, annotations, recording rules and
// alerts has a result above zero at some time, and every alert fires. The wait and hold times have exemplars that name a trace.
// The scraped metrics match the table of metrics.
func TestLive_QueriesAndAlerts(t *testing.T) {
	requirePrograms(t, "prometheus", "redis-server")
	s := newScene(t)
	questions := s.questions(t)
	// On a busy machine Prometheus may miss a problem between two scrapes. So the test repeats the problems until
	// Prometheus has seen each.
	for limit := lastMoment(t); len(questions) > 0; questions = s.unanswered(t, questions) {
		if time.Now().After(limit) {
			for _, q := range questions {
				t.Errorf("no result above zero: %s: %s", q.about, q.expr)
			}
			break
		}
		s.causeProblems(t)
	}
	s.wantExemplars(t)
	s.wantMetrics(t)
	s.wantRunbooks(t)
}

// asked matches the queries for values and exemplars in the runbooks.
var asked = regexp.MustCompile(`api/v1/(query\w*)" --data-urlencode 'query=(.+)'`)

// clientID matches the client id in the examples of the runbooks.
var clientID = regexp.MustCompile(`="[0-9a-f-]{36}"`)

// wantRunbooks runs every query of the runbooks, for all clients instead of the client in the example. Each
// query must have a result, and each query for exemplars must find an exemplar with a trace.
func (s *scene) wantRunbooks(t *testing.T) {
	t.Helper()
	questions := asked.FindAllStringSubmatch(read(t, "RUNBOOKS.md"), -1)
	if len(questions) == 0 {
		t.Error("the runbooks have no queries for Prometheus")
	}
	for _, q := range questions {
		expr := clientID.ReplaceAllString(q[2], `=~".+"`)
		if q[1] == "query_exemplars" {
			s.wantTraces(t, expr)
		} else if rest := s.unanswered(t, []question{{"runbook", expr}}); len(rest) > 0 {
			t.Errorf("no result above zero for a query of the runbooks: %s", expr)
		}
	}
}

// wantMetrics compares the scraped metrics with the table of metrics.
func (s *scene) wantMetrics(t *testing.T) {
	t.Helper()
	found, _, err := s.prom.API.LabelValues(t.Context(), "__name__", []string{`{__name__=~"distributed_lock_.+"}`}, s.began, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, v := range found {
		got = append(got, string(v))
	}
	for _, m := range telemetry.Metrics() {
		want = append(want, series(m)...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("scraped:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// causeProblems causes each problem once.
func (s *scene) causeProblems(t *testing.T) {
	t.Helper()
	for _, problem := range []struct {
		name string
		make func() error
	}{
		{"a lock lost", func() error { return s.shop.LoseLock(t.Context()) }},
		{"a hold over its limit", func() error { return s.shop.HoldTooLong(t.Context()) }},
		{"a leak", func() error { return s.shop.Leak(t.Context()) }},
		{"a holder hangs", func() error {
			defer time.Sleep(prometheus.Window) // the time in which no caller gets the lock
			return s.shop.Hang(t.Context(), 2*prometheus.Window)
		}},
		{"a deadlock", func() error { s.shop.Deadlock(t.Context()); return nil }},
		{"a bad reload", s.shop.RollOut},
		{"Redis stopped", s.redis.Stop},
		{"Redis started", func() error { return s.redis.Start(t.Context()) }},
		{"the reload undone", s.shop.RollBack},
	} {
		if err := problem.make(); err != nil {
			t.Fatalf("%s: %v", problem.name, err)
		}
		time.Sleep(4 * time.Second) // the time in which the problem can be seen: several scrapes
	}
}

// lastMoment returns the time at which the test must stop to report its failures.
func lastMoment(t *testing.T) time.Time {
	t.Helper()
	if deadline, ok := t.Deadline(); ok {
		return deadline.Add(-time.Minute)
	}
	return time.Now().Add(10 * time.Minute)
}

func (s *scene) wantExemplars(t *testing.T) {
	t.Helper()
	for _, metric := range []string{"distributed_lock_wait_duration_seconds_bucket", "distributed_lock_hold_duration_seconds_bucket"} {
		s.wantTraces(t, metric)
	}
}

// wantTraces fails unless an exemplar names a trace.
func (s *scene) wantTraces(t *testing.T, expr string) {
	t.Helper()
	found, err := s.prom.API.QueryExemplars(t.Context(), expr, s.began, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range found {
		for _, e := range series.Exemplars {
			if e.Labels["trace_id"] != "" {
				return
			}
		}
	}
	t.Errorf("no exemplar of %s names a trace", expr)
}
