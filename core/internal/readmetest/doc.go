// Package readmetest has no code. Its tests keep the texts true: README.md, the pages under examples,
// and the package comments. Every Go, YAML and proto block compiles, every name in them exists, every
// key template compiles, every command has the flags that a text gives it, every link leads
// somewhere, and the tables agree with the code.
package readmetest
