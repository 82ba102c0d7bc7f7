// Package methodrules holds the rules of protobuf methods: the options of a guard ([Config]), and the
// rules of each method, compiled and checked ([Methods]).
//
// It depends on descriptors, package aspect and the rules, but on no server library: packages grpclock and
// connectlock convert their options and registered services to its types. Package methodcall runs calls
// under its rules.
//
// Its files: method, config, describe and compile use only those before them; methods and lock use these and each other.
package methodrules
