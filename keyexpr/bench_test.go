package keyexpr_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// params is an Env that returns values without allocating, like the Env of an adapter.
type params []string

func (params) Value(int) (any, error) { return nil, nil }

func (p params) Items(int, string) ([]string, error) { return p, nil }

// A compiled key of variable references costs at most 300 ns and 2 allocations.
func BenchmarkTemplate_Key(b *testing.B) {
	argumentSchema := argumentSchema[argument](b)
	in := keyexpr.Values{&argument{ID: 12345678, Name: "name", Next: &argument{Name: "deep"}}}
	request := request{path: entries{"orderId": {"12345678"}}, body: `{"id": 12345678, "user": {"id": "abc"}}`}.env(b)
	tests := []struct {
		name, template string
		schema         *keyexpr.Schema
		env            keyexpr.Env
	}{
		{"reference", `order_lock_#{path.orderId}`, requestSchema(b), params{"12345678"}},
		{"two references", `shop:#{path.shop}:order:#{path.orderId}`, requestSchema(b), params{"12345678"}},
		{"encoded", `order:#{path.orderId}:x`, requestSchema(b), params{"1:2:3"}},
		{"body number", `order:#{body.id}`, requestSchema(b), request},
		{"body text", `order:#{body.user.id}`, requestSchema(b), request},
		{"argument number", `order:#{in.ID}`, argumentSchema, in},
		{"argument text", `order:#{in.Next.Name}`, argumentSchema, in},
		{"expression", `order:#{lower(path.orderId)}`, requestSchema(b), params{"12345678"}},
		{"default", `order:#{query.id ?? path.orderId}`, requestSchema(b), request},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			template := compileFor(b, tt.template, tt.schema)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := template.Key(tt.env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	schema := requestSchema(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := keyexpr.Compile(`shop:#{path.shop}:order:#{lower(path.orderId)}`, schema); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTemplate_KeyAllocations(t *testing.T) {
	template := compile(t, `order_lock_#{path.orderId}`)
	var env keyexpr.Env = params{"12345678"}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := template.Key(env); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 {
		t.Errorf("got %v allocations, want at most 2", allocs)
	}
}

// The text around a list is copied and hashed once for each key, not once for each element.
func TestTemplate_AllocatesOncePerKey(t *testing.T) {
	template := compile(t, `w:#{body.w}:#{body.ids[:]}`)
	env := body(`{"w": "` + strings.Repeat("x", 4_000) + `", "ids": ["a"` + strings.Repeat(`, "a"`, 500) + `]}`).env(t)
	allocations := testing.AllocsPerRun(10, func() {
		if keys, err := template.Keys(env); err != nil || len(keys) != 1 {
			t.Errorf("got %d keys, %v", len(keys), err)
		}
	})
	if allocations > 100 {
		t.Errorf("%v allocations for one key", allocations)
	}
}
