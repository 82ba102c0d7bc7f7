// Package archtest has no code. Its tests keep the structure of the repository:
// which package may import which, what a user who wants only a lock links, what
// stands at the top level, how long files are and how packages are called.
package archtest
