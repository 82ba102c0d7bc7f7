package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/keyexpr"
)

func checkTemplates() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		template := lines.Text()
		if _, err := keyexpr.Compile(template, schema(template)); err != nil {
			fmt.Println(err)
		}
	}
}

// schema guesses by the variables whether a template is for HTTP, gRPC or a function.
func schema(template string) *keyexpr.Schema {
	switch {
	case strings.Contains(template, "#{req.") || strings.Contains(template, "#{metadata"):
		return must(grpclock.Schema(payRequest()))
	case strings.Contains(template, "#{in."):
		return must(keyexpr.Argument(reflect.TypeFor[struct{ OrderID string }]()))
	case strings.Contains(template, "#{in}"):
		return must(keyexpr.Argument(reflect.TypeFor[string]()))
	default:
		return must(httpvars.New(httpvars.Config{PathParams: []string{"orderId", "id"}})).Schema()
	}
}

// payRequest describes message PayRequest { string order_id = 1; }.
func payRequest() protoreflect.MessageDescriptor {
	file := must(protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:   proto.String("shop.proto"),
		Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("PayRequest"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name:   proto.String("order_id"),
				Number: proto.Int32(1),
				Type:   descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
				Label:  descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}, nil))
	return file.Messages().Get(0)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
