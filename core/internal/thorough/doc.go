// Package thorough is for tests that are made of much computation: on a busy machine, or
// with the race detector, they would take many minutes, and a part of them finds most of what
// they find. INTERLOCK_THOROUGH=1 has them run whole, as the checks of this repository do
// once, without the race detector.
package thorough

import "os"

// Or is n in a thorough run, else usual.
func Or(n, usual int) int {
	if os.Getenv("INTERLOCK_THOROUGH") == "1" {
		return n
	}
	return usual
}
