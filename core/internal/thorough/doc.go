// Package thorough is for tests that need much computation. Tests of any package of the module call
// it. On a busy machine, or with the race detector, a whole run would take many minutes, and a part
// of the run finds most mistakes. INTERLOCK_THOROUGH=1 makes these tests run whole. The checks of
// this repository do that once, without the race detector.
package thorough

import "os"

// Or returns n in a thorough run, and usual otherwise.
func Or(n, usual int) int {
	if os.Getenv("INTERLOCK_THOROUGH") == "1" {
		return n
	}
	return usual
}
