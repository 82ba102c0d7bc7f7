package fiberlock

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// newRequest returns a copy of the request as fasthttp has parsed it, because the handlers read that: net/http would keep a
// fragment in the query and drop malformed pairs. fasthttp reuses the memory of the original, so every string is copied.
func newRequest(c fiber.Ctx) *http.Request {
	original := c.Request()
	r := &http.Request{
		Method: strings.Clone(c.Method()), Host: strings.Clone(c.Host()), RemoteAddr: remoteAddr(c),
		RequestURI: strings.Clone(c.OriginalURL()),
		URL:        &url.URL{Path: string(original.URI().Path()), RawQuery: valuesOf(original.URI().QueryArgs()).Encode()},
		ProtoMajor: 0, // not net/http, so the guard does not read ahead: fasthttp has read the body, and never notices that a client has left
		Header:     http.Header{}, Body: http.NoBody, ContentLength: int64(max(original.Header.ContentLength(), -1)),
	}
	for name, value := range original.Header.All() {
		if string(name) != fiber.HeaderHost && string(name) != fiber.HeaderCookie {
			r.Header.Add(string(name), string(value))
		}
	}
	for name, value := range original.Header.Cookies() {
		if len(name) > 0 {
			r.Header.Add(fiber.HeaderCookie, string(name)+`="`+string(value)+`"`) // net/http removes quotes once, too
		}
	}
	if c.HasBody() {
		r.Body = &body{request: original}
		if isForm := bytes.HasPrefix(original.Header.ContentType(), []byte(fiber.MIMEApplicationForm)); isForm && !original.IsBodyStream() {
			r.PostForm = valuesOf(original.PostArgs()) // under any method
		}
	}
	return r
}

// valuesOf returns a copy of arguments.
func valuesOf(args *fasthttp.Args) url.Values {
	values := url.Values{}
	for name, value := range args.All() {
		values.Add(string(name), string(value))
	}
	return values
}

// remoteAddr returns the address of the client, without its port. It returns "" for a Unix socket, for which fiber has the
// address 0.0.0.0.
func remoteAddr(c fiber.Ctx) string {
	ip := c.IP()
	if _, isTCP := c.RequestCtx().RemoteAddr().(*net.TCPAddr); !isTCP && ip == net.IPv4zero.String() {
		return ""
	}
	return net.JoinHostPort(ip, "0")
}

var (
	errStreamed = errors.New("fiberlock: fiber.Config.StreamRequestBody leaves the body to the handler, so that keys cannot read it")
	errEncoded  = errors.New("fiberlock: the body has a Content-Encoding, so that keys cannot read it")
	errBoundary = errors.New("fiberlock: fasthttp and package mime find different boundaries of the multipart form")
)

// body reads the body that fasthttp has read. The handler can read it again.
type body struct {
	request *fasthttp.Request
	rest    io.Reader
}

// Read copies the next bytes.
func (b *body) Read(p []byte) (int, error) {
	if err := b.unreadable(); err != nil {
		return 0, err
	}
	if b.rest == nil {
		b.rest = bytes.NewReader(b.request.Body())
	}
	return b.rest.Read(p)
}

// unreadable returns an error if the handler may read other values than net/http would.
func (b *body) unreadable() error {
	header := &b.request.Header
	if b.request.IsBodyStream() {
		return errStreamed
	}
	if len(header.ContentEncoding()) > 0 {
		return errEncoded
	}
	media, params, err := mime.ParseMediaType(string(header.ContentType()))
	if err == nil && media == fiber.MIMEMultipartForm && params["boundary"] != string(header.MultipartFormBoundary()) {
		return errBoundary
	}
	return nil
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
