package strictyaml_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

type order struct {
	ID   string
	Paid bool
}

var orderMapping = strictyaml.NewMapping("an order", []strictyaml.Key[order]{
	{Name: "order_id", Field: "id", Read: func(d *strictyaml.Doc, v strictyaml.Value, to *order) (ok bool) {
		to.ID, ok = d.Text(v, strictyaml.Form{})
		return ok
	}},
	{Name: "paid", Field: "paid", Read: func(d *strictyaml.Doc, v strictyaml.Value, to *order) (ok bool) {
		to.Paid, ok = d.Bool(v)
		return ok
	}},
}, map[string]strictyaml.Hint{"number": {Meant: "order_id"}, "price": {Message: "belongs to an invoice: remove it here"}})

func TestMapping_Read(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		order    order
		pairs    []string // the fields, with "!" for unreadable ones
		problems []string
	}{
		"order_id: a\npaid: true": {order{"a", true}, []string{"id", "paid"}, nil},
		"paid: 1":                 {order{}, []string{"paid!"}, []string{"1:7: top.paid: 1 is a number: write true or false, without quotes"}},
		"orderId: a":              {order{}, []string{"id!"}, []string{"1:1: top.orderId: unknown field: write order_id"}},
		"number: a":               {order{}, []string{"id!"}, []string{"1:1: top.number: unknown field: write order_id"}},
		"PRICE: 1":                {order{}, []string{"!"}, []string{"1:1: top.PRICE: belongs to an invoice: remove it here"}},
		"colour: a":               {order{}, []string{"!"}, []string{"1:1: top.colour: unknown field: an order has order_id, paid"}},
		"'a b': a":                {order{}, []string{"!"}, []string{`1:1: top."a b": unknown field: an order has order_id, paid`}},
		"paid: true\npaid: false": {order{Paid: true}, []string{"paid"}, []string{"2:1: top.paid: given twice: remove this one, or the first in line 1"}},
		"1: a\npaid: true":        {order{Paid: true}, []string{"paid"}, []string{"1:1: top: 1 is a number, not a name: quote it if it is a name, or part of a value"}},
	} {
		doc, problems := parsed(text)
		var got order
		var fields []string
		for _, p := range orderMapping.Read(doc, "top.", doc.Root, &got) {
			if !p.OK {
				p.Field += "!"
			}
			fields = append(fields, p.Field)
		}
		if got != want.order || !slices.Equal(fields, want.pairs) || !slices.Equal(*problems, want.problems) {
			t.Errorf("%q: got %+v, %q, %q, want %+v", text, got, fields, *problems, want)
		}
	}
}

func TestMapping_ReadFilled(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: {paid: true}": "",
		"a: {}":           "1:4: a: empty: write {paid: true}, or remove the line",
		"a: 1":            "1:4: a: 1 is a number: write {paid: true}",
		"a: {paid: 1}":    "1:11: a.paid: 1 is a number: write true or false, without quotes",
	} {
		doc, problems := parsed(text)
		ok := orderMapping.ReadFilled(doc, firstValue(t, doc), "{paid: true}", &order{})
		if got := strings.Join(*problems, "\n"); got != want || ok != (want == "") {
			t.Errorf("%q: got %t, %q, want %q", text, ok, got, want)
		}
	}
}

// A document reports a limited number of problems. The last problem says that more follow.
func TestDoc_IsFull(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range strictyaml.MaxProblems + 10 {
		fmt.Fprintf(&text, "a%d: 1\n", i)
	}
	doc, problems := parsed(text.String())
	if doc.IsFull() {
		t.Error("a document without problems is full")
	}
	pairs := orderMapping.Read(doc, "", doc.Root, &order{})
	if n := len(*problems); n != strictyaml.MaxProblems || !doc.IsFull() || len(pairs) != strictyaml.MaxProblems {
		t.Fatalf("got %d problems of %d pairs", n, len(pairs))
	}
	if last, want := (*problems)[strictyaml.MaxProblems-1], "1000:1: more problems follow: correct those above first"; last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}

func TestFoldKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"wait_time", "waitTime", "wait-time", "WAIT TIME", "wait.time"} {
		if got := strictyaml.FoldKey(key); got != "waittime" {
			t.Errorf("%q: got %q", key, got)
		}
	}
}
