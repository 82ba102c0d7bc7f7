package fiberlock

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// newRequest returns a copy of the request. fasthttp reuses the memory of the original, so every string is copied.
func newRequest(c fiber.Ctx) (*http.Request, error) {
	original, target := c.Request(), strings.Clone(c.OriginalURL())
	u, err := url.ParseRequestURI(target)
	r := &http.Request{
		Method: strings.Clone(c.Method()), URL: u, RequestURI: target, Host: strings.Clone(c.Host()), RemoteAddr: net.JoinHostPort(c.IP(), "0"),
		ProtoMajor: 0, // not net/http, so the guard does not read ahead: fasthttp has read the body, and never notices that a client has left
		Header:     http.Header{}, Body: http.NoBody, ContentLength: int64(max(original.Header.ContentLength(), -1)),
	}
	for name, value := range original.Header.All() {
		if string(name) != fiber.HeaderHost {
			r.Header.Add(string(name), string(value))
		}
	}
	if c.HasBody() {
		r.Body = &body{request: original}
	}
	return r, err
}

var errStreamed = errors.New("fiberlock: fiber.Config.StreamRequestBody leaves the body to the handler, so that keys cannot read it")

// body reads the body that fasthttp has read. The handler can read it again.
type body struct {
	request *fasthttp.Request
	rest    io.Reader
}

// Read copies the next bytes.
func (b *body) Read(p []byte) (int, error) {
	if b.request.IsBodyStream() {
		return 0, errStreamed
	}
	if b.rest == nil {
		b.rest = bytes.NewReader(b.request.Body())
	}
	return b.rest.Read(p)
}

// Close does nothing.
func (b *body) Close() error { return nil }

// answered is a header by which [Handler] marks the response of a handler. Clients never get it.
const answered = "Interlock-Answered"

// response writes an answer of the guard to the response of fasthttp, which is sent after all handlers have returned. If
// the answer is marked, the response of fasthttp is that answer already.
type response struct {
	c      fiber.Ctx
	header http.Header
	final  bool
}

// Header returns a copy of the header of fasthttp.
func (w *response) Header() http.Header { return w.header }

// WriteHeader replaces the response, unless the answer is marked.
func (w *response) WriteHeader(code int) {
	if w.final || w.header.Get(answered) != "" || w.c.IsAbandoned() {
		return
	}
	w.final = true
	own := w.c.Response()
	own.ResetBody()
	for name := range headerOf(w.c) {
		own.Header.Del(name)
	}
	for name, values := range w.header {
		for _, value := range values {
			own.Header.Add(name, value)
		}
	}
	own.SetStatusCode(code)
}

// Write appends to an answer of the guard.
func (w *response) Write(p []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.final {
		w.c.Response().AppendBody(p)
	}
	return len(p), nil
}

// headerOf returns a copy of the header of the response.
func headerOf(c fiber.Ctx) http.Header {
	h := http.Header{}
	for name, value := range c.Response().Header.All() {
		h.Add(string(name), string(value))
	}
	return h
}
