// Package admission holds the tests of the webhooks behind a real API server: the manager
// serves them with the shipped rights and a certificate of its own.
package admission
