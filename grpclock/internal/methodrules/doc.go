// Package methodrules has the rules of protobuf methods for the servers of any library:
// what the options of a guard say ([Config]), which rules there are for a method and how
// they are compiled ([Methods]), and what is wrong with them.
package methodrules
