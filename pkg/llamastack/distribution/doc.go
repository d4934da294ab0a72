// Package distribution knows the distributions of Llama Stack by their names: the image
// of each, and the configuration that the image comes with.
//
// It decides which image an object gets, and which configuration a generated one is
// built on. The two belong together: the base of a name is that of the version of its
// image, and there is no base for an image that a user gives. It must never read anything
// but its arguments and what is compiled in.
//
// Read Resolve first.
package distribution
