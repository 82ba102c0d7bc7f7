// Package readmetest contains no code. Its tests check the documentation: README.md, the pages under
// examples, and the package comments. Every Go, YAML and proto block compiles, every name in them exists,
// every key template compiles, every command has the flags that the documentation uses, every link has a
// target, and the tables agree with the code.
package readmetest
