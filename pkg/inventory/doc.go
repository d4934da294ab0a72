// Package inventory turns nodes, pods, pod templates and labels into the types of
// the capacity model: which accelerator a node carries, what is free on it, and
// what one replica of a template takes. The autoscaler and the scheduler plugin
// both read the cluster through it.
//
// It is the only place that knows a vendor's label or resource. It talks to no API
// server. It never guesses: what the labels do not say stays unknown, and what a
// template asks for beyond the model is named.
//
// Read Name and kinds (the table of conventions) first, then Inventory.
package inventory
