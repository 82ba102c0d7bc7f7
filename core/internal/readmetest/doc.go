// Package readmetest has no code. Its tests keep README.md true: every Go block
// compiles, every name in it exists, every key template in it compiles, and its
// tables say what the code does.
package readmetest
