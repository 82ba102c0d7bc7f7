package protovars_test

import (
	"fmt"

	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/grpclock/internal/protovars/internal/openpb"
	"github.com/interlock-go/interlock/keyexpr"
)

func Example() {
	request := &openpb.PayRequest{Order: &openpb.Order{Id: "42"}}
	vars, err := protovars.New(protovars.Config{Request: request.ProtoReflect().Descriptor()})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := keyexpr.Compile("order_lock_#{req.order.id}", vars.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key.Key(vars.Call(request, &host{})))
	// Output: order_lock_42 <nil>
}
