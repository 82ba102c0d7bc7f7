// Package strictyaml reads YAML that people write by hand, and reports every mistake: its place,
// what is wrong, and what to write instead. Aliases, tags and other parts of YAML that a file of
// settings does not need are mistakes. So is a text that YAML reads differently from what its
// author meant, such as a value that is cut off by a comment that begins with #{.
//
// [Parse] makes a [Doc] of a text. The methods of Doc read its nodes, each as a [Value], and
// report the values that they cannot read. A [Mapping] reads the keys of a mapping.
//
// The package knows YAML and its traps. It knows no field, no rule and no file: the names of the
// fields, their types and the meaning of their values belong to the caller, which is package
// ruleset.
package strictyaml
