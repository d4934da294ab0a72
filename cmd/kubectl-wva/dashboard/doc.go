// Package dashboard shows a live cluster on a page that is served on a loopback address.
//
// It reads with the permissions of the kubeconfig and changes nothing. Nothing of it runs in
// the cluster. What it may not read is left out, and a note on the page says so; unknown is
// never zero. Read history first: what was seen so far, made of one listing after the other;
// then loads (what Prometheus knows) and view (the state of the page).
package dashboard
