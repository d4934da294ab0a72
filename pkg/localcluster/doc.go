// Package localcluster starts a Kubernetes cluster as child processes: etcd and kube-apiserver always;
// kube-controller-manager, the stock scheduler, the variant scheduler, KWOK nodes and Prometheus on request.
// It hands out kubeconfigs and applies manifests, as a user with kubectl would.
//
// It decides ports, addresses, certificates, flags and order. It must never link the programs that it starts
// (they come prebuilt: the roles of cmd/playground/component, and cmd/scheduler), never use a fixed port, and
// never leave a process behind: every child is killed by the kernel when its parent ends, however that ends.
//
// Two clusters on one machine do not meet. Each owns a block of loopback addresses, 127.A.0.0/16: the pods
// have addresses in it, at which a model server can really listen, and its last 256 addresses belong to the
// cluster's own programs. The API server accepts loopback addresses for pods, but not in EndpointSlices, so a
// Service never selects these pods.
//
// Read Options and Start first, then Process.
package localcluster
