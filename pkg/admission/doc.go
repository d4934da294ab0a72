// Package admission serves the webhooks that the API server calls before it stores an
// object. They are thin shells around validation and conversion, which are pure and are
// part of the packages of their kinds.
//
// It decides which webhooks are served, and renews their certificate. It must never decide
// what a valid object is, and never read a cluster to find out.
// Each kind has a file with one function that adds its webhooks to a manager, and says
// which configurations of the cluster name them, so that the certificate is put there.
//
// Read LlamaStack for a kind, and Rotate for the certificate.
package admission
