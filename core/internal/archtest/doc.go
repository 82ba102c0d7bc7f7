// Package archtest has no code. Its tests keep the structure of the repository: which package may
// import which, what a program links that only uses a lock, which names stand at the top level, how
// packages are called, and that no sentence matches a pattern over which readers stumble.
package archtest
