// Package racedetector is for tests that are made of much computation: the race detector
// makes that five to ten times as slow, and finds what it finds in a part of it. The whole
// is to run without it.
package racedetector

// Or is n, or with the race detector under it.
func Or(n, under int) int {
	if enabled {
		return under
	}
	return n
}
