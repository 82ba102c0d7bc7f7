package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// httpAnswer is the answer of an instance to an HTTP request.
type httpAnswer struct {
	code   int
	status string
	header http.Header
	body   []byte
}

// post sends a POST request without a body and returns the answer, even if its status is an error.
func (i *instance) post(ctx context.Context, target string, header http.Header) (*httpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+i.addr+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	res, err := i.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return &httpAnswer{code: res.StatusCode, status: res.Proto + " " + res.Status, header: res.Header, body: body}, err
}

// String returns the answer in the format of curl -i.
func (a *httpAnswer) String() string {
	var b strings.Builder
	b.WriteString(a.status + "\r\n")
	_ = a.header.Write(&b) //nolint:errcheck // a Builder returns no error
	fmt.Fprintf(&b, "\r\n%s", a.body)
	return b.String()
}

// problemType returns the type in the body, "" if the body is not a problem document.
func (a *httpAnswer) problemType() string {
	var problem struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(a.body, &problem) //nolint:errcheck // then it is not a problem document
	return problem.Type
}

// curl prints the command that sends the same request.
func (d *demo) curl(i *instance, target string) {
	d.out.commandf("curl -i -X POST 'http://%s%s'", i.addr, target)
}

// showHTTP prints an answer and an empty line.
func (d *demo) showHTTP(a *httpAnswer) {
	d.out.linef("%s", a)
	d.out.linef("")
}
