package ginlock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// payment is the body that the handlers of these tests read.
type payment struct {
	ID     string `form:"id"     json:"id"`
	Amount int64  `form:"amount" json:"amount"`
}

const paymentJSON = `{"id":"42","amount":9007199254740993}`

func TestBody_CompleteForHandlersAndBinders(t *testing.T) {
	t.Parallel()
	form, formType := multipartBody(t)
	tests := map[string]struct {
		key       string
		body, typ string
		read      func(c *gin.Context) (payment, error)
	}{
		"ShouldBindJSON": {"order:#{string(body.id)}", paymentJSON, "application/json", func(c *gin.Context) (p payment, err error) {
			return p, c.ShouldBindJSON(&p)
		}},
		"ShouldBindBodyWith, twice": {"order:#{string(body.id)}", paymentJSON, "application/json", func(c *gin.Context) (p payment, err error) {
			return p, errors.Join(c.ShouldBindBodyWith(&p, binding.JSON), c.ShouldBindBodyWith(&p, binding.JSON))
		}},
		"GetRawData": {"order:#{string(body.id)}", paymentJSON, "application/json", func(c *gin.Context) (p payment, err error) {
			raw, err := c.GetRawData()
			want(t, "raw body", string(raw), paymentJSON)
			return payment{"42", 9007199254740993}, err
		}},
		"ShouldBind of a form": {"order:#{form.id}", "id=42&amount=9007199254740993", "application/x-www-form-urlencoded", func(c *gin.Context) (p payment, err error) {
			return p, c.ShouldBind(&p)
		}},
		"PostForm of a multipart form": {"order:#{form.id}", form, formType, func(c *gin.Context) (p payment, err error) {
			return payment{c.PostForm("id"), 9007199254740993}, nil
		}},
		"a body that the key does not use": {"order:#{path.id}", paymentJSON, "application/json", func(c *gin.Context) (p payment, err error) {
			return p, c.ShouldBindJSON(&p)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "POST", payPath, ruleset.Rule{Key: tt.key}, func(c *gin.Context) {
					want(t, "held", s.held(t, payKey), true)
					p, err := tt.read(c)
					want(t, "error", err, nil)
					want(t, "payment", p, payment{"42", 9007199254740993})
				})
				want(t, "status", s.do(t, request{body: tt.body, typ: tt.typ}).Code, http.StatusOK)
				s.redis.Take(payKey, time.Hour)
				time.AfterFunc(time.Second, func() { s.redis.Free(payKey) })
				want(t, "status after a wait", s.do(t, request{body: tt.body, typ: tt.typ}).Code, http.StatusOK)
			})
		})
	}
}

func multipartBody(t testing.TB) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := errors.Join(w.WriteField("id", "42"), w.WriteField("amount", "9007199254740993"), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func TestBody_LargerThanTheLimit(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int64{"announced": 5000, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				large := strings.Repeat("x", 5000)
				s.engine.Use(func(c *gin.Context) { c.Request.ContentLength = length })
				s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
					raw, err := c.GetRawData()
					want(t, "error", err, nil)
					want(t, "body", string(raw), large)
				})
				want(t, "status", s.do(t, request{body: large}).Code, http.StatusOK)
				s.redis.Take(payKey, time.Hour)
				time.AfterFunc(time.Second, func() { s.redis.Free(payKey) })
				want(t, "status after a wait", s.do(t, request{body: large}).Code, http.StatusOK)
			}, ginlock.WithMaxBody(1000))
		})
	}
}

func TestBody_ReadByShouldBindBodyWith(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			var p payment
			want(t, "before", c.ShouldBindBodyWith(&p, binding.JSON), nil)
		})
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{string(body.id)}"}, func(c *gin.Context) {
			var p payment
			want(t, "after", c.ShouldBindJSON(&p), nil)
			want(t, "held", s.held(t, payKey), true)
		})
		want(t, "status", s.do(t, request{body: paymentJSON}).Code, http.StatusOK)
	})
}

func TestBody_ReadBeforeTheWait(t *testing.T) {
	t.Parallel()
	noWait := pay
	noWait.WaitTime = ruleset.NoWait
	tests := map[string]struct {
		rule  ruleset.Rule
		taken bool
		proto int
		read  bool
	}{
		"a rule that waits":              {pay, true, 1, true},
		"a rule that waits, over HTTP/2": {pay, true, 2, true},
		"a rule that may wait":           {pay, false, 1, false},
		"a rule that never waits":        {noWait, true, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) {})
				if tt.taken {
					s.redis.Take(payKey, time.Hour)
				}
				body := &eofRecorder{Reader: strings.NewReader(paymentJSON)}
				req := request{body: paymentJSON}.build()
				req.Body, req.ProtoMajor = body, tt.proto
				s.engine.ServeHTTP(httptest.NewRecorder(), req)
				want(t, "read to its end", body.ended, tt.read)
			})
		})
	}
}

// eofRecorder is a body that records whether its end was read.
type eofRecorder struct {
	io.Reader
	ended bool
}

func (b *eofRecorder) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

func (b *eofRecorder) Close() error { return nil }

func TestBody_TypeIsCheckedAtStartUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		err := s.guard.Handle(s.engine, "POST", payPath, ruleset.Rule{Key: "order:#{body.idd}"}, func(*gin.Context) {})
		wantText(t, err, "idd", `id`)
		s.handle(t, "POST", "/typed", ruleset.Rule{Key: "order:#{body.id}:#{body.amount}"}, func(c *gin.Context) {
			var p payment
			want(t, "bind", c.ShouldBindJSON(&p), nil)
			want(t, "exact number", s.held(t, payKey+":9007199254740993"), true)
		})
		want(t, "status", s.do(t, request{url: "/typed", body: paymentJSON}).Code, http.StatusOK)
		want(t, "no JSON of that type", s.do(t, request{url: "/typed", body: `{"id":{}}`}).Code, http.StatusBadRequest)
	}, ginlock.WithBody[payment]("POST "+payPath, "POST /typed"))
}

type principal struct{ Tenant string }

func TestBody_FormParsedByTheHandler(t *testing.T) {
	t.Parallel()
	form, formType := multipartBody(t)
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			before := c.Request
			c.Next()
			want(t, "request put back", c.Request, before)
			want(t, "multipart form, which net/http cleans up", before.MultipartForm != nil, true)
		})
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) { want(t, "id", c.PostForm("id"), "42") })
		want(t, "status", s.do(t, request{body: form, typ: formType}).Code, http.StatusOK)
	})
}

// unreadBody is a body that must not be read before the handler runs.
type unreadBody struct {
	t    *testing.T
	name string
	may  bool
}

func (u *unreadBody) Read([]byte) (int, error) {
	if !u.may {
		u.t.Errorf("%s: the body was read", u.name)
	}
	return 0, io.EOF
}

func (u *unreadBody) Close() error { return nil }

// sendUnread sends a request whose body must not be read.
func (s *shop) sendUnread(t *testing.T, name string, r request, length int64) *httptest.ResponseRecorder {
	t.Helper()
	r.body = "{}"
	req := r.build()
	body := &unreadBody{t: t, name: name}
	req.Body, req.ContentLength = body, length
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), unreadBody{}, body)))
	return w
}

// mayRead returns a handler that permits reading the body.
func mayRead(c *gin.Context) {
	if body, ok := c.Request.Context().Value(unreadBody{}).(*unreadBody); ok {
		body.may = true
	}
	c.Status(http.StatusNoContent)
}

// The guard reads no body if it can answer without it.
func TestBody_NotReadForEarlyAnswers(t *testing.T) {
	t.Parallel()
	const byPath, byBody = "order:#{path.id}", "order:#{body.id}"
	full := func(t *testing.T, s *shop) {
		s.redis.Take(payKey, time.Hour)
		go s.do(t, request{body: `{"id":"42"}`})
		synctest.Wait()
		want(t, "waiters", s.locks.Stats().Waiters, 1)
	}
	down := func(t *testing.T, s *shop) {
		s.redis.Down()
		want(t, "the first to find out", s.do(t, request{body: `{"id":"42"}`}).Code, http.StatusServiceUnavailable)
		time.Sleep(time.Second) // the acquisition gives up a little before the backend timeout, when Redis does not count as silent yet
	}
	tripped := func(t *testing.T, s *shop) {
		s.redis.Down()
		wantErr(t, "another lock", s.locks.Lock("x").Do(t.Context(), func(context.Context) error { return nil }), core.ErrUnavailable)
		time.Sleep(time.Second) // as above
	}
	nothing := func(*testing.T, *shop) {}
	tests := map[string]struct {
		rule   ruleset.Rule
		before func(t *testing.T, s *shop)
		r      request
		length int64
		status int
	}{
		"the queue is full":                               {ruleset.Rule{Key: byPath, MaxWaiters: 1}, full, request{}, 100, http.StatusTooManyRequests},
		"Redis is down":                                   {ruleset.Rule{Key: byPath}, down, request{}, 100, http.StatusServiceUnavailable},
		"Redis is down, for any key":                      {ruleset.Rule{Key: byBody}, down, request{}, 100, http.StatusServiceUnavailable},
		"Redis is down, for a list":                       {ruleset.Rule{Key: "order:#{map(body.ids, .id)}", OnKey: failpolicy.Skip}, tripped, request{}, 100, http.StatusServiceUnavailable},
		"Redis is down, with a strategy":                  {ruleset.Rule{Key: byBody, OnBackend: failpolicy.Skip}, tripped, request{}, 100, http.StatusNoContent},
		"announced as too long":                           {ruleset.Rule{Key: byBody}, nothing, request{}, 1 << 30, http.StatusRequestEntityTooLarge},
		"another type":                                    {ruleset.Rule{Key: byBody}, nothing, request{typ: "text/plain"}, 100, http.StatusUnsupportedMediaType},
		"another part yields no key":                      {ruleset.Rule{Key: byBody + `:#{header["X-Tenant"]}`}, nothing, request{}, -1, http.StatusBadRequest},
		"another key is missing":                          {ruleset.Rule{Keys: []string{byBody, `tenant:#{query.tenant}`}}, nothing, request{}, -1, http.StatusBadRequest},
		"a part beside a list":                            {ruleset.Rule{Key: `#{map(body.ids, .id)}:#{cookie.c}`}, nothing, request{}, -1, http.StatusBadRequest},
		"a variable is not set":                           {ruleset.Rule{Key: byBody + ":#{who}"}, nothing, request{}, -1, http.StatusInternalServerError},
		"the condition is false":                          {ruleset.Rule{Key: byBody, When: `method == "PUT"`}, nothing, request{}, -1, http.StatusNoContent},
		"the condition is false before it reads the body": {ruleset.Rule{Key: byBody, When: `method == "PUT" && body.id == "1"`}, nothing, request{}, -1, http.StatusNoContent},
		"the rule does not wait":                          {ruleset.Rule{Key: byPath, WaitTime: ruleset.NoWait}, nothing, request{}, -1, http.StatusNoContent},
		"inside a debounce window":                        {ruleset.Rule{Key: byPath, Debounce: time.Hour}, func(t *testing.T, s *shop) { s.do(t, request{}) }, request{}, -1, http.StatusTooManyRequests},
		"the rules are suspended":                         {ruleset.Rule{Key: byBody}, func(_ *testing.T, s *shop) { s.guard.Aspect().Suspend() }, request{}, -1, http.StatusNoContent},
		"the rule is disabled":                            {ruleset.Rule{Key: byBody, Disabled: true}, nothing, request{}, -1, http.StatusNoContent},
		"the rule only counts":                            {ruleset.Rule{Key: byPath, DryRun: true}, nothing, request{}, -1, http.StatusNoContent},
		"the client closed, for any key":                  {ruleset.Rule{Key: byBody}, func(t *testing.T, s *shop) { s.close(t) }, request{}, -1, http.StatusServiceUnavailable},
		"the client closed, for the key":                  {ruleset.Rule{Key: byPath}, func(t *testing.T, s *shop) { s.close(t) }, request{}, -1, http.StatusServiceUnavailable},
		"the method has no form":                          {ruleset.Rule{Key: "order:#{form.id}"}, nothing, request{method: "DELETE", typ: "application/x-www-form-urlencoded"}, -1, http.StatusBadRequest},
		"a key that is too long for Redis":                {ruleset.Rule{Key: byPath, KeyFormat: ruleset.Strict}, nothing, request{url: "/orders/" + strings.Repeat("x", 2000) + "/pay"}, -1, http.StatusBadRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				for _, method := range []string{"POST", "DELETE"} {
					s.handle(t, method, payPath, tt.rule, mayRead)
				}
				tt.before(t, s)
				want(t, "status", s.sendUnread(t, name, tt.r, tt.length).Code, tt.status)
				s.redis.Free(payKey)
			}, ginlock.WithVariable("who", func(*gin.Context) (string, error) { return "", nil }))
		})
	}
}

// The limit of waiters of the whole client applies before a key is known.
func TestBody_NotReadWhileTheClientIsFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		locks, err := core.New(s.redis.Client(), core.WithPrefix(prefix), core.WithMaxWaiters(1))
		if err != nil {
			t.Fatal(err)
		}
		guard, err := ginlock.New(locks)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard.Handle(s.engine, "POST", payPath, ruleset.Rule{Key: "order:#{string(body.id)}"}, mayRead); err != nil {
			t.Fatal(err)
		}
		s.redis.Take(payKey, time.Hour)
		go s.do(t, request{body: `{"id":"42"}`})
		synctest.Wait()
		want(t, "status", s.sendUnread(t, "full", request{}, 100).Code, http.StatusTooManyRequests)
		s.redis.Free(payKey)
		synctest.Wait()
		want(t, "Close", locks.Close(t.Context()), nil)
	})
}

// A body exists if it yields bytes, whatever its Content-Length is.
func TestBody_ReplacedWithoutALength(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			c.Request.Body = io.NopCloser(strings.NewReader(`{"id":"42"}`))
			c.Request.Header.Set("Content-Type", "application/json")
		})
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{string(body.id)}", When: `body.id != ""`, WaitTime: ruleset.NoWait}, ok)
		s.redis.Take(payKey, time.Hour)
		want(t, "taken", s.do(t, request{}).Code, http.StatusConflict)
	})
}

// If one middleware has bound the body and another has replaced it, the request has two bodies.
func TestBody_ReplacedAfterShouldBindBodyWith(t *testing.T) {
	t.Parallel()
	const replaced = `{"id":"43"}`
	tests := map[string]struct {
		key    string
		status int
	}{
		"the key reads the body":         {"order:#{body.id}", http.StatusInternalServerError},
		"the key does not read the body": {"order:#{path.id}", http.StatusNoContent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				var logged error
				s.engine.Use(func(c *gin.Context) {
					var p payment
					want(t, "bound", c.ShouldBindBodyWith(&p, binding.JSON), nil)
					c.Request.Body = io.NopCloser(strings.NewReader(replaced))
					c.Next()
					if e := c.Errors.Last(); e != nil {
						logged = e.Err
					}
				})
				s.handle(t, "POST", payPath, ruleset.Rule{Key: tt.key, OnKey: failpolicy.Proceed}, func(c *gin.Context) {
					raw, err := c.GetRawData()
					want(t, "error", err, nil)
					want(t, "the body", string(raw), replaced)
					var p payment
					want(t, "bound again", c.ShouldBindBodyWith(&p, binding.JSON), nil)
					want(t, "what was kept", p.ID, "42")
					c.Status(http.StatusNoContent)
				})
				want(t, "status", s.do(t, request{body: paymentJSON}).Code, tt.status)
				if tt.status != http.StatusNoContent {
					wantText(t, logged, "two bodies", "gin.BodyBytesKey")
				}
			})
		})
	}
}

// The key reads the form values that gin's binders find. It does not accept a value that the query has too, which some of
// them merge with the form.
func TestBody_FormOfEachMethod(t *testing.T) {
	t.Parallel()
	form, formType := multipartBody(t)
	for typ, body := range map[string]string{formType: form, "application/x-www-form-urlencoded": "id=42"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, method, payPath, ruleset.Rule{Key: `order:#{form.id ?? "none"}`}, func(c *gin.Context) {
					found := c.DefaultPostForm("id", "none")
					want(t, method+" "+typ+": key", ginlock.Hold(c).Key(), prefix+"order:"+found)
					var p payment
					want(t, "bound", c.ShouldBind(&p), nil)
					want(t, method+" "+typ+": bound", p.ID, strings.TrimPrefix(found, "none"))
				})
				w := s.do(t, request{method: method, url: payURL, body: body, typ: typ})
				want(t, "status", w.Code, http.StatusOK)
				w = s.do(t, request{method: method, url: payURL + "?id=7", body: body, typ: typ})
				want(t, "status with the query", w.Code, http.StatusBadRequest)
			})
		}
	}
}

// The key finds the form that a middleware parsed, although the body is consumed.
func TestBody_FormParsedByAMiddleware(t *testing.T) {
	t.Parallel()
	form, formType := multipartBody(t)
	for typ, body := range map[string]string{formType: form, "application/x-www-form-urlencoded": "id=42&_method=DELETE"} {
		bubble(t, func(t *testing.T, s *shop) {
			s.engine.Use(func(c *gin.Context) {
				if method := c.PostForm("_method"); method != "" {
					c.Request.Method = method
				}
			})
			s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{form.id}"}, func(c *gin.Context) {
				want(t, "key", ginlock.Hold(c).Key(), prefix+"order:"+c.PostForm("id"))
			})
			want(t, typ, s.do(t, request{body: body, typ: typ}).Code, http.StatusOK)
		})
	}
}

var errCut = errors.New("cut")

// The handler gets the error that ended the body early.
func TestBody_CutBeforeItsFirstByte(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, ruleset.Rule{Key: `order:#{body.id}`, OnKey: failpolicy.Proceed}, func(c *gin.Context) {
			_, err := c.GetRawData()
			wantErr(t, "the body", err, errCut)
		})
		req := request{body: "x", typ: "text/plain"}.build()
		req.Body, req.ContentLength = io.NopCloser(brokenBody{}), -1
		w := httptest.NewRecorder()
		s.engine.ServeHTTP(w, req)
		want(t, "status", w.Code, http.StatusOK)
		want(t, "it ran unlocked", w.Header().Get(failpolicy.StatusHeader), failpolicy.MarkUnlocked)
	})
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errCut }
