// Package readmetest has no code. Its tests keep the texts true, which are README.md, the
// pages under examples and the package comments: every Go, YAML and proto block compiles,
// every name in them exists, every key template compiles, every command has the flags that it
// is given, every link leads somewhere, and the tables say what the code does.
package readmetest
