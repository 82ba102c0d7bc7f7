// Package syntax has the names of Loki's parser with which the dashboard linter is compiled.
// The dashboard of Interlock asks Prometheus only, so the linter never parses a query of
// Loki's; here it would be refused. Loki's own package comes with all of Loki, etcd and gRPC, which
// takes some ten minutes to compile.
package syntax

import (
	"errors"
	"time"
)

// Expr is an expression.
type Expr any

// The expressions into which the linter looks.
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
