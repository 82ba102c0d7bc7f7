package keyexpr_test

import (
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/keyexpr"
)

// A template can build the key of a function's argument.
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
	schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{
		Noun: "path parameter", Known: []string{"orderId"},
	}})
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
	//   write order:#{path.orderId}:#{path.orderid}
	// keyexpr: 1:26: path parameter orderid does not exist: there is orderId
	//   | order:#{#orderId}:#{path.orderid}
	//   |                          ^
	//   write path.orderId
}

// The field When of a rule is a condition: the rule takes the lock only if it is true. A missing
// value is the empty value of its type.
func ExampleCompileCondition() {
	type Payment struct {
		OrderID int64
		Amount  float64
		DryRun  bool
		Tags    []string
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[Payment]())
	if err != nil {
		fmt.Println(err)
		return
	}
	when, err := keyexpr.CompileCondition(`not in.DryRun and (in.Amount >= 100 or "vip" in in.Tags)`, schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(when.Eval(keyexpr.Values{&Payment{OrderID: 1, Amount: 250}}))
	fmt.Println(when.Eval(keyexpr.Values{&Payment{OrderID: 1, Tags: []string{"vip"}}}))
	fmt.Println(when.Eval(keyexpr.Values{&Payment{OrderID: 1, Amount: 250, DryRun: true}}))
	_, err = keyexpr.CompileCondition(`in.Amout > 100`, schema)
	fmt.Println(err)
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// keyexpr: 1:4: keyexpr_test.Payment has no field Amout: there are Amount, DryRun, OrderID, Tags
	//   | in.Amout > 100
	//   |    ^
	//   write in.Amount
}

// A template with a list yields one key for each element.
func ExampleTemplate_Keys() {
	type Reservation struct {
		Shop  string
		Items []struct{ SKU string }
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[Reservation]())
	if err != nil {
		fmt.Println(err)
		return
	}
	template, err := keyexpr.Compile("stock:#{in.Shop}:#{map(in.Items, .SKU)}", schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.Keys(keyexpr.Values{&Reservation{Shop: "s1", Items: []struct{ SKU string }{{"b"}, {"a"}, {"b"}}}}))
	// Output: [stock:s1:a stock:s1:b] <nil>
}
