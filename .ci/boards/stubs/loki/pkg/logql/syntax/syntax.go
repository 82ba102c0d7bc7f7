// Package syntax has the names of Loki's parser that the dashboard linter needs to compile. The
// dashboard of Interlock has only queries for Prometheus, so the linter never parses a query for Loki;
// this package would refuse it. The real package depends on all of Loki, etcd and gRPC, which take about
// ten minutes to compile.
package syntax

import (
	"errors"
	"time"
)

// Expr is an expression.
type Expr any

// The expressions that the linter inspects.
type (
	BinOpExpr struct {
		SampleExpr Expr
		RHS        Expr
	}
	RangeAggregationExpr  struct{ Left Expr }
	VectorAggregationExpr struct{ Left Expr }
	LabelReplaceExpr      struct{ Left Expr }
	LogRangeExpr          struct {
		Left     Expr
		Interval time.Duration
	}
	PipelineExpr struct {
		Left        Expr
		MultiStages []Expr
	}
)

// ParseExpr refuses every query.
func ParseExpr(string) (Expr, error) {
	return nil, errors.New("queries for Loki are not linted here")
}
