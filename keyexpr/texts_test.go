package keyexpr_test

import (
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/keyexpr"
)

type (
	stamp   struct{ time.Time } // promotes MarshalText of time.Time
	host    struct{ netip.Addr }
	written time.Time // has its own MarshalText
	state   string    // a named string
	booking struct {
		At, Until time.Time
		Stamp     stamp
		Written   written
		Pointer   *time.Time
		Times     []time.Time
		ByName    map[string]time.Time
		Any       any
		Addr      netip.Addr
		Host      host
		Peer      netip.AddrPort
		Sum       *big.Int
		TTL       time.Duration
		State     state
	}
)

func (w written) MarshalText() ([]byte, error) { return time.Time(w).MarshalText() }

// at returns the instant 2026-03-01T08:00:00Z in the zone that is hours east.
func at(hours int) time.Time {
	return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).In(time.FixedZone("", hours*3600))
}

func bookingSchema(tb testing.TB) *keyexpr.Schema {
	tb.Helper()
	schema := argumentSchema[booking](tb)
	return schema
}

// bookingAt returns a booking with the same instant in every field.
func bookingAt(t time.Time) booking {
	return booking{
		At: t, Until: t, Stamp: stamp{t}, Written: written(t), Pointer: &t, Times: []time.Time{t, t.UTC()},
		ByName: map[string]time.Time{"k": t}, Any: t,
	}
}

func TestTemplate_OneInstantOneKey(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		"in.At", "in.Stamp", "in.Written", "in.Pointer", "in.Times", "in.Times[0]", "in.ByName.k", "in.Any",
		`in.At ?? "none"`, "string(in.At)", "map(in.Times, #)",
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			template := compileFor(t, "slot:#{"+expression+"}", bookingSchema(t))
			for _, hours := range []int{0, 1, -5, 14} {
				got, err := template.Key(keyexpr.Values{bookingAt(at(hours))})
				if want := "slot:2026-03-01T08%3A00%3A00Z"; err != nil || got != want {
					t.Errorf("%d hours east: got %q, %v, want %q", hours, got, err, want)
				}
			}
			if got, err := template.Key(keyexpr.Values{bookingAt(at(1).Add(1500 * time.Millisecond))}); err != nil || got != "slot:2026-03-01T08%3A00%3A01.5Z" {
				t.Errorf("with a fraction: got %q, %v", got, err)
			}
		})
	}
}

// RFC 3339 cannot express a zone offset with seconds, as before 1900. The text of such an instant is in UTC.
func TestTemplate_ZoneWithSeconds(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("LMT", 3208)
	for _, expression := range []string{"in.At", "in.Stamp"} {
		got, err := compileFor(t, "slot:#{"+expression+"}", bookingSchema(t)).Key(keyexpr.Values{bookingAt(at(0).In(zone))})
		if want := "slot:2026-03-01T08%3A00%3A00Z"; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
}

func TestTemplate_ZeroTimeIsNotSet(t *testing.T) {
	t.Parallel()
	for _, zero := range []time.Time{{}, time.Time{}.In(time.FixedZone("", 3600))} {
		for _, expression := range []string{"in.At", "in.Stamp"} {
			key, err := compileFor(t, "slot:#{"+expression+"}", bookingSchema(t)).Key(keyexpr.Values{bookingAt(zero)})
			if err == nil || reasonOf(t, err) != keyexpr.ReasonEmpty {
				t.Errorf("%s of %v: got %q, %v, want that it is empty", expression, zero, key, err)
			}
		}
	}
}

// A computed zero differs from the zero value in its bytes but is the same number.
func TestTemplate_ZeroTextMarshaler(t *testing.T) {
	t.Parallel()
	for _, zero := range []*big.Int{{}, new(big.Int).Sub(big.NewInt(1), big.NewInt(1))} {
		key, err := compileFor(t, "sum:#{in.Sum}", bookingSchema(t)).Key(keyexpr.Values{booking{Sum: zero}})
		if err == nil || reasonOf(t, err) != keyexpr.ReasonEmpty {
			t.Errorf("got %q, %v, want that it is empty", key, err)
		}
	}
}

// A listener on both kinds of addresses reports an IPv4 client as an IPv6 address.
func TestTemplate_OneAddressOneKey(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"} {
		a := netip.MustParseAddr(addr)
		in := booking{Addr: a, Host: host{a}, Peer: netip.AddrPortFrom(a, 80)}
		for field, want := range map[string]string{"Addr": "192.0.2.1", "Host": "192.0.2.1", "Peer": "192.0.2.1%3A80"} {
			if got, err := compileFor(t, "from:#{in."+field+"}", bookingSchema(t)).Key(keyexpr.Values{in}); err != nil || got != "from:"+want {
				t.Errorf("%s of %s: got %q, %v, want %q", field, addr, got, err, want)
			}
		}
	}
}

func TestTemplate_Duration(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{90 * time.Second, time.Minute + 30*time.Second} {
		if got, err := compileFor(t, "ttl:#{in.TTL}", bookingSchema(t)).Key(keyexpr.Values{booking{TTL: ttl}}); err != nil || got != "ttl:90000000000" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestCondition_Instants(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		`in.At == in.Until`:                                true,
		`in.At != in.Until`:                                false,
		`in.At in in.Times`:                                true,
		`in.At == in.Any`:                                  true,
		`in.At == "2026-03-01T08:00:00Z"`:                  true,
		`in.At in ["2026-03-01T08:00:00Z"]`:                true,
		`any(in.Times, # == in.Pointer)`:                   true,
		`in.At < in.ByName.later`:                          true,
		`in.ByName.later > in.At`:                          true,
		`in.At >= in.ByName.later`:                         false,
		`in.At <= in.Until and in.At >= in.Until`:          true,
		`in.At < "2026-03-01T08:00:00.5Z"`:                 true,
		`in.ByName.none == ""`:                             true,
		`in.Any == "2026-03-01T08:00:00Z"`:                 true,
		`in.ByName["later"] == "2026-03-01T08:00:00.001Z"`: true,
	} {
		condition, err := keyexpr.CompileCondition(expression, bookingSchema(t))
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		in := bookingAt(at(9))
		in.Until, in.ByName["later"] = at(-3), at(-7).Add(time.Millisecond)
		if got, err := condition.Eval(keyexpr.Values{in}); err != nil || got != want {
			t.Errorf("%s: got %t, %v", expression, got, err)
		}
	}
}

// A literal text that a value never has is refused at start-up, because every comparison with that
// text would have the same result.
func TestCondition_ImpossibleTexts(t *testing.T) {
	t.Parallel()
	for expression, suggestion := range map[string]string{
		`in.At == "2026-03-01T09:00:00+01:00"`:                   `"2026-03-01T08:00:00Z"`,
		`"2026-03-01T08:00:00.0Z" != in.At`:                      `"2026-03-01T08:00:00Z"`,
		`in.Stamp in ["2026-03-01T09:00:00+01:00"]`:              `"2026-03-01T08:00:00Z"`,
		`any(in.Times, # == "2026-03-01T09:00:00+01:00")`:        `"2026-03-01T08:00:00Z"`,
		`in.At < "2026-03-01T09:00:00+01:00"`:                    `"2026-03-01T08:00:00Z"`,
		`in.At == "tomorrow"`:                                    ``,
		`in.Addr == "2001:DB8::1"`:                               `"2001:db8::1"`,
		`in.Addr == (in.TTL > 1 ? "::1" : "0:0:0:0::1")`:         `"::1"`,
		`(in.Addr ?? "2001:DB8::1") != "none"`:                   `"2001:db8::1"`,
		`["2001:DB8::1"][0] == "" or in.Addr in ["2001:DB8::1"]`: `"2001:db8::1"`,
	} {
		_, err := keyexpr.CompileCondition(expression, bookingSchema(t))
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Suggestion != suggestion || problem.Column <= 1 && !strings.HasPrefix(expression, `"`) {
			t.Errorf("%s: got %v, want the suggestion %s", expression, err, suggestion)
		}
	}
	for _, expression := range []string{`in.Addr == ""`, `(in.Addr ?? "none") == "none"`, `in.State == "ANY"`, `in.Addr == in.State`} {
		if _, err := keyexpr.CompileCondition(expression, bookingSchema(t)); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// A value in an interface has the same text as in a field of its type.
func TestArgument_ValuesInInterfaces(t *testing.T) {
	t.Parallel()
	text := "OPEN"
	for _, tt := range []struct {
		value any
		want  string
	}{
		{state("OPEN"), "OPEN"},
		{&text, "OPEN"},
		{level(3), "3"},
		{time.Second, "1000000000"},
		{at(3), "2026-03-01T08%3A00%3A00Z"},
		{netip.MustParseAddr("10.0.0.1"), "10.0.0.1"},
		{uuid{'a', 'b'}, "AB"},
		{big.NewInt(7), "7"},
		{new(true), "true"},
	} {
		if got, err := argumentKeys(t, `#{in.Any}`, identified{Any: tt.value}); err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%T: got %q, %v, want %q", tt.value, got, err, tt.want)
		}
	}
	schema := argumentSchema[identified](t)
	for expression, value := range map[string]any{
		`in.Any == "OPEN"`: state("OPEN"), `in.Any in ["OPEN"]`: &text, `in.Any == 3`: level(3), `in.Any.k == "OPEN"`: map[string]state{"k": "OPEN"},
		`"OPEN" in in.Any`: []state{"OPEN"},
	} {
		condition := conditionFor(t, expression, schema)
		if got, err := condition.Eval(keyexpr.Values{identified{Any: value}}); err != nil || !got {
			t.Errorf("%s with %T: got %t, %v", expression, value, got, err)
		}
	}
	for _, value := range []any{item{SKU: "x"}, &item{SKU: "x"}, func() {}, []byte("x"), make(chan int)} {
		if key, err := argumentKeys(t, `#{in.Any}`, identified{Any: value}); err == nil || reasonOf(t, err) != keyexpr.ReasonWrongType {
			t.Errorf("%T: got %q, %v, want a wrong type", value, key, err)
		}
	}
}

// Databases and handlers trim white space at the ends of a value, but keys do not. So such white space is
// refused.
func TestTemplate_WhiteSpaceAtEndsOfValue(t *testing.T) {
	t.Parallel()
	for _, id := range []string{" 42", "42 ", "42\t", "\n42", "42\u00a0", "\u300042", " ", "42\u0085"} {
		for _, template := range []string{`order:#{path.orderId}`, `order:#{path.orderId}:x`, `#{"order:" + path.orderId}`, `order:#{[path.orderId]}`, `order:#{path.orderId ?? "none"}`} {
			for _, format := range []keyexpr.Format{{}, {Strict: true}} {
				keys, err := compile(t, template, format).Keys(path(id).env(t))
				if err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter || !strings.Contains(err.Error(), "trim(") {
					t.Errorf("%s with %q: got %q, %v, want a character error that names trim()", template, id, keys, err)
				}
			}
		}
		if id == " " {
			continue
		}
		if got, err := compile(t, `order:#{trim(path.orderId)}`).Key(path(id).env(t)); err != nil || got != "order:42" {
			t.Errorf("trim of %q: got %q, %v", id, got, err)
		}
	}
	for id, want := range map[string]string{"4 2": "order:4 2", "4\u00a02": "order:4%C2%A02", "42\u200b": "order:42%E2%80%8B", "\ufeff42": "order:%EF%BB%BF42", "e\u0301": "order:e\u0301"} {
		if got, err := compile(t, `order:#{path.orderId}`).Key(path(id).env(t)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", id, got, err, want)
		}
	}
}

// A field of a proto2 message is a pointer. Its getter returns the default for nil.
func TestArgument_MessageDefaults(t *testing.T) {
	t.Parallel()
	type deploy struct{ Options *descriptorpb.FileOptions }
	schema := argumentSchema[deploy](t)
	for _, in := range []deploy{{}, {&descriptorpb.FileOptions{}}, {&descriptorpb.FileOptions{CcEnableArenas: new(true)}}} {
		for expression, want := range map[string]bool{`in.Options.CcEnableArenas`: true, `in.Options.OptimizeFor == 1`: true, `in.Options.Deprecated`: false, `in.Options.GoPackage == nil`: true, `in.Options.OptimizeFor == nil`: true} {
			condition := conditionFor(t, expression, schema)
			if got, err := condition.Eval(keyexpr.Values{in}); err != nil || got != want {
				t.Errorf("%s of %v: got %t, %v", expression, in, got, err)
			}
		}
		if got, err := compileFor(t, `#{in.Options.CcEnableArenas}:#{in.Options.OptimizeFor ?? 7}`, schema).Key(keyexpr.Values{in}); err != nil || got != "true:1" {
			t.Errorf("%v: got %q, %v", in, got, err)
		}
		if got, err := compileFor(t, `#{in.Options.GoPackage}`, schema).Key(keyexpr.Values{in}); err == nil {
			t.Errorf("%v: got %q of a field without a default", in, got)
		}
	}
}
