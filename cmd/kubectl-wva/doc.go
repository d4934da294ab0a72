// Command kubectl-wva shows people what the autoscaler sees. On the PATH it is the
// kubectl plugin "kubectl wva".
//
// It reads with the permissions of whoever runs it. It changes a cluster only where a
// command is told to, with --apply or --rollback. Read newCommand first, then packages
// status and explain.
package main
