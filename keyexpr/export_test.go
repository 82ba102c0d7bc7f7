package keyexpr

import "github.com/expr-lang/expr/vm"

// Spent evaluates a condition and says what the meter counted.
func (c *Condition) Spent(env Env) (work, bytes int, err error) {
	var m meter
	_, failure := c.program.run(env, &m)
	if failure != nil {
		err = failure
	}
	return m.spent.work, m.spent.bytes, err
}

// Spent builds the keys of a list and says what the meter counted.
func (t *Template) Spent(env Env) (work, bytes int, err error) {
	var m meter
	if _, failure := t.keys(env, &m); failure != nil {
		err = failure
	}
	return m.spent.work, m.spent.bytes, err
}

// The budget of a request of a size.
func BudgetOf(size int) (work, bytes int) {
	m := meter{}
	m.grant(sizedEnv(size))
	return floorWork + m.granted.work, floorBytes + m.granted.bytes
}

type sizedEnv int

func (sizedEnv) Value(int) (any, error)                     { return nil, nil }
func (sizedEnv) Item(int, string, int) (string, int, error) { return "", 0, nil }
func (s sizedEnv) Size() int                                { return int(s) }

// Metered are the names that pay for themselves, Loops those that pay for their turns.
func Metered() map[string]bool { return namesOf(meteredNames) }
func Loops() map[string]bool   { return namesOf(loops) }

func namesOf[T any](table map[string]T) map[string]bool {
	names := map[string]bool{}
	for name := range table {
		names[name] = true
	}
	return names
}

func PaidOpcodes() map[byte]bool {
	known := map[byte]bool{}
	for op := range paidOpcodes {
		known[byte(op)] = true
	}
	return known
}
func OffBuiltins() map[string]string { return offReasons }

// Verify checks code that is one operation.
func Verify(op vm.Opcode) error { return verify(&vm.Program{Bytecode: []vm.Opcode{op}}) }
