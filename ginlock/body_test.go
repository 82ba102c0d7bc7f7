package ginlock_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// payment is what the handlers of these tests read.
type payment struct {
	ID     string `form:"id"     json:"id"`
	Amount int64  `form:"amount" json:"amount"`
}

const paymentJSON = `{"id":"42","amount":9007199254740993}`

func TestBody_IsWholeForHandlersAndBinders(t *testing.T) {
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

func TestBody_LargerThanTheLimitIsWholeForAHandlerWhoseKeyDoesNotUseIt(t *testing.T) {
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

func TestBody_ConsumedByShouldBindBodyWithBeforeTheGuard(t *testing.T) {
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

func TestBody_IsReadBeforeWaitingAndNotForNothing(t *testing.T) {
	t.Parallel()
	noWait := pay
	noWait.WaitTime = ruleset.NoWait
	tests := map[string]struct {
		rule  ruleset.Rule
		taken bool
		proto int
		read  bool
	}{
		"a rule that waits":           {pay, true, 1, true},
		"one that waits, over HTTP/2": {pay, true, 2, false},
		"one that may wait":           {pay, false, 1, false},
		"a rule that never waits":     {noWait, true, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) {})
				if tt.taken {
					s.redis.Take(payKey, time.Hour)
				}
				body := &eofNoticed{Reader: strings.NewReader(paymentJSON)}
				req := request{body: paymentJSON}.build()
				req.Body, req.ProtoMajor = body, tt.proto
				s.engine.ServeHTTP(httptest.NewRecorder(), req)
				want(t, "read to its end", body.ended, tt.read)
			})
		})
	}
}

// eofNoticed is a body that notices whether it was read to its end.
type eofNoticed struct {
	io.Reader
	ended bool
}

func (b *eofNoticed) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

func (b *eofNoticed) Close() error { return nil }

func TestBody_TypedIsCheckedAtStart(t *testing.T) {
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

func TestKey_IsEvaluatedOnceAndReleasedWhateverTheHandlerChanges(t *testing.T) {
	t.Parallel()
	evaluated := 0
	user := func(c *gin.Context) (string, error) { evaluated++; return c.GetHeader("X-User"), nil }
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "#{user}:#{path.id}:#{user}"}, func(c *gin.Context) {
			c.Request.Header.Set("X-User", "eve")
			c.Params[0].Value = "0"
			want(t, "held", s.held(t, prefix+"ann:42:ann"), true)
		})
		s.do(t, request{headers: map[string]string{"X-User": "ann"}})
		want(t, "evaluated", evaluated, 1)
		want(t, "held afterwards", s.held(t, prefix+"ann:42:ann"), false)
	}, ginlock.WithVariable("user", user))
}

func TestKey_PathValuesAreWhatTheRouterHandsOverDecodedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ url, param, key string }{
		"plain":                 {"/items/abc", "abc", "item:abc"},
		"encoded spelling":      {"/items/%61bc", "abc", "item:abc"},
		"case is kept":          {"/items/ABC", "ABC", "item:ABC"},
		"encoded twice":         {"/items/a%2562", "a%62", "item:a%2562"},
		"the delimiter encoded": {"/items/a%3Ab", "a:b", "item:a%3Ab"},
		"space":                 {"/items/a%20b", "a b", "item:a b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "GET", "/items/:id", ruleset.Rule{Key: "item:#{path.id}"}, func(c *gin.Context) {
					want(t, "c.Param", c.Param("id"), tt.param)
					want(t, "key", ginlock.Hold(c).Key(), prefix+tt.key)
				})
				want(t, "status", s.do(t, request{method: "GET", url: tt.url}).Code, http.StatusOK)
			})
		})
	}
}

func TestVariable_ClientIPIsGins(t *testing.T) {
	t.Parallel()
	rule := ruleset.Rule{Key: "ip:#{client_ip}"}
	bubble(t, func(t *testing.T, s *shop) {
		if err := s.engine.SetTrustedProxies([]string{"192.0.2.1"}); err != nil {
			t.Fatal(err)
		}
		s.handle(t, "POST", payPath, rule, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"ip:"+c.GetHeader("Want"))
		})
		s.do(t, request{headers: map[string]string{"Want": "192.0.2.1"}})
		s.do(t, request{headers: map[string]string{"Want": "203.0.113.9", "X-Forwarded-For": "203.0.113.9"}})
	})
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, rule, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"ip:10.0.0.1")
		})
		s.do(t, request{})
	}, ginlock.WithClientIP(func(*gin.Context) string { return "10.0.0.1" }))
}

type principal struct{ Tenant string }

func TestVariable_UnsetIs500WhateverTheRuleSays(t *testing.T) {
	t.Parallel()
	who := func(c *gin.Context) (*principal, error) {
		p, _ := c.Value("principal").(*principal)
		return p, nil
	}
	authenticate := func(c *gin.Context) { c.Set("principal", &principal{"acme"}) }
	rule := ruleset.Rule{Key: "#{who.Tenant}:order:#{path.id}", OnKey: failpolicy.Proceed}
	bubble(t, func(t *testing.T, s *shop) {
		var logged error
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			if e := c.Errors.Last(); e != nil {
				logged = e.Err
			}
		})
		s.engine.POST("/wrong/:id", s.guard.Handler(rule), authenticate, func(*gin.Context) { t.Error("the handler ran") })
		s.engine.POST("/right/:id", authenticate, s.guard.Handler(rule), func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"acme:order:1")
		})
		w := s.do(t, request{url: "/wrong/1"})
		want(t, "status", w.Code, http.StatusInternalServerError)
		want(t, "type", problemOf(t, w).Type, "about:blank")
		wantText(t, logged, "is the lock installed before what sets it, such as authentication?", "who", "POST /wrong/:id")
		want(t, "in the right order", s.do(t, request{url: "/right/1"}).Code, http.StatusOK)
	}, ginlock.WithVariable("who", who))
}

func TestVariable_NilOfAnyTypeIs500(t *testing.T) {
	t.Parallel()
	for template, variable := range map[string]ginlock.Option{
		"user:#{roles}":         ginlock.WithVariable("roles", func(*gin.Context) ([]string, error) { return nil, nil }),
		`user:#{claims["sub"]}`: ginlock.WithVariable("claims", func(*gin.Context) (map[string]string, error) { return nil, nil }),
		"user:#{anything}":      ginlock.WithVariable("anything", func(*gin.Context) (any, error) { return []string(nil), nil }),
		"user:#{who.Tenant}":    ginlock.WithVariable("who", func(*gin.Context) (*principal, error) { return nil, nil }),
	} {
		bubble(t, func(t *testing.T, s *shop) {
			s.handle(t, "POST", payPath, ruleset.Rule{Key: template}, func(*gin.Context) { t.Error("the handler ran") })
			want(t, "status of "+template, s.do(t, request{}).Code, http.StatusInternalServerError)
		}, variable)
	}
}

func TestVariable_ThatCannotBeTold(t *testing.T) {
	t.Parallel()
	broken := func(*gin.Context) (string, error) { return "", errors.New("no such session in redis") }
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "#{user}"}, func(*gin.Context) { t.Error("the handler ran") })
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusInternalServerError)
	}, ginlock.WithVariable("user", broken))
}

func TestBody_FormReadByTheHandlerIsSeenOutside(t *testing.T) {
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

func TestKey_PathValuesUnderUseRawPathAreDecodedOnceToo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.UseRawPath = true
		s.handle(t, "GET", "/items/:id", ruleset.Rule{Key: "item:#{path.id}"}, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"item:"+c.GetHeader("Want"))
		})
		want(t, "Check", s.guard.Check(s.engine), nil)
		for url, key := range map[string]string{"/items/a%2Fb": "a/b", "/items/a%252Fb": "a%252Fb", "/items/%61": "a"} {
			want(t, url, s.do(t, request{method: "GET", url: url, headers: map[string]string{"Want": key}}).Code, http.StatusOK)
		}
	})
}
