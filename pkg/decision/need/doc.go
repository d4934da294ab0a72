// Package need decides whether a model wants more replicas, may do with fewer, or neither, and how
// much it must be able to serve. It never says which variant serves it.
//
// Read Need first, then Model.Requirement.
package need
