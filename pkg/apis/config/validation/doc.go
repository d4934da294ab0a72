// Package validation says what is wrong with the arguments of the scheduler plugin,
// field by field. It changes nothing and reads nothing else. Read
// AcceleratorPlacementArgs.
package validation
