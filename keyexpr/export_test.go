package keyexpr

// Spent evaluates a condition and says what the meter counted.
func (c *Condition) Spent(env Env) (work, bytes int, err error) {
	var m meter
	_, failure := c.program.run(env, &m)
	if failure != nil {
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

// Metered are the names that pay for themselves, Constant those that need not.
func Metered() map[string]bool {
	names := map[string]bool{}
	for name := range meteredFunctions {
		names[name] = true
	}
	return names
}

// Classes of names.
func Loops() map[string]bool             { return loops }
func ConstantBuiltins() map[string]bool  { return constantBuiltins }
func ConstantOperators() map[string]bool { return constantOperators }
func PaidOpcodes() map[byte]bool {
	known := map[byte]bool{}
	for op := range paidOpcodes {
		known[byte(op)] = true
	}
	return known
}
func OffBuiltins() map[string]string { return offReasons }
func OwnFunctions() map[string]bool {
	names := map[string]bool{}
	for name := range ownFunctions {
		names[name] = true
	}
	return names
}
