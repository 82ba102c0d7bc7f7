package fiberlock_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/adapters/fiberlock"
)

// A key reads what fasthttp has parsed, because a handler reads that, even where net/http parses differently. Order 42 is
// locked: a request for it gets 409, in every spelling, and no request for it runs under the lock of order 43 (500).
func TestLock_Parsed(t *testing.T) {
	t.Parallel()
	const multipart = "multipart/form-data; "
	part := func(boundary, order string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"order\"\r\n\r\n" + order + "\r\n--" + boundary + "--\r\n"
	}
	form := func(c fiber.Ctx) string {
		var into struct {
			Order string `form:"order"`
		}
		if c.Bind().Form(&into) != nil {
			return ""
		}
		return into.Order
	}
	query := func(c fiber.Ctx) string { return c.Query("order") }
	cookie := func(c fiber.Ctx) string { return c.Cookies("order") }
	json := func(c fiber.Ctx) string {
		var into struct {
			Order string `json:"order"`
		}
		if c.Bind().JSON(&into) != nil {
			return ""
		}
		return into.Order
	}
	for _, tt := range []struct {
		name, key, target, header, body string
		read                            func(fiber.Ctx) string
		want                            int
	}{
		{"a fragment", "query.order", "/orders?order=42#x", "", "", query, 409},
		{"a query in a fragment", "query.order", "/orders#?order=42", "", "", query, 400},
		{"a default for a query in a fragment", `query.order ?? "43"`, "/orders#?order=42", "", "", func(c fiber.Ctx) string { return cmp.Or(query(c), "43") }, 200},
		{"an absolute target", "query.order", "http://shop.example/orders?order=42#x", "", "", query, 409},
		{"a semicolon", "query.order", "/orders?order=42;x&order=43", "", "", query, 400},
		{"a malformed escape", "query.order", "/orders?order=%zz&order=43", "", "", query, 400},
		{"a malformed escape alone", "query.order", "/orders?order=%zz", "", "", query, 200},
		{"escapes", "query.order", "/orders?%6frder=%34%32", "", "", query, 409},
		{"a plus", "query.order", "/orders?order=4+2", "", "", query, 200},
		{"a cookie", "cookie.order", "/orders", "Cookie: order=42", "", cookie, 409},
		{"a quoted cookie", "cookie.order", "/orders", `Cookie: order="42"`, "", cookie, 409},
		{"a cookie that is quoted twice", "cookie.order", "/orders", `Cookie: order=""42""`, "", cookie, 400},
		{"a cookie that net/http drops", "cookie.order", "/orders", `Cookie: order=4\2; order=43`, "", cookie, 400},
		{"a cookie without a name", "cookie.order", "/orders", `Cookie: =order=43; order=42`, "", cookie, 409},
		{"cookies in two lines", "cookie.order", "/orders", "Cookie: order=43\r\nCookie: order=42", "", cookie, 400},
		{"other cookies", "cookie.order", "/orders", `Cookie: prefs={"a":1}; order=42; lang=é`, "", cookie, 409},
		{"a malformed form", "form.order", "/orders", "Content-Type: application/x-www-form-urlencoded", "order=%zz&order=43", form, 400},
		{"a form", "form.order", "/orders", "Content-Type: application/x-www-form-urlencoded", "order=42&x=%zz;", form, 409},
		{"two boundaries", "form.order", "/orders", "Content-Type: " + multipart + `x="; boundary=A"; boundary=B`, part("A", "42") + part("B", "43"), form, 400},
		{"a media type in another case", "form.order", "/orders", "Content-Type: Multipart/Form-Data; boundary=A", part("A", "42"), form, 400},
		{"one boundary", "form.order", "/orders", "Content-Type: " + multipart + "boundary=A", part("A", "42"), form, 409},
		{"an encoded body", "body.order", "/orders", "Content-Type: application/json\r\nContent-Encoding: br", `{"order": "43"}`, json, 400},
		{"a body", "body.order", "/orders", "Content-Type: application/json", `{"order": "42"}`, json, 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noWait("POST /orders", "order:#{"+tt.key+"}"))
			b.app.Post("/orders", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
				order := strings.ReplaceAll(tt.read(c), "%", "%25")
				if _, held := core.Held(c.Context(), "order:"+order); !held {
					return c.Status(http.StatusInternalServerError).SendString("reads " + order)
				}
				return c.SendStatus(http.StatusOK)
			})
			b.check()
			b.redis.Take("order:42", time.Hour)
			connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(listen(t, b.app), "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			header := tt.header
			if header != "" {
				header += "\r\n"
			}
			_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", tt.target, header, len(tt.body), tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if code, text := answerOn(t, connection); code != tt.want {
				t.Errorf("got %d %s, want %d", code, text, tt.want)
			}
		})
	}
}

// answerOn reads an answer.
func answerOn(t *testing.T, connection net.Conn) (int, string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// All clients of a Unix socket have the address 0.0.0.0 in fiber, so a key refuses it.
func TestLock_UnixSocket(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders", "ip:#{client_ip}"))
	b.app.Post("/orders", fiberlock.Lock(b.guard), done)
	b.check()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() { _ = b.app.ShutdownWithTimeout(time.Millisecond) })
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "POST /orders HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if code, text := answerOn(t, connection); code != http.StatusBadRequest {
		t.Errorf("got %d %s", code, text)
	}
}
