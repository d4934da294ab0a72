// Command kubectl-wva shows people what the autoscaler sees. On the PATH it is the
// kubectl plugin "kubectl wva".
//
// It reads with the permissions of whoever runs it and changes nothing in a cluster. Read
// newCommand first, then packages capacity and replay.
package main
