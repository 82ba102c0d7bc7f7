// Package archtest contains no code. Its tests check the structure of the repository: the allowed imports
// of each package, the modules that a program links if it only uses a lock, the names at the top level and
// of packages, and the English of comments, messages and documents.
package archtest
