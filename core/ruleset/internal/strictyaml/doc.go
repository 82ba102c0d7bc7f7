// Package strictyaml reads YAML that people write by hand. It reports every mistake with its
// place and what to write instead. Aliases, tags and other parts of YAML that a file of settings
// does not need are mistakes. So is a text that YAML reads differently from its author's
// intention, such as a value that is cut off by a comment that begins with #{.
//
// [Parse] parses a text into a [Doc]. The methods of Doc read its nodes, each as a [Value], and
// report the values that they cannot read. A [Mapping] reads the keys of a mapping.
//
// The package handles YAML and its traps. It depends on no field, rule or file: the names of the
// fields, their types and the meaning of their values belong to the caller, which is package
// ruleset.
package strictyaml
