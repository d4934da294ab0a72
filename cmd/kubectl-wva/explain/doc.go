// Package explain is "kubectl wva explain": how the last decision about a variant came about,
// as sentences and as a table.
//
// It works out no reason of its own. All of it is in the object's status, which the
// autoscaler renders from its plan, and in the events of the object. Read Account.
package explain
