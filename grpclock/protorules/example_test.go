package protorules_test

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/interlock-go/interlock/grpclock/internal/tillpb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// All rules in a set of files. To read a descriptor set, use protodesc.NewFiles.
func ExampleAll() {
	files := new(protoregistry.Files)
	if err := files.RegisterFile(tillpb.File_tillpb_till_proto); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range protorules.All(files)[:4] {
		for _, declared := range m.Rules {
			fmt.Println(m.FullMethod, declared.Rule.Name, declared.Rule.Key, declared.Source)
		}
	}
	// Output:
	// /till.v1.Till/Anyway  till:#{req.item} tillpb/till.proto
	// /till.v1.Till/Backend  till:#{req.item} tillpb/till.proto
	// /till.v1.Till/Both day till:day tillpb/till.proto
	// /till.v1.Till/Both item till:#{req.item} tillpb/till.proto
}
