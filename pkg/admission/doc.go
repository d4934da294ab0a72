// Package admission is where the API server asks before it stores an object: thin shells
// around validation and conversion, which are pure and lie with the kinds that they are
// about.
//
// It decides which webhooks are served, and sees to the certificate that they are served
// with. It must never decide what a valid object is, and never read a cluster to find out.
// Each kind has a file with one function that adds its webhooks to a manager, and says
// which configurations of the cluster name them, so that the certificate is put there.
//
// Read LlamaStack for a kind, and Rotate for the certificate.
package admission
