package adaptertest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Reader is a way in which a handler reads the number of an order.
type Reader struct {
	// Name is the call that reads the number, such as "c.Query".
	Name string

	// Place is the place from which the key takes the number: path, query, form, multipart, or cookie. The key of a
	// multipart form is also over the variable form.
	Place string

	// Method is the method of the requests. "" is POST.
	Method string

	// Serve serves the route /orders, or /orders/<order> if Place is path, until the test ends. It returns the URL of the
	// server. The handler runs under the rule, which names no endpoint yet. It calls pay with the context of its request and
	// with the number that it has read, and answers with the status that pay returns. If it cannot read a number, it answers
	// 422.
	Serve func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(ctx context.Context, order string) int) (url string)

	// Want are the expected statuses, separated by blanks, "-" for a request that the place does not have. See [Readers].
	Want string
}

// key returns the expression that reads the place.
func (r *Reader) key() string { return strings.Replace(r.Place, "multipart", "form", 1) + ".order" }

// Readers sends requests with the numbers of two orders, of which 42 is locked. Each answer has to have the expected status:
// 409 if the key has the number 42, 400 if the request is refused because handlers may read either number, 200 if the handler
// reads the number in the key, and 500 if it reads another number and finds that with [core.MustHold]. The requests are, in
// this order:
//
//   - order=43 in the place of the key, and order=42;
//   - order=43, and beside it in the same place order=42, ORDER=42, and order[]=42;
//   - ORDER=42 alone;
//   - order=43 in the place of the key, and order=42 in the query, in a form, in a multipart form, and in a JSON body.
func Readers(t *testing.T, readers ...Reader) {
	t.Helper()
	redis := redistest.New(t)
	locks, err := core.New(redis.Client(), core.WithBackendTimeout(time.Minute), core.WithWatchdog(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	redis.Take("order:42", time.Hour)
	for _, r := range readers {
		t.Run(r.Name+" beside "+r.Place, func(t *testing.T) {
			rule := ruleset.Rule{Key: "order:#{" + r.key() + "}", WaitTime: ruleset.NoWait}
			base := r.Serve(t, locks, rule, pay)
			var statuses []string
			for _, s := range r.requests() {
				statuses = append(statuses, s.status(t, r.Method, base))
			}
			if got := strings.Join(statuses, " "); got != r.Want {
				t.Errorf("got  %s\nwant %s", got, r.Want)
			}
			t.Logf("| %s | %s | %s | %s |", r.Name, cmp.Or(r.Method, http.MethodPost), r.Place, strings.Join(statuses, " | "))
		})
	}
}

// pay returns the status of a handler that has read the number of an order.
func pay(ctx context.Context, order string) (status int) {
	defer func() {
		if recover() != nil {
			status = http.StatusInternalServerError
		}
	}()
	core.MustHold(ctx, "order:"+order)
	return http.StatusOK
}

// orderRequest has the parts of a request that name orders. Values that occur several times are separated by "&".
type orderRequest map[string]string

// requests returns the requests of [Readers], nil for a request that the place does not have.
func (r *Reader) requests() (all []orderRequest) {
	for _, given := range []string{"order=43", "order=42", "order=43&order=42", "order=43&ORDER=42", "order=43&order[]=42", "ORDER=42"} {
		if r.Place == "path" && given != "order=43" && given != "order=42" {
			all = append(all, nil)
			continue
		}
		all = append(all, orderRequest{r.Place: given})
	}
	for _, other := range []string{"query", "form", "multipart", "json"} {
		isBody := r.Place == "form" || r.Place == "multipart"
		if other == r.Place || isBody && other != "query" {
			all = append(all, nil)
			continue
		}
		all = append(all, orderRequest{r.Place: "order=43", other: "order=42"})
	}
	return all
}

// status sends the request and returns the status of the answer.
func (s orderRequest) status(t *testing.T, method, base string) string {
	t.Helper()
	if s == nil {
		return "-"
	}
	target, media, body := base+"/orders", "", ""
	if _, order, inPath := strings.Cut(s["path"], "="); inPath {
		target += "/" + order
	}
	if query := s["query"]; query != "" {
		target += "?" + query
	}
	switch {
	case s["form"] != "":
		media, body = "application/x-www-form-urlencoded", s["form"]
	case s["multipart"] != "":
		media, body = multipartOf(t, s["multipart"])
	case s["json"] != "":
		media, body = "application/json", `{"order": "42"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), cmp.Or(method, http.MethodPost), target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if cookies := s["cookie"]; cookies != "" {
		r.Header.Set("Cookie", strings.ReplaceAll(cookies, "&", "; "))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return strconv.Itoa(response.StatusCode)
}

// multipartOf returns the media type and the bytes of a multipart form.
func multipartOf(t *testing.T, given string) (media, body string) {
	t.Helper()
	values, err := url.ParseQuery(given)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, all := range values {
		for _, value := range all {
			if err := form.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.String()
}
