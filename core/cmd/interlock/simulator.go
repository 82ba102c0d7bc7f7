package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/structpb" // see fileFor

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/internal/preview"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/protorules"
	"github.com/interlock-go/interlock/keyexpr"
)

// simulator replaces the program that would serve a request. Its adapters read the request and evaluate the rules. They take
// no lock.
type simulator struct {
	set       *ruleset.Set
	routes    *routes.Table     // nil: not known
	image     *image.Image      // nil: not known
	variables map[string]string // the values of registered variables, client_ip and peer

	body     []byte
	anyRoute bool // a rule with a wildcard matches, and the route that serves the request is not known
	route    routes.Route

	answers []answer
	refused error // the reason that the adapter refuses the request
}

// noMatchError reports that no rule takes a lock for a request.
type noMatchError struct {
	text      string
	onPurpose bool // a rule has None
}

func (e *noMatchError) Error() string { return e.text }

func noMatchf(format string, args ...any) error {
	return &noMatchError{text: fmt.Sprintf(format, args...)}
}

// noLockError returns the error for an endpoint whose rule has None.
func noLockError(e ruleset.Endpoint, at ruleset.Source) error {
	return &noMatchError{onPurpose: true, text: fmt.Sprintf("%s has no lock, on purpose (%s)", e, at)}
}

// noRule returns an error if no rule of the set takes a lock for the endpoint, otherwise nil.
func (s *simulator) noRule(e ruleset.Endpoint) error {
	rules := s.set.Lookup(e)
	switch {
	case len(rules) == 0:
		return noMatchf("no rule matches %s", e)
	case rules[0].None:
		return noLockError(e, rules[0].Source("none"))
	default:
		return nil
	}
}

// elsewhere returns an error for a rule without a key in the file. The error says where the key has to be.
func (s *simulator) elsewhere(e ruleset.Endpoint, where string) error {
	for _, r := range s.set.Lookup(e) {
		if r.Partial() {
			return noMatchf("rule %q of %s (%s) has no key here, so it has to be in %s", r.Name, e, r.Source("endpoint"), where)
		}
	}
	return nil
}

// function returns the answers for a function call. A rule whose key reads the argument yields no
// key.
func (s *simulator) function(name string) ([]answer, error) {
	e := ruleset.Func(name)
	if err := cmp.Or(s.noRule(e), s.elsewhere(e, "the program")); err != nil {
		return nil, err
	}
	rules := s.set.Lookup(e)
	schema, err := keyexpr.Argument(reflect.TypeFor[any]())
	if err != nil {
		return nil, err
	}
	at := aspect.Site{Endpoint: e, Schema: schema, AnyFallback: true}
	p, err := aspect.NewPreview(at, rules...)
	if err != nil {
		return nil, err
	}
	return answersOf(at, rules, p, argument{}, s.accept), nil
}

// argument is the [keyexpr.Env] of a function with an unknown argument.
type argument struct{}

func (argument) Value(int) (any, error) {
	return nil, &keyexpr.EvalError{
		Reason: keyexpr.ReasonInternal, Subject: "in",
		Detail: "is the argument of the function, a Go value that is not known here",
	}
}

func (argument) Items(int, string) ([]string, error) { return nil, nil }

// previewing returns a context that makes adapters record the answers instead of taking locks.
func (s *simulator) previewing(ctx context.Context) context.Context {
	return context.WithValue(ctx, preview.Key{}, func(at aspect.Site, rules []*ruleset.Resolved, p *aspect.Preview, env keyexpr.Env) {
		s.answers = answersOf(at, rules, p, env, s.accept)
	})
}

// accept returns an error for a value that the program would refuse, and for an unknown value.
func (s *simulator) accept(variable string) error {
	switch {
	case variable == "route" && s.anyRoute:
		return &keyexpr.EvalError{
			Reason: keyexpr.ReasonInternal, Subject: "route",
			Detail: "is not known: the rule matches many routes, such as /orders/:id; give the routes of the program with --routes",
		}
	case variable == "body" && s.route.Body != nil:
		if err := s.route.Body.Check(s.body); err != nil {
			return &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: "needs a body of JSON", Err: err}
		}
	}
	return nil
}

// withLocks calls use with a lock client for adapters. The client's Redis does not exist and is
// never used.
func withLocks(use func(*core.Client) error) error {
	nowhere := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	rdb := redis.NewClient(&redis.Options{Dialer: nowhere})
	locks, err := core.New(rdb, core.WithObserver(&core.Observer{Rules: &aspect.Observer{
		Warning: func(*ruleset.Problem) {}, // the answers have the warnings
	}}))
	if err != nil {
		return err
	}
	return errors.Join(use(locks), locks.Close(context.Background()), rdb.Close())
}

// registered returns the values of the registered variables: the variables of --var, and nil for the other variables of
// the program. It leaves out standard, which is not a registered variable.
func (s *simulator) registered(standard string) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range s.routes.Registered() {
		values[name] = nil
	}
	for name, text := range s.variables {
		values[name] = text
		if typ := s.routes.Variable(name); typ != nil {
			v, err := typ.Given(text)
			if err != nil {
				return nil, fmt.Errorf("the variable %s is %s: write it as JSON of its type", name, text)
			}
			values[name] = v
		}
	}
	delete(values, standard)
	return values, nil
}

// fallbacks returns the names of the fallbacks that rules use.
func (s *simulator) fallbacks() (names []string) {
	for _, r := range s.set.Rules() {
		names = append(names, r.Fallback)
	}
	if s.image != nil {
		for _, m := range s.image.Methods {
			for _, d := range m.Rules {
				names = append(names, d.Rule.Fallback)
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// http returns the answers for an HTTP request, such as "POST", "/orders/42/pay?x=1". A body without a
// Content-Type counts as JSON if it looks like JSON, and otherwise as a form. The error is a [*noMatchError] if no
// rule matches the request.
func (s *simulator) http(ctx context.Context, method, target string, header http.Header, body []byte) ([]answer, error) {
	address, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, fmt.Errorf("%s is not a path: write one such as /orders/42/pay?x=1", target)
	}
	r, err := http.NewRequestWithContext(s.previewing(ctx), method, "/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL, r.Host, r.Header, s.body = address, header.Get("Host"), header, body
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", guessType(body))
	}
	if err := withLocks(func(locks *core.Client) error { return s.serve(locks, r) }); err != nil {
		return nil, err
	}
	if s.refused != nil || s.answers != nil {
		return s.answers, s.refused
	}
	e := s.route.Endpoint()
	none := s.noRule(e)
	if none == nil {
		return nil, noMatchf("a CORS preflight takes no lock, because no rule for %s names OPTIONS", e)
	}
	if others := s.otherMethods(r); len(others) > 0 && !slices.Contains(others, method) {
		return nil, noMatchf("no rule matches %s, but there are rules for %s", e, strings.Join(others, ", "))
	}
	return nil, none
}

func guessType(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}

// serve serves a request with a router and a guard.
func (s *simulator) serve(locks *core.Client, r *http.Request) error {
	guards, err := s.guards(locks)
	if err != nil {
		return err
	}
	if !s.find(r, guards) {
		return noMatchf("no route serves %s %s", r.Method, r.URL.Path)
	}
	return nil
}

// find serves a request with the routes of the program. If they are not known, it uses the routes that rules name
// and then, for rules with wildcards, the path of the request itself.
func (s *simulator) find(r *http.Request, guards routes.Guards) (found bool) {
	if s.routes != nil {
		return routes.Serve(s.routes.Routes, r, guards, func(route routes.Route) { s.route = route })
	}
	var named []routes.Route
	for _, rule := range s.set.Rules() {
		if e := rule.Endpoint; e.Transport == ruleset.TransportHTTP && !strings.HasSuffix(e.Path, "*") {
			named = append(named, routes.Route{Method: e.Method, Path: e.Path})
		}
	}
	if routes.Serve(named, r, guards, func(route routes.Route) { s.route = routes.Route{Method: r.Method, Path: route.Path} }) {
		return true
	}
	s.anyRoute, s.route = true, routes.Route{Method: r.Method, Path: r.URL.Path}
	r.URL.Path = literal.Replace(s.route.Path)
	defer func() { r.URL.Path = s.route.Path }()
	return routes.Serve([]routes.Route{{Method: r.Method, Path: r.URL.Path}}, r, guards, func(routes.Route) {})
}

// literal replaces the characters that begin a parameter in the path of a route.
var literal = strings.NewReplacer(":", "_", "*", "_", "{", "_", "}", "_")

// guards returns the guards of gin and of net/http with the rules.
func (s *simulator) guards(locks *core.Client) (routes.Guards, error) {
	refuse := func(refusal *aspect.RefusedError) { s.refuse(refusal.Reason) }
	address := s.variables["client_ip"]
	ofGin := []ginlock.Option{
		ginlock.WithBuffer(1), // for rules that replace an answer after the handler ran
		ginlock.WithErrorWriter(func(_ *gin.Context, refusal *aspect.RefusedError) { refuse(refusal) }),
		ginlock.WithClientIP(func(*gin.Context) string { return address }),
	}
	ofNetHTTP := []httplock.Option{
		httplock.WithSet(s.set),
		httplock.WithBuffer(1),
		httplock.WithErrorWriter(func(_ http.ResponseWriter, _ *http.Request, refusal *aspect.RefusedError) { refuse(refusal) }),
		httplock.WithClientIP(func(*http.Request) string { return address }),
	}
	values, err := s.registered("client_ip")
	if err != nil {
		return routes.Guards{}, err
	}
	for name, v := range values {
		ofGin = append(ofGin, ginlock.WithVariable(name, func(*gin.Context) (any, error) { return v, nil }))
		ofNetHTTP = append(ofNetHTTP, httplock.WithVariable(name, func(*http.Request) (any, error) { return v, nil }))
	}
	for _, name := range s.fallbacks() {
		ofGin = append(ofGin, ginlock.WithFallback(name, func(*gin.Context) {}))
		ofNetHTTP = append(ofNetHTTP, httplock.WithFallback(name, http.NotFoundHandler()))
	}
	a, err := ginlock.New(locks, ofGin...)
	if err != nil {
		return routes.Guards{}, err
	}
	b, err := httplock.New(locks, ofNetHTTP...)
	return routes.Guards{Gin: a.Middleware(s.set), NetHTTP: func(mux httplock.Mux, pattern string, handler http.Handler) {
		_ = b.Handle(mux, pattern, handler) //nolint:errcheck // the routes of the rule answer with the error
	}}, err
}

// refuse records the reason for which an adapter refuses the request.
func (s *simulator) refuse(err error) {
	s.refused = err
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		s.refused = ruleset.Invalid(slices.DeleteFunc(slices.Clone(invalid.Problems), func(p *ruleset.Problem) bool {
			return strings.HasPrefix(p.Message, "WithServerFirst ") // advice for Go; explain names --descriptors instead
		})...)
	}
}

// otherMethods returns the methods for which rules match the path of a request.
func (s *simulator) otherMethods(r *http.Request) (methods []string) {
	none := routes.Guards{Gin: func(*gin.Context) {}, NetHTTP: func(mux httplock.Mux, pattern string, h http.Handler) { mux.Handle(pattern, h) }}
	for _, rule := range s.set.Rules() {
		method := rule.Endpoint.Method
		if rule.Endpoint.Transport != ruleset.TransportHTTP || slices.Contains(methods, method) {
			continue
		}
		other := r.Clone(r.Context())
		other.Method = method
		if s.find(other, none) && len(s.set.Lookup(s.route.Endpoint())) > 0 {
			methods = append(methods, method)
		}
	}
	return methods
}

// grpc returns the answers for a call of a full method, such as "/shop.v1.Orders/Pay". message is the request as
// JSON, or the first message of a stream. Without the method's descriptor, the message is unknown. The error is a
// [*noMatchError] if no rule matches the call.
func (s *simulator) grpc(ctx context.Context, fullMethod string, header http.Header, message []byte) ([]answer, error) {
	m, err := s.method(fullMethod)
	if err != nil {
		return nil, err
	}
	e := ruleset.GRPC(fullMethod)
	if !image.HasOptions(m) {
		where := "the .proto (pass --descriptors) or in the program"
		if s.image != nil {
			where = "the program: its .proto has no key either"
		}
		if err := s.elsewhere(e, where); err != nil {
			return nil, err
		}
	}
	req, err := requestOf(m.Descriptor, message)
	if err != nil {
		return nil, err
	}
	md := metadata.MD{}
	for name, values := range header {
		md.Append(name, values...) // in lower case
	}
	ctx = metadata.NewIncomingContext(s.previewing(ctx), md)
	if from := s.variables["peer"]; from != "" {
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: address(from)})
	}
	if err := withLocks(func(locks *core.Client) error { return s.call(ctx, locks, m, req) }); err != nil {
		return nil, err
	}
	if s.refused != nil || s.answers != nil {
		return s.answers, s.refused
	}
	for _, d := range m.Rules {
		if d.Rule.None && len(s.set.Lookup(e)) == 0 {
			return nil, noLockError(e, d.Source)
		}
	}
	return nil, s.noRule(e)
}

// call calls a method. Its rules treat the request of a unary method and the first message of a stream alike.
// Without a descriptor, keys cannot use req.
func (s *simulator) call(ctx context.Context, locks *core.Client, m protorules.Method, req any) error {
	opts := []grpclock.Option{grpclock.WithSet(s.set)}
	if s.image != nil {
		opts = append(opts, grpclock.WithDescriptors(s.image.Files))
	} else {
		opts = append(opts, grpclock.WithDescriptors(fileFor(m.FullMethod)), grpclock.WithServerFirst(m.FullMethod))
	}
	values, err := s.registered("peer")
	if err != nil {
		return err
	}
	for name, v := range values {
		opts = append(opts, grpclock.WithVariable(name, func(context.Context) (any, error) { return v, nil }))
	}
	for _, name := range s.fallbacks() {
		opts = append(opts, grpclock.WithFallback(name, func(context.Context, proto.Message) (proto.Message, error) { return nil, nil })) //nolint:nilnil // the fallback never runs
	}
	guard, err := grpclock.New(locks, opts...)
	if err != nil {
		return err
	}
	handler := func(context.Context, any) (any, error) { return nil, nil } //nolint:nilnil // the reply is not used
	if _, err := guard.UnaryServerInterceptor()(ctx, req, &grpc.UnaryServerInfo{FullMethod: m.FullMethod}, handler); err != nil {
		s.refuse(err)
	}
	return nil
}

// fileFor returns a file with a method of which only the name is known. Its reply may be any message. If no method can have
// the name, the result contains no file.
func fileFor(fullMethod string) *protoregistry.Files {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	anything := new(".google.protobuf.Value")
	at := strings.LastIndexByte(service, '.')
	files := &protoregistry.Files{}
	if file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("unknown.proto"), Package: new(service[:max(at, 0)]), Dependency: []string{"google/protobuf/struct.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new(service[at+1:]), Method: []*descriptorpb.MethodDescriptorProto{{Name: &method, InputType: anything, OutputType: anything}},
		}},
	}, protoregistry.GlobalFiles); err == nil {
		_ = files.RegisterFile(file) //nolint:errcheck // the only file cannot conflict
	}
	return files
}

// method returns the descriptor of a method. Without an image it has only a name.
func (s *simulator) method(fullMethod string) (protorules.Method, error) {
	if s.image == nil {
		return protorules.Method{FullMethod: fullMethod}, nil
	}
	if m, ok := s.image.Method(fullMethod); ok {
		return m, nil
	}
	judge := s.image.Judge()
	judge.Noun = "method of the descriptors"
	return protorules.Method{}, noMatchf("%s %s", fullMethod, judge.Missing(ruleset.GRPC(fullMethod)))
}

// requestOf parses the request. It returns nil for an unknown method.
func requestOf(d protoreflect.MethodDescriptor, message []byte) (any, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // the request is not known
	}
	m := dynamicpb.NewMessage(d.Input())
	if len(message) == 0 {
		return m, nil
	}
	if err := protojson.Unmarshal(message, m); err != nil {
		return nil, fmt.Errorf("the data is not a %s: %s", d.Input().FullName(), image.Plain(err))
	}
	return m, nil
}

// address is the address of a peer.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
