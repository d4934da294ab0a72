// Package empty is a cluster to try things on: a control plane, nodes with GPUs,
// Prometheus, and nothing of this project. Everything else is the user's to install.
//
// The GPUs are emulated, and so are the pods: KWOK says that they run, and nothing runs
// in them. A pod with the annotation emulation.llmd.ai/model-server gets a model server
// at its address, with the metrics of vLLM. A program that is installed into the cluster,
// such as the manager, is started beside it, by hand.
//
// Read Main, then playground.
package empty
