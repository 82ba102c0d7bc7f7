package keyexpr

import "encoding/json"

// payReading pays for what reading a reference does to the value that it starts from:
// a list of texts or numbers is copied, a computed name is brought into its canonical
// form.
func (e *evaluation) payReading(args []any) error {
	work, bytes := 0, 0
	for _, arg := range args {
		switch v := arg.(type) {
		case []string:
			work, bytes = work+30*len(v), bytes+32*len(v)
		case []int:
			work, bytes = work+30*len(v), bytes+24*len(v)
		case string:
			work, bytes = work+10*len(v), bytes+2*len(v)
		}
	}
	if work+bytes == 0 {
		return nil
	}
	return e.spend(work, bytes)
}

// payMaking pays for a value that was made for the expression: those of Go types and
// of messages are converted, lists of the values of an entry are collected.
func (e *evaluation) payMaking(a *access, v any) error {
	if number, ok := v.(json.Number); ok {
		return e.spend(8*len(number), 6*len(number))
	}
	if !a.makes() {
		return nil
	}
	made := madePrice(v)
	return e.spend(made.work, made.bytes)
}

// makes reports whether a reference converts what it reads.
func (a *access) makes() bool {
	if a.item != nil || a.variable != nil && a.variable.Type.convert != nil {
		return true
	}
	for i := range a.steps {
		if a.steps[i].kind == stepField {
			return true
		}
	}
	return false
}

func madePrice(v any) price {
	made := price{}
	switch v := v.(type) {
	case string:
		made = price{len(v) / 2, 2 * len(v)}
	case []any:
		for _, element := range v {
			made = made.plus(price{60, 48}).plus(madePrice(element))
		}
	case map[string]any:
		for _, value := range v {
			made = made.plus(price{200, 160}).plus(madePrice(value))
		}
	}
	return made
}
