package protovars_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/grpclock/internal/protovars/internal/opaquepb"
	"github.com/interlock-go/interlock/grpclock/internal/protovars/internal/openpb"
	"github.com/interlock-go/interlock/keyexpr"
)

// host is the part of a call that a server supplies.
type host struct {
	metadata   map[string][]string
	registered []any
	err        error
	calls      int
	peer       string
}

func (h *host) Metadata(key string) []string { return h.metadata[key] }

func (h *host) Method() string { return "/shop.v1.Orders/Pay" }

func (h *host) Peer() string { return cmp.Or(h.peer, "192.0.2.1") }

func (h *host) Registered(i int) (any, error) {
	h.calls++
	if i >= len(h.registered) {
		return nil, h.err
	}
	return h.registered[i], h.err
}

// kind is one representation of a message.
type kind struct {
	name       string
	descriptor protoreflect.MessageDescriptor // the type in the schema
	empty      func() proto.Message
}

func kinds(tb testing.TB) []kind {
	tb.Helper()
	open := (*openpb.PayRequest)(nil).ProtoReflect().Descriptor()
	rebuilt, err := protodesc.NewFile(protodesc.ToFileDescriptorProto(open.ParentFile()), protoregistry.GlobalFiles)
	if err != nil {
		tb.Fatal(err)
	}
	other := rebuilt.Messages().ByName("PayRequest")
	return []kind{
		{"open", open, func() proto.Message { return &openpb.PayRequest{} }},
		{"opaque", (*opaquepb.PayRequest)(nil).ProtoReflect().Descriptor(), func() proto.Message { return &opaquepb.PayRequest{} }},
		{"dynamic", other, func() proto.Message { return dynamicpb.NewMessage(other) }},
		{"dynamic for a generated schema", open, func() proto.Message { return dynamicpb.NewMessage(other) }},
	}
}

func (k kind) variables(tb testing.TB, registered ...keyexpr.Variable) *protovars.Variables {
	tb.Helper()
	v, err := protovars.New(protovars.Config{Request: k.descriptor, Registered: registered})
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func (k kind) message(tb testing.TB, text string) proto.Message {
	tb.Helper()
	m := k.empty()
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// variablesOf returns the variables of calls with a type of request.
func variablesOf(tb testing.TB, request protoreflect.MessageDescriptor) *protovars.Variables {
	tb.Helper()
	v, err := protovars.New(protovars.Config{Request: request})
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func compile(tb testing.TB, v *protovars.Variables, template string) *keyexpr.Template {
	tb.Helper()
	t, err := keyexpr.Compile(template, v.Schema())
	if err != nil {
		tb.Fatalf("Compile(%q): %v", template, err)
	}
	return t
}

func compileCondition(tb testing.TB, v *protovars.Variables, expression string) *keyexpr.Condition {
	tb.Helper()
	c, err := keyexpr.CompileCondition(expression, v.Schema())
	if err != nil {
		tb.Fatalf("CompileCondition(%q): %v", expression, err)
	}
	return c
}

const full = `
user_id: "u1" small: -7 big: 9007199254740993 huge: 18446744073709551615 signed: -1 fixed: 3 express: true price: 1.5
digest: "\x01\xff" status: STATUS_OPEN note: "n" shard: 0 wish: STATUS_UNSPECIFIED account: 5
order { id: "o1" parent { id: "o2" parent { id: "o3" } } children { id: "c1" } children { id: "c2" } }
items { sku: "b" count: 1 } items { sku: "a" count: 2 } tags: "t1" tags: "t2" ids: 2 ids: 1 statuses: STATUS_OPEN statuses: 7
labels { key: "k" value: "v" } labels { key: "x y" value: "w" } slots { key: 5 value { sku: "s" } }
nick { value: "nick" } rank { value: 0 } at { seconds: 12 }`

func TestCall_Key(t *testing.T) {
	t.Parallel()
	tests := []struct {
		template string
		want     []string
	}{
		{`#{req.user_id}`, []string{"u1"}},
		{`#{req.order.id}`, []string{"o1"}},
		{`#{req.order.parent.parent.id}`, []string{"o3"}},
		{`#{req.order.children[1].id}`, []string{"c2"}},
		{`#{req.small}:#{req.signed}:#{req.fixed}`, []string{"-7:-1:3"}},
		{`#{req.big}`, []string{"9007199254740993"}},
		{`#{req.huge}`, []string{"18446744073709551615"}},
		{`#{req.express}`, []string{"true"}},
		{`#{req.digest}`, []string{"01ff"}},
		{`#{req.status}`, []string{"STATUS_OPEN"}},
		{`#{req.note}`, []string{"n"}},
		{`#{req.shard}`, []string{"0"}},
		{`#{req.wish}`, []string{"STATUS_UNSPECIFIED"}},
		{`#{req.account}`, []string{"5"}},
		{`#{req.card ?? "none"}`, []string{"none"}},
		{`#{req.other?.id ?? "none"}`, []string{"none"}},
		{`#{req.nick.value}`, []string{"nick"}},
		{`#{req.rank.value}`, []string{"0"}},
		{`#{req.at.seconds}`, []string{"12"}},
		{`#{req.items[0].sku}`, []string{"b"}},
		{`#{req.items[-1].sku}`, []string{"a"}},
		{`#{req.labels.k}`, []string{"v"}},
		{`#{req.labels["x y"]}`, []string{"w"}},
		{`#{req.slots[5].sku}`, []string{"s"}},
		{`#{req.slots["5"].sku}`, []string{"s"}},
		{`#{map(req.items, .sku)}`, []string{"a", "b"}},
		{`#{map(filter(req.items, .count > 1), .sku)}`, []string{"a"}},
		{`#{map(req.order.children, .id)}`, []string{"c1", "c2"}},
		{`#{first(filter(req.items, .sku == "a")).count}`, []string{"2"}},
		{`#{first(req.items).sku}`, []string{"b"}},
		{`#{req.tags}`, []string{"t1", "t2"}},
		{`#{req.ids}`, []string{"1", "2"}},
		{`#{req.statuses}`, []string{"7", "STATUS_OPEN"}},
		{`#{req.big + 1}`, []string{"9007199254740994"}},
		{`#{req.price > 1 ? "high" : "low"}`, []string{"high"}},
		{`#{req.status == "STATUS_OPEN" ? req.user_id : "none"}`, []string{"u1"}},
		{`#{upper(req.user_id)}`, []string{"U1"}},
		{`#{req.order.id + req.order.parent.id}`, []string{"o1o2"}},
		{`#{(req.express ? req.order : req.other).id}`, []string{"o1"}},
		{`#{req.order == nil ? "none" : "some"}`, []string{"some"}},
		{`#{metadata.tenant}`, []string{"acme"}},
		{`#{metadata["X-Tenant"]}`, []string{"upper"}},
		{`#{metadata.many[1]}`, []string{"b"}},
		{`#{metadata.many[:]}`, []string{"a", "b"}},
		{`#{method}|#{peer}`, []string{"/shop.v1.Orders/Pay|192.0.2.1"}},
		{`#{principal}`, []string{"bob"}},
		{`#{account.ID}`, []string{"9"}},
	}
	for _, k := range kinds(t) {
		v := k.variables(t, keyexpr.Variable{Name: "principal"}, keyexpr.Variable{Name: "account", Type: keyexpr.TypeFor[*account]()})
		for _, tt := range tests {
			t.Run(k.name+"/"+tt.template, func(t *testing.T) {
				t.Parallel()
				h := &host{metadata: map[string][]string{"tenant": {"acme"}, "x-tenant": {"upper"}, "many": {"a", "b"}}, registered: []any{"bob", &account{9}}}
				got, err := compile(t, v, tt.template).Keys(v.Call(k.message(t, full), h))
				if err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("got %q, %v, want %q", got, err, tt.want)
				}
			})
		}
	}
}

type account struct{ ID int }

// All clients of a Unix socket have one address, so a key refuses it.
func TestCall_PeerOfUnixSocket(t *testing.T) {
	t.Parallel()
	for _, k := range kinds(t) {
		v := k.variables(t)
		for _, socket := range []string{"@", "@client", "/run/client.sock"} {
			_, err := compile(t, v, `#{peer}`).Key(v.Call(k.message(t, ""), &host{peer: socket}))
			if failure, ok := errors.AsType[*keyexpr.EvalError](err); !ok || failure.Reason != keyexpr.ReasonMissing {
				t.Errorf("%s, %s: got %v", k.name, socket, err)
			}
		}
	}
}

func TestCall_NotSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		template, text string
		want           keyexpr.Reason
	}{
		{`#{req.user_id}`, ``, keyexpr.ReasonEmpty},
		{`#{req.order.id}`, ``, keyexpr.ReasonMissing},
		{`#{"order:" + req.order.id}`, ``, keyexpr.ReasonMissing},
		{`#{"order:" + req.order.id}`, `order {}`, keyexpr.ReasonEmpty},
		{`#{req.order.parent.id}`, `order {}`, keyexpr.ReasonMissing},
		{`#{req.small}`, ``, keyexpr.ReasonMissing},
		{`#{req.huge}`, ``, keyexpr.ReasonMissing},
		{`#{string(req.big)}`, ``, keyexpr.ReasonMissing},
		{`#{req.status}`, ``, keyexpr.ReasonMissing},
		{`#{req.digest}`, ``, keyexpr.ReasonEmpty},
		{`#{req.note}`, ``, keyexpr.ReasonMissing},
		{`#{req.note}`, `note: ""`, keyexpr.ReasonEmpty},
		{`#{req.shard}`, ``, keyexpr.ReasonMissing},
		{`#{req.wish}`, ``, keyexpr.ReasonMissing},
		{`#{req.card}`, `account: 1`, keyexpr.ReasonMissing},
		{`#{req.other.id}`, `account: 1`, keyexpr.ReasonMissing},
		{`#{req.nick.value}`, ``, keyexpr.ReasonMissing},
		{`#{req.nick.value}`, `nick {}`, keyexpr.ReasonEmpty},
		{`#{req.labels.k}`, ``, keyexpr.ReasonMissing},
		{`#{req.items[0].sku}`, ``, keyexpr.ReasonMissing},
		{`#{map(req.items, .sku)}`, ``, keyexpr.ReasonEmpty},
		{`#{map(req.items, .sku)}`, `items { sku: "a" } items {}`, keyexpr.ReasonEmpty},
		{`#{metadata.tenant}`, ``, keyexpr.ReasonMissing},
		{`#{metadata.many}`, ``, keyexpr.ReasonRepeated},
		{`#{principal}`, ``, keyexpr.ReasonUnset},
	}
	for _, k := range kinds(t) {
		v := k.variables(t, keyexpr.Variable{Name: "principal"})
		for _, tt := range tests {
			t.Run(k.name+"/"+tt.template+"/"+tt.text, func(t *testing.T) {
				t.Parallel()
				h := &host{metadata: map[string][]string{"many": {"a", "b"}}}
				got, err := compile(t, v, tt.template).Keys(v.Call(k.message(t, tt.text), h))
				failure, ok := errors.AsType[*keyexpr.EvalError](err)
				if !ok || failure.Reason != tt.want {
					t.Errorf("got %q, %v, want %v", got, err, tt.want)
				}
			})
		}
	}
}

func TestCall_ZeroAccepted(t *testing.T) {
	t.Parallel()
	for _, k := range kinds(t) {
		v := k.variables(t)
		for template, want := range map[string]string{
			`#{req.small ?? 0}`: "0", `#{req.express}`: "false", `#{req.status ?? "none"}`: "none",
			`#{req.user_id ?? "none"}`: "none", `#{req.small > 0 ? "a" : "b"}`: "b", `#{req.status == "STATUS_OPEN" ? "a" : "b"}`: "b",
		} {
			got, err := compile(t, v, template).Key(v.Call(k.empty(), &host{}))
			if err != nil || got != want {
				t.Errorf("%s: %s: got %q, %v, want %q", k.name, template, got, err, want)
			}
		}
	}
}

func TestCall_NoMessage(t *testing.T) {
	t.Parallel()
	k := kinds(t)[0]
	v := k.variables(t)
	for _, req := range []proto.Message{nil, (*openpb.PayRequest)(nil), &openpb.Item{Sku: "x"}, &opaquepb.PayRequest{}} {
		for _, template := range []string{`#{req.user_id}`, `#{req.order.id}`, `#{map(req.items, .sku)}`, `#{upper(req.user_id)}`} {
			if key, err := compile(t, v, template).Keys(v.Call(req, &host{})); err == nil {
				t.Errorf("%T: %s: got %q", req, template, key)
			}
		}
	}
}

func TestCall_Condition(t *testing.T) {
	t.Parallel()
	for _, k := range kinds(t) {
		v := k.variables(t)
		for expression, want := range map[string]bool{
			`req.order.id == ""`: true, `req.price > 1.0`: false, `req.note == nil`: true, `len(req.items) == 0`: true,
			`any(req.items, .count > 1)`: false, `req.express`: false, `req.labels.k == "v"`: false, `metadata.dry == "1"`: false,
			// An unset enum has its zero value, as in every getter.
			`req.wish == "STATUS_UNSPECIFIED"`: true, `req.status == "STATUS_UNSPECIFIED"`: true, `req.wish == nil`: true, `(req.wish ?? "none") == "none"`: true,
		} {
			c := compileCondition(t, v, expression)
			if got, err := c.Eval(v.Call(k.empty(), &host{})); err != nil || got != want {
				t.Errorf("%s: %s: got %v, %v, want %v", k.name, expression, got, err, want)
			}
		}
	}
}

func TestCompile_Errors(t *testing.T) {
	t.Parallel()
	tests := []struct{ template, message, suggestion string }{
		{`#{req.orderid}`, "no field orderid", "req.order.id"},
		{`#{req.userId}`, "no field userId", "req.user_id"},
		{`#{req.order.ID}`, "Order has no field ID", "req.order.id"},
		{`#{req.order.parent.parent.nope}`, "no field nope", ""},
		{`#{req.order}`, "is an object", "req.order.id"},
		{`#{req.nick}`, "is an object", "req.nick.value"},
		{`#{req.price}`, "is a float", ""},
		{`#{req.labels}`, "is a map", ""},
		{`#{req.items}`, "is a list", "map(req.items, .sku)"},
		{`#{req.items.sku}`, "is a list", "map(req.items, .sku)"},
		{`#{map(req.items, .skuu)}`, "no field skuu", ".sku"},
		{`#{user_id}`, "unknown name", "req.user_id"},
		{`#{#order.id}`, "not known here", "#{req.order.id}"},
		{`#{request.user_id}`, "unknown name", ""},
		{`#{body.user_id}`, "unknown name", "req.user_id"},
		{`#{path.user_id}`, "unknown name", "req.user_id"},
		{`#{path.order.id}`, "unknown name", "req.order.id"},
		{`#{req.GetOrder().GetId()}`, "methods cannot be called", ""},
		{`pay:{user_id}`, "literal text", "pay:#{req.user_id}"},
		{`#{req.small + "x"}`, "+ cannot take an integer and a string", `string(req.small) + "x"`},
	}
	for _, k := range kinds(t) {
		for _, tt := range tests {
			_, err := keyexpr.Compile(tt.template, k.variables(t).Schema())
			problem, ok := errors.AsType[*keyexpr.Error](err)
			if !ok {
				t.Errorf("%s: got %v, want an *Error", tt.template, err)
				continue
			}
			if !strings.Contains(problem.Message, tt.message) || tt.suggestion != "" && problem.Suggestion != tt.suggestion {
				t.Errorf("%s: got %q and %q, want %q and %q", tt.template, problem.Message, problem.Suggestion, tt.message, tt.suggestion)
			}
		}
	}
}

func TestNew_Errors(t *testing.T) {
	t.Parallel()
	_, err := protovars.New(protovars.Config{Registered: []keyexpr.Variable{{Name: "a", Type: keyexpr.TypeFor[func()]()}, {Name: "b", Type: keyexpr.TypeFor[chan int]()}}})
	if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v, want both variables", err)
	}
	for _, name := range []string{"req", "metadata", "1x", ""} {
		k := kinds(t)[0]
		if _, err := protovars.New(protovars.Config{Request: k.descriptor, Registered: []keyexpr.Variable{{Name: name}}}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	v, err := protovars.New(protovars.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyexpr.Compile(`#{req.id}`, v.Schema()); err == nil {
		t.Error("req exists without a message")
	}
}

func TestCall_RegisteredOnce(t *testing.T) {
	t.Parallel()
	k := kinds(t)[0]
	v := k.variables(t, keyexpr.Variable{Name: "principal"})
	h := &host{registered: []any{"bob"}}
	call := v.Call(k.empty(), h)
	for range 3 {
		if got, err := compile(t, v, `#{principal}:#{principal}`).Key(call); err != nil || got != "bob:bob" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if h.calls != 1 {
		t.Errorf("computed %d times, want once", h.calls)
	}
	_, err := compile(t, v, `#{principal}`).Key(v.Call(nil, &host{err: errors.ErrUnsupported}))
	failure, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok || failure.Reason != keyexpr.ReasonInternal || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want an internal error", err)
	}
}
