package ruleset_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestEndpoint_String(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		endpoint    ruleset.Endpoint
		text, label string
	}{
		{ruleset.Endpoint{}, "", ""},
		{ruleset.HTTP("POST /orders/:id/pay"), "http POST /orders/:id/pay", "POST /orders/:id/pay"},
		{ruleset.HTTP("*"), "http *", "*"},
		{ruleset.GRPC("/shop.Orders/Pay"), "grpc /shop.Orders/Pay", "/shop.Orders/Pay"},
		{ruleset.Func("close-day"), "func close-day", "close-day"},
	} {
		if got := tc.endpoint.String(); got != tc.text {
			t.Errorf("String: got %q, want %q", got, tc.text)
		}
		if got := tc.endpoint.Label(); got != tc.label {
			t.Errorf("Label: got %q, want %q", got, tc.label)
		}
	}
	if ruleset.HTTP("POST  /x") != ruleset.Route("POST", "/x") {
		t.Error("HTTP and Route differ")
	}
}

func TestNewSet_MalformedEndpoints(t *testing.T) {
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

func TestNewSet_ValidEndpoints(t *testing.T) {
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

func TestLoad_BlanksAroundEndpoints(t *testing.T) {
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

var advisedEndpoint = regexp.MustCompile(`: write "([^"]*)"$`)

// The advised endpoint is valid and has the same transport.
func TestLoad_EndpointAdvice(t *testing.T) {
	t.Parallel()
	for field, endpoints := range map[string]map[string]string{
		"http": {
			"/orders":                          "POST /orders",
			"/orders/**":                       "POST /orders/*",
			"post /orders":                     "POST /orders",
			"Post /orders/:id":                 "POST /orders/:id",
			"POST orders":                      "POST /orders",
			"get orders/:id":                   "GET /orders/:id",
			"/orders POST":                     "POST /orders",
			"/orders post":                     "POST /orders",
			"PSOT /orders":                     "POST /orders",
			"DELET /orders":                    "DELETE /orders",
			"OPTION /orders":                   "OPTIONS /orders",
			"ANY /orders":                      "* /orders",
			"all /orders/**":                   "* /orders/*",
			"POST https://example.org/a/b?c=d": "POST /a/b",
			"POST https://example.org":         "POST /",
			"POST http://localhost:8080/a#top": "POST /a",
			"POST /a/**":                       "POST /a/*",
			"POST /a/*/b":                      "POST /a/*",
			"POST /a*":                         "POST /a/*",
			"GET /files/*path/x":               "GET /files/*",
			"POST /a/*/*":                      "POST /a/*",
		},
		"grpc": {
			"shop.v1.Orders/Pay": "/shop.v1.Orders/Pay",
			"shop.v1.Orders.Pay": "/shop.v1.Orders/Pay",
			"/shop.Orders/**":    "/shop.Orders/*",
			"/shop.Orders/Pay*":  "/shop.Orders/*",
			"/*":                 "*",
			"/*/*":               "*",
			"*/**":               "*",
		},
	} {
		for wrong, want := range endpoints {
			file := func(endpoint string) string { return fmt.Sprintf("rules:\n- %s: %q\n  key: a\n", field, endpoint) }
			p := onlyProblem(t, file(wrong))
			advised := advisedEndpoint.FindStringSubmatch(p.Message)
			if advised == nil || advised[1] != want {
				t.Errorf("%s: %q: got %s, want it to advise %q", field, wrong, p, want)
				continue
			}
			if _, err := ruleset.Load("locks.yaml", []byte(file(advised[1]))); err != nil {
				t.Errorf("%s: %q: the advice of %v yields %v", field, wrong, p, err)
			}
		}
	}
}

// FuzzEndpoint checks that each endpoint is either refused or found.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"POST /orders/:id/pay", "*", "* /a/*", "GET /files/*path", "/x", "get /", "GET  /a//b", "POST /*/x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range []ruleset.Endpoint{ruleset.HTTP(text), ruleset.GRPC(text), ruleset.Func(text)} {
			set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: e, Name: "x", Key: "a"}})
			if err == nil && len(set.Match(e)) != 1 {
				t.Errorf("%q was accepted but is not found", e)
			}
		}
	})
}
