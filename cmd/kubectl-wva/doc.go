// Command kubectl-wva shows people what the autoscaler sees. On the PATH it is the
// kubectl plugin "kubectl wva".
//
// It reads with the permissions of whoever runs it and writes nothing. Read newCommand
// first, then package capacity.
package main
