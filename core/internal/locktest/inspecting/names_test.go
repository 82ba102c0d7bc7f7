package inspecting_test

// around is a mapping that no prefix can be: it would show if it were applied twice.
func around(name string) string { return "shop:{" + name + "}:v2" }
