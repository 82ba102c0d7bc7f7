package keyexpr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// The parser uses b of a < b < c twice, so that chains inside of chains double with each
// level. A template of 500 bytes would take for ever.
func TestCompile_ChainsOfComparisonsInsideOfEachOther(t *testing.T) {
	t.Parallel()
	chains := func(depth int) string {
		expression := `len(path.orderId)`
		for range depth {
			expression = `len(string(1 < ` + expression + ` < 9))`
		}
		return expression
	}
	if _, err := keyexpr.Compile(`#{`+chains(3)+`}`, requestSchema(t)); err != nil {
		t.Errorf("three levels: %v", err)
	}
	for _, depth := range []int{6, 24} {
		_, err := keyexpr.Compile(`order:#{`+chains(depth)+`}`, requestSchema(t))
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Line != 1 || problem.Column != 9 || !strings.Contains(err.Error(), "has more than 200 nodes") || !strings.Contains(err.Error(), "\n  |         ^") {
			t.Errorf("%d levels: got %v", depth, err)
		}
		if _, err := keyexpr.CompileCondition(chains(depth)+` == 4`, requestSchema(t)); !errors.As(err, &problem) {
			t.Errorf("%d levels in a condition: got %v", depth, err)
		}
	}
}
