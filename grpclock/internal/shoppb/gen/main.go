// Gen makes shop.pb.go from shop.txtpb with the protoc-gen-go of go.mod; no protoc
// is needed. Run by go generate in the folder above.
package main

import (
	"bytes"
	"errors"
	"log"
	"os"
	"os/exec"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := generate("shop.txtpb", "shop.pb.go"); err != nil {
		log.Fatal(err)
	}
}

func generate(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	file := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal(text, file); err != nil {
		return err
	}
	reply, err := plugin(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file.GetName()},
		Parameter:      new("paths=source_relative,default_api_level=API_OPAQUE"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{file},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(reply.GetFile()[0].GetContent()), 0o644)
}

// plugin runs protoc-gen-go as protoc would.
func plugin(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "run", "google.golang.org/protobuf/cmd/protoc-gen-go")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	reply := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, errors.New(reply.GetError())
	}
	return reply, nil
}
