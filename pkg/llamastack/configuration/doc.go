// Package configuration makes the configuration of a Llama Stack server, config.yaml, from
// what a LlamaStackDistribution declares and the configuration that its image comes with.
//
// It decides which providers, resources, stores and APIs the server has, and which
// variables of the environment carry its secrets: the text has their names and never a
// value. The same object and base give the same bytes. It must never read a Secret, a
// clock or a cluster, and never change its arguments.
//
// Read Generate first: it is the list of steps. Secrets are the references of an object
// with the variables that stand for them; Postgres is the one place that takes a value
// apart, for an operator that keeps the parts in a Secret.
package configuration
