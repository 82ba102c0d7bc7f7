package prometheus

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Fill replaces the variables of Grafana in a query: it selects all services, pods and rules.
func Fill(expr string) string {
	return strings.NewReplacer(
		"$__rate_interval", Window.String(), "$job", ".+", "$instance", ".+", "$rule", ".+",
	).Replace(expr)
}

// points is the largest number of evaluations of a query in a range, as in a Grafana panel.
const points = 150

// Range evaluates a query from start to now: at every interval, or at points times if the range is long.
func (s *Server) Range(ctx context.Context, expr string, start time.Time) (model.Matrix, error) {
	step := max(Interval, time.Since(start)/points)
	value, _, err := s.API.QueryRange(ctx, Fill(expr), v1.Range{Start: start, End: time.Now(), Step: step})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	series, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is a %s", expr, value.Type())
	}
	return series, nil
}

// Await waits until a query has a result. If ctx is done before that, it returns an error.
func (s *Server) Await(ctx context.Context, expr string) error {
	for {
		value, _, err := s.API.Query(ctx, Fill(expr), time.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", expr, err)
		}
		if found, ok := value.(model.Vector); ok && len(found) > 0 {
			return nil
		}
		timer := time.NewTimer(Interval / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: no answer: %w", expr, ctx.Err())
		}
	}
}

// Rules returns the recording rules and alerts that the server has loaded.
func (s *Server) Rules(ctx context.Context) (recording []v1.RecordingRule, alerts []v1.AlertingRule, err error) {
	found, err := s.API.Rules(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			switch rule := rule.(type) {
			case v1.RecordingRule:
				recording = append(recording, rule)
			case v1.AlertingRule:
				alerts = append(alerts, rule)
			}
		}
	}
	return recording, alerts, nil
}
