// Package methodrules holds the rules of protobuf methods: the options of a guard ([Config]), and the
// rules of each method, compiled and checked ([Methods]).
//
// It knows descriptors, package aspect and the rules, but no server library: packages grpclock and
// connectlock turn their options and registered services into its types. Package methodcall runs calls
// under its rules.
//
// Its files, each of which uses only those before it: method, config, describe, compile, methods.
package methodrules
