// Package metrics exposes what the controller decides and how well: the replicas that plans
// want, how many more fit, what was written, how long models had too little, what the latency
// model predicts beside what is observed, and how long rounds take.
//
// It shows the plan as it is and computes no reason. What is unknown has no series, and the
// series of a variant end with its object, its target or its accelerator. Names of earlier
// versions are in published.go alone. Read Metrics first; References are for the page that
// lists them.
package metrics
