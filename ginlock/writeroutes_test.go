package ginlock_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/ginlock"
)

// invoice is a body with every kind of field.
type invoice struct {
	stamp
	ID       string         `json:"id"`
	Amount   *int64         `json:"amount,omitempty"`
	Rate     float32        `json:"rate"`
	Paid     bool           `json:"paid"`
	Due      time.Time      `json:"due"`
	Lines    []line         `json:"lines"`
	Previous *invoice       `json:"previous"`
	Extra    map[string]any `json:"extra"`
	Scan     []byte         `json:"scan"`
	Secret   string         `json:"-"`
	Anything any            `json:"anything"`
	Plain    uint8
	hidden   int
}

type line struct {
	SKU string `json:"sku"`
}

type stamp struct {
	ID string `json:"id"` // hidden by the ID of invoice
	By string `json:"by"`
}

type staff struct {
	principal
	ID     int
	Teams  []string
	secret string
}

func describedGuard(t testing.TB) (*ginlock.Guard, *gin.Engine) {
	t.Helper()
	_ = invoice{hidden: 1}.hidden
	_ = staff{secret: "x"}.secret
	guard := newGuard(t,
		ginlock.WithVariable("user", func(*gin.Context) (string, error) { return "bob", nil }),
		ginlock.WithVariable("staff", func(*gin.Context) (*staff, error) { return nil, nil }),
		ginlock.WithVariable("age", func(*gin.Context) (int, error) { return 1, nil }),
		ginlock.WithFallback("queue", ok), ginlock.WithFallback("later", ok),
		ginlock.WithBody[invoice]("POST /invoices"),
	)
	r := gin.New()
	r.POST("/orders/:id/pay", ok)
	r.GET("/orders/:id/pay", ok)
	r.POST("/invoices", ok)
	r.POST(`/jobs/:id/run\:now`, ok)
	r.GET("/files/*path", ok)
	return guard, r
}

func TestWriteRoutes(t *testing.T) {
	t.Parallel()
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		guard, r := describedGuard(t)
		if err := guard.WriteRoutes(w, r); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "the second time", second.String(), first.String())
	golden.Assert(t, first.String(), "routes.json")
}

func TestWriteRoutes_Empty(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := newGuard(t).WriteRoutes(&out, gin.New()); err != nil {
		t.Fatal(err)
	}
	want(t, "output", out.String(), "{\n  \"routes\": []\n}\n")
}

var errFull = errors.New("the disk is full")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteRoutes_Errors(t *testing.T) {
	t.Parallel()
	guard, r := describedGuard(t)
	wantErr(t, "full disk", guard.WriteRoutes(fullWriter{}, r), errFull)
	wantText(t, guard.WriteRoutes(fullWriter{}, nil), "engine is nil")
}
