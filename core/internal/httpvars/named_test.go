package httpvars_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// parts returns the fields of a urlencoded form as a multipart form with the boundary x.
func parts(form string) string {
	var b strings.Builder
	for field := range strings.SplitSeq(form, "&") {
		name, value, _ := strings.Cut(field, "=")
		b.WriteString("--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n")
	}
	return b.String() + "--x--\r\n"
}

// places sends the same names and values in each place that a client fills.
var places = map[string]func(given string) sending{
	"query": func(given string) sending { return sending{target: "/?" + given} },
	"form":  func(given string) sending { return sending{contentType: urlencoded, body: given} },
	"multipart": func(given string) sending {
		return sending{contentType: multipart1, body: parts(given)}
	},
	"cookie": func(given string) sending { return sending{cookies: strings.ReplaceAll(given, "&", "; ")} },
}

// Handlers do not agree which spelling of a name counts. A request that gives the used name in another spelling is
// refused, even if the value has a default.
func TestRequest_NameInAnotherSpelling(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for place, request := range places {
		variable := strings.Replace(place, "multipart", "form", 1)
		for _, tt := range []struct{ given, expression, want string }{
			{"order=43&ORDER=42", `.order`, "!repeated"},
			{"ORDER=42&order=43", `.order`, "!repeated"},
			{"order=43&ORDER=43", `.order`, "!repeated"},
			{"order=43&order[]=42", `.order`, "!repeated"},
			{"order=43&or[]der=42", `.order`, "!repeated"},
			{"order=43&Order[]=42", `.order`, "!repeated"},
			{"order=43&[order]=42", `.order`, "!repeated"},
			{"order=43&order.=42", `.order`, "!repeated"},
			{"order=43&\u017forder=42&order[]=", `.order`, "!repeated"},
			{"ORDER=42", `.order`, "!repeated"},
			{"ORDER=42", `.order ?? "none"`, "!repeated"},
			{"order[]=42", `.order == "43" ? 1 : 2`, "!repeated"},
			{"order=43&ORDER=42", `.order[0]`, "!repeated"},
			{"order=43&ORDER=42", `.order[:]`, "!repeated"},
			{"order=43&order[]=42", `["order[]"]`, "!repeated"},
			{"order.id=43&order[id]=42", `["order.id"]`, "!repeated"},
			{"orderId=43&orderid=42", `.orderId`, "!repeated"},
			{"orderId=43", `.orderId`, "43"},
			{"orderId=43&x=1&X=2&x[]=3", `.orderId`, "43"}, // the key does not use x
			{"order=43&order[0]=42&filter[order]=7&orders=8&order_=9", `.order`, "43"},
			{"order=43&order[id]=42", `["order[id]"]`, "42"},
			{"x=1", `.order ?? "none"`, "none"},
		} {
			if strings.Contains(tt.given, "[") && place == "cookie" && !strings.HasPrefix(tt.want, "!") {
				continue // net/http drops cookies whose names have brackets
			}
			if got := outcome(t, v, variable+tt.expression, request(tt.given).request(t)); got != tt.want {
				t.Errorf("%s%s of %s: got %q, want %q", place, tt.expression, tt.given, got, tt.want)
			}
		}
	}
	for _, place := range []string{"query", "form", "multipart"} {
		variable := strings.Replace(place, "multipart", "form", 1)
		if got := outcome(t, v, variable+`["order[]"][:]`, places[place]("order[]=1&order[]=2").request(t)); got != "1 2" {
			t.Errorf("%s: got %q", place, got)
		}
	}
}

// Some handlers merge the form and the query, and some of them read the query first. A form field that the query has, too,
// is refused, in any spelling.
func TestForm_AlsoInQuery(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, tt := range []struct{ query, expression, want string }{
		{"order=42", `form.order`, "!repeated"},
		{"order=43", `form.order`, "!repeated"},
		{"order[]=42", `form.order`, "!repeated"},
		{"ORDER=42", `form.order`, "!repeated"},
		{"order=42", `form.other ?? "none"`, "none"},
		{"other=42", `form.other ?? "none"`, "!repeated"},
		{"other=42", `form.order`, "43"},
		{"order=42", `query.order`, "42"}, // reading the query does not read the body
	} {
		for _, place := range []string{"form", "multipart"} {
			s := places[place]("order=43")
			s.target = "/?" + tt.query
			if got := bodyOutcome(t, v, tt.expression, s); got != tt.want {
				t.Errorf("%s of ?%s, %s: got %q, want %q", tt.expression, tt.query, place, got, tt.want)
			}
		}
	}
}

// net/http drops a malformed cookie that other parsers read.
func TestRequest_MalformedCookie(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, tt := range []struct{ cookies, want string }{
		{`order=43; order=4\2`, "!repeated"},
		{`order=é; order=43`, "!repeated"},
		{`order=é`, "!repeated"},
		{`order=43; order[]=42`, "!repeated"},
		{`order=43; other={"a":1}; =42; ;`, "43"},
		{` order = 43`, "!character"},
		{`order=43`, "43"},
	} {
		if got := outcome(t, v, `cookie.order`, (sending{cookies: tt.cookies}).request(t)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.cookies, got, tt.want)
		}
	}
}
