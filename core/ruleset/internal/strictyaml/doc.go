// Package strictyaml reads YAML that people write by hand, and tells them of every
// mistake: where it is, what is wrong, and what to write instead. What YAML can do and
// a file of settings does not need, such as aliases and tags, is a mistake, and so is
// what YAML takes for something else than the author, such as a comment that begins
// with #{.
//
// [Parse] makes a [Doc] of a text. The methods of Doc read its nodes, each as a
// [Value], and report what they cannot read. Fields, and what they mean, are the
// caller's.
package strictyaml
