// Package migrate is "kubectl wva migrate": it turns manifests of earlier forms into the
// present ones.
//
// It reads files and writes text, and touches no cluster. What becomes of an object says
// the package of its kind; kinds is the list of those that there are. A document that no
// kind knows is an error that names the file and the object, and nothing is written then.
package migrate
