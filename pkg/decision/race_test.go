//go:build race

package decision

// Under the race detector, which is ten times slower, fewer cases are tried.
func init() { thorough = false }
