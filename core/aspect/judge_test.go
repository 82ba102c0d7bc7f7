package aspect_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestJudge_Missing(t *testing.T) {
	t.Parallel()
	routes := []ruleset.Endpoint{ruleset.HTTP("POST /orders/:id/pay"), ruleset.HTTP("GET /orders")}
	methods := []ruleset.Endpoint{ruleset.GRPC("/shop.v1.Orders/Pay"), ruleset.GRPC("/shop.v1.Orders/Ship"), ruleset.GRPC("/admin.Till/Close")}
	functions := []ruleset.Endpoint{ruleset.Func("close-day")}
	manyRoutes := slices.Repeat(routes, 6)
	for _, tt := range []struct {
		endpoint ruleset.Endpoint
		there    []ruleset.Endpoint
		want     string
	}{
		{ruleset.HTTP("POST /orders/:id/pya"), routes, `matches no route: did you mean "POST /orders/:id/pay"?`},
		{ruleset.HTTP("POST /somewhere/else/entirely"), routes, `matches no route: write the method and the path as registered, including the base path of the group, such as "POST /orders/:id/pay", or delete the rule`},
		{ruleset.HTTP("POST /somewhere/else/entirely"), manyRoutes, `including the base path of the group, or delete the rule`},
		{ruleset.HTTP("POST /orders"), nil, "matches no route: no route is registered yet: call Check"},
		{ruleset.HTTP("POST /admin/*"), routes, "applies to no route: the wildcard matches none"},
		{ruleset.GRPC("/shop.v1.Orders/Pya"), methods, `matches no method: did you mean "/shop.v1.Orders/Pay"?`},
		{ruleset.GRPC("/shop.v1.Order/Pay"), methods, `matches no method: did you mean "/shop.v1.Orders/Pay"?`},
		{ruleset.GRPC("/shop.v1.Order/*"), methods, `matches no method: did you mean "/shop.v1.Orders/*"?`},
		{ruleset.GRPC("/shop.v1.Orders/Cancel"), methods, "matches no method: remove the rule, or register the service"},
		{ruleset.GRPC("/other/X"), nil, "matches no method: remove the rule"},
		{ruleset.Func("close-dya"), functions, `matches no wrapped function: did you mean "close-day"?`},
		{ruleset.Func("nightly"), functions, `: remove the rule, or wrap the function with Endpoint: ruleset.Func("nightly")`},
		{ruleset.Func("task/invoice:send"), functions, `ruleset.Func("task/invoice:send"), or create the adapter for task/ before Check`},
		{ruleset.Func("task/*"), nil, "has a more specific rule: remove the rule, or create the adapter for task/ before Check"},
	} {
		j := aspect.Judge{Transport: tt.endpoint.Transport, Endpoints: tt.there}
		if got := j.Missing(tt.endpoint); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.endpoint, got, tt.want)
		}
	}
}

// problemsOf returns the problems that a Judge finds in rule files, as "error: …" and "warning: …".
func problemsOf(t *testing.T, j aspect.Judge, files ...string) []string {
	t.Helper()
	sets := make([]*ruleset.Set, len(files))
	for i, text := range files {
		set, err := ruleset.Load("locks.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = set
	}
	var r aspect.Report
	j.Judge(&r, sets...)
	var found []string
	for _, p := range r.Errors() {
		found = append(found, "error: "+p.Endpoint.Label())
	}
	for _, p := range r.Warnings() {
		found = append(found, "warning: "+p.Endpoint.Label())
	}
	return found
}

func TestJudge_SeverityOfTheStrictestFile(t *testing.T) {
	t.Parallel()
	pay, list, ship := ruleset.HTTP("POST /pay"), ruleset.HTTP("GET /orders"), ruleset.HTTP("POST /ship")
	j := aspect.Judge{
		Transport: ruleset.TransportHTTP,
		Endpoints: []ruleset.Endpoint{pay, list, ship},
		Changes:   func(e ruleset.Endpoint) bool { return e.Method == http.MethodPost },
	}
	const onPay, elsewhere = "rules: [{http: POST /pay, key: k}]\n", "rules: [{http: POST /nowhere, key: k}]\n"
	beside := j
	beside.Beside = func(e ruleset.Endpoint) bool { return e == ship }
	for name, tt := range map[string]struct {
		judge aspect.Judge
		files []string
		want  []string
	}{
		"no problem":                 {j, []string{onPay}, nil},
		"no route by default":        {j, []string{elsewhere}, []string{"error: POST /nowhere"}},
		"no route, warn":             {j, []string{"unmatched: warn\n" + elsewhere}, []string{"warning: POST /nowhere"}},
		"no route, ignore":           {j, []string{"unmatched: ignore\n" + elsewhere}, nil},
		"no rule":                    {j, []string{"uncovered: error\n" + onPay}, []string{"error: POST /ship"}},
		"no rule, warn":              {j, []string{"uncovered: warn\n" + onPay}, []string{"warning: POST /ship"}},
		"the strictest of two files": {j, []string{"uncovered: warn\n" + onPay, "uncovered: error\n" + onPay}, []string{"error: POST /ship"}},
		"covered by another file":    {j, []string{"uncovered: error\n" + onPay, "rules: [{http: POST /ship, none: true}]\n"}, nil},
		"covered in the program":     {beside, []string{"uncovered: error\n" + onPay}, nil},
		"covered by a wildcard":      {j, []string{"uncovered: error\nrules: [{http: POST /*, key: k}]\n"}, nil},
	} {
		if got := problemsOf(t, tt.judge, tt.files...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Rules in layers below hide a wildcard, so that it may apply to no endpoint.
func TestJudge_WildcardHiddenByExactRules(t *testing.T) {
	t.Parallel()
	j := aspect.Judge{
		Transport: ruleset.TransportGRPC,
		Endpoints: []ruleset.Endpoint{ruleset.GRPC("/shop.Orders/Pay")},
		Below:     func(ruleset.Endpoint) bool { return true },
	}
	const wild, exact = "rules: [{grpc: /shop.Orders/*, key: k}]\n", "rules: [{grpc: /shop.Orders/Pay, key: k}]\n"
	if got := problemsOf(t, j, wild); !slices.Equal(got, []string{"error: /shop.Orders/*"}) {
		t.Errorf("got %q", got)
	}
	if got := problemsOf(t, j, exact); got != nil {
		t.Errorf("got %q", got)
	}
}

// A problem of a rule with a wildcard is reported once, with one of the endpoints that have it.
func TestReport_EachProblemOnce(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n  - {http: POST /*, key: k}\n  - {http: POST /a, key: k}\n"))
	if err != nil {
		t.Fatal(err)
	}
	wild, own := set.Rules()[0], set.Rules()[1]
	var r aspect.Report
	r.Add(ruleset.HTTP("POST /a"), own.Problem("key", "is wrong"))
	for _, path := range []string{"/b", "/c", "/d", "/b"} {
		r.Add(ruleset.Route("POST", path), ruleset.Invalid(wild.Problem("key", "is wrong")))
	}
	r.Add(ruleset.Endpoint{}, nil)
	want := `ruleset: 2 problems
	locks.yaml:2:26: rule of http POST /*: key: POST /b and 2 more: is wrong
	locks.yaml:3:26: rule of http POST /a: key: is wrong`
	if err := r.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
