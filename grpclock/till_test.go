package grpclock_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/tillpb"
)

// tillMethod returns the full name of a method of the service whose .proto file declares locks.
func tillMethod(name string) string { return "/" + tillpb.Service + "/" + name }

// tillMethods returns the methods of package tillpb's service.
func tillMethods() protoreflect.MethodDescriptors {
	return tillpb.File_tillpb_till_proto.Services().ByName("Till").Methods()
}

// withoutOptions returns the file of package tillpb without its options. A guard with these descriptors
// ignores the rules of the .proto file.
func withoutOptions(t testing.TB) *protoregistry.Files {
	t.Helper()
	raw := protodesc.ToFileDescriptorProto(tillpb.File_tillpb_till_proto)
	for _, m := range raw.GetService()[0].GetMethod() {
		m.Options = nil
	}
	file, err := protodesc.NewFile(raw, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(file); err != nil {
		t.Fatal(err)
	}
	return files
}

// sellAll answers every call of the service.
func sellAll(_ context.Context, method string, sale *tillpb.Sale) (*tillpb.Receipt, error) {
	return tillpb.Receipt_builder{Text: method + " " + sale.GetItem()}.Build(), nil
}

// prepareTill returns a bench of package tillpb's service that is neither checked nor served yet.
func prepareTill(t testing.TB, timeout time.Duration, handler tillpb.Answer, opts ...any) *bench {
	t.Helper()
	b := prepareWithTimeout(t, timeout, &shop{}, opts...)
	b.server = b.newServer(nil, nil)
	tillpb.Register(b.server, handler)
	return b
}

// load returns the set of a rule file.
func load(t testing.TB, text string, opts ...ruleset.Option) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func sale(item string, amount int64) *tillpb.Sale {
	return tillpb.Sale_builder{Item: item, Amount: amount}.Build()
}

// sell calls a method and returns everything that the client receives, in one line.
func (b *bench) sell(ctx context.Context, method string, sales ...*tillpb.Sale) string {
	var a answer
	meta := []grpc.CallOption{grpc.Header(&a.header), grpc.Trailer(&a.trailer)}
	if m := tillMethods().ByName(protoreflect.Name(method)); m.IsStreamingClient() || m.IsStreamingServer() {
		a.err = b.sellStream(ctx, m, &a, sales, meta)
	} else {
		receipt := new(tillpb.Receipt)
		if a.err = b.conn.Invoke(ctx, tillMethod(method), sales[0], receipt, meta...); a.err == nil {
			a.replies = append(a.replies, textOf(receipt))
		}
	}
	reasons, _ := a.details()
	st := status.Convert(a.err)
	parts := []string{st.Code().String()}
	for _, part := range []string{strings.Join(reasons, ","), st.Message(), a.lockStatus(), strings.Join(a.replies, "+")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " | ")
}

func (b *bench) sellStream(ctx context.Context, m protoreflect.MethodDescriptor, a *answer, sales []*tillpb.Sale, meta []grpc.CallOption) error {
	desc := &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}
	s, err := b.conn.NewStream(ctx, desc, tillMethod(string(m.Name())), meta...)
	for i := 0; err == nil && i < len(sales); i++ {
		err = s.SendMsg(sales[i])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		receipt := new(tillpb.Receipt)
		if err := s.RecvMsg(receipt); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a.replies = append(a.replies, textOf(receipt))
		if !desc.ServerStreams {
			return nil
		}
	}
}

func textOf(receipt *tillpb.Receipt) string {
	if proto.Size(receipt) == 0 {
		return "(empty)"
	}
	return receipt.GetText()
}

// tillQueue returns the fallback that the .proto file requires.
func tillQueue() grpclock.Option {
	return grpclock.WithFallback("queue", func(ctx context.Context, sale *tillpb.Sale) (*tillpb.Receipt, error) {
		return sellAll(ctx, "queued", sale)
	})
}

// elsewhere is a rule file without rules for methods.
const elsewhere = "rules: [{func: close-day, key: day}]\n"
