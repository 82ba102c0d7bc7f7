package grpclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/protofile"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
	"github.com/interlock-go/interlock/grpclock/lockpb"
)

// lateService returns the .proto file of a service that is loaded at run time, with options for Pay and Chat.
func lateService(t *testing.T, pay, chat string) string {
	t.Helper()
	return `syntax = "proto3";
package late.v1;
import "interlock/v1/lock.proto";
message PayRequest { string order_id = 1; int64 amount = 2; }
message PayReply { string receipt = 1; }
service Orders {
  rpc Pay(PayRequest) returns (PayReply) {
    ` + pay + `
  }
  rpc Chat(stream PayRequest) returns (stream PayReply) {
    ` + chat + `
  }
}`
}

const (
	payLock  = `option (interlock.v1.lock) = {key: "pay:#{req.order_id}" wait_time: "none"};`
	chatLock = `option (interlock.v1.lock) = {key: "chat:#{req.order_id}" wait_time: "none" on_busy: STRATEGY_SKIP};`
)

// readLate reads the file of lateService like a program that knows only the given extensions.
func readLate(t *testing.T, text string, known *protoregistry.Types) (*protoregistry.Files, protoreflect.ServiceDescriptor) {
	t.Helper()
	set := protofile.Compile(t, false, map[string]string{"late/v1/late.proto": text}, "proto")
	files := protofile.Read(t, set, known)
	d, err := files.FindDescriptorByName("late.v1.Orders")
	if err != nil {
		t.Fatal(err)
	}
	return files, d.(protoreflect.ServiceDescriptor)
}

func typesOf(t *testing.T, extension protoreflect.ExtensionType) *protoregistry.Types {
	t.Helper()
	types := new(protoregistry.Types)
	if err := types.RegisterExtension(extension); err != nil {
		t.Fatal(err)
	}
	return types
}

func TestOptions_AllForms(t *testing.T) {
	t.Parallel()
	for name, types := range map[string]*protoregistry.Types{
		"generated type":        typesOf(t, lockpb.E_Lock),
		"unknown fields":        new(protoregistry.Types),
		"type made at run time": typesOf(t, dynamicpb.NewExtensionType(lockpb.E_Lock.TypeDescriptor().Descriptor())),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, service := readLate(t, lateService(t, payLock, chatLock), types)
			b := prepare(t, &shop{}, grpclock.WithDescriptors(files))
			b.server = dynamicServer(b.guard, service)
			b.checkAndServe()
			b.redis.Take("pay:1", time.Minute)
			b.redis.Take("chat:1", time.Minute)
			got := new(shoppb.PayReply)
			if err := b.conn.Invoke(t.Context(), "/late.v1.Orders/Pay", order("1"), got); status.Code(err) != codes.Aborted {
				t.Errorf("Pay: got %v, want busy", err)
			}
			if err := b.conn.Invoke(t.Context(), "/late.v1.Orders/Pay", order("2"), got); err != nil || got.GetReceipt() != "dynamic 2" {
				t.Errorf("Pay of another order: got %v, %v", got, err)
			}
		})
	}
}

// The guard applies options without Check and without rules that name the methods.
func TestOptions_WithoutCheck(t *testing.T) {
	t.Parallel()
	b := prepareTill(t, patient, sellAll)
	b.serve()
	b.redis.Take("till:1", time.Minute)
	for method, want := range map[string]string{
		"Refuse": busy, "Skip": "OK | skipped | (empty)", "Talk": busy, "Watch": "OK | skipped", "Plain": "OK | Plain 1",
	} {
		if got := b.sell(t.Context(), method, sale("1", 1)); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

func TestOptions_Mistakes(t *testing.T) {
	t.Parallel()
	lock := func(fields string) string { return "option (interlock.v1.lock) = {" + fields + "};" }
	var text strings.Builder
	for _, pay := range []string{
		lock(`key: "order:#{req.ordr_id}"`),
		lock(`key: "order:#{path.order_id}"`),
		lock(`key: "order:#{req.order_id}}"`),
		lock(`key: "k" when: "req.amont > 5"`),
		lock(`key: "k" wait_time: "10"`),
		lock(`key: "k" lease_time: "forever"`),
		lock(`key: "k" on_busy: STRATEGY_NULL_RESPONSE response: "{\"receit\": \"x\"}"`),
		lock(`key: "k" on_busy: STRATEGY_FALLBACK fallback: "queu"`),
		lock(`key: "k" on_busy: STRATEGY_FALLBACK`),
		lock(`key: "k" on_busy: 77`),
		lock(`key: "k" keys: ["a", "b"]`),
		lock(`key: "k" status: {busy: {http: 200 grpc: "ABORTET"}}`),
		lock(`key: "k" profile: "quik"`),
		lock(`wait_time: "1s"`),
		lock(`key: "k" none: true`),
		lock(`key: "k"`) + "\n    " + lock(`key: "l"`),
	} {
		files, service := readLate(t, lateService(t, pay, ""), typesOf(t, lockpb.E_Lock))
		b := prepare(t, &shop{}, grpclock.WithDescriptors(files),
			grpclock.WithFallback("queue", func(context.Context, proto.Message) (proto.Message, error) { return nil, nil }))
		err := b.guard.Check(dynamicServer(b.guard, service))
		if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok {
			t.Errorf("%s: got %v, want a *ruleset.InvalidError", pay, err)
			continue
		}
		text.WriteString(pay + "\n" + rulesettest.WithoutLists(err.Error()) + "\n\n")
	}
	golden.Assert(t, text.String(), "proto.golden")
}

// Generated code has no line numbers, but its problems contain the name of the file.
func TestOptions_MistakesInGeneratedCode(t *testing.T) {
	t.Parallel()
	b := prepareTill(t, patient, sellAll) // the fallback of Queue is missing
	err := b.guard.Check(b.server)
	const want = `tillpb/till.proto: rule of grpc /till.v1.Till/Queue: fallback: no handler "queue"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	b.serve()
	if got := b.sell(t.Context(), "Queue", sale("1", 1)); !strings.HasPrefix(got, "Internal | interlock/LOCK_MISCONFIGURED") {
		t.Errorf("a call of the broken method: got %q", got)
	}
	if got := b.sell(t.Context(), "Skip", sale("1", 1)); got != "OK | Skip 1" {
		t.Errorf("a call of another method: got %q", got)
	}
}
