// Package llamastack runs the built manager with its operator of Llama Stack servers on a
// local cluster, behind the real API server: conversion, admission, children and status of
// LlamaStackDistribution, with the shipped rights and nothing else.
package llamastack
