package ruleset_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestNewSet_RefusesEndpointsThatNothingMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		endpoint ruleset.Endpoint
		want     string
	}{
		{ruleset.HTTP("PST /a"), `"PST" is not a known method: write "POST /a"`},
		{ruleset.HTTP("POSTT /a"), `"POSTT" is not a known method: write "POST /a"`},
		{ruleset.HTTP("GTE /a"), `"GTE" is not a known method: write "GET /a"`},
		{ruleset.HTTP("P\u039fST /a"), `"P\u039fST" is not a known method: write "POST /a"`},
		{ruleset.HTTP("GET,POST /a"), `a rule has one method, or * for any: write a rule for each method`},
		{ruleset.HTTP("GET, POST /a"), `a rule has one method, or * for any: write a rule for each method`},
		{ruleset.Route("M-SEARCH", "/a"), `"M-SEARCH" is not a method: write one such as POST, in capitals, or * for any`},
		{ruleset.HTTP("get a"), `methods are upper case: write "GET /a"`},
		{ruleset.HTTP("POST https://example.org/a/:id#top"), `a route has no scheme and no host: write "POST /a/:id"`},
		{ruleset.HTTP("* /a*"), `a * stands for everything below a slash: write "* /a/*"`},
		{ruleset.HTTP("GET /a/*b*"), `a * stands only at the end: write "GET /a/*"`},
		{ruleset.HTTP("GET /*/b"), `a * stands only at the end: write "GET /*"`},
		{ruleset.GRPC("/a.B/C*"), `a * stands for whole names: write "/a.B/*"`},
		{ruleset.GRPC("/a.*/C"), `as in "/shop.Orders/*", or alone for every method: write one of these`},
		{ruleset.GRPC("/*/*"), `a * alone stands for every method: write "*"`},
		{ruleset.Endpoint{Transport: ruleset.TransportGRPC, Path: "/a.B/C "}, `has blanks around it: write "/a.B/C"`},
		{ruleset.Endpoint{Transport: ruleset.TransportFunc, Path: " close-day"}, `has blanks around it: write "close-day"`},
		{ruleset.Func("close\tday"), `"close\tday" has line breaks or control characters: write one line without them`},
		{ruleset.Func("close-day\x00"), `"close-day\x00" has line breaks or control characters: write one line without them`},
		{ruleset.Func(strings.Repeat("a", 1001)), `1001 bytes long: write 1000 at most`},
		{ruleset.Func(" "), `a function needs a name: write Func("close-day")`},
	} {
		_, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: c.endpoint, Key: "a"}})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.endpoint, err, c.want)
		}
	}
}

func TestNewSet_TakesEndpointsOfEveryRouter(t *testing.T) {
	t.Parallel()
	for _, e := range []ruleset.Endpoint{
		ruleset.HTTP("PROPFIND /a"),
		ruleset.HTTP("QUERY /a"),
		ruleset.HTTP("PURGE /a"),
		ruleset.HTTP("* *"),
		ruleset.HTTP("GET *"),
		ruleset.HTTP("GET /"),
		ruleset.HTTP("GET /*"),
		ruleset.HTTP("GET /files/*path"),
		ruleset.HTTP("GET /:shop/files/*path"),
		ruleset.GRPC("*"),
		ruleset.GRPC("/shop.Orders/*"),
		ruleset.Func("*"),
		ruleset.Func("(*Orders).Close"),
		ruleset.Func("close day"),
	} {
		if _, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: e, Key: "a"}}); err != nil {
			t.Error(err)
		}
	}
}

// TestSet_BlanksAroundAnEndpointAreNoneOfIt: for every transport.
func TestSet_BlanksAroundAnEndpointAreNoneOfIt(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n- {http: ' POST  /a ', key: a}\n- {grpc: ' /a.B/C ', key: b}\n- {func: ' close-day ', key: c}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []ruleset.Endpoint{ruleset.Route("POST", "/a"), ruleset.GRPC("/a.B/C"), ruleset.Func("close-day")} {
		if len(set.Match(e)) != 1 {
			t.Errorf("no rule for %s", e)
		}
	}
}
