package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// httpAnswer is the answer of a Gin instance.
type httpAnswer struct {
	code   int
	status string
	header http.Header
	body   []byte
}

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

// String returns the answer as curl -i prints it.
func (a *httpAnswer) String() string {
	var b strings.Builder
	b.WriteString(a.status + "\r\n")
	_ = a.header.Write(&b) //nolint:errcheck // a Builder returns no error
	fmt.Fprintf(&b, "\r\n%s", a.body)
	return b.String()
}

// problemType returns the type of a problem document, or "" for another body.
func (a *httpAnswer) problemType() string {
	var problem struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(a.body, &problem) //nolint:errcheck // then it is not a problem document
	return problem.Type
}

func (d *demo) curl(i *instance, target string) {
	d.out.commandf("curl -i -X POST 'http://%s%s'", i.addr, target)
}

// showHTTP prints an answer.
func (d *demo) showHTTP(a *httpAnswer) {
	d.out.linef("%s", a)
	d.out.linef("")
}
