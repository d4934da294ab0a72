// Package release says which version of the software a program is.
//
// It reads what the build wrote into the program and nothing else. A program that was built
// without a version says "(devel)" or the version of its module, never a version that it is
// not. Read This.
package release
