package ruleset

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

// everything returns a rule with a value in every field. The rule is invalid.
func everything(t *testing.T) *Resolved {
	t.Helper()
	var rule Rule
	v := reflect.ValueOf(&rule).Elem()
	for _, field := range v.Fields() {
		setSomething(t, field)
	}
	rule.None = false // a rule with None has no other fields
	r := &Resolved{}
	r.overlay(&Declared{Rule: rule, Source: Source{Layer: LayerYAML, File: "locks.yaml", Line: 3, Column: 5}})
	return r
}

func setSomething(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("something")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(4711)
	case reflect.Uint32:
		v.SetUint(10)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	case reflect.Struct:
		for _, field := range v.Fields() {
			setSomething(t, field)
		}
	default:
		t.Fatalf("fields of type %s are new: make this test set them", v.Type())
	}
}

func TestDump_EveryField(t *testing.T) {
	t.Parallel()
	r := everything(t)
	text, object := dumped(t, Dump{Rules: []*Resolved{r}})
	for _, field := range Fields() {
		if field == "none" {
			continue // the samples cover it
		}
		line := "    " + field + ":"
		if field == "endpoint" {
			line = "  - something:"
		}
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("the text has no %s:\n%s", field, text)
		}
		if _, ok := object.Rules[0][field]; !ok {
			t.Errorf("the JSON has no %s", field)
		}
	}
	if strings.Contains(text, "Value>") {
		t.Errorf("a field is not spelled out:\n%s", text)
	}
}

func TestDump_EveryStatus(t *testing.T) {
	t.Parallel()
	r := everything(t)
	text, _ := dumped(t, Dump{Rules: []*Resolved{r}})
	for field := range reflect.TypeFor[failpolicy.Statuses]().Fields() {
		cause := failpolicy.Cause(strings.ToLower(field.Name))
		if cause.Reason() == failpolicy.Cause("").Reason() {
			t.Errorf("%s is not a cause", cause)
		}
		if !strings.Contains(text, string(cause)+": {http: 4711, grpc: ABORTED}") {
			t.Errorf("the text has no %s:\n%s", cause, text)
		}
	}
}

func TestDump_EverySetting(t *testing.T) {
	t.Parallel()
	var settings Settings
	v := reflect.ValueOf(&settings).Elem()
	for _, field := range v.Fields() {
		setSomething(t, field)
	}
	text, object := dumped(t, Dump{Settings: settings})
	none, _ := dumped(t, Dump{Settings: (*Set)(nil).Settings()})
	for _, name := range namesOf(settingFields) {
		if !strings.Contains("\n"+text, "\n"+name+": ") {
			t.Errorf("the text has no %s:\n%s", name, text)
		}
		if _, ok := object.Settings[name]; !ok {
			t.Errorf("the JSON has no %s", name)
		}
	}
	if none != "rules: []\n" {
		t.Errorf("the defaults are shown:\n%s", none)
	}
}

// dumpObject is the JSON of a dump.
type dumpObject struct {
	Settings map[string]any   `json:"settings"`
	Rules    []map[string]any `json:"rules"`
}

func dumped(t *testing.T, d Dump) (string, dumpObject) {
	t.Helper()
	var text strings.Builder
	if err := d.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var object dumpObject
	if err := json.Unmarshal(document, &object); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return text.String(), object
}
