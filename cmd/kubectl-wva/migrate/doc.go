// Package migrate is "kubectl wva migrate": it turns objects of earlier forms into the
// present ones.
//
// Turning is text to text, touches no cluster, and gives the same for the same: read convert.
// What is of the present form stays as it is. A document that cannot be turned is an error
// that names the file, the object and the field, and nothing is written then.
//
// A cluster changes only in apply.go: after a backup, which can be put back.
package migrate
