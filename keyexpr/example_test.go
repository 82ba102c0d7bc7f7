package keyexpr_test

import (
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/keyexpr"
)

// The key of a function's argument.
func Example() {
	type Payment struct {
		OrderID int64
		Items   []struct{ SKU string }
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[Payment]())
	if err != nil {
		fmt.Println(err)
		return
	}
	template, err := keyexpr.Compile("order_lock_#{in.OrderID}", schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.Key(keyexpr.Values{&Payment{OrderID: 42}}))
	_, err = template.Key(keyexpr.Values{&Payment{}})
	fmt.Println(err)
	// Output:
	// order_lock_42 <nil>
	// keyexpr: key order_lock_#{in.OrderID}: in.OrderID is not set or zero, which its type cannot tell apart; write in.OrderID ?? 0 if zero is a value
}

func ExampleCompile_errors() {
	schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: "path", Type: keyexpr.KeyedType(keyexpr.Keyed{
		Noun: "path parameter", Known: []string{"orderId"},
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = keyexpr.Compile("order:#{#orderId}:#{path.orderid}", schema)
	fmt.Println(err)
	// Output:
	// keyexpr: 1:9: #orderId is not known here: names stand without #
	//   | order:#{#orderId}:#{path.orderid}
	//   |         ^
	//   write path.orderId
	// keyexpr: 1:26: there is no path parameter orderid: there is orderId
	//   | order:#{#orderId}:#{path.orderid}
	//   |                          ^
	//   write path.orderId
}
